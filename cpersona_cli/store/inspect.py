"""Reading a database without changing a byte of it or of its folder: the one way in for every check."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cpersona_cli.install.machine import current_system
from cpersona_cli.install.model import Process, System
from cpersona_cli.install.processes import holders as live_holders
from cpersona_cli.record import replace
from cpersona_cli.store import files, mounts
from cpersona_cli.store.audit_model import Audit, Wants
from cpersona_cli.store.census import Census, count
from cpersona_cli.store.header import HEADER, head_of, parse
from cpersona_cli.store.integrity import PACE, check
from cpersona_cli.store.opening import (
    ChangedError,
    LockedError,
    Method,
    StaleLogError,
    UncopiedError,
    opened,
    steady,
)
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.store.refusal import refusal
from cpersona_cli.store.sidecar import read_calibration
from cpersona_cli.store.sql import code_of, one, stop_at
from cpersona_cli.text import safe

Holders = Callable[[Path], tuple[Process, ...] | None]

#: The share of the time that counting may take before the pages are checked, and where no time would suffice for that.
_COUNTING, _ONLY_COUNTING = 0.6, 0.9
#: The share of that for counting alone, where the rows are audited, too.
_BEFORE_AUDIT = 0.6


def read(
    path: Path,
    *,
    timeout: float = 2.0,
    mountinfo: str | None = None,
    system: System | None = None,
    holders: Holders | None = None,
    wants: Wants | None = None,
) -> Reading:
    """Everything known of the database at ``path`` after at most about ``timeout`` seconds. Raises nothing.

    With ``wants`` its rows are audited, too: how they are dated, and what keeps them from being recalled.
    ``mountinfo`` (in the format of proc(5)), ``system`` and ``holders`` (who has a file open; None when the system
    does not tell) stand for the running system's own. No file is created, written or removed in the database's
    folder, in no state of the database; see ``opening`` for how.
    """
    deadline = time.monotonic() + timeout
    if str(path) == ":memory:":
        return Reading(path=path, state=State.VOLATILE, detail="kept in memory, and lost when the server ends")
    stands = files.standing(path)
    reading = Reading(path=path, state=stands.state, detail=stands.detail)
    if "\0" in str(path):
        return reading
    reading = _surroundings(reading, mountinfo, system or current_system())
    if stands.status is None:
        return _log_without_database(reading) if stands.state is State.MISSING else reading
    windows = os.name == "nt"
    reading = replace(
        reading,
        size=stands.status.st_size,
        mode=None if windows else stands.status.st_mode & 0o7777,
        owner=None if windows else stands.status.st_uid,
        writable=files.may_write(path),
    )
    refused = refusal(path, reading.size, reading.wal_bytes)
    if refused is not None:
        return replace(reading, state=refused.state, detail=refused.detail)
    real = files.real_path(path)
    found = (holders or live_holders)(real)
    reading = replace(reading, holders=found or (), holders_known=found is not None)
    reading = _contents(reading, real, deadline, wants)
    return replace(reading, conflicts=_copies(reading, deadline))


def _surroundings(reading: Reading, mountinfo: str | None, system: System) -> Reading:
    """``reading`` with the folder, the disk and the files beside it."""
    path = reading.path
    beside = files.beside(path)
    reading = replace(reading, files=beside, wal_bytes=beside.get("-wal", 0))
    if ".calibration.json" in beside:
        calibration, problem = read_calibration(files.sibling(path, ".calibration.json"))
        reading = replace(reading, calibration=calibration, calibration_problem=problem)
    folder = files.existing_folder(files.real_path(path))
    if folder is None:  # a drive that is not there
        return replace(reading, folder_writable=False)
    if mountinfo is None:
        mountinfo = mounts.mountinfo_of_this_process() if system == "linux" else ""
    ground = mounts.ground(folder, mountinfo, system)
    return replace(
        reading,
        folder_writable=files.may_write(folder),
        free_bytes=files.free_bytes(folder),
        filesystem=ground.filesystem,
        risk=ground.risk,
        risk_detail=ground.detail,
    )


def _log_without_database(reading: Reading) -> Reading:
    if not reading.wal_bytes:
        return reading
    return replace(
        reading,
        state=State.STALE_WAL,
        detail=f"a -wal of {reading.wal_bytes} bytes stands there without its database;"
        " a server that creates a new one in its place would drop what is in it",
    )


def _contents(reading: Reading, real: Path, deadline: float, wants: Wants | None) -> Reading:
    """``reading`` with what the database holds, tried again while others change it."""
    try:
        header = parse(head_of(real, HEADER))
        reading = replace(reading, journal="wal" if header is not None and header.wal else "rollback")
        in_use = bool(reading.holders) or not reading.holders_known
        return steady(real, partial(_look, reading, real, deadline, wants=wants), deadline, in_use=in_use)
    except sqlite3.DatabaseError as error:
        return _failed(reading, error)
    except StaleLogError as error:
        why = f"the -wal does not belong to the database: {error}"
        return replace(reading, state=State.STALE_WAL, detail=why)
    except LockedError:
        return _locked(reading)
    except UncopiedError as error:
        why = f"its log can only be read from a copy, and {error}"
        return replace(reading, state=State.UNREADABLE, detail=why)
    except (ChangedError, FileNotFoundError):
        return replace(reading, state=State.UNREADABLE, detail="it changed faster than it could be read; try again")
    except OSError as error:
        name = Path(error.filename or real).name
        return replace(reading, state=State.UNREADABLE, detail=f"the system says of {name}: {error.strerror}")


def _look(
    reading: Reading,
    real: Path,
    deadline: float,
    connection: sqlite3.Connection,
    method: Method,
    *,
    wants: Wants | None,
) -> Reading:
    """``reading`` with what one connection sees. Raises ``sqlite3.DatabaseError``."""
    if (
        method == "immutable"
        and reading.holders
        and not reading.folder_writable
        and not files.sibling(real, "-shm").exists()
    ):
        why = "in WAL mode readers share a -shm file; there is none, and this user may not create one in the folder"
        return replace(reading, state=State.FOLDER_READ_ONLY, detail=why)
    census = Census()
    now = time.monotonic()
    checkable = reading.size <= (deadline - now) * (1 - _COUNTING) * PACE
    until = now + (deadline - now) * (_COUNTING if checkable else _ONLY_COUNTING)
    try:
        count(connection, until if wants is None else now + (until - now) * _BEFORE_AUDIT, census)
        if wants is not None and census.state is State.OK:
            census.values["audit"] = _audited(connection, until, wants, census)
    except sqlite3.DatabaseError as error:
        if code_of(error) == sqlite3.SQLITE_INTERRUPT:
            census.unmeasured.append("counts")
        elif code_of(error) == sqlite3.SQLITE_CORRUPT:
            census.state, census.detail = State.CORRUPT, str(error)
        else:
            raise
    counts = census.values.get("counts")
    pages = check(connection, reading.size, counts if isinstance(counts, dict) else {}, deadline)
    if pages.damage:
        census.state, census.detail = State.CORRUPT, pages.damage
    return replace(
        reading,
        state=census.state,
        detail=safe(census.detail),
        method=method,
        integrity=pages.extent,
        unchecked=pages.unchecked,
        unmeasured=tuple(census.unmeasured),
        **census.values,
    )


def _audited(connection: sqlite3.Connection, until: float, wants: Wants, census: Census) -> Audit:
    from cpersona_cli.store.audit import audit  # noqa: PLC0415 - only doctor asks for it

    return audit(connection, until, wants, census)


def _locked(reading: Reading) -> Reading:
    # Somebody holds the lock: where nobody is seen, the system hides who.
    known = reading.holders_known and bool(reading.holders)
    detail = "another process keeps it locked, also for readers"
    return replace(reading, state=State.LOCKED, detail=detail, holders_known=known)


def _failed(reading: Reading, error: sqlite3.DatabaseError) -> Reading:
    code = code_of(error)
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return _locked(reading)
    if code == sqlite3.SQLITE_NOTADB:
        why = "it begins like an SQLite database, but the rest of its header makes no sense"
        return replace(reading, state=State.CORRUPT, detail=why)
    if code == sqlite3.SQLITE_CORRUPT:
        return replace(reading, state=State.CORRUPT, detail=safe(str(error)))
    if code == sqlite3.SQLITE_PROTOCOL:
        why = "SQLite says “locking protocol”: this file system does not give it the locks it needs"
        return replace(reading, state=State.UNREADABLE, detail=why)
    return replace(reading, state=State.UNREADABLE, detail=f"SQLite says “{safe(str(error))}”")


def _copies(reading: Reading, deadline: float) -> tuple[tuple[str, int | None], ...]:
    """Conflict copies beside the database with the memories in each, None where they cannot be counted."""
    names = mounts.conflict_copies(reading.path, synced=reading.risk == "synced")
    return tuple((name, _memories_in(reading.path.with_name(name), deadline)) for name in names)


def _memories_in(path: Path, deadline: float) -> int | None:
    try:
        if files.standing(path).state is not State.OK or parse(head_of(path, HEADER)) is None:
            return None
        with opened(path, "immutable", deadline) as connection:
            stop_at(connection, deadline)
            return one(connection, "SELECT count(*) FROM memories")
    except (sqlite3.Error, OSError):
        return None
