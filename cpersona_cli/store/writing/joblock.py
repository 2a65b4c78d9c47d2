"""One job per database at a time: a lock of the operating system, which a process that dies gives up by dying."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Self

from cpersona_cli.store.files import real_path, sibling
from cpersona_cli.store.job import JobError
from cpersona_cli.store.writing.disk import told

#: Suffix of the lock file. It holds the process id of who works, and is gone when nobody does.
LOCK = ".reembed.lock"
#: Windows lets nobody read bytes that are locked, so the byte that stands for the job is far behind the process id.
_PLACE = 1 << 20
#: Seconds within which a look from ``busy`` is over.
_LOOK = 0.2


class JobLock:
    """The right to work on one database's job; held until ``release``, or until the process ends.

    A file of its own carries the lock: SQLite's locks on the files of a job would be dropped by closing a descriptor.
    """

    def __init__(self, database: Path) -> None:
        self._path = sibling(real_path(database), LOCK)
        self._descriptor = -1
        self._database = database

    def acquire(self) -> Self:
        """Take the lock. Raises ``JobError`` when another process has it, naming that process."""
        with told(self._path):
            until = time.monotonic() + _LOOK
            while not self._try():
                if time.monotonic() > until:
                    holder = _holder(self._path)
                    who = f"process {holder}" if holder else "another process"
                    raise JobError(f"{who} is at work on {self._database} right now: let it finish, or stop it")
                time.sleep(0.01)
        return self

    def _try(self) -> bool:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(self._path, flags, 0o600)
        try:
            lock_descriptor(descriptor)
            # Whoever held it before may have removed the file after we opened it.
            if os.fstat(descriptor).st_ino == self._path.stat().st_ino:
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
                self._descriptor, descriptor = descriptor, -1
                return True
        except (BlockingIOError, PermissionError, FileNotFoundError):
            pass
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        return False

    def release(self) -> None:
        """Give the lock back; nothing happens when it is not held."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        if os.name == "nt":  # pragma: no cover - an open file cannot be removed there
            os.close(descriptor)
            with contextlib.suppress(OSError):
                self._path.unlink()
            return
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(descriptor)

    def __enter__(self) -> Self:
        return self if self._descriptor >= 0 else self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def busy(database: Path) -> int | None:
    """The process that works on a job of ``database`` now, 0 where it does not say which; None where none does."""
    path = sibling(real_path(database), LOCK)
    try:
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    try:
        lock_descriptor(descriptor)
    except OSError:
        return _holder(path)
    finally:
        os.close(descriptor)
    return None


def _holder(path: Path) -> int:
    try:
        return int(path.read_bytes()[:20] or b"0")
    except (OSError, ValueError):
        return 0


def lock_descriptor(descriptor: int, place: int = _PLACE) -> None:
    """Lock without waiting. Raises ``OSError`` when another has it."""
    if sys.platform == "win32":  # pragma: no cover
        import msvcrt  # noqa: PLC0415 - not elsewhere

        os.lseek(descriptor, place, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        import fcntl  # noqa: PLC0415 - not on Windows

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
