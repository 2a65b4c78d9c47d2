"""Resident memory of a whole `cpersona-cli reembed --yes`, for 1,000 rows and for a million.

Usage: python -m benchmarks.reembed_memory [ROWS]. The endpoint takes no time to speak of and its vectors are 16 wide,
so that the rows are what counts: about 1.5 GB of disk for a million, in the folder for temporary files. The run fails
when the large store takes 20 MB more than the small one, or when not everything was embedded.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from benchmarks.census import server_tables
from benchmarks.reembed_pipeline import endpoint

LIMIT = 20.0
SMALL, LARGE = 1_000, 1_000_000
WIDTH, FORMER = 16, 8


def rows(count: int) -> Iterator[tuple[object, ...]]:
    """Memories of several agents, notes and longer ones, each with a vector of another model."""
    for number in range(count):
        text = f"Note {number}: lamp {number * 7919 % 1009} is out. " + "It was told before. " * (number % 7)
        yield f"agent-{number % 7}", text, number.to_bytes(3, "little") * 10 + b"\0\x3f"


def fill(database: Path, count: int) -> None:
    """``count`` memories in a store that the server has made."""
    server_tables(database)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.executemany(
            "INSERT INTO memories(agent_id, content, timestamp, embedding) VALUES"
            " (?, ?, '2025-04-01T08:00:00+00:00', ?)",
            rows(count),
        )


def measured(count: int, folder: Path) -> tuple[float, float, float]:
    """Peak of resident memory in MB, seconds, and seconds of CPU of one run."""
    database = folder / "memory.db"
    fill(database, count)
    command = [str(Path(sys.executable).with_name("cpersona-cli")), "reembed", "--env", "--yes", "--json", "-q"]
    with endpoint(8, 0, 0, WIDTH) as port, (folder / "out").open("w+") as out:
        env: Mapping[str, str] = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "CPERSONA_DB_PATH": str(database),
            "CPERSONA_EMBEDDING_MODE": "http",
            "CPERSONA_EMBEDDING_URL": f"http://127.0.0.1:{port}/embed",
        }
        begun = time.perf_counter()
        with subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=out) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begun
        out.seek(0)
        found = json.load(out)
    if process.returncode:
        raise SystemExit(f"reembed ended with {process.returncode}: {found.get('summary')}")
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return usage.ru_maxrss / scale, seconds, usage.ru_utime + usage.ru_stime


def main() -> int:
    """Both sizes, once."""
    peaks = []
    for count in (SMALL, int(sys.argv[1]) if len(sys.argv) > 1 else LARGE):
        with tempfile.TemporaryDirectory() as folder:
            peak, seconds, cpu = measured(count, Path(folder).resolve())
        peaks.append(peak)
        print(f"{count:>9,} rows  {peak:6.1f} MB resident  {seconds:7.1f} s, {cpu:7.1f} s of CPU", flush=True)
    print(f"difference {peaks[1] - peaks[0]:+.1f} MB (at most {LIMIT:.0f})")
    return 1 if peaks[1] - peaks[0] > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
