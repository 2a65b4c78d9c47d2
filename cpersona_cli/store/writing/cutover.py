"""The cut-over: the one transaction in which staged vectors take the place of the old ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from cpersona_cli.record import field, record
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing.staging import Staging

Step = Callable[[str, int, int], None]


@record(kw_only=True)
class CutOver:
    """What a cut-over did, counted by the database itself.

    ``written`` are rows that got their new vector, by kind. ``emptied`` are rows left without a vector, because they
    have no new one and the old one is of another model (kept in the undo file); ``kept`` rows without a new one whose
    old one is good. ``changed`` are rows whose text changed since they were staged (counted in ``emptied`` or
    ``kept``, too), ``gone`` staged rows that are no more. ``locked_seconds`` is how long nobody else could write.
    """

    written: Mapping[Kind, int] = field(default_factory=dict)
    emptied: int = 0
    kept: int = 0
    changed: int = 0
    gone: int = 0
    blocks: int = 0
    nodes: int = 0
    seconds: float = 0.0
    locked_seconds: float = 0.0
    wal_bytes: int = 0
    indexes: tuple[str, ...] = ()  # names of index files removed
    calibration: str = ""  # "rewritten", "absent", "kept", or why it was left
    recovered: bool = False  # it had happened before this run, which only finished what follows it

    @property
    def rows(self) -> int:
        return sum(self.written.values())


def cut_over(
    database: Path,
    staging: Staging,
    *,
    same_model: bool = False,
    tokens: bool = False,
    wait: float = 30.0,
    tell: Step | None = None,
) -> CutOver:
    """Put the staged vectors in the place of the old ones, all at once; then bring everything derived into order."""
    raise NotImplementedError


def predict_lock(rows: int, dim: int, blocks: int = 0) -> float:
    """Seconds for which a cut-over of ``rows`` vectors keeps others from writing, on a usual disk."""
    return rows * (2.0e-5 + dim * 7.0e-8) + blocks * 4.0e-6
