"""A rebuild killed at any moment: nothing is lost, nothing is mixed, and the next run goes on."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.endpoints_small import SmallEndpoint, serving
from support.rebuilds import Oracle, fill, sent, texts
from support.stores import copy_store
from support.warm import Warm

ROWS, BATCH, WIDTH = 48, 4, 96
#: Runs that the test kills; ``benchmarks/reembed_kills.py`` makes as many as it is told.
KILLS = 12


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    folder = tmp_path_factory.mktemp("warm")
    env = {"HOME": str(folder), "PATH": os.environ.get("PATH", os.defpath)}
    with Warm(folder, env) as process:
        yield process


@pytest.fixture
def vectored(store: Path) -> Path:
    """A store of 48 memories and an episode, all with the vectors of a model 64 wide."""
    return fill(store, rows=ROWS, width=64, label="old model")


def command(database: Path, server: SmallEndpoint) -> list[str]:
    return [
        "reembed", "--db", str(database), "--url", server.url(), "--yes", "--json", "--sample", "0",
        "--batch-size", str(BATCH), "--concurrency", "2", "--progress", "none",
    ]  # fmt: skip


def staged(database: Path) -> set[str]:
    """The texts whose rows have a new vector in the staging file, as another process finds it."""
    path = database.with_name(f"{database.name}.reembed")
    if not path.exists():
        return set()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        try:
            rows = connection.execute("SELECT kind, id FROM rows WHERE ref IS NOT NULL").fetchall()
        except sqlite3.OperationalError:
            return set()
    known = texts(database)
    return {known[kind, identifier] for kind, identifier in rows}


@pytest.mark.server
def test_a_run_killed_at_any_moment_leaves_all_old_or_all_new(vectored: Path, tmp_path: Path, warm: Warm) -> None:
    """One kill in each part of the time that a run takes."""
    chance = random.Random(0)
    seen = {"old": 0, "new": 0}
    with serving(width=WIDTH) as server:
        whole = _duration(copy_store(vectored, tmp_path / "measured"), server, warm)
        for number in range(KILLS):
            database = copy_store(vectored, tmp_path / f"run-{number}")
            delay = whole * chance.uniform(number, number + 1) / KILLS
            seen[killed_and_continued(database, server, warm, delay)] += 1
    assert sum(seen.values()) == KILLS
    assert seen["old"], "no run was killed before its end"


def _duration(database: Path, server: SmallEndpoint, warm: Warm) -> float:
    """Seconds of a run that nobody kills."""
    oracle = Oracle(database, WIDTH)
    begin = time.monotonic()
    result = warm.run(*command(database, server))
    assert (result.code, oracle.state()) == (0, "new"), result.out
    return time.monotonic() - begin


def killed_and_continued(database: Path, server: SmallEndpoint, warm: Warm, delay: float) -> str:
    """Kill a run after ``delay`` seconds, look, and let the next one end it; what the kill left."""
    oracle = Oracle(database, WIDTH)
    server.requests.clear()
    child = warm.start(*command(database, server))
    time.sleep(delay)  # the moment is what is tested
    child.signal(signal.SIGKILL)
    child.wait()
    left = oracle.state()
    answered, kept = set(sent(server.requests, texts(database).values())), staged(database)
    if left == "old":
        assert len(answered - kept) <= 3 * BATCH, "more than three batches of work were lost"
    server.requests.clear()
    result = warm.run(*command(database, server))
    assert (result.code, oracle.state()) == (0, "new"), result.out + result.err
    found = result.json
    assert (found["done"], found["held"], found["failed"], found["left"]) == (ROWS + 1, ROWS + 1, 0, 0)
    return left
