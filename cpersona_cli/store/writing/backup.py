"""The backup before a job: a whole copy of the database, as it was at one moment, read back before it counts."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from cpersona_cli.record import record
from cpersona_cli.store.files import sibling
from cpersona_cli.store.job import backup_path
from cpersona_cli.store.model import StoreError
from cpersona_cli.store.writing.disk import make_private, publish, remove, told
from cpersona_cli.store.writing.mainfile import Main
from cpersona_cli.store.writing.staging import Staging

#: Pages copied between two calls of ``tell``.
_PAGES = 2048
#: Under which name a job keeps which file is its backup.
_KEPT = "backup"

#: ``tell(phase, done, total)``, in bytes
Tell = Callable[[str, int, int], None]


@record
class Backup:
    """A backup: where it is, its bytes, and whether it was made now or by an earlier run of the same job."""

    path: Path
    bytes: int
    made: bool


def back_up(staging: Staging, tell: Tell | None = None) -> Backup:
    """Copy the database of a job beside it, unless the job has a backup already.

    The copy is of one moment, whatever servers write meanwhile, and they are not kept from writing. It replaces the
    backup of an earlier job once it was read back whole. Raises ``StoreError``, with nothing left of a half one.
    """
    path = backup_path(staging.database)
    if made_by(staging):
        return Backup(path, path.stat().st_size, made=False)
    made = copied(staging.database, path, tell)
    staging.keep(_KEPT, stamp(path))
    return made


def copied(database: Path, path: Path, tell: Tell | None = None) -> Backup:
    """Copy ``database`` to ``path``, as ``back_up`` does. Raises ``StoreError``."""
    new = sibling(path, ".new")
    with told(new):
        try:
            remove(new)
            make_private(new)
            with Main(database) as main:
                counts = _copy(main, new, tell)
            _read_back(new, counts, database)
            publish(new, path)
        except BaseException:
            remove(new)
            raise
        return Backup(path, path.stat().st_size, made=True)


def made_by(staging: Staging) -> bool:
    """Whether the backup beside the database is the job's own, as it was made."""
    try:
        return bool(staging.kept(_KEPT) == stamp(backup_path(staging.database)))
    except OSError:
        return False


def stamp(path: Path) -> list[int]:
    """What tells a backup from any later one at the same place. Raises ``OSError``."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _copy(main: Main, new: Path, tell: Tell | None) -> dict[str, int]:
    """Copy within one read transaction: SQLite would begin anew whenever another process writes."""
    (size,) = main.connection.execute("PRAGMA page_size").fetchone()

    def step(_status: int, remaining: int, total: int) -> None:
        if tell:
            tell("backup", (total - remaining) * size, total * size)

    main.connection.execute("BEGIN")
    counts = _counts(main.connection)
    with contextlib.closing(sqlite3.connect(new)) as copy:
        copy.execute("PRAGMA synchronous=OFF")  # brought to the disk in one go before it gets its name
        main.connection.backup(copy, pages=_PAGES, progress=step)
    main.connection.execute("ROLLBACK")
    return counts


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    return {
        table: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608
        for table in ("memories", "episodes", "profiles", "schema_version")
    }


def _read_back(new: Path, counts: dict[str, int], database: Path) -> None:
    address = "file:" + quote(new.absolute().as_posix().encode("utf-8", "surrogateescape"))
    with contextlib.closing(sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True)) as copy:
        messages = [str(row[0]) for row in copy.execute("PRAGMA quick_check(1)")]
        # Later SQLites compare text indexes as well; one that lags behind is no damage.
        if any(message != "ok" and "FTS5 table" not in message for message in messages):
            raise StoreError(f"{database} is damaged ({messages[0]}): restore it from a backup of your own first")
        if _counts(copy) != counts:
            raise StoreError(f"the backup of {database} does not hold all of its rows: nothing was begun")
