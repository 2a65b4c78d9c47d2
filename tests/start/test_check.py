"""Starts from end to end: a stand-in for what a real server cannot be made to do, and the real servers."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.endpoints_small import serving
from support.impostor import SECRET, alive, candidate, here, noted, settings
from support.stores import untouched, write_store

from cpersona_cli.install.machine import Machine
from cpersona_cli.start import check, process
from cpersona_cli.start.check import Work, start_all
from cpersona_cli.start.model import Failure, Start

SECONDS = 60.0
Started = Callable[..., Start]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    (tmp_path / "home").mkdir()
    return here(tmp_path / "home")


@pytest.fixture
def start(machine: Machine, tmp_path: Path) -> Started:
    """Start the stand-in; whatever happens, no process, no scratch folder and no database of the user is left."""

    def started(how: str = "", *, seconds: float = SECONDS, grace: float = 2.0, **more: object) -> Start:
        env = settings(tmp_path, how)
        work = Work(end=time.monotonic() + seconds, grace=grace)
        (found,), missed = start_all([candidate(machine, env, **more)], machine, work)  # type: ignore[arg-type]
        assert missed == []
        assert [pid for pid in noted(tmp_path, "pid") if alive(pid)] == []
        assert list((tmp_path / "scratch").iterdir()) == []
        assert not (tmp_path / "real").exists()
        return found

    return started


def test_a_good_server(start: Started, tmp_path: Path, machine: Machine) -> None:
    found = start()
    assert found.first is not None
    assert found.second is not None
    assert found.recalled is not None
    assert found.stored is not None
    assert (found.refusal, found.late, found.astray) == ("", "", "")
    assert (found.stored.embedded, found.stored.problem) == (True, "")
    assert (found.recalled.found, found.recalled.advisory, found.recalled.problem) == (True, None, "")
    for run in found.runs:
        assert run.ready is not None
        assert run.ended is not None
        assert (run.failure, run.lines, run.left, run.code) == (None, 0, (), 0)
    assert found.first.tools == ("store", "recall", "check_health")
    assert found.replaced == ("CPERSONA_DB_PATH",)
    assert len(set(noted(tmp_path, "pid"))) == 2
    assert noted(tmp_path, "cwd") == [str(machine.cwd)] * 2
    assert len(noted(tmp_path, "eof")) == 2
    assert SECRET not in repr(found.runs)
    assert "characters removed" in found.first.said[0]


@pytest.mark.parametrize(
    ("how", "failure", "says"),
    [
        ("die", Failure.DIED, "it ended before it answered initialize"),
        ("glued", Failure.SILENT, "no answer to initialize"),
        ("hang", Failure.SILENT, "no answer to initialize"),
        ("flood", Failure.FLOODED, "lines on stdout were no messages"),
        ("error", Failure.REFUSED, "it answered initialize with an error: out of order"),
        ("old", Failure.UNUSABLE, "it speaks MCP 1999-01-01"),
        ("shapeless", Failure.UNUSABLE, 'the handshake is nothing that a client understands: {"hello": 1}'),
    ],
)
def test_no_handshake(start: Started, how: str, failure: Failure, says: str) -> None:
    found = start(how, client="codex", fields={"startup_timeout_sec": 1.0} if failure is Failure.SILENT else {})
    assert found.first is not None
    assert (found.first.ready, found.second, found.stored, found.late) == (None, None, None, "")
    assert found.first.failure is failure
    assert says in found.first.detail
    if how == "die":
        assert (found.first.said[-1], found.first.code) == ("no model in reach", 1)
    if failure is Failure.SILENT:
        assert 2.0 <= found.first.waited < 20.0, "twice the client's own limit"


def test_a_command_that_cannot_be_started(start: Started, tmp_path: Path) -> None:
    found = start("", cwd=str(tmp_path / "gone"))
    assert found.first is not None
    assert found.first.failure is Failure.ABSENT
    assert "No such file or directory" in found.first.detail


def test_a_program_that_is_not_there(machine: Machine, tmp_path: Path) -> None:
    entry = candidate(machine, settings(tmp_path), "/nowhere/cpersona")
    ((found,), _) = start_all([entry], machine, Work(end=time.monotonic() + 9))
    assert found.first is not None
    assert (found.first.failure, found.first.detail) == (Failure.ABSENT, "/nowhere/cpersona does not exist")


@pytest.mark.parametrize(
    ("how", "before", "lines", "text"),
    [
        ("banner", True, 1, "\\x1b[1mWelcome to memory mmm"),
        ("blank", True, 1, ""),
        ("chatter", True, 3, '{"level": "info", "message": "a request"}'),
        ("glued", True, 1, 'Loading...{"jsonrpc": "2.0"'),
    ],
)
def test_what_is_no_message_on_stdout(start: Started, how: str, before: bool, lines: int, text: str) -> None:
    found = start(how, client="codex", fields={"startup_timeout_sec": 1.0})
    assert found.first is not None
    first = found.first.noise[0]
    assert (first.before, found.first.lines >= lines) == (before, True)
    assert first.text.startswith(text)
    assert len(first.text) <= 80
    assert "\x1b" not in first.text
    assert (found.recalled is None) == (how == "glued"), "a client that looks past it goes on"


def test_requests_of_the_server_are_answered(start: Started, tmp_path: Path) -> None:
    found = start("ask")
    assert found.recalled is not None
    assert found.recalled.found
    assert noted(tmp_path, "answers")[0] == "[['id', 'jsonrpc', 'result'], ['error', 'id', 'jsonrpc']]"


def test_tools(start: Started) -> None:
    assert [start(how).runs[0].tools for how in ("toolless", "listless")] == [("echo",), None]


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("reject", "store answered “content is forbidden here”"),
        ("failing", "store failed: {"),
        ("prose", "store answered not a document"),
    ],
)
def test_a_memory_that_is_not_kept(start: Started, how: str, problem: str) -> None:
    found = start(how)
    assert found.stored is not None
    assert found.stored.problem.startswith(problem)
    assert found.second is None


def test_what_the_second_process_finds(start: Started) -> None:
    kept = {how: start(how) for how in ("unembedded", "forget", "coy", "advisory", "die-later")}
    assert kept["unembedded"].stored is not None
    assert kept["unembedded"].stored.embedded is False
    recalled = {how: found.recalled for how, found in kept.items()}
    for how, found, listed in (("unembedded", True, True), ("forget", False, False), ("coy", False, True)):
        one = recalled[how]
        assert one is not None
        assert (one.found, one.listed) == (found, listed), how
    advised = recalled["advisory"]
    assert advised is not None
    assert advised.advisory == {"severity": "fault", "reason": "backend unreachable", "evidence": "2 failures"}
    second = kept["die-later"].second
    assert recalled["die-later"] is None
    assert second is not None
    assert (second.failure, second.code) == (Failure.DIED, 7)


def test_a_server_that_opens_another_database_is_given_no_memory(start: Started) -> None:
    found = start("astray")
    assert (found.stored, found.second) == (None, None)
    assert "did not open the database it was given" in found.astray


@pytest.mark.parametrize("how", ["stay", "deaf", "child", "child apart", "child stay"])
def test_nothing_is_left_behind(start: Started, tmp_path: Path, how: str) -> None:
    found = start(how, grace=0.5)
    stays = "child" not in how or "stay" in how
    assert found.recalled is not None
    assert found.recalled.found
    for run in found.runs:
        assert (run.ended is None) == stays
        assert bool(run.left) == ("child" in how)
    assert len(noted(tmp_path, "pid")) == (4 if "child" in how else 2), "each was seen, and none is alive"


def test_an_answer_that_never_comes(start: Started) -> None:
    found = start("mute", seconds=4.0, grace=0.5)
    assert "no answer to tools/call" in found.late


def test_too_little_time_is_no_verdict(start: Started) -> None:
    found = start("hang", seconds=2.0, grace=0.5)
    assert re.fullmatch(r"it did not answer within the 1\.\d+ seconds there were", found.late)


def test_time_that_ends_with_some_not_started(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at a time; whoever waits when the time is over is named, and whatever runs is ended."""
    monkeypatch.setattr(check, "SLACK", 0.1)
    monkeypatch.setattr(check._Attempt, "_patience", lambda _self: 60.0)
    entries = [candidate(machine, settings(tmp_path, "hang")) for _ in range(3)]
    heard: list[str] = []
    starts, missed = start_all(entries, machine, Work(end=time.monotonic() + 2.0, tell=heard.append))
    assert starts == []
    assert missed == entries
    assert len(noted(tmp_path, "pid")) == check.AT_ONCE
    assert not any(alive(pid) for pid in noted(tmp_path, "pid"))
    assert "starting the server of Claude Code (user); starting the server of Claude Code (user)" in heard


