"""What an import would do to one database: nothing was written when this was made.

The rows are in the scratch file by then. Here they are held against what is in the database, episodes are dated so
that they spare its memories where that is asked for, and every boundary and factor is told before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from cpersona_cli.history.gather import Read, Tally
from cpersona_cli.history.wants import Wants
from cpersona_cli.record import record, replace
from cpersona_cli.store.boundary import Newest, with_episode
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.effects import Change
from cpersona_cli.store.files import existing_folder, free_bytes, real_path
from cpersona_cli.store.limits import Limits, rules_for
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing.comparing import Present, compare, present_episodes, weigh
from cpersona_cli.store.writing.imports import episodes
from cpersona_cli.store.writing.scratch import OPEN, Scratch
from cpersona_cli.text import plural, safe

#: Episodes that are too new, by name, at the most.
LISTED = 20
#: Bytes a stored character takes, with the text index and what else is kept of a row, and bytes of a row beside it.
_CHARACTER, _ROW = 6, 700
#: Bytes that the disk must keep free.
_SPARE = 64 << 20


@record(kw_only=True)
class LateEpisode:
    """An episode newer than the boundary that memories are held against: where it would lie, and until when it may be.

    ``allowed`` is the latest harmless ``created_at``, empty where there is none.
    """

    agent: str
    project: str
    channel: str
    ended: str
    allowed: str


@record(kw_only=True)
class Plan:
    """What would be done. ``memories`` and ``episodes`` tell what was read by what would become of it.

    ``rows`` are those that would be inserted, by kind. ``scopes`` are recalls with their boundaries before and after,
    those that change first. ``late`` are the first of ``late_count`` episodes that would weaken memories; with
    ``clamped`` of them dated back. Sizes are bytes. ``refusals`` say why it cannot be done, each with what to do.
    """

    read: Read
    memories: Tally
    episodes: Tally
    rows: Mapping[Kind, int]
    characters: int
    present: Present
    scopes: tuple[Change, ...] = ()
    late: tuple[LateEpisode, ...] = ()
    late_count: int = 0
    clamped: int = 0
    growth_bytes: int = 0
    backup_bytes: int = 0
    free_bytes: int | None = None
    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing would be inserted."""
        return not sum(self.rows.values())

    @property
    def changed(self) -> int:
        """Memories that would count differently in the recall in which that are most."""
        return max((one.changed for one in self.scopes), default=0)


def know(database: Path, scratch: Scratch) -> None:
    """Tell ``scratch`` which conversations have an episode already. To be called before anything is gathered.

    Raises ``StoreError``.
    """
    found = episodes(database)
    there = present_episodes(CPersonaStore(database), [entry[2:] for entry in found])
    scratch.know((key, last, there[at, digest]) for key, last, at, digest in found if (at, digest) in there)


def make_plan(
    database: Path,
    scratch: Scratch,
    read: Read,
    wants: Wants,
    *,
    tell: Callable[[str], None] = lambda _phase: None,
) -> Plan:
    """Hold what was gathered against ``database``. Raises ``StoreError``."""
    store = CPersonaStore(database)
    tell("comparing")
    present = compare(store, scratch)
    late, count, clamped = _dated(scratch, present, wants) if wants.no_penalty else ((), 0, 0)
    tell("weighing")
    before = [one for newest in present.newest.values() for one in newest]
    after: Sequence[Newest] = before
    for agent, project, channel, created in scratch.newest():
        after = with_episode(after, agent, project, channel, created)
    scopes = weigh(store, present.newest, before, after, lens=wants.lens, places=scratch.places())
    size = scratch.size()
    rows = {kind: number for kind, (number, _) in size.items()}
    characters = sum(letters for _, letters in size.values())
    folder = existing_folder(real_path(database))
    plan = Plan(
        read=read,
        memories=tallied(read.memories, scratch.outcomes(Kind.MEMORY)),
        episodes=tallied(read.episodes, scratch.outcomes(Kind.EPISODE)),
        rows=rows,
        characters=characters,
        present=present,
        scopes=scopes,
        late=late,
        late_count=count,
        clamped=clamped,
        growth_bytes=_CHARACTER * characters + (_ROW + 4 * next(iter(present.widths), 0)) * sum(rows.values()),
        backup_bytes=present.bytes if rows else 0,
        free_bytes=free_bytes(folder) if folder else None,
    )
    return replace(plan, refusals=tuple(_refusals(plan, wants)), warnings=tuple(_warnings(plan, wants)))


