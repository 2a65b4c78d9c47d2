"""Index files made by the real servers: what they hold, and when they hold what is no longer so."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.stores import copy_store, run_sql, untouched, write_store

from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.model import Census, IndexFile

WIDTH = 12


def vector(seed: int, width: int = WIDTH) -> bytes:
    source = random.Random(seed)
    return struct.pack(f"<{width}f", *(source.gauss(0, 1) for _ in range(width)))


def census(database: Path) -> Census:
    with untouched(database.parent):
        return CPersonaStore(database).census(deadline=time.monotonic() + 60)


def indexes(database: Path) -> Mapping[str, IndexFile]:
    return {index.name.removeprefix(database.name): index for index in census(database).indexes}


def embed(database: Path, seed: int = 0, where: str = "1", width: int = WIDTH) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        for table in ("memories", "episodes"):
            for (identifier,) in connection.execute(f"SELECT id FROM {table} WHERE {where}").fetchall():
                blob = vector(seed + identifier, width)
                connection.execute(f"UPDATE {table} SET embedding = ? WHERE id = ?", (blob, identifier))


def run(database: Path, python: str, module: str, *words: str) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CPERSONA_", "EMBEDDING_"))}
    env |= {"CPERSONA_EMBEDDING_MODE": "none"}
    done = subprocess.run(
        [python, "-m", module, "--db", str(database), *words],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def build(database: Path, python: str = sys.executable) -> None:
    for table in ("memories", "episodes"):
        run(database, python, "cpersona.vector_index", "--table", table, "build")


@pytest.fixture(scope="module")
def made(server_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the newest server with vectors, blocks and every index file."""
    database = copy_store(server_store, tmp_path_factory.mktemp("indexed"))
    embed(database)
    blocks = [("mem", number, 0, bytes([number, 255])) for number in range(1, 15)] + [("ep", 1, 0, b"\x01\x02")]
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.executemany(
            "INSERT INTO record_blocks(parent_kind, parent_id, block_index, agent_id, start_char, end_char,"
            " embedding_bits) VALUES (?, ?, ?, 'atlas', 0, 1, ?)",
            blocks,
        )
    build(database)
    run(database, sys.executable, "cpersona.block_index", "build")
    return database


@pytest.fixture
def indexed(made: Path, tmp_path: Path) -> Path:
    return copy_store(made, tmp_path / "store")


@pytest.mark.server
def test_files_of_the_newest_server(indexed: Path) -> None:
    found = indexes(indexed)
    assert {name: (index.width, index.rows, index.format, index.unsafe) for name, index in found.items()} == {
        ".memories.vecindex": (WIDTH, 20, 3, ""),
        ".episodes.vecindex": (WIDTH, 1, 3, ""),
        ".memories.coarseindex": (WIDTH, 20, 2, ""),
        ".blocks.blockindex": (16, 15, 1, ""),
    }
    sizes = {name: (indexed.parent / f"{indexed.name}{name}").stat().st_size for name in found}
    assert {name: index.size for name, index in found.items()} == sizes


@pytest.mark.server
def test_changes_that_are_logged_are_read_from_the_rows(indexed: Path) -> None:
    embed(indexed, 1000)
    run_sql(indexed, "UPDATE record_blocks SET embedding_bits = x'0000'")
    assert {index.unsafe for index in indexes(indexed).values()} == {""}


@pytest.mark.server
def test_changes_that_were_not_logged(indexed: Path) -> None:
    """As where somebody emptied the log by hand, but did not stop it."""
    embed(indexed, 1000, "id IN (3, 4)")
    run_sql(
        indexed,
        "UPDATE record_blocks SET embedding_bits = x'0000' WHERE parent_id = 2",
        "DELETE FROM record_vector_changes",
        "DELETE FROM record_block_changes",
    )
    found = {name: index.unsafe for name, index in indexes(indexed).items()}
    why = "entries compared are no longer the vectors of their rows, and the log of changes does not name them"
    assert found == {
        ".memories.vecindex": f"2 of 20 {why}",
        ".memories.coarseindex": f"2 of 20 {why}",
        ".episodes.vecindex": "",
        ".blocks.blockindex": f"1 of 15 {why}",
    }


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE vector_log_clock SET logging = 0",
        "UPDATE vector_log_clock SET generation = generation + 1",
        "UPDATE vector_log_clock SET pruned_through = head + 5, head = head + 5",
        "UPDATE vector_log_clock SET head = -1",
        "DELETE FROM vector_log_clock",
        "CREATE TABLE scratch(x)",
    ],
)
@pytest.mark.server
def test_files_the_server_passes_over_are_harmless(indexed: Path, statement: str) -> None:
    embed(indexed, 1000)
    run_sql(indexed, "DELETE FROM record_vector_changes", statement)
    assert indexes(indexed)[".memories.vecindex"].unsafe == ""
    assert indexes(indexed)[".memories.vecindex"].rows == 20


@pytest.mark.server
def test_rows_without_vectors_and_rows_that_are_gone(indexed: Path) -> None:
    run_sql(
        indexed,
        "DELETE FROM memories WHERE id > 10",
        "UPDATE memories SET embedding = NULL WHERE id = 1",
        "UPDATE memories SET embedding = 'text' WHERE id = 2",
        "UPDATE memories SET embedding = x'010203' WHERE id = 3",
        "DELETE FROM record_vector_changes",
    )
    found = indexes(indexed)
    assert found[".memories.vecindex"].unsafe.startswith("3 of 10 entries")
    assert found[".memories.coarseindex"].unsafe.startswith("3 of 10 entries")


