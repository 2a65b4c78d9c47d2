"""Rebuilds as they happen: signals, other terminals, live servers, real models."""

from __future__ import annotations

import os
import signal
import sqlite3
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.endpoints_small import Answer, Request, SmallEndpoint, embed, serving
from support.real_endpoints import Running
from support.rebuilds import Oracle, fill, sent, texts, vectors
from support.stores import SENTENCES, Server
from support.warm import Warm

WIDTH, BATCH = 96, 4
OLD_SERVERS = {"2.5.12": "CPERSONA_CLI_TEST_OLD_SERVER", "2.4.41": "CPERSONA_CLI_TEST_OLDEST_SERVER"}


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    folder = tmp_path_factory.mktemp("warm")
    env = {"HOME": str(folder), "PATH": os.environ.get("PATH", os.defpath)}
    with Warm(folder, env) as process:
        yield process


@pytest.fixture
def db(store: Path) -> Path:
    return fill(store, rows=39, width=64)


def command(database: Path, url: str, *words: str) -> list[str]:
    return [
        "reembed", "--db", str(database), "--url", url, "--yes", "--json", "--sample", "0",
        "--batch-size", str(BATCH), "--concurrency", "1", "--progress", "none", *words,
    ]  # fmt: skip


class Gate:
    """Holds the answer to the fifth request with stored texts until it is opened."""

    def __init__(self, server: SmallEndpoint, stored: Sequence[str]) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        self._server, self._stored, self._held = server, stored, 0
        server.behaviour.before = self._before

    def _before(self, request: Request, _number: int) -> Answer | None:
        if sent([request], self._stored):
            self._held += 1
            if self._held == 5:
                self.reached.set()
                self.open.wait(60)
        return None


# --- signals


@pytest.mark.server
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_at_the_next_good_moment(db: Path, warm: Warm, number: signal.Signals, code: int) -> None:
    oracle, stored = Oracle(db, WIDTH), [*texts(db).values()]
    with serving(width=WIDTH) as server:
        gate = Gate(server, stored)
        child = warm.start(*command(db, server.url()))
        assert gate.reached.wait(60)
        child.signal(number)
        gate.open.set()
        result = child.wait()
        found = result.json
        assert (result.code, found["exit_code"], found["verdict"], found["reason"]) == (
            code, code, "unknown", "interrupted",
        )  # fmt: skip
        assert oracle.state() == "old"
        assert 0 < found["done"] < 40
        assert found["next_command"].startswith(f"cpersona-cli reembed --db {db} --url ")
        sent_before = len(set(sent(server.requests, stored)))
        assert found["done"] == sent_before, "what was on its way is kept"
        server.requests.clear()
        result = warm.run(*command(db, server.url()))
        assert (result.code, oracle.state(), result.json["done_by_earlier_runs"]) == (0, "new", sent_before)


@pytest.mark.server
def test_a_second_signal_stops_at_once(db: Path, warm: Warm) -> None:
    oracle, stored = Oracle(db, WIDTH), [*texts(db).values()]
    with serving(width=WIDTH) as server:
        gate = Gate(server, stored)
        child = warm.start(*command(db, server.url()))
        assert gate.reached.wait(60)
        child.signal(signal.SIGINT)
        child.signal(signal.SIGTERM)
        result = child.wait()  # the answer is still held
        gate.open.set()
        assert (result.code, result.json["exit_code"], oracle.state()) == (143, 143, "old")
        assert result.json["next_command"].startswith("cpersona-cli reembed --db ")
        assert warm.run(*command(db, server.url())).code == 0
        assert oracle.state() == "new"


# --- from another terminal


@pytest.mark.server
def test_status_while_it_runs_and_two_runs_at_once(db: Path, warm: Warm) -> None:
    oracle, stored = Oracle(db, WIDTH), [*texts(db).values()]
    with serving(width=WIDTH) as server:
        gate = Gate(server, stored)
        child = warm.start(*command(db, server.url()))
        assert gate.reached.wait(60)
        job = warm.run("reembed", "status", "--db", str(db), "--json").json["job"]
        assert (job["state"], job["running_pid"], job["planned"]) == ("staging", child.pid, 40)
        assert 0 < job["staged"] < 40
        second = warm.run(*command(db, server.url()))
        assert second.code == 1
        assert f"process {child.pid}" in "".join(second.json["refusals"])
        gate.open.set()
        assert child.wait().code == 0
    assert oracle.state() == "new"
    job = warm.run("reembed", "status", "--db", str(db), "--json").json["job"]
    assert (job["state"], job["running_pid"], job["undo_possible"]) == ("cut", None, True)


