from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

import pytest

from cpersona_cli.store.inspect import read
from cpersona_cli.store.reading import State
from cpersona_cli.store.sample import SampleError, sample


def fill(path: Path, texts: dict[int, object]) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM memories")
        connection.executemany(
            "INSERT INTO memories (id, agent_id, content, timestamp) VALUES (?, 'a', ?, '2026-01-01T00:00:00Z')",
            texts.items(),
        )
    connection.close()


@pytest.fixture
def filled(store: Path) -> Path:
    fill(store, {number: f"memory {number} " + "x" * (500 if number == 7 else 0) for number in range(1, 101)})
    return store


def test_the_longest_and_some_from_everywhere(filled: Path) -> None:
    rows = sample(filled, 10)
    assert len(rows) == len({row.id for row in rows}) == 10
    assert [row.id for row in rows] == sorted(row.id for row in rows)
    assert {7, 100} <= {row.id for row in rows}
    assert next(row.text for row in rows if row.id == 7).startswith("memory 7 xxx")
    assert min(row.id for row in rows) < 20


@pytest.mark.parametrize(("count", "found"), [(1, 1), (2, 2), (100, 100), (1000, 100)])
def test_never_more_than_there_are(filled: Path, count: int, found: int) -> None:
    assert len(sample(filled, count)) == found


def test_what_the_server_never_embeds_is_left_out(store: Path) -> None:
    fill(store, {1: "", 2: " \n\t", 3: b"\x00\x01", 4: "a text", 5: "\ud7ff ok"})
    assert [row.id for row in sample(store, 10)] == [4, 5]


@pytest.mark.parametrize(
    ("blob", "vector"),
    [(struct.pack("<3f", 1, 0.5, -2), (1.0, 0.5, -2.0)), (None, ()), (b"12345", ()), ("text", ()), (b"", ())],
)
def test_the_stored_vector(filled: Path, blob: object, vector: tuple[float, ...]) -> None:
    connection = sqlite3.connect(filled)
    with connection:
        connection.execute("UPDATE memories SET embedding = ? WHERE id = 7", (blob,))
    connection.close()
    assert next(row.vector for row in sample(filled, 3) if row.id == 7) == vector


def test_nothing_is_changed_in_the_folder(filled: Path) -> None:
    before = {path.name: path.read_bytes() for path in filled.parent.iterdir()}
    sample(filled, 5)
    assert {path.name: path.read_bytes() for path in filled.parent.iterdir()} == before


def test_a_database_in_use(filled: Path) -> None:
    live = sqlite3.connect(filled)
    with live:
        live.execute("UPDATE memories SET content = 'now by far the longest ' || hex(zeroblob(600)) WHERE id = 3")
    assert 3 in {row.id for row in sample(filled, 2)}
    live.close()


def test_a_link_to_the_database(filled: Path) -> None:
    link = filled.parent / "link.db"
    link.symlink_to(filled)
    assert len(sample(link, 3)) == 3


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_what_is_no_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.db"
    path.write_bytes(content)
    assert read(path).state is not State.OK
    with pytest.raises(SampleError, match=r"odd\.db cannot be read"):
        sample(path, 3)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(SampleError, match="No such file"):
        sample(tmp_path / "none.db", 3)


def test_no_time(filled: Path) -> None:
    fill(filled, {number: f"text {number}" for number in range(60_000)})
    with pytest.raises(SampleError, match="interrupted"):
        sample(filled, 3, timeout=-1)


def test_a_locked_database(filled: Path) -> None:
    other = sqlite3.connect(filled, isolation_level=None)
    other.execute("PRAGMA journal_mode=DELETE")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(SampleError, match="locked"):
        sample(filled, 3, timeout=0.2)
    other.close()
