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
from cpersona_cli.store.job import Refused
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing.mending import Harm, Mended
from cpersona_cli.store.writing.taking_back import TakenBack
from cpersona_cli.text import safe

Row = tuple[str, str, str]

_NOUNS = {Kind.MEMORY: ("memory", "memories"), Kind.EPISODE: ("episode", "episodes")}
#: Files, places and episodes that are listed in text without -v, and recalls in the table.
_SHOWN, _RECALLS = 10, 12
#: What a repair leaves as it is.
_MEMORIES = "created_at of memories, which imports of 2.4 dated to their own time as well"
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


def sources_sections(read: Read, *, files_at: int = 0) -> Iterator[Section]:
    """What could not be read, what was odd, and the files, these at the verbosity ``files_at``."""
    if read.unread:
        places = [f"{safe(one.where, 300)}: {safe(one.reason, 300)}" for one in read.unread]
        yield from listed("could not be read", places, read.unread_count)
    if read.remarks:
        yield from listed("read all the same", [safe(text, 500) for text in read.remarks], read.remark_count)
    files = [f"{safe(one.where, 300)}: {_file(one)}" for one in read.files]
    yield from listed("files", files, read.files_read + read.files_passed, verbosity=files_at)


def listed(title: str, lines: Sequence[str], count: int, *, verbosity: int = 0) -> Iterator[Section]:
    """A list that text shows the beginning of, and more with one more ``-v``; ``count`` are all there are."""
    first, rest = lines[:_SHOWN], lines[_SHOWN:]
    yield Section(title=title, rows=_lines(first, count - len(first)), verbosity=verbosity)
    if rest:
        title = f"{title}, continued"
        yield Section(title=title, rows=_lines(rest, count - len(lines)), verbosity=verbosity + 1)


def _lines(lines: Sequence[str], more: int) -> Sequence[Row]:
    return [("", line, "") for line in (*lines, *([f"and {more:,} more"] if more > 0 else []))]


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
        yield "split", f"{many(read.split, 'text')} longer than {kept}: stored in pieces, whole", ""
    yield "vectors", around.vectors, ""
    if around.waiting:
        yield "", f"{many(around.waiting, 'row')} of earlier imports, still without one, included", ""
    if around.sends:
        yield "sends", f"texts to {safe(around.sends)}, which is not this computer", ""
    yield "penalty", _penalty(plan, around), ""
    if not plan.empty:
        yield "disk", _disk(plan), ""
        yield "beside", _beside(around), ""
    yield from _minded(plan)


def _minded(plan: Plan) -> Iterator[Row]:
    return (("mind", safe(warning, 600), "") for warning in plan.warnings)


def _files(read: Read) -> str:
    formats = Counter(NAMES[one.format] for one in read.files if one.format is not None)
    kinds = ", ".join(name if count == 1 else f"{name} {count:,} times" for name, count in formats.most_common())
    text = f"{many(read.files_read, 'file')}, {size(read.bytes)}"
    text += f" ({kinds})" if kinds else ""
    return text + (f"; {read.files_passed:,} passed over" if read.files_passed else "")


def _found(read: Read) -> str:
    parts = []
    if read.conversations or not read.rows:
        parts.append(f"{many(read.conversations, 'conversation')} with {many(read.turns, 'message')}")
    if read.rows:
        parts.append(f"{many(read.rows, 'row')} of CPersona’s own export")
    when = f", {read.first:%Y-%m-%d} to {read.last:%Y-%m-%d}" if read.first and read.last else ", none with a date"
    return " and ".join(parts) + (when if read.turns or read.rows else "")


def _reading(read: Read) -> Iterator[Row]:
    """What never came to be a row, by reason."""
    if read.unread_count:
        yield "not read", f"{many(read.unread_count, 'place')}, listed below", ""
    if read.passed_over:
        yield "whole", f"conversations left out: {_reasons(read.passed_over)}", ""
    if read.not_talk:
        yield "no talk", _reasons(read.not_talk), ""
    if read.branches:
        yield "branches", f"{many(read.branches, 'other way')} through edited conversations, not followed", ""
    if read.undated:
        yield "undated", f"times not known, and why: {_reasons(read.undated)}", ""
    if read.altered:
        yield "changed", _reasons(read.altered), ""


def _tally(kind: Kind, tally: Tally, read: Read, done: str) -> Iterator[Row]:
    if not tally.read:
        return
    sums = [f"{tally.stored:,} {done}"]
    sums += [f"{tally.duplicates:,} there already"] if tally.duplicates else []
    sums += [f"{tally.out:,} left out"] if tally.out else []
    sums += [f"{tally.failures:,} failed"] if tally.failures else []
    sums += [f"{tally.rest:,} not come to"] if tally.rest else []
    plural = "" if tally.read == 1 else "s"
    talk = "message" if kind is Kind.MEMORY else "conversation"
    of = " and ".join(f"{word}{plural}" for word, there in ((talk, read.conversations), ("row", read.rows)) if there)
    yield _NOUNS[kind][1], f"of {tally.read:,} {of}: {', '.join(sums)}", ""
    for counts in (tally.duplicate, tally.left_out, tally.failed):
        if counts:
            yield "", _reasons(counts), ""


