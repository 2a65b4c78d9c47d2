"""What an import would do and has done, told for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from cpersona_cli.history.bring_in import Brought, NoVectors
from cpersona_cli.history.detect import NAMES
from cpersona_cli.history.gather import Read, Tally
from cpersona_cli.history.model import Looked
from cpersona_cli.history.plan import Plan
from cpersona_cli.record import record
from cpersona_cli.report.figures import Table
from cpersona_cli.report.model import Section
from cpersona_cli.report.progress import short, spoken
from cpersona_cli.report.reembed import size
from cpersona_cli.store.boundary import Boundary, Scope
from cpersona_cli.store.effects import Change
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing.mending import Harm, Mended
from cpersona_cli.store.writing.taking_back import TakenBack
from cpersona_cli.text import plural, safe

Row = tuple[str, str, str]

_NOUNS = {Kind.MEMORY: ("memory", "memories"), Kind.EPISODE: ("episode", "episodes")}
#: Files, places and episodes that are listed in text without -v, and recalls in the table.
_SHOWN, _RECALLS = 10, 12
#: Characters of a token, roughly.
_TOKEN = 4


@record(kw_only=True)
class Around:
    """What holds for an import beside its plan. ``agent`` is empty where rows of an export keep their own.

    ``vectors`` says where vectors come from or why there are none, ``sends`` names the computer that texts would be
    sent to where that is not this one. ``holders`` have the database open. ``weakening`` are clients with the episode
    penalty on, empty where it is on for none; ``clients`` says whether any client is known. ``waiting`` rows of earlier
    imports have no vector yet.
    """

    agent: str = ""
    keep_agents: bool = False
    project: str = ""
    channel: str = ""
    limit: int = 0
    no_penalty: bool = False
    vectors: str = ""
    sends: str = ""
    holders: tuple[str, ...] = ()
    weakening: tuple[str, ...] = ()
    clients: bool = False
    waiting: int = 0


def plan_sections(plan: Plan, around: Around) -> Iterator[Section]:
    """The plan, the boundaries it moves, and the files it was made from."""
    yield Section(title="plan", rows=list(_plan(plan, around)), verbosity=0)
    yield from _boundaries("episode boundary", plan.scopes)
    if plan.late:
        yield Section(title="episodes newer than the boundary", rows=list(_late(plan)), verbosity=0)
    yield from sources_sections(plan.read)


def sources_sections(read: Read) -> Iterator[Section]:
    """The files read and passed over, what could not be read, and what was odd."""
    if read.unread:
        rows = [(safe(one.where, 200), safe(one.reason, 300)) for one in read.unread]
        yield from _listed("could not be read", rows, read.unread_count)
    if read.remarks:
        yield from _listed("read all the same", [("", safe(text, 400)) for text in read.remarks], read.remark_count)
    rows = [(safe(one.where, 200), _file(one)) for one in read.files]
    yield from _listed("files", rows, read.files_read + read.files_passed)


def _listed(title: str, rows: Sequence[tuple[str, str]], count: int) -> Iterator[Section]:
    """A list that text shows the beginning of, and more with ``-v``."""
    more = count - min(len(rows), _SHOWN)
    shown = [(name, text, "") for name, text in rows[:_SHOWN]]
    yield Section(title=title, rows=[*shown, *([("", f"and {more:,} more", "")] if more else [])], verbosity=0)
    if len(rows) > _SHOWN:
        rest = count - len(rows)
        tail = [("", f"and {rest:,} more", "")] if rest > 0 else []
        yield Section(
            title=f"{title}, continued", rows=[*((name, text, "") for name, text in rows[_SHOWN:]), *tail], verbosity=1
        )


def _file(looked: Looked) -> str:
    if looked.format is None:
        return f"passed over: {safe(looked.reason, 300)}"
    return f"read as {NAMES[looked.format]}, {size(looked.size)}"


def _plan(plan: Plan, around: Around) -> Iterator[Row]:
    read = plan.read
    yield "read", _files(read), ""
    yield "found", _found(read), ""
    yield from _reading(read)
    for kind, tally in ((Kind.MEMORY, plan.memories), (Kind.EPISODE, plan.episodes)):
        yield from _tally(kind, tally, read, "new")
    yield "stores", _stores(plan, around), ""
    if read.split:
        kept = f"the {around.limit:,} characters that the server keeps of one"
        yield "split", f"{plural(read.split, 'text')} longer than {kept}: stored in pieces, whole", ""
    yield "vectors", around.vectors, ""
    if around.waiting:
        yield "", f"{plural(around.waiting, 'row')} of earlier imports, still without one, included", ""
    if around.sends:
        yield "sends", f"texts to {safe(around.sends)}, which is not this computer", ""
    yield "penalty", _penalty(plan, around), ""
    if not plan.empty:
        yield "disk", _disk(plan), ""
        yield "beside", _beside(around), ""
    for warning in plan.warnings:
        yield "mind", safe(warning, 600), ""


def _files(read: Read) -> str:
    formats = Counter(NAMES[one.format] for one in read.files if one.format is not None)
    kinds = ", ".join(name if count == 1 else f"{name} {count:,} times" for name, count in formats.most_common())
    text = f"{plural(read.files_read, 'file')}, {size(read.bytes)}"
    text += f" ({kinds})" if kinds else ""
    return text + (f"; {read.files_passed:,} passed over" if read.files_passed else "")


def _found(read: Read) -> str:
    parts = []
    if read.conversations or not read.rows:
        parts.append(f"{plural(read.conversations, 'conversation')} with {plural(read.turns, 'message')}")
    if read.rows:
        parts.append(f"{plural(read.rows, 'row')} of CPersona’s own export")
    when = f", {read.first:%Y-%m-%d} to {read.last:%Y-%m-%d}" if read.first and read.last else ", none with a date"
    return " and ".join(parts) + (when if read.turns or read.rows else "")


def _reading(read: Read) -> Iterator[Row]:
    """What never came to be a row, by reason."""
    if read.unread_count:
        yield "not read", f"{plural(read.unread_count, 'place')}, listed below", ""
    if read.passed_over:
        yield "whole", f"conversations left out: {_reasons(read.passed_over)}", ""
    if read.not_talk:
        yield "no talk", _reasons(read.not_talk), ""
    if read.branches:
        yield "branches", f"{plural(read.branches, 'other way')} through edited conversations, not followed", ""
    if read.undated:
        yield "undated", f"times that are not known: {_reasons(read.undated)}", ""
    if read.altered:
        yield "changed", _reasons(read.altered), ""


def _tally(kind: Kind, tally: Tally, read: Read, word: str) -> Iterator[Row]:
    if not tally.read:
        return
    sums = [f"{tally.stored:,} {word}"]
    sums += [f"{tally.duplicates:,} there already"] if tally.duplicates else []
    sums += [f"{tally.out:,} left out"] if tally.out else []
    sums += [f"{tally.failures:,} failed"] if tally.failures else []
    sums += [f"{tally.rest:,} not come to"] if tally.rest else []
    talk = "messages" if kind is Kind.MEMORY else "conversations"
    of = " and ".join([*([talk] if read.conversations else []), *(["rows"] if read.rows else [])])
    yield _NOUNS[kind][1], f"of {tally.read:,} {of}: {', '.join(sums)}", ""
    for counts in (tally.duplicate, tally.left_out, tally.failed):
        if counts:
            yield "", _reasons(counts), ""


def _reasons(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{safe(reason, 200)} ({count:,})" for reason, count in counts.items() if count)


def by_kind(rows: Mapping[Kind, int]) -> str:
    """``3 memories and 1 episode``, or ``nothing``."""
    parts = [f"{rows[kind]:,} {_NOUNS[kind][rows[kind] != 1]}" for kind in Kind if rows.get(kind)]
    return " and ".join(parts) or "nothing"


def _stores(plan: Plan, around: Around) -> str:
    if plan.empty:
        return "nothing: all of it is there already or left out"
    owner = f"agent {safe(repr(around.agent), 80)}" if around.agent else "the agents that the export names"
    if around.agent and around.keep_agents and plan.read.rows:
        owner += ", rows of the export for the agents that it names"
    places = [f"project {safe(repr(around.project), 80)}"] if around.project else []
    places += [f"channel {safe(repr(around.channel), 80)}"] if around.channel else []
    return f"{by_kind(plan.rows)} for {', '.join([owner, *places])}, dated as they were said"


def tokens(characters: int) -> str:
    """A rough number of tokens, for a sentence."""
    return f"about {short(max(1, characters // _TOKEN))} tokens"


def _penalty(plan: Plan, around: Around) -> str:
    if plan.changed:
        text = f"{plan.changed:,} of the memories that are there would count differently: see below"
    elif any(one.moved for one in plan.scopes):
        text = "the boundary moves where no memory is held against it: each that is there counts as before"
    else:
        text = "no boundary moves: each memory that is there counts as before"
    if around.weakening:
        return f"{text}; it is on in {', '.join(safe(name, 80) for name in around.weakening)}"
    return f"{text}; it is off in every client that is known" if around.clients else text


def _disk(plan: Plan) -> str:
    text = f"a backup of {size(plan.backup_bytes)}, and about {size(plan.growth_bytes)} more in the database"
    return text if plan.free_bytes is None else f"{text}; {size(plan.free_bytes)} are free"


def _beside(around: Around) -> str:
    fine = "a server may go on meanwhile: others wait less than a second at a time"
    return f"{fine} (open now in {', '.join(safe(name, 120) for name in around.holders)})" if around.holders else fine


def _boundaries(title: str, changes: Sequence[Change]) -> Iterator[Section]:
    """The recalls whose boundary moves; nothing where none does."""
    moved = [one for one in changes if one.moved]
    if not moved:
        return
    rows = [
        (
            recall(one.scope),
            when(one.before),
            when(one.after),
            f"{one.rows:,}",
            f"{one.changed:,} by {one.most:+.2f}" if one.changed else "none",
        )
        for one in moved[:_RECALLS]
    ]
    header = ("recall of", "boundary before", "after", "memories", "changed")
    more = len(moved) - len(rows)
    yield Section(
        title=title,
        rows=[("", f"and {more:,} more recalls", "")] if more else [],
        figures=(Table(header=header, rows=rows, numbers=frozenset({3, 4})),),
        verbosity=0,
    )


def recall(scope: Scope) -> str:
    """What a recall asks for, in a few words."""
    parts = [safe(scope.agent, 60) or "''"]
    if scope.project is not None:
        parts.append(f"project {safe(scope.project, 40)}" if scope.project else "the global pool")
    parts += [f"channel {safe(scope.channel, 40)}"] if scope.channel else []
    return ", ".join(parts)


def when(boundary: Boundary) -> str:
    """A boundary as it is to be read."""
    if boundary.at is not None:
        return f"{boundary.at:%Y-%m-%d %H:%M}"
    return safe(boundary.stamp, 40) or "none"


def _late(plan: Plan) -> Iterator[Row]:
    for one in plan.late[:_SHOWN]:
        allowed = f"the boundary allows {one.allowed}" if one.allowed else "no date of it spares every memory"
        yield f"ended {safe(one.ended, 40)}", f"{recall(Scope(one.agent, one.project, one.channel))}: {allowed}", ""
    more = plan.late_count - min(len(plan.late), _SHOWN)
    if more:
        yield "", f"and {more:,} more", ""


def ended_sections(done: Brought, read: Read) -> Iterator[Section]:
    """What an import came to."""
    yield Section(title="result", rows=list(_result(done, read)), verbosity=0)
    if done.refused:
        rows = [
            (
                f"{one.kind}:{one.id}",
                safe(f"{one.reason.replace('_', ' ')}{f': {one.detail}' if one.detail else ''}", 300),
            )
            for one in done.refused
        ]
        yield from _listed(
            "rows that the endpoint refused", rows, max(len(rows), done.fetched.counts.failed if done.fetched else 0)
        )
    if any(one.changed for one in done.scopes):
        yield from _boundaries("episode boundary, as the database has it now", done.scopes)
    yield from sources_sections(read)


def _result(done: Brought, read: Read) -> Iterator[Row]:
    yield "stored", by_kind(done.rows), ""
    for kind, tally in ((Kind.MEMORY, done.memories), (Kind.EPISODE, done.episodes)):
        yield from _tally(kind, tally, read, "stored")
    yield from _reading(read)
    if done.embedded or done.without_vector:
        yield "vectors", vectors(done), ""
    if done.held is not None:
        yield "penalty", _held(done), ""
    if done.backup is not None:
        yield "backup", f"{done.backup.path}, {size(done.backup.bytes)}", ""
    if done.blocks:
        yield "asked", "the server to build the blocks of the new rows when it next stores something or starts", ""
    yield "took", f"{spoken(done.seconds)}; others waited {done.locked_seconds:.2f} s at the longest", ""


def vectors(done: Brought) -> str:
    """What became of the vectors, in a sentence."""
    if not done.without_vector:
        return f"every new row has one: {done.embedded:,} embedded"
    rows = plural(done.without_vector, "row")
    why = done.why_none or (done.fetched.detail if done.fetched is not None else "")
    lacking = f"{rows} without one" + (f": {safe(why, 400)}" if why else "")
    later = "" if done.why_none == NoVectors.NOT_WANTED and not done.embedded else "; none was made up"
    return f"{done.embedded:,} embedded, {lacking}{later}" if done.embedded else f"{lacking}{later}"


def _held(done: Brought) -> str:
    if done.held:
        return "measured again in the database: each memory that was there counts as before"
    return "measured again in the database: memories that were there count differently; undo takes the import out"


def harm_sections(harm: Harm) -> Iterator[Section]:
    """What an earlier import did, and what mending it changes."""
    yield Section(title="harm", rows=list(_harm(harm)), verbosity=0)
    yield from _boundaries("episode boundary", harm.scopes)


def _harm(harm: Harm) -> Iterator[Row]:
    if not harm.episodes:
        yield "found", "no episodes that were stored together long after they ended", ""
        return
    times = "" if len(harm.bursts) == 1 else f" in {len(harm.bursts)} imports"
    ended = f"{plural(harm.episodes, 'episode')} that ended from {harm.oldest} to {harm.newest} UTC"
    stored = f"stored together{times}, from {safe(harm.first, 40)} to {safe(harm.last, 40)} UTC, and dated so"
    yield "found", f"{ended}: {stored}", ""
    agents = [f"{safe(name, 60)} ({count:,})" for name, count in list(harm.agents.items())[:_SHOWN]]
    agents += [f"{len(harm.agents) - _SHOWN:,} more"] if len(harm.agents) > _SHOWN else []
    yield "agents", ", ".join(agents), ""
    yield "mends", "created_at of each becomes the time it ended; texts, vectors and memories stay as they are", ""


def mended_section(done: Mended) -> Section:
    """What a repair did."""
    rows: list[Row] = [("mended", plural(done.mended, "episode"), "")]
    rows += [("left", f"{plural(done.left, 'episode')} that changed meanwhile", "")] if done.left else []
    if done.backup is not None:
        rows.append(("backup", f"{done.backup.path}, {size(done.backup.bytes)}", ""))
    rows.append(("took", spoken(done.seconds), ""))
    return Section(title="result", rows=rows, verbosity=0)


def taken_section(done: TakenBack) -> Section:
    """What an undo did."""
    verb = "dated" if done.of.action == "repair" else "removed"
    what = "as before the repair" if verb == "dated" else "that the import had stored"
    rows: list[Row] = [(verb, f"{plural(done.removed, 'row')} {what}", "")]
    rows += [("left", f"{plural(done.left, 'row')} that changed since", "")] if done.left else []
    rows += [("gone", f"{plural(done.gone, 'row')} that were no more", "")] if done.gone else []
    rows.append(("took", spoken(done.seconds), ""))
    return Section(title="undo", rows=rows, verbosity=0)
