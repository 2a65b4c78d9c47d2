"""The staging file on the disk: its tables, its description of the job, and what is saved of one that was cut short."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from cpersona_cli.record import field, fields, record, replace
from cpersona_cli.store.files import sibling
from cpersona_cli.store.header import MAGIC, head_of
from cpersona_cli.store.job import JobState, Target
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.sql import code_of
from cpersona_cli.store.writing.disk import is_plain, make_private, publish, remove, told

#: ``application_id`` of a staging file: the letters cpRE.
APPLICATION = 0x63705245
#: ``user_version``: the layout of the tables.
LAYOUT = 1
#: Where the two stand in the first page, as four bytes each.
_APPLICATION_AT, _LAYOUT_AT, _HEAD = 68, 60, 100

_TABLES = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {LAYOUT};
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE vectors (ref INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, vector BLOB NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE rows (
  kind TEXT NOT NULL, id INTEGER NOT NULL, digest BLOB NOT NULL, ref INTEGER,
  reason TEXT NOT NULL DEFAULT '', detail TEXT NOT NULL DEFAULT '', tokens INTEGER,
  PRIMARY KEY (kind, id)) WITHOUT ROWID;
"""
#: Rows that are of no kind, or that point to no vector of their text.
_ASTRAY = """
FROM rows WHERE kind NOT IN ('mem', 'ep') OR (ref IS NOT NULL AND NOT EXISTS
  (SELECT 1 FROM vectors WHERE vectors.ref = rows.ref AND vectors.digest = rows.digest))
"""


class LostError(StoreError):
    """Nothing can be told of the job in a damaged staging file; the message says what follows."""


@record(kw_only=True)
class Meta:
    """What a staging file says of its job. Times are Unix times in seconds."""

    job: str
    target: Target
    only: str
    cut_texts: bool
    state: JobState
    started: float
    heartbeat: float


