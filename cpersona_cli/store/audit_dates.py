"""One pass over the memories of a store: how they are dated, where they lie, and how far they are weakened."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime

from cpersona_cli.store.audit_model import Dates, Effect, Lens
from cpersona_cli.store.boundary import Boundary, Newest, Scope, boundary, factor, instant
from cpersona_cli.store.sql import one

#: Places that are kept by name. Rows of further ones are dated, and counted with their agent.
PLACES = 5_000
#: Effects that are kept, those with most memories at the floor.
EFFECTS = 200

_AHEAD = (
    "SELECT count(*) FROM episodes"
    " WHERE max(coalesce(datetime(start_time), ''), coalesce(datetime(end_time), '')) > datetime('now', '+1 day')"
)


class _Weight:
    """One lens on the memories of one scope, counted as they come."""

    __slots__ = ("at", "at_floor", "earlier", "floor", "lens", "limit", "local", "penalty", "rows", "scope", "total")

    def __init__(self, lens: Lens, scope: Scope, limit: Boundary) -> None:
        self.lens, self.scope, self.limit = lens, scope, limit
        self.at, self.penalty, self.floor, self.local = limit.at, lens.penalty, lens.penalty.floor, lens.rule.local
        self.rows = self.earlier = self.at_floor = 0
        self.total = 0.0

    def add(self, at: datetime | None) -> None:
        self.rows += 1
        if at is None or self.at is None or at >= self.at:
            self.total += 1.0
            return
        weight = factor(at, self.at, self.penalty)
        self.total += weight
        self.earlier += weight < 1.0
        self.at_floor += weight <= self.floor

    def effect(self) -> Effect:
        return Effect(
            lens=self.lens,
            scope=self.scope,
            boundary=self.limit,
            rows=self.rows,
            earlier=self.earlier,
            at_floor=self.at_floor,
            mean=self.total / self.rows if self.rows else 1.0,
        )


class _Weights:
    """The weights that count for a place, made when it is first seen."""

    def __init__(self, newest: Sequence[Newest], lenses: Sequence[Lens]) -> None:
        self._lenses = lenses
        self._made: dict[tuple[Lens, Scope], _Weight] = {}
        self._newest: dict[str, list[Newest]] = {}
        for episode in newest:
            self._newest.setdefault(episode.agent, []).append(episode)

    def of(self, agent: str, project: str) -> tuple[_Weight, ...]:
        """Those of the whole agent, and of the project where the lens tells projects apart."""
        newest = self._newest.get(agent)
        if not newest:
            return ()
        found = []
        for lens in self._lenses:
            wanted = [Scope(agent), Scope(agent, project)] if lens.rule.scoped else [Scope(agent)]
            for scope in wanted:
                weight = self._made.get((lens, scope))
                if weight is None and (scope.project is None or len(self._made) < PLACES):
                    weight = _Weight(lens, scope, boundary(newest, scope, lens.rule))
                    self._made[lens, scope] = weight
                if weight is not None:
                    found.append(weight)
        return tuple(found)

    def effects(self) -> tuple[Effect, ...]:
        found = [weight.effect() for weight in self._made.values()]
        return tuple(sorted(found, key=lambda effect: (-effect.at_floor, -effect.rows))[:EFFECTS])


class _Place:
    """One (agent, project, channel) and what is counted there."""

    __slots__ = ("key", "rows", "weights")

    def __init__(self, key: tuple[str, str, str], weights: tuple[_Weight, ...]) -> None:
        self.key, self.weights, self.rows = key, weights, 0


def walk(
    connection: sqlite3.Connection, newest: Sequence[Newest], lenses: Sequence[Lens], episodes: AbstractSet[str]
) -> dict[str, object]:
    """The fields ``dates``, ``memories``, ``more_places`` and ``effects`` of an ``Audit``; ``episodes``: its columns.

    Times are read as the server reads them, so this is a loop here and no statement. Raises ``sqlite3.Error``.
    """
    ahead = one(connection, _AHEAD) if {"start_time", "end_time"} <= episodes else 0
    weights = _Weights(newest, lenses)
    local = any(lens.rule.local for lens in lenses)
    places: dict[tuple[object, ...], _Place] = {}
    rest: dict[object, _Place] = {}
    rows = utc = offset = naive = undated = unread = sql_only = 0
    decode = connection.text_factory
    # Bytes spare a call for each of four texts a row.
    connection.text_factory = bytes
    try:
        for agent, project, channel, stamp in connection.execute(
            "SELECT agent_id, project_id, channel, timestamp FROM memories"
        ):
            rows += 1
            place = places.get((agent, project, channel))
            if place is None:
                key = _text(agent), _text(project), _text(channel)
                if len(places) < PLACES:
                    place = places[agent, project, channel] = _Place(key, weights.of(key[0], key[1]))
                else:
                    place = rest.get(agent)
                    if place is None:
                        place = rest[agent] = _Place((key[0], "", ""), weights.of(key[0], "")[:1])
            place.rows += 1
            text = _text(stamp)
            try:
                at: datetime | None = datetime.fromisoformat(text)
            except ValueError:
                at = None
            zone = None if at is None else at.tzinfo
            if zone is UTC:
                utc += 1
            elif not text:
                undated += 1
            else:
                at = instant(text)
                if at is None:
                    (seen,) = connection.execute("SELECT datetime(?) IS NOT NULL", (text,)).fetchone()
                    sql_only += seen
                    unread += not seen
                elif zone is None:
                    naive += 1
                else:
                    offset += 1
            for weight in place.weights:
                weight.add(instant(text, local=True) if local and zone is None and weight.local else at)
    finally:
        connection.text_factory = decode
    kept = sorted(places.values(), key=lambda place: -place.rows)
    return {
        "dates": Dates(
            rows=rows,
            utc=utc,
            offset=offset,
            naive=naive,
            undated=undated,
            unread=unread,
            sql_only=sql_only,
            episodes_ahead=ahead,
        ),
        "memories": {place.key: place.rows for place in kept},
        "more_places": bool(rest),
        "effects": weights.effects(),
    }


def _text(value: object) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value or "")
