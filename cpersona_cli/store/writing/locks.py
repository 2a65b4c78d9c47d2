"""Who else has a database open."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from urllib.parse import quote

from cpersona_cli.install.model import Process
from cpersona_cli.install.processes import holders
from cpersona_cli.record import record
from cpersona_cli.store.files import real_path
from cpersona_cli.store.sql import code_of
from cpersona_cli.store.writing.disk import told


@record(kw_only=True)
class Use:
    """Who uses a database: ``holders`` where the system tells (Windows does not).

    ``alone``: SQLite found that no other connection is open; that holds where the system does not tell, too.
    """

    holders: tuple[Process, ...] = ()
    alone: bool = True

    @property
    def live(self) -> bool:
        return bool(self.holders) or not self.alone


def in_use(database: Path) -> Use:
    """Who has a database open at this moment. Raises ``StoreError``."""
    return Use(holders=holders(real_path(database)) or (), alone=_alone(database))


def _alone(database: Path) -> bool:
    """Whether this process could have the whole file to itself, which any other open connection prevents."""
    with told(database), contextlib.closing(_open(database)) as connection:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        alone = _begins(connection)
        connection.execute("PRAGMA locking_mode=NORMAL")
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # gives the locks back
        return alone


def _begins(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if code_of(error) != sqlite3.SQLITE_BUSY:
            raise
        return False
    connection.execute("ROLLBACK")
    return True


def _open(database: Path) -> sqlite3.Connection:
    address = "file:" + quote(real_path(database).as_posix().encode("utf-8", "surrogateescape"))
    return sqlite3.connect(f"{address}?mode=rw", uri=True, timeout=0.0, isolation_level=None)
