"""Checking a database's pages within a given time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from typing import Literal

from cpersona_cli.record import record
from cpersona_cli.store.sql import code_of, quoted, stop_at

#: Bytes a second at which pages are surely checked. SQLite before 3.42 cannot be stopped within one table.
PACE = 200e6


@record
class Integrity:
    """How much was checked, the tables that were not, and the first thing SQLite found wrong."""

    extent: Literal["", "whole", "partial"]
    unchecked: tuple[str, ...] = ()
    damage: str = ""


def check(connection: sqlite3.Connection, size: int, counts: Mapping[str, int], deadline: float) -> Integrity:
    """SQLite's ``quick_check`` of a database of ``size`` bytes, until ``deadline`` of ``time.monotonic``.

    A database too large for the time is checked table by table, those with the fewest rows (``counts``) first.
    Damage is in the answer, whether SQLite reports it or raises; other ``sqlite3.Error`` are raised.
    """
    stop_at(connection, deadline)
    budget = (deadline - time.monotonic()) * PACE
    if size <= budget:
        try:
            return Integrity("whole", damage=_quick_check(connection, "20"))
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_INTERRUPT:
                raise
            return Integrity("partial" if counts else "", tuple(sorted(counts)))
    total = sum(counts.values()) or 1
    waiting = sorted(counts, key=lambda table: (counts[table], table))
    while waiting:
        cost = size * counts[waiting[0]] / total
        if cost > (deadline - time.monotonic()) * PACE:
            break
        try:
            damage = _quick_check(connection, quoted(waiting[0]))
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_INTERRUPT:
                raise
            break
        waiting.pop(0)
        if damage:
            return Integrity("partial", tuple(sorted(waiting)), damage)
    return Integrity("partial" if len(waiting) < len(counts) else "", tuple(sorted(waiting)))


def _quick_check(connection: sqlite3.Connection, what: str) -> str:
    """The first message of ``PRAGMA quick_check``, empty when all is well; damage may also be raised by SQLite."""
    try:
        for (message,) in connection.execute(f"PRAGMA quick_check({what})"):
            # From 3.44 on text indexes are compared too. One that lags behind is no damage; it is counted apart.
            if message != "ok" and "FTS5 table" not in message:
                return str(message).removeprefix("*** in database main ***\n").strip()
    except sqlite3.DatabaseError as error:
        if code_of(error) not in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise
        return str(error)
    return ""
