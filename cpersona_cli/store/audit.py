"""Measuring how the rows of a store can be recalled: cheap statements first, those that read every row last.

Everything runs on the one connection that also counts (``census``), under its deadline; whatever it cuts off is named
``unmeasured``. Memory stays the same for any number of rows: places and agents are kept up to a limit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from cpersona_cli.store.audit_dates import walk
from cpersona_cli.store.audit_model import Audit, Beyond, Burst, Copies, Moved, Wants
from cpersona_cli.store.boundary import Newest, newest_episodes
from cpersona_cli.store.census import Census, measurer
from cpersona_cli.store.sql import stop_at

#: Places (agent, project, channel) of episodes that are kept by name, those with most rows.
PLACES = 5_000
#: Agents, bursts and pairs that are listed.
LISTED = 20
#: Days after its end from which an episode was stored late, and seconds between two that were stored together.
LATE, TOGETHER = 1.0, 10.0

_SECONDS = 86_400


def audit(connection: sqlite3.Connection, deadline: float, wants: Wants, census: Census) -> Audit:
    """Measure what ``Audit`` names until ``deadline`` of ``time.monotonic``, after ``census`` was counted.

    What took longer is added to ``census.unmeasured``. Raises ``sqlite3.DatabaseError``.
    """
    stop_at(connection, deadline)
    measure = measurer(census)
    found: dict[str, object] = {}
    memories, episodes, profiles = (census.columns[name] for name in ("memories", "episodes", "profiles"))
    newest: Sequence[Newest] = ()
    axes = {"agent_id", "project_id", "channel"}
    if axes | {"created_at"} <= episodes:
        with measure("newest"):
            newest = newest_episodes(connection, episodes)
            found["newest"] = tuple(newest[:PLACES])
        with measure("episodes"):
            found["episodes"] = _places(connection)
        with measure("bursts", "moved"):
            if {"start_time", "end_time"} <= episodes:
                found["bursts"], found["moved"] = _imports(connection)
    if {"agent_id", "user_id", "content"} <= profiles:
        with measure("profiles"):
            found["profiles"] = _profiles(connection)
    with measure("beyond"):
        found["beyond"] = tuple(
            beyond
            for table, names in (("memories", memories), ("episodes", episodes))
            if {"agent_id", "created_at", "embedding"} <= names
            for beyond in _beyond(connection, table, wants)
        )
    if axes | {"timestamp"} <= memories:
        with measure("dates", "memories", "effects"):
            found |= walk(connection, newest, wants.lenses, episodes)
    if axes | {"content", "source"} <= memories:
        # Without the index that holds one text per place, every row would have to be held against every other.
        if "idx_memories_dedup_content" not in census.present:
            census.unmeasured.append("copies")
        else:
            with measure("copies"):
                found["copies"] = _copies(connection)
    return Audit(**found)  # type: ignore[arg-type]


def _places(connection: sqlite3.Connection) -> Mapping[tuple[str, str, str], int]:
    rows = connection.execute(
        f"SELECT agent_id, project_id, channel, count(*) FROM episodes GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT {PLACES}"  # noqa: S608
    )
    return {(str(agent), str(project), str(channel)): count for agent, project, channel, count in rows}


def _profiles(connection: sqlite3.Connection) -> tuple[str, ...]:
    rows = connection.execute(
        f"SELECT agent_id FROM profiles WHERE user_id = '' AND trim(content) <> '' ORDER BY 1 LIMIT {PLACES}"  # noqa: S608
    )
    return tuple(str(agent) for (agent,) in rows)


def _beyond(connection: sqlite3.Connection, table: str, wants: Wants) -> list[Beyond]:
    """Agents with more rows than the smallest window; only of those are rows without a vector told apart."""
    windows = sorted({window for window in wants.windows if window > 0})
    if not windows:
        return []
    large = connection.execute(
        f"SELECT agent_id, count(*) FROM {table} GROUP BY 1 HAVING count(*) > ? ORDER BY 2 DESC LIMIT {LISTED}",  # noqa: S608
        (windows[0],),
    ).fetchall()
    if not large:
        return []
    # The server's own partial index holds just the rows without a vector; the sign keeps the grouping off another.
    bare = dict(
        connection.execute(
            f"SELECT agent_id, count(*) FROM {table} WHERE embedding IS NULL GROUP BY +agent_id"  # noqa: S608
        ).fetchall()
    )
    found = []
    for agent, rows in large:
        embedded = rows - bare.get(agent, 0)
        for window in windows:
            if embedded > window:
                edge = connection.execute(
                    f"SELECT created_at FROM {table} WHERE agent_id = ? ORDER BY created_at DESC LIMIT 1 OFFSET ?",  # noqa: S608
                    (agent, window - 1),
                ).fetchone()
                found.append(
                    Beyond(
                        agent=str(agent), table=table, window=window, rows=embedded, edge=str(edge[0] if edge else "")
                    )
                )
    return found


# The server calls a text stored before when it stands in the place written to, or in a wider one, under the same
# source id; imports and races pass by that look.
#: The looking is done in one index that holds every column it needs, the sources only of what was found.
_WIDER = """
WITH candidate AS MATERIALIZED (
  SELECT id FROM memories AS narrow WHERE
    project_id <> '' AND EXISTS (SELECT 1 FROM memories AS wide WHERE wide.agent_id = narrow.agent_id
      AND wide.project_id = '' AND wide.channel = narrow.channel AND wide.content = narrow.content)
    OR channel <> '' AND EXISTS (SELECT 1 FROM memories AS wide WHERE wide.agent_id = narrow.agent_id
      AND wide.project_id = narrow.project_id AND wide.channel = '' AND wide.content = narrow.content)
    OR project_id <> '' AND channel <> '' AND EXISTS (SELECT 1 FROM memories AS wide
      WHERE wide.agent_id = narrow.agent_id AND wide.project_id = '' AND wide.channel = ''
      AND wide.content = narrow.content))
