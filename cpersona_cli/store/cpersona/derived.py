"""The search indexes the server keeps in files beside its database, and whether they still hold its vectors.

A server reads such a file in place of the rows. From schema 20 on a log tells it which rows changed since the file
was made, and it passes the file over when the log cannot tell; before, nothing does. So a few entries are compared
with the rows they were made from.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from cpersona_cli.record import record
from cpersona_cli.store.cpersona.features import Features
from cpersona_cli.store.files import sibling
from cpersona_cli.store.model import IndexFile

#: Entries of a file that are compared.
COMPARED = 64
#: Bytes of a header; it names every agent, project and channel.
_HEADER = 64 << 20


@record(kw_only=True)
class _Layout:
    """How the entries of one kind of file lie behind its header (vector_index.py, coarse_index.py, block_index.py).

    Columns follow each other, each with as many bytes an entry: ``before`` the vectors, which are ``size(width)``
    wide, and ``after`` them.
    """

    magic: bytes
    formats: tuple[int, ...]
    width: str  # its name in the header
    before: tuple[int, ...]
    after: tuple[int, ...]
    size: Callable[[int], int]
    dimensions: Callable[[int], int] = int
    clock: str = "vector_log_clock"  # whose numbers the header repeats
    changes: str = "SELECT 1 FROM record_vector_changes WHERE seq > ? AND kind = ? AND record_id = ?"


_VECTORS = _Layout(
    magic=b"CPXIDX01", formats=(2, 3), width="dim", before=(8,), after=(4, 4, 4, 4, 19), size=lambda width: 4 * width
)
_COARSE = _Layout(
    magic=b"CPXBIT01",
    formats=(1, 2),
    width="dim",
    before=(8, 4, 4, 4, 4),
    after=(19, 19),
    size=lambda width: (width + 7) // 8,
)
_BLOCKS = _Layout(
    magic=b"CPXBLK01",
    formats=(1,),
    width="width",
    before=(8, 4, 4, 4, 4, 2, 1, 1),
    after=(),
    size=int,
    dimensions=lambda width: 8 * width,
    clock="block_log_clock",
    changes="SELECT 1 FROM record_block_changes WHERE seq > ? AND parent_kind = ? AND parent_id = ?",
)
#: Suffix of the database's name -> layout, table.
_FILES = {
    ".memories.vecindex": (_VECTORS, "memories"),
    ".episodes.vecindex": (_VECTORS, "episodes"),
    ".memories.coarseindex": (_COARSE, "memories"),
    ".blocks.blockindex": (_BLOCKS, "record_blocks"),
}
_KINDS = {"memories": "mem", "episodes": "ep"}


@record(kw_only=True)
class _Head:
    """What a file says of itself; ``base`` is where its entries begin."""

    width: int
    rows: int
    format: int
    base: int
    fields: Mapping[str, object]


def indexes(connection: sqlite3.Connection, features: Features, path: Path) -> tuple[IndexFile, ...]:
    """The index files of the database at ``path`` (as it was given). Raises ``sqlite3.Error``."""
    return tuple(
        found for suffix in _FILES if (found := _index(connection, features, sibling(path, suffix), suffix)) is not None
    )


def _index(connection: sqlite3.Connection, features: Features, file: Path, suffix: str) -> IndexFile | None:
    layout, table = _FILES[suffix]
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, 2)
            head = _head(stream, layout)
            if head is None:
                return IndexFile(name=file.name, size=size)
            unsafe = ""
            if size == head.base + head.rows * (sum(layout.before + layout.after) + layout.size(head.width)):
                unsafe = _unsafe(connection, features, stream, head, layout=layout, table=table)
    except FileNotFoundError:
        return None
    except OSError:  # a folder, or no permission: the server cannot read it either
        return IndexFile(name=file.name, size=0)
    return IndexFile(
        name=file.name,
        size=size,
        width=layout.dimensions(head.width),
        rows=head.rows,
        format=head.format,
        unsafe=unsafe,
    )


def _head(stream: BinaryIO, layout: _Layout) -> _Head | None:
    """The header of a file, None where it is not one of the layout's."""
    stream.seek(0)
    start = stream.read(12)
    if len(start) < 12 or not start.startswith(layout.magic):
        return None
    (length,) = struct.unpack("<I", start[8:])
    if length > _HEADER:
        return None
    try:
        fields = json.loads(stream.read(length).decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    numbers = [fields.get(name) for name in (layout.width, "count", "format")]
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        return None
    width, rows, version = (int(number) for number in numbers if isinstance(number, int))
    return _Head(width=width, rows=rows, format=version, base=12 + length, fields=fields)


def _unsafe(
    connection: sqlite3.Connection,
    features: Features,
    stream: BinaryIO,
    head: _Head,
    *,
    layout: _Layout,
    table: str,
) -> str:
    """Why the file may answer with vectors that are no longer in the database; empty where it does not."""
    logged = layout.clock in features.columns
    if features.table(table) is None or not head.rows or head.format not in layout.formats:
        return ""
    if logged and _passed_over(connection, features, head, layout):
        return ""
    compared = differing = 0
    for number in range(min(COMPARED, head.rows)):
        entry = _entry(stream, head, layout, head.rows * number // min(COMPARED, head.rows))
        stored = _stored(connection, table, layout, entry)
        if stored is None:
            continue
        compared += 1
        kind, identifier, vector = stored
        if vector != entry[-1] and not (
            logged and connection.execute(layout.changes, (head.fields.get("built_seq"), kind, identifier)).fetchone()
        ):
            differing += 1
    if not differing:
        return ""
    log = "the log of changes does not name them" if logged else f"schema {features.schema} keeps no log of changes"
    return f"{differing} of {compared} entries compared are no longer the vectors of their rows, and {log}"


def _passed_over(connection: sqlite3.Connection, features: Features, head: _Head, layout: _Layout) -> bool:
    """Whether the server sees that it cannot rely on the file (vector_index.changed_since_build)."""
    clock = connection.execute(
        f"SELECT logging, generation, head, pruned_through FROM {layout.clock} WHERE id = 0"  # noqa: S608 - our own names
    ).fetchone()
    built = head.fields.get("built_seq")
    if clock is None or not isinstance(built, int) or head.format != layout.formats[-1]:
        return True
    logging, generation, newest, pruned = clock
    return (
        logging != 1
        or generation != head.fields.get("generation")
        or not pruned <= built <= newest
        or features.cookie != head.fields.get("schema_cookie")
    )


def _entry(stream: BinaryIO, head: _Head, layout: _Layout, number: int) -> Sequence[bytes]:
    """One entry of each column before the vectors, and the vector."""
    found, base = [], head.base
    for size in (*layout.before, layout.size(head.width)):
        stream.seek(base + number * size)
        found.append(stream.read(size))
        base += head.rows * size
    return found


def _stored(
    connection: sqlite3.Connection, table: str, layout: _Layout, entry: Sequence[bytes]
) -> tuple[str, int, object] | None:
    """(kind, id, vector as the file would hold it) of an entry's row; None where it is gone or was never measured."""
    (identifier,) = struct.unpack("<q", entry[0])
    if layout is _BLOCKS:
        kind = "mem" if entry[6] == b"\1" else "ep"
        (block,) = struct.unpack("<i", entry[1])
        found = connection.execute(
            "SELECT embedding_bits FROM record_blocks WHERE parent_kind = ? AND parent_id = ? AND block_index = ?",
            (kind, identifier, block),
        ).fetchone()
        return None if found is None or entry[7] == b"\0" else (kind, identifier, found[0])
    found = connection.execute(f"SELECT embedding FROM {table} WHERE id = ?", (identifier,)).fetchone()  # noqa: S608
    if found is None:
        return None
    vector = found[0]
    return _KINDS[table], identifier, _signs(vector) if layout is _COARSE else vector


def _signs(vector: object) -> object:
    """One bit for each number above nought, the first in the highest place; what is no vector stays as it is."""
    if not isinstance(vector, bytes) or len(vector) % 4:
        return vector
    numbers = struct.unpack(f"<{len(vector) // 4}f", vector)
    bits = "".join("1" if number > 0 else "0" for number in numbers)
    return int(bits.ljust(-(-len(bits) // 8) * 8, "0") or "0", 2).to_bytes(-(-len(bits) // 8), "big")