def test_an_interruption_leaves_nothing(machine: Machine, tmp_path: Path) -> None:
    def interrupt(_sentence: str) -> None:
        if noted(tmp_path, "pid"):
            raise KeyboardInterrupt

    entry = candidate(machine, settings(tmp_path, "hang"))
    with pytest.raises(KeyboardInterrupt):
        start_all([entry], machine, Work(end=time.monotonic() + SECONDS, tell=interrupt))
    assert [alive(pid) for pid in noted(tmp_path, "pid")] == [False]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_nothing_is_started_after_the_end(tmp_path: Path) -> None:
    family = process.Family()
    family.close()
    with pytest.raises(process.ClosedError):
        family.start([sys.executable], os.environ, tmp_path)


def test_a_banner_of_a_wrapper(machine: Machine, tmp_path: Path) -> None:
    script = tmp_path / "memory.sh"
    script.write_text(f'#!/bin/sh\necho "Starting memory"\nexec {sys.executable} -m cpersona "$@"\n')
    script.chmod(0o755)
    entry = candidate(machine, settings(tmp_path), str(script))
    ((found,), _) = start_all([entry], machine, Work(end=time.monotonic() + SECONDS))
    assert found.first is not None
    assert (found.refusal, found.first.noise[0].text, found.first.noise[0].before) == ("", "Starting memory", True)


# --- the real servers

