"""Stored texts against an endpoint: which of them it cannot embed, each found by name."""

from __future__ import annotations

from collections.abc import Sequence

from cpersona_cli.embedding.calling import STARTING, Caller
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Sampled

#: Stored texts of one request.
BATCH = 16

Row = tuple[str, str]


async def sample(caller: Caller, rows: Sequence[Row], seconds: float) -> Sampled:
    """Send the texts of ``rows`` (id, text); a failing request is halved until the text at fault stands alone.

    No new request is begun after ``seconds``, or once the endpoint is gone: what is left counts as unfinished.
    """
    end = caller.clock.now() + seconds
    waiting = [list(rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)]
    failed: list[tuple[str, Kind]] = []
    done = 0
    while waiting and caller.clock.now() < end:
        group = waiting.pop(0)
        outcome = await caller.embed([text for _, text in group])
        if outcome.kind in STARTING:
            waiting.insert(0, group)
            break
        if outcome.ok and outcome.kind is not Kind.ZERO_VECTOR:
            done += len(group)
        elif len(group) == 1:
            failed.append((group[0][0], outcome.kind))
            done += 1
        else:
            middle = len(group) // 2
            waiting[:0] = [group[:middle], group[middle:]]
    order = {identifier: number for number, (identifier, _) in enumerate(rows)}
    failed.sort(key=lambda pair: order[pair[0]])
    return Sampled(tried=done, failed=tuple(failed), unfinished=len(rows) - done)
