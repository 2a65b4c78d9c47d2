"""The undo file: every vector and label a job replaces, written and on the disk before anything is replaced.

It is also the plan of the cut-over, and what tells after a crash whether that happened. While the cut-over is not
known to have happened the file has ``.next`` at the end of its name, so that an earlier job's is not lost for nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from cpersona_cli.record import fields, record
from cpersona_cli.store.files import sibling
from cpersona_cli.store.header import MAGIC, head_of
from cpersona_cli.store.job import Target, undo_path
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.writing.disk import Held, is_plain, make_private, publish, remove, told

#: ``application_id`` of an undo file: the letters cpRU.
APPLICATION = 0x63705255
LAYOUT = 1
_APPLICATION_AT, _HEAD = 68, 100
#: Rows of a plan written in one go.
_BATCH = 500

_TABLE = """
CREATE TABLE {} (
  id INTEGER PRIMARY KEY, digest BLOB, form TEXT NOT NULL, vector, label BLOB, written BLOB, ref INTEGER,
  round INTEGER NOT NULL, sum INTEGER NOT NULL);
"""
_TABLES = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {LAYOUT};
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sidecars (name TEXT PRIMARY KEY, content BLOB) WITHOUT ROWID;
{"".join(_TABLE.format(kind) for kind in Kind)}
"""


@record
class Entry:
    """One row a job changes. ``digest`` is of its text, ``form``, ``vector`` and ``label`` are the old ones as stored.

    ``written`` is the SHA-256 of the new vector, and ``ref`` its place in the staging file; None where the row is left
    without a vector. ``round`` counts the transactions of a job: what a live server wrote meanwhile takes another.
    """

    id: int
    digest: bytes | None
    form: str
    vector: bytes | int | float | None
    label: bytes | None
    written: bytes | None
    ref: int | None
    round: int


def _sum_of(entry: Entry) -> int:
    """What is kept beside an entry, to tell whether it is what was written; SQLite does not look at it."""
    rest = (entry.id, entry.digest, entry.form, entry.label, entry.written, entry.ref)
    vector = entry.vector if isinstance(entry.vector, bytes) else repr(entry.vector).encode()
    return zlib.crc32(vector, zlib.crc32(repr(rest).encode()))


@record(kw_only=True)
class UndoMeta:
    """What an undo file says of its job.

    ``state`` is ``planned``, ``cutting`` (the transaction may have happened), ``cut``, ``undoing`` or ``undone``.
    ``last`` are the greatest ids at the cut-over, by kind; ``counts`` are of rows that have no entry. ``renew``: the
    calibration belongs to the old vectors. Times are Unix times in seconds.
    """

    job: str
    target: Target
    only: str
    started: float
    state: str = "planned"
    cut: float = 0.0
    undone: float = 0.0
    round: int = 1
    renew: bool = True
    last: Mapping[str, int]
    counts: Mapping[str, int]


