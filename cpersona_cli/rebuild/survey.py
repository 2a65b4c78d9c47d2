"""One pass over the rows of a store: how many there are of which sort, and how much text would be sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cpersona_cli.rebuild.batches import estimate_tokens
from cpersona_cli.rebuild.select import BLANK, Selector
from cpersona_cli.store.job import digest
from cpersona_cli.store.model import Kind, Store

T = TypeVar("T")

#: Different texts that are counted exactly; beyond, their number is estimated to about 1 %.
EXACT = 1 << 15
_WHOLE = 1 << 64
_STEP = 1000

#: ``tell(done)``: rows looked at so far.
Tell = Callable[[int], None]


class Distinct(Generic[T]):
    """How many different texts were seen, and something about each that is ``kept``, in constant memory.

    Up to ``exact`` texts are known by a part of their hash. With more, only those in the lower half of all hashes are
    kept, then those in the lower quarter, and so on: an even sample. The number kept, times the share left out, is the
    estimate (adaptive sampling, Wegman 1984).
    """

    def __init__(self, exact: int = EXACT) -> None:
        self._exact = exact
        self.kept: dict[int, T] = {}
        self._bound = _WHOLE
        self.shares = 1

    def add(self, text: bytes, about: T) -> bool:
        """Note the digest of a text; whether it is surely new, which is only told while counting is exact."""
        key = int.from_bytes(text[:8], "big")
        if key >= self._bound or key in self.kept:
            return False
        self.kept[key] = about
        while len(self.kept) > self._exact:
            self._bound //= 2
            self.shares *= 2
            self.kept = {one: about for one, about in self.kept.items() if one < self._bound}
        return self.shares == 1

    @property
    def count(self) -> int:
        return len(self.kept) * self.shares


@dataclass(slots=True)
class Survey:
    """What one pass found. Characters and tokens (estimated) are those of each different text once.

    ``rows`` are chosen ones by kind, ``left_out`` others by reason, ``blank`` ones with nothing to embed. ``long`` are
    chosen rows of more tokens than the window, ``longest`` the most tokens of one. ``vectors`` counts bytes of vectors
    that are there, as far as they were read.
    """

    rows: dict[Kind, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    blank: int = 0
    distinct: int = 0
    characters: int = 0
    tokens: int = 0
    long: int = 0
    longest: int = 0

    @property
    def chosen(self) -> int:
        return sum(self.rows.values())


def survey(
    store: Store, select: Selector, *, vectors: bool = True, window: int | None = None, tell: Tell | None = None
) -> Survey:
    """Look at every row. ``vectors``: the selector needs them; ``window``: tokens that count of a text.

    Constant memory. Raises ``StoreError``.
    """
    found, seen = Survey(), 0
    distinct: Distinct[None] = Distinct()
    everything = [0, 0]  # characters and tokens of all chosen rows, equal texts counted again
    for kind in Kind:
        for row in store.rows(kind, vectors=vectors):
            seen += 1
            if tell is not None and seen % _STEP == 0:
                tell(seen)
            reason = select(row)
            if reason == BLANK:
                found.blank += 1
            elif reason:
                found.left_out[reason] = found.left_out.get(reason, 0) + 1
            else:
                characters, tokens = len(row.text), estimate_tokens(row.text)
                found.rows[kind] = found.rows.get(kind, 0) + 1
                found.longest = max(found.longest, tokens)
                found.long += window is not None and tokens > window
                everything[0] += characters
                everything[1] += tokens
                if distinct.add(digest(row.text), None):
                    found.characters += characters
                    found.tokens += tokens
    found.distinct = min(distinct.count, found.chosen)
    if distinct.shares > 1:
        share = found.distinct / found.chosen
        found.characters, found.tokens = round(everything[0] * share), round(everything[1] * share)
    return found
