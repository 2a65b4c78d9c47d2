"""A few real requests, timed, so that a plan can say how long a rebuild takes."""

from __future__ import annotations

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


def timed(endpoint: Endpoint) -> Pilot | None:
    """``pilot`` in an event loop of its own."""
    return run(pilot(endpoint))


async def pilot(endpoint: Endpoint, *, factory: Factory = connect, clock: Clock | None = None) -> Pilot | None:
    """Time requests of made-up texts of three lengths; None where none was answered.

    Never raises but for cancellation.
    """
    clock, word = clock or Clock(), nonce()
    start, seconds, sent, tokens = clock.now(), 0.0, 0, 0
    async with Caller(endpoint=endpoint, factory=factory, clock=clock) as caller:
        for words in _WORDS:
            group = [passage(f"{word}{number}", words) for number in range(_BATCH)]
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
