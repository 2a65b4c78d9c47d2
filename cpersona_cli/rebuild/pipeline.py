"""From rows to vectors: read, batched, sent, checked, and handed over batch by batch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from cpersona_cli.embedding.calling import Factory, connect
from cpersona_cli.embedding.measured import Clock
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.rebuild.model import Fetched, Tell
from cpersona_cli.record import record
from cpersona_cli.store.job import Refused, Staged, Target
from cpersona_cli.store.model import Kind, Row


class Sink(Protocol):
    """Where vectors go. Called from the one thread that runs ``fetch``; each may raise ``StoreError``."""

    def known(self, digest: bytes) -> bytes | None:
        """The vector of a text that was staged already, whoever's text it is."""

    def add(self, staged: Sequence[Staged], refused: Sequence[Refused] = ()) -> None:
        """Keep these for good, in one commit. What is known of the same rows is replaced."""

    def discard(self, rows: Sequence[tuple[Kind, int]]) -> None:
        """Forget the vectors of these rows, in one commit: they may be another model's."""


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


async def fetch(
    rows: Iterable[Row],
    sink: Sink,
    endpoint: Endpoint,
    options: Options,
    *,
    tell: Tell | None = None,
    stop: asyncio.Event | None = None,
    factory: Factory = connect,
    clock: Clock | None = None,
) -> Fetched:
    """Embed the texts of ``rows`` and put the vectors into ``sink``."""
    raise NotImplementedError
