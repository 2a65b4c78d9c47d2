"""Counting what a database holds: one read transaction, constant memory, every statement under one deadline."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from cpersona_cli.store import schema as known
from cpersona_cli.store.cpersona.counting import tallies
from cpersona_cli.store.cpersona.features import TABLES, existing
from cpersona_cli.store.reading import State
from cpersona_cli.store.sql import code_of, one, quoted, stop_at

#: Agents, projects, labels and widths that are kept by name.
LISTED = 200
#: What servers write literally as a project when the operating context that would replace it sleeps.
_AUTO = "@auto"

Columns: TypeAlias = Mapping[str, frozenset[str]]
#: ``with measure("field", ...)``: names the fields a block fills, should it have to be given up.
Measure: TypeAlias = Callable[..., contextlib.AbstractContextManager[None]]


@dataclass(slots=True)
class Census:
    """What was found: fields of a ``Reading`` by name, and the state if it is not ``ok``.

    ``present`` are the names of all objects, ``columns`` those of the main tables.
    """

    state: State = State.OK
    detail: str = ""
    values: dict[str, object] = field(default_factory=dict)
    unmeasured: list[str] = field(default_factory=list)
    present: frozenset[str] = frozenset()
    columns: Columns = field(default_factory=dict)


def count(connection: sqlite3.Connection, deadline: float, census: Census) -> None:
    """Fill ``census`` with everything countable behind ``connection`` until ``deadline`` of ``time.monotonic``.

    What took longer is named ``unmeasured``. Raises ``sqlite3.DatabaseError``, also for damage found on the way; what
    was counted before is kept.
    """
    stop_at(connection, deadline)
    connection.execute("BEGIN")
    objects = connection.execute(
        "SELECT name, iif(sql LIKE 'create virtual%', 'virtual', type) FROM sqlite_master"
        " WHERE name NOT GLOB 'sqlite_*'"
    )
    present: dict[str, str] = dict(objects.fetchall())
    tables = _tables(present)
    if not tables:
        census.state, census.detail = State.EMPTY, "a database without any table"
        return
    columns = {name: _columns(connection, name) for name in ("memories", "episodes", "profiles", "schema_version")}
    census.present, census.columns = frozenset(present), columns
    own = columns["memories"] >= known.OWN_COLUMNS
    if not own and not _lost_its_memories(columns):
        some = ", ".join(sorted(tables)[:6]) + (" ..." if len(tables) > 6 else "")
        census.state, census.detail = State.FOREIGN, f"the database of another program; its tables are {some}"
        return
    measure = measurer(census)
    _schema(connection, census.values, measure, present, columns)
    with measure("counts"):
        counts: dict[str, int] = {}
        census.values["counts"] = counts
        for table in tables:
            counts[table] = one(connection, f"SELECT count(*) FROM {quoted(table)}")  # noqa: S608
    if own:
        _owners(connection, census.values, measure, columns)
        _vectors(connection, census, measure)
        _texts(connection, census.values, measure)
        _times(connection, census.values, measure)


def _tables(present: Mapping[str, str]) -> list[str]:
    """Plain tables, without those in which a text index keeps itself."""
    virtual = tuple(f"{name}_" for name, kind in present.items() if kind == "virtual")
    return [name for name, kind in present.items() if kind == "table" and not name.startswith(virtual or ("\0",))]


def _columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    return frozenset(row[1] for row in connection.execute(f"PRAGMA table_info({quoted(table)})"))


def _lost_its_memories(columns: Columns) -> bool:
    """A store of the server without its main table, of which the server would make an empty one."""
    return not columns["memories"] and "version" in columns["schema_version"] and "agent_id" in columns["episodes"]


def measurer(census: Census) -> Measure:
    """A block that is given up at the deadline, or for want of a column, names its fields ``unmeasured``."""

    @contextlib.contextmanager
    def measure(*fields: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            # SQLITE_ERROR: a column that every release has is not there; the field stays unknown, too.
            if code_of(error) not in {sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_ERROR}:
                raise
            census.unmeasured.extend(fields)

    return measure


def _schema(
    connection: sqlite3.Connection,
    values: dict[str, object],
    measure: Measure,
    present: Mapping[str, str],
    columns: Columns,
) -> None:
    number: int | None = None
    with measure("schema"):
        if "version" in columns["schema_version"]:
            (version,) = connection.execute("SELECT max(version) FROM schema_version").fetchone()
            number = version if isinstance(version, int) else None
        values["schema"] = number
    values["missing"] = known.missing(number, present.keys())
    with measure("fts_pending"):
        # Bit 0 of user_version: the server owes its text index a rebuild.
        values["fts_pending"] = bool(one(connection, "PRAGMA user_version") & 1)
    with measure("fts_rows"):
        # The index's own bookkeeping: counting the index itself counts the rows of the table it indexes.
        values["fts_rows"] = {
            index: one(connection, f"SELECT count(*) FROM {index}_docsize")  # noqa: S608
            for index in known.text_indexes(present.keys())
            if f"{index}_docsize" in present
        }


def _owners(connection: sqlite3.Connection, values: dict[str, object], measure: Measure, columns: Columns) -> None:
    project = "project_id" if "project_id" in columns["memories"] else "''"
    with measure("agents", "projects", "auto_project_rows"):
        # Grouping by agent first follows an index; grouping by project alone would sort every row.
        rows = connection.execute(
            "WITH owned AS MATERIALIZED"  # noqa: S608
            f" (SELECT agent_id AS agent, {project} AS project, count(*) AS n FROM memories GROUP BY 1, 2)"
            " SELECT * FROM (SELECT 'agents', agent, sum(n) FROM owned"
            f" GROUP BY agent ORDER BY 3 DESC, 2 LIMIT {LISTED})"
            " UNION ALL SELECT * FROM (SELECT 'projects', project, sum(n) FROM owned"
            f" GROUP BY project ORDER BY project = '{_AUTO}' DESC, 3 DESC, 2 LIMIT {LISTED})"
        ).fetchall()
        owners: dict[str, dict[str, int]] = {"agents": {}, "projects": {}}
        for kind, name, number in rows:
            owners[kind][str(name)] = number
        values["agents"] = owners["agents"]
        values["projects"] = dict(sorted(owners["projects"].items(), key=lambda item: -item[1]))
        values["auto_project_rows"] = owners["projects"].get(_AUTO, 0) + sum(
            one(connection, f"SELECT count(*) FROM {table} WHERE project_id = '{_AUTO}'")  # noqa: S608
            for table in ("episodes", "profiles")
            if "project_id" in columns[table]
        )


def _vectors(connection: sqlite3.Connection, census: Census, measure: Measure) -> None:
    memories, values = existing(TABLES[0], census.columns), census.values
    if memories is None:
        return
    with measure("widths", "labels", "unembedded"):
        counted = tallies(connection, memories, one(connection, "PRAGMA page_size"))
        widths, labels, unembedded = Counter[int](), Counter[str](), 0
        for tally in counted.tallies:
            if tally.sort.size is None:
                unembedded += tally.rows
                continue
            widths[tally.sort.size // 4] += tally.rows  # 32-bit floats without a header
            labels["" if tally.sort.label is None else str(tally.sort.label)] += tally.rows
        values["unembedded"] = unembedded
        values["widths"] = dict(widths.most_common(LISTED))
        if counted.table.label:
            values["labels"] = dict(labels.most_common(LISTED))
        elif memories.label:
            census.unmeasured.append("labels")


def _texts(connection: sqlite3.Connection, values: dict[str, object], measure: Measure) -> None:
    with measure("longest_content"):
        values["longest_content"] = one(connection, "SELECT max(length(content)) FROM memories")
    with measure("largest_batch_bytes"):
        values["largest_batch_bytes"] = one(
            connection,
            "SELECT sum(n) FROM (SELECT length(CAST(content AS BLOB)) AS n FROM memories ORDER BY n DESC LIMIT 32)",
        )


def _times(connection: sqlite3.Connection, values: dict[str, object], measure: Measure) -> None:
    fields = ("invalid_timestamps", "future_timestamps")
    with measure(*fields):
        # Comparing dates as text first spares the parsing of all but the newest; no zone is a day away.
        invalid, future = connection.execute(
            "SELECT total(timestamp <> '' AND datetime(timestamp) IS NULL),"
            " total(timestamp >= date('now') AND datetime(timestamp) > datetime('now', '+1 day')) FROM memories"
        ).fetchone()
        values |= dict(zip(fields, (int(invalid), int(future)), strict=True))
