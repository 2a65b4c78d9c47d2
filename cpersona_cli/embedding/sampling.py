"""Stored texts against an endpoint: which it cannot embed, and whether it is the model that made the stored vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from cpersona_cli.embedding.calling import STARTING, Caller
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.likeness import Likeness, Thresholds, likeness
from cpersona_cli.embedding.meaning import cosine
from cpersona_cli.embedding.measured import Sampled, StoredText

#: Stored texts of one request.
BATCH = 16


@dataclass(slots=True)
class Each:
    """What became of each text, by its position: the vector as it came, or why there is none.

    ``unfinished`` texts were not tried, because the time was over or the endpoint was gone: ``gone`` says how.
    """

    vectors: dict[int, Sequence[float]] = field(default_factory=dict)
    failed: dict[int, Kind] = field(default_factory=dict)
    unfinished: int = 0
    gone: Kind | None = None


async def embed_each(caller: Caller, texts: Sequence[str], seconds: float, *, batch: int = BATCH) -> Each:
    """Embed ``texts``, ``batch`` in a request; a failing request is halved until the text at fault stands alone.

    No new request is begun after ``seconds``, or once the endpoint is gone.
    """
    end = caller.clock.now() + seconds
    waiting = [range(start, min(start + batch, len(texts))) for start in range(0, len(texts), batch)]
    each = Each()
    while waiting and caller.clock.now() < end:
        group = waiting.pop(0)
        outcome = await caller.embed([texts[position] for position in group])
        if outcome.kind in STARTING:
            waiting.insert(0, group)
            each.gone = outcome.kind
            break
        if outcome.ok and outcome.kind is not Kind.ZERO_VECTOR:
            each.vectors.update(zip(group, outcome.vectors, strict=True))
        elif len(group) == 1:
            each.failed[group[0]] = outcome.kind
        else:
            middle = len(group) // 2
            waiting[:0] = [group[:middle], group[middle:]]
    each.unfinished = sum(map(len, waiting))
    return each


async def sample(
    caller: Caller, rows: Sequence[StoredText], seconds: float, lines: Thresholds | None = None
) -> Sampled:
    """Send the texts of ``rows`` as ``embed_each`` does, and compare with the stored vectors by ``lines``."""
    lines = lines or Thresholds()
    each = await embed_each(caller, [row.text for row in rows], seconds)
    cosines = {
        rows[position].id: cosine(rows[position].vector, vector)
        for position, vector in sorted(each.vectors.items())
        if len(rows[position].vector) == len(vector)
    }
    differing = {Likeness.NEAR, Likeness.OTHER}
    return Sampled(
        tried=len(rows) - each.unfinished,
        failed=tuple((rows[position].id, kind) for position, kind in sorted(each.failed.items())),
        unfinished=each.unfinished,
        compared=len(cosines),
        agreement=median(cosines.values()) if cosines else None,
        differing=tuple(identifier for identifier, value in cosines.items() if likeness(value, lines) in differing),
        thresholds=lines,
    )
