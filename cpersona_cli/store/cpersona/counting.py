"""How many rows of a table are alike in width, label and agent: one pass over it, in constant memory.

Most stores hold one kind of vector. SQLite skips over the rows of the kind that is most frequent without handing them
out, so that only the others cost time; how many rows each agent has at all is in an index of the server's. What
is left over is the frequent kind. Where the others stand at the very edge of an agent's rows, the edges of the frequent
kind are looked for; where they are too many for that, the table is gone through a second time, row by row.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cpersona_cli.record import record, replace
from cpersona_cli.store.cpersona.features import Table
from cpersona_cli.store.model import FOLDED
from cpersona_cli.store.sql import code_of

#: Agents counted by name; the rest, those with the fewest rows, together.
AGENTS = 200
#: Labels counted by name.
_LABELS = 200
#: Rows at either end of the table from which the most frequent kind is guessed.
_PEEK = 50
#: Ids remembered of all groups, at even distances.
_REMEMBERED = 16_384
#: Bytes of a row beside its vector that still leave it on one page with it.
_BESIDE = 400
#: The share of a table's rows up to which edges are looked for, rather than every row counted.
_WORTH = 0.25


@record
class Sort:
    """What makes vectors alike in a table: their SQLite type, length in bytes (of text: characters), and label."""

    type: str
    size: int | None
    label: object  # as it is stored: text, but for a hand that changed it

    @property
    def is_blob(self) -> bool:
        return self.type == "blob" and bool(self.size)


_NONE = Sort("", None, "")


@dataclass(slots=True)
class Tally:
    """Rows of one table and one agent that are alike.

    ``ids`` are some of them at even distances, for those who want to look at a few: rowids; empty where the rows
    were only counted.
    """

    agent: str
    sort: Sort
    rows: int = 0
    first: int = 0
    last: int = 0
    oldest: str = ""
    newest: str = ""
    ids: list[int] = field(default_factory=list)

    def take(self, other: Tally) -> None:
        """Add the rows of ``other``; its ids are forgotten."""
        edges = [tally for tally in (self, other) if tally.rows]
        self.first = min((tally.first for tally in edges), default=0)
        self.last = max((tally.last for tally in edges), default=0)
        self.oldest = min((tally.oldest for tally in edges), default="")
        self.newest = max((tally.newest for tally in edges), default="")
        self.rows += other.rows


@record
class Counted:
    """The tallies of one table. ``labels`` is False where time did not suffice to tell labels apart.

    ``table`` then names no column of labels.
    """

    table: Table
    tallies: Sequence[Tally]
    labels: bool = True


def tallies(connection: sqlite3.Connection, table: Table, page_size: int) -> Counted:
    """Count ``table``, of whose database a page has ``page_size`` bytes.

    Raises ``sqlite3.Error``, with ``SQLITE_INTERRUPT`` when the time set on the connection was up.
    """
    if not table.label:
        return Counted(table, _tallies(connection, table))
    bare = replace(table, label="")
    largest = max((sort.size or 0 for sort in _peek(connection, bare)), default=0)
    if largest + _BESIDE <= page_size:
        return Counted(table, _tallies(connection, table))
    # The label stands behind the vector, which fills pages of its own: reading it costs several times the rest.
    found = _tallies(connection, bare)
    try:
        return Counted(table, _tallies(connection, table))
    except sqlite3.OperationalError as error:
        if code_of(error) != sqlite3.SQLITE_INTERRUPT:
            raise
        return Counted(bare, found, labels=False)


def _tallies(connection: sqlite3.Connection, table: Table) -> Sequence[Tally]:
    frequent = Counter(_peek(connection, table)).most_common(1)
    if not frequent:
        return ()
    ((sort, _),) = frequent
    totals = _totals(connection, table)
    others = _gathered(connection, table, totals, unlike=sort)
    rest = _remainder(connection, table, totals, others, sort)
    return _gathered(connection, table, totals) if rest is None else [*rest, *others]


def _columns(table: Table) -> tuple[str, str, str, str]:
    """The vector, the label, the agent and the time of a row in SQL."""
    return table.vector, table.label or "''", table.agent or "''", table.created or "''"


def _peek(connection: sqlite3.Connection, table: Table) -> Iterator[Sort]:
    vector, label, _, _ = _columns(table)
    for direction in ("", " DESC"):
        order = ", ".join(f"{column}{direction}" for column in table.order)
        for kind, size, name in connection.execute(
            f"SELECT typeof({vector}), length({vector}), {label} FROM {table.name} ORDER BY {order} LIMIT {_PEEK}"  # noqa: S608 - our own names
        ):
            yield Sort(kind, size, name)


def _totals(connection: sqlite3.Connection, table: Table) -> dict[str, Tally]:
    """Rows and edges per agent, whatever their vectors: of the ``AGENTS`` with most rows, and of the others."""
    _, _, agent, created = _columns(table)
    found = connection.execute(
        f"SELECT {agent}, count(*), min({table.key}), max({table.key}), min({created}), max({created})"  # noqa: S608
        f" FROM {table.name}" + (f" GROUP BY {agent}" if table.agent else "")
    )
    largest: list[tuple[int, str, Tally]] = []
    rest = Tally(FOLDED, _NONE)
    for name, rows, first, last, oldest, newest in found:
        tally = Tally(str(name), _NONE, rows, first, last, str(oldest), str(newest))
        heapq.heappush(largest, (rows, tally.agent, tally))
        if len(largest) > AGENTS:
            rest.take(heapq.heappop(largest)[2])
    totals = {agent: tally for _, agent, tally in largest}
    if rest.rows:
        if FOLDED in totals:  # an agent that is itself called like all the others together
            rest.take(totals[FOLDED])
        totals[FOLDED] = rest
    return totals


def _gathered(
    connection: sqlite3.Connection, table: Table, agents: Container[str], unlike: Sort | None = None
) -> list[Tally]:
    """Every row, or every one ``unlike`` a sort, one by one; those of agents not among ``agents`` together."""
    vector, label, agent, created = _columns(table)
    decode = connection.text_factory
    connection.text_factory = bytes  # much quicker than the function that mends foreign text
    try:
        found = _alike(
            connection.execute(
                f"SELECT {agent}, typeof({vector}), length({vector}), {label}, {table.key}, {table.place},"  # noqa: S608
                f" ifnull(CAST({created} AS TEXT), '') FROM {table.name}"
                + (f" WHERE NOT ({_like(table)})" if unlike else ""),
                _values(unlike) if unlike else (),
            ),
            agents,
        )
    finally:
        connection.text_factory = decode
    for tally in found:
        tally.oldest, tally.newest = _text(tally.oldest), _text(tally.newest)
    return found


def _alike(rows: Iterable[tuple[Any, ...]], agents: Container[str]) -> list[Tally]:
    """Rows as they come, gathered; the dates are left in bytes."""
    found: dict[tuple[object, ...], Tally] = {}
    strides: dict[int, int] = {}
    labels: set[object] = set()
    for owner, kind, size, label, key, place, when in rows:
        tally = found.get((owner, kind, size, label))
        if tally is None:
            name = _text(owner)
            known = name in agents
            if label not in labels and len(labels) < _LABELS:
                labels.add(label)
            sort = Sort(_text(kind), size, (_text(label) if isinstance(label, bytes) else label))
            sort = sort if label in labels else replace(sort, label=FOLDED)
            shared = (name if known else FOLDED, sort)
            tally = found.get(shared)
            if tally is None:
                tally = found[shared] = Tally(*shared, 0, key, key, when, when)
                strides[id(tally)] = 1
            if known and label in labels:
                found[owner, kind, size, label] = tally
        if tally.rows % strides[id(tally)] == 0:
            tally.ids.append(place)
            if len(tally.ids) * len(strides) > _REMEMBERED:
                del tally.ids[1::2]
                strides[id(tally)] *= 2
        tally.rows += 1
        if key < tally.first:
            tally.first = key
        elif key > tally.last:
            tally.last = key
        if when < tally.oldest:
            tally.oldest = when
        elif when > tally.newest:
            tally.newest = when
    return [tally for key, tally in found.items() if len(key) == 2]


def _text(raw: object) -> str:
    """What SQLite gave, as the store's own connections decode it."""
    return raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else str(raw)


