"""Opening a database so that its folder stays as it was, bit for bit.

A plain read-only connection to a database in WAL mode creates ``-shm`` and ``-wal``, writes its read marks into
``-shm``, and leaves both behind. So a file is read in one of three ways (measured on SQLite 3.40):

* ``immutable``: the header says WAL and there is no log, or an empty one. Everything is in the main file; SQLite
  takes no locks and looks for no other file. Nobody can change the main file without a log appearing first, so the
  stamps before and after tell whether the answer holds.
* ``in-place``: a log and its ``-shm`` exist, or the database uses a rollback journal. ``mode=ro`` with
  ``readonly_shm=1`` joins the others' locks without writing a byte: with a live server it reads a snapshot, without
  one SQLite rebuilds the log's index in its own memory. A read-only connection can neither checkpoint nor remove the
  log when it closes. If the server itself closes meanwhile, it leaves its log to the next start, as after a crash:
  nothing is lost.
* ``copy``: a log without ``-shm``, or a journal of a transaction that was cut off. SQLite would have to write, so it
  gets a private copy, made between two equal stamps.

POSIX drops a process's locks on a file when the process closes any descriptor of it. That is harmless here: this
process never holds a lock that protects a write, and an answer whose stamps differ is thrown away.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import quote

from cpersona_cli.store.files import free_bytes, sibling, size_of
from cpersona_cli.store.header import HEADER, head_of, parse, why_stale
from cpersona_cli.store.sql import code_of

T = TypeVar("T")
Method = Literal["in-place", "immutable", "copy"]
#: What is done with a connection, told by which method it reads.
Look = Callable[[sqlite3.Connection, Method], T]

#: Seconds to wait for a lock another process holds.
WAIT = 1.0
#: A database with its log is copied up to this many bytes.
COPY_LIMIT = 256 << 20
#: Free bytes a copy must leave on the disk of the temporary folder.
_SPARE = 64 << 20

_CHUNK = 1 << 20
#: Attempts at a database that changes while it is read: clients that come and go several times a second.
_ATTEMPTS = 12
#: The bytes SQLite locks in the main file (os.h: SHARED_FIRST, SHARED_SIZE).
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510

Stamp = tuple[object, ...]


class ChangedError(Exception):
    """The file or its logs changed while they were read; a new attempt may succeed."""


class LockedError(Exception):
    """Another process keeps the whole file to itself."""


class UncopiedError(Exception):
    """The database can only be read from a copy, and the copy cannot be made; the message says why."""


class StaleLogError(Exception):
    """The ``-wal`` does not belong to the main file; SQLite would replay it, or drop it. The message says why."""


def steady(path: Path, look: Look[T], deadline: float, *, in_use: bool = True) -> T:
    """What ``look`` makes of the database at ``path`` (links followed), tried again while others change the file.

    ``in_use`` says that somebody may have the database open, which a log as old as the last start is no proof against.
    Raises what ``once`` does; ``ChangedError`` only when the file never rested, or not before ``deadline`` of
    ``time.monotonic``.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return once(path, look, deadline, in_use=in_use)
        except (ChangedError, FileNotFoundError):
            if time.monotonic() > deadline:
                break
            time.sleep(0.01 * attempt)
    raise ChangedError


def once(path: Path, look: Look[T], deadline: float, *, in_use: bool) -> T:
    """One attempt of ``steady``.

    Raises ``sqlite3.Error``, ``OSError``, ``ChangedError``, ``LockedError``, ``UncopiedError`` and ``StaleLogError``.
    """
    before = stamp(path)
    log = sibling(path, "-wal")
    if size_of(log):
        why = why_stale(path, log, in_use=in_use)
        if why:
            raise ChangedError if stamp(path) != before else StaleLogError(why)
    method = method_for(path)
    try:
        result = _by(method, path, look, deadline)
    except sqlite3.DatabaseError as error:
        if method == "immutable" and stamp(path) != before:
            raise ChangedError from error
        if method != "in-place" or code_of(error) not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
            raise
        # A -shm this user may not read, or a journal that has to be rolled back first.
        return _by("copy", path, look, deadline)
    if method == "immutable" and stamp(path) != before:
        raise ChangedError
    return result


def _by(method: Method, path: Path, look: Look[T], deadline: float) -> T:
    with opened(path, method, deadline) as connection:
        return look(connection, method)


def stamp(path: Path) -> Stamp:
    """What differs as soon as anybody writes to the database at ``path``. Raises ``OSError``."""
    return (_identity(path), head_of(path, HEADER), *(_log_stamp(sibling(path, name)) for name in ("-wal", "-journal")))