# --- a live server


def _server(database: Path, url: str, python: str | None = None) -> Server:
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": url, "CPERSONA_FTS_ENABLED": "false"}
    return Server(database, env, python) if python else Server(database, env)


@pytest.mark.server
def test_what_a_live_server_writes_meanwhile_is_found_and_repaired(tmp_path: Path, warm: Warm) -> None:
    """The same width, no labels: nothing but the job's own record tells which vectors are whose."""
    folder = tmp_path / "live"
    folder.mkdir()
    database = folder / "memory.db"

    def mirrored(_request: Request, made: list[list[float]]) -> list[Any]:
        return [vector[::-1] for vector in made]

    with serving(width=64) as old, serving(width=64, after=mirrored) as new:
        with _server(database, old.url()) as server:
            for number, text in enumerate(SENTENCES):
                server.store("atlas", text, id=f"n{number}", timestamp="2025-03-01T09:30:00+00:00")
            run = warm.run(*command(database, new.url(), "--live"))
            assert run.code == 0, run.out
            server.store("atlas", "Stored by a server that still calls the former model.", id="late")
            server.call("update_memory", agent_id="atlas", memory_id=2, content="Mira was asked again.")
        wrong = [row for row, held in vectors(database).items() if held[0] != _mirror(texts(database)[row])]
        assert len(wrong) == 2
        with _server(database, new.url()) as server:
            finished = warm.run(
                "reembed", "finish", "--db", str(database), "--url", new.url(), "--json", "--progress", "none"
            )
            assert (finished.code, finished.json["done"]) == (0, 2), finished.out
            found = server.call("recall", agent_id="atlas", query="the former model", limit=3)
            assert "Stored by a server that still calls" in str(found)
    assert all(held[0] == _mirror(texts(database)[row]) for row, held in vectors(database).items())


def _mirror(text: str) -> bytes:
    return struct.pack("<64f", *embed(text, 64)[::-1])


# --- real models, real servers


def _python(version: str) -> str | None:
    if version == "2.6.14":
        return None
    named = os.environ.get(OLD_SERVERS[version], "")
    if not named:
        pytest.skip(f"{OLD_SERVERS[version]} names no interpreter with server {version}; `make test` sets it")
    return named


@pytest.mark.server
@pytest.mark.parametrize("version", ["2.6.14", "2.5.12", "2.4.41"])
def test_from_one_real_model_to_another_and_back(
    tmp_path: Path, warm: Warm, minilm: Running, supercat: Running, version: str
) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    database = folder / "memory.db"
    python = _python(version)
    with _server(database, minilm.url, python) as server:
        for number, text in enumerate(SENTENCES):
            server.store("atlas", text, id=f"n{number}", timestamp="2025-03-01T09:30:00+00:00")
        before = _recalled(server)
        assert len(before) == 3
    written = vectors(database)
    assert _widths(database) == {384}
    there = warm.run("reembed", "--db", str(database), "--url", supercat.url, "--yes", "--json")
    assert there.code == 0, there.out
    assert (there.json["done"], there.json["held"], _widths(database)) == (10, 10, {256})
    with _server(database, supercat.url, python) as server:
        assert _recalled(server) == before
    assert warm.run("reembed", "undo", "--db", str(database), "--yes").code == 0
    assert vectors(database) == written, "every vector and label as before, bit for bit"
    if version != "2.6.14":
        return  # the way back by the models is the same
    assert warm.run("reembed", "--db", str(database), "--url", supercat.url, "--yes").code == 0
    middle = vectors(database)
    back = warm.run("reembed", "--db", str(database), "--url", minilm.url, "--yes", "--json")
    assert (back.code, _widths(database)) == (0, {384}), back.out
    assert {row: held[1] for row, held in vectors(database).items()} == {row: held[1] for row, held in written.items()}
    with _server(database, minilm.url, python) as server:
        assert _recalled(server) == before
    assert warm.run("reembed", "undo", "--db", str(database), "--yes").code == 0
    assert vectors(database) == middle


def _recalled(server: Server) -> set[str]:
    """What is found by meaning alone: these servers keep no text index."""
    found = set()
    for question in ("hazelnuts allergy of Jonas", "nightly backups of the ledger", "reading the release checklist"):
        for message in server.call("recall", agent_id="atlas", query=question, limit=1)["messages"]:
            found.add(message["content"])
    return found


def _widths(database: Path) -> set[int]:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        found = connection.execute("SELECT DISTINCT length(embedding) / 4 FROM memories").fetchall()
    connection.close()
    return {row[0] for row in found}