@record(kw_only=True)
class StagingCounts:
    """What a staging file holds: rows with a vector by kind, rows without one by reason."""

    rows: Mapping[Kind, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def staged(self) -> int:
        return sum(self.rows.values())


@record
class Opened:
    """An open staging file, and what is to be said of it."""

    connection: sqlite3.Connection
    notes: tuple[str, ...] = ()


def packed(target: Target) -> dict[str, object]:
    """A target as JSON can hold it."""
    return fields(target)


def make(path: Path, meta: Meta) -> None:
    """Make a new staging file, closed and complete. Raises ``sqlite3.Error`` and ``OSError``."""
    make_private(path)
    with contextlib.closing(_connect(path)) as connection:
        connection.executescript(f"BEGIN;{_TABLES}COMMIT;")
        with connection:
            _describe(connection, meta)


def _describe(connection: sqlite3.Connection, meta: Meta) -> None:
    write_values(connection, {**fields(meta), "target": packed(meta.target)})


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=5.0, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous=FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def open_file(path: Path, *, lost_is_error: bool = False) -> Opened | None:
    """Open the staging file at ``path``, mended where it lost its end; None where there is none, or nothing is left.

    Raises ``StoreError``; with ``lost_is_error`` also ``LostError`` where nothing is left of one.
    """
    if not is_plain(path):
        return None
    try:
        check_ours(path)
        with told(path):
            return _mended(path)
    except LostError:
        if lost_is_error:
            raise
        return None


def check_ours(path: Path) -> None:
    """Raises ``StoreError`` when the file at ``path`` is not a staging file of this tool, ``LostError`` for a ruin."""
    with told(path):
        head = head_of(path, _HEAD)
    if not head.strip(b"\0"):
        raise _lost(path)
    application = int.from_bytes(head[_APPLICATION_AT : _APPLICATION_AT + 4], "big")
    if not head.startswith(MAGIC) or (len(head) == _HEAD and application != APPLICATION):
        raise StoreError(f"{path} is not a file of this tool, which keeps its new vectors there: move it away")
    layout = int.from_bytes(head[_LAYOUT_AT : _LAYOUT_AT + 4], "big")
    if layout > LAYOUT:
        raise StoreError(f"{path} was written by a newer release of this tool: continue the job with that one")


def _lost(path: Path) -> LostError:
    return LostError(
        f"{path} was cut short, by a loss of power or by hand, and nothing in it can be read: the vectors in it are"
        " made again"
    )


def _mended(path: Path) -> Opened:
    whole = _whole(path)
    if whole is not None:
        return Opened(whole)
    broken = sqlite3.connect(path)
    with contextlib.closing(broken):
        # Without this SQLite reads nothing of a file that is shorter than its header says.
        broken.execute("PRAGMA writable_schema=ON")
        try:
            meta = read_meta(broken)
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            raise _lost(path) from error
        saved = _save(broken, path, meta)
    publish(sibling(path, ".new"), path)
    mended = _connect(path)
    mended.execute("PRAGMA journal_mode=WAL")
    note = f"{path} was damaged, by a loss of power or by hand: {saved} vectors in it are whole, others are made again"
    return Opened(mended, (note,))


def _whole(path: Path) -> sqlite3.Connection | None:
    """A connection to a staging file that is in order. One that only looks so fails here, not in the middle of work."""
    with contextlib.ExitStack() as stack:
        try:
            connection = _connect(path)
            stack.callback(connection.close)
            if [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")] == ["ok"] and _intact(connection):
                connection.execute("PRAGMA journal_mode=WAL")
                read_meta(connection)
                stack.pop_all()
                return connection
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            # SQLITE_ERROR is what it says of tables that are not those that were made, nothing of text that is none
            if isinstance(error, sqlite3.OperationalError) and code_of(error) not in {0, sqlite3.SQLITE_ERROR}:
                raise
    return None


def sum_of(digest: bytes, vector: bytes) -> int:
    """What is kept beside a vector, to tell whether it still is the one of that text."""
    return zlib.crc32(vector, zlib.crc32(digest))


def _intact(connection: sqlite3.Connection) -> bool:
    """Whether every vector is what was written, and every row's is that of its own text: SQLite looks at neither."""
    kept = connection.execute("SELECT digest, vector, sum FROM vectors")
    if not all(sum_of(*entry) == check for *entry, check in kept):
        return False
    return connection.execute(f"SELECT 1 {_ASTRAY} LIMIT 1").fetchone() is None


def _save(connection: sqlite3.Connection, path: Path, meta: Meta) -> int:
    """Write a new file with what is whole in a damaged one; how many vectors that is."""
    new = sibling(path, ".new")
    remove(new)
    make(new, meta)
    with contextlib.closing(_connect(new)) as fresh, fresh:
        for ref, text, vector, check in _readable(connection, "SELECT ref, digest, vector, sum FROM vectors", "ref"):
            if isinstance(text, bytes) and isinstance(vector, bytes) and sum_of(text, vector) == check:
                fresh.execute("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, ?)", (ref, text, vector, check))
        rows = "SELECT kind, id, digest, ref, reason, detail, tokens FROM rows"
        for row in _readable(connection, rows, "kind, id"):
            fresh.execute("INSERT OR IGNORE INTO rows VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        fresh.execute(f"DELETE {_ASTRAY}")
        for name, value in read_values(connection).items():
            write_values(fresh, {name: value})
        (saved,) = fresh.execute("SELECT count(*) FROM vectors").fetchone()
    return int(saved)


def _readable(connection: sqlite3.Connection, query: str, order: str) -> Iterator[tuple[Any, ...]]:
    """Entries of a damaged table up to the damage, then those behind it from the other end."""
    backward = ", ".join(f"{name} DESC" for name in order.split(", "))
    for direction in (order, backward):
        try:
            for row in connection.execute(f"{query} ORDER BY {direction}"):
                if all(value is not None for value in row[:3]):
                    yield row
        except sqlite3.DatabaseError:
            continue
        return


def write_values(connection: sqlite3.Connection, values: Mapping[str, object]) -> None:
    """Write entries of ``meta``, without a commit."""
    connection.executemany(
        "INSERT OR REPLACE INTO meta(name, value) VALUES (?, ?)",
        [(name, json.dumps(value)) for name, value in values.items()],
    )


def read_values(connection: sqlite3.Connection) -> dict[str, Any]:
    """All entries of ``meta``."""
    return {name: json.loads(value) for name, value in connection.execute("SELECT name, value FROM meta")}


def read_meta(connection: sqlite3.Connection) -> Meta:
    """The description of the job. Raises ``sqlite3.Error``, and ``TypeError`` or ``ValueError`` for a broken one."""
    values = read_values(connection)
    meta = Meta(**{name: values[name] for name in fields(Meta) if name in values})
    return replace(meta, target=Target(**cast("dict[str, Any]", meta.target)), state=JobState(meta.state))


def counts_of(connection: sqlite3.Connection) -> StagingCounts:
    """What a staging file holds."""
    rows = {
        Kind(kind): number
        for kind, number in connection.execute(
            "SELECT kind, count(*) FROM rows WHERE ref IS NOT NULL GROUP BY kind ORDER BY kind DESC"
        )
    }
    refused = dict(
        connection.execute("SELECT reason, count(*) FROM rows WHERE ref IS NULL GROUP BY reason ORDER BY 2 DESC, 1")
    )
    return StagingCounts(rows=rows, refused=refused)