def _reasons(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{safe(reason, 200)} ({count:,})" for reason, count in counts.items() if count)


def many(count: int, noun: str) -> str:
    """``1 file``, ``1,200 files``."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"


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
    agents = {one.scope.agent for one in moved}
    rows = [
        (
            recall(one.scope, name=len(agents) > 1),
            when(one.before),
            when(one.after),
            f"{one.changed:,} of {one.rows:,} by {one.most:+.2f}" if one.changed else f"none of {one.rows:,}",
        )
        for one in moved[:_RECALLS]
    ]
    more = len(moved) - len(rows)
    rows += [(f"and {more:,} more", "", "", "")] if more else []
    whose = "recalls" if len(agents) > 1 else f"recalls of {safe(agents.pop(), 30)}"
    header = (whose, "boundary", "afterwards", "memories changed")
    table = Table(header=header, rows=rows, numbers=frozenset({3}))
    yield Section(title=title, rows=(), figures=(table,), verbosity=0)


def recall(scope: Scope, *, name: bool = True) -> str:
    """What a recall asks for, in a few words; with the ``name`` of the agent."""
    parts = [safe(scope.agent, 60) or "''"] if name else []
    if scope.project is not None:
        parts.append(safe(scope.project, 40) if scope.project else "global pool")
    parts += [f"channel {safe(scope.channel, 40)}"] if scope.channel else []
    return ", ".join(parts) or "everywhere"


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


def ended_sections(done: Brought, plan: Plan) -> Iterator[Section]:
    """What an import came to."""
    read = plan.read
    yield Section(title="result", rows=[*_result(done, read), *_minded(plan)], verbosity=0)
    if done.refused:
        lines = [safe(f"{one.kind}:{one.id}: {_refused(one)}", 400) for one in done.refused]
        failed = done.fetched.counts.failed if done.fetched is not None else 0
        yield from listed("rows that the endpoint refused", lines, max(len(lines), failed))
    if any(one.changed for one in done.scopes):
        yield from _boundaries("episode boundary, as the database has it now", done.scopes)
    yield from sources_sections(read, files_at=1)


def _refused(one: Refused) -> str:
    return one.reason.replace("_", " ") + (f": {one.detail}" if one.detail else "")


def _result(done: Brought, read: Read) -> Iterator[Row]:
    yield "stored", by_kind(done.rows), ""
    yield "read", _files(read), ""
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
    rows = many(done.without_vector, "row")
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
    ended = f"{many(harm.episodes, 'episode')} that ended from {harm.oldest} to {harm.newest} UTC"
    stored = f"stored together{times}, from {safe(harm.first, 40)} to {safe(harm.last, 40)} UTC, and dated so"
    yield "found", f"{ended}: {stored}", ""
    agents = [f"{safe(name, 60)} ({count:,})" for name, count in list(harm.agents.items())[:_SHOWN]]
    agents += [f"{len(harm.agents) - _SHOWN:,} more"] if len(harm.agents) > _SHOWN else []
    yield "agents", ", ".join(agents), ""
    yield "mends", "created_at of each becomes the time it ended; texts and vectors stay as they are", ""
    yield "stays", f"{_MEMORIES}; no score depends on it, and what it was is not kept anywhere", ""


def mended_section(done: Mended) -> Section:
    """What a repair did."""
    rows: list[Row] = [("mended", many(done.mended, "episode"), "")]
    rows += [("left", f"{many(done.left, 'episode')} that changed meanwhile", "")] if done.left else []
    if done.backup is not None:
        rows.append(("backup", f"{done.backup.path}, {size(done.backup.bytes)}", ""))
    rows.append(("took", spoken(done.seconds), ""))
    return Section(title="result", rows=rows, verbosity=0)


def taken_section(done: TakenBack) -> Section:
    """What an undo did."""
    verb = "dated" if done.of.action == "repair" else "removed"
    what = "as before the repair" if verb == "dated" else "that the import had stored"
    rows: list[Row] = [(verb, f"{many(done.removed, 'row')} {what}", "")]
    rows += [("left", f"{many(done.left, 'row')} that changed since", "")] if done.left else []
    rows += [("gone", f"{many(done.gone, 'row')} that were no more", "")] if done.gone else []
    rows.append(("took", spoken(done.seconds), ""))
    return Section(title="undo", rows=rows, verbosity=0)
