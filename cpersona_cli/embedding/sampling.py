"""Stored texts against an endpoint: which it cannot embed, and whether it is the model that made the stored vectors."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from cpersona_cli.embedding.calling import STARTING, Caller
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.meaning import cosine
from cpersona_cli.embedding.measured import Sampled, StoredText
from cpersona_cli.embedding.model import Outcome

#: Stored texts of one request.
BATCH = 16
#: Cosine from which two vectors of one text are of one model; batches, devices and quantisation keep closer than that.
AGREES = 0.99


async def sample(caller: Caller, rows: Sequence[StoredText], seconds: float) -> Sampled:
    """Send the texts of ``rows``; a failing request is halved until the text at fault stands alone.

    No new request is begun after ``seconds``, or once the endpoint is gone: what is left counts as unfinished.
    """
    end = caller.clock.now() + seconds
    waiting = [list(rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)]
    failed: list[tuple[str, Kind]] = []
    likeness: dict[str, float] = {}
    done = 0
    while waiting and caller.clock.now() < end:
        group = waiting.pop(0)
        outcome = await caller.embed([row.text for row in group])
        if outcome.kind in STARTING:
            waiting.insert(0, group)
            break
        if outcome.ok and outcome.kind is not Kind.ZERO_VECTOR:
            likeness.update(_likeness(group, outcome))
            done += len(group)
        elif len(group) == 1:
            failed.append((group[0].id, outcome.kind))
            done += 1
        else:
            middle = len(group) // 2
            waiting[:0] = [group[:middle], group[middle:]]
    order = {row.id: number for number, row in enumerate(rows)}
    failed.sort(key=lambda pair: order[pair[0]])
    return Sampled(
        tried=done,
        failed=tuple(failed),
        unfinished=len(rows) - done,
        compared=len(likeness),
        agreement=median(likeness.values()) if likeness else None,
        differing=tuple(identifier for identifier, cosine_ in likeness.items() if cosine_ < AGREES),
    )


def _likeness(group: Sequence[StoredText], outcome: Outcome) -> dict[str, float]:
    """The cosine of the stored and the new vector by id, where both are of one width."""
    pairs = zip(group, outcome.vectors, strict=True)
    return {row.id: cosine(row.vector, vector) for row, vector in pairs if len(row.vector) == len(vector)}
