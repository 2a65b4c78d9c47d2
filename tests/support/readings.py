"""Reading a store in a test, and the states it may be in."""

from __future__ import annotations

from pathlib import Path

from support.stores import Other, untouched

from cpersona_cli.install.model import Process
from cpersona_cli.store import inspect
from cpersona_cli.store.reading import Reading

ROOT_DISK = "1 0 0:1 / / rw - ext4 /dev/x rw"

ADD = "INSERT INTO memories(agent_id, content, timestamp) VALUES ('cirrus', 'one more', '2025-04-01T00:00:00+00:00')"


def nobody(path: Path) -> tuple[Process, ...]:
    return ()


def read(path: Path, *, holders: inspect.Holders = nobody, timeout: float = 10.0) -> Reading:
    """A reading that finds nobody else, on an ordinary disk."""
    return inspect.read(path, timeout=timeout, mountinfo=ROOT_DISK, system="linux", holders=holders)


def quietly(path: Path, *, holders: inspect.Holders = nobody, timeout: float = 10.0) -> Reading:
    """A reading during which the folder must stay as it is, byte for byte."""
    with untouched(path.parent):
        return read(path, holders=holders, timeout=timeout)


def crash_with_log(database: Path) -> None:
    """Leave a log with one committed row, and no ``-shm``."""
    with Other(database, "PRAGMA wal_autocheckpoint=0", ADD) as other:
        other.crash()
    database.with_name(database.name + "-shm").unlink()


def spoil_the_schema(database: Path) -> None:
    with database.open("r+b") as file:
        file.seek(100)
        file.write(b"\xee" * 200)
