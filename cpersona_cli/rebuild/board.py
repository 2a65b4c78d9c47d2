"""What is shown of running work: at most five looks a second, with a rate and a time left that can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

from cpersona_cli.rebuild.model import Progress, Tell
from cpersona_cli.rebuild.pace import Meter

PHASE = "embed"
#: Seconds between two looks.
_PERIOD = 0.2
#: Batches, or share of the rows, after which the time left is told.
_ENOUGH, _SHARE = 3, 0.01


@dataclass(slots=True, kw_only=True)
class Board:
    """Collects what ``tell`` is told. ``total`` rows and ``expected`` tokens are the plan's, 0 where it has none."""

    tell: Tell | None
    rows: Meter
    tokens: Meter
    total: int = 0
    expected: int = 0
    batches: int = 0
    sent: int = 0
    why: str = ""
    _told: float = float("-inf")

    def batch(self, rows: int, tokens: int, now: float) -> None:
        """A batch of so many rows and tokens is done."""
        self.batches += 1
        self.sent += tokens
        self.rows.add(rows, now)
        self.tokens.add(tokens, now)

    def show(self, now: float, *, settled: int, failed: int, in_flight: int, retries: int, force: bool = False) -> None:
        if self.tell is None or (not force and now - self._told < _PERIOD):
            return
        self._told = now
        self.tell(
            Progress(
                phase=PHASE,
                done=settled,
                total=max(self.total, settled),
                failed=failed,
                tokens=self.sent,
                rate=self.rows.rate,
                in_flight=in_flight,
                retries=retries,
                left=self.left(settled),
                why=self.why,
            )
        )

    def left(self, settled: int) -> float | None:
        """Seconds to go: by tokens where their sum is known, because long rows take longer; else by rows."""
        if not self.total or (self.batches < _ENOUGH and settled < self.total * _SHARE):
            return None
        if settled >= self.total:
            return 0.0
        if self.expected > self.sent and self.tokens.rate > 0:
            return (self.expected - self.sent) / self.tokens.rate
        return (self.total - settled) / self.rows.rate if self.rows.rate > 0 else None