def _like(table: Table) -> str:
    """The SQL condition of rows of one sort, whose ``_values`` it needs."""
    vector, label, _, _ = _columns(table)
    return f"length({vector}) IS ? AND typeof({vector}) = ? AND {label} IS ?"


def _values(sort: Sort) -> tuple[object, ...]:
    return sort.size, sort.type, sort.label


def _remainder(
    connection: sqlite3.Connection, table: Table, totals: Mapping[str, Tally], others: Sequence[Tally], sort: Sort
) -> list[Tally] | None:
    """What is left of ``totals`` without ``others``, all of one ``sort``; None where counting each is quicker."""
    rest, unclear, steps = [], [], 0
    for agent, total in totals.items():
        odd = [tally for tally in others if tally.agent == agent]
        left = total.rows - sum(tally.rows for tally in odd)
        if left < 0:  # an index that is out of step with its table
            return None
        if not left:
            continue
        tally = Tally(agent, sort, left, total.first, total.last, total.oldest, total.newest)
        rest.append(tally)
        if not all(_inside(other, total) for other in odd):
            unclear.append(tally)
            # At worst all other rows of the agent stand at its edge, with those of other agents between them.
            steps += (total.rows - left) * sum(every.rows for every in totals.values()) // total.rows
    if not unclear:
        return rest
    if table.kind is None or FOLDED in totals or steps > _WORTH * sum(total.rows for total in totals.values()):
        return None
    for tally in unclear:
        _find_edges(connection, table, tally)
    return rest


def _inside(tally: Tally, total: Tally) -> bool:
    """Whether the edges of ``total`` are none of the rows of ``tally``."""
    dated = bool(total.newest)
    return (
        total.first < tally.first
        and tally.last < total.last
        and (not dated or (total.oldest < tally.oldest and tally.newest < total.newest))
    )


def _find_edges(connection: sqlite3.Connection, table: Table, tally: Tally) -> None:
    """Look from the edges of the agent's rows inwards, until the first of the sort is met."""
    _, _, agent, created = _columns(table)
    walk = f"SELECT {table.key} FROM {table.name} WHERE {table.key} BETWEEN ? AND ? AND +{agent} = ? AND {_like(table)}"  # noqa: S608
    dates = f"SELECT {created} FROM {table.name} WHERE {agent} = ? AND {_like(table)} ORDER BY {created}"  # noqa: S608
    place, like = (tally.first, tally.last, tally.agent), _values(tally.sort)
    ends = [
        connection.execute(f"{walk} ORDER BY {table.key}{direction} LIMIT 1", (*place, *like)).fetchone()
        for direction in ("", " DESC")
    ]
    if all(ends):  # not for an agent whose name is no UTF-8
        tally.first, tally.last = (end[0] for end in ends)
        tally.oldest, tally.newest = (
            str(connection.execute(f"{dates}{direction} LIMIT 1", (tally.agent, *like)).fetchone()[0])
            for direction in ("", " DESC")
        )
