"""Episodes that an import dated to its own time: found by how they were stored, and dated back to when they ended.

What counts as an import is told as the audit tells it: two and more episodes stored within seconds of each other, each
more than a day after it ended. Their ``created_at`` only ever moves back, so no boundary rises.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from cpersona_cli.record import field, record
from cpersona_cli.store.audit import LATE, TOGETHER
from cpersona_cli.store.audit_model import Lens
from cpersona_cli.store.boundary import Penalty, Rule, newest_episodes
from cpersona_cli.store.cpersona.features import Features
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.effects import Change, changes
from cpersona_cli.store.limits import text_of
from cpersona_cli.store.model import Kind
from cpersona_cli.store.newrow import digest_of
from cpersona_cli.store.writing.backup import Backup, copied
from cpersona_cli.store.writing.imports import Action, Entry, Record, backup_path, columns_of
from cpersona_cli.store.writing.joblock import JobLock
from cpersona_cli.store.writing.mainfile import Main
from cpersona_cli.store.writing.taking_back import indexes_after

_TIME = 600.0
_MANY, _PAUSE = 500, 0.02
#: Agents whose boundaries are shown.
_AGENTS = 200

_SECONDS = 86_400
_LATE_ONES = f"""
SELECT id, agent_id, created_at, datetime(ended), julianday(created_at) * {_SECONDS} AS at
FROM (
  SELECT id, agent_id, created_at, coalesce(nullif(end_time, ''), nullif(start_time, '')) AS ended FROM main.episodes)
WHERE julianday(created_at) - julianday(ended) > {LATE} AND datetime(ended) < created_at
ORDER BY at, id"""  # noqa: S608 - constants

# A view of that name is found before the table.
_AS_MENDED = """
CREATE TEMP TABLE mended (id INTEGER PRIMARY KEY, created TEXT NOT NULL);
CREATE TEMP VIEW episodes AS SELECT agent_id, project_id, channel, coalesce(created, created_at) AS created_at
  FROM main.episodes LEFT JOIN temp.mended USING (id);
"""


@record
class Dated:
    """One episode of an import: its ``created_at`` as stored, and what it is to be."""

    id: int
    agent: str
    old: str
    new: str


@record(kw_only=True)
class Harm:
    """What imports did to a store. ``bursts`` are how many episodes each stored, ``oldest`` and ``newest`` their ends.

    ``first`` and ``last`` are when they were stored. ``scopes`` are the recalls whose boundary a repair moves.
    """

    episodes: int = 0
    bursts: tuple[int, ...] = ()
    first: str = ""
    last: str = ""
    oldest: str = ""
    newest: str = ""
    agents: Mapping[str, int] = field(default_factory=dict)
    scopes: tuple[Change, ...] = ()


@record(kw_only=True)
class Mended:
    """What a repair did: episodes dated back, those that were changed meanwhile, and the id to take it back by.

    ``backup`` is the copy from before it, None where nothing was to be done.
    """

    id: str
    mended: int
    left: int
    seconds: float
    backup: Backup | None = None


def find(store: CPersonaStore, lens: Lens) -> Harm:
    """What imports did, and what a repair would do as ``lens`` sees it. Raises ``StoreError``."""

    def look(connection: sqlite3.Connection, features: Features, _: object) -> Harm:
        return _harm(connection, frozenset(features.columns["episodes"]), lens)

    return store.look(look, time.monotonic() + _TIME)


def _harm(connection: sqlite3.Connection, columns: frozenset[str], lens: Lens) -> Harm:
    bursts = list(_bursts(connection))
    if not bursts:
        return Harm()
    late = [one for burst in bursts for one in burst]
    agents: dict[str, int] = {}
    for one in late:
        agents[one.agent] = agents.get(one.agent, 0) + 1
    before = newest_episodes(connection, columns)
    connection.executescript(_AS_MENDED)
    try:
        connection.executemany("INSERT INTO temp.mended VALUES (?, ?)", ((one.id, one.new) for one in late))
        after = newest_episodes(connection, columns)
    finally:
        connection.executescript("DROP VIEW temp.episodes; DROP TABLE temp.mended;")
    named = sorted(agents, key=lambda agent: -agents[agent])
    scopes = [one for agent in named[:_AGENTS] for one in changes(connection, agent, before, after, lens=lens)]
    return Harm(
        episodes=len(late),
        bursts=tuple(len(burst) for burst in bursts),
        first=min(one.old for one in late),
        last=max(one.old for one in late),
        oldest=min(one.new for one in late),
        newest=max(one.new for one in late),
        agents={agent: agents[agent] for agent in named},
        scopes=tuple(one for one in scopes if one.moved),
    )


def _bursts(connection: sqlite3.Connection) -> Iterator[Sequence[Dated]]:
    """Episodes of one import each, in the order they were stored."""
    burst: list[Dated] = []
    before = 0.0
    for identifier, agent, old, new, at in connection.execute(_LATE_ONES):
        if burst and at - before > TOGETHER:
            if len(burst) > 1:
                yield burst
            burst = []
        burst.append(Dated(identifier, text_of(agent), text_of(old), text_of(new)))
        before = at
    if len(burst) > 1:
        yield burst


def mend(
    database: Path, *, wait: float = 30.0, tell: Callable[[int, int], None] = lambda _done, _total: None
) -> Mended:
    """Date episodes of imports back to when they ended; on record, so that it can be taken back. Raises ``StoreError``.

    When it is cut off, the same call goes on.
    """
    start, done, left = time.monotonic(), 0, 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(JobLock(database))
        if not find(CPersonaStore(database), Lens(Rule(), Penalty())).episodes:
            return Mended(id="", mended=0, left=0, seconds=time.monotonic() - start)
        saved = copied(database, backup_path(database))
        main = stack.enter_context(Main(database))
        kept = stack.enter_context(Record(database))
        kept.check(main)
        with main.reading() as connection:
            late = [one for burst in _bursts(connection) for one in burst]
        identifier = kept.begin(Action.REPAIR)
        for begin in range(0, len(late), _MANY):
            page = late[begin : begin + _MANY]
            with main.transaction(wait) as connection:
                entries = [entry for one in page if (entry := _date(main, connection, one)) is not None]
                kept.note(entries)
            done, left = done + len(entries), left + len(page) - len(entries)
            tell(begin + len(page), len(late))
            time.sleep(_PAUSE)
        main.make_durable()
        main.checkpoint()
        kept.finish()
        indexes_after(database, main)
    return Mended(id=identifier if done else "", mended=done, left=left, seconds=time.monotonic() - start, backup=saved)


def _date(main: Main, connection: sqlite3.Connection, one: Dated) -> Entry | None:
    """Date one episode back, if it is still dated as it was found."""
    changed = connection.execute(
        "UPDATE episodes SET created_at = ? WHERE id = ? AND created_at = ?", (one.new, one.id, one.old)
    ).rowcount
    if not changed:
        return None
    stored = columns_of(main, Kind.EPISODE, one.id)
    assert stored is not None  # noqa: S101 - just written
    return Entry(kind=Kind.EPISODE, id=one.id, digest=digest_of(stored), old=one.old)
