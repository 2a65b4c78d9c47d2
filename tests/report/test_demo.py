"""How a demo is shown while it plays, and what is reported of it."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from support.documents import document

from cpersona_cli.demo.model import Act, Doing, Played, Step
from cpersona_cli.report import json as document_of
from cpersona_cli.report.demo import Aside, Transcript, report
from cpersona_cli.report.layout import Style
from cpersona_cli.report.output import FORMATS
from cpersona_cli.report.progress import Form, Teller

GOLDEN = Path(__file__).parent / "golden" / "demo"
HOME = "/home/you"

CHANGE = Step(doing=Doing.CHANGE, title="the embedding server ends, as after a crash or a reboot", seconds=0.25)
WELL = Step(
    doing=Doing.COMMAND, title="cpersona-cli doctor --registration .claude.json",
    said="FAULT    endpoint.refused\n\n\x1b[1;31mFAIL\x1b[0m   1 fault\n", expected="exit 1, endpoint.refused",
    seen="exit 1, endpoint.refused", expected_code=1, code=1, seconds=0.5,
)  # fmt: skip
WRONG = Step(
    doing=Doing.COMMAND, title="cpersona-cli dimension --quiet --registration .claude.json", said="PASS   ok\n",
    expected="exit 1, changed", seen="exit 0, ok", expected_code=1, code=0, ok=False, seconds=0.5,
)  # fmt: skip
RECALL = Step(
    doing=Doing.RECALL, title="4 questions, each in other words than the memory that answers it",
    said="Which display is damaged?\n  nothing", expected="not all of 4 answered, the server says nothing",
    seen="0 of 4 answered, the server says nothing", seconds=0.125,
)  # fmt: skip

FINE = Played(
    acts=(
        Act(title="All is well", steps=(CHANGE, WELL), seconds=2.0),
        Act(title="Broken", steps=(RECALL,), seconds=1.5),
    ),
    home=f"{HOME}/tmp/cpersona-demo-1",
)
BAD = Played(
    acts=(Act(title="All is well", steps=(CHANGE, WELL, WRONG), seconds=2.0),),
    home=f"{HOME}/tmp/cpersona-demo-1",
)


def transcript(played: Played, style: Style) -> str:
    """What stands on stdout in the end: all that happened, then the report."""
    lines: list[str] = []
    audience = Transcript(style, lines.append)
    for number, act in enumerate(played.acts, 1):
        audience.act(act.title, number, len(played.acts))
        for step in act.steps:
            audience.begins(step.doing, step.title)
            audience.ended(step)
    return "".join(lines) + "\n" + FORMATS["text"](report(played, kept=played is BAD, home=HOME), style)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(("name", "played"), [("fine", FINE), ("bad", BAD)])
def test_golden(name: str, played: Played, width: int) -> None:
    file = GOLDEN / f"{name}-{width}.txt"
    said = transcript(played, Style(width=width, verbose=int(width == 120)))
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(said, encoding="utf-8")
    assert said == file.read_text(encoding="utf-8")


def test_colours_say_what_came_of_a_step() -> None:
    said = transcript(BAD, Style(color=True))
    assert "\x1b[1;32m  = exit 1, endpoint.refused, as expected\x1b[0m" in said
    assert "\x1b[1;31m  = exit 0, ok; EXPECTED exit 1, changed\x1b[0m" in said
    assert "\n    \x1b[1;31mFAIL\x1b[0m   1 fault\n" in said, "what a command prints stays as it printed it"


@pytest.mark.parametrize(("played", "code", "verdict"), [(FINE, 0, "pass"), (BAD, 1, "fail")])
def test_the_verdict_passes_only_if_every_step_ended_as_expected(played: Played, code: int, verdict: str) -> None:
    found = document(document_of.render(report(played, kept=False, home=HOME), Style()))
    assert (found["exit_code"], found["verdict"]) == (code, verdict)
    assert [act["ok"] for act in found["acts"]] == [act.ok for act in played.acts]
    assert found["checks_run"] == 2


def test_the_document_holds_every_step() -> None:
    found = document(document_of.render(report(BAD, kept=True, home=HOME), Style()))
    assert found["kept"] == BAD.home
    (act,) = found["acts"]
    assert (act["title"], act["seconds"]) == ("All is well", 2.0)
    assert act["steps"][0] == {
        "kind": "change", "title": CHANGE.title, "command": None, "expected_exit_code": None, "exit_code": None,
        "expected": None, "seen": None, "ok": True, "seconds": 0.25, "output": "",
    }  # fmt: skip
    assert act["steps"][2] == {
        "kind": "command", "title": WRONG.title, "command": WRONG.title, "expected_exit_code": 1, "exit_code": 0,
        "expected": "exit 1, changed", "seen": "exit 0, ok", "ok": False, "seconds": 0.5, "output": "PASS   ok\n",
    }  # fmt: skip
    assert document(document_of.render(report(FINE, kept=False, home=HOME), Style()))["kept"] is None


@pytest.mark.parametrize("form", sorted(set(FORMATS) - {"text", "json"}))
def test_every_form_can_tell_it(form: str) -> None:
    assert FORMATS[form](report(BAD, kept=False, home=HOME), Style())


def test_where_stdout_is_for_the_result_stderr_tells_each_act() -> None:
    stream = io.StringIO()
    audience = Aside(Teller(form=Form.JSON, stream=stream, terminal=False))
    for number, act in enumerate(FINE.acts, 1):
        audience.act(act.title, number, len(FINE.acts))
        for step in act.steps:
            audience.begins(step.doing, step.title)
            audience.ended(step)
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["phase"] for event in events] == ["act 1 of 2: All is well", "act 2 of 2: Broken"]