SELECT narrow.id, min(wide.id), count(*) OVER () FROM candidate
JOIN memories AS narrow ON narrow.id = candidate.id
JOIN memories AS wide ON wide.agent_id = narrow.agent_id
  AND wide.project_id IN (narrow.project_id, '') AND wide.channel IN (narrow.channel, '')
  AND wide.content = narrow.content AND wide.id <> narrow.id
  AND iif(json_valid(wide.source), json_extract(wide.source, '$.id'), '')
    IS iif(json_valid(narrow.source), json_extract(narrow.source, '$.id'), '')
GROUP BY narrow.id ORDER BY narrow.id LIMIT ?"""


def _copies(connection: sqlite3.Connection) -> Copies:
    rows = connection.execute(_WIDER, (LISTED,)).fetchall()
    return Copies(rows=rows[0][2] if rows else 0, pairs=tuple((int(a), int(b)) for a, b, _ in rows))


_BY_STORING = f"""
SELECT agent_id, project_id, datetime(created_at), datetime(ended), julianday(created_at) * {_SECONDS},
  julianday(created_at) - julianday(ended) > {LATE}
FROM (
  SELECT agent_id, project_id, created_at, coalesce(nullif(end_time, ''), nullif(start_time, '')) AS ended
  FROM episodes)
WHERE datetime(created_at) IS NOT NULL ORDER BY julianday(created_at)"""  # noqa: S608 - constants


def _imports(connection: sqlite3.Connection) -> tuple[tuple[Burst, ...], tuple[Moved, ...]]:
    """Bursts of late episodes, the newest first, and whose newest episode is one of them.

    An episode that was stored late and alone counts from when it was stored, as the server means it.
    """
    bursts: list[Burst] = []
    now: dict[tuple[str, str], str] = {}
    healed: dict[tuple[str, str], str] = {}
    pending = _Pending()
    for agent, project, created, ended, at, late in connection.execute(_BY_STORING):
        owner = str(agent), str(project)
        now[owner] = created
        if not late:
            _raise(healed, owner, created)
            continue
        if pending.episodes and at - pending.at > TOGETHER:
            pending.close(bursts, healed)
            pending = _Pending()
        pending.add(owner, created, ended, at)
    pending.close(bursts, healed)
    return tuple(bursts[: -LISTED - 1 : -1]), tuple(_moved(now, healed))[:PLACES]


def _raise(latest: dict[tuple[str, str], str], owner: tuple[str, str], at: str) -> None:
    latest[owner] = max(latest.get(owner, ""), at)


def _moved(now: Mapping[tuple[str, str], str], healed: Mapping[tuple[str, str], str]) -> Iterator[Moved]:
    """Every agent as a whole, then its projects, each with the global pool, as a recall within them sees it."""
    owners: dict[str, list[str]] = {}
    for agent, project in now:
        owners.setdefault(agent, []).append(project)
    for agent, projects in owners.items():
        for scope in (None, *projects):
            seen = [(agent, project) for project in projects if scope is None or project in {scope, ""}]
            at, real = (max(times.get(one, "") for one in seen) for times in (now, healed))
            if at > real:
                yield Moved(agent, scope, at, real)


class _Pending:
    """Late episodes that may become a burst."""

    __slots__ = ("at", "created", "ended", "episodes", "first", "last", "newest", "oldest")

    def __init__(self) -> None:
        self.episodes, self.at = 0, 0.0
        self.first = self.last = self.oldest = self.newest = ""
        self.created: dict[tuple[str, str], str] = {}
        self.ended: dict[tuple[str, str], str] = {}

    def add(self, owner: tuple[str, str], created: str, ended: str, at: float) -> None:
        self.episodes, self.at = self.episodes + 1, at
        self.first, self.last = self.first or created, created
        self.oldest, self.newest = min(self.oldest or ended, ended), max(self.newest, ended)
        _raise(self.created, owner, created)
        _raise(self.ended, owner, ended)

    def close(self, bursts: list[Burst], healed: dict[tuple[str, str], str]) -> None:
        """Two and more are a burst and count by their ends; one alone counts as it is."""
        if self.episodes > 1:
            bursts.append(
                Burst(episodes=self.episodes, first=self.first, last=self.last, oldest=self.oldest, newest=self.newest)
            )
        for owner, at in (self.ended if self.episodes > 1 else self.created).items():
            _raise(healed, owner, at)
