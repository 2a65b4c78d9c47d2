"""The census of a large store, against one plain scan of its table in the same run, and the memory both sizes take.

Usage: python -m benchmarks.census [ROWS [DIMENSIONS]]. A store of the real server is filled in a temporary folder
(768 dimensions: 4.4 GB for a million rows). Each figure is the best of three runs in turns; memory is the largest
resident size of a process of its own, for 1,000 rows and for ROWS. The limit is for vectors that share a page with the
rest of their row: of wider ones (1,024 and more) the scan reads neither them nor the labels behind them.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

#: Census against the scan, and bytes of memory by which the large store may take more than the small one.
LIMIT, MEMORY = 2.0, 20 << 20
#: Rows from which on the limit counts; of fewer, opening and the look at 2,000 vectors outweigh the counting.
LARGE = 500_000

SCAN = "SELECT count(*), sum(length(embedding)) FROM memories"
AGENTS = 7
#: One row in so many has no vector yet, or one of another model's width.
MISSING, FOREIGN = 1000, 500

CENSUS = """
import resource, sys, time
from pathlib import Path
from cpersona_cli.store.cpersona.store import CPersonaStore
start = time.monotonic()
found = CPersonaStore(Path(sys.argv[1])).census(deadline=start + 600)
spent = time.monotonic() - start
rows = sum(group.rows for group in found.of("memories"))
assert rows == int(sys.argv[2]) and not found.unmeasured, (rows, found.unmeasured)
scale = 1 if sys.platform == "darwin" else 1024
print(f"[{spent}, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale}]")
"""


def server_tables(database: Path) -> None:
    """Let the real server make its tables, then end."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CPERSONA_", "EMBEDDING_"))}
    env |= {
        "CPERSONA_DB_PATH": str(database),
        "CPERSONA_EMBEDDING_MODE": "none",
        "CPERSONA_FTS_ENABLED": "false",
        "CPERSONA_UPDATE_CHECK": "false",
    }
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-m", "cpersona"]
    subprocess.run(command, env=env, cwd=database.parent, stdin=quiet, stdout=quiet, stderr=quiet, check=True)


def fill(database: Path, count: int, width: int, *, mixed: bool) -> None:
    """``count`` memories of a few agents; ``mixed``: some without a vector, some with one of half the width."""
    server_tables(database)
    source = random.Random(1)
    vectors = []
    for _ in range(500):
        numbers = [source.gauss(0, 1) for _ in range(width)]
        length = sum(number * number for number in numbers) ** 0.5
        vectors.append(struct.pack(f"<{width}f", *(number / length for number in numbers)))

    def rows() -> Iterator[tuple[object, ...]]:
        for number in range(count):
            vector: bytes | None = vectors[number % len(vectors)]
            if mixed and 0 < number < count - AGENTS:
                vector = None if number % MISSING == 0 else vector
                vector = vector[: 2 * width] if vector and number % FOREIGN == 1 else vector
            day = f"2025-{12 * number // count + 1:02d}-{number % 28 + 1:02d} 08:00:00"
            yield f"agent-{number % AGENTS}", f"Memory {number} " + "says a little more. " * (number % 9), vector, day

    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO memories(agent_id, content, timestamp, embedding, created_at)"
            " VALUES (?, ?, '2025-01-01T08:00:00+00:00', ?, ?)",
            rows(),
        )
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL")


def scan(database: Path) -> float:
    """Seconds of one plain scan."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True)) as connection:
        start = time.monotonic()
        connection.execute(SCAN).fetchone()
        return time.monotonic() - start


def census(database: Path, count: int) -> tuple[float, int]:
    """Seconds, and bytes of memory at most, of a census in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", CENSUS, str(database), str(count)], stdout=subprocess.PIPE, text=True, check=True
    )
    seconds, memory = json.loads(done.stdout)
    return float(seconds), int(memory)


def main() -> int:
    """Measure a store of one width and one that is mixed, and say which limits are exceeded."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    width = int(sys.argv[2]) if len(sys.argv) > 2 else 768
    over = 0
    print(f"{f'{count} rows, {width} wide':<32}{'scan s':>8}{'census s':>10}{'ratio':>7}{'MiB':>6}{'small':>7}")
    for mixed in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            small, large = Path(folder, "small.db"), Path(folder, "large.db")
            fill(small, 1_000, width, mixed=mixed)
            fill(large, count, width, mixed=mixed)
            turns = [(scan(large), *census(large, count)) for _ in range(3)]
            plain, spent = min(turn[0] for turn in turns), min(turn[1] for turn in turns)
            memory, least = min(turn[2] for turn in turns), census(small, 1_000)[1]
        late, fat = count >= LARGE and 4 * width < 4096 and spent > LIMIT * plain, memory - least > MEMORY
        over += late + fat
        name = "some of another width, some none" if mixed else "all alike"
        print(
            f"{name:<32}{plain:>8.2f}{spent:>10.2f}{spent / plain:>7.2f}{memory >> 20:>6}{least >> 20:>7}"
            + ("  OVER" if late or fat else "")
        )
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