def _identity(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _log_stamp(log: Path) -> tuple[object, ...]:
    try:
        return (*_identity(log), head_of(log, 32))
    except FileNotFoundError:
        return ()


def method_for(path: Path) -> Method:
    """The way to read the database at ``path`` (see the module's text). Raises ``OSError``."""
    log, journal = size_of(sibling(path, "-wal")), size_of(sibling(path, "-journal"))
    if log:
        return "in-place" if size_of(sibling(path, "-shm")) else "copy"
    header = parse(head_of(path, HEADER))
    if log is None and (header is None or not header.wal):
        return "in-place"
    return "copy" if journal else "immutable"


@contextlib.contextmanager
def opened(path: Path, method: Method, deadline: float) -> Iterator[sqlite3.Connection]:
    """A connection that reads ``path`` by ``method`` until ``deadline`` (of ``time.monotonic``).

    Raises ``sqlite3.Error``, ``OSError``, ``ChangedError``, ``LockedError`` and ``UncopiedError``.
    """
    if method == "copy":
        with _copied(path, deadline) as copy, _connected(copy, "mode=rw", deadline) as connection:
            yield connection
        return
    if method == "immutable":
        with _connected(path, "mode=ro&immutable=1", deadline) as connection:
            yield connection
        return
    with (
        _held(path, min(deadline, time.monotonic() + WAIT)),
        _connected(path, "mode=ro&readonly_shm=1", deadline) as connection,
    ):
        yield connection


@contextlib.contextmanager
def _connected(path: Path, options: str, deadline: float) -> Iterator[sqlite3.Connection]:
    wait = max(0.0, min(WAIT, deadline - time.monotonic()))
    connection = sqlite3.connect(
        f"{_address(path)}?{options}", uri=True, timeout=wait, isolation_level=None, check_same_thread=False
    )
    try:
        # Foreign text in any state of repair must not stop the reading.
        connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
        connection.execute("PRAGMA trusted_schema=OFF")
        yield connection
    finally:
        connection.close()


def _address(path: Path) -> str:
    """``path`` as a ``file:`` address without authority, its bytes as the system has them."""
    text = path.absolute().as_posix()
    if text.startswith("//"):
        text = f"//{text}"
    elif not text.startswith("/"):
        text = f"/{text}"
    return "file:" + quote(os.fsencode(text))


@contextlib.contextmanager
def _held(path: Path, until: float) -> Iterator[None]:
    """Keep a server that is just closing from removing its log between our look and SQLite's.

    The last connection removes the log under an exclusive lock of the main file. SQLite, finding the log gone, would
    create an empty one. A shared lock taken first makes the look and the opening one step. Where there is no log, or
    no such locks, nothing is held.
    """
    try:
        import fcntl  # noqa: PLC0415 - absent on Windows
    except ImportError:
        yield
        return
    if size_of(sibling(path, "-wal")) is None:
        yield
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        while True:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED_FIRST)
            except (BlockingIOError, PermissionError) as error:
                if time.monotonic() > until:
                    raise LockedError from error
                time.sleep(0.01)
                continue
            except OSError:  # no locks on this file system; SQLite will say so in its own words
                pass
            break
        # Only stat from here on: opening and closing the file would drop the lock.
        if size_of(sibling(path, "-wal")) is None or not size_of(sibling(path, "-shm")):
            raise ChangedError
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _copied(path: Path, deadline: float) -> Iterator[Path]:
    """A private copy of the database and its log, removed afterwards."""
    before = stamp(path)
    parts = [part for part in (path, sibling(path, "-wal"), sibling(path, "-journal")) if size_of(part)]
    total = sum(size_of(part) or 0 for part in parts)
    if total > COPY_LIMIT:
        raise UncopiedError(f"it has {total >> 20} MiB with its log, and at most {COPY_LIMIT >> 20} MiB are copied")
    folder = Path(tempfile.mkdtemp(prefix="cpersona-cli-"))
    # The copy holds memories: it must not outlive a run that a signal or a deadline ends while a thread reads it.
    discard = partial(_discard, folder)
    atexit.register(discard)
    try:
        free = free_bytes(folder)
        if free is not None and free < 2 * total + _SPARE:
            raise UncopiedError(f"the disk of {folder.parent} has only {free >> 20} MiB free")
        for part in parts:
            _copy(part, folder / ("copy" + part.name.removeprefix(path.name)), deadline)
        if stamp(path) != before:
            raise ChangedError
        yield folder / "copy"
    finally:
        discard()
        atexit.unregister(discard)


def _discard(folder: Path) -> None:
    """Remove a copy, also one that a thread is still making."""
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def _copy(source: Path, target: Path, deadline: float) -> None:
    try:
        with source.open("rb") as reader, target.open("wb") as writer:
            while chunk := reader.read(_CHUNK):
                writer.write(chunk)
                if time.monotonic() > deadline:
                    raise UncopiedError("there was no time to copy it")
    except FileNotFoundError as error:
        raise ChangedError from error
