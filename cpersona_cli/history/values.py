"""The objects of a JSON stream of any size, one at a time.

The stream is cut at the ends of its outermost objects by looking at quotes and brackets only; each piece is then read
by the standard parser. So memory is bounded by the largest object, a place is known to the byte, a damaged object costs
itself only, and half of a surrogate pair arrives as such (incremental parsers turn it into a question mark, and nobody
hears of it).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NoReturn

from cpersona_cli.history.model import Conversation, Reader, Unread
from cpersona_cli.history.times import Clock
from cpersona_cli.record import record

#: The most one conversation may take, in bytes of JSON.
LIMIT = 64 * 2**20

_CHUNK = 2**18

# From anywhere outside a string over whole strings to the next bracket. Long strings are passed by a search for their
# end, which is ten times faster.
_OUTSIDE = re.compile(rb'[^"\[\]{}]*+(?:"[^"\\]{0,128}+(?:\\.[^"\\]{0,128}+)*+"[^"\[\]{}]*+)*+', re.DOTALL)
_BLANK = re.compile(rb"[ \t\r\n]*+")
_BARE = re.compile(rb'[^\s,\[\]{}"]*+')


@record
class Piece:
    """One value as it stands in the stream; ``number`` from 1, ``offset`` in bytes. ``data`` is None if too large."""

    number: int
    offset: int
    size: int
    data: bytes | None


@record
class Object:
    """One object of the stream, and where it stood."""

    where: str
    value: dict[str, object]


def each(read: Callable[[Object, Clock], Conversation | Unread]) -> Reader:
    """The reader of a format in which every object is one conversation, as ``read`` understands it."""

    def reader(stream: BinaryIO, where: str, clock: Clock) -> Iterator[Conversation | Unread]:
        for found in objects(stream, where):
            yield found if isinstance(found, Unread) else read(found, clock)

    return reader


class BrokenError(Exception):
    """The stream cannot be cut any further; ``offset`` in bytes, the message says what stands there."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset


def objects(stream: BinaryIO, where: str, *, limit: int = LIMIT) -> Iterator[Object | Unread]:
    """The objects of the array (or of the sequence of objects) that ``stream`` holds, in order.

    What is no object, too large or no JSON is ``Unread`` by its place, and so is all that follows where the stream
    ends early, or where two objects in a row are no JSON (then the ends of objects are no longer known).
    Raises what the stream raises.
    """
    cutter = _Cutter(stream, limit)
    damaged = 0
    try:
        for piece in cutter.pieces():
            place = f"{where}, conversation {piece.number} (byte {piece.offset})"
            if piece.data is None:
                yield Unread(
                    where=place, reason=f"it takes {_mib(piece.size)}, more than the {_mib(limit)} one may take"
                )
                continue
            try:
                value = parsed(piece.data)
            except NotJSONError as error:
                yield Unread(where=place, reason=f"it is not JSON: {error} at byte {piece.offset + error.at}")
                damaged += 1
            else:
                damaged = 0
                if isinstance(value, dict):
                    yield Object(place, value)
                else:
                    yield Unread(where=place, reason=f"it is {kind_of(value)}, not an object")
            if damaged == 2:
                cutter.broken("two values in a row are no JSON")
    except BrokenError as error:
        rest = cutter.drained()
        unread = f"; the {rest:,} bytes from there on were not read" if rest else ""
        yield Unread(where=f"{where}, byte {error.offset}", reason=f"{error}{unread}")


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


