"""Some stored texts for an endpoint to be tried with: the longest ones, and others from the whole of the table."""

from __future__ import annotations

import sqlite3
import struct
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.stores import Other, run_sql, schema_13, untouched

from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.model import Row, StoreError


def texts(path: Path, count: int, seconds: float = 60.0) -> Sequence[Row]:
    return CPersonaStore(path).texts(count, deadline=time.monotonic() + seconds)


def fill(path: Path, contents: dict[int, object]) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM memories")
        connection.executemany(
            "INSERT INTO memories (id, agent_id, content, timestamp) VALUES (?, 'a', ?, '2026-01-01T00:00:00Z')",
            contents.items(),
        )
    connection.close()


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    path = schema_13(tmp_path / "store" / "c.db")
    fill(path, {number: f"memory {number} " + "x" * (500 if number == 7 else 0) for number in range(1, 101)})
    return path


def test_the_longest_and_some_from_everywhere(filled: Path) -> None:
    rows = texts(filled, 10)
    assert len(rows) == len({row.id for row in rows}) == 10
    assert [row.id for row in rows] == sorted(row.id for row in rows)
    assert {7, 100} <= {row.id for row in rows}
    assert next(row.text for row in rows if row.id == 7).startswith("memory 7 xxx")
    assert min(row.id for row in rows) < 20


@pytest.mark.parametrize(("count", "found"), [(1, 1), (2, 2), (99, 99), (100, 100), (1000, 100)])
def test_never_more_than_there_are(filled: Path, count: int, found: int) -> None:
    assert len(texts(filled, count)) == found


def test_what_there_is_nothing_to_embed_of_is_left_out(filled: Path) -> None:
    blanks = "\t\n\v\f\r\x1c\x1f \x85\xa0\u1680\u2000\u200a\u2028\u202f\u205f\u3000"
    assert not blanks.strip()
    fill(filled, {1: "", 2: " \n\t", 3: b"\x00\x01", 4: "a text", 5: "\ud7ff ok", 6: blanks, 7: f"{blanks}x{blanks}"})
    assert [row.id for row in texts(filled, 10)] == [4, 5, 7]


@pytest.mark.parametrize(
    ("blob", "vector"), [(struct.pack("<3f", 1, 0.5, -2),) * 2, (None, None), (b"12345", b"12345"), ("text", b"")]
)
def test_the_stored_vector(filled: Path, blob: object, vector: bytes | None) -> None:
    connection = sqlite3.connect(filled)
    with connection:
        connection.execute("UPDATE memories SET embedding = ? WHERE id = 7", (blob,))
    connection.close()
    assert next(row.vector for row in texts(filled, 3) if row.id == 7) == vector


def test_nothing_is_changed_in_the_folder(filled: Path) -> None:
    with untouched(filled.parent):
        texts(filled, 5)


def test_a_database_in_use(filled: Path) -> None:
    run_sql(filled, "PRAGMA journal_mode=WAL")
    with Other(filled, "UPDATE memories SET content = 'now by far the longest ' || hex(zeroblob(600)) WHERE id = 3"):
        assert 3 in {row.id for row in texts(filled, 2)}


def test_a_link_to_the_database(filled: Path) -> None:
    link = filled.parent / "link.db"
    link.symlink_to(filled)
    assert len(texts(link, 3)) == 3


def test_a_store_that_has_no_time(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.store.sql._STEPS", 20)
    with pytest.raises(StoreError, match="time there was; allow more"):
        texts(filled, 3, seconds=-1)
