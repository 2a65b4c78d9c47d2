"""What a change of episodes does to the memories that are there: every boundary and every factor, before and after."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

from cpersona_cli.record import record
from cpersona_cli.store.audit_model import Lens
from cpersona_cli.store.boundary import Boundary, Newest, Scope, boundary, factor, instant, scopes
from cpersona_cli.store.limits import text_of

_OF_AGENT = "WHERE agent_id = ?1 AND (id <= ?2 OR ?2 IS NULL)"


@record(kw_only=True)
class Change:
    """One recall: its boundary before and after, and how many of the memories it sees count differently.

    ``rows`` are those memories, ``changed`` those whose factor differs, ``most`` by how much at the most: below zero
    where they count for less.
    """

    scope: Scope
    before: Boundary
    after: Boundary
    rows: int = 0
    changed: int = 0
    most: float = 0.0

    @property
    def moved(self) -> bool:
        return self.before.at != self.after.at


def changes(
    connection: sqlite3.Connection,
    agent: str,
    before: Iterable[Newest],
    after: Iterable[Newest],
    *,
    lens: Lens,
    places: Iterable[tuple[str, str]] = (),
    upto: int | None = None,
) -> list[Change]:
    """Every recall of ``agent`` as ``lens`` sees it, those with a change first; ``places`` beside those that are known.

    With ``upto`` only memories count whose id is not above it. Where no boundary moves, no memory is read. Raises
    ``sqlite3.Error``.
    """
    before = [one for one in before if one.agent == agent]
    after = [one for one in after if one.agent == agent]
    known = [
        (text_of(project), text_of(channel))
        for project, channel in connection.execute(
            "SELECT DISTINCT project_id, channel FROM memories WHERE agent_id = ?", (agent,)
        )
    ]
    places = [*known, *places, *((one.project, one.channel) for one in (*before, *after))]
    found = [
        _Weighed(scope, boundary(before, scope, lens.rule), boundary(after, scope, lens.rule))
        for scope in (scopes(agent, places) if lens.rule.scoped else [Scope(agent)])
    ]
    rows = connection.execute(
        f"SELECT project_id, channel, count(*) FROM memories {_OF_AGENT} GROUP BY 1, 2",  # noqa: S608
        (agent, upto),
    ).fetchall()
    for project, channel, count in rows:
        for one in found:
            one.rows += count * one.scope.covers(text_of(project), text_of(channel))
    moved = [one for one in found if one.before.at != one.after.at]
    if moved:
        _weigh(connection, (agent, upto), moved, lens)
    told = [
        Change(scope=one.scope, before=one.before, after=one.after, rows=one.rows, changed=one.changed, most=one.most)
        for one in found
    ]
    return sorted(told, key=lambda one: (not one.changed, not one.moved))


class _Weighed:
    """One recall while its memories are gone through."""

    __slots__ = ("after", "before", "changed", "most", "rows", "scope")

    def __init__(self, scope: Scope, before: Boundary, after: Boundary) -> None:
        self.scope, self.before, self.after = scope, before, after
        self.rows = self.changed = 0
        self.most = 0.0

    def weigh(self, at: datetime | None, lens: Lens) -> None:
        by = factor(at, self.after.at, lens.penalty) - factor(at, self.before.at, lens.penalty)
        if by:
            self.changed += 1
            self.most = max(self.most, by, key=abs)


def _weigh(
    connection: sqlite3.Connection, which: tuple[str, int | None], moved: Sequence[_Weighed], lens: Lens
) -> None:
    seen: dict[tuple[object, object], list[_Weighed]] = {}
    for project, channel, stamp in connection.execute(
        f"SELECT project_id, channel, timestamp FROM memories {_OF_AGENT}",  # noqa: S608
        which,
    ):
        place = project, channel
        if place not in seen:
            seen[place] = [one for one in moved if one.scope.covers(text_of(project), text_of(channel))]
        if seen[place]:
            at = instant(text_of(stamp), local=lens.rule.local)
            for one in seen[place]:
                one.weigh(at, lens)
