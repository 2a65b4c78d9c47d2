"""What the demo does and what comes of it, as values."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from cpersona_cli.record import record


class DemoError(Exception):
    """The stage could not be set, or fell down: the sentence for the user."""


class Doing(StrEnum):
    """What a step is."""

    CHANGE = "change"  # the demo itself stores, breaks or puts right something
    COMMAND = "command"  # a command of this tool, run as a person would
    RECALL = "recall"  # the real server is asked what it remembers


@record(kw_only=True)
class Step:
    """One thing done. ``said`` is what it printed, or what was found; ``seconds`` are of wall time.

    ``title`` is a sentence, of a command its command line. ``expected`` and ``seen`` are an exit code and a word out of
    the command's own JSON document (``exit 1, changed``), or how many questions were answered; a change has none.
    ``code`` and ``expected_code`` are exit codes.
    """

    doing: Doing
    title: str
    said: str = ""
    expected: str = ""
    seen: str = ""
    expected_code: int | None = None
    code: int | None = None
    ok: bool = True
    seconds: float = 0.0


@record(kw_only=True)
class Act:
    """Steps that belong together: something is broken, found and mended. ``seconds`` also hold what servers take."""

    title: str
    steps: tuple[Step, ...] = ()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return all(step.ok for step in self.steps)


@record(kw_only=True)
class Played:
    """The whole run; ``home`` is the scratch home."""

    acts: tuple[Act, ...]
    home: str

    @property
    def steps(self) -> Sequence[Step]:
        return [step for act in self.acts for step in act.steps]


class Audience(Protocol):
    """Who hears of it while it happens."""

    def act(self, title: str, number: int, of: int) -> None:
        """An act begins."""

    def begins(self, doing: Doing, title: str) -> None:
        """A step begins."""

    def ended(self, step: Step) -> None:
        """A step is done."""
