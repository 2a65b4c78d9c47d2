"""Jobs on real stores: rows to stage, and what a store holds bit for bit."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from support.endpoints_small import embed

from cpersona_cli.store.job import Staged, Target, digest
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing.staging import Staging

TABLES = {Kind.MEMORY: ("memories", "content"), Kind.EPISODE: ("episodes", "summary")}


def target(dim: int = 16, model: str = "model-b", label: str = "b-label", fingerprint: str = "") -> Target:
    return Target(
        mode="http", url="http://127.0.0.1:9/embed", model=model, dim=dim, label=label, fingerprint=fingerprint
    )


def vector(text: str, dim: int) -> bytes:
    """What the small endpoint gives for a text."""
    return struct.pack(f"<{dim}f", *embed(text, dim))


def texts(database: Path) -> Iterator[tuple[Kind, int, str]]:
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        for kind, (table, column) in TABLES.items():
            for identifier, text in connection.execute(f"SELECT id, {column} FROM {table} ORDER BY id").fetchall():
                yield kind, identifier, text


def stage(
    staging: Staging, wanted: Callable[[Kind, int], bool] = lambda _kind, _identifier: True
) -> dict[tuple[Kind, int], bytes]:
    """Stage the rows of a job's database that are ``wanted``; their new vectors."""
    dim = staging.target.dim
    rows = [Staged(k, i, digest(t), vector(t, dim)) for k, i, t in texts(staging.database) if wanted(k, i)]
    staging.add(rows)
    return {(row.kind, row.id): row.vector for row in rows}


def stored(database: Path) -> dict[tuple[Kind, int], tuple[str, object, object]]:
    """(type, vector, label) of every row, as it stands in the file; the label is None without its column."""
    found = {}
    with contextlib.closing(sqlite3.connect(database)) as connection:
        for kind, (table, _) in TABLES.items():
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            label = "embedding_model" if "embedding_model" in columns else "NULL"
            for row in connection.execute(f"SELECT id, typeof(embedding), embedding, {label} FROM {table}"):
                found[kind, row[0]] = row[1:]
    return found


def vectors(database: Path) -> dict[tuple[Kind, int], object]:
    return {key: value[1] for key, value in stored(database).items()}


def everything_else(database: Path) -> str:
    """A hash of all that no job may touch: the schema and its number, text indexes, other columns and tables."""
    sums = hashlib.sha256()
    derived = ("record_", "vector_log_clock", "block_log_clock", "pending_memory_tasks", "sqlite_")
    with contextlib.closing(sqlite3.connect(database)) as connection:
        sums.update(repr(connection.execute("PRAGMA schema_version").fetchall()).encode())
        sums.update(repr(connection.execute("PRAGMA user_version").fetchall()).encode())
        schema = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        sums.update(repr(schema).encode())
        for kind, name, _ in schema:
            if kind != "table" or name.startswith(derived):
                continue
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
            if name in {"memories", "episodes"}:
                columns = [column for column in columns if not column.startswith("embedding")]
            listed = ", ".join(f'"{column}"' for column in columns)
            for row in connection.execute(f'SELECT {listed} FROM "{name}" ORDER BY 1'):
                sums.update(repr(row).encode())
    return sums.hexdigest()


def ask(database: Path, query: str, *values: object) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return connection.execute(query, values).fetchall()


def ours(database: Path) -> set[str]:
    """The suffixes of a job's files beside a database."""
    prefix = f"{database.name}.reembed"
    return {file.name.removeprefix(prefix) for file in database.parent.iterdir() if file.name.startswith(prefix)}
