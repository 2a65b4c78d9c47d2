"""How late an episode may be dated so that no memory that is there counts for less than before.

A recall takes the newest episode it sees for the boundary, and which one that is depends on the release (``boundary``).
An episode is harmless where, for every recall that would see it and by every release's rule, the boundary stays where
it is; or there was none, and every memory that the recall sees is as new as the episode; or it sees no memory at all.
All of this is pure but ``oldest_memories``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from cpersona_cli.record import record
from cpersona_cli.store.boundary import Newest, Rule, Scope, instant
from cpersona_cli.store.schema import OLDEST

#: The rules of 2.5.0, 2.5.2 to 2.5.11, and 2.5.12 and newer.
_RULES = (Rule(scoped=False, by_instant=False), Rule(by_instant=False), Rule())
#: 2.4 reads a boundary in the zone of the machine, which is at most 12 hours behind UTC and 14 hours before it.
_ZONES = timedelta(days=1)
#: A channel without rows of its own: a recall in it sees those without any channel.
_ELSEWHERE = "\x00"

_SECOND = timedelta(seconds=1)
_FIRST, _LAST_SECOND = datetime(1970, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
#: Before and after every time that can be written.
_NEVER, _ALWAYS = "", "9999-12-31 23:59:59"


@record
class Oldest:
    """The oldest memory of one bucket that has a date the server can read."""

    project: str
    channel: str
    at: datetime


def rules_for(schema: int) -> tuple[Rule, ...]:
    """The rules an episode must be harmless by. A server of 2.4 cannot have written a schema newer than its own."""
    return (Rule(scoped=False, by_instant=False, local=True), *_RULES) if schema == OLDEST else _RULES


def oldest_memories(connection: sqlite3.Connection, agent: str) -> list[Oldest]:
    """The oldest memory of every bucket of ``agent``; about two microseconds a row. Raises ``sqlite3.Error``."""
    found: dict[tuple[object, object], datetime] = {}
    for project, channel, stamp in connection.execute(
        "SELECT project_id, channel, timestamp FROM memories WHERE agent_id = ?", (agent,)
    ):
        at = instant(text_of(stamp))
        if at is not None and at < found.get((project, channel), _LAST):
            found[project, channel] = at
    return [Oldest(text_of(project), text_of(channel), at) for (project, channel), at in found.items()]


_LAST = datetime.max.replace(tzinfo=UTC)


def text_of(value: object) -> str:
    """A text of a database, whether its connection gives texts or bytes."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value or "")


def stamp_of(at: datetime) -> str:
    """``created_at`` as the server spells it: whole seconds in UTC."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="seconds")


@record
class _Condition:
    """An episode is harmless in one recall when it is not the newest (``under``), or old enough (``upto``).

    ``under`` is the key of the newest one: its text, or its second and text; None where there is none.
    """

    upto: str
    under: tuple[str, ...] | None = None

    def allows(self, created: str) -> bool:
        if created <= self.upto:
            return True
        return self.under is not None and (created,) * len(self.under) <= self.under


class Limits:
    """What episodes of ``agent`` may be dated, beside the episodes and memories that are there."""

    def __init__(self, agent: str, newest: Iterable[Newest], oldest: Iterable[Oldest], rules: Sequence[Rule]) -> None:
        self._agent, self._rules = agent, rules
        self._newest = [one for one in newest if one.agent == agent]
        self._oldest = list(oldest)
        places = [(one.project, one.channel) for one in self._newest]
        places += [(one.project, one.channel) for one in self._oldest]
        self._projects = {project for project, _ in places}
        self._channels = {channel for _, channel in places}
        self._edges: dict[tuple[str, str], str] = {}

    def allows(self, project: str, channel: str, created: str) -> bool:
        """Whether an episode there, ``created`` as the server spells it, leaves every memory as it is."""
        return created <= self._edge(project, channel)

    def latest(self, project: str, channel: str, created: str) -> str | None:
        """The latest harmless time that is not after ``created``; None where there is none since 1970."""
        edge = self._edge(project, channel)
        return min(created, edge) if edge else None

    def _edge(self, project: str, channel: str) -> str:
        """The latest harmless time of all, empty where there is none."""
        place = project, channel
        if place not in self._edges:
            conditions = {
                self._condition(scope, rule) for rule in self._rules for scope in self._seeing(project, channel, rule)
            }
            self._edges[place] = _latest([one for one in conditions if one.upto != _ALWAYS])
        return self._edges[place]

    def _seeing(self, project: str, channel: str, rule: Rule) -> Iterator[Scope]:
        """Every recall that would see an episode stored there, and that differs in what it sees."""
        if not rule.scoped:
            yield Scope(self._agent)
            return
        projects = {None, project, *(self._projects if not project else ())}
        channels = {"", channel, *((*self._channels, _ELSEWHERE) if not channel else ())}
        for one in projects:
            yield from (Scope(self._agent, one, other) for other in channels)

    def _condition(self, scope: Scope, rule: Rule) -> _Condition:
        first = min(
            (one.at for one in self._oldest if not rule.scoped or scope.covers(one.project, one.channel)), default=None
        )
        seen = [one for one in self._newest if not rule.scoped or scope.covers(one.project, one.channel)]
        if first is None:
            return _Condition(_ALWAYS)
        fresh = _upto(first, _ZONES if rule.local else timedelta())
        if not seen:
            return _Condition(fresh)
        under = max((one.instant, one.stamp) for one in seen) if rule.by_instant else (max(one.text for one in seen),)
        # A newest episode whose time nobody can read sets no boundary.
        return _Condition(fresh if instant(under[-1]) is None else _NEVER, under)


def _latest(conditions: Sequence[_Condition]) -> str:
    """The latest time that all of ``conditions`` allow. What they allow, they allow of everything before it."""
    low, high = _FIRST, _LAST_SECOND
    if not all(one.allows(stamp_of(low)) for one in conditions):
        return _NEVER
    while low < high:
        middle = low + (high - low + _SECOND) // _SECOND // 2 * _SECOND
        if all(one.allows(stamp_of(middle)) for one in conditions):
            low = middle
        else:
            high = middle - _SECOND
    return stamp_of(low)


def _upto(first: datetime, margin: timedelta) -> str:
    try:
        return stamp_of(first - margin)
    except OverflowError:
        return _NEVER
