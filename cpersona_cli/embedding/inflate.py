"""Decompression in bounded steps: a small compressed body must not become a large one in memory.

The HTTP client's own decoder turns each received piece into all it expands to. This one yields at most a mebibyte at a
time, so that a cap on the sum takes effect. It accepts and refuses what that decoder does, with the same words.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

import httpx

#: Bytes that one step may produce.
STEP = 1 << 20

#: What is asked for: the server’s client says the same, and nothing else can be decoded here.
ACCEPTED = "gzip, deflate"


class Decoder(Protocol):
    """One layer of ``Content-Encoding``."""

    def decode(self, data: bytes) -> Iterator[bytes]:
        """The expansion of ``data`` in steps. Raises ``httpx.DecodingError``."""


class _Zlib:
    def __init__(self, name: str) -> None:
        self._deflate = name == "deflate"
        self._first = True
        self._inner = zlib.decompressobj() if self._deflate else zlib.decompressobj(zlib.MAX_WBITS | 16)

    def decode(self, data: bytes) -> Iterator[bytes]:
        first, self._first = self._first, False
        if self._inner.eof:
            # what follows the end of a stream is left out; keeping it would cost memory for nothing
            return
        try:
            piece = self._inner.decompress(data, STEP)
        except zlib.error as error:
            if not (first and self._deflate):
                raise httpx.DecodingError(str(error)) from error
            # some servers mean the bare stream when they say deflate
            self._inner = zlib.decompressobj(-zlib.MAX_WBITS)
            yield from self.decode(data)
            return
        while piece:
            yield piece
            rest = self._inner.unconsumed_tail
            try:
                piece = self._inner.decompress(rest, STEP) if rest or len(piece) == STEP else b""
            except zlib.error as error:
                raise httpx.DecodingError(str(error)) from error


class _Chain:
    def __init__(self, layers: list[Decoder]) -> None:
        self._layers = layers

    def decode(self, data: bytes) -> Iterator[bytes]:
        yield from self._through(data, 0)

    def _through(self, data: bytes, depth: int) -> Iterator[bytes]:
        if depth == len(self._layers):
            yield data
            return
        for piece in self._layers[depth].decode(data):
            yield from self._through(piece, depth + 1)


def decoder(content_encoding: str) -> Decoder:
    """The decoder for a ``Content-Encoding`` value, several layers included; unknown names are left as they are."""
    names = [name.strip().lower() for name in content_encoding.split(",")]
    return _Chain([_Zlib(name) for name in reversed(names) if name in {"gzip", "deflate"}])
