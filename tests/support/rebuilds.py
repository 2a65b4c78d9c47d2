"""Stores for rebuilds, and an oracle that knows what every row has to hold before and after one."""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.endpoints_small import Request, embed
from support.stores import SENTENCES

#: (kind, id) -> the bytes of a vector and its label; None where there is no vector.
Vectors = Mapping[tuple[str, int], tuple[bytes | None, str]]

_TABLES = {"mem": ("memories", "content"), "ep": ("episodes", "summary")}


def blob(text: str, width: int) -> bytes:
    """What ``SmallEndpoint`` of that width gives for a text, as the server stores it."""
    return struct.pack(f"<{width}f", *embed(text, width))


def fill(database: Path, *, rows: int, width: int | None = 64, label: str = "") -> Path:
    """Give a store ``rows`` memories in all, and every row a vector ``width`` wide (None: none)."""
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA synchronous=OFF")
        (there,) = connection.execute("SELECT count(*) FROM memories").fetchone()
        connection.executemany(
            "INSERT INTO memories(agent_id, content, timestamp) VALUES ('atlas', ?, '2025-04-01T08:00:00+00:00')",
            ((sentence(number),) for number in range(there, rows)),
        )
        labelled = "embedding_model" in {row[1] for row in connection.execute("PRAGMA table_info(memories)")}
        for table, text in _TABLES.values():
            found = connection.execute(f"SELECT {text}, id FROM {table}").fetchall()
            for words, identifier in found:
                vector = None if width is None else blob(words, width)
                connection.execute(f"UPDATE {table} SET embedding = ? WHERE id = ?", (vector, identifier))
            if labelled and width is not None:
                connection.execute(f"UPDATE {table} SET embedding_model = ?", (label,))
    return database


def sentence(number: int) -> str:
    """A memory of its own."""
    return f"{SENTENCES[number % len(SENTENCES)]} Remark {number} of {number * 7 % 31}."


def vectors(database: Path) -> Vectors:
    """What every row holds now."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        found = {}
        for kind, (table, _) in _TABLES.items():
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            label = "embedding_model" if "embedding_model" in columns else "''"
            for row in connection.execute(f"SELECT id, embedding, {label} FROM {table}"):
                found[kind, row[0]] = (row[1], row[2])
        return found


def texts(database: Path) -> Mapping[tuple[str, int], str]:
    """The text of every row."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return {
            (kind, row[0]): row[1]
            for kind, (table, text) in _TABLES.items()
            for row in connection.execute(f"SELECT id, {text} FROM {table}")
        }


@dataclass
class Oracle:
    """Knows all-old and all-new of one store: ``width`` and ``label`` are of the new model."""

    database: Path
    width: int
    label: str = ""
    old: Vectors = field(init=False)
    new: Vectors = field(init=False)

    def __post_init__(self) -> None:
        self.old = vectors(self.database)
        self.new = {row: (blob(text, self.width), self.label) for row, text in texts(self.database).items()}

    def state(self) -> str:
        """``old`` or ``new``; fails for anything between."""
        now = vectors(self.database)
        if now == self.old:
            return "old"
        assert now.keys() == self.new.keys()
        wrong = [row for row, held in now.items() if held != self.new[row]]
        assert not wrong, f"neither all old nor all new: {len(wrong)} of {len(now)} rows differ from the new"
        return "new"


def sent(requests: Iterable[Request], stored: Iterable[str]) -> Sequence[str]:
    """Those of ``stored`` texts that were sent, each as often as it was."""
    known = set(stored)
    return [text for request in requests for text in request.texts if text in known]
