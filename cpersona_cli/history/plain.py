"""One message a line, as documented in docs/history-formats.md: for whatever has no reader of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO

from cpersona_cli.history.draft import EMPTY, Draft
from cpersona_cli.history.lines import Line, Lines
from cpersona_cli.history.model import Conversation, Format, Reader, Role, Unread
from cpersona_cli.history.talk import AGAIN, Said, Talk
from cpersona_cli.history.texts import digest
from cpersona_cli.history.times import Clock
from cpersona_cli.history.values import word
from cpersona_cli.text import safe

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}


def reader() -> Reader:
    """A reader of this format."""
    return _read


def _read(stream: BinaryIO, where: str, clock: Clock) -> Iterator[Conversation | Unread]:
    lines = Lines(stream, where)
    part: _Part | None = None
    for line in lines:
        if isinstance(line, Unread):
            yield line
            continue
        name = _name(line.value.get("conversation"))
        if not name:
            yield Unread(where=line.where, reason='it names no conversation: "conversation" is missing or empty')
            continue
        if part is None or part.name != name:
            if part is not None:
                yield part.ended()
            part = _Part(name, line, clock)
        part.take(line.value)
    if part is not None:
        part.talk.ended(lines)
        yield part.ended()
    lines.close()


def _name(value: object) -> str:
    """An id: a text, or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return word(value).strip()


class _Part:
    """The lines of one conversation that stand together."""

    def __init__(self, name: str, line: Line, clock: Clock) -> None:
        self.name, self.title = name, ""
        self.talk = Talk(Draft(Format.PLAIN, line.where, clock))
        self.ids: set[str] = set()
        self.alike: Counter[str] = Counter()

    def take(self, value: dict[str, object]) -> None:
        draft = self.talk.draft
        self.title = word(value.get("title")) or self.title
        kind = word(value.get("role"))
        role = _ROLES.get(kind.lower())
        if role is None:
            draft.left_out[f"{safe(kind, 40)} messages" if kind else "messages without a role"] += 1
            return
        text = draft.text(value.get("text"))
        if not text:
            draft.left_out[EMPTY] += 1
            return
        time = value.get("time")
        own = _name(value.get("id"))
        if not own:
            alike = digest(self.name, role, str(time), text)
            self.alike[alike] += 1
            own = digest(alike, str(self.alike[alike]))
        if own in self.ids:
            draft.left_out[AGAIN] += 1
            return
        self.ids.add(own)
        self.talk.add(Said(own, role, [text], time))

    def ended(self) -> Conversation | Unread:
        return self.talk.done(self.name, title=self.title)
