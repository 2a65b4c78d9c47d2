"""A whole `cpersona-cli reembed --yes` against the server's own repair, on the same store and the same endpoint.

Usage: PYTHONPATH=tests python -m benchmarks.reembed_against_server [ROWS [SLOTS]]

The store holds ROWS memories (6,000: the server repairs 5,000 a run) with vectors of another model. The server's way is
the one its guide describes: every vector set to NULL by hand, then `check_health(fix=true)` over MCP until no row is
left without one. Only the two checks that fill vectors are run, and building blocks is off, so that nothing but vectors
is counted on the server's side; the statement, the start of the server and its stop are not counted either. On ours
everything is, from the start of the process to its end: plan, backup, new vectors, their verification, the comparison
of search, the switch and a look at the database afterwards.

The endpoint computes as an engine on one processor does: a time for each request and for each padded token, SLOTS
requests (1) at a time. It is measured on texts of one length, and on a mix of notes and whole conversations. The run
fails where ours is not faster, or not faster again on the mix.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from support.stores import Server, copy_store

from benchmarks.census import server_tables
from benchmarks.reembed_pipeline import LENGTHS, WORDS, endpoint, figures
from cpersona_cli.record import record

WIDTH, FORMER = 768, 384
#: Microseconds of a padded token and milliseconds of a request: as a small model takes on a desktop processor.
PER_TOKEN, PER_REQUEST = 40, 10
#: corpus -> words of a text
CORPORA: dict[str, Callable[[random.Random], int]] = {
    "one length": lambda _chance: 60,
    "mixed lengths": LENGTHS["85 % short, 15 % long"],
}
CHECKS = ("null_embedding", "null_episode_embedding")
MISSING = "SELECT count(*) FROM memories WHERE embedding IS NULL OR length(embedding) <> ?"


@record
class Measured:
    """Seconds of one way, and what the endpoint had to do for it."""

    wall: float
    busy: float
    requests: int
    padding: float


def texts(count: int, words: Callable[[random.Random], int]) -> Sequence[str]:
    """So many different texts in an order of their own, as talk is stored."""
    chance = random.Random(7)
    return [" ".join([f"n{number}", *chance.choices(WORDS, k=words(chance))]) for number in range(count)]


def fill(database: Path, contents: Sequence[str]) -> None:
    """A store of the real server with a vector of another model for every text."""
    server_tables(database)
    chance = random.Random(3)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executemany(
            "INSERT INTO memories(agent_id, content, timestamp, embedding) VALUES"
            " ('atlas', ?, '2025-04-01T08:00:00+00:00', ?)",
            (
                (content, bytes(4 * FORMER - 4) + b"\0\0\x80" + bytes([chance.choice((0x3F, 0xBF))]))
                for content in contents
            ),
        )


def missing(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        (count,) = connection.execute(MISSING, (4 * WIDTH,)).fetchone()
        return int(count)


def variables(database: Path, port: int) -> Mapping[str, str]:
    return {
        "CPERSONA_DB_PATH": str(database),
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": f"http://127.0.0.1:{port}/embed",
        "CPERSONA_UPDATE_CHECK": "false",
    }


def ours(database: Path, port: int) -> float:
    """Seconds of the whole command."""
    env = {"PATH": os.environ["PATH"], "HOME": str(database.parent), **variables(database, port)}
    script = str(Path(sys.executable).with_name("cpersona-cli"))
    begun = time.perf_counter()
    done = subprocess.run(
        [script, "reembed", "--env", "--yes", "--json", "--progress", "none"],
        env=env, cwd=database.parent, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - begun
    if done.returncode:
        raise SystemExit(f"reembed ended with {done.returncode}: {json.loads(done.stdout)['summary']}")
    return seconds


def theirs(database: Path, port: int) -> float:
    """Seconds of all rounds of the repair; vectors are NULL before."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE memories SET embedding = NULL, embedding_model = ''")
    switches = {
        "CPERSONA_BLOCK_BUILD_ENABLED": "false",
        "CPERSONA_BLOCK_RETRIEVAL_ENABLED": "false",
        "CPERSONA_BLOCK_INDEX": "false",
    }
    with Server(database, {**variables(database, port), **switches}) as server:
        begun, left = time.perf_counter(), missing(database)
        while left:
            server.call("check_health", fix=True, checks=list(CHECKS))
            before, left = left, missing(database)
            if left >= before:
                raise SystemExit(f"the server's repair came to a halt with {left} rows left")
        return time.perf_counter() - begun


def measured(way: Callable[[Path, int], float], store: Path, folder: Path, slots: int) -> Measured:
    """One way on a copy of the store, with an endpoint of its own."""
    database = copy_store(store, folder)
    with endpoint(slots, PER_TOKEN, PER_REQUEST, WIDTH) as port:
        wall = way(database, port)
        found = figures(port)
    if missing(database):
        raise SystemExit(f"{missing(database)} rows have no new vector")
    return Measured(wall, found["busy"] / slots, int(found["requests"]), found["padded"] / found["tokens"])


def main() -> int:
    """Both corpora, both ways."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
    slots = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    print(f"{count:,} memories to {WIDTH} dimensions; an endpoint that works on {slots} request(s) at a time")
    print(
        f"{'':<16}{'':<10}{'wall s':>8}{'rows/s':>8}{'busy s':>8}{'wall/busy':>11}{'requests':>10}{'padded/real':>13}"
    )
    ratios = []
    for name, words in CORPORA.items():
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place).resolve()
            (folder / "store").mkdir()
            store = folder / "store" / "memory.db"
            fill(store, texts(count, words))
            found = {
                "server": measured(theirs, store, folder / "theirs", slots),
                "reembed": measured(ours, store, folder / "ours", slots),
            }
        for way, one in found.items():
            print(
                f"{name:<16}{way:<10}{one.wall:>8.1f}{count / one.wall:>8.0f}{one.busy:>8.1f}"
                f"{one.wall / one.busy:>11.2f}{one.requests:>10}{one.padding:>13.2f}"
            )
        ratios.append(found["server"].wall / found["reembed"].wall)
        print(f"{name:<16}reembed is {ratios[-1]:.2f} times as fast", flush=True)
    return 0 if 1 < ratios[0] < ratios[1] else 1


if __name__ == "__main__":
    sys.exit(main())
