"""How fast it goes, how long to wait, and how long it will take: figures over time. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

#: Seconds after which an observation counts half.
_HALF = 10.0
#: Pauses in seconds, doubled from the first to the longest, each shortened by chance so that clients do not march.
_FIRST, _LONGEST = 0.5, 20.0


@dataclass(slots=True)
class Meter:
    """A rate per second over the last while."""

    last: float
    amount: float = 0.0
    time: float = 0.0

    def add(self, amount: float, now: float) -> None:
        passed = max(0.0, now - self.last)
        fade = 0.5 ** (passed / _HALF)
        self.amount, self.time, self.last = self.amount * fade + amount, self.time * fade + passed, now

    @property
    def rate(self) -> float:
        return self.amount / self.time if self.time > 0 else 0.0


def _luck() -> float:
    return random.random()  # noqa: S311 - not a secret


@dataclass(slots=True)
class Patience:
    """Waiting for an endpoint, within a budget of seconds without any success.

    Failures of requests that were sent before the present pause began are part of the same incident.
    """

    budget: float
    since: float
    luck: Callable[[], float] = field(default=_luck)
    until: float = 0.0
    _begun: float = 0.0
    _failures: int = 0

    def succeeded(self, now: float, sent: float) -> None:
        """A request sent at ``sent`` went through; one from before the present pause does not end it."""
        self.since = now
        if sent >= self._begun:
            self._failures = 0

    def progressed(self, now: float) -> None:
        """Something was settled, though it was no success."""
        self.since = now

    def spent(self, now: float) -> bool:
        return now - self.since >= self.budget

    def failed(self, now: float, sent: float, told: float | None) -> bool:
        """A request sent at ``sent`` failed; ``told`` are the seconds the server asks for. Whether it is news."""
        news = sent >= self._begun or not self._failures
        if news:
            self._failures += 1
            self._begun = now
        rest = max(0.0, self.since + self.budget - now)
        if told is not None:
            pause = told
        elif news:
            pause = min(_LONGEST, _FIRST * 2 ** (self._failures - 1)) * (0.5 + self.luck() / 2)
        else:
            return False
        self.until = max(self.until, now + min(pause, rest))
        return news
