"""Reading everything once: rows into the scratch file, and what is to be said of them into counts."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from cpersona_cli.history.model import Aside, Conversation, HistoryError, Looked, Stored, Unread
from cpersona_cli.history.rows import COVERED, PROFILES, Made, Maker
from cpersona_cli.history.wants import Wants
from cpersona_cli.record import field as of
from cpersona_cli.record import record
from cpersona_cli.store.model import Kind
from cpersona_cli.store.newrow import KEY
from cpersona_cli.store.writing.scratch import Scratch
from cpersona_cli.text import safe

#: Files, unread places and remarks that are listed; more are counted.
LISTED = 1_000
#: Things read between two calls of ``tell``.
_EVERY = 200

Item = Conversation | Stored | Aside | Unread | Looked


@record(kw_only=True)
class Tally:
    """What was read, by what becomes of it: messages and export rows as memories, conversations and rows as episodes.

    ``read`` is the sum of all others once an import ends; before, ``stored`` is what would be. ``rest`` is what an
    import that was stopped did not come to.
    """

    read: int = 0
    stored: int = 0
    duplicate: Mapping[str, int] = of(default_factory=dict)
    left_out: Mapping[str, int] = of(default_factory=dict)
    failed: Mapping[str, int] = of(default_factory=dict)
    rest: int = 0

    @property
    def duplicates(self) -> int:
        return sum(self.duplicate.values())

    @property
    def out(self) -> int:
        return sum(self.left_out.values())

    @property
    def failures(self) -> int:
        return sum(self.failed.values())

    @property
    def add_up(self) -> bool:
        return self.read == self.stored + self.duplicates + self.out + self.failures + self.rest


@record(kw_only=True)
class Read:
    """What was found in the sources. Counts by reason read well after a number.

    ``not_talk`` is what the readers left out (tool messages, thoughts, rows of no use), ``altered`` what was changed in
    texts, ``undated`` why times are not known. ``memories`` and ``episodes`` are what was read of either, ``left_out``
    and ``duplicate`` (within the import) included. ``split`` texts became several rows. ``unused`` of the user's
    summaries are of no conversation that was read. ``first`` and ``last`` are of everything that is talk. ``files`` and
    ``unread`` are the first of so many.
    """

    files: tuple[Looked, ...] = ()
    files_read: int = 0
    files_passed: int = 0
    bytes: int = 0
    unread: tuple[Unread, ...] = ()
    unread_count: int = 0
    conversations: int = 0
    turns: int = 0
    rows: int = 0
    passed_over: Mapping[str, int] = of(default_factory=dict)
    not_talk: Mapping[str, int] = of(default_factory=dict)
    altered: Mapping[str, int] = of(default_factory=dict)
    undated: Mapping[str, int] = of(default_factory=dict)
    branches: int = 0
    remarks: tuple[str, ...] = ()
    remark_count: int = 0
    memories: Tally = Tally()
    episodes: Tally = Tally()
    split: int = 0
    unused: int = 0
    first: dt.datetime | None = None
    last: dt.datetime | None = None


@dataclass(slots=True)
class _Kind:
    """One kind of row while it is counted."""

    read: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    duplicate: Counter[str] = field(default_factory=Counter)

    def tally(self) -> Tally:
        return Tally(
            read=self.read,
            stored=self.read - self.left_out.total() - self.duplicate.total(),
            duplicate=dict(self.duplicate.most_common()),
            left_out=dict(self.left_out.most_common()),
        )


@dataclass(slots=True)
class _Gathering:
    wants: Wants
    scratch: Scratch
    maker: Maker
    files: list[Looked] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)
    not_talk: Counter[str] = field(default_factory=Counter)
    altered: Counter[str] = field(default_factory=Counter)
    undated: Counter[str] = field(default_factory=Counter)
    kinds: dict[Kind, _Kind] = field(default_factory=lambda: {kind: _Kind() for kind in Kind})
    first: dt.datetime | None = None
    last: dt.datetime | None = None

    def take(self, item: Item) -> None:
        """One more thing that was read."""
        match item:
            case Conversation():
                self._conversation(item)
            case Stored():
                self._stored(item)
            case Aside():
                self.not_talk.update(item.left_out)
            case Unread():
                self.counts["unread"] += 1
                if len(self.unread) < LISTED:
                    self.unread.append(item)
            case Looked():
                self.counts["read" if item.format is not None else "passed"] += 1
                self.counts["bytes"] += item.size if item.format is not None else 0
                if len(self.files) < LISTED:
                    self.files.append(item)

    def _conversation(self, talk: Conversation) -> None:
        if not self.wants.agent:
            raise HistoryError(f"{talk.where} is a conversation, which belongs to no agent yet: name one with --agent")
        self.counts["conversations"] += 1
        self.counts["turns"] += len(talk.turns)
        self.counts["branches"] += talk.branches
        self.passed_over.update([talk.passed_over] if talk.passed_over else [])
        self.not_talk.update(talk.left_out)
        self.altered.update(talk.altered)
        self.undated.update(talk.undated)
        for remark in talk.remarks:
            self.counts["remarks"] += 1
            if len(self.remarks) < LISTED:
                self.remarks.append(f"{safe(talk.where, 200)}: {remark}")
        self._span(*(turn.at for turn in talk.turns))
        for made in self.maker.conversation(talk):
            self._made(made)

    def _stored(self, row: Stored) -> None:
        self.counts["rows"] += 1
        self.altered.update(row.altered)
        self.undated.update([row.undated] if row.undated else [])
        made = self.maker.stored(row)
        if made.reason == PROFILES:
            self.not_talk[PROFILES] += 1
            return
        self._span(row.at, row.started, row.ended)
        self._made(made)

    def _span(self, *times: dt.datetime | None) -> None:
        known = [at for at in times if at is not None]
        if known:
            self.first = min(known) if self.first is None else min(self.first, *known)
            self.last = max(known) if self.last is None else max(self.last, *known)

    def _made(self, made: Made) -> None:
        kind = self.kinds[made.kind]
        kind.read += 1
        if made.reason == COVERED:
            kind.duplicate[made.reason] += 1
            return
        if made.reason:
            kind.left_out[made.reason] += 1
            return
        reasons = [self.scratch.add(row) for row in made.rows]
        if all(reasons):
            kind.duplicate[reasons[0]] += 1

    def read(self) -> Read:
        """All that was counted."""
        counts = self.counts
        return Read(
            files=tuple(self.files),
            files_read=counts["read"],
            files_passed=counts["passed"],
            bytes=counts["bytes"],
            unread=tuple(self.unread),
            unread_count=counts["unread"],
            conversations=counts["conversations"],
            turns=counts["turns"],
            rows=counts["rows"],
            passed_over=dict(self.passed_over.most_common()),
            not_talk=dict(self.not_talk.most_common()),
            altered=dict((self.altered + self.maker.altered).most_common()),
            undated=dict(self.undated.most_common()),
            branches=counts["branches"],
            remarks=tuple(self.remarks),
            remark_count=counts["remarks"],
            memories=self.kinds[Kind.MEMORY].tally(),
            episodes=self.kinds[Kind.EPISODE].tally(),
            split=self.maker.split,
            unused=len(self.maker.unused),
            first=self.first,
            last=self.last,
        )


def gather(
    items: Iterable[Item],
    wants: Wants,
    scratch: Scratch,
    *,
    tell: Callable[[int, int], None] = lambda _conversations, _rows: None,
) -> Read:
    """Read all of ``items`` into ``scratch``; ``tell`` hears of conversations, and of messages and rows so far.

    Raises ``HistoryError`` as ``items`` does, and ``StoreError``.
    """
    for name, value in (("--agent", wants.agent), ("--project", wants.project), ("--channel", wants.channel)):
        if value and (len(value) > KEY or not value.isprintable()):
            raise HistoryError(f"{name} must be printable and at most {KEY} characters long")
    gathering = _Gathering(wants, scratch, Maker(wants, scratch.covered, scratch.cover))
    for number, item in enumerate(items):
        gathering.take(item)
        if number % _EVERY == 0:
            tell(gathering.counts["conversations"], gathering.counts["turns"] + gathering.counts["rows"])
    return gathering.read()
