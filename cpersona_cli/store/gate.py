"""What SQLite must not be asked about: files that are no database, and logs it would drop."""

from __future__ import annotations

from pathlib import Path

from cpersona_cli.store.files import Standing
from cpersona_cli.store.header import head_of, parse
from cpersona_cli.store.kinds import MAGIC, SAMPLE, describe
from cpersona_cli.store.reading import State


def refusal(path: Path, size: int, wal_bytes: int) -> Standing | None:
    """The state of a regular file of ``size`` bytes that is not to be opened, or None for a database.

    ``wal_bytes`` is the size of the ``-wal`` beside it. Raises nothing.
    """
    try:
        head = head_of(path, SAMPLE)
    except PermissionError:
        return Standing(State.NO_PERMISSION, "this user may not read the file")
    except OSError as error:
        return Standing(State.UNREADABLE, f"the system says: {error.strerror}")
    if not head:
        if wal_bytes:
            # SQLite would remove the log as soon as the database is opened.
            why = f"the database has no bytes, and its -wal {wal_bytes}: opening it would drop the log"
            return Standing(State.STALE_WAL, why)
        return Standing(State.EMPTY, "a file without a single byte")
    if not head.startswith(MAGIC):
        return Standing(State.NOT_SQLITE, describe(head, size))
    header = parse(head)
    if header is None or size < header.page_size:
        return Standing(State.CORRUPT, f"cut off within its first page: only {size} bytes are left")
    return None
