"""What may be chosen for a run of the pipeline."""

from __future__ import annotations

from cpersona_cli.record import record
from cpersona_cli.store.job import Target


@record(kw_only=True)
class Options:
    """How a run goes about it.

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
