"""Wall time of `cpersona-cli dimension`, live side included, against the server's own `checkup` on the same store.

Usage: python -m benchmarks.dimension [ROWS]. The store holds ROWS memories (100,000) with vectors of the endpoint that
both ask, 768 wide as those of the reference server's model. Figures are seconds of one whole process, the best of
three; a first run of each fills the caches. The run fails when ours is not at least ten times faster.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from examples.scratch import scratch_home, variables

FACTOR = 10
WIDTH = 768
_PER_AGENT, _BATCH = 5000, 500


@contextmanager
def endpoint() -> Iterator[str]:
    """An endpoint in a process of its own that takes no time to speak of."""
    command = [sys.executable, "-m", "benchmarks.timed_endpoint", "2", "0", "0", str(WIDTH)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/embed"
        finally:
            process.terminate()


def ask(url: str, texts: Sequence[str]) -> list[bytes]:
    """The vectors of some texts, as the server would store them."""
    request = urllib.request.Request(url, json.dumps({"texts": texts}).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return [struct.pack(f"<{WIDTH}f", *vector) for vector in json.load(reply)["embeddings"]]


def rows(count: int, url: str) -> Iterator[tuple[object, ...]]:
    """Memories of several agents, one a minute, each with the vector that the endpoint makes of it."""
    for start in range(0, count, _BATCH):
        numbers = range(start, min(count, start + _BATCH))
        texts = [f"note {number}: the {number % 89}th lamp of street {number % 613} is out" for number in numbers]
        for number, text, vector in zip(numbers, texts, ask(url, texts), strict=True):
            moment = time.gmtime(1_735_689_600 + 60 * number)
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", moment)
            yield f"agent-{number // _PER_AGENT}", text, stamp, vector, time.strftime("%Y-%m-%d %H:%M:%S", moment)


def fill(database: Path, count: int, url: str) -> None:
    """``count`` memories in a store that the server has made."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.executemany(
            "INSERT INTO memories(agent_id, content, timestamp, embedding, created_at) VALUES (?, ?, ?, ?, ?)",
            rows(count, url),
        )


def wall(command: list[str], env: Mapping[str, str], cwd: Path) -> tuple[float, int]:
    """Seconds of one run, and its exit code."""
    start = time.perf_counter()
    done = subprocess.run(
        command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    return time.perf_counter() - start, done.returncode


def main() -> int:
    """Build the store once, then measure both in turns."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder, endpoint() as url:
        home = scratch_home(Path(folder).resolve(), url)
        database = home / "memory.db"
        fill(database, count, url)
        env = {"PATH": os.environ["PATH"], "HOME": str(home), **variables(home, url)}
        script = str(Path(sys.executable).with_name("cpersona-cli"))
        commands = {
            "cpersona-cli dimension": [script, "dimension", "--env", "--json"],
            "cpersona-cli dimension --deep": [script, "dimension", "--env", "--json", "--deep"],
            "python -m cpersona.checkup": [
                sys.executable, "-m", "cpersona.checkup", "--db", str(database), "--json",
            ],
        }  # fmt: skip
        best: dict[str, float] = {}
        print(f"{count:,} memories of {WIDTH} dimensions, {database.stat().st_size / 1e6:,.0f} MB")
        for turn in range(4):
            for name, command in commands.items():
                spent, code = wall(command, env, home)
                if "dimension" in name and code != 0:
                    print(f"{name} ended with {code}")
                    return 1
                if turn:
                    best[name] = min(spent, best.get(name, spent))
    for name, spent in best.items():
        print(f"{name:<32}{spent:>8.2f} s")
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    ratio = best["python -m cpersona.checkup"] / best["cpersona-cli dimension"]
    print(f"{ratio:.1f} times faster (at least {FACTOR}); the largest process took {memory:.0f} MB")
    return 0 if ratio >= FACTOR else 1


if __name__ == "__main__":
    sys.exit(main())
