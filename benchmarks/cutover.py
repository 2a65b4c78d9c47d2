"""How long a cut-over keeps others from writing, per row, number and block: the figures of ``predict_lock``.

Usage: python -m benchmarks.cutover [ROWS]. A run on a busy machine is only good for its CPU time. About ROWS x 20 KB of
disk are used for a while, in the folder for temporary files.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from cpersona_cli.store.job import Staged, Target, digest
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing import cutover
from cpersona_cli.store.writing.backup import back_up
from cpersona_cli.store.writing.staging import open_job
from cpersona_cli.store.writing.undo import undo

#: (old width, new width, blocks per row)
CASES = ((384, 384, 0), (768, 768, 0), (768, 1024, 0), (768, 1536, 0), (384, 384, 5))

TABLES = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=OFF;
CREATE TABLE schema_version (version INTEGER PRIMARY KEY);
INSERT INTO schema_version VALUES (18);
CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL, content TEXT NOT NULL,
  timestamp TEXT NOT NULL, embedding BLOB, embedding_model TEXT NOT NULL DEFAULT '', created_at TEXT DEFAULT '2025');
CREATE TABLE episodes (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL, summary TEXT NOT NULL,
  embedding BLOB, embedding_model TEXT NOT NULL DEFAULT '', created_at TEXT DEFAULT '2025');
CREATE TABLE profiles (id INTEGER PRIMARY KEY);
CREATE INDEX idx_memories_lost_embedding ON memories(id) WHERE embedding IS NULL;
CREATE TABLE pending_memory_tasks (id INTEGER PRIMARY KEY, task_type TEXT, agent_id TEXT, payload TEXT);
CREATE TABLE record_blocks (parent_kind TEXT, parent_id INTEGER, block_index INTEGER, embedding_bits BLOB,
  embedding_model TEXT DEFAULT '', PRIMARY KEY (parent_kind, parent_id, block_index));
CREATE TABLE record_block_vectors (parent_kind TEXT, parent_id INTEGER, block_index INTEGER, embedding_i8 BLOB,
  PRIMARY KEY (parent_kind, parent_id, block_index)) WITHOUT ROWID;
CREATE TRIGGER record_block_vectors_ad AFTER DELETE ON record_blocks BEGIN DELETE FROM record_block_vectors
  WHERE parent_kind = old.parent_kind AND parent_id = old.parent_id AND block_index = old.block_index; END;
"""


def text(number: int) -> str:
    """Between 60 and 600 characters, always the same."""
    word = hashlib.sha256(str(number).encode()).hexdigest()
    return f"{number} {word} " * (1 + number % 9)


def build(database: Path, rows: int, width: int, blocks: int) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.executescript(TABLES)
        connection.executemany(
            "INSERT INTO memories(agent_id, content, timestamp, embedding) VALUES ('a', ?, '2025', ?)",
            ((text(number), random.randbytes(4 * width)) for number in range(1, rows + 1)),
        )
        for table, size in (("record_blocks", width // 8), ("record_block_vectors", width)):
            column = "embedding_bits" if table == "record_blocks" else "embedding_i8"
            connection.executemany(
                f"INSERT INTO {table}(parent_kind, parent_id, block_index, {column}) VALUES ('mem', ?, ?, ?)",
                ((row, block, bytes(size)) for row in range(1, rows + 1) for block in range(blocks)),
            )


def measure(rows: int, old: int, new: int, blocks: int) -> str:
    """One line of figures."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "c.db"
        build(database, rows, old, blocks)
        times: list[float] = []
        swap = cutover._swap  # noqa: SLF001

        def timed(*args: object) -> object:
            begun = time.process_time()
            done = swap(*args)  # type: ignore[arg-type]
            times.append(time.process_time() - begun)
            return done

        cutover._swap = timed  # type: ignore[assignment]  # noqa: SLF001
        try:
            with open_job(database, Target(mode="http", url="", model="m", dim=new)) as staging:
                vector = bytes(4 * new - 4) + b"\0\0\x80?"
                for start in range(1, rows + 1, 256):
                    numbers = list(range(start, min(rows, start + 255) + 1))
                    random.shuffle(numbers)  # as a window sorted by length gives them
                    staging.add(
                        Staged(Kind.MEMORY, n, digest(text(n)), n.to_bytes(3, "little") + vector[3:]) for n in numbers
                    )
                begun = time.monotonic()
                back_up(staging)
                backup = time.monotonic() - begun
                os.sync()
                done = cutover.cut_over(database, staging)
            undone = undo(database)
        finally:
            cutover._swap = swap  # noqa: SLF001
        assert done.rows == undone.restored == rows
        predicted = cutover.predict_lock(rows, new, rows * blocks)
        return (
            f"{old:5} -> {new:<5} {blocks:6} {done.locked_seconds:8.2f} {times[0]:8.2f} {predicted:10.2f}"
            f" {done.seconds:8.2f} {undone.locked_seconds:8.2f} {backup:8.2f} {done.wal_bytes / rows:9.0f}"
        )


def main() -> int:
    """Every case once."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    print(f"{rows} rows; seconds")
    print("width           blocks   locked  its CPU  predicted    whole     undo   backup  log/row")
    for case in CASES:
        print(measure(rows, *case), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
