"""Stores with vectors of known make."""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.stores import schema_13

from cpersona_cli.store.model import Kind


def blob(vector: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(vector)}f", *vector)


@dataclass(frozen=True, kw_only=True)
class Written:
    """One row to be written: ``vector`` as numbers, as a blob, as text, or none."""

    text: str
    vector: Sequence[float] | bytes | str | None
    label: str = ""
    agent: str = "atlas"
    created: str = "2026-03-01 08:00:00"
    kind: Kind = Kind.MEMORY
    id: int | None = None


def store_of(folder: Path, rows: Sequence[Written]) -> Path:
    """A store with labels, and nothing but ``rows``."""
    database = schema_13(folder / "c.db", rows=0)
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("DELETE FROM episodes")
        connection.execute("DELETE FROM sqlite_sequence")
        for table in ("memories", "episodes"):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN embedding_model TEXT NOT NULL DEFAULT ''")
        connection.execute("DROP INDEX idx_memories_dedup_content")
        for row in rows:
            raw = row.vector if row.vector is None or isinstance(row.vector, bytes | str) else blob(row.vector)
            values = (row.id, row.agent, row.text, raw, row.label, row.created)
            if row.kind is Kind.MEMORY:
                connection.execute(
                    "INSERT INTO memories(id, agent_id, content, embedding, embedding_model, created_at, timestamp)"
                    " VALUES (?, ?, ?, ?, ?, ?, '2026-03-01T08:00:00+00:00')",
                    values,
                )
            else:
                connection.execute(
                    "INSERT INTO episodes(id, agent_id, summary, embedding, embedding_model, created_at)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    values,
                )
    return database


def run_each(database: Path, change: Callable[[bytes], bytes]) -> None:
    """Rewrite every vector of memories and episodes."""
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        for table in ("memories", "episodes"):
            found = connection.execute(f"SELECT id, embedding FROM {table} WHERE embedding IS NOT NULL").fetchall()
            for identifier, vector in found:
                connection.execute(f"UPDATE {table} SET embedding = ? WHERE id = ?", (change(vector), identifier))