def tallied(read: Tally, outcomes: Mapping[str, int]) -> Tally:
    """What was read, with what became of its rows: ``OPEN`` ones count as stored, all others as there already."""
    there = {reason: count for reason, count in outcomes.items() if reason != OPEN}
    return replace(read, stored=outcomes.get(OPEN, 0), duplicate={**read.duplicate, **there})


def _dated(scratch: Scratch, present: Present, wants: Wants) -> tuple[tuple[LateEpisode, ...], int, int]:
    """Find the episodes that would weaken memories, and date them back where that is wanted."""
    limits = {
        agent: Limits(agent, present.newest.get(agent, ()), present.oldest.get(agent, ()), rules_for(present.schema))
        for agent in scratch.agents()
    }
    late: list[LateEpisode] = []
    count = clamped = 0
    dates: list[tuple[int, str]] = []
    for number, row in scratch.rows(Kind.EPISODE):
        limit = limits[row.agent]
        if limit.allows(row.project, row.channel, row.created):
            continue
        count += 1
        allowed = limit.latest(row.project, row.channel, row.created) or ""
        if len(late) < LISTED:
            late.append(
                LateEpisode(
                    agent=row.agent, project=row.project, channel=row.channel, ended=row.wanted, allowed=allowed
                )
            )
        if wants.clamp and allowed:
            clamped += 1
            dates.append((number, allowed))
    scratch.date(dates)
    return tuple(late), count, clamped


def _refusals(plan: Plan, wants: Wants) -> Iterator[str]:
    unplaced = plan.late_count - plan.clamped
    if unplaced:
        one = next((one for one in plan.late if not (wants.clamp and one.allowed)), plan.late[0])
        number = plural(unplaced, "episode")
        if not one.allowed:
            yield (
                f"{number} cannot be dated so that no memory of {safe(repr(one.agent), 80)} counts for less: leave"
                " episodes out with --as memories"
            )
        else:
            yield (
                f"{number} {'is' if unplaced == 1 else 'are'} newer than the boundary that memories are held against"
                f" (the first ended {one.ended} UTC, the boundary allows {one.allowed}), and would lower their scores:"
                " leave them out with --until, date them back with --clamp, or use --as memories"
            )
    need = plan.growth_bytes * 2 + plan.backup_bytes + _SPARE
    if not plan.empty and plan.free_bytes is not None and plan.free_bytes < need:
        yield (
            f"it takes about {need >> 20} MiB beside the database, a backup included, and {plan.free_bytes >> 20} MiB"
            " are free: make room on its disk"
        )


def _warnings(plan: Plan, wants: Wants) -> Iterator[str]:
    if not plan.present.unique:
        yield (
            "the database lacks an index by which it keeps the same memory from being stored twice: duplicates are"
            " looked for one by one, which is slow; the server makes it anew when it starts, if it can"
        )
    if plan.read.unused:
        yield (
            f"{plan.read.unused:,} of {plural(len(wants.summaries), 'summary', 'summaries')} given with --summaries"
            f" {'is' if plan.read.unused == 1 else 'are'} of no conversation that was read: look at the ids"
        )
    if plan.clamped:
        yield (
            f"{plural(plan.clamped, 'episode')} {'is' if plan.clamped == 1 else 'are'} dated back to the boundary, so"
            " that memories count as before; their own times stay in start_time and end_time"
        )
    if plan.changed and not wants.no_penalty:
        yield (
            f"{plural(plan.changed, 'memory', 'memories')} that {'is' if plan.changed == 1 else 'are'} there"
            " would count for less where the episode penalty is on: --no-penalty prevents that"
        )
