"""The demo as it is played, for people, and what came of it, for everybody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cpersona_cli.demo.model import Act, Doing, Played, Step
from cpersona_cli.rebuild.model import Progress
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.figures import Table
from cpersona_cli.report.layout import Style, wrap
from cpersona_cli.report.model import Report, Section
from cpersona_cli.report.progress import Teller
from cpersona_cli.text import plural, tilde

#: Columns by which what a command prints stands to the right.
INDENT = 4


@dataclass(slots=True)
class Transcript:
    """Writes down what happens, as it happens. What commands print stands there as they print it, moved to the right.

    ``write`` takes text of whole lines.
    """

    style: Style
    write: Callable[[str], None]

    def act(self, title: str, number: int, of: int) -> None:
        """An act begins."""
        self.write("\n" + self.style.paint(f"{number} of {of}   {title}", "bold") + "\n")

    def begins(self, doing: Doing, title: str) -> None:
        """A step begins."""
        if doing is Doing.COMMAND:
            self.write("\n  " + self.style.paint(f"$ {title}", "blue") + "\n")
            return
        first, *more = wrap(title, self.style.width - INDENT)
        self.write("\n".join([f"\n  - {first}", *(" " * INDENT + line for line in more)]) + "\n")

    def ended(self, step: Step) -> None:
        """A step is done."""
        lines = [f"{' ' * INDENT}{line}".rstrip() for line in step.said.splitlines()]
        if step.expected:
            end = f"{step.seen}, as expected" if step.ok else f"{step.seen}; EXPECTED {step.expected}"
            lines.append(self.style.paint(f"  = {end}", "green" if step.ok else "red"))
        self.write("".join(f"{line}\n" for line in lines))


@dataclass(slots=True)
class Aside:
    """Tells on stderr how far it is, where stdout is for the result alone."""

    teller: Teller

    def act(self, title: str, number: int, of: int) -> None:
        """An act begins."""
        self.teller.tell(Progress(phase=f"act {number} of {of}: {title}", done=0, total=0))

    def begins(self, doing: Doing, title: str) -> None:
        """A step begins."""

    def ended(self, step: Step) -> None:
        """A step is done."""


def report(played: Played, *, kept: bool, home: str) -> Report:
    """What came of it. ``home`` is the user's own, shown as ``~``."""
    judged = [step for step in played.steps if step.expected]
    wrong = [step for step in judged if not step.ok]
    done = f"{plural(len(played.acts), 'act')}, {plural(len(judged), 'step')}"
    summary = f"{done}, {len(wrong)} not as expected" if wrong else f"{done}, each as expected"
    return Report(
        command="demo",
        headline="a scratch home, a real server, a real model",
        sections=list(_sections(played)),
        notes=tuple(_notes(played, kept=kept, home=home)),
        payload=_payload(played, kept=kept),
        measured=len(judged),
        summary=summary,
        error_code=Exit.NEGATIVE if wrong else Exit.OK,
        next_command="cpersona-cli demo --keep" if wrong and not kept else "cpersona-cli doctor",
        home=home,
    )


def _sections(played: Played) -> Iterator[Section]:
    rows = [
        (f"{number}  {act.title}", _came_of(act), f"{act.seconds:.1f} s") for number, act in enumerate(played.acts, 1)
    ]
    yield Section(title="acts", rows=rows, verbosity=0)
    steps = [
        (str(number), step.title, step.expected, step.seen)
        for number, act in enumerate(played.acts, 1)
        for step in act.steps
        if step.expected
    ]
    wrong = [step for step in played.steps if not step.ok]
    if wrong:
        failed = [(step.title, f"{step.seen}; expected {step.expected}", "") for step in wrong]
        yield Section(title="not as expected", rows=failed, verbosity=0)
    table = Table(header=("act", "step", "expected", "seen"), rows=steps, elastic=1)
    yield Section(title="steps", rows=(), figures=(table,), verbosity=1)


def _came_of(act: Act) -> str:
    wrong = sum(not step.ok for step in act.steps)
    return f"{wrong} not as expected" if wrong else "as expected"


def _notes(played: Played, *, kept: bool, home: str) -> Iterator[str]:
    if kept:
        yield f"the scratch home is kept: {tilde(played.home, home)}; its embedding model ended with the demo"


def _payload(played: Played, *, kept: bool) -> Mapping[str, object]:
    return {
        "acts": [
            {"title": act.title, "ok": act.ok, "seconds": round(act.seconds, 3), "steps": _steps(act.steps)}
            for act in played.acts
        ],
        "kept": played.home if kept else None,
    }


def _steps(steps: Sequence[Step]) -> Sequence[Mapping[str, object]]:
    return [
        {
            "kind": step.doing,
            "title": step.title,
            "command": step.title if step.doing is Doing.COMMAND else None,
            "expected_exit_code": step.expected_code,
            "exit_code": step.code,
            "expected": step.expected or None,
            "seen": step.seen or None,
            "ok": step.ok,
            "seconds": round(step.seconds, 3),
            "output": step.said,
        }
        for step in steps
    ]