class UndoFile(Held):
    """An open undo file. Raises ``sqlite3.Error`` and ``OSError``; used within ``told``."""

    def __init__(self, path: Path) -> None:
        """Open the file at ``path``. ``round`` is the one that entries are put into."""
        self.path = path
        self.round = 1
        self.connection = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
        try:
            self.connection.execute("PRAGMA synchronous=FULL")
            self._pending: dict[Kind, list[tuple[Any, ...]]] = {kind: [] for kind in Kind}
        except BaseException:
            self.connection.close()
            raise

    @classmethod
    def make(cls, path: Path) -> Self:
        """A new one in the place of what stands at ``path``."""
        remove(path)
        make_private(path)
        made = cls(path)
        made.connection.executescript(f"BEGIN;{_TABLES}COMMIT;")
        return made

    @contextlib.contextmanager
    def change(self) -> Iterator[None]:
        """One durable commit, or nothing."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            for kind in Kind:
                self._flush(kind)
            self.connection.execute("COMMIT")
        except BaseException:
            for waiting in self._pending.values():
                waiting.clear()
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def put(self, kind: Kind, entry: Entry) -> None:
        """Write an entry, or replace it; within ``change``."""
        waiting = self._pending[kind]
        waiting.append((*fields(entry).values(), _sum_of(entry)))
        if len(waiting) >= _BATCH:
            self._flush(kind)

    def _flush(self, kind: Kind) -> None:
        self.connection.executemany(
            f"INSERT OR REPLACE INTO {kind} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            self._pending[kind],
        )
        self._pending[kind].clear()

    def drop(self, kind: Kind, identifier: int) -> None:
        """Take an entry out; within ``change``."""
        self.connection.execute(f"DELETE FROM {kind} WHERE id = ?", (identifier,))  # noqa: S608

    def entries(self, kind: Kind) -> Iterator[Entry]:
        """All entries of a kind in order of id, in constant memory."""
        return (entry for entry, _ in self._summed(kind))

    def _summed(self, kind: Kind) -> Iterator[tuple[Entry, int]]:
        for *row, check in self.connection.execute(
            f"SELECT id, digest, form, vector, label, written, ref, round, sum FROM {kind} ORDER BY id"  # noqa: S608
        ):
            yield Entry(*row), check

    def verify(self) -> None:
        """Raises ``StoreError`` where an entry is not what was written: SQLite does not look at what it holds."""
        if not self.sound() or any(_sum_of(entry) != check for kind in Kind for entry, check in self._summed(kind)):
            raise StoreError(
                f"{self.path} was damaged, by a loss of power or by hand, so nothing was put back from it: the backup"
                " beside it, if it is there, is the whole database as it was"
            )

    def count(self, kind: Kind, *, written: bool) -> int:
        """Entries of a kind that got a vector, or those that were left without one."""
        test = "IS NOT NULL" if written else "IS NULL"
        return int(self.connection.execute(f"SELECT count(*) FROM {kind} WHERE written {test}").fetchone()[0])  # noqa: S608

    def in_round(self, kind: Kind) -> tuple[int, int]:
        """Entries of this round that get a vector, and those that are left without one."""
        written, all_of_them = self.connection.execute(
            f"SELECT count(written), count(*) FROM {kind} WHERE round = ?",  # noqa: S608
            (self.round,),
        ).fetchone()
        return written, all_of_them - written

    def attach(self, staging: Path) -> None:
        """Let the vectors of a staging file be read as ``staging.vectors``."""
        # as bytes: a name need not be UTF-8
        self.connection.execute("ATTACH CAST(? AS TEXT) AS staging", (os.fsencode(staging),))

    def changes(self, kind: Kind) -> Iterator[tuple[bytes | None, int]]:
        """(new vector or None, id) of every entry of this round, in order of id; after ``attach``."""
        return self.connection.execute(
            f"SELECT new.vector, {kind}.id FROM {kind} LEFT JOIN staging.vectors AS new"  # noqa: S608
            f" ON new.ref = {kind}.ref WHERE {kind}.round = ? ORDER BY {kind}.id",
            (self.round,),
        )

    def chosen(self, kind: Kind) -> Iterator[tuple[str, int]]:
        """(kind, id) of every entry of this round."""
        return self.connection.execute(
            f"SELECT '{kind}', id FROM {kind} WHERE round = ? ORDER BY id",  # noqa: S608
            (self.round,),
        )

    def meta(self) -> UndoMeta:
        values = {name: json.loads(value) for name, value in self.connection.execute("SELECT name, value FROM meta")}
        return UndoMeta(**{**values, "target": Target(**values["target"])})

    def write_meta(self, **values: object) -> None:
        """Write parts of the description; within ``change``, or as a commit of its own."""
        packed = {name: fields(value) if isinstance(value, Target) else value for name, value in values.items()}
        self.connection.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)", [(name, json.dumps(value)) for name, value in packed.items()]
        )

    def keep_sidecar(self, name: str, content: bytes | None) -> None:
        """Keep what a calibration file held; None says that there was none."""
        self.connection.execute(
            "INSERT OR REPLACE INTO sidecars VALUES (CAST(? AS TEXT), ?)", (os.fsencode(name), content)
        )

    def sidecars(self) -> dict[str, bytes | None]:
        found = self.connection.execute("SELECT CAST(name AS BLOB), content FROM sidecars")
        return {os.fsdecode(name): content for name, content in found}

    def replaces(self) -> bool:
        """Whether any row has an old vector."""
        return any(
            self.connection.execute(f"SELECT 1 FROM {kind} WHERE form <> 'null' LIMIT 1").fetchone()  # noqa: S608
            for kind in Kind
        )

    def old_width(self) -> int | None:
        """Dimensions of the first old vector, None where no row had one."""
        for kind in Kind:
            found = self.connection.execute(
                f"SELECT length(vector) / 4 FROM {kind} WHERE form = 'blob' LIMIT 1"  # noqa: S608
            ).fetchone()
            if found is not None:
                return int(found[0])
        return None

    def sound(self) -> bool:
        """Whether SQLite finds every page in order."""
        return [str(row[0]) for row in self.connection.execute("PRAGMA quick_check(1)")] == ["ok"]


def next_path(database: Path) -> Path:
    return sibling(undo_path(database), ".next")


def open_undo(path: Path) -> UndoFile | None:
    """The undo file at ``path``; None where there is none, or one that was only just begun.

    Raises ``StoreError`` for a file that is no undo file.
    """
    if not is_plain(path):
        return None
    with told(path):
        head = head_of(path, _HEAD)
    if not head.strip(b"\0"):
        return None
    application = int.from_bytes(head[_APPLICATION_AT : _APPLICATION_AT + 4], "big")
    if not head.startswith(MAGIC) or application != APPLICATION:
        raise StoreError(f"{path} is not a file of this tool, which keeps the vectors it replaced there: move it away")
    with told(path):
        return UndoFile(path)


def make_final(database: Path) -> None:
    """Let the undo file that was being prepared take the place of an earlier one. The file must be closed."""
    publish(next_path(database), undo_path(database))
