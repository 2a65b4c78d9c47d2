"""Stored rows beside fresh vectors of the same texts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cpersona_cli.embedding.calling import Caller
from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.embedding.likeness import Likeness, Thresholds, likeness
from cpersona_cli.embedding.meaning import ZERO, cosine
from cpersona_cli.embedding.sampling import Each, embed_each
from cpersona_cli.embedding.stored import FLOAT, length, unpack
from cpersona_cli.fit.model import Compared
from cpersona_cli.record import replace
from cpersona_cli.store.model import Row
from cpersona_cli.text import safe


def beside(row: Row, dim: int | None, why: str = "") -> Compared:
    """A row before its text is embedded again: of another width, not to be judged, or (``why`` empty) still to be."""
    size = length(row.vector)
    width = len(row.vector or b"") // FLOAT
    verdict = Likeness.UNJUDGED
    if dim is not None and width != dim:
        verdict, why = Likeness.WIDTH, ""
    elif size is None or not math.isfinite(size):
        why = "its stored vector holds what is no finite number" if width else "it has no vector"
    elif size < ZERO:
        why = "its stored vector is all zeros"
    return Compared(
        kind=row.kind,
        id=row.id,
        created=safe(row.created, 40),
        agent=row.agent,
        label=row.label,
        width=width,
        likeness=verdict,
        characters=len(row.text),
        why=why,
    )


async def compare(
    caller: Caller, rows: Sequence[Row], dim: int, lines: Thresholds, seconds: float
) -> tuple[list[Compared], int]:
    """Embed the texts of ``rows`` again, but for those that need no call, and hold them against what is stored.

    Returns the rows in their order and how many texts were sent. What could not be judged says why.
    """
    found = [beside(row, dim) for row in rows]
    places = [place for place, row in enumerate(found) if row.likeness is Likeness.UNJUDGED and not row.why]
    texts = dict.fromkeys(rows[place].text for place in places)  # equal texts once
    each = await embed_each(caller, list(texts), seconds, batch=_BATCH) if texts else Each()
    number = {text: position for position, text in enumerate(texts)}
    for place in places:
        position = number[rows[place].text]
        found[place] = _judged(found[place], rows[place], each, position, lines)
    return found, len(texts) - each.unfinished


def _judged(row: Compared, stored: Row, each: Each, position: int, lines: Thresholds) -> Compared:
    if position in each.failed:
        return replace(row, why=f"the endpoint does not embed its text: {MEANINGS[each.failed[position]].sentence}")
    fresh = each.vectors.get(position)
    if fresh is None:
        return replace(row, why=_stopped(each.gone))
    if len(fresh) != row.width:
        return replace(row, why=f"the endpoint gave {len(fresh)} dimensions for its text")
    value = cosine(unpack(stored.vector) or (), fresh)
    verdict = likeness(value, lines)
    why = "" if verdict is not Likeness.UNJUDGED else "the endpoint gives another vector each time"
    return replace(row, cosine=value, likeness=verdict, why=why)


def _stopped(gone: Kind | None) -> str:
    return "time was over before its text was sent" if gone is None else f"then {MEANINGS[gone].sentence}"


def longest_same(rows: Sequence[Compared], lines: Thresholds) -> int | None:
    """The length in characters up to which rows are the same and beyond which they are not, if that is what differs.

    A window that was moved cuts long texts elsewhere: their vectors still lie nearer to the old ones than to
    strangers', and every shorter text is unchanged. None where this does not explain all.
    """
    judged = [(row.characters, row.cosine, row.likeness) for row in rows if row.cosine is not None]
    same = [size for size, _, verdict in judged if verdict is Likeness.SAME]
    differing = [(size, value) for size, value, verdict in judged if verdict is not Likeness.SAME]
    if min(len(same), len(differing)) < _ENOUGH or max(same) >= min(size for size, _ in differing):
        return None
    floor = max(lines.strangers or 0.0, 0.0)
    part = floor + _PART * (1 - floor)
    return max(same) if min(value for _, value in differing) > part else None


#: Stored texts of one request: few, so that long ones on a slow computer still come in time.
_BATCH = 8
#: Rows of each kind without which lengths prove nothing, and the share of the way from strangers to identity above
#: which texts that begin alike stay.
_ENOUGH, _PART = 2, 0.25
