"""Whether a step ended as expected is found out, never assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from cpersona_cli.demo.memories import QUESTIONS
from cpersona_cli.demo.model import Doing, Step
from cpersona_cli.demo.play import Players, Scene, play
from cpersona_cli.demo.stage import Done, Server, Stage


@dataclass
class Heard:
    """An audience that takes notes."""

    told: list[object] = field(default_factory=list)

    def act(self, title: str, number: int, of: int) -> None:
        self.told.append((title, number, of))

    def begins(self, doing: Doing, title: str) -> None:
        self.told.append((doing, title))

    def ended(self, step: Step) -> None:
        self.told.append(step)


@dataclass
class Prompter:
    """In the place of a stage: every command ends in the same way."""

    done: Done
    home: str = "/scratch"
    words: Sequence[str] = ()

    def run(self, words: Sequence[str]) -> Done:
        self.words = words
        return self.done


@dataclass
class Memory:
    """In the place of a server: what it recalls, question by question."""

    answers: Mapping[str, Mapping[str, Any]]

    def call(self, _tool: str, *, query: str, **_more: object) -> Mapping[str, Any]:
        return self.answers[query]


def run(done: Done, *words: str, **expected: Any) -> Step:
    players = Players(cast("Stage", Prompter(done)), Heard())
    players.command(*words, **expected)
    return players.steps[0]


def recall(answers: Sequence[Mapping[str, Any]], *, all_answered: bool) -> Step:
    players = Players(cast("Stage", Prompter(Done(code=0, said="", document={}))), Heard())
    memory = Memory({question: answer for (question, _), answer in zip(QUESTIONS, answers, strict=True)})
    players.recall(cast("Server", memory), all_answered=all_answered)
    return players.steps[0]


@pytest.mark.parametrize(
    ("code", "document", "expected", "seen", "ok"),
    [
        (0, {}, {"code": 0}, "exit 0", True),
        (1, {}, {"code": 0}, "exit 1", False),
        (-1, {}, {"code": 0}, "exit -1", False),
        (1, {"status": "changed"}, {"code": 1, "status": "changed"}, "exit 1, changed", True),
        (1, {"status": "mixed"}, {"code": 1, "status": "changed"}, "exit 1, mixed", False),
        (0, {"status": "changed"}, {"code": 1, "status": "changed"}, "exit 0, changed", False),
        (1, {}, {"code": 1, "status": "changed"}, "exit 1, no status", False),
        (1, {"findings": [{"trap": "a.b"}, {"trap": "c.d"}]}, {"code": 1, "trap": "c.d"}, "exit 1, c.d", True),
        (1, {"findings": [{"trap": "a.b"}]}, {"code": 1, "trap": "c.d"}, "exit 1, no c.d", False),
        (1, {}, {"code": 1, "trap": "c.d"}, "exit 1, no c.d", False),
    ],
)
def test_a_command_is_judged_by_its_exit_code_and_its_document(
    code: int, document: Mapping[str, Any], expected: Mapping[str, Any], seen: str, ok: bool
) -> None:
    step = run(Done(code=code, said="said", document=document), "doctor", **expected)
    assert (step.seen, step.ok, step.code, step.expected_code) == (seen, ok, code, expected["code"])
    assert (step.said, step.doing) == ("said", Doing.COMMAND)


def test_a_command_is_pointed_at_the_scratch_registration_alone() -> None:
    prompter, heard = Prompter(Done(code=0, said="", document={})), Heard()
    Players(cast("Stage", prompter), heard).command("doctor", "--quiet", code=0)
    assert prompter.words == ("doctor", "--quiet", "--registration", ".claude.json")
    assert heard.told[0] == (Doing.COMMAND, "cpersona-cli doctor --quiet --registration .claude.json")


RIGHT = [{"messages": [{"content": memory}]} for _, memory in QUESTIONS]
NOTHING: Mapping[str, Any] = {"messages": []}
WRONG = {"messages": [{"content": "Another memory."}]}
TOLD = {"messages": [], "advisory": {"reason": "endpoint\x1b[2J unreachable"}}


@pytest.mark.parametrize(
    ("answers", "well", "broken", "seen"),
    [
        (RIGHT, True, False, "4 of 4 answered"),
        ([*RIGHT[:3], NOTHING], False, True, "3 of 4 answered, the server says nothing"),
        ([WRONG] * 4, False, True, "0 of 4 answered, the server says nothing"),
        ([NOTHING] * 4, False, True, "0 of 4 answered, the server says nothing"),
        ([TOLD, *RIGHT[1:]], False, False, "3 of 4 answered, the server warns"),
        ([{}] * 4, False, True, "0 of 4 answered, the server says nothing"),
    ],
)
def test_a_recall_is_judged_by_what_came_back(
    answers: Sequence[Mapping[str, Any]], well: bool, broken: bool, seen: str
) -> None:
    step = recall(answers, all_answered=True)
    assert (step.seen, step.ok, step.code) == (seen, well, None)
    assert recall(answers, all_answered=False).ok == broken


def test_what_was_recalled_is_shown_harmless() -> None:
    said = recall([RIGHT[0], WRONG, NOTHING, TOLD], all_answered=True).said.splitlines()
    assert said[0] == QUESTIONS[0][0]
    assert said[1] == f"  found   {QUESTIONS[0][1]}"
    assert said[3] == "  wrong   Another memory."
    assert said[5] == said[7] == "  nothing"
    assert said[8] == r"advisory: endpoint\x1b[2J unreachable"


def test_a_change_says_what_it_did_and_is_not_judged() -> None:
    players = Players(cast("Stage", Prompter(Done(code=0, said="", document={}))), Heard())
    players.change("silent", lambda: None)
    players.change("spoken", lambda: "done so")
    assert [(step.said, step.expected, step.ok) for step in players.steps] == [("", "", True), ("done so", "", True)]


def test_acts_are_played_in_order_and_judged_whole() -> None:
    def fine(players: Players) -> None:
        players.change("nothing", lambda: None)

    def wrong(players: Players) -> None:
        players.command("doctor", code=0)

    stage, heard = cast("Stage", Prompter(Done(code=1, said="", document={}))), Heard()
    played = play((Scene(title="one", play=fine), Scene(title="two", play=wrong)), stage, heard)
    assert [(act.title, act.ok) for act in played.acts] == [("one", True), ("two", False)]
    assert len(played.steps) == 2
    assert [told for told in heard.told if isinstance(told, tuple) and len(told) == 3] == [
        ("one", 1, 2),
        ("two", 2, 2),
    ]
