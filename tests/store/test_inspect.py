"""What a reading shows of a store, whole or damaged, and of what is none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.readings import quietly, spoil_the_schema
from support.stores import run_sql, schema_13

from cpersona_cli.store.reading import State


def test_a_closed_store_of_the_server_is_read_without_locks(store: Path) -> None:
    reading = quietly(store)
    assert (reading.state, reading.detail, reading.method, reading.integrity) == (State.OK, "", "immutable", "whole")
    assert reading.schema == 21
    assert reading.journal == "wal"
    assert reading.mode == 0o600
    assert reading.agents == {"atlas": 15, "borealis": 5}
    assert reading.projects == {"": 20}
    assert reading.unembedded == 20
    assert reading.widths == {}
    assert reading.labels == {}
    assert reading.counts["memories"] == 20
    assert reading.counts["episodes"] == 1
    assert reading.counts["profiles"] == 1
    assert not any("fts" in table for table in reading.counts)
    assert reading.fts_rows == {"memories_fts": 20, "episodes_fts": 1}
    assert reading.missing == ()
    assert not reading.fts_pending
    assert (reading.invalid_timestamps, reading.future_timestamps) == (0, 0)
    assert reading.unmeasured == reading.unchecked == ()
    assert reading.conflicts == ()
    assert reading.calibration is None
    assert reading.size == store.stat().st_size


@pytest.mark.parametrize("late", [False, True])
def test_a_store_of_an_older_server(tmp_path: Path, late: bool) -> None:
    reading = quietly(schema_13(tmp_path / "d" / "old.db", late=late))
    assert (reading.state, reading.schema, reading.journal, reading.method) == (State.OK, 13, "rollback", "in-place")
    assert reading.widths == {8: 12}
    assert reading.labels == {}  # labels came with schema 18
    assert reading.unembedded == 0
    assert reading.missing == ()
    assert reading.fts_rows == {"memories_fts": 12, "episodes_fts": 1}


def test_zero_bytes(tmp_path: Path) -> None:
    (tmp_path / "c.db").touch()
    assert quietly(tmp_path / "c.db").state is State.EMPTY


def test_no_tables(tmp_path: Path) -> None:
    run_sql(tmp_path / "c.db", "CREATE TABLE t(a)", "DROP TABLE t")
    assert quietly(tmp_path / "c.db").state is State.EMPTY


def test_the_schema_and_no_rows(tmp_path: Path) -> None:
    reading = quietly(schema_13(tmp_path / "c.db", rows=0))
    assert (reading.state, reading.counts["memories"], reading.widths, reading.agents) == (State.OK, 0, {}, {})


@pytest.mark.parametrize(
    "tables",
    [
        ("messages(id, body)", "threads(id, title)"),
        ("memories(id, text)", "users(id)"),
        ("schema_version(version)", "episodes(season, title)"),
    ],
)
def test_the_database_of_another_program(tmp_path: Path, tables: tuple[str, ...]) -> None:
    run_sql(tmp_path / "c.db", *(f"CREATE TABLE {table}" for table in tables))
    reading = quietly(tmp_path / "c.db")
    assert reading.state is State.FOREIGN
    assert all(table.partition("(")[0] in reading.detail for table in tables)
    assert "memories" not in reading.counts


def test_not_sqlite_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_text("<!DOCTYPE html><title>Sign in</title>")
    reading = quietly(tmp_path / "c.db")
    assert (reading.state, "HTML page" in reading.detail) == (State.NOT_SQLITE, True)


@pytest.mark.parametrize("keep", [16, 60, 100, 512, 4095])
def test_only_the_beginning_is_left(plain: Path, keep: int) -> None:
    os.truncate(plain, keep)
    reading = quietly(plain)
    assert reading.state is State.CORRUPT
    assert f"{keep} bytes" in reading.detail


def large(database: Path) -> Path:
    return schema_13(database, rows=400, dim=256)


def zero_a_page(database: Path) -> None:
    with database.open("r+b") as file:
        file.seek(30 * 4096)
        file.write(bytes(4096))


def cut(database: Path) -> None:
    os.truncate(database, int(database.stat().st_size * 0.6))


def spoil_the_header(database: Path) -> None:
    with database.open("r+b") as file:
        file.seek(16)
        file.write(b"\x00\x07\x09\x09")


def break_a_rule(database: Path) -> None:
    """No page is broken: here quick_check does not raise, it answers with a row of text."""
    run_sql(
        database,
        "CREATE TABLE extra(a)",
        "INSERT INTO extra VALUES (NULL)",
        "PRAGMA writable_schema=1",
        "UPDATE sqlite_master SET sql = 'CREATE TABLE extra(a NOT NULL)' WHERE name = 'extra'",
    )


@pytest.mark.parametrize("damage", [zero_a_page, cut, spoil_the_schema, spoil_the_header, break_a_rule])
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_damage(tmp_path: Path, damage: Callable[[Path], None], mode: str) -> None:
    database = large(tmp_path / "d" / "c.db")
    run_sql(database, f"PRAGMA journal_mode={mode}")
    damage(database)
    reading = quietly(database)
    assert reading.state is State.CORRUPT
    assert reading.detail
    assert "Traceback" not in reading.detail


def test_no_time_is_said_not_guessed(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "c.db", rows=20_000, text_index=False)
    reading = quietly(database, timeout=0.0)
    assert reading.state is State.OK
    assert {"widths", "longest_content"} <= set(reading.unmeasured)
    assert reading.integrity == ""
    assert "memories" in reading.unchecked or "counts" in reading.unmeasured
