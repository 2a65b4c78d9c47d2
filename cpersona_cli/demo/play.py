"""One act after another: each step is done, timed, and what came of it compared with what was expected."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cpersona_cli.demo.memories import AGENT, QUESTIONS
from cpersona_cli.demo.model import Act, Audience, Doing, Played, Step
from cpersona_cli.demo.stage import REGISTRATION, Server, Stage
from cpersona_cli.record import record
from cpersona_cli.text import safe


@dataclass(slots=True)
class Players:
    """What the acts are written with."""

    stage: Stage
    audience: Audience
    steps: list[Step] = field(default_factory=list)

    def change(self, title: str, work: Callable[[], object]) -> None:
        """Do something to the stage; a text that ``work`` returns is what is said of it."""
        self.audience.begins(Doing.CHANGE, title)
        begun = time.monotonic()
        said = work()
        spent = time.monotonic() - begun
        self._ended(Step(doing=Doing.CHANGE, title=title, said=said if isinstance(said, str) else "", seconds=spent))

    def command(self, *words: str, code: int, status: str = "", trap: str = "") -> None:
        """Run a command, and expect its exit code, and in its document a ``status`` or a finding of ``trap``."""
        words = (*words, "--registration", REGISTRATION)
        title = f"cpersona-cli {' '.join(words)}"
        self.audience.begins(Doing.COMMAND, title)
        begun = time.monotonic()
        done = self.stage.run(words)
        spent = time.monotonic() - begun
        seen = _outcome(done.code, str(done.document.get("status", "no status")) if status else "")
        if trap:
            traps = [finding.get("trap") for finding in done.document.get("findings", [])]
            seen = _outcome(done.code, trap if trap in traps else f"no {trap}")
        expected = _outcome(code, status or trap)
        step = Step(
            doing=Doing.COMMAND, title=title, said=done.said, expected=expected, seen=seen,
            expected_code=code, code=done.code, ok=expected == seen, seconds=spent,
        )  # fmt: skip
        self._ended(step)

    def recall(self, server: Server, *, all_answered: bool) -> None:
        """Ask the server every question. Those that share no word with a memory are answered by meaning or not at all.

        Where not ``all_answered``, at least one is expected to fail, and the server to say nothing about it.
        """
        title = f"{len(QUESTIONS)} questions, each in other words than the memory that answers it"
        self.audience.begins(Doing.RECALL, title)
        begun = time.monotonic()
        answers = [
            (question, wanted, server.call("recall", agent_id=AGENT, query=question, limit=1))
            for question, wanted in QUESTIONS
        ]
        spent = time.monotonic() - begun
        right = sum(_best(answer) == wanted for _, wanted, answer in answers)
        advice = next((str(answer["advisory"]["reason"]) for *_, answer in answers if answer.get("advisory")), "")
        told = "the server warns" if advice else "the server says nothing"
        fine = right == len(QUESTIONS)
        of = f"of {len(QUESTIONS)} answered"
        step = Step(
            doing=Doing.RECALL,
            title=title,
            said="\n".join(_lines(answers, advice)),
            expected=f"{len(QUESTIONS)} {of}" if all_answered else f"not all {of}, the server says nothing",
            seen=f"{right} {of}" if fine else f"{right} {of}, {told}",
            ok=fine if all_answered else not fine and not advice,
            seconds=spent,
        )
        self._ended(step)

    def _ended(self, step: Step) -> None:
        self.steps.append(step)
        self.audience.ended(step)


def _outcome(code: int, word: str) -> str:
    return f"exit {code}, {word}" if word else f"exit {code}"


def _best(answer: Mapping[str, Any]) -> str:
    """The one memory that a recall brought; empty for none."""
    messages = answer.get("messages") or [{}]
    return str(messages[-1].get("content", ""))


def _lines(answers: Sequence[tuple[str, str, Mapping[str, Any]]], advice: str) -> list[str]:
    lines = []
    for question, wanted, answer in answers:
        found = _best(answer)
        mark = "found" if found == wanted else "wrong" if found else "nothing"
        lines += [safe(question, 200), f"  {mark}{'   ' + safe(found, 200) if found else ''}"]
    return [*lines, f"advisory: {safe(advice, 200)}"] if advice else lines


@record(kw_only=True)
class Scene:
    """An act to be played."""

    title: str
    play: Callable[[Players], None]


def play(scenes: Sequence[Scene], stage: Stage, audience: Audience) -> Played:
    """Play the scenes in their order. Raises ``DemoError``."""
    acts = []
    for number, scene in enumerate(scenes, 1):
        audience.act(scene.title, number, len(scenes))
        begun = time.monotonic()
        players = Players(stage, audience)
        scene.play(players)
        acts.append(Act(title=scene.title, steps=tuple(players.steps), seconds=time.monotonic() - begun))
    return Played(acts=tuple(acts), home=str(stage.home))
