"""From rows to vectors: read, batched, sent, checked, and handed over batch by batch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from cpersona_cli.embedding.calling import Factory, connect
from cpersona_cli.embedding.measured import Clock
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.rebuild.ledger import Sink
from cpersona_cli.rebuild.model import Fetched, Options, Tell
from cpersona_cli.rebuild.run import Run
from cpersona_cli.store.model import Row


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
    """Embed the texts of ``rows`` and put the vectors into ``sink``, until all are settled or it cannot go on.

    Never raises for what the endpoint does: ``Fetched.reason`` tells. Raises ``StoreError`` as ``rows`` and ``sink``
    do; what was added before stays. ``stop`` ends it in order: running requests get five seconds, and what they bring
    is kept. Cancellation ends it at once. ``tell`` is called at most five times a second.
    """
    async with factory(endpoint, None) as client:
        run = Run(rows, sink, client, options, tell=tell, stop=stop or asyncio.Event(), clock=clock or Clock())
        try:
            await run.go()
        finally:
            await run.close()
        return run.fetched()
