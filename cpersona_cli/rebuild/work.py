"""What one run of a rebuild is given, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.rebuild.judgement import Judgement
from cpersona_cli.rebuild.model import Counts, Fetched, Plan
from cpersona_cli.rebuild.select import Selector
from cpersona_cli.rebuild.target import Identified
from cpersona_cli.rebuild.verify import Verified
from cpersona_cli.record import field, record
from cpersona_cli.store.job import JobState, Refused
from cpersona_cli.store.model import Store
from cpersona_cli.store.writing.settling import CutOver


class Why(StrEnum):
    """Why a run ended before the cut-over; besides these, any kind of embedding outcome."""

    INTERRUPTED = "interrupted"
    NOT_VERIFIED = "not_verified"
    DECLINED = "declined"
    IN_USE = "in_use"
    RESTLESS = "restless"  # rows kept coming
    TOO_MANY_ERRORS = "too_many_errors"
    CHANGED = "changed_mid_run"  # the endpoint became another model's
    NOT_HELD = "not_held"  # the database does not hold what was written to it


@record(kw_only=True)
class Work:
    """All that one run needs. ``plan.target`` is what makes the vectors; ``select`` decides over rows.

    ``old`` is the endpoint that made the present vectors, where it is known and may still answer. ``live``: the
    switch happens also while a server has the database open. ``sample`` rows are what the search is judged by.
    ``tokens``: the endpoint counts tokens, so that the server can rebuild its nodes.
    """

    database: Path
    store: Store
    endpoint: Endpoint
    identified: Identified
    plan: Plan
    select: Selector
    cut_texts: bool = False
    concurrency: int = 16
    batch: int = 32
    batch_tokens: int = 16_384
    max_errors: int | None = None
    old: Endpoint | None = None
    live: bool = False
    sample: int = 200
    tokens: bool = False


@record(kw_only=True)
class Effort:
    """What all requests of a run came to."""

    requests: int = 0
    retries: int = 0
    tokens: int = 0
    padded: int = 0
    seconds: float = 0.0
    cut: int = 0
    same: int = 0
    learned: Mapping[str, int] = field(default_factory=dict)

    def and_(self, fetched: Fetched) -> Effort:
        """With one pass more."""
        return Effort(
            requests=self.requests + fetched.requests,
            retries=self.retries + fetched.retries,
            tokens=self.tokens + fetched.tokens,
            padded=self.padded + fetched.padded,
            seconds=self.seconds + fetched.seconds,
            cut=self.cut + fetched.cut,
            same=self.same + fetched.same,
            learned={**self.learned, **fetched.learned},
        )


@record(kw_only=True)
class Ended:
    """How a run ended. ``reason`` is empty where the database holds the new vectors, ``detail`` the sentence to it.

    ``left`` are rows that another run has to do, ``before`` rows that earlier runs had done. ``failed`` are rows
    without a new vector, the first of them. ``held`` are rows that hold their new vector in the database, as read from
    there afterwards; ``missed`` those that were stored or changed while it was switched.
    """

    state: JobState
    counts: Counts
    left: int = 0
    before: int = 0
    failed: tuple[Refused, ...] = ()
    effort: Effort = field(default_factory=Effort)
    verified: Verified | None = None
    judgement: Judgement | None = None
    cut: CutOver | None = None
    held: int = 0
    missed: int = 0
    backup: Path | None = None
    reason: str = ""
    detail: str = ""
    notes: tuple[str, ...] = ()

    @property
    def switched(self) -> bool:
        return self.cut is not None

    @property
    def complete(self) -> bool:
        """Whether the database says that all of it was done."""
        counts = self.counts
        return not self.reason and self.held == counts.done and counts.add_up and not counts.failed and not self.missed
