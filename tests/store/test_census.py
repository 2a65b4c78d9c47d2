"""What is counted, and what is said where the time or the schema does not allow it."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.stores import run_sql, schema_13

from cpersona_cli.store import census, inspect, schema, sql
from cpersona_cli.store.reading import Reading, State


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return schema_13(tmp_path / "c.db")


def read(path: Path, timeout: float = 10.0) -> Reading:
    return inspect.read(path, timeout=timeout, mountinfo="", system="linux", holders=lambda _: ())


def memory(agent: str = "atlas", **values: Any) -> str:
    """An INSERT of one memory."""
    row = {"agent_id": agent, "content": f"{agent} {values}", "timestamp": "2025-03-01T00:00:00+00:00", **values}
    columns = ", ".join(row)
    return f"INSERT INTO memories({columns}) VALUES ({', '.join(_literal(value) for value in row.values())})"


def _literal(value: Any) -> str:
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((8, 8), {8: 14}),
        ((16,), {8: 12, 16: 1}),
        ((16, 16, 4, 2), {8: 12, 16: 2, 4: 1, 2: 1}),
    ],
)
def test_widths(old: Path, sizes: tuple[int, ...], expected: dict[int, int]) -> None:
    run_sql(old, *(memory(content=f"v{i}", embedding=b"\0" * 4 * size) for i, size in enumerate(sizes)))
    assert read(old).widths == expected


def test_bytes_over_are_counted_with_the_dimensions_they_fill(old: Path) -> None:
    run_sql(old, memory(embedding=b"\0" * 35))
    assert read(old).widths == {8: 13}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ((), {"": 12}),
        (("aa",), {"": 12, "aa": 1}),
        (("aa", "bb", "bb"), {"": 12, "aa": 1, "bb": 2}),
    ],
)
def test_labels_of_rows_with_a_vector(old: Path, labels: tuple[str, ...], expected: dict[str, int]) -> None:
    run_sql(
        old,
        "ALTER TABLE memories ADD COLUMN embedding_model TEXT NOT NULL DEFAULT ''",
        *(memory(content=f"l{i}", embedding=b"\0" * 32, embedding_model=x) for i, x in enumerate(labels)),
        memory(content="no vector", embedding_model="zz"),
    )
    reading = read(old)
    assert reading.labels == expected
    assert reading.unembedded == 1


def test_labels_that_are_no_text(old: Path) -> None:
    run_sql(old, "ALTER TABLE memories ADD COLUMN embedding_model", "UPDATE memories SET embedding_model = 7")
    assert read(old).labels == {"7": 12}


def test_sizes_of_texts(old: Path) -> None:
    run_sql(old, memory(content="あ" * 500), "DELETE FROM memories WHERE agent_id = 'borealis'")
    reading = read(old)
    assert reading.longest_content == 500
    assert 1500 < reading.largest_batch_bytes < 2500


def test_many_agents_and_projects(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "c.db", text_index=False)
    run_sql(
        database,
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
        " INSERT INTO memories(agent_id, project_id, content, timestamp) SELECT 'a' || i, 'p' || i, i, '' FROM n",
        memory(project_id="@auto"),
        "INSERT INTO episodes(agent_id, project_id, summary) VALUES ('atlas', '@auto', 's')",
    )
    reading = read(database)
    assert len(reading.agents) == 200
    assert next(iter(reading.agents.items())) == ("atlas", 9)
    assert len(reading.projects) == 200
    assert next(iter(reading.projects)) == ""
    assert reading.projects["@auto"] == 1
    assert reading.auto_project_rows == 2


def test_times(old: Path) -> None:
    run_sql(
        old,
        memory(content="1", timestamp="9999-01-01T00:00:00+14:00"),
        memory(content="2", timestamp="yesterday"),
        memory(content="3", timestamp=""),
        memory(content="4", timestamp="2025-03-05T14:00:00+03:00"),
    )
    reading = read(old)
    assert (reading.invalid_timestamps, reading.future_timestamps) == (1, 1)


@pytest.mark.parametrize(
    ("statement", "lost"),
    [
        ("DROP INDEX idx_memories_dedup_content", ("idx_memories_dedup_content",)),
        ("DROP TRIGGER memories_fts_au", ("memories_fts_au",)),
        ("DROP TABLE profiles", ("profiles",)),
        ("DROP TABLE memories", ("memories", "idx_memories_dedup_content", "idx_memories_dedup_msg_id")),
    ],
)
def test_missing_parts(old: Path, statement: str, lost: tuple[str, ...]) -> None:
    run_sql(old, statement)
    reading = read(old)
    assert reading.state is State.OK
    assert set(lost) <= set(reading.missing)


@pytest.mark.parametrize("trigger", ["record_block_log_ak", "folders_memories_ad", "memories_vector_log_au"])
def test_missing_parts_of_the_newest_schema(store: Path, trigger: str) -> None:
    run_sql(store, f"DROP TRIGGER {trigger}")
    assert read(store).missing == (trigger,)


@pytest.mark.parametrize(("number", "first"), [(13, None), (14, "record_nodes"), (22, "record_nodes")])
def test_what_is_missed_depends_on_the_schema_number(old: Path, number: int, first: str | None) -> None:
    run_sql(old, f"INSERT OR REPLACE INTO schema_version VALUES ({number}, '')")
    reading = read(old)
    assert reading.schema == number
    assert (reading.missing[0] if reading.missing else None) == first


def test_every_number_has_a_release() -> None:
    assert min(schema.RELEASES) == schema.OLDEST
    assert max(schema.RELEASES) == schema.NEWEST


@pytest.mark.parametrize("statement", ["DROP TABLE schema_version", "DELETE FROM schema_version"])
def test_no_schema_number(old: Path, statement: str) -> None:
    run_sql(old, statement)
    reading = read(old)
    assert (reading.state, reading.schema, reading.counts["memories"]) == (State.OK, None, 12)


def test_a_schema_number_that_is_none(old: Path) -> None:
    run_sql(
        old,
        "DROP TABLE schema_version",
        "CREATE TABLE schema_version(version)",
        "INSERT INTO schema_version VALUES ('new')",
    )
    assert read(old).schema is None


def test_without_a_text_index(tmp_path: Path) -> None:
    reading = read(schema_13(tmp_path / "c.db", text_index=False))
    assert (reading.fts_rows, reading.missing) == ({}, ())


def test_a_text_index_that_lags_behind(old: Path) -> None:
    run_sql(old, "DROP TRIGGER memories_fts_ai", memory(), "PRAGMA user_version = 3")
    reading = read(old)
    assert reading.state is State.OK
    assert reading.fts_rows["memories_fts"] == reading.counts["memories"] - 1
    assert reading.fts_pending


def test_columns_that_are_not_there_leave_their_fields_unknown(tmp_path: Path) -> None:
    database = tmp_path / "c.db"
    run_sql(
        database,
        "CREATE TABLE memories(id, agent_id, content, timestamp)",
        "INSERT INTO memories VALUES (1, 'a', 'x', '2025-01-01')",
    )
    reading = read(database)
    assert (reading.state, reading.agents, reading.projects) == (State.OK, {"a": 1}, {"": 1})
    assert (reading.widths, reading.labels) == ({}, {})


def test_text_that_is_not_utf8(old: Path) -> None:
    run_sql(old, "UPDATE memories SET agent_id = CAST(x'ff41' AS TEXT) WHERE id = 1")
    assert read(old).agents["\\xffA"] == 1


def test_a_foreign_table_name_is_made_harmless(tmp_path: Path) -> None:
    run_sql(tmp_path / "c.db", 'CREATE TABLE "a\x1b[31mb"(x)')
    reading = read(tmp_path / "c.db")
    assert reading.state is State.FOREIGN
    assert "\x1b" not in reading.detail


@contextlib.contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def test_a_statement_is_stopped_at_the_deadline(old: Path) -> None:
    endless = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with connected(old) as connection:
        sql.stop_at(connection, time.monotonic())
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.execute(endless).fetchall()
    assert sql.code_of(caught.value) == sqlite3.SQLITE_INTERRUPT


def test_errors_that_are_neither_time_nor_schema_are_raised(old: Path) -> None:
    measure = census.measurer(census.Census())
    with pytest.raises(sqlite3.OperationalError), measure("counts"), connected(old) as connection:
        connection.execute("ATTACH '/none/none' AS other")


def test_an_error_without_a_code() -> None:
    assert sql.code_of(sqlite3.OperationalError("x")) == 0


def test_time_runs_out_before_the_tables_are_known(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "_STEPS", 1)
    reading = read(old, timeout=0.0)
    assert (reading.state, reading.unmeasured, reading.integrity) == (State.OK, ("counts",), "")
