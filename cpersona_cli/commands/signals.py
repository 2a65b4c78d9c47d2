"""Ctrl-C and SIGTERM during long work: once to stop at the next good moment, twice to stop at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from types import FrameType

from cpersona_cli.commands.process import TerminatedError
from cpersona_cli.rebuild.stop import Stop
from cpersona_cli.report.exits import Exit

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class Patience:
    """What the user asked for so far. ``code`` is the exit code of a run that was stopped."""

    stop: Stop = field(default_factory=Stop)
    code: Exit = Exit.INTERRUPTED
    _heard: Iterator[int] = field(default_factory=count)

    def hear(self, number: int, tell: Callable[[], object]) -> None:
        """A signal came. The other one may come at any line of this, and is heard from beginning to end there."""
        if number == signal.SIGTERM:
            self.code = Exit.TERMINATED
        if next(self._heard):
            raise TerminatedError if self.code is Exit.TERMINATED else KeyboardInterrupt
        self.stop.ask()
        tell()


@contextmanager
def patient(tell: Callable[[], object]) -> Iterator[Patience]:
    """Hear signals in this way for the time of the block; ``tell`` is called at the first one."""
    patience = Patience()

    def hear(number: int, _frame: FrameType | None) -> None:
        patience.hear(number, tell)

    before = {}
    with suppress(ValueError):  # not the main thread
        before = {number: signal.signal(number, hear) for number in _SIGNALS}
    try:
        yield patience
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no signal break off the block: for tidying away, which takes no longer than a moment."""
    before = {}
    with suppress(ValueError):  # not the main thread
        before = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
