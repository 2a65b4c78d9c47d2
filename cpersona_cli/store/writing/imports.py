"""What was brought into a database or mended in it, kept beside it: by this a later run knows it, and can take it back.

No text stands here, only ids and digests. Entries are written before the transaction they tell of, so that nothing is
in the database that is not here; those of a transaction that did not happen are found out and dropped.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cpersona_cli.record import field, record
from cpersona_cli.store.files import real_path, sibling
from cpersona_cli.store.header import MAGIC, head_of
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.newrow import COLUMNS, digest_of
from cpersona_cli.store.writing.disk import Held, is_plain, make_private, publish, remove, told
from cpersona_cli.store.writing.mainfile import TABLES, Main

#: Suffixes of the database's own name: this file, and the copy of the database from before the last import.
RECORD, BACKUP = ".backfill", ".backfill-backup"

#: ``application_id``: the letters cpBI.
APPLICATION = 0x63704249
LAYOUT = 1
_APPLICATION_AT, _HEAD = 68, 100

_TABLES = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {LAYOUT};
CREATE TABLE imports (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, action TEXT NOT NULL, started REAL NOT NULL,
  finished REAL NOT NULL DEFAULT 0, undone REAL NOT NULL DEFAULT 0, kept TEXT NOT NULL DEFAULT '{{}}');
CREATE TABLE rows (
  import INTEGER NOT NULL, kind TEXT NOT NULL, id INTEGER NOT NULL, digest BLOB NOT NULL, key TEXT NOT NULL DEFAULT '',
  last TEXT NOT NULL DEFAULT '', old TEXT NOT NULL DEFAULT '', sure INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (import, kind, id)) WITHOUT ROWID;
CREATE INDEX unsure ON rows(sure) WHERE sure = 0;
"""


class Action(StrEnum):
    """What was done."""

    IMPORT = "import"
    REPAIR = "repair"


@record(kw_only=True)
class Import:
    """One import or repair. Times are Unix times, 0 where it did not happen; ``rows`` are those it inserted or changed.

    ``kept`` is what the caller kept with it.
    """

    id: str
    action: Action
    started: float
    finished: float
    undone: float
    rows: Mapping[Kind, int] = field(default_factory=dict)
    kept: Mapping[str, Any] = field(default_factory=dict)


@record(kw_only=True)
class Entry:
    """One row: its id, and the digest of what stands in it.

    ``key`` and ``last`` tell which conversation an episode is of, and how far it goes; ``old`` is the ``created_at``
    from before a repair.
    """

    kind: Kind
    id: int
    digest: bytes
    key: str = ""
    last: str = ""
    old: str = ""


def record_path(database: Path) -> Path:
    """Where the record of a database stands."""
    return sibling(real_path(database), RECORD)


def backup_path(database: Path) -> Path:
    """Where the copy from before the last import stands."""
    return sibling(real_path(database), BACKUP)


def imports(database: Path) -> tuple[Import, ...]:
    """All imports and repairs on record that did anything, the latest first. Raises ``StoreError``."""
    connection = _reading(database)
    if connection is None:
        return ()
    with told(record_path(database)), contextlib.closing(connection):
        return _imports(connection)


def episodes(database: Path) -> list[tuple[str, str, int, bytes]]:
    """(key, last, id, digest) of the episodes that imports stored, the latest last. Raises ``StoreError``."""
    connection = _reading(database)
    if connection is None:
        return []
    with told(record_path(database)), contextlib.closing(connection):
        return connection.execute(
            "SELECT key, last, rows.id, digest FROM rows JOIN imports ON number = import"
            " WHERE kind = ? AND key <> '' AND undone = 0 ORDER BY number, rows.id",
            (Kind.EPISODE,),
        ).fetchall()


def _reading(database: Path) -> sqlite3.Connection | None:
    path = record_path(database)
    if not is_plain(path):
        return None
    with told(path):
        _check_ours(path)
        address = "file:" + quote(path.as_posix().encode("utf-8", "surrogateescape"))
        return sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=5.0, isolation_level=None)


def _check_ours(path: Path) -> None:
    head = head_of(path, _HEAD)
    application = int.from_bytes(head[_APPLICATION_AT : _APPLICATION_AT + 4], "big")
    if not head.startswith(MAGIC) or application != APPLICATION:
        raise StoreError(f"{path} is not a file of this tool, which keeps a record of imports there: move it away")


def _imports(connection: sqlite3.Connection) -> tuple[Import, ...]:
    counts: dict[int, dict[Kind, int]] = {}
    for number, kind, rows in connection.execute(
        "SELECT import, kind, count(*) FROM rows GROUP BY 1, 2 ORDER BY 2 DESC"
    ):
        counts.setdefault(number, {})[Kind(kind)] = rows
    return tuple(
        Import(
            id=identifier,
            action=Action(action),
            started=started,
            finished=finished,
            undone=undone,
            rows=counts.get(number, {}),
            kept=json.loads(kept),
        )
        for number, identifier, action, started, finished, undone, kept in connection.execute(
            "SELECT number, id, action, started, finished, undone, kept FROM imports ORDER BY number DESC"
        )
        if number in counts
    )


