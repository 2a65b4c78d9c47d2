"""The stage: a scratch home that goes, children that end, and failures that are one sentence."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cpersona_cli.demo import stage as module
from cpersona_cli.demo.model import DemoError
from cpersona_cli.demo.stage import REGISTRATION, Stage, stage


@pytest.fixture(autouse=True)
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where scratch homes are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_the_home_is_private_and_goes_however_the_block_ends(parent: Path) -> None:
    def interrupted() -> None:
        with stage() as scratch:
            assert scratch.home.parent == parent.resolve()
            assert scratch.home.stat().st_mode & 0o077 == 0
            (scratch.home / "left").write_text("something")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(parent.iterdir()) == []


def test_it_is_kept_if_told(parent: Path) -> None:
    with stage(keep=True) as scratch:
        pass
    assert list(parent.resolve().iterdir()) == [scratch.home]


def test_nothing_disturbs_the_tidying(parent: Path) -> None:
    seen: list[list[Path]] = []

    @contextmanager
    def guard() -> Iterator[None]:
        seen.append(list(parent.iterdir()))
        yield
        seen.append(list(parent.iterdir()))

    with stage(guard=guard):
        pass
    assert [len(found) for found in seen] == [1, 0]


def test_a_place_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    with pytest.raises(DemoError, match=r"no scratch home can be made in .*absent: No such file"), stage():
        pass


def test_without_a_choice_it_lies_on_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    with stage() as scratch:
        assert scratch.home.is_dir()
        assert scratch.home.is_relative_to("/var/tmp") == os.access("/var/tmp", os.W_OK | os.X_OK)
    assert not scratch.home.exists()


def test_children_get_the_home_and_none_of_the_users_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPERSONA_DB_PATH", "/home/you/memory.db")
    monkeypatch.setenv("EMBEDDING_HTTP_URL", "http://127.0.0.1:1/embed")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/home/you/.config")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with stage() as scratch:
        environment = scratch.environment
        assert environment["HOME"] == str(scratch.home)
        assert not any("you" in value or ":1" in value for value in environment.values())
        assert environment["PATH"] == os.environ["PATH"]


def test_a_command_is_run_as_a_person_would() -> None:
    with stage(shown={"COLUMNS": "70", "CPERSONA_CLI_COLOR": "always"}) as scratch:
        explained = scratch.run(["traps", "explain", "names.url-missing"])
        assert (explained.code, explained.document["schema"]) == (0, "cpersona-cli/traps/1")
        assert "\x1b[1m" in explained.said
        assert max(map(len, explained.said.splitlines())) < 80
        refused = scratch.run(["traps", "explain", "names.nothing-such"])
        assert (refused.code, refused.document["exit_code"]) == (2, 2)
        assert "names.nothing-such" in refused.said, "what it says on stderr is heard too"
        left = sorted(file.name for file in scratch.home.iterdir())
        assert left == ["step-01-traps.json", "step-02-traps.json"]


def test_a_document_that_is_none_is_empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with stage() as scratch:
        (scratch.home / "step-01-doctor.json").write_text("[]")
        monkeypatch.setattr(sys, "executable", _script(tmp_path, "exit 7"))
        done = scratch.run(["doctor"])
    assert (done.code, done.document) == (7, {})


def test_a_command_that_does_not_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "COMMAND", 0.1)
    with stage() as scratch:
        monkeypatch.setattr(sys, "executable", _script(tmp_path, "exec sleep 600"))
        with pytest.raises(DemoError, match="cpersona-cli doctor did not end within 0 seconds"):
            scratch.run(["doctor"])


def test_what_cannot_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with stage() as scratch:
        scratch.port = 1
        scratch.register()
        monkeypatch.setattr(sys, "executable", str(tmp_path / "absent"))
        with pytest.raises(DemoError, match="cpersona-cli doctor could not be started: No such file"):
            scratch.run(["doctor"])


def test_a_model_is_served_at_one_address_until_it_is_stopped() -> None:
    with stage() as scratch:
        scratch.start_model("wordllama-64")
        port = scratch.port
        assert _listens(port)
        scratch.start_model("wordllama-64")
        assert (scratch.port, _listens(port)) == (port, True)
        scratch.stop_model()
        scratch.stop_model()
        assert not _listens(port)
        scratch.start_model("wordllama-64")
    assert not _listens(port)


def test_a_model_that_does_not_start_says_why() -> None:
    with stage() as scratch:
        with pytest.raises(DemoError, match="the embedding model none-such did not start: KeyError: 'none-such'"):
            scratch.start_model("none-such")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            scratch.port = taken.getsockname()[1]
            with pytest.raises(DemoError, match=r"wordllama-64 did not start: OSError: .*[Aa]ddress already in use"):
                scratch.start_model("wordllama-64")


@pytest.mark.server
def test_the_server_is_that_of_the_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    with stage() as scratch:
        _register(scratch, CPERSONA_EMBEDDING_MODE="none")
        with scratch.server() as server:
            stored = server.call("store", agent_id="demo", message={"content": "A text."})
            assert stored["result"] == "stored"
            with pytest.raises(DemoError, match="the server refused delete_memory: Memory 99 not found"):
                server.call("delete_memory", agent_id="demo", memory_id=99)
            with pytest.raises(DemoError, match="the server refused store: empty content"):
                server.call("store", agent_id="demo", message={"content": ""})
            with pytest.raises(DemoError, match="the server refused no_such_tool: Unknown tool"):
                server.call("no_such_tool")
            monkeypatch.setattr(module, "ANSWER", 0.0)
            with pytest.raises(DemoError, match="the server gave no answer: no answer to tools/call within 0 seconds"):
                server.call("store", agent_id="demo", message={"content": "A text."})
        assert scratch.database.is_file()


@pytest.mark.server
def test_a_server_that_does_not_start_says_why() -> None:
    with stage() as scratch:
        _register(scratch, CPERSONA_EMBEDDING_MODE="no-such-mode")
        with pytest.raises(DemoError, match=r"the server did not start: it ended before .*: "), scratch.server():
            pass


def _register(scratch: Stage, **more: str) -> None:
    scratch.register(**more)
    entry = json.loads((scratch.home / REGISTRATION).read_text())["mcpServers"]["cpersona"]
    assert entry["env"]["CPERSONA_DB_PATH"] == str(scratch.database)
    assert more.items() <= entry["env"].items()


def _script(folder: Path, line: str) -> str:
    file = folder / "program"
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)
    return str(file)


def _listens(port: int) -> bool:
    with socket.socket() as there:
        return there.connect_ex(("127.0.0.1", port)) == 0