@pytest.mark.server
def test_before_schema_20_nothing_tells_of_changes(tmp_path: Path) -> None:
    python = os.environ.get("CPERSONA_CLI_TEST_OLD_SERVER")
    if not python:
        pytest.skip("no interpreter with 2.5.12 is named; `make test` names it")
    (tmp_path / "old").mkdir()
    database = write_store(tmp_path / "old", python)
    embed(database)
    build(database, python)
    assert {
        name: (index.width, index.rows, index.format, index.unsafe) for name, index in indexes(database).items()
    } == {
        ".memories.vecindex": (WIDTH, 20, 2, ""),
        ".episodes.vecindex": (WIDTH, 1, 2, ""),
    }
    embed(database, 1000, "id > 5", width=8)
    assert indexes(database)[".memories.vecindex"].unsafe == (
        "15 of 20 entries compared are no longer the vectors of their rows, and schema 13 keeps no log of changes"
    )


@pytest.mark.server
def test_only_some_entries_of_a_long_file_are_compared(indexed: Path) -> None:
    with contextlib.closing(sqlite3.connect(indexed)) as connection, connection:
        connection.executemany(
            "INSERT INTO memories(agent_id, content, timestamp, embedding) VALUES ('a', ?, '2026-01-01', ?)",
            ((f"text {number}", vector(number)) for number in range(300)),
        )
    build(indexed)
    embed(indexed, 5000)
    run_sql(indexed, "DELETE FROM record_vector_changes")
    assert indexes(indexed)[".memories.vecindex"].unsafe.startswith("64 of 64 entries")


def spoilt(file: Path, fields: object) -> None:
    """Write a file with another header before the same entries."""
    raw = file.read_bytes()
    (length,) = struct.unpack("<I", raw[8:12])
    header = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    file.write_bytes(raw[:8] + struct.pack("<I", len(header)) + header + raw[12 + length :])


@pytest.mark.server
def test_files_that_do_not_hold_together(indexed: Path) -> None:
    file = indexed.parent / f"{indexed.name}.memories.vecindex"
    whole = file.read_bytes()
    embed(indexed, 1000)
    run_sql(indexed, "DELETE FROM record_vector_changes")

    def found() -> tuple[int | None, str]:
        index = indexes(indexed)[".memories.vecindex"]
        assert index.size == (file.stat().st_size if file.is_file() else 0)
        return index.rows, index.unsafe[:8]

    assert found() == (20, "20 of 20")
    file.write_bytes(whole[:-1])  # the server refuses it
    assert found() == (20, "")
    for content in (
        b"",
        b"CPXIDX01",
        b"CPXBIT01" + whole[8:],
        whole[:8] + b"\xff\xff\xff\xff" + whole[12:],
        whole[:40],
    ):
        file.write_bytes(content)
        assert found() == (None, "")
    for fields in (
        b"\xff",
        b"[" * 100_000,
        [1],
        {},
        {"dim": "8", "count": 1, "format": 3},
        {"dim": -1, "count": 0, "format": 3},
    ):
        file.write_bytes(whole)
        spoilt(file, fields)
        assert found() == (None, "")
    file.write_bytes(whole)
    spoilt(file, {"dim": WIDTH, "count": 20, "format": 9})
    assert found() == (20, "")
    spoilt(file, {"dim": WIDTH, "count": 20, "format": 3})  # without a place in the log
    assert found() == (20, "")
    file.unlink()
    file.mkdir()
    assert found() == (None, "")


@pytest.mark.server
def test_index_files_of_tables_that_are_not_there(indexed: Path) -> None:
    run_sql(indexed, "DROP TABLE record_blocks")
    assert indexes(indexed)[".blocks.blockindex"].unsafe == ""


def test_an_index_without_rows(store: Path) -> None:
    header = json.dumps({"dim": 4, "count": 0, "format": 3}).encode()
    file = store.parent / f"{store.name}.episodes.vecindex"
    file.write_bytes(b"CPXIDX01" + struct.pack("<I", len(header)) + header)
    assert indexes(store) == {
        ".episodes.vecindex": IndexFile(name=file.name, size=len(header) + 12, width=4, rows=0, format=3)
    }


def test_index_files_are_named_after_the_path_as_it_was_given(store: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(store)
    shutil.copy(store, tmp_path / "link.db.blocks.blockindex")
    calibration = tmp_path / "link.db.calibration.json"
    calibration.write_text('{"embedding_dim": 8, "calibrated_at": "2026-03-01T00:00:00+00:00"}')
    found = CPersonaStore(link).census(deadline=time.monotonic() + 60)
    assert [index.name for index in found.indexes] == ["link.db.blocks.blockindex"]
    assert (found.calibration_width, found.calibrated_at) == (8, "2026-03-01T00:00:00+00:00")
    calibration.write_text('{"embedding_dim": "8", "calibrated_at": 3}')
    found = CPersonaStore(link).census(deadline=time.monotonic() + 60)
    assert (found.calibration_width, found.calibrated_at) == (None, "")
