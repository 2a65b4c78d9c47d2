"""Imports as they happen: signals, a kill, live servers, and what the server itself says of the rows."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.endpoints_small import Answer, Request, SmallEndpoint, serving
from support.exports import START, gpt, gpt_message, zipped
from support.stores import Server
from support.talks import ask
from support.warm import Warm

pytestmark = pytest.mark.server

MESSAGES = 90
NEW = "metadata LIKE '%\"backfill\"%'"


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    folder = tmp_path_factory.mktemp("warm")
    env = {"HOME": str(folder), "PATH": os.environ.get("PATH", os.defpath)}
    with Warm(folder, env) as process:
        yield process


@pytest.fixture
def export(tmp_path: Path) -> Path:
    talks = [
        gpt(
            *(
                gpt_message(
                    f"m{number}-{turn}", ("user", "assistant")[turn % 2], f"Remark {turn} of talk {number}, at length."
                )
                for turn in range(MESSAGES // 3)
            ),
            name=f"c{number}",
        )
        for number in range(3)
    ]
    return zipped(tmp_path / "export.zip", {"conversations.json": talks})


def command(export: Path, database: Path, *words: str) -> list[str]:
    return [
        "backfill", str(export), "--db", str(database), "--agent", "atlas", "--no-penalty", "--yes", "--json",
        "--progress", "none", *words,
    ]  # fmt: skip


def stored(database: Path) -> int:
    (count,) = ask(database, f"SELECT count(*) FROM memories WHERE {NEW}")
    return int(count)


class Gate:
    """Holds the first answer to texts of the import until it is opened."""

    def __init__(self, server: SmallEndpoint) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        server.behaviour.before = self._before

    def _before(self, request: Request, _number: int) -> Answer | None:
        if any(text.startswith("Remark") for text in request.texts):
            self.reached.set()
            self.open.wait(60)
        return None


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_what_is_stored_and_the_same_command_goes_on(
    store: Path, export: Path, warm: Warm, number: signal.Signals, code: int
) -> None:
    with serving(width=64) as server:
        gate = Gate(server)
        child = warm.start(*command(export, store, "--url", server.url()))
        assert gate.reached.wait(60)
        child.signal(number)
        gate.open.set()
        result = child.wait()
        found = result.json
        assert (result.code, found["exit_code"], found["verdict"]) == (code, code, "unknown")
        assert found["result"]["interrupted"] is True
        assert found["next_command"].startswith(f"cpersona-cli backfill {export} --db {store} --url ")
        assert stored(store) == MESSAGES
        again = warm.run(*command(export, store, "--url", server.url()))
    assert (again.code, again.json["memories"]["duplicate"]) == (0, MESSAGES)
    assert ask(store, "SELECT count(*) FROM memories WHERE id > 20 AND embedding IS NULL") == [0]


def test_a_second_signal_ends_it_at_once(store: Path, export: Path, warm: Warm) -> None:
    with serving(width=64) as server:
        gate = Gate(server)
        child = warm.start(*command(export, store, "--url", server.url()))
        assert gate.reached.wait(60)
        child.signal(signal.SIGINT)
        child.signal(signal.SIGTERM)
        result = child.wait()  # the answer is still held
        gate.open.set()
        assert result.code == 143
        assert result.json["next_command"].startswith("cpersona-cli backfill ")
        assert warm.run(*command(export, store, "--url", server.url())).code == 0
    assert stored(store) == MESSAGES


def test_a_kill_loses_and_doubles_nothing(store: Path, export: Path, warm: Warm) -> None:
    before = ask(store, "SELECT * FROM memories ORDER BY id")
    with serving(width=64) as server:
        gate = Gate(server)
        child = warm.start(*command(export, store, "--as", "both", "--url", server.url()))
        assert gate.reached.wait(60)
        child.signal(signal.SIGKILL)
        assert child.wait().code == -signal.SIGKILL
        gate.open.set()
        server.behaviour.before = lambda _request, _number: None
        result = warm.run(*command(export, store, "--as", "both", "--url", server.url()))
    assert result.code == 0
    assert (stored(store), ask(store, "SELECT count(*) FROM episodes")) == (MESSAGES, [4])
    assert ask(store, "PRAGMA quick_check") == ["ok"]
    undone = [warm.run("backfill", "undo", "--db", str(store), "--yes").code for _ in range(2)]
    assert undone[0] == 0
    assert ask(store, "SELECT * FROM memories ORDER BY id") == before


def test_a_live_server_goes_on_and_recalls_what_was_brought_in(store: Path, export: Path, warm: Warm) -> None:
    with serving(width=64) as server:
        env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": server.url()}
        with Server(store, env) as own:
            own.call("check_health", fix=True)
            gate = Gate(server)
            child = warm.start(*command(export, store, "--as", "both", "--url", server.url()))
            assert gate.reached.wait(60)
            gate.open.set()
            own.store("atlas", "Stored by the server while the import went on.", id="meanwhile")
            result = child.wait()
            assert result.code == 0
            assert str(own.process.pid) in " ".join(result.json["plan"]["holders"])
            found = own.call("recall", agent_id="atlas", query="Remark 7 of talk 2, at length.", limit=5)
            assert any(one["content"] == "Remark 7 of talk 2, at length." for one in found["messages"])
            found = own.call(
                "recall", agent_id="atlas", query="Stored by the server while the import went on.", limit=5
            )
            assert any("while the import went on" in one["content"] for one in found["messages"])


def test_the_server_finds_nothing_wrong_with_the_rows(tmp_path: Path, export: Path, warm: Warm) -> None:
    folder = tmp_path / "fresh"
    folder.mkdir()
    database = folder / "memory.db"
    with serving(width=64) as server:
        env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": server.url()}
        with Server(database, env) as own:
            before = {issue["type"] for issue in own.call("check_health")["issues"]}
        assert warm.run(*command(export, database, "--as", "both", "--url", server.url())).code == 0
        with Server(database, env) as own:
            after = {issue["type"]: issue for issue in own.call("check_health")["issues"]}
    # blocks, nodes and their index are for the server to build, in its own time, and a profile for the agent to write
    others = {"missing_nodes", "missing_blocks", "block_index_absent", "missing_profile"}
    wrong = {name: issue for name, issue in after.items() if name not in before | others}
    assert not wrong
    (oldest,) = ask(database, "SELECT min(timestamp) FROM memories")
    assert time.gmtime(START).tm_year == int(oldest[:4])
