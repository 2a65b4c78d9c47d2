"""A store to be filled."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from support.stores import schema_13


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A store of schema 13 with labels and without a row."""
    database = schema_13(tmp_path / "store" / "c.db", rows=0, text_index=False)
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM episodes")
        connection.execute("DELETE FROM sqlite_sequence")
        connection.execute("DROP INDEX idx_memories_dedup_content")
        for table in ("memories", "episodes"):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN embedding_model TEXT NOT NULL DEFAULT ''")
    return database
