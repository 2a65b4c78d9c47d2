"""A conversation while it is read: turns gather, what is no talk is counted, and times that are missing are settled."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass, field

from cpersona_cli.history.model import Conversation, Dated, Format, Role, Turn
from cpersona_cli.history.texts import clean
from cpersona_cli.history.times import ASSUMED, Clock
from cpersona_cli.record import replace

EMPTY = "empty messages"
NO_TIME = "without a time"

#: A title is shown in lists and stored beside texts: one line of at most so many characters.
TITLE = 300


@dataclass(slots=True)
class Draft:
    """What is known of one conversation so far."""

    format: Format
    where: str
    clock: Clock
    turns: list[Turn] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    altered: Counter[str] = field(default_factory=Counter)
    undated: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)
    branches: int = 0

    def title(self, value: object) -> str:
        """A title on one line; empty for what is none."""
        return " ".join(self.text(value).split())[:TITLE].rstrip()

    def text(self, value: object) -> str:
        """A text as it may be stored; empty for what is none."""
        return clean(value, self.altered) if isinstance(value, str) else ""

    def time(self, *values: object) -> dt.datetime | None:
        """The first of ``values`` that is a time. Those before it that are unreadable are counted with their reason."""
        for value in values:
            time = self.clock.read(value)
            if time.at is not None:
                if time.assumed:
                    self.altered[ASSUMED] += 1
                return time.at
            if time.reason:
                self.undated[time.reason] += 1
        return None

    def add(self, name: str, role: Role, text: str, at: dt.datetime | None) -> None:
        """One more turn, unless nothing is in it; ``text`` has been through ``text()``."""
        if not text:
            self.left_out[EMPTY] += 1
            return
        dated = Dated.UNKNOWN if at is None else Dated.MESSAGE
        self.turns.append(Turn(id=name, role=role, text=text, at=at, dated=dated))

    def done(
        self,
        name: str,
        *,
        created: object = None,
        updated: object = None,
        title: object = "",
        summary: object = "",
        model: str = "",
    ) -> Conversation:
        """The conversation. A turn without a time gets the one the conversation began at, if that is known.

        A conversation begins when it says so, else at the earlier of its last change and its first dated turn.
        """
        known = [turn.at for turn in self.turns if turn.at is not None]
        changed = self.time(updated)
        started = self.time(created) or min([*known, *([changed] if changed else [])], default=None)
        turns = self.turns
        missing = len(turns) - len(known)
        if missing and started is not None:
            turns = [replace(t, at=started, dated=Dated.CONVERSATION) if t.at is None else t for t in turns]
        elif missing:
            self.undated[NO_TIME] += missing
        return Conversation(
            id=name,
            format=self.format,
            where=self.where,
            title=self.title(title),
            turns=tuple(turns),
            summary=self.text(summary),
            model=model,
            left_out=dict(self.left_out),
            altered=dict(self.altered),
            undated=dict(self.undated),
            branches=self.branches,
            remarks=tuple(self.remarks),
            passed_over="" if turns else "empty" if not self.left_out else "no talk in it",
        )
