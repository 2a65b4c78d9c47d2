"""Files beside a database that only their owner may read, made and replaced so that power loss leaves old or new."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from cpersona_cli.store.files import sibling
from cpersona_cli.store.model import StoreError
from cpersona_cli.store.sql import code_of

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG} if os.name != "nt" else {errno.ENOSPC, errno.EFBIG}
#: What SQLite keeps beside a database of its own.
_LOGS = ("-wal", "-shm", "-journal")


class Held:
    """A database that is open until ``close``, or the end of a ``with`` block; an open transaction is taken back."""

    connection: sqlite3.Connection

    def close(self) -> None:
        """Close it."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def make_private(path: Path) -> None:
    """Create an empty file that only its owner may read and write. Raises ``FileExistsError`` and ``OSError``.

    A link in its place is never followed.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    os.close(os.open(path, flags, 0o600))


def is_plain(path: Path) -> bool:
    """Whether a regular file stands at ``path``; False where nothing does. Raises ``StoreError`` for anything else."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise StoreError(f"{path} is not a regular file, and this tool keeps a file of its own there; move it away")
    return True


def remove(path: Path) -> bool:
    """Remove a database file of this tool with the logs beside it; whether there was one. Raises ``OSError``."""
    found = False
    for suffix in ("", *_LOGS):
        with contextlib.suppress(FileNotFoundError):
            sibling(path, suffix).unlink()
            found = True
    return found


def sync(path: Path) -> None:
    """Bring the bytes of a file, or the names in a folder, to the disk. Windows has no such thing for folders."""
    if os.name == "nt" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(temporary: Path, final: Path) -> None:
    """Give a finished file its name: what is seen under ``final`` is the old one or the new one, also after a crash.

    Logs that SQLite left beside a former file of that name would be taken for the new one's.
    """
    sync(temporary)
    for suffix in _LOGS:
        with contextlib.suppress(FileNotFoundError):
            sibling(final, suffix).unlink()
    temporary.replace(final)
    sync(final.parent)


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn what SQLite and the system say of writing ``path`` into one sentence. Raises ``StoreError``."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(_sqlite_words(path, error)) from error
    except OSError as error:
        raise StoreError(_system_words(path, error)) from error


def _sqlite_words(path: Path, error: sqlite3.Error) -> str:
    code = code_of(error)
    if code in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}:
        return f"{path} cannot be written ({error}): make room on its disk, then run the same command again"
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return f"{path} is locked by another process: stop it, or wait, then run the same command again"
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return f"{path} is damaged ({error}): nothing more is written to it"
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}:
        return f"{path} cannot be opened for writing ({error}): check the rights of the file and of its folder"
    return f"SQLite refuses to work on {path}: {error}"


def _system_words(path: Path, error: OSError) -> str:
    place = error.filename if isinstance(error.filename, str) else path
    if error.errno in _FULL:
        return f"{place} cannot be written ({error.strerror}): make room on its disk, then run the same command again"
    return f"{place} cannot be written: {error.strerror or type(error).__name__}"
