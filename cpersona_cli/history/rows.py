"""From what was said to what will be stored: rows that the server itself could have written.

Texts are stripped, without the server's own ``[Memory from ...]``, and in pieces no longer than the server keeps. Times
are the source's: none is ever made up. Each memory names its source in ``metadata``, and carries an id made of the
source's own ids, by which a second run knows it.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from cpersona_cli.history.model import Conversation, Dated, Format, Role, Stored, StoredKind, Turn
from cpersona_cli.history.select import select
from cpersona_cli.history.summaries import LENGTH, Summary, extract
from cpersona_cli.history.texts import digest, mended, split, unannotated
from cpersona_cli.history.times import created_at, timestamp
from cpersona_cli.history.wants import Form, Wants
from cpersona_cli.record import record, replace
from cpersona_cli.store.model import Kind
from cpersona_cli.store.newrow import JSON, KEY, NewRow

# Reasons why something that was read is not stored; they read well after a number.
BEFORE, AFTER = "before --since", "not before --until"
UNDATED = "without a date"
BLANK = "empty once cleaned"
NOT_SUMMARISED = "with nothing to summarise"
COVERED = "whose episode is there already, or was read before"
TOO_LONG = "with a source or metadata longer than the server takes"
ODD_JSON = "with a source or metadata that is no JSON object"
NO_AGENT = "of no agent"
PROFILES = "profiles"
#: What is counted as altered beside what the readers count.
SHORTENED = "summaries shortened"

_NAMES = {
    Format.CHATGPT: "ChatGPT",
    Format.CLAUDE: "Claude",
    Format.CLAUDE_CODE: "Claude Code",
    Format.CODEX: "Codex",
    Format.OPEN_WEBUI: "Open WebUI",
    Format.PLAIN: "assistant",
}
#: Characters of a title in ``metadata``.
_TITLE = 200
# Spellings the server takes for its own words (2.6.14, utils.py, ``_TYPE_ALIASES``).
_SPEAKERS = {
    "user": "User", "agent": "Agent", "system": "System", "assistant": "Agent", "ai": "Agent", "session": "System",
}  # fmt: skip


@record(kw_only=True)
class Made:
    """What one thing that was read becomes: rows, or the ``reason`` why it is left out, in words after a number."""

    kind: Kind
    rows: tuple[NewRow, ...] = ()
    reason: str = ""


class Maker:
    """Makes the rows of one import, and numbers what they are of.

    ``covered(key)`` is the last message of the episode that an earlier run stored for a key, and when that ended, None
    where there is none; ``cover(key, last, ended)`` hears of each that is made, so that of two exports the later one
    adds what it has more.
    ``altered`` counts what was changed in texts; ``split`` are texts that became several rows; ``unused`` are ids of
    summaries whose conversations did not come.
    """

    def __init__(
        self,
        wants: Wants,
        covered: Callable[[str], tuple[str, str] | None] = lambda _key: None,
        cover: Callable[[str, str, str], None] = lambda _key, _last, _ended: None,
    ) -> None:
        self.wants = wants
        self.altered: Counter[str] = Counter()
        self.split = self.items = 0
        self.unused = set(wants.summaries)
        self._covered, self._cover = covered, cover

    def conversation(self, talk: Conversation) -> Iterator[Made]:
        """Every turn as memories, the whole as an episode, or both."""
        self.unused.discard(talk.id)
        turns, out = self._in_time(talk.turns)
        if self.wants.form is not Form.EPISODES:
            chosen = select(turns)
            self.altered.update(chosen.merged)
            out.update(chosen.left_out)
            for turn in chosen.turns:
                yield self._memory(talk, turn)
            for reason, count in out.items():
                for _ in range(count):
                    yield Made(kind=Kind.MEMORY, reason=reason)
        if self.wants.form is not Form.MEMORIES:
            yield self._episode(talk, turns, next(iter(out), ""))

    def _in_time(self, turns: Sequence[Turn]) -> tuple[list[Turn], Counter[str]]:
        kept: list[Turn] = []
        out: Counter[str] = Counter()
        for turn in turns:
            at = turn.at or self.wants.undated
            reason = UNDATED if at is None else self._out_of_time(at)
            if reason:
                out[reason] += 1
            else:
                kept.append(replace(turn, at=at))
        return kept, out

    def _out_of_time(self, at: dt.datetime) -> str:
        if self.wants.since is not None and at < self.wants.since:
            return BEFORE
        return AFTER if self.wants.until is not None and at >= self.wants.until else ""

    def _memory(self, talk: Conversation, turn: Turn) -> Made:
        pieces = self._pieces(turn.text)
        if not pieces:
            return Made(kind=Kind.MEMORY, reason=BLANK)
        assert turn.at is not None  # noqa: S101 - those without were left out
        item, at = self._item(), turn.at
        agent, project, channel = self._place()
        name = key_of(talk.format, talk.id, turn.id)
        rows = tuple(
            NewRow(
                kind=Kind.MEMORY,
                item=item,
                agent=agent,
                project=project,
                channel=channel,
                text=piece,
                at=timestamp(at),
                created=created_at(at),
                msg_id=name if number == 1 else key_of(talk.format, talk.id, turn.id, str(number)),
                source=_dump(_source(talk, turn)),
                metadata=_dump({"backfill": self._origin(talk, turn, number, len(pieces))}),
            )
            for number, piece in enumerate(pieces, 1)
        )
        return Made(kind=Kind.MEMORY, rows=rows)

    def _pieces(self, text: str) -> tuple[str, ...]:
        cleaned = unannotated(text).strip()
        # A cut can only take from a piece, so no annotation comes about by it.
        pieces = split(cleaned, self.wants.limit) if cleaned else ()
        self.split += len(pieces) > 1
        return pieces

    def _origin(self, talk: Conversation, turn: Turn, number: int, pieces: int) -> Mapping[str, object]:
        """Where a memory comes from, and when it was brought in: its own times are those of the source."""
        origin: dict[str, object] = {
            "imported_at": timestamp(self.wants.now.replace(microsecond=0)),
            "from": str(talk.format),
            "conversation": _plain(talk.id)[:KEY],
            "message": _plain(turn.id)[:KEY],
        }
        if talk.title:
            origin["title"] = _plain(talk.title)[:_TITLE]
        if pieces > 1:
            origin["part"] = f"{number}/{pieces}"
        if turn.dated is not Dated.MESSAGE:
            origin["dated"] = str(turn.dated)
        return origin

    def _place(self) -> tuple[str, str, str]:
        return self.wants.agent, self.wants.project or "", self.wants.channel or ""

    def _item(self) -> int:
        self.items += 1
        return self.items

    def _episode(self, talk: Conversation, turns: Sequence[Turn], why_none: str) -> Made:
        """The episode of a conversation; of one that has grown since an earlier run, of what is new in it."""
        if talk.passed_over or not turns:
            return Made(kind=Kind.EPISODE, reason=talk.passed_over or why_none or "empty")
        agent, project, channel = self._place()
        rest, first = turns, talk.turns[0].id
        while True:
            key = digest(agent, project, channel, str(talk.format), talk.id, first)
            covered = self._covered(key)
            if covered is None:
                break
            rest = _after(rest, *covered)
            if not rest:
                return Made(kind=Kind.EPISODE, reason=COVERED)
            first = rest[0].id
        summary = self._summary(talk, rest)
        if not summary.text:
            return Made(kind=Kind.EPISODE, reason=NOT_SUMMARISED)
        times = [turn.at for turn in rest if turn.at is not None]
        row = NewRow(
            kind=Kind.EPISODE,
            item=self._item(),
            agent=agent,
            project=project,
            channel=channel,
            text=summary.text,
            keywords=summary.keywords,
            started=timestamp(min(times)),
            ended=timestamp(max(times)),
            created=created_at(max(times)),
            wanted=created_at(max(times)),
            key=key,
            last=digest(rest[-1].id),
        )
        self._cover(row.key, row.last, row.ended)
        return Made(kind=Kind.EPISODE, rows=(row,))

    def _summary(self, talk: Conversation, turns: Sequence[Turn]) -> Summary:
        """The user's own summary of a conversation, the source's, or an extract of what was said."""
        talk = replace(talk, turns=tuple(turns))
        made = extract(talk, min(LENGTH, self.wants.limit))
        given = unannotated(self.wants.summaries.get(talk.id, "") or talk.summary).strip()
        if given:
            made = Summary(text=given, keywords=made.keywords)
        text, keywords = (mended(unannotated(part), self.altered).strip() for part in (made.text, made.keywords))
        shown = split(text, self.wants.limit)[0] if text else ""
        self.altered.update({SHORTENED: 1} if len(shown) < len(text) else {})
        return Summary(text=shown, keywords=keywords[: self.wants.limit])

    def stored(self, row: Stored) -> Made:
        """A row of CPersona's own export, as what it is."""
        kind = Kind.EPISODE if row.kind is StoredKind.EPISODE else Kind.MEMORY
        at = row.at if kind is Kind.MEMORY else row.ended or row.started or row.created
        at = at or self.wants.undated
        source, metadata = _object(row.source), _object(row.metadata)
        place = {
            "agent": (row.agent if self.wants.keep_agents else "") or self.wants.agent or row.agent,
            "project": row.project if self.wants.project is None else self.wants.project,
            "channel": row.channel if self.wants.channel is None else self.wants.channel,
        }
        reason = self._unfit(row, at, source, metadata, place)
        pieces = () if reason else self._pieces(row.text)
        if at is None or reason or not pieces:
            return Made(kind=kind, reason=reason or BLANK)
        made = self._exported_memory if kind is Kind.MEMORY else self._exported_episode
        item = self._item()
        rows = (made(row, at, piece, number, len(pieces)) for number, piece in enumerate(pieces, 1))
        return Made(kind=kind, rows=tuple(replace(one, item=item, **place) for one in rows))

    def _unfit(
        self,
        row: Stored,
        at: dt.datetime | None,
        source: object,
        metadata: object,
        place: Mapping[str, str],
    ) -> str:
        """Why a row of an export cannot be stored, or is not wanted."""
        if row.kind is StoredKind.PROFILE:
            return PROFILES
        if not place["agent"]:
            return NO_AGENT
        if at is None:
            return UNDATED
        if source is None or metadata is None:
            return ODD_JSON
        if len(row.source) > JSON or len(row.metadata) > JSON or any(len(text) > KEY for text in place.values()):
            return TOO_LONG
        return self._out_of_time(at)

    def _exported_memory(self, row: Stored, at: dt.datetime, piece: str, number: int, pieces: int) -> NewRow:
        name = row.msg_id if len(row.msg_id) <= KEY else digest(row.msg_id)
        if pieces > 1 and number > 1:
            name = _short(f"{name or digest(row.text)}#{number}")
        return NewRow(
            kind=Kind.MEMORY,
            item=0,
            agent="",
            project="",
            channel="",
            text=piece,
            at=timestamp(at),
            created=created_at(row.created or at),
            msg_id=name,
            source=_spoken(row.source),
            metadata=self._stamped(row.metadata),
            locked=int(row.locked),
        )

    def _stamped(self, metadata: str) -> str:
        """``metadata`` with the time of the import, where there is room for it."""
        origin = {"imported_at": timestamp(self.wants.now.replace(microsecond=0)), "from": str(Format.CPERSONA)}
        stamped = _dump({**(_object(metadata) or {}), "backfill": origin})
        return stamped if len(stamped) <= JSON else metadata

    def _exported_episode(self, row: Stored, at: dt.datetime, piece: str, number: int, pieces: int) -> NewRow:
        del number, pieces
        created = created_at(row.created or at)
        return NewRow(
            kind=Kind.EPISODE,
            item=0,
            agent="",
            project="",
            channel="",
            text=piece,
            keywords=row.keywords[: self.wants.limit],
            started=timestamp(row.started or at),
            ended=timestamp(row.ended or row.started or at),
            created=created,
            wanted=created,
            resolved=int(row.resolved),
        )