def kind_of(value: object) -> str:
    """What a JSON value is, with its article."""
    if isinstance(value, bool):
        return "true or false"
    names = {dict: "an object", list: "an array", str: "a string", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def mapping(value: object) -> dict[str, object]:
    """``value`` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """``value`` if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def word(value: object) -> str:
    """``value`` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


class NotJSONError(ValueError):
    """The bytes are no JSON; ``at`` is where, in bytes."""

    def __init__(self, reason: str, at: int = 0) -> None:
        super().__init__(reason)
        self.at = at


def parsed(data: bytes) -> object:
    """The value that ``data`` holds. Bytes that are no UTF-8 become half characters, as escapes without partner are.

    Raises ``NotJSONError``, also for values nested too deeply.
    """
    text = data.decode("utf-8", "surrogateescape")
    try:
        return json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        at = len(text[: error.pos].encode("utf-8", "surrogateescape"))
        raise NotJSONError(error.msg[:1].lower() + error.msg[1:], at) from None
    except RecursionError:
        raise NotJSONError("it is nested too deeply") from None
    except ValueError:
        raise NotJSONError("a number in it has too many digits") from None


class _Cutter:
    """Where the cutting stands: a chunk, a place in it, and what is kept of the value that began before it."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self.stream, self.limit = stream, limit
        self.chunk, self.at, self.before = b"", 0, 0
        self.kept: list[bytes] = []
        self.size = 0

    def offset(self) -> int:
        return self.before + self.at

    def more(self, start: int | None = None) -> bool:
        """Go on to the next chunk, keeping what stands from ``start``; False at the end."""
        if start is not None:
            self.keep(start)
        self.before += len(self.chunk)
        self.chunk, self.at = self.stream.read(_CHUNK), 0
        return bool(self.chunk)

    def drained(self) -> int:
        """How many bytes follow; none is left after it."""
        count = len(self.chunk) - self.at
        while chunk := self.stream.read(_CHUNK):
            count += len(chunk)
        return count

    def keep(self, start: int) -> None:
        part = self.chunk[start : self.at]
        self.size += len(part)
        if self.size <= self.limit:
            self.kept.append(part)
        else:
            self.kept.clear()

    def next(self) -> bytes:
        """The next byte that is no white space, not consumed; empty at the end."""
        while True:
            self.at = _end(_BLANK, self.chunk, self.at)
            if self.at < len(self.chunk):
                return self.chunk[self.at : self.at + 1]
            if not self.more():
                return b""

    def pieces(self) -> Iterator[Piece]:
        """The elements of each outermost array, and each outermost value that is no array, not read yet.

        Raises ``BrokenError`` where what stands between values is no JSON, or the stream ends too early.
        """
        self.more()
        if self.chunk.startswith(b"\xef\xbb\xbf"):
            self.at = 3
        number = 0
        listed = False  # within an outermost array
        due = True  # a value may follow, not only a comma
        while byte := self.next():
            if byte == b"[" and not listed:
                listed, due = True, True
                self.at += 1
            elif byte == b"]" and listed:
                listed, due = False, True
                self.at += 1
            elif byte == b"," and listed and not due:
                due = True
                self.at += 1
            elif byte in b"],:}" or not due:
                alone = f"{byte.decode()!r} stands alone"
                self.broken(alone if byte in b"],:}" else "there is no comma between two values")
            else:
                number += 1
                yield self.value(number, byte)
                due = not listed
        if listed:
            self.broken("the file ends before its list does, so more may be missing")

    def broken(self, reason: str) -> NoReturn:
        raise BrokenError(self.offset(), reason)

    def value(self, number: int, byte: bytes) -> Piece:
        self.kept, self.size = [], 0
        offset = self.offset()
        if byte == b'"':
            self.keep(self.rest_of_string(self.at, offset))
        elif byte in b"[{":
            self.nested(offset)
        else:
            self.bare()
        return Piece(number, offset, self.size, b"".join(self.kept) if self.size <= self.limit else None)

    def bare(self) -> None:
        start = self.at
        while True:
            self.at = _end(_BARE, self.chunk, self.at)
            if self.at < len(self.chunk) or not self.more(start):
                break
            start = 0
        self.keep(start)

    def nested(self, offset: int) -> None:
        start, depth = self.at, 0
        chunk, at = self.chunk, self.at
        while True:
            at = _end(_OUTSIDE, chunk, at)
            if at == len(chunk):
                self.at = at
                if not self.more(start):
                    self.early(offset)
                start, chunk, at = 0, self.chunk, 0
            elif (byte := chunk[at]) == 0x22:
                self.at = at
                start = self.rest_of_string(start, offset)
                chunk, at = self.chunk, self.at
            else:
                at += 1
                depth += 1 if byte in b"[{" else -1
                if not depth:
                    self.at = at
                    self.keep(start)
                    return

    def rest_of_string(self, start: int, offset: int) -> int:
        """Pass the string that begins here; where what is not kept yet begins."""
        self.at += 1
        while True:
            end = self.chunk.find(b'"', self.at)
            escaped = self.escaped(len(self.chunk) if end == -1 else end)
            if end != -1:
                self.at = end + 1
                if not escaped:
                    return start
                continue
            self.at = len(self.chunk)
            if not self.more(start):
                self.early(offset)
            start, self.at = 0, int(escaped)

    def escaped(self, end: int) -> bool:
        """Whether an odd number of backslashes stands before ``end``, within the string that is being passed."""
        first = end
        while first > self.at and self.chunk[first - 1] == 0x5C:
            first -= 1
        return (end - first) % 2 == 1

    def early(self, offset: int) -> NoReturn:
        raise BrokenError(offset, f"the file ends within the value that begins here, after {self.size:,} bytes of it")


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    match = pattern.match(data, at)
    return match.end() if match else at  # every pattern here also matches nothing
