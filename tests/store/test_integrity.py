"""Checking pages within a given time."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from support.stores import run_sql, schema_13

from cpersona_cli.store import inspect, integrity
from cpersona_cli.store.reading import State


def check(path: Path, size: int, counts: dict[str, int], seconds: float = 60.0) -> integrity.Integrity:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return integrity.check(connection, size, counts, time.monotonic() + seconds)


def test_what_does_not_fit_the_time_is_named(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "c.db", rows=100)
    huge = int(1000 * integrity.PACE)
    found = check(database, huge, {"memories": 9000, "episodes": 10, "profiles": 0})
    assert (found.extent, found.unchecked, found.damage) == ("partial", ("memories",), "")
    assert check(database, huge, {"memories": 9000}).extent == ""
    assert check(database, huge, {}).extent == ""


def test_damage_in_a_part(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "c.db")
    run_sql(
        database,
        "CREATE TABLE extra(a)",
        "INSERT INTO extra VALUES (NULL)",
        "PRAGMA writable_schema=1",
        "UPDATE sqlite_master SET sql = 'CREATE TABLE extra(a NOT NULL)' WHERE name = 'extra'",
    )
    found = check(database, int(1000 * integrity.PACE), {"memories": 9000, "extra": 1, "profiles": 0})
    assert (found.extent, found.unchecked) == ("partial", ("memories",))
    assert "extra.a" in found.damage


@pytest.mark.parametrize("whole", [True, False])
def test_the_check_is_stopped_at_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    database = schema_13(tmp_path / "c.db", rows=3000, text_index=False)
    monkeypatch.setattr("cpersona_cli.store.sql._STEPS", 10)
    monkeypatch.setattr(integrity, "PACE", 1e30)
    counts = {"memories": 3000, "profiles": 0}
    clock = iter((0.0, 0.5, *([0.5] * 3), *([5.0] * 1000)))
    monkeypatch.setattr("time.monotonic", lambda: next(clock, 5.0))
    with contextlib.closing(sqlite3.connect(database)) as connection:
        found = integrity.check(connection, 10 if whole else int(1e32), counts, 1.0)
    assert found.extent in {"partial", ""}
    assert "memories" in found.unchecked


def test_errors_other_than_damage_are_raised(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "c.db")
    for size in (10, int(1e15)):
        with (
            contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=0)) as connection,
            contextlib.closing(sqlite3.connect(database, isolation_level=None)) as other,
        ):
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                integrity.check(connection, size, {"profiles": 0}, time.monotonic() + 60)


def test_a_text_index_out_of_step_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answers:
        def execute(self, _: str) -> list[tuple[str]]:
            return [("malformed inverted index for FTS5 table main.memories_fts",), ("*** in database main ***\nx y",)]

    connection: Any = Answers()
    assert integrity._quick_check(connection, "20") == "x y"


@pytest.mark.parametrize(
    ("name", "state", "words"),
    [
        ("SQLITE_PROTOCOL", State.UNREADABLE, "locking protocol"),
        ("SQLITE_IOERR", State.UNREADABLE, "disk I/O error"),
        ("SQLITE_CORRUPT", State.CORRUPT, "disk I/O error"),
        ("SQLITE_NOTADB", State.CORRUPT, "header makes no sense"),
        ("SQLITE_BUSY", State.LOCKED, "locked"),
    ],
)
def test_errors_of_sqlite_by_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, state: State, words: str
) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = getattr(sqlite3, name)

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(inspect, "_look", fail)
    reading = inspect.read(schema_13(tmp_path / "c.db"), mountinfo="", system="linux", holders=lambda _: ())
    assert reading.state is state
    assert words in reading.detail
