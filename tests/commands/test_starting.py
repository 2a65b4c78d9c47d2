"""``doctor --start`` as a user runs it."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.documents import document
from support.endpoints_small import serving
from support.impostor import SECRET, alive, noted, settings
from support.stores import untouched, write_store

from cpersona_cli.commands import examination, starting
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.examination import Request, examine
from cpersona_cli.commands.preferences import Preferences, resolve
from cpersona_cli.commands.starting import Progress
from cpersona_cli.install.machine import Machine
from cpersona_cli.report.exits import Exit
from cpersona_cli.traps import gather as gathering
from cpersona_cli.traps.gather import Selection, Starting, gather
from cpersona_cli.traps.model import Facts

SCRIPT = Path(sys.executable).with_name("cpersona-cli")
PYTHON = {"command": sys.executable, "args": ["-m", "cpersona"]}


def preferences(tmp_path: Path, **flags: object) -> Preferences:
    config = tmp_path / "config.toml"
    config.touch()
    return resolve(flags, {}, config)


def register(home: Path, *entries: Mapping[str, object]) -> None:
    servers = {f"memory{number}": entry for number, entry in enumerate(entries)}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": servers}, indent=2))


def environment(home: Path) -> dict[str, str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("CPERSONA_", "EMBEDDING_", "XDG_"))}
    scratch = home / "scratch"
    scratch.mkdir(exist_ok=True)
    return {**kept, "HOME": str(home), "TMPDIR": str(scratch), "COLUMNS": "200"}


def doctor(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, "doctor", *words],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.server
def test_a_real_server_and_one_that_cannot_be_started_safely(tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.mkdir()
    database = write_store(user)
    home = tmp_path / "home"
    home.mkdir()
    image = ["run", "-i", "--rm", "-e", f"CPERSONA_DB_PATH={database}", "ghcr.io/cloto-dev/cpersona:2.6.14"]
    with serving() as server, untouched(user):
        env = {
            "CPERSONA_DB_PATH": str(database),
            "CPERSONA_EMBEDDING_MODE": "http",
            "CPERSONA_EMBEDDING_URL": server.url(),
        }
        register(home, {**PYTHON, "env": env}, {"command": "docker", "args": image})
        done = doctor(home, "--start", "--only", "start", "--json")
    found = document(done.stdout)
    states = {check["id"]: check["state"] for check in found["checks"] if check["group"] == "start"}
    assert states.pop("start.undecided") == "unknown"
    assert set(states.values()) == {"pass"}
    assert (done.returncode, found["findings"]) == (3, [])
    first, second = found["starts"]
    assert (first["stored"], first["embedded"], first["recalled"], first["advisory"]) == (True, True, True, None)
    assert first["replaced"] == ["CPERSONA_DB_PATH"]
    assert len(first["processes"]) == 2
    assert "runs in a container" in second["refusal"]
    assert second["processes"] == []
    assert list((home / "scratch").iterdir()) == []


def test_a_report_for_people(tmp_path: Path) -> None:
    env = settings(tmp_path, "banner unembedded")
    broken = settings(tmp_path, "die")
    refused = {"command": "docker", "args": ["exec", "-i", "memory", "cpersona"]}
    register(tmp_path, {**PYTHON, "env": env}, {**PYTHON, "env": broken}, refused)
    done = doctor(tmp_path, "--start", "--only", "start", "-v")
    assert done.returncode == 1
    for words in (
        "“\\x1b[1mWelcome to memory mmm",
        "FAULT    start.not-embedded",
        "its last words: “no model in reach”",
        "stored without a vector, found by a second process",
        "no answer (died)",
        "not started: it runs in a container",
        "verify     cpersona-cli doctor --start --only start.",
    ):
        assert words in done.stdout, done.stdout
    assert "\x1b" not in done.stdout
    assert SECRET not in done.stdout + done.stderr


def test_a_mode_without_vectors_says_so(tmp_path: Path) -> None:
    register(tmp_path, {**PYTHON, "env": settings(tmp_path, "unembedded advisory", CPERSONA_EMBEDDING_MODE="none")})
    done = doctor(tmp_path, "--start", "--only", "start")
    assert done.returncode == 0, done.stdout
    assert "stored without a vector, as configured (mode none)" in done.stdout


def test_without_checks_nothing_is_started(tmp_path: Path) -> None:
    register(tmp_path, {**PYTHON, "env": settings(tmp_path)})
    for words in (["--start", "--only", "names"], ["--start", "--skip", "start"], []):
        found = document(doctor(tmp_path, *words, "--json").stdout)
        assert found["starts"] == []
    assert noted(tmp_path, "pid") == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_what_was_started(tmp_path: Path, number: int, code: int) -> None:
    register(tmp_path, {**PYTHON, "env": settings(tmp_path, "hang deaf child")})
    with subprocess.Popen(
        [SCRIPT, "doctor", "--start", "--only", "start", "--json"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not noted(tmp_path, "cwd"):  # it is on its way
            assert process.poll() is None
            os.sched_yield()
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert document(out)["error"].endswith("nothing was changed")
    assert [alive(pid) for pid in noted(tmp_path, "pid")] == [False]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="does not go with --offline"):
        starting.check(preferences(tmp_path, offline=True))
    starting.check(preferences(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=r"needs the MCP client library.*cpersona-cli\[live\]"):
        starting.check(preferences(tmp_path))


def test_without_the_library_it_is_one_sentence(tmp_path: Path) -> None:
    hidden = "import importlib.util as u, sys; u.find_spec = lambda n: None; from cpersona_cli.app import main"
    code = f"{hidden}; sys.exit(main(['doctor', '--start']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("needs the MCP client library") == 1


def test_how_long_it_may_take(tmp_path: Path) -> None:
    assert starting.chosen(preferences(tmp_path)).seconds == starting.SECONDS
    assert starting.chosen(preferences(tmp_path, timeout=7)).seconds is None
    assert starting.chosen(preferences(tmp_path)).tell is not None
    assert starting.chosen(preferences(tmp_path), quiet=True).tell is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_at_a_terminal_tells_what_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    progress = Progress()
    for sentence in ("", "starting a", "starting a", "", "starting b"):
        progress.tell(sentence)
    assert screen.getvalue() == "cpersona-cli: starting a\ncpersona-cli: starting b\n"


def test_progress_elsewhere_is_a_line_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    progress = Progress()
    for second in range(0, 25, 3):
        now[0] = 100.0 + second
        progress.tell(f"starting {second}")
    assert screen.getvalue() == "cpersona-cli: starting 12\ncpersona-cli: starting 24\n"


def test_a_closed_stderr_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    Progress().tell("starting a")


# --- the facts


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return Machine(system="linux", home=tmp_path, cwd=tmp_path, root=tmp_path / "root", env={"PATH": "/usr/bin:/bin"})


def test_only_what_a_client_starts_is_started(tmp_path: Path, machine: Machine) -> None:
    remote = {"type": "http", "url": "http://127.0.0.1:8402/cpersona/mcp"}
    named = {**PYTHON, "env": settings(tmp_path)}
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": {"cpersona": named, "cpersona-far": remote}}))
    facts = gather(Selection(start=Starting(seconds=60.0)), machine)
    assert len(facts.registrations) == 2
    assert [start.registration.name for start in facts.starts] == ["cpersona"]


@pytest.mark.parametrize(("client", "told"), [("claude-code", "shell"), ("cursor", "desktop")])
def test_the_usual_environment_counts(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch, client: str, told: str
) -> None:
    env = {**settings(tmp_path), "CPERSONA_EMBEDDING_MODEL": "${env:MODEL}" if client == "cursor" else "${MODEL:-x}"}
    file = tmp_path / (".cursor/mcp.json" if client == "cursor" else ".claude.json")
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"mcpServers": {"cpersona": {**PYTHON, "env": env}}}))
    seen: list[str | None] = []

    def start_all(candidates: list[object], *_: object) -> tuple[list[object], list[object]]:
        seen.extend(c.environment.get("CPERSONA_EMBEDDING_MODEL") for c in candidates)  # type: ignore[attr-defined]
        return [], candidates

    monkeypatch.setattr("cpersona_cli.start.check.start_all", start_all)
    shell = Machine(system="linux", home=tmp_path, cwd=tmp_path, root=machine.root, env={**machine.env, "MODEL": "bge"})
    facts = gather(Selection(clients=(client,), start=Starting(seconds=5.0)), shell)
    assert len(facts.targets) == 2
    assert seen == ["bge" if told == "shell" else ""]
    assert [line.rpartition(": ")[2] for line in facts.unfinished] == ["its server was not started in time"]


def test_a_start_without_time_asks_for_more(tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "gather", _hurried)
    (tmp_path / ".claude.json").write_text(
        json.dumps({"mcpServers": {"cpersona": {**PYTHON, "env": settings(tmp_path, "hang")}}})
    )
    request = Request(
        selection=Selection(start=Starting()), preferences=preferences(tmp_path, timeout=9), only=("start",)
    )
    report = examine(request, machine)
    assert report.exit_code is Exit.NO_VERDICT
    assert report.next_command == "cpersona-cli doctor --start --timeout 360"


def _hurried(selection: Selection, machine: Machine, _deadline: float) -> Facts:
    return gathering.gather(selection, machine, 7.0)
