"""What of a gathered import is in the database already, by the rules of the server's own ``store``.

A memory is there where its id, or its text, stands in the place it is for. The same text where every project or channel
sees it counts too if it is of the same speaker: one recall would return both (2.6.14, ``_store_dedup_answer``). Of
episodes the text alone tells.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from cpersona_cli.record import record
from cpersona_cli.store.audit_model import Lens
from cpersona_cli.store.boundary import Newest, newest_episodes
from cpersona_cli.store.cpersona.features import Features
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.effects import Change, changes
from cpersona_cli.store.limits import Oldest, oldest_memories, text_of
from cpersona_cli.store.model import Kind
from cpersona_cli.store.newrow import COLUMNS, NewRow, digest_of, text_digest
from cpersona_cli.store.sql import one
from cpersona_cli.store.writing.scratch import STORED_ID, STORED_TEXT, STORED_WIDER, Scratch

#: Seconds for all of it.
_TIME = 3600.0
#: Marks that are kept until they are written.
_MANY = 5_000

# Ids that are not empty have an index of their own, which SQLite takes only where the question says so too.
_BY_ID = "SELECT 1 FROM memories WHERE agent_id = ? AND project_id IN (?, '') AND msg_id = ? AND msg_id <> '' LIMIT 1"
_BY_TEXT = (
    "SELECT project_id, channel, source FROM memories"
    " WHERE agent_id = ? AND project_id IN (?, '') AND channel IN (?, '') AND content = ?"
)


@record(kw_only=True)
class Present:
    """What of a database matters for an import: its schema, bytes, rows, and for each agent its edges in time."""

    schema: int
    bytes: int
    rows: int
    last: int  # the greatest id of a memory
    newest: Mapping[str, Sequence[Newest]]
    oldest: Mapping[str, Sequence[Oldest]]
    widths: Mapping[int, int]  # dimensions -> memories and episodes
    unique: bool  # the two indexes that let no memory in twice are there


def compare(store: CPersonaStore, scratch: Scratch) -> Present:
    """Mark the rows of ``scratch`` that are there already. Raises ``StoreError``."""

    def look(connection: sqlite3.Connection, features: Features, _: object) -> Present:
        # The database may change while it is read; then all of this is done again.
        scratch.forget_states()
        agents = scratch.agents()
        columns = frozenset(features.columns["episodes"])
        texts = EpisodeTexts(connection, agents)
        marks: list[tuple[int, str]] = []
        for number, row in scratch.rows():
            why = standing(connection, row) if row.kind is Kind.MEMORY else texts.standing(row)
            if why:
                marks.append((number, why))
            if len(marks) >= _MANY:
                scratch.set(marks)
                marks = []
        scratch.set(marks)
        return Present(
            schema=features.schema,
            bytes=one(connection, "PRAGMA page_count") * one(connection, "PRAGMA page_size"),
            rows=one(connection, "SELECT (SELECT count(*) FROM memories) + (SELECT count(*) FROM episodes)"),
            last=one(connection, "SELECT max(id) FROM memories"),
            newest={agent: newest_episodes(connection, columns, agent) for agent in agents},
            oldest={agent: oldest_memories(connection, agent) for agent in agents},
            widths=_widths(connection),
            unique=_unique(connection),
        )

    return store.look(look, time.monotonic() + _TIME)


def _widths(connection: sqlite3.Connection) -> Mapping[int, int]:
    return dict(
        connection.execute(
            "SELECT length(embedding) / 4, count(*) FROM (SELECT embedding FROM memories UNION ALL"
            " SELECT embedding FROM episodes) WHERE typeof(embedding) = 'blob' GROUP BY 1 ORDER BY 2 DESC"
        ).fetchall()
    )


def _unique(connection: sqlite3.Connection) -> bool:
    names = "('idx_memories_dedup_content', 'idx_memories_dedup_msg_id')"
    return one(connection, f"SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name IN {names}") == 2  # noqa: S608


def standing(connection: sqlite3.Connection, row: NewRow) -> str:
    """Why a memory is no new one, or nothing. Raises ``sqlite3.Error``."""
    if row.msg_id and connection.execute(_BY_ID, (row.agent, row.project, row.msg_id)).fetchone():
        return STORED_ID
    found = connection.execute(_BY_TEXT, (row.agent, row.project, row.channel, row.text)).fetchall()
    if not found:
        return ""
    if any((text_of(project), text_of(channel)) == (row.project, row.channel) for project, channel, _ in found):
        return STORED_TEXT
    own = speaker(row.source)
    return STORED_WIDER if any(speaker(source) == own for _, _, source in found) else ""


def speaker(source: str | bytes) -> str | None:
    """The ``id`` a memory's ``source`` declares."""
    try:
        found = json.loads(source)
    except (ValueError, TypeError):
        return None
    value = found.get("id") if isinstance(found, dict) else None
    return None if value is None else str(value)


