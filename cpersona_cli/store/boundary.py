"""The episode boundary: the moment before which the server takes a memory for one of an earlier session.

The boundary of a recall is the ``created_at`` of the newest episode in its scope. Where the episode penalty is on, the
scores of memories dated before it are multiplied by ``max(floor, exp(-rate * hours))``. Which episode is the newest,
in which scope, and what a time without a zone means, has changed between releases (read from the releases 2.4.41 to
2.6.14: ``_get_episode_boundary_ts``, ``_episode_boundary_factor``, ``_parse_timestamp_utc``); a ``Rule`` is one of
those ways.

Only ``newest_episodes`` looks at a database. The rest is pure, so that what a change would do can be told before it is
made: add an episode with ``with_episode`` and ask for the boundaries again.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, tzinfo

from cpersona_cli.install.release.version import older
from cpersona_cli.record import record


@record(kw_only=True)
class Rule:
    """How one line of releases finds the boundary.

    ``scoped``: within the project and channel of the recall, else within the agent. ``by_instant``: the newest episode
    by time, else the one whose ``created_at`` is the greatest text, for which ``2025-03-05T01:00`` comes after
    ``2025-03-05 23:00``. ``local``: a time without a zone is of the server's zone, else UTC.
    """

    scoped: bool = True
    by_instant: bool = True
    local: bool = False


def rule_of(version: str | None) -> Rule:
    """The rule of a release; None is the newest."""
    if version is None:
        return Rule()
    return Rule(
        scoped=not older(version, "2.5.2"),
        by_instant=not older(version, "2.5.12"),
        local=older(version, "2.5.0"),
    )


@record
class Penalty:
    """``CPERSONA_EPISODE_DECAY_RATE`` (per hour) and ``CPERSONA_EPISODE_DECAY_FLOOR``."""

    rate: float = 0.01
    floor: float = 0.5


@record
class Scope:
    """What one recall asks for.

    ``project`` None and ``channel`` ``""`` are no restriction. Project ``""`` is the global pool alone, any other
    project its rows and the global pool; a channel its rows and those without one.
    """

    agent: str
    project: str | None = None
    channel: str = ""

    def covers(self, project: str, channel: str) -> bool:
        """Whether rows of the agent stored under ``project`` and ``channel`` are seen."""
        seen = self.project is None or project in {self.project, ""}
        return seen and (not self.channel or channel in {self.channel, ""})


@record
class Newest:
    """The newest episode of one bucket (agent, project, channel), by both orders.

    ``text`` is the greatest ``created_at`` as text. ``instant`` is SQLite's ``datetime()`` of the latest one, ``""``
    where it can read none, and ``stamp`` that ``created_at`` as stored.
    """

    agent: str
    project: str
    channel: str
    text: str
    instant: str
    stamp: str


@record
class Boundary:
    """``created_at`` of the episode that sets it, as stored (``""``: there is none), and when that is."""

    stamp: str = ""
    at: datetime | None = None


NONE = Boundary()

# A column beside one max() is of the row that has it. Of the rows that share a second the server takes the one with
# the greatest text, and those SQLite cannot read come last.
_BY_INSTANT = """
SELECT agent, project, channel, max(instant), stamp FROM (
  SELECT agent_id AS agent, {project} AS project, {channel} AS channel,
    coalesce(datetime(created_at), '') AS instant, max(created_at) AS stamp
  FROM episodes WHERE agent_id = ?1 OR ?1 IS NULL GROUP BY 1, 2, 3, 4)
