"""The first page of a database and the write-ahead log beside it, read as bytes: formats of sqlite.org/fileformat2."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from struct import iter_unpack, unpack_from

from cpersona_cli.record import record

#: The first sixteen bytes of every SQLite 3 database.
MAGIC = b"SQLite format 3\x00"

#: Bytes of a database header.
HEADER = 100

_LOG_HEADER = 32
_FRAME_HEADER = 24
#: Frames of a log that are looked at. A server checkpoints every 1,000.
_FRAMES = 50_000
#: Seconds by which a main file may be newer than its log: a checkpoint writes it last, and may take a while.
_CHECKPOINT = 60.0


@record
class Header:
    """What the first 100 bytes say. ``changes`` counts transactions that touched the first page."""

    wal: bool
    page_size: int
    changes: int
    pages: int


def parse(head: bytes) -> Header | None:
    """The header of an SQLite 3 database, or None when ``head`` is not one (or is shorter than 100 bytes)."""
    if len(head) < HEADER or not head.startswith(MAGIC):
        return None
    (page_size,) = unpack_from(">H", head, 16)
    changes, pages = unpack_from(">II", head, 24)
    return Header(wal=head[18] == 2, page_size=65536 if page_size == 1 else page_size, changes=changes, pages=pages)


def head_of(path: Path, count: int) -> bytes:
    """The first ``count`` bytes of a file. Never blocks, should a pipe have taken its place. Raises ``OSError``."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags)
    try:
        head = b""
        while len(head) < count and (more := os.read(descriptor, count - len(head))):
            head += more
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(descriptor)
    return head


@record
class Log:
    """The committed part of a write-ahead log.

    ``first`` and ``last`` are the change counters in its first and last copy of the database's first page, None where
    it holds none. ``size`` is the database's size in pages after the last commit, and ``pages`` maps page numbers to
    the offset of their newest copy.
    """

    page_size: int
    first: int | None
    last: int | None
    size: int
    pages: dict[int, int]


def read_log(wal: Path) -> Log | None:
    """Parse a write-ahead log; None when SQLite finds nothing in it, or it is too long. Raises ``OSError``."""
    head = head_of(wal, _LOG_HEADER)
    if len(head) < _LOG_HEADER or head[:3] != b"\x37\x7f\x06" or not _header_sums(head):
        return None
    (page_size,) = unpack_from(">I", head, 8)
    size, first, last = 0, None, None
    pages: dict[int, int] = {}
    pending: dict[int, int] = {}
    counter: int | None = None
    for number, (page, committed, offset, changes) in enumerate(_frames(wal, page_size, head[16:24]), 1):
        if number > _FRAMES:
            return None
        pending[page] = offset
        counter = changes if page == 1 else counter
        if committed:
            pages.update(pending)
            pending.clear()
            size = committed
            if counter is not None:
                first, last = counter if first is None else first, counter
                counter = None
    return Log(page_size, first, last, size, pages) if size else None


def _header_sums(head: bytes) -> bool:
    order = ">II" if head[3] & 1 else "<II"
    one = two = 0
    for left, right in iter_unpack(order, head[:24]):
        one = (one + left + two) & 0xFFFFFFFF
        two = (two + right + one) & 0xFFFFFFFF
    return unpack_from(">II", head, 24) == (one, two)


def _frames(wal: Path, page_size: int, salts: bytes) -> Iterator[tuple[int, int, int, int]]:
    """(page, size of the database after a commit or 0, offset of the page, its change counter) of each valid frame.

    Frames whose salts differ from the header's are left from before the log was last restarted.
    """
    with wal.open("rb", buffering=0) as file:
        for number in range(_FRAMES + 1):
            start = _LOG_HEADER + number * (_FRAME_HEADER + page_size)
            file.seek(start)
            frame = file.read(_FRAME_HEADER + 28)
            if len(frame) < _FRAME_HEADER + 28 or frame[8:16] != salts:
                return
            page, committed = unpack_from(">II", frame)
            (changes,) = unpack_from(">I", frame, _FRAME_HEADER + 24)
            yield page, committed, start + _FRAME_HEADER, changes


def why_stale(path: Path, wal: Path, *, in_use: bool) -> str:
    """Why the log at ``wal`` does not belong to the database at ``path``; empty when it may well. Raises ``OSError``.

    In WAL mode the main file changes only by checkpoints, so its change counter lies between the counter from which
    the log started and the one it ends with; any other value means that one of the two was replaced. A log without a
    copy of the first page leaves the size of the database as it was. Where these say nothing, a main file that is
    clearly newer than the log and differs from it was replaced as well, unless the database is ``in_use``.
    """
    main, log = parse(head_of(path, HEADER)), read_log(wal)
    if main is None or log is None:
        return ""
    if log.page_size != main.page_size:
        return f"its pages have {log.page_size} bytes, those of the database {main.page_size}"
    if log.first is not None and log.last is not None:
        if main.changes > log.last:
            return f"the database went on without it (change {main.changes}; the log ends at {log.last})"
        if main.changes < log.first - 1:
            return f"the database is older than it (change {main.changes}; the log begins at {log.first})"
    elif main.pages != log.size:
        # A change of size is always written to the first page.
        return f"it was written for a database of {log.size} pages, this one has {main.pages}"
    age = path.stat().st_mtime - wal.stat().st_mtime
    if not in_use and age > _CHECKPOINT and _differs(path, wal, log):
        return f"the database was written {_span(age)} after it, and the two hold different pages"
    return ""


def _differs(path: Path, wal: Path, log: Log) -> bool:
    with path.open("rb") as main, wal.open("rb") as changes:
        for page, offset in log.pages.items():
            main.seek((page - 1) * log.page_size)
            changes.seek(offset)
            if main.read(log.page_size) != changes.read(log.page_size):
                return True
    return False


def _span(seconds: float) -> str:
    for size, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {word}{'' if count == 1 else 's'}"
    return f"{int(seconds)} seconds"
