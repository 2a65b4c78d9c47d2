"""Old conversations as their programs write them, for the readers of lines."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cpersona_cli.history.model import Aside, Conversation, Reader, Stored, Unread
from cpersona_cli.history.times import Clock

NOW = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
CLOCK = Clock(NOW)
Found = Conversation | Stored | Aside | Unread


def jsonl(*lines: object) -> bytes:
    """Lines as a file; bytes stand as they are, everything else as JSON."""
    return b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)


def read(reader: Reader, data: bytes, where: str = "file", clock: Clock = CLOCK) -> list[Found]:
    """All that ``reader`` finds in ``data``."""
    return list(reader(io.BytesIO(data), where, clock))


def conversation(found: Iterable[Found]) -> Conversation:
    """The only conversation found; nothing else is."""
    (only,) = found
    assert isinstance(only, Conversation), only
    return only


def said(talk: Conversation) -> list[tuple[str, str]]:
    """Who said what."""
    return [(turn.role.value, turn.text) for turn in talk.turns]


class Endless(io.RawIOBase):
    """A stream of ``lines``, made when they are read; ``failing`` is raised at its end instead of ending."""

    def __init__(self, lines: Iterator[bytes], failing: Exception | None = None) -> None:
        self._lines, self._failing = lines, failing
        self.size = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts: list[bytes] = []
        length = 0
        for line in self._lines:
            parts.append(line)
            length += len(line)
            if 0 <= size <= length:
                break
        self.size += length
        if not parts and self._failing is not None:
            raise self._failing
        return b"".join(parts)


def claude_line(kind: str, uuid: str, content: object, /, **more: Any) -> Mapping[str, object]:
    """A line of a Claude Code transcript; one second lies between a line and the next number in ``uuid``."""
    digits = "".join(letter for letter in uuid if letter.isdigit()) or "0"
    message: dict[str, object] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": more.pop("answer", f"msg_{uuid}"), "model": more.pop("model", "claude-x"), "type": "message"}
    return {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "sessionId": "s1",
        "version": "2.1.90",
        "type": kind,
        "message": message,
        "uuid": uuid,
        "timestamp": f"2026-04-01T10:{int(digits) // 60:02d}:{int(digits) % 60:02d}.000Z",
    } | more