GROUP BY 1, 2, 3"""
_BY_TEXT = """
SELECT agent_id, {project}, {channel}, max(created_at) FROM episodes WHERE agent_id = ?1 OR ?1 IS NULL
GROUP BY 1, 2, 3"""


def newest_episodes(
    connection: sqlite3.Connection, columns: AbstractSet[str], agent: str | None = None
) -> list[Newest]:
    """The newest episode of every bucket of a store, or of one agent; ``columns`` are those of ``episodes``.

    Raises ``sqlite3.Error``.
    """
    if not {"agent_id", "created_at"} <= columns:
        return []
    axes = {
        "project": "project_id" if "project_id" in columns else "''",
        "channel": "channel" if "channel" in columns else "''",
    }
    texts = {row[:3]: str(row[3]) for row in connection.execute(_BY_TEXT.format(**axes), (agent,))}
    return [
        Newest(str(row[0]), str(row[1]), str(row[2]), texts[row[:3]], str(row[3]), str(row[4]))
        for row in connection.execute(_BY_INSTANT.format(**axes), (agent,))
    ]


def instant(stamp: object, *, local: bool = False, zone: tzinfo | None = None) -> datetime | None:
    """A stored time as the server reads it, in UTC; None where it reads none.

    A time without a zone is UTC, or with ``local`` of ``zone`` (None: this machine's).
    """
    if not isinstance(stamp, str) or not stamp:
        return None
    try:
        read = datetime.fromisoformat(stamp.replace("Z", "+00:00"))  # noqa: FURB162 - letter for letter the server's
        if read.tzinfo is None:
            if not local:
                return read.replace(tzinfo=UTC)
            read = read if zone is None else read.replace(tzinfo=zone)
        return read.astimezone(UTC)
    except (ValueError, OSError, OverflowError):
        return None


def boundary(newest: Iterable[Newest], scope: Scope, rule: Rule, *, zone: tzinfo | None = None) -> Boundary:
    """The boundary of a recall in ``scope`` under ``rule``; ``zone`` as for ``instant``."""
    seen = [
        one
        for one in newest
        if one.agent == scope.agent and (not rule.scoped or scope.covers(one.project, one.channel))
    ]
    if not seen:
        return NONE
    latest = max((one.instant, one.stamp) for one in seen)[1]
    stamp = latest if rule.by_instant else max(one.text for one in seen)
    return Boundary(stamp, instant(stamp, local=rule.local, zone=zone))


def with_episode(newest: Sequence[Newest], agent: str, project: str, channel: str, created: str) -> list[Newest]:
    """``newest`` as it is once an episode is stored there.

    ``created`` must be spelled as the server spells it, ``YYYY-MM-DD HH:MM:SS`` in UTC. Raises ``ValueError``.
    """
    if len(created) != 19 or created[10] != " " or instant(created) is None:
        raise ValueError(f"{created!r} is not spelled YYYY-MM-DD HH:MM:SS")
    place, others = (agent, project, channel), []
    added = Newest(*place, text=created, instant=created, stamp=created)
    for one in newest:
        if (one.agent, one.project, one.channel) != place:
            others.append(one)
            continue
        latest = max((one.instant, one.stamp), (created, created))
        added = Newest(*place, text=max(one.text, created), instant=latest[0], stamp=latest[1])
    return [*others, added]


def scopes(agent: str, places: Iterable[tuple[str, str]]) -> Iterator[Scope]:
    """The recalls that matter for an agent whose rows lie in ``places`` (project, channel), the widest first.

    Without a restriction, per project, per channel, and per pair that occurs.
    """
    known = sorted(set(places))
    projects = dict.fromkeys(project for project, _ in known)
    channels = dict.fromkeys(channel for _, channel in known if channel)
    yield Scope(agent)
    yield from (Scope(agent, project) for project in projects)
    yield from (Scope(agent, None, channel) for channel in channels)
    yield from (Scope(agent, project, channel) for project, channel in known if channel)


def factor(at: datetime | None, limit: datetime | None, penalty: Penalty) -> float:
    """What a memory of ``at`` is multiplied by, at most 1.0; without a date or a boundary it is 1.0."""
    if at is None or limit is None or at >= limit:
        return 1.0
    hours = (limit - at).total_seconds() / 3600
    try:
        return min(1.0, max(penalty.floor, math.exp(-penalty.rate * hours)))
    except OverflowError:  # a negative rate: the server would fail here
        return 1.0


def hours_to_floor(penalty: Penalty) -> float:
    """How many hours before the boundary a memory has sunk to the floor; infinite where it never does."""
    if penalty.floor >= 1:
        return 0.0
    if penalty.floor <= 0 or penalty.rate <= 0:
        return math.inf
    return -math.log(penalty.floor) / penalty.rate