class EpisodeTexts:
    """Digests of the episodes of some agents: no index of the database holds their texts."""

    def __init__(self, connection: sqlite3.Connection, agents: Iterable[str]) -> None:
        self._seen: dict[tuple[str, str, str], AbstractSet[bytes]] = {}
        for agent in agents:
            gathered: dict[tuple[str, str, str], set[bytes]] = {}
            for project, channel, summary in connection.execute(
                "SELECT project_id, channel, summary FROM episodes WHERE agent_id = ?", (agent,)
            ):
                place = agent, text_of(project), text_of(channel)
                gathered.setdefault(place, set()).add(text_digest(text_of(summary)))
            self._seen |= gathered

    def standing(self, row: NewRow) -> str:
        """Why an episode is no new one, or nothing."""
        places = self._seen.get((row.agent, row.project, row.channel), frozenset())
        return STORED_TEXT if text_digest(row.text) in places else ""


def present_episodes(store: CPersonaStore, found: Sequence[tuple[int, bytes]]) -> Mapping[tuple[int, bytes], str]:
    """When each of these episodes ended, by id and digest, that still stands as it was stored, resolved since or not.

    After a backup was brought back, another episode may have the id. Raises ``StoreError``.
    """

    def look(connection: sqlite3.Connection, _: Features, __: object) -> Mapping[tuple[int, bytes], str]:
        known = {identifier for identifier, _ in found}
        query = f"SELECT id, end_time, {', '.join(COLUMNS[Kind.EPISODE])} FROM episodes"  # noqa: S608
        return {
            (identifier, digest_of((*stored, resolved))): text_of(ended)
            for identifier, ended, *stored, _ in connection.execute(query)
            if identifier in known
            for resolved in (0, 1)
        }

    return store.look(look, time.monotonic() + _TIME) if found else {}


def weigh(
    store: CPersonaStore,
    agents: Iterable[str],
    before: Sequence[Newest],
    after: Sequence[Newest],
    *,
    lens: Lens,
    places: Sequence[tuple[str, str, str]],
) -> tuple[Change, ...]:
    """Every recall of ``agents``, those that change first. Raises ``StoreError``."""

    def look(connection: sqlite3.Connection, _: Features, __: object) -> list[Change]:
        found = [
            one
            for agent in agents
            for one in changes(
                connection,
                agent,
                before,
                after,
                lens=lens,
                places=[(project, channel) for owner, project, channel in places if owner == agent],
            )
        ]
        return sorted(found, key=lambda one: (not one.changed, not one.moved))

    return tuple(store.look(look, time.monotonic() + _TIME))


# A view of that name is found before the table.
_WITHOUT = """
CREATE TEMP TABLE brought (id INTEGER PRIMARY KEY);
CREATE TEMP VIEW episodes AS SELECT * FROM main.episodes WHERE id NOT IN (SELECT id FROM temp.brought);
"""


def effects_of(
    store: CPersonaStore, agents: Iterable[str], brought: Iterable[int], *, upto: int, lenses: Sequence[Lens]
) -> Sequence[tuple[Change, ...]]:
    """What the episodes ``brought`` do to memories up to that id, by each lens, as the database is now.

    Raises ``StoreError``.
    """
    agents, brought = list(agents), list(brought)

    def look(connection: sqlite3.Connection, features: Features, _: object) -> Sequence[tuple[Change, ...]]:
        columns = frozenset(features.columns["episodes"])
        after = newest_episodes(connection, columns)
        connection.executescript(_WITHOUT)
        try:
            connection.executemany("INSERT INTO temp.brought VALUES (?)", ((one,) for one in brought))
            before = newest_episodes(connection, columns)
        finally:
            connection.executescript("DROP VIEW temp.episodes; DROP TABLE temp.brought;")
        return [
            tuple(
                change for agent in agents for change in changes(connection, agent, before, after, lens=lens, upto=upto)
            )
            for lens in lenses
        ]

    return store.look(look, time.monotonic() + _TIME)
