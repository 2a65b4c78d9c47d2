"""Some stored texts, read without changing a byte: the longest ones, and others from the whole of the table."""

from __future__ import annotations

import sqlite3
import struct
import time
from pathlib import Path

from cpersona_cli.record import record
from cpersona_cli.store.files import real_path
from cpersona_cli.store.opening import ChangedError, LockedError, UncopiedError, method_for, opened
from cpersona_cli.store.sql import stop_at

_ATTEMPTS = 3


class SampleError(Exception):
    """No texts could be read; the message says why."""


@record
class Row:
    """One memory: its id, its text, and its vector (empty where it has none, or none that can be read)."""

    id: int
    text: str
    vector: tuple[float, ...] = ()


def sample(path: Path, count: int, *, timeout: float = 5.0) -> list[Row]:
    """At most ``count`` memories with a text: half of them the longest, the rest at even distances, in order of id.

    Blank ones are left out, as the server never embeds them. To be asked of a database that ``inspect.read`` found
    in order. Raises ``SampleError``.
    """
    real = real_path(path)
    deadline = time.monotonic() + timeout
    for attempt in range(_ATTEMPTS):
        try:
            with opened(real, method_for(real), deadline) as connection:
                stop_at(connection, deadline)
                return _rows(connection, count)
        except ChangedError:
            if attempt == _ATTEMPTS - 1:
                raise SampleError(f"{path} changes faster than it can be read") from None
        except LockedError:
            raise SampleError(f"{path} is locked by another process") from None
        except UncopiedError as error:
            raise SampleError(f"{path} cannot be read: {error}") from None
        except (sqlite3.Error, OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise SampleError(f"{path} cannot be read: {why or type(error).__name__}") from None
    raise AssertionError(path)


def _rows(connection: sqlite3.Connection, count: int) -> list[Row]:
    filled = "typeof(content) = 'text' AND trim(content, ' \t\n\r') <> ''"
    longest = connection.execute(
        f"SELECT id FROM memories WHERE {filled} ORDER BY length(content) DESC, id LIMIT ?",  # noqa: S608 - constant
        ((count + 1) // 2,),
    ).fetchall()
    chosen = {int(identifier) for (identifier,) in longest}
    others = [
        int(identifier)
        for (identifier,) in connection.execute(f"SELECT id FROM memories WHERE {filled} ORDER BY id")  # noqa: S608
        if identifier not in chosen
    ]
    wanted = min(count - len(chosen), len(others))
    chosen.update(others[len(others) * place // wanted] for place in range(wanted))
    rows = []
    for identifier in sorted(chosen):
        found = connection.execute("SELECT content, embedding FROM memories WHERE id = ?", (identifier,)).fetchone()
        if found is not None:
            rows.append(Row(identifier, str(found[0]), _vector(found[1])))
    return rows


def _vector(blob: object) -> tuple[float, ...]:
    """Little-endian 32-bit floats, as the server writes them."""
    if not isinstance(blob, bytes) or len(blob) % 4:
        return ()
    return struct.unpack(f"<{len(blob) // 4}f", blob)
