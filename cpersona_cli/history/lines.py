"""Files of one JSON object a line: read line by line, with numbers, whatever stands in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from cpersona_cli.history.model import Unread
from cpersona_cli.history.values import LIMIT, NotJSONError, kind_of, parsed
from cpersona_cli.record import record

_CHUNK = 2**18

#: What counts lines that hold ``null``.
NULLS = "lines without a record"
#: Said of a file whose last line was cut off, as by a program that is still writing it.
UNFINISHED = "the last line is not finished: the program was stopped while writing it, or still writes"


@record
class Line:
    """One object; ``number`` from 1, ``where`` names file and line."""

    number: int
    where: str
    value: dict[str, object]


class Lines:
    """The objects of ``stream``, one a line, in order; what is none is ``Unread`` and the rest is read on.

    Blank lines are nothing. ``nulls`` counts lines that hold ``null``, ``unfinished`` tells of a last line without an
    end that is no JSON; neither is ``Unread``. A stream that fails ends the lines; call ``close`` when all that was
    read is handed on: it raises what the stream raised. Memory is bounded by the longest line, at most ``limit`` bytes.
    """

    def __init__(self, stream: BinaryIO, where: str, *, limit: int = LIMIT) -> None:
        self.where, self.limit = where, limit
        self.nulls, self.unfinished = 0, False
        self._stream = stream
        self._failure: Exception | None = None

    def close(self) -> None:
        """Raise what the stream raised while it was read."""
        if self._failure is not None:
            raise self._failure

    def __iter__(self) -> Iterator[Line | Unread]:
        for number, (data, size, ended) in enumerate(self._pieces(), 1):
            place = f"{self.where}, line {number}"
            if data is None:
                room = f"{size / 2**20:.1f} MiB, more than the {self.limit / 2**20:.1f} MiB one may take"
                yield Unread(where=place, reason=f"it takes {room}")
                continue
            if not data.strip():
                continue
            try:
                value = parsed(data.removeprefix(b"\xef\xbb\xbf") if number == 1 else data)
            except NotJSONError as error:
                if ended:
                    yield Unread(where=place, reason=f"it is not JSON: {error} at byte {error.at}")
                else:
                    self.unfinished = True
                continue
            if isinstance(value, dict):
                yield Line(number, place, value)
            elif value is None:
                self.nulls += 1
            else:
                yield Unread(where=place, reason=f"it is {kind_of(value)}, not an object")

    def _pieces(self) -> Iterator[tuple[bytes | None, int, bool]]:
        """Each line without its end (None if too long), its size, and whether it has an end."""
        kept: list[bytes] = []
        size = 0
        while chunk := self._chunk():
            first, *others = chunk.split(b"\n")
            for part in others:
                size += len(first)
                yield (b"".join([*kept, first]) if size <= self.limit else None), size, True
                first, size = part, 0
                kept.clear()
            size += len(first)
            if size <= self.limit:
                kept.append(first)
            else:
                kept.clear()
        if size:
            yield (b"".join(kept) if size <= self.limit else None), size, False

    def _chunk(self) -> bytes:
        try:
            return self._stream.read(_CHUNK)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised by close()
            self._failure = error
            return b""
