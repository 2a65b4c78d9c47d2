"""A few rows that stand for all: every kind, width, label and agent, and all of the time between first and last."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from cpersona_cli.store.cpersona.census import form_of
from cpersona_cli.store.cpersona.counting import Counted, Sort, Tally, tallies
from cpersona_cli.store.cpersona.features import Features, Table, blank
from cpersona_cli.store.cpersona.picking import Stratum, divide, thin
from cpersona_cli.store.model import Form, Kind, Row
from cpersona_cli.store.sql import code_of, stop_at

#: The share of the time in which the table may be counted, so that its strata are known.
_COUNTING = 0.5
_ANY = Sort("", None, "")


def rows_of(
    connection: sqlite3.Connection, table: Table, where: str, values: Sequence[object], *, vectors: bool = True
) -> Iterator[Row]:
    """The rows of a table of memories or episodes that meet ``where`` (and what follows it)."""
    columns = (table.label, table.agent, table.created)
    label, agent, created = (column or "''" for column in columns)
    kind = cast("Kind", table.kind)
    for identifier, text, vector, name, owner, when in connection.execute(
        f"SELECT {table.key}, {table.text}, {table.vector if vectors else 'NULL'}, {label}, {agent}, {created}"  # noqa: S608
        f" FROM {table.name} WHERE {where}",
        values,
    ):
        yield Row(
            kind=kind,
            id=identifier,
            text=text if isinstance(text, str) else "",
            vector=vector if vector is None or isinstance(vector, bytes) else b"",
            label="" if name is None else str(name),
            agent=str(owner),
            created="" if when is None else str(when),
        )


def usable(table: Table) -> str:
    """The SQL condition of rows with a text and a vector."""
    vector = table.vector
    return (
        f"typeof({vector}) = 'blob' AND length({vector}) > 0 AND length({vector}) % 4 = 0 AND NOT {blank(table.text)}"
    )


def sample(
    connection: sqlite3.Connection,
    features: Features,
    count: int,
    *,
    deadline: float,
    kinds: Sequence[Kind] = tuple(Kind),
    vectors: bool = True,
    counted: Iterable[Counted] = (),
) -> list[Row]:
    """At most ``count`` rows with a text, in order of kind and id, until ``deadline`` of ``time.monotonic``.

    Each width and label of a kind comes with its first and its last row, as far as ``count`` allows, each agent with
    one; the others are divided by numbers. Where there is no time to count, rows are taken from everywhere alike.
    Without ``vectors`` also those that have none. What was ``counted`` of the same rows is not counted again. Raises
    ``sqlite3.Error``.
    """
    known = {count.table.name: count for count in counted}
    groups: list[Stratum] = []
    for table in features.tables:
        if table.kind in kinds:
            found = known.get(table.name) or _counted(connection, features, table, deadline)
            groups += [_everything(connection, table)] if found is None else _groups(found, vectors=vectors)
    rows: list[Row] = []
    for group, share in zip(groups, divide(count, [group.rows for group in groups], 2), strict=True):
        where = usable(group.table) if vectors else f"NOT {blank(group.table.text)}"
        places = sorted(_chosen(connection, group, share, where))
        for place in places:
            rows += rows_of(connection, group.table, f"{group.table.key} = ?", (place,))
    return sorted(rows, key=lambda row: (row.kind != Kind.MEMORY, row.id))


def longest(connection: sqlite3.Connection, table: Table, count: int) -> list[Row]:
    """The ``count`` rows with the longest texts, the longest first. Raises ``sqlite3.Error``."""
    order = f"NOT {blank(table.text)} ORDER BY length({table.text}) DESC, {table.key} LIMIT ?"
    return list(rows_of(connection, table, order, (count,)))


def near(connection: sqlite3.Connection, table: Table, identifier: int, count: int) -> list[Row]:
    """The ``count`` rows that are usable and nearest to ``identifier``, in order of id. Raises ``sqlite3.Error``."""
    key, fit = table.key, usable(table)
    rows = [
        *rows_of(connection, table, f"{key} <= ? AND {fit} ORDER BY {key} DESC LIMIT ?", (identifier, count)),
        *rows_of(connection, table, f"{key} > ? AND {fit} ORDER BY {key} LIMIT ?", (identifier, count)),
    ]
    nearest = sorted(rows, key=lambda row: (abs(row.id - identifier), row.id))[:count]
    return sorted(nearest, key=lambda row: row.id)


def _counted(connection: sqlite3.Connection, features: Features, table: Table, deadline: float) -> Counted | None:
    """The tallies of a table, None where there is no time for them."""
    now = time.monotonic()
    stop_at(connection, now + (deadline - now) * _COUNTING)
    try:
        return tallies(connection, table, features.page_size)
    except sqlite3.OperationalError as error:
        if code_of(error) != sqlite3.SQLITE_INTERRUPT:
            raise
        return None
    finally:
        stop_at(connection, deadline)


def _groups(counted: Counted, *, vectors: bool) -> list[Stratum]:
    """The rows of a table by width and label."""
    groups: dict[Sort, list[Tally]] = {}
    for tally in counted.tallies:
        if not vectors or form_of(counted.table, tally.sort)[0] is Form.VECTOR:
            groups.setdefault(tally.sort, []).append(tally)
    return [Stratum(table=counted.table, sort=sort, tallies=alike) for sort, alike in groups.items()]


def _everything(connection: sqlite3.Connection, table: Table) -> Stratum:
    """The rows of a table that was not counted."""
    (last,) = connection.execute(f"SELECT max(rowid) FROM {table.name}").fetchone()  # noqa: S608 - our own names
    last = last or 0
    return Stratum(table=table, sort=None, tallies=[Tally("", _ANY, last, 1, last)])


def _chosen(connection: sqlite3.Connection, group: Stratum, share: int, where: str) -> set[int]:
    """Rowids of ``share`` rows of a group: its edges, then some of each agent."""
    found = set(group.places(connection, min(share, 2), where))
    if group.sort is None:
        return found | set(group.places(connection, share, where))
    shares = divide(share - len(found), [tally.rows for tally in group.tallies])
    for tally, part in zip(group.tallies, shares, strict=True):
        if part:
            own = Stratum(table=group.table, sort=group.sort, tallies=[tally], owned=True)
            places = own.places(connection, part + 2, where)
            found.update(thin([place for place in places if place not in found], part))
    if len(found) < share:  # an agent's rows were among the edges, or blank
        others = [place for place in group.places(connection, 2 * share, where) if place not in found]
        found.update(thin(others, share - len(found)))
    return found
