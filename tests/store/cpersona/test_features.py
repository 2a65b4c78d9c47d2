"""Which stores are worked on, and what each of them has."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

import pytest
from support.readings import ADD, crash_with_log, spoil_the_schema
from support.stores import Other, run_sql, schema_13, untouched, write_store

from cpersona_cli.store.cpersona.features import TABLES, Features
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.model import Kind, StoreError


def features(path: Path) -> Features:
    return CPersonaStore(path).look(lambda _, found, __: found, time.monotonic() + 60)


def refusal(path: Path) -> str:
    with pytest.raises(StoreError) as caught:
        features(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(f"{path} ")


def test_the_newest_schema(store: Path) -> None:
    found = features(store)
    assert found.schema == 21
    assert found.tables == TABLES
    assert (found.labelled, found.page_size) == (True, 4096)
    assert found.cookie > 0


@pytest.mark.parametrize("variable", ["CPERSONA_CLI_TEST_OLD_SERVER", "CPERSONA_CLI_TEST_OLDEST_SERVER"])
@pytest.mark.server
def test_schema_13_of_the_real_servers(tmp_path: Path, variable: str) -> None:
    python = os.environ.get(variable)
    if not python:
        pytest.skip("no interpreter of that server is named; `make test` names it")
    (tmp_path / "old").mkdir()
    found = features(write_store(tmp_path / "old", python))
    assert found.schema == 13
    assert [table.name for table in found.tables] == ["memories", "episodes"]
    assert [table.label for table in found.tables] == ["", ""]
    assert not found.labelled


def test_columns_are_told_by_looking(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "c.db", text_index=False)
    run_sql(
        database,
        "UPDATE schema_version SET version = 18",
        "ALTER TABLE memories ADD COLUMN embedding_model TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE episodes DROP COLUMN summary",
        "CREATE TABLE record_nodes(parent_kind, parent_id)",
    )
    found = features(database)
    assert [table.name for table in found.tables] == ["memories"]
    assert found.labelled
    assert found.of(Kind.EPISODE) is None
    assert found.table("record_nodes") is None


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (
            ("UPDATE schema_version SET version = 12",),
            "schema 12, and this tool reads 13 to 21; start the server",
        ),
        (
            ("UPDATE schema_version SET version = 22",),
            "schema 22, newer than 21, the newest this tool knows; update",
        ),
        (("DROP TABLE schema_version",), "states no schema number; start the server once"),
        (("DELETE FROM schema_version",), "states no schema number; start"),
        (("DROP TABLE memories",), "has lost its table memories; restore a backup"),
        (("ALTER TABLE memories DROP COLUMN embedding",), "without the column embedding; start the server once"),
        (
            ("DROP TABLE memories", "DROP TABLE episodes"),
            "is the database of another program; name the one of CPersona",
        ),
        (("ALTER TABLE memories RENAME COLUMN content TO body",), "is the database of another program"),
    ],
)
def test_stores_that_are_not_known(tmp_path: Path, statements: tuple[str, ...], words: str) -> None:
    database = schema_13(tmp_path / "c.db", text_index=False)
    run_sql(database, *statements)
    assert words in refusal(database)


def test_a_database_without_tables(tmp_path: Path) -> None:
    run_sql(tmp_path / "c.db", "PRAGMA application_id = 3")
    assert "without any table; start the server once" in refusal(tmp_path / "c.db")


def test_what_is_no_database(tmp_path: Path) -> None:
    odd = tmp_path / "odd.db"
    assert refusal(odd) == "does not exist: no such file; its folder exists; check the path"
    assert "its folder" in refusal(tmp_path / "none" / "c.db")
    assert "this is a folder" in refusal(tmp_path)
    odd.touch()
    assert "without a single byte; start the server once" in refusal(odd)
    odd.write_bytes(b"no database at all" * 100)
    assert "this is a text file; name the database file" in refusal(odd)
    odd.write_bytes(b"SQLite format 3\0\x10\0" + b"\xff" * 5000)
    assert "is damaged" in refusal(odd)
    odd.write_bytes(b"SQLite format 3\0")
    assert "cut off within its first page" in refusal(odd)


def test_what_is_kept_in_memory() -> None:
    assert "CPERSONA_DB_PATH" in refusal(Path(":memory:"))


def test_a_damaged_schema(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "c.db")
    spoil_the_schema(database)
    assert "is damaged" in refusal(database)
    assert refusal(database).endswith("restore a backup, or save what is left with sqlite3 and .recover")


def test_a_locked_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = schema_13(tmp_path / "c.db")
    monkeypatch.setattr("cpersona_cli.store.opening.WAIT", 0.05)
    with Other(database, "BEGIN EXCLUSIVE"):
        assert "is kept locked by another process; end that" in refusal(database)
    run_sql(database, "PRAGMA journal_mode=WAL")
    with Other(database, ADD, "PRAGMA locking_mode=EXCLUSIVE", ADD.replace("one", "yet one")):
        assert "is kept locked by another process; end that" in refusal(database)


def test_a_log_of_another_database(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "store" / "c.db")
    run_sql(database, "PRAGMA journal_mode=WAL")
    crash_with_log(database)
    other = schema_13(tmp_path / "other.db", rows=200)
    run_sql(other, "PRAGMA journal_mode=WAL", *(ADD.replace("one more", f"{n}") for n in range(50)))
    database.write_bytes(other.read_bytes())
    with untouched(database.parent):
        assert "beside a -wal that does not belong to it" in refusal(database)


def test_a_log_that_must_be_copied_and_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = schema_13(tmp_path / "store" / "c.db")
    run_sql(database, "PRAGMA journal_mode=WAL")
    crash_with_log(database)
    assert features(database).schema == 13
    monkeypatch.setattr("cpersona_cli.store.opening.COPY_LIMIT", 1)
    assert "can only be read from a copy of it and its log" in refusal(database)


def test_a_store_that_never_rests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = schema_13(tmp_path / "c.db")
    run_sql(database, "PRAGMA journal_mode=WAL")
    stamps = iter(range(1000))
    monkeypatch.setattr("cpersona_cli.store.opening.stamp", lambda _: (next(stamps),))
    assert refusal(database) == "changes faster than it can be read; try again when less is written"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(5, "Input/output error"), "cannot be read: Input/output error; check the disk"),
        (sqlite3.OperationalError("disk I/O error"), "cannot be read (SQLite says “disk I/O error”); check its folder"),
    ],
)
def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str) -> None:
    def fail(_: object) -> None:
        raise error

    database = schema_13(tmp_path / "c.db")
    monkeypatch.setattr("cpersona_cli.store.cpersona.store.detect", fail)
    assert words in refusal(database)
