"""The database itself, opened for writing: what it has, its rows as they are stored, and the write lock."""

from __future__ import annotations

import contextlib
import hashlib
import math
import sqlite3
import sys
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from cpersona_cli.record import record
from cpersona_cli.store.files import real_path, sibling
from cpersona_cli.store.job import digest
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.schema import NEWEST, OLDEST
from cpersona_cli.store.sql import code_of
from cpersona_cli.store.writing.disk import Held, sync, told

#: Kind -> its table and the column that is embedded.
TABLES = {Kind.MEMORY: ("memories", "content"), Kind.EPISODE: ("episodes", "summary")}

#: Seconds SQLite waits for the write lock in one go, so that an interrupt is heard in between.
_PATIENCE = 0.25


@record(kw_only=True)
class Shape:
    """What the database has of the things that differ between releases."""

    schema: int
    tables: frozenset[str]
    labelled: bool  # memories and episodes say which model made their vectors
    wal: bool


@record
class Stored:
    """A row as stored, text as the bytes of its UTF-8.

    ``form`` is SQLite's type of the vector, ``vector`` its bytes or number; ``digest`` is of the text, None where
    that is no text. ``label`` is None where the column is missing.
    """

    id: int
    digest: bytes | None
    form: str
    vector: bytes | int | float | None
    label: bytes | None


class Main(Held):
    """The database at ``path``, open for writing; what it reads of texts are bytes.

    It never checkpoints on its own: that would lengthen the time for which others cannot write. Every method raises
    ``StoreError``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        address = "file:" + quote(real_path(path).as_posix().encode("utf-8", "surrogateescape"))
        with told(path):
            self.connection = sqlite3.connect(
                f"{address}?mode=rw", uri=True, timeout=5.0, isolation_level=None, check_same_thread=False
            )
            try:
                self.connection.text_factory = bytes
                self.connection.execute("PRAGMA wal_autocheckpoint=0")
                self.shape = _shape_of(self.connection, path)
                # In WAL mode a commit is brought to the disk after the lock is given back: see ``settling``.
                self.connection.execute(f"PRAGMA synchronous={'NORMAL' if self.shape.wal else 'FULL'}")
            except BaseException:
                self.connection.close()
                raise

    def rows(self, kind: Kind) -> Iterator[Stored]:
        """Every row of a kind in order of id, in constant memory."""
        table, text = TABLES[kind]
        label = "embedding_model" if self.shape.labelled else "NULL"
        query = f"SELECT id, typeof({text}), {text}, typeof(embedding), embedding, {label} FROM {table} ORDER BY id"  # noqa: S608
        with told(self.path):
            for identifier, text_form, raw, form, vector, named in self.connection.execute(query):
                text_digest = digest_of(raw) if text_form == b"text" else None
                yield Stored(identifier, text_digest, form.decode(), vector, named)

    def count(self) -> int:
        """Rows of all kinds."""
        with told(self.path):
            return sum(
                int(self.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608
                for table, _ in TABLES.values()
            )

    def version(self) -> int:
        """A number that differs as soon as any other connection has changed the database."""
        with told(self.path):
            return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def lock(self, wait: float) -> None:
        """Begin a transaction that nobody else can write beside, within ``wait`` seconds."""
        until = time.monotonic() + wait
        with told(self.path):
            self.connection.execute(f"PRAGMA busy_timeout={int(_PATIENCE * 1000)}")
            while True:
                try:
                    self.connection.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    if code_of(error) != sqlite3.SQLITE_BUSY:
                        raise
                    if time.monotonic() >= until:
                        raise StoreError(
                            f"{self.path} was kept locked by another process for {wait:g} seconds: stop it, or wait"
                            " until it is done, then run the same command again; nothing was changed"
                        ) from error
                    continue
                return

    @contextlib.contextmanager
    def transaction(self, wait: float) -> Iterator[sqlite3.Connection]:
        """One transaction under the write lock; taken back whole where anything in it fails."""
        self.lock(wait)
        try:
            with told(self.path):
                yield self.connection
                self.connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, giving texts as texts.

        Another connection to only read would, when it closes, drop this process's locks on the file.
        """
        former = self.connection.text_factory
        self.connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
        try:
            with told(self.path):
                yield self.connection
        finally:
            self.connection.text_factory = former

    def checkpoint(self) -> None:
        """Bring the log into the database, as far as others let it, and cut it off where nobody reads from it."""
        # What stays in the log is in the database nonetheless.
        with contextlib.suppress(sqlite3.OperationalError):
            self.connection.execute("PRAGMA busy_timeout=0")
            self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            # Takes the write lock, but only for the moment it needs to see that nothing is left to move.
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def make_durable(self) -> None:
        """Bring the last transaction to the disk: in WAL mode its commit did not, so as to be short."""
        if self.shape.wal:
            # The locks are on other files, so a descriptor of this one may be closed.
            with told(self.path), contextlib.suppress(FileNotFoundError):
                sync(sibling(real_path(self.path), "-wal"))


def _shape_of(connection: sqlite3.Connection, database: Path) -> Shape:
    """What the database has. Raises ``StoreError`` for one whose schema this tool does not know."""
    tables = frozenset(
        name.decode("utf-8", "replace")
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    )
    if not {"memories", "episodes", "schema_version"} <= tables:
        raise StoreError(f"{database} is not a database of CPersona: nothing was written")
    (schema,) = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    if not isinstance(schema, int) or schema < OLDEST:
        raise StoreError(
            f"{database} has schema {schema}, whose text index would follow every change of a vector: start the server"
            " once to bring it up to date, then stop it and run this again"
        )
    if schema > NEWEST:
        raise StoreError(
            f"{database} has schema {schema}, and this release knows up to {NEWEST}: update cpersona-cli first"
        )
    labelled = all(
        any(row[1] == b"embedding_model" for row in connection.execute(f"PRAGMA table_info({table})"))
        for table, _ in TABLES.values()
    )
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    return Shape(schema=schema, tables=tables, labelled=labelled, wal=journal == b"wal")


def digest_of(raw: bytes) -> bytes:
    """The digest of a stored text, read as the reading side reads it: bytes that are no UTF-8 are escaped."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return digest(raw.decode("utf-8", "backslashreplace"))
    return hashlib.sha256(raw).digest()


def finite(vector: bytes) -> bool:
    """Whether every component of a vector is a finite number; its bytes are little-endian 32-bit floats."""
    values = array("f")
    values.frombytes(vector)
    if sys.byteorder == "big":  # pragma: no cover
        values.byteswap()
    # Sums of 32-bit floats fit a 64-bit one, so only an infinity or a NaN among them can make one.
    return math.isfinite(sum(values))
