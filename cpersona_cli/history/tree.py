"""The one way through a conversation that was edited: what was shown last, from its end back to its beginning."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping

from cpersona_cli.record import record

CIRCLE = "its messages answer each other in a circle; each of them was read once"
GAP = "the message before the first one read is missing from the file"


@record(kw_only=True)
class Way:
    """``ids`` from the first message to the last; ``branches`` is how many ends were not taken."""

    ids: tuple[str, ...]
    branches: int
    remarks: tuple[str, ...] = ()


def way(parents: Mapping[str, str | None], end: str, roots: Collection[str] = ()) -> Way:
    """The way that ends with ``end``; ``parents`` holds for each message the one it answers, None for a first one.

    ``roots`` are parents that no export holds. A circle or a parent that is missing ends the way with a remark.
    """
    found: dict[str, None] = {}
    remarks: tuple[str, ...] = ()
    here: str | None = end
    while here is not None and here not in roots:
        if here in found:
            remarks = (CIRCLE,)
            break
        if here not in parents:
            remarks = (GAP,)
            break
        found[here] = None
        here = parents[here]
    branches = sum(1 for name in _ends(parents) if name not in found)
    return Way(ids=tuple(reversed(found)), branches=branches, remarks=remarks)


def latest(parents: Mapping[str, str | None], times: Mapping[str, dt.datetime | None]) -> str | None:
    """The end to take where the file names none: the one said last, of several (or without times) the last in order.

    None without any message.
    """
    ends = _ends(parents) or list(parents)
    order = {name: place for place, name in enumerate(ends)}
    never = dt.datetime.min.replace(tzinfo=dt.UTC)
    return max(ends, key=lambda name: (times.get(name) or never, order[name]), default=None)


def _ends(parents: Mapping[str, str | None]) -> list[str]:
    answered = set(parents.values())
    return [name for name in parents if name not in answered]
