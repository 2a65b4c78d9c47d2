"""What a file is that is not an SQLite database, told from its first bytes."""

from __future__ import annotations

import re
from collections import Counter

#: The first sixteen bytes of every SQLite 3 database.
MAGIC = b"SQLite format 3\x00"

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