def _after(turns: Sequence[Turn], last: str, ended: str) -> Sequence[Turn]:
    """What of ``turns`` an episode that goes to ``last`` leaves; where another branch is shown since, what is later."""
    at = next((at for at, turn in enumerate(turns) if digest(turn.id) == last), None)
    if at is not None:
        return turns[at + 1 :]
    end = dt.datetime.fromisoformat(ended)
    return [turn for turn in turns if turn.at is not None and turn.at > end]


def key_of(source: Format, *parts: str) -> str:
    """An id for ``msg_id``: readable where it is short enough, always the same for the same parts."""
    return _short(":".join((str(source), *map(_plain, parts))))


def _short(name: str) -> str:
    return name if len(name) <= KEY else f"{name[: KEY - 40]}:{digest(name)[-32:]}"


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\x00", "")


def _source(talk: Conversation, turn: Turn) -> Mapping[str, str]:
    """Who spoke, in the server's own terms."""
    if turn.role is Role.USER:
        return {"type": "User", "id": f"{talk.format}:user", "name": "user"}
    name = _plain(talk.model)[:_TITLE] or _NAMES.get(talk.format, "assistant")
    return {"type": "Agent", "id": f"{talk.format}:assistant", "name": name}


def _spoken(source: str) -> str:
    """A source of an export, its type spelled as the server spells it now."""
    found = _object(source) or {}
    word = found.get("type")
    known = _SPEAKERS.get(word.lower()) if isinstance(word, str) else None
    return source if known is None or known == word else _dump({**found, "type": known})


def _object(text: str) -> Mapping[str, object] | None:
    """The JSON object in ``text``, None where SQLite would find none."""
    try:
        found = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refused(constant: str) -> None:
    raise ValueError(constant)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
