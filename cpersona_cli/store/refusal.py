"""What SQLite must not be asked about: files that are no database, and what they are; and logs it would drop."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from cpersona_cli.store.files import Standing
from cpersona_cli.store.header import MAGIC, head_of, parse
from cpersona_cli.store.reading import State

#: Bytes ``describe`` wants to see.
SAMPLE = 4096

_SIGNATURES = (
    (b"** This file contains an SQLite 2", "this is a database of SQLite 2, which no SQLite 3 can open"),
    (b"version https://git-lfs.github.com/spec/", "this is a Git LFS pointer: the real file was never fetched"),
    (b"\x1f\x8b", "this is a gzip archive"),
    (b"PK\x03\x04", "this is a zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "this is a 7z archive"),
    (b"\xfd7zXZ\x00", "this is an xz archive"),
    (b"\x28\xb5\x2f\xfd", "this is a zstd archive"),
    (b"BZh", "this is a bzip2 archive"),
    (b"\x37\x7f\x06\x82", "this is the write-ahead log of an SQLite database, not the database itself"),
    (b"\x37\x7f\x06\x83", "this is the write-ahead log of an SQLite database, not the database itself"),
    (b"%PDF-", "this is a PDF document"),
    (b"\x89PNG", "this is a PNG image"),
    (b"\x7fELF", "this is a program"),
)
_HTML = re.compile(rb"^(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_XML = re.compile(rb"^<\?xml\b", re.IGNORECASE)
_SQL = re.compile(
    rb"^(?:--[^\n]*\n\s*)*(?:PRAGMA\s|BEGIN\b|CREATE\s+(?:TABLE|VIRTUAL|INDEX)|INSERT\s+INTO\s|DROP\s+TABLE)",
    re.IGNORECASE,
)


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


def describe(head: bytes, size: int) -> str:
    """Why a file of ``size`` bytes that begins with ``head`` (at most ``SAMPLE`` bytes) is no SQLite database."""
    for signature, sentence in _SIGNATURES:
        if head.startswith(signature):
            return sentence
    if head[8:12] == b"DUCK":
        return "this is a DuckDB database"
    if not head.strip(b"\0"):
        return (
            f"all of its {size} bytes are zeros"
            if size <= len(head)
            else f"it begins with at least {len(head)} zero bytes: the header was overwritten or never reached the disk"
        )
    return _text(head) or _binary(head, size)


def _text(head: bytes) -> str:
    """A sentence when the bytes are text, else nothing."""
    body = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if b"\0" in body:
        return ""
    if _HTML.match(body):
        return "this is an HTML page: a download saved an error or login page in its place"
    if _XML.match(body):
        return "this is an XML document"
    if body[:1] in {b"{", b"["}:
        return "this is a JSON document" + (", perhaps an export of memories" if b'"_type"' in body else "")
    if _SQL.match(body):
        return "this is a text dump of SQL statements: load it into a new database with the sqlite3 program"
    try:
        body.decode()
    except UnicodeDecodeError as error:
        if error.start < len(body) - 4:
            return ""
    return "this is a text file"


def _binary(head: bytes, size: int) -> str:
    # Pages of an encrypted database cannot be told from random bytes; SQLCipher pages are a power of two from 512.
    random = len(head) >= 1024 and max(Counter(head).values()) < len(head) / 64
    if random and size % 512 == 0:
        return "its bytes look random: an encrypted database (SQLCipher or similar), or a file that was overwritten"
    return "it does not begin with the words every SQLite database begins with"
