"""What every old conversation comes down to, whatever wrote it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from cpersona_cli.record import field, record

if TYPE_CHECKING:
    from cpersona_cli.history.times import Clock


class Format(StrEnum):
    """Where conversations come from; told by their content, never by a file's name."""

    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    CPERSONA = "cpersona"
    OPEN_WEBUI = "open-webui"
    PLAIN = "plain"  # one message a line, as documented


class Role(StrEnum):
    """Who spoke. Nothing else is a turn."""

    USER = "user"
    ASSISTANT = "assistant"


class Dated(StrEnum):
    """Where a turn's time comes from."""

    MESSAGE = "message"
    CONVERSATION = "conversation"
    UNKNOWN = "unknown"


@record(kw_only=True)
class Turn:
    """What one side said. ``id`` is the source's own, so that a second run knows it; ``at`` is in UTC.

    ``text`` is as said: no half characters, no NUL. ``at`` is None where no time is known; none is ever made up.
    """

    id: str
    role: Role
    text: str
    at: dt.datetime | None
    dated: Dated = Dated.MESSAGE


@record(kw_only=True)
class Conversation:
    """One conversation in its order, along the branch that was kept.

    ``id`` is the source's own. ``where`` names the file, and the entry or line in it. ``left_out`` counts what is no
    talk by reason, ``altered`` what had to be changed in a text (half characters, NULs), ``undated`` why times of it
    are not known; their keys are plural nouns that read well after a number, never words of the user. ``branches``
    counts the ways not taken through an edited conversation, ``remarks`` are sentences about damage that did not stop
    the reading. ``passed_over`` is the rule by which a whole conversation was left out ("empty"), which then has no
    turns. ``summary`` is the source's own, empty where it has none.
    """

    id: str
    format: Format
    where: str
    title: str = ""
    turns: tuple[Turn, ...] = ()
    summary: str = ""
    model: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)
    altered: Mapping[str, int] = field(default_factory=dict)
    undated: Mapping[str, int] = field(default_factory=dict)
    branches: int = 0
    remarks: tuple[str, ...] = ()
    passed_over: str = ""


class StoredKind(StrEnum):
    """What a line of CPersona's own export is."""

    MEMORY = "memory"
    EPISODE = "episode"
    PROFILE = "profile"


@record(kw_only=True)
class Stored:
    """A row of CPersona's own export: already a memory, an episode or a profile, and no talk to be made one of.

    ``text`` is the content or the summary. ``source`` and ``metadata`` are JSON as they stand in their columns. ``at``
    is a memory's timestamp, ``created`` when the store got the row; an episode has ``started`` and ``ended`` beside
    it, a profile ``created`` alone. ``undated`` says why a time that is needed is not known: a memory's, or all of an
    episode's. ``altered`` counts the characters that had to be changed.
    """

    kind: StoredKind
    where: str
    text: str
    agent: str = ""
    project: str = ""
    channel: str = ""
    msg_id: str = ""
    source: str = "{}"
    metadata: str = "{}"
    at: dt.datetime | None = None
    created: dt.datetime | None = None
    started: dt.datetime | None = None
    ended: dt.datetime | None = None
    keywords: str = ""
    resolved: bool = False
    locked: bool = False
    undated: str = ""
    altered: Mapping[str, int] = field(default_factory=dict)


@record(kw_only=True)
class Aside:
    """What a stream held beside conversations and rows, at its end: ``left_out`` as in ``Conversation``."""

    where: str
    left_out: Mapping[str, int]


@record(kw_only=True)
class Unread:
    """A conversation or a line that could not be read: where, and the reason in words for people."""

    where: str
    reason: str


@record(kw_only=True)
class Looked:
    """One file or archive entry: ``format`` when it was read, else the reason why it was passed over.

    ``lost``: it could not even be looked into, so that conversations may stand in it.
    """

    where: str
    size: int
    format: Format | None = None
    reason: str = ""
    lost: bool = False


class Reader(Protocol):
    """How one format is read: a stream in, conversations out, memory bounded by the largest of them.

    Whatever the content is, nothing is raised; what the stream itself raises passes.
    """

    def __call__(
        self, stream: BinaryIO, where: str, clock: Clock
    ) -> Iterator[Conversation | Stored | Aside | Unread]: ...


class HistoryError(Exception):
    """The source cannot be read at all; the message says what was seen, where, and what to do."""


@record(kw_only=True)
class Source:
    """One stream found at a path: a file, or an entry of an archive."""

    path: Path
    where: str
    size: int
    entry: str = ""
