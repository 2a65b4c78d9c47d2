"""What the bytes of stored vectors are worth: a length for each, and the first thing wrong with it.

Numbers are read as the server reads them, as little-endian 32-bit floats. Another reading is believed only where it
gives a vector of length one and that one does not, or where that one gives none at all.
"""

from __future__ import annotations

import math
import sqlite3
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cpersona_cli.arrays import quick
from cpersona_cli.store.cpersona.counting import Counted, Sort, Tally
from cpersona_cli.store.cpersona.picking import Stratum
from cpersona_cli.store.model import Contents, Defect, Flaw
from cpersona_cli.store.sql import code_of

#: Vectors of one table that are looked at where not all are.
SAMPLE = 500
#: The fewest of those that are of any one width and label, as far as there are so many.
_FEWEST = 50
#: Ids named of each defect.
_NAMED = 20

#: How far from one the server's own deep check lets a length be, and below which a vector is no direction at all.
TOLERANCE, ZERO = 1e-3, 1e-6
#: Lengths a vector of any model may have, be its values bytes or unscaled sums.
_SHORTEST, _LONGEST = 1e-4, 1e6
#: The share of its numbers, of an ordinary size, from which a vector is one that holds a few bad numbers.
_ORDINARY = 0.9


def contents(
    connection: sqlite3.Connection, counted: Iterable[Counted], *, deep: bool, live_width: int | None
) -> tuple[Contents, bool]:
    """What the vectors hold: all of them if ``deep``, else ``SAMPLE`` of each table; and whether time sufficed.

    Vectors of bits and bytes have no contents to be judged. Raises ``sqlite3.Error`` but ``SQLITE_INTERRUPT``.
    """
    tables = [count for count in counted if count.table.coding == "floats"]
    usual = Counter[int]()
    for count in tables:
        if count.table.kind is not None:
            for sort, alike in _sorts(count.tallies).items():
                usual[(sort.size or 0) // 4] += sum(tally.rows for tally in alike)
    wide = {width for width in (live_width, *(width for width, _ in usual.most_common(1))) if width}
    sure = quick() if deep else _unsure
    looks = [_Look(count.table.name, {width // 4 for width in wide if width % 4 == 0}) for count in tables]
    finished = True
    try:
        for look, count in zip(looks, tables, strict=True):
            for identifier, blob in _all(connection, count) if deep else _some(connection, count):
                if sure(blob):
                    look.good()
                else:
                    look.at(identifier, blob)
    except sqlite3.OperationalError as error:
        if code_of(error) != sqlite3.SQLITE_INTERRUPT:
            raise
        finished = False
    norms = Counter[float]()
    for look in looks:
        norms.update(look.norms)
    total = sum(tally.rows for count in tables for alike in _sorts(count.tallies).values() for tally in alike)
    return Contents(
        looked=sum(look.looked for look in looks),
        total=total,
        flaws=tuple(flaw for look in looks for flaw in look.flaws()),
        norms=dict(sorted(norms.items())),
    ), finished


def _unsure(_: bytes) -> bool:
    return False


def judge(blob: bytes, quarters: Iterable[int] = ()) -> tuple[Defect | None, float]:
    """The first defect of a vector, and its length (not finite where a number is not).

    ``quarters`` are the widths that are a fourth of one to be expected.
    """
    numbers = _read("f", blob, swap=sys.byteorder == "big")
    norm = math.hypot(*numbers)
    if _unit(norm):
        return None, norm
    sound = _plausible(norm) or _ordinary(numbers) >= _ORDINARY
    if _rather(math.hypot(*_read("f", blob, swap=sys.byteorder == "little")), sound=sound):
        return Defect.BIG_ENDIAN, norm
    if len(blob) % 8 == 0 and _rather(math.hypot(*_read("d", blob, swap=sys.byteorder == "big")), sound=sound):
        return Defect.FLOAT64, norm
    if len(numbers) in quarters:
        return Defect.QUARTER_WIDTH, norm
    if not math.isfinite(norm):
        return Defect.NON_FINITE, norm
    return (Defect.ZERO if norm < ZERO else Defect.NOT_UNIT), norm


def _read(code: str, blob: bytes, *, swap: bool) -> array[float]:
    numbers: array[float] = array(code, blob)
    if swap:
        numbers.byteswap()
    return numbers


def _unit(norm: float) -> bool:
    return abs(norm - 1) <= TOLERANCE


def _plausible(norm: float) -> bool:
    return _SHORTEST <= norm <= _LONGEST


def _rather(norm: float, *, sound: bool) -> bool:
    """Whether another reading, of length ``norm``, is to be believed; ``sound`` is the server's own."""
    return _unit(norm) if sound else _plausible(norm)


def _ordinary(numbers: Sequence[float]) -> float:
    """The share of numbers that are nought or of a size embeddings have; of misread bytes a fifth is."""
    return sum(1e-12 < abs(number) < 1e3 or number == 0 for number in numbers) / len(numbers)


@dataclass(slots=True)
class _Look:
    """What was seen of one table."""

    table: str
    quarters: set[int]
    looked: int = 0
    norms: Counter[float] = field(default_factory=Counter)
    counts: Counter[Defect] = field(default_factory=Counter)
    ids: dict[Defect, list[int]] = field(default_factory=dict)

    def good(self) -> None:
        self.looked += 1
        self.norms[1.0] += 1

    def at(self, identifier: int, blob: bytes) -> None:
        defect, norm = judge(blob, self.quarters)
        self.looked += 1
        if defect is not None:
            self.counts[defect] += 1
            ids = self.ids.setdefault(defect, [])
            if len(ids) < _NAMED and identifier not in ids:
                ids.append(identifier)
        if math.isfinite(norm) and defect not in {Defect.BIG_ENDIAN, Defect.FLOAT64}:
            # Two decimals; of long vectors three digits, so that there are never many different ones.
            self.norms[round(norm, 2) if norm < 100 else float(f"{norm:.3g}")] += 1

    def flaws(self) -> Iterator[Flaw]:
        for defect in Defect:
            if self.counts[defect]:
                yield Flaw(
                    table=self.table, defect=defect, rows=self.counts[defect], ids=tuple(sorted(self.ids[defect]))
                )


def _sorts(tallies: Iterable[Tally]) -> Mapping[Sort, Sequence[Tally]]:
    """Tallies of readable vectors, those of one sort together."""
    found: dict[Sort, list[Tally]] = {}
    for tally in tallies:
        if tally.sort.is_blob and (tally.sort.size or 0) % 4 == 0:
            found.setdefault(tally.sort, []).append(tally)
    return found


def _all(connection: sqlite3.Connection, counted: Counted) -> Iterator[tuple[int, bytes]]:
    table = counted.table
    yield from connection.execute(
        f"SELECT {table.key}, {table.vector} FROM {table.name}"  # noqa: S608 - names of our own list
        f" WHERE typeof({table.vector}) = 'blob' AND length({table.vector}) > 0 AND length({table.vector}) % 4 = 0"
    )


def _some(connection: sqlite3.Connection, counted: Counted) -> Iterator[tuple[int, bytes]]:
    sorts = _sorts(counted.tallies)
    total = sum(tally.rows for alike in sorts.values() for tally in alike)
    if total <= SAMPLE:
        yield from _all(connection, counted)
        return
    table = counted.table
    for sort, alike in sorts.items():
        rows = sum(tally.rows for tally in alike)
        share = max(min(rows, _FEWEST), SAMPLE * rows // total)
        for place in Stratum(table=table, sort=sort, tallies=alike).places(connection, share):
            yield from connection.execute(
                f"SELECT {table.key}, {table.vector} FROM {table.name} WHERE rowid = ?",  # noqa: S608 - as above
                (place,),
            )
