"""The census of a store of the server: groups, blanks, contents, and what was derived from the vectors."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from cpersona_cli.store.cpersona.contents import contents
from cpersona_cli.store.cpersona.counting import Counted, Sort, Tally, tallies
from cpersona_cli.store.cpersona.derived import indexes
from cpersona_cli.store.cpersona.features import Features, Table, blank
from cpersona_cli.store.files import sibling
from cpersona_cli.store.model import FOLDED, LISTED_GROUPS, Census, Form, Group, Kind
from cpersona_cli.store.sidecar import read_calibration
from cpersona_cli.store.sql import code_of, stop_at

T = TypeVar("T")


def take(
    connection: sqlite3.Connection,
    features: Features,
    path: Path,
    *,
    deep: bool,
    live_width: int | None,
    deadline: float,
) -> tuple[Census, Sequence[Counted]]:
    """Count everything behind ``connection`` until ``deadline`` of ``time.monotonic``; ``path`` is as it was given.

    The second result is what the groups were made of.

    What took longer is named ``unmeasured``: a table's name, ``labels of`` it, ``blank``, ``contents`` or
    ``indexes``. Raises ``sqlite3.Error``.
    """
    started = time.monotonic()
    stop_at(connection, deadline)
    connection.execute("BEGIN")
    unmeasured: list[str] = []

    def measure(name: str, count: Callable[[], T]) -> T | None:
        """The result of ``count``, or None where it was stopped by the clock."""
        try:
            return count()
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_INTERRUPT:
                raise
            unmeasured.append(name)
            return None

    counted = []
    for table in features.tables:
        found = measure(table.name, partial(tallies, connection, table, features.page_size))
        if found is not None:
            counted.append(found)
            unmeasured += [] if found.labels else [f"labels of {table.name}"]
    blanks = measure("blank", lambda: _blanks(connection, features.tables))
    held, finished = contents(connection, counted, deep=deep, live_width=live_width)
    unmeasured += [] if finished and len(counted) == len(features.tables) else ["contents"]
    files = measure("indexes", lambda: indexes(connection, features, path))
    calibration, _ = read_calibration(sibling(path, ".calibration.json"))
    width, when = ((calibration or {}).get(name) for name in ("embedding_dim", "calibrated_at"))
    census = Census(
        path=path,
        schema=features.schema,
        groups=tuple(group for found in counted for group in listed(found)),
        contents=held,
        blank=blanks or {},
        indexes=files or (),
        calibration_width=width if isinstance(width, int) else None,
        calibrated_at=when if isinstance(when, str) else "",
        unmeasured=tuple(unmeasured),
        seconds=time.monotonic() - started,
    )
    return census, counted


def listed(counted: Counted) -> Sequence[Group]:
    """The tallies of one table as groups, the largest first: ``LISTED_GROUPS``, and the rest by what they hold."""
    groups: dict[tuple[object, ...], Tally] = {}
    for tally in sorted(counted.tallies, key=lambda tally: -tally.rows):
        form, width = form_of(counted.table, tally.sort)
        label = "" if tally.sort.label is None else str(tally.sort.label)
        key = (form, width, label, tally.agent)
        if key not in groups and len(groups) >= LISTED_GROUPS:
            key = (form, width, label, FOLDED)
        groups.setdefault(key, Tally(str(key[-1]), tally.sort)).take(tally)
    return [
        Group(
            table=counted.table.name,
            form=form_of(counted.table, tally.sort)[0],
            width=form_of(counted.table, tally.sort)[1],
            label=str(label),
            agent=tally.agent,
            rows=tally.rows,
            first=tally.first,
            last=tally.last,
            oldest=tally.oldest,
            newest=tally.newest,
        )
        for (_, _, label, _), tally in sorted(groups.items(), key=lambda item: -item[1].rows)
    ]


def form_of(table: Table, sort: Sort) -> tuple[Form, int | None]:
    """What stands in a vector's place, and how wide it is if it is one."""
    if sort.type == "null":
        return Form.NULL, None
    if sort.type != "blob":
        return Form.TEXT, None
    if not sort.size:
        return Form.EMPTY, None
    width = table.width(sort.size)
    return (Form.ODD, None) if width is None else (Form.VECTOR, width)


def _blanks(connection: sqlite3.Connection, tables: Iterable[Table]) -> Mapping[Kind, int]:
    counts = {}
    for table in tables:
        if table.kind is not None:
            (counts[table.kind],) = connection.execute(
                f"SELECT count(*) FROM {table.name} WHERE {blank(table.text)}"  # noqa: S608 - names of our own list
            ).fetchone()
    return counts
