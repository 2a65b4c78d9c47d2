"""Vectors as the server stores them: which numbers of a reply, and as which bytes."""

from __future__ import annotations

import array
import math
import struct
import sys
from collections.abc import Sequence

from cpersona_cli.embedding.model import Mode

#: Bytes of one dimension.
FLOAT = 4
#: The server leaves a vector that is shorter than this as it is.
_NO_LENGTH = 1e-9


def pack(mode: str, vector: Sequence[float]) -> bytes:
    """The bytes the server would store for one vector of a reply: little-endian 32-bit floats without a header.

    Mode ``api`` scales to length one first, mode ``http`` stores what came (embedding_client.py of 2.6.14). Raises
    ``OverflowError`` for a number that no 32-bit float holds.
    """
    blob = struct.pack(f"<{len(vector)}f", *vector)
    if mode != Mode.API:
        return blob
    single = struct.unpack(f"<{len(vector)}f", blob)
    length = math.hypot(*single)
    if length <= _NO_LENGTH:
        return blob
    return struct.pack(f"<{len(single)}f", *(value / length for value in single))


def unpack(blob: bytes | None) -> array.array[float] | None:
    """The numbers of a stored vector, or None where there is none or its bytes are no whole number of floats."""
    if not isinstance(blob, bytes) or not blob or len(blob) % FLOAT:
        return None
    values = array.array("f")
    values.frombytes(blob)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def length(blob: bytes | None) -> float | None:
    """The Euclidean length of a stored vector; None where it cannot be read, or holds what is no finite number."""
    values = unpack(blob)
    if values is None:
        return None
    size = math.hypot(*values)
    return size if math.isfinite(size) else None
