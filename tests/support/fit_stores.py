"""Stores with vectors of known make, and a plain reader of them."""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.stores import schema_13

from cpersona_cli.store.model import Census, Form, Group, Kind, Row

_TABLES = {Kind.MEMORY: ("memories", "content"), Kind.EPISODE: ("episodes", "summary")}


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


class PlainStore:
    """A reader as the protocol wants it, with no care for speed or for servers at work."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(query, values).fetchall()

    def census(self, *, deep: bool = False, live_width: int | None = None, deadline: float) -> Census:
        groups = []
        for table in ("memories", "episodes"):
            found = self._ask(
                f"SELECT typeof(embedding), length(embedding), embedding_model, agent_id, count(*), min(id), max(id),"
                f" min(created_at), max(created_at) FROM {table} GROUP BY 1, 2, 3, 4"
            )
            for kind, size, label, agent, rows, first, last, oldest, newest in found:
                form, width = _form(str(kind), size)
                groups.append(
                    Group(
                        table=table,
                        form=form,
                        width=width,
                        label=str(label),
                        agent=str(agent),
                        rows=int(str(rows)),
                        first=int(str(first)),
                        last=int(str(last)),
                        oldest=str(oldest),
                        newest=str(newest),
                    )
                )
        return Census(path=self.path, schema=18, groups=tuple(groups))

    def rows(self, kind: Kind, *, after: int = 0, vectors: bool = False) -> Iterator[Row]:
        for row in self._all(kind):
            if row.id > after:
                yield row

    def _all(self, kind: Kind) -> list[Row]:
        table, text = _TABLES[kind]
        found = self._ask(
            f"SELECT id, {text}, embedding, embedding_model, agent_id, created_at FROM {table}"
            f" WHERE typeof(embedding) = 'blob' AND length(embedding) % 4 = 0 AND trim({text}) <> '' ORDER BY id"
        )
        return [
            Row(
                kind=kind,
                id=int(str(identifier)),
                text=str(content),
                vector=vector if isinstance(vector, bytes) else None,
                label=str(label),
                agent=str(agent),
                created=str(created),
            )
            for identifier, content, vector, label, agent, created in found
        ]

    def sample(self, count: int, *, deadline: float) -> Sequence[Row]:
        strata: dict[tuple[object, ...], list[Row]] = {}
        for kind in Kind:
            for row in self._all(kind):
                strata.setdefault((kind, len(row.vector or b""), row.label), []).append(row)
        each = max(2, count // max(1, len(strata)))
        chosen: list[Row] = []
        for rows in strata.values():
            step = max(1.0, (len(rows) - 1) / (each - 1))
            places = dict.fromkeys(round(step * number) for number in range(each) if round(step * number) < len(rows))
            chosen.extend(rows[place] for place in places)
        return chosen[: count + 4]

    def near(self, kind: Kind, identifier: int, count: int, *, deadline: float) -> Sequence[Row]:
        nearest = sorted(self._all(kind), key=lambda row: (abs(row.id - identifier), row.id))[:count]
        return sorted(nearest, key=lambda row: row.id)

    def count(self, kind: Kind, *, after: int = 0, upto: int | None = None, deadline: float) -> Mapping[str, int]:
        table, _ = _TABLES[kind]
        found = self._ask(
            f"SELECT agent_id, count(*) FROM {table} WHERE id > ? AND id <= ? AND typeof(embedding) = 'blob'"
            " GROUP BY agent_id",
            after,
            (1 << 62) if upto is None else upto,
        )
        return {str(agent): int(str(rows)) for agent, rows in found}


def _form(kind: str, size: object) -> tuple[Form, int | None]:
    if kind != "blob":
        return (Form.NULL if kind == "null" else Form.TEXT), None
    length = int(str(size))
    if not length or length % 4:
        return (Form.ODD if length else Form.EMPTY), None
    return Form.VECTOR, length // 4
