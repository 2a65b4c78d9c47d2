"""Bringing gathered rows into the database: short transactions beside whoever else writes, each on record before it.

Vectors come later, with ``filling``: no request is made while others cannot write. Episodes come first, so that the
memories a boundary must spare are just those that were there.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cpersona_cli.record import replace
from cpersona_cli.store.boundary import newest_episodes
from cpersona_cli.store.limits import Limits, oldest_memories, rules_for
from cpersona_cli.store.model import Kind
from cpersona_cli.store.newrow import COLUMNS, NewRow, digest_of, values
from cpersona_cli.store.writing.comparing import EpisodeTexts, standing
from cpersona_cli.store.writing.imports import Entry, Record
from cpersona_cli.store.writing.mainfile import TABLES, Main
from cpersona_cli.store.writing.scratch import DONE, FAILED, Scratch

#: Seconds for which others cannot write, about, and seconds they then get.
_LOCKED, _PAUSE = 0.25, 0.02
#: Rows of one transaction at the most, and bytes of the log after which it is brought into the database.
_MANY, _LOG = 2_000, 8_000

#: Reasons of rows that could not be stored; they read well after a number.
REFUSED = "refused by a rule of the database"
LATE = "newer than the boundary, which moved meanwhile"

_INSERT = {
    kind: f"INSERT OR IGNORE INTO {TABLES[kind][0]}({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608
    for kind, names in COLUMNS.items()
}


@dataclass(slots=True)
class Bringing:
    """One run that inserts. ``spare``: no memory that is there may count for less; ``clamp``: else hold episodes back.

    ``wait`` are the seconds it waits for the write lock, ``tell`` hears of rows done and all rows, ``stopped`` is asked
    between transactions.
    """

    main: Main
    scratch: Scratch
    record: Record
    spare: bool
    clamp: bool
    tell: Callable[[int, int], None] = lambda _done, _total: None
    stopped: Callable[[], bool] = lambda: False
    wait: float = 30.0
    inserted: dict[Kind, int] = field(default_factory=dict)
    longest: float = 0.0
    _edges: _Edges | None = None
    _done: int = 0
    _unwritten: int = 0

    def go(self) -> bool:
        """Insert what is open in ``scratch``; False where it was stopped before the end. Raises ``StoreError``."""
        total = sum(rows for rows, _ in self.scratch.size().values())
        for kind in (Kind.EPISODE, Kind.MEMORY):
            rows = self.scratch.rows(kind)
            waiting: list[tuple[int, NewRow]] = []
            while True:
                while len(waiting) < _MANY and (row := next(rows, None)) is not None:
                    waiting.append(row)
                if not waiting:
                    break
                if self.stopped():
                    return False
                settled = self._transaction(kind, waiting)
                waiting = waiting[settled:]
                self._done += settled
                self.tell(self._done, total)
                self._written(settled)
        return True

    def _written(self, rows: int) -> None:
        self._unwritten += rows
        if self._unwritten >= _LOG:
            self.main.checkpoint()
            self._unwritten = 0
        time.sleep(_PAUSE)

    def _transaction(self, kind: Kind, waiting: list[tuple[int, NewRow]]) -> int:
        """Insert as many rows as there is time for; how many are settled."""
        edges = self._current(kind, waiting)
        states: list[tuple[int, str]] = []
        entries: list[Entry] = []
        with self.main.transaction(self.wait):
            began = time.monotonic()
            if edges is not None and edges.version != self.main.version():
                self._edges = edges = _Edges(self.main, frozenset(edges.limits))
            for number, row in waiting:
                state, entry = self._insert(row, edges)
                states.append((number, state))
                if entry is not None:
                    entries.append(entry)
                if time.monotonic() - began > _LOCKED:
                    break
            if entries:
                self.record.note(entries)
        self.longest = max(self.longest, time.monotonic() - began)
        self.inserted[kind] = self.inserted.get(kind, 0) + len(entries)
        self.scratch.set(states)
        return len(states)

    def _current(self, kind: Kind, waiting: list[tuple[int, NewRow]]) -> _Edges | None:
        """What holds for episodes now. Found out before the lock; what changes until then is found out again."""
        if kind is Kind.MEMORY:
            return None
        agents = frozenset(row.agent for _, row in waiting)
        edges = self._edges
        if edges is None or edges.version != self.main.version() or not agents <= edges.limits.keys():
            self._edges = edges = _Edges(self.main, agents)
        return edges

    def _insert(self, row: NewRow, edges: _Edges | None) -> tuple[str, Entry | None]:
        connection = self.main.connection
        if edges is not None:
            why = edges.texts.standing(row)
            created = self._dated(row, edges)
            if not why and created is None:
                return FAILED + LATE, None
            row = replace(row, created=created or row.created)
        else:
            why = standing(connection, row)
        if why:
            return why, None
        stored = values(row)
        try:
            cursor = connection.execute(_INSERT[row.kind], stored)
        except sqlite3.IntegrityError:
            return FAILED + REFUSED, None
        if not cursor.rowcount:
            return FAILED + REFUSED, None
        entry = Entry(kind=row.kind, id=cursor.lastrowid or 0, digest=digest_of(stored), key=row.key, last=row.last)
        return DONE, entry

    def _dated(self, row: NewRow, edges: _Edges) -> str | None:
        """An episode's ``created``; None where it would weaken memories that are there."""
        limits = edges.limits[row.agent]
        if not self.spare or limits.allows(row.project, row.channel, row.created):
            return row.created
        return limits.latest(row.project, row.channel, row.created) if self.clamp else None


class _Edges:
    """What episodes must keep to, as of one version of the database."""

    def __init__(self, main: Main, agents: frozenset[str]) -> None:
        self.version = main.version()
        with main.reading() as connection:
            columns = frozenset(str(row[1]) for row in connection.execute("PRAGMA table_info(episodes)"))
            rules = rules_for(main.shape.schema)
            self.limits = {
                agent: Limits(
                    agent, newest_episodes(connection, columns, agent), oldest_memories(connection, agent), rules
                )
                for agent in agents
            }
            self.texts = EpisodeTexts(connection, agents)
