"""A few real requests, timed, so that a plan can say how long a rebuild takes."""

from __future__ import annotations

from collections.abc import Sequence

from cpersona_cli.embedding.calling import Caller, Factory, connect
from cpersona_cli.embedding.loop import run
from cpersona_cli.embedding.measured import Clock
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.embedding.texts import nonce, passage
from cpersona_cli.rebuild.batches import estimate_tokens
from cpersona_cli.rebuild.model import Pilot

#: Texts of one request, as the rebuild sends them.
_BATCH = 32
#: Words of the made-up texts of each request: short notes, usual memories, long ones.
_WORDS = (10, 40, 120)
#: Seconds after which no further request is begun.
_ENOUGH = 10.0


def timed(endpoint: Endpoint, *, batch: int = _BATCH) -> Pilot | None:
    """``pilot`` in an event loop of its own."""
    return run(pilot(endpoint, batch=batch))


async def pilot(
    endpoint: Endpoint,
    *,
    batch: int = _BATCH,
    texts: Sequence[Sequence[str]] = (),
    factory: Factory = connect,
    clock: Clock | None = None,
) -> Pilot | None:
    """Time one request for each of ``texts``, or made-up texts of three lengths; None where none was answered.

    Stored texts may only be given once the user agreed to send them. Never raises but for cancellation.
    """
    clock, word = clock or Clock(), nonce()
    groups = texts or [[passage(f"{word}{number}", words) for number in range(batch)] for words in _WORDS]
    start, seconds, sent, tokens = clock.now(), 0.0, 0, 0
    async with Caller(endpoint=endpoint, factory=factory, clock=clock) as caller:
        for group in groups:
            outcome = await caller.embed(group)
            if not outcome.ok:
                break
            seconds += outcome.elapsed
            sent += len(group)
            tokens += sum(map(estimate_tokens, group))
            if clock.now() - start > _ENOUGH:
                break
    if not sent:
        return None
    seconds = max(seconds, 1e-6)
    return Pilot(texts_per_second=sent / seconds, tokens_per_second=tokens / seconds)
