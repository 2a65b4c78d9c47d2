"""Some rows of a table, at even distances over all of it, without going through it."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Sequence
from typing import TypeVar

from cpersona_cli.record import record
from cpersona_cli.store.cpersona.counting import Sort, Tally
from cpersona_cli.store.cpersona.features import Table
from cpersona_cli.store.model import FOLDED

T = TypeVar("T")

#: Rows of an agent up to which all are listed by the index of agents rather than searched for in the table.
_LISTED = 1_000
#: Rows looked at for each that is wanted, where some may not be fit.
_SPARE = 8


def thin(items: Sequence[T], count: int) -> Sequence[T]:
    """At most ``count`` of ``items`` at even distances: of two and more the first and the last, of one the last."""
    if len(items) <= count:
        return items
    if count < 2:
        return items[len(items) - count :]
    last = len(items) - 1
    return [items[last * place // (count - 1)] for place in range(count)]


def divide(count: int, weights: Sequence[int], least: int = 1) -> Sequence[int]:
    """``count`` places divided by weight, never more than the weight itself.

    Each gets ``least`` before any gets more; the rest is divided in the manner of Sainte-Laguë.
    """
    shares = [0] * len(weights)
    waiting = [(0, -float(weight), number) for number, weight in enumerate(weights) if weight > 0]
    heapq.heapify(waiting)
    for _ in range(count):
        if not waiting:
            break
        _, _, number = heapq.heappop(waiting)
        shares[number] += 1
        if shares[number] < weights[number]:
            turn = min(shares[number], least)
            heapq.heappush(waiting, (turn, -weights[number] / (2 * shares[number] + 1), number))
    return shares


@record(kw_only=True)
class Stratum:
    """Rows of ``table`` that are alike: those of ``tallies``, all of one ``sort``; of any sort, if that is None.

    ``owned`` tells that there is one tally, of whose agent the rows are.
    """

    table: Table
    sort: Sort | None
    tallies: Sequence[Tally]
    owned: bool = False

    @property
    def rows(self) -> int:
        return sum(tally.rows for tally in self.tallies)

    def places(self, connection: sqlite3.Connection, count: int, where: str = "1") -> Sequence[int]:
        """The rowids of at most ``count`` rows that meet ``where``, in order. Raises ``sqlite3.Error``.

        Fewer where ids have gaps. The first and the last row are among them, if the count is two and more.
        """
        known = self._known(connection)
        if known:
            found = thin(known, _SPARE * count)
            if where != "1":
                marks = ", ".join("?" * len(found))
                found = self._rowids(connection, f"rowid IN ({marks}) AND {where} ORDER BY rowid", found)
            return thin(found, count)
        first, last = self._ends(connection)
        where = f"{self._like()} AND {where}"
        found = []
        for number in range(count - 1):
            want = first + (last - first) * number // (count - 1)
            if not found or want > found[-1]:
                found += self._rowids(
                    connection, f"rowid BETWEEN ? AND ? AND {where} ORDER BY rowid LIMIT 1", (want, last), like=True
                )
        if count:
            least = found[-1] + 1 if found else first
            found += self._rowids(
                connection, f"rowid BETWEEN ? AND ? AND {where} ORDER BY rowid DESC LIMIT 1", (least, last), like=True
            )
        return found

    def _known(self, connection: sqlite3.Connection) -> Sequence[int]:
        known = {place for tally in self.tallies for place in tally.ids}
        if known and self.table.kind is not None:
            known.update(tally.last for tally in self.tallies)
        elif self.owned and self.rows <= _LISTED:
            known.update(self._rowids(connection, self._like(plain=True), (), like=True))
        return sorted(known)

    def _ends(self, connection: sqlite3.Connection) -> tuple[int, int]:
        if self.table.kind is not None and self.tallies:
            return min(tally.first for tally in self.tallies), max(tally.last for tally in self.tallies)
        first, last = connection.execute(f"SELECT min(rowid), max(rowid) FROM {self.table.name}").fetchone()  # noqa: S608
        return first or 0, last or 0

    def _like(self, *, plain: bool = False) -> str:
        """What tells its rows; ``plain`` lets SQLite use the index of agents."""
        if self.sort is None:
            return "1"
        vector = self.table.vector
        label = self.table.label or "''"
        like = f"typeof({vector}) = ? AND length({vector}) IS ? AND {label} IS ?"
        return f"{like} AND {'' if plain else '+'}{self.table.agent} = ?" if self._agent is not None else like

    @property
    def _agent(self) -> str | None:
        agent = self.tallies[0].agent if self.owned else FOLDED
        return None if agent == FOLDED else agent

    def _rowids(
        self, connection: sqlite3.Connection, where: str, values: Sequence[object], *, like: bool = False
    ) -> list[int]:
        if like and self.sort is not None:
            values = (*values, self.sort.type, self.sort.size, self.sort.label)
            values = values if self._agent is None else (*values, self._agent)
        return [
            rowid
            for (rowid,) in connection.execute(f"SELECT rowid FROM {self.table.name} WHERE {where}", values)  # noqa: S608
        ]