class Record(Held):
    """The record of a database, open for writing; made where there is none. Every method raises ``StoreError``.

    To be used by one process at a time, under its job lock. ``number`` is that of the import under way.
    """

    def __init__(self, database: Path) -> None:
        self.path = record_path(database)
        with told(self.path):
            if not is_plain(self.path):
                _make(self.path)
            _check_ours(self.path)
            self.connection = sqlite3.connect(self.path, timeout=5.0, isolation_level=None, check_same_thread=False)
            self.connection.execute("PRAGMA synchronous=FULL")
        self.number = 0
        self.id = ""

    def begin(self, action: Action, **kept: object) -> str:
        """Begin an import; the id it goes by."""
        self.id = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"
        with told(self.path):
            self.number = (
                self.connection.execute(
                    "INSERT INTO imports(id, action, started, kept) VALUES (?, ?, ?, ?)",
                    (self.id, action, time.time(), json.dumps(kept)),
                ).lastrowid
                or 0
            )
        return self.id

    def note(self, entries: Iterable[Entry]) -> None:
        """Write down what the transaction under way does, before it is committed; what was noted before is sure."""
        with told(self.path), _transaction(self.connection):
            self._settle()
            self.connection.executemany(
                "INSERT OR REPLACE INTO rows(import, kind, id, digest, key, last, old) VALUES (?, ?, ?, ?, ?, ?, ?)",
                ((self.number, e.kind, e.id, e.digest, e.key, e.last, e.old) for e in entries),
            )

    def _settle(self) -> None:
        self.connection.execute("UPDATE rows SET sure = 1 WHERE sure = 0")

    def finish(self, *, through: bool = True) -> None:
        """The import is done, or was stopped before its end. One that changed nothing leaves no trace."""
        with told(self.path), _transaction(self.connection):
            self._settle()
            finished = time.time() if through else 0.0
            self.connection.execute("UPDATE imports SET finished = ? WHERE number = ?", (finished, self.number))
            self.connection.execute(
                "DELETE FROM imports WHERE number = ? AND NOT EXISTS (SELECT 1 FROM rows WHERE import = number)",
                (self.number,),
            )

    def undone(self, number: int) -> None:
        """An import was taken back: its rows are not known any more."""
        with told(self.path), _transaction(self.connection):
            self.connection.execute("UPDATE imports SET undone = ? WHERE number = ?", (time.time(), number))

    def all(self) -> tuple[Import, ...]:
        """As ``imports``."""
        with told(self.path):
            return _imports(self.connection)

    def number_of(self, identifier: str) -> int:
        """The number of an import."""
        with told(self.path):
            (number,) = self.connection.execute("SELECT number FROM imports WHERE id = ?", (identifier,)).fetchone()
        return int(number)

    def entries(self, number: int | None, kind: Kind) -> Iterator[Entry]:
        """What an import did to rows of a kind, or what all did that were not undone, in order of id."""
        after = (0, 0)
        while True:
            with told(self.path):
                page = self.connection.execute(
                    "SELECT import, rows.id, digest, key, last, old FROM rows JOIN imports ON number = import"
                    " WHERE kind = ?1 AND (import = ?2 OR ?2 IS NULL AND undone = 0 AND action = 'import')"
                    " AND (import, rows.id) > (?3, ?4) ORDER BY import, rows.id LIMIT 500",
                    (kind, number, *after),
                ).fetchall()
            if not page:
                return
            after = page[-1][0], page[-1][1]
            for _, identifier, digest, key, last, old in page:
                yield Entry(kind=kind, id=identifier, digest=digest, key=key, last=last, old=old)

    def check(self, main: Main) -> None:
        """Drop what was noted of a transaction that did not happen, as the database tells."""
        with told(self.path):
            unsure = self.connection.execute("SELECT import, kind, id, digest FROM rows WHERE sure = 0").fetchall()
            if not unsure:
                return
            lost = [
                (number, kind, identifier)
                for number, kind, identifier, digest in unsure
                if digest_in(main, Kind(kind), identifier) != digest
            ]
            with _transaction(self.connection):
                self.connection.executemany("DELETE FROM rows WHERE import = ? AND kind = ? AND id = ?", lost)
                self._settle()


def digest_in(main: Main, kind: Kind, identifier: int) -> bytes | None:
    """The digest of a row as it stands in the database; None where it is gone. Raises ``StoreError``."""
    found = columns_of(main, kind, identifier)
    return None if found is None else digest_of(found)


def columns_of(main: Main, kind: Kind, identifier: int) -> Sequence[Any] | None:
    """What stands in ``COLUMNS`` of a row. Raises ``StoreError``."""
    with told(main.path):
        found: Sequence[Any] | None = main.connection.execute(
            f"SELECT {', '.join(COLUMNS[kind])} FROM {TABLES[kind][0]} WHERE id = ?",  # noqa: S608
            (identifier,),
        ).fetchone()
    return found


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _make(path: Path) -> None:
    new = sibling(path, ".new")
    remove(new)
    make_private(new)
    with contextlib.closing(sqlite3.connect(new)) as connection:
        connection.executescript(f"BEGIN;{_TABLES}COMMIT;")
    publish(new, path)
