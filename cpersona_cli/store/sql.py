"""Small helpers of every statement: an end in time, SQLite's codes, names in quotes."""

from __future__ import annotations

import sqlite3
import time

#: SQLite asks after so many of its steps whether to go on; about a millisecond.
_STEPS = 20_000


def stop_at(connection: sqlite3.Connection, deadline: float) -> None:
    """Let every statement of ``connection`` end with ``SQLITE_INTERRUPT`` after ``deadline`` (``time.monotonic``)."""
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)


def code_of(error: sqlite3.Error) -> int:
    """SQLite's primary result code, 0 where the error has none."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def one(connection: sqlite3.Connection, query: str) -> int:
    """The single integer ``query`` answers with, 0 for NULL or anything else."""
    (value,) = connection.execute(query).fetchone() or (0,)
    return value if isinstance(value, int) else 0


def quoted(name: str) -> str:
    """``name`` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
