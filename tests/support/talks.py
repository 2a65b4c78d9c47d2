"""Conversations for tests, and whole imports of them."""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cpersona_cli.history.bring_in import Brought, bring_in
from cpersona_cli.history.gather import Item, gather
from cpersona_cli.history.model import Conversation, Format, Role, Turn
from cpersona_cli.history.plan import Plan, know, make_plan
from cpersona_cli.history.wants import Form, Wants
from cpersona_cli.store.writing.scratch import Scratch

#: When these tests take place.
NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)


def at(text: str) -> dt.datetime:
    """A time in UTC, spelled in ISO 8601 without a zone."""
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def talk(name: str, *turns: Turn, **given: Any) -> Conversation:
    return Conversation(
        **{"id": name, "format": Format.CHATGPT, "where": f"export.json, {name}", "turns": tuple(turns), **given}
    )


def turn(name: str, text: str, when: str | None = "2023-04-05T10:00:00", role: Role = Role.USER, **given: Any) -> Turn:
    return Turn(id=name, role=role, text=text, at=None if when is None else at(when), **given)


def day(name: str, when: str, topic: str = "the harbour", turns: int = 3) -> Conversation:
    """A conversation about ``topic`` of so many turns, a minute apart."""
    start = at(when)
    return talk(
        name,
        *(
            Turn(
                id=f"{name}-{number}",
                role=Role.ASSISTANT if number % 2 else Role.USER,
                text=f"In conversation {name} this is remark {number} about {topic}, told at some length.",
                at=start + dt.timedelta(minutes=number),
            )
            for number in range(turns)
        ),
        title=f"Of {topic}",
    )


def wants(**given: Any) -> Wants:
    return Wants(**{"agent": "atlas", "now": NOW, "form": Form.BOTH, **given})


def planned(database: Path, items: Iterable[Item], wanted: Wants) -> Plan:
    """What an import would do."""
    with Scratch() as scratch:
        know(database, scratch)
        return make_plan(database, scratch, gather(items, wanted, scratch), wanted)


def imported(database: Path, items: Iterable[Item], wanted: Wants, **given: Any) -> Brought:
    """An import from the first to the last step."""
    with Scratch() as scratch:
        know(database, scratch)
        plan = make_plan(database, scratch, gather(items, wanted, scratch), wanted)
        return bring_in(database, scratch, plan, wanted, **given)


def ask(database: Path, query: str, *values: object) -> list[Any]:
    """The rows of a query; of a query for one column, its values."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        found: Sequence[tuple[Any, ...]] = connection.execute(query, values).fetchall()
    return [row[0] if len(row) == 1 else row for row in found]
