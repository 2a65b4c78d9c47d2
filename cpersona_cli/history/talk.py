"""What the readers of lines share: a conversation that gathers line by line, within a bound."""

from __future__ import annotations

from dataclasses import dataclass, field

from cpersona_cli.history.draft import Draft
from cpersona_cli.history.lines import NULLS, UNFINISHED, Lines
from cpersona_cli.history.model import Conversation, Role, Unread
from cpersona_cli.history.values import LIMIT

#: What counts messages that came again: from an earlier file, or a second time in this one.
AGAIN = "messages read before"


@dataclass(slots=True)
class Said:
    """One message that may still grow; its texts have been through ``Draft.text``. ``key`` is the reader's own."""

    id: str
    role: Role
    texts: list[str]
    time: object = None
    key: int = 0

    @property
    def text(self) -> str:
        return "\n\n".join(text for text in self.texts if text)


@dataclass(slots=True)
class Talk:
    """The messages of one conversation so far; ``size`` in characters, beyond ``LIMIT`` of them none is kept."""

    draft: Draft
    said: list[Said] = field(default_factory=list)
    size: int = 0

    def grow(self, text: str) -> bool:
        """Whether there is room for ``text``, too. Once there is none, there never is."""
        self.size += len(text)
        if self.size > LIMIT:
            self.said.clear()
        return self.size <= LIMIT

    def add(self, said: Said) -> None:
        """One more message."""
        if self.grow(said.text):
            self.said.append(said)

    def ended(self, lines: Lines) -> None:
        """What a file's lines had beside objects."""
        if lines.nulls:
            self.draft.left_out[NULLS] += lines.nulls
        if lines.unfinished:
            self.draft.remarks.append(UNFINISHED)

    def done(self, name: str, *, title: str = "", created: object = None, model: str = "") -> Conversation | Unread:
        """The conversation, or that it was too large to be one."""
        if self.size > LIMIT:
            room = f"{self.size / 2**20:.1f} Mi characters, more than the {LIMIT / 2**20:.1f} Mi one may have"
            return Unread(where=self.draft.where, reason=f"its talk has {room}")
        for said in self.said:
            self.draft.add(said.id, said.role, said.text, self.draft.time(said.time))
        return self.draft.done(name, created=created, title=title, model=model)