OLD = os.environ.get("CPERSONA_CLI_TEST_OLD_SERVER", "")
_OLDER = pytest.mark.skipif(not OLD, reason="no older server is installed")
SERVERS = [
    pytest.param(sys.executable, "module", id="newest, module"),
    pytest.param(sys.executable, "shell", id="newest, shell"),
    pytest.param(OLD, "script", id="2.5.12, script", marks=_OLDER),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of the user's, with sidecar files beside it."""
    return write_store(tmp_path_factory.mktemp("user"))


@pytest.mark.server
@pytest.mark.parametrize(("python", "through"), SERVERS)
def test_a_real_server(machine: Machine, python: str, through: str, store: Path) -> None:
    words = {
        "module": (python, "-m", "cpersona"),
        "script": (python, str(Path(python).with_name("cpersona"))),
        "shell": ("sh", "-c", f"echo hello >&2; exec '{python}' -m cpersona"),
    }[through]
    with serving() as server, untouched(store.parent):
        env = {
            "CPERSONA_DB_PATH": str(store),
            "CPERSONA_EMBEDDING_MODE": "http",
            "CPERSONA_EMBEDDING_URL": server.url(),
            "CPERSONA_VECTOR_SEARCH_MODE": "remote",
        }
        ((found,), _) = start_all([candidate(machine, env, *words)], machine, Work(end=time.monotonic() + 2 * SECONDS))
        asked = {request.path for request in server.calls}
    assert (found.refusal, found.late, found.astray) == ("", "", "")
    assert found.stored is not None
    assert found.recalled is not None
    assert found.stored.embedded is True
    assert (found.recalled.found, found.recalled.advisory) == (True, None)
    assert [run.lines for run in found.runs] == [0, 0]
    assert all(run.ended is not None and not run.left for run in found.runs)
    assert asked <= {"/embed", "/count_tokens"}, "the remote index is left alone"


@pytest.mark.server
@pytest.mark.parametrize("way", ["wrapper", "login shell", "env", "docker"])
def test_a_database_that_cannot_be_replaced_is_left_alone(
    machine: Machine, tmp_path: Path, store: Path, way: str
) -> None:
    """What names the real database nearer to the server than we can get."""
    script = tmp_path / "memory.sh"
    script.write_text(f"#!/bin/sh\nexport CPERSONA_DB_PATH='{store}'\nexec {sys.executable} -m cpersona\n")
    script.chmod(0o755)
    (machine.home / ".profile").write_text(f"export CPERSONA_DB_PATH='{store}'\n")
    words = {
        "wrapper": (str(script),),
        "login shell": ("sh", "-lc", f"exec {sys.executable} -m cpersona"),
        "env": ("env", f"CPERSONA_DB_PATH={store}", sys.executable, "-m", "cpersona"),
        "docker": ("docker", "run", "-i", "-e", f"CPERSONA_DB_PATH={store}", "ghcr.io/cloto-dev/cpersona:2.6.14"),
    }[way]
    with untouched(store.parent):
        ((found,), _) = start_all([candidate(machine, {}, *words)], machine, Work(end=time.monotonic() + SECONDS))
    assert found.refusal
    assert found.runs == ()


@pytest.mark.server
def test_a_real_server_without_vectors(machine: Machine, store: Path) -> None:
    with untouched(store.parent):
        entry = candidate(machine, {"CPERSONA_DB_PATH": str(store)})
        ((found,), _) = start_all([entry], machine, Work(end=time.monotonic() + 2 * SECONDS))
    assert found.stored is not None
    assert found.recalled is not None
    assert (found.embeds, found.stored.embedded, found.recalled.found) == (False, False, True)
    assert found.recalled.advisory is not None
    assert found.recalled.advisory["severity"] == "hint"


@pytest.mark.server
def test_a_real_server_whose_endpoint_is_dead(machine: Machine, store: Path) -> None:
    env = {
        "CPERSONA_DB_PATH": str(store),
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:9/embed",
    }
    with untouched(store.parent):
        ((found,), _) = start_all([candidate(machine, env)], machine, Work(end=time.monotonic() + 2 * SECONDS))
    assert found.stored is not None
    assert found.stored.embedded is False
    assert found.first is not None
    assert any("Embedding request failed" in line for line in found.first.said)


def test_a_folder_that_cannot_be_made_is_named_and_hides_no_other(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Path.mkdir

    def mkdir(self: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if self.name == "0" and self.parent.name.startswith("cpersona-cli-"):
            raise OSError(28, "No space left on device")
        made(self, mode, parents, exist_ok)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    entries = [candidate(machine, settings(tmp_path, "die")) for _ in range(2)]
    (first, second), missed = start_all(entries, machine, Work(end=time.monotonic() + SECONDS))
    assert first.refusal == "nothing could be started: OSError"
    assert second.refusal == ""
    assert missed == []


def test_a_scratch_folder_gone_at_the_end_is_no_error(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(check, "_one", gone)
    monkeypatch.setattr(process.Family, "closed", property(lambda _self: True))
    entries = [candidate(machine, settings(tmp_path, "die"))]
    assert start_all(entries, machine, Work(end=time.monotonic() + SECONDS)) == ([], entries)
