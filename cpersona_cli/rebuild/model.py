"""The vocabulary of a rebuild: what is chosen, what it will take, how far it is, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from cpersona_cli.record import field, record
from cpersona_cli.store.job import Target
from cpersona_cli.store.model import Kind


class Only(StrEnum):
    """Which rows get a new vector."""

    ALL = "all"
    MISSING = "missing"  # no vector
    MISMATCHED = "mismatched"  # another width than the target's, and those missing
    DAMAGED = "damaged"  # no vector a search could use: not readable, not finite, zero, or of a length of its own
    FOREIGN = "foreign"  # of another model, by label or by measurement


@record(kw_only=True)
class Counts:
    """Rows of the plan by what became of them; ``planned`` is always the sum of the others once a job ends.

    Rows that ``Only`` does not choose are no part of it, but for blank ones.
    """

    planned: int = 0
    done: int = 0
    failed: int = 0
    nothing: int = 0  # blank: there is nothing to embed
    unchanged: int = 0  # left as they are: too long, and not to be cut

    @property
    def add_up(self) -> bool:
        return self.planned == self.done + self.failed + self.nothing + self.unchanged


@record(kw_only=True)
class Pilot:
    """A few real requests, timed."""

    texts_per_second: float
    tokens_per_second: float = 0.0


@record(kw_only=True)
class Plan:
    """What a rebuild would do. Nothing was written when this was made.

    Sizes are bytes, times seconds; ``tokens`` is an estimate. ``wal_bytes`` are those of the log of the switch and of
    the growth of the database, ``undo_bytes`` those of the old vectors, which are kept. ``left_out`` are rows by
    reason. ``consent`` names the host that stored texts would be sent to, where that is not this computer.
    """

    target: Target
    only: Only
    rows: Mapping[Kind, int] = field(default_factory=dict)
    blank: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    distinct: int = 0
    characters: int = 0
    tokens: int = 0
    requests: int = 0
    seconds: float | None = None
    staging_bytes: int = 0
    undo_bytes: int = 0
    backup_bytes: int = 0
    wal_bytes: int = 0
    free_bytes: int | None = None
    old_dim: int | None = None
    old_labels: Mapping[str, int] = field(default_factory=dict)
    lock_seconds: float = 0.0
    holders: tuple[str, ...] = ()
    consent: str = ""
    pilot: Pilot | None = None
    refusals: tuple[str, ...] = ()  # why it cannot be done, each one sentence with what to do
    warnings: tuple[str, ...] = ()


@record(kw_only=True)
class Progress:
    """One look at running work, for people and for ``--progress json``. Seconds; rates over the last while.

    ``left`` is None until enough was seen. ``why`` says what slows it down, where something does.
    """

    phase: str
    done: int
    total: int
    failed: int = 0
    tokens: int = 0
    rate: float = 0.0
    in_flight: int = 0
    retries: int = 0
    left: float | None = None
    why: str = ""


Tell = Callable[[Progress], None]


@record(kw_only=True)
class Options:
    """How a run of the pipeline goes about it.

    ``total`` and ``tokens`` are what the plan expects, for progress only. ``batch`` (texts), ``batch_tokens`` (padded,
    estimated) and ``batch_bytes`` (of a request's body) are ceilings of one request; ``concurrency`` is that of
    requests at a time. ``max_errors`` distinct texts may fail (None: 100, or one percent of ``total`` where that is
    more). ``cut``: a text longer than the endpoint takes is shortened until it fits. ``patience`` are the seconds that
    may pass without any success. ``canary`` is ``Fetched.canary`` of an earlier run of the same job: where the
    endpoint gives another vector for the same text now, the run stops before anything is sent.
    """

    target: Target
    total: int = 0
    tokens: int = 0
    batch: int = 32
    batch_tokens: int = 16_384
    batch_bytes: int = 1_000_000
    concurrency: int = 16
    max_errors: int | None = None
    cut: bool = False
    patience: float = 600.0
    canary: bytes = b""

    @property
    def allowed(self) -> int:
        """Texts that may fail."""
        return max(100, self.total // 100) if self.max_errors is None else self.max_errors


@record(kw_only=True)
class Fetched:
    """How a run of the pipeline ended. ``reason`` is empty when it went through to the end of the rows.

    ``reason`` is else a kind of outcome, ``changed_mid_run`` or ``too_many_errors``, and ``detail`` a sentence for
    people. ``learned`` are limits of the endpoint found on the way (``batch``, ``tokens``, ``bytes``, ``concurrency``,
    and ``window``, the tokens of one text). ``cut`` rows were shortened; ``same`` rows share the vector of
    an equal text. ``canary`` is the vector of a fixed text, by which a later run tells whether the model is the same.
    """

    counts: Counts
    requests: int = 0
    retries: int = 0
    tokens: int = 0
    padded: int = 0
    seconds: float = 0.0
    learned: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    detail: str = ""
    interrupted: bool = False
    cut: int = 0
    same: int = 0
    canary: bytes = b""
