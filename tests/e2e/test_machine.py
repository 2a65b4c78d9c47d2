"""A whole machine: six clients, servers of two releases, the stores they wrote, and the report on all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.stores import snapshot, write_store

pytestmark = pytest.mark.server

ENDPOINT = "http://127.0.0.1:8401/embed"


@pytest.fixture(scope="session")
def old_server() -> str:
    """The interpreter of an environment that holds a server of the release line before (see the Makefile)."""
    python = os.environ.get("CPERSONA_CLI_TEST_OLD_SERVER", "")
    if not python:
        pytest.skip("CPERSONA_CLI_TEST_OLD_SERVER names no interpreter; `make test` sets it")
    return python


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, old_server: str) -> Path:
    """A home with six clients and two stores, one of each release."""
    home = tmp_path_factory.mktemp("home").resolve()
    new, old = home / "new", home / "old"
    for folder in (new, old):
        folder.mkdir(mode=0o700)
    write_store(new)
    write_store(old, old_server)
    (home / "link").symlink_to(new)
    script = str(Path(sys.executable).with_name("python"))
    old_script = str(Path(old_server).with_name("cpersona"))

    def document(path: str, text: str) -> None:
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)

    def settings(database: object, **more: str) -> dict[str, str]:
        return {"CPERSONA_DB_PATH": str(database), "CPERSONA_EMBEDDING_MODE": "http", **more}

    def servers(command: str, args: list[str], env: Mapping[str, str], key: str = "mcpServers") -> str:
        entry = {"command": command, "args": args, "env": env}
        return json.dumps({key: {"memory": entry}}, indent=2)

    module = ["-m", "cpersona"]
    good = settings(new / "memory.db", CPERSONA_EMBEDDING_URL=ENDPOINT)
    document(".claude.json", servers(script, module, good))
    # the same file by another spelling, an older release, another model behind another port
    elsewhere = settings(home / "link/memory.db", CPERSONA_EMBEDDING_URL="http://127.0.0.1:8500/embed")
    document(".config/Claude/claude_desktop_config.json", servers(old_script, [], elsewhere))
    document(
        ".codex/config.toml",
        f"""[mcp_servers.memory]
command = "{old_script}"

[mcp_servers.memory.env]
CPERSONA_DB_PATH = "{old}/memory.db"
CPERSONA_EMBEDDING_MODE = "http"
CPERSONA_EMBEDDING_ULR = "{ENDPOINT}"
""",
    )
    document(".cursor/mcp.json", servers(script, module, settings("~/memory.db", CPERSONA_EMBEDDING_URL=ENDPOINT)))
    document(".config/Code/User/mcp.json", "// settings\n" + servers(script, module, good))
    key = "sk-0123456789abcdef0123"
    api = settings(new / "memory.db", CPERSONA_EMBEDDING_API_KEY=key, CPERSONA_EMBEDDING_URL=ENDPOINT)
    document(
        ".gemini/settings.json", servers(script, ["-m", "cpersona", "serve"], {**api, "CPERSONA_EMBEDDING_MODE": "api"})
    )
    return home


def doctor(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = Path(sys.executable).with_name("cpersona-cli")
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [script, "doctor", *arguments], env=env, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def report(home: Path) -> dict[str, Any]:
    before = [snapshot(home / "new"), snapshot(home / "old")]
    run = doctor(home, "--offline", "--json")
    assert [snapshot(home / "new"), snapshot(home / "old")] == before, "the doctor left a trace"
    assert (run.returncode, run.stderr) == (1, "")
    document: dict[str, Any] = json.loads(run.stdout)
    return document


def found(report: Mapping[str, Any]) -> set[tuple[str, str]]:
    return {(finding["trap"], finding["subject"]) for finding in report["findings"]}


def test_all_six_are_found_with_their_releases(report: Mapping[str, Any]) -> None:
    seen = {(entry["client"], entry["status"], entry["version"]) for entry in report["registrations"]}
    assert seen == {
        ("claude-code", "active", "2.6.14"),
        ("claude-desktop", "active", "2.5.12"),
        ("codex", "active", "2.5.12"),
        ("cursor", "active", "2.6.14"),
        ("vscode", "ignored", None),
        ("gemini-cli", "active", "2.6.14"),
    }


def test_the_whole_report(home: Path, report: Mapping[str, Any]) -> None:
    new, old = str(home / "new/memory.db"), str(home / "old/memory.db")
    by_severity: dict[str, set[tuple[str, str]]] = {"fault": set(), "warning": set(), "hint": set()}
    for finding in report["findings"]:
        by_severity[finding["severity"]].add((finding["trap"], finding["subject"]))
    assert by_severity["fault"] == {
        ("names.url-missing", "Codex (user)"),
        ("names.misspelt", "Codex (user)"),
        ("database.path-tilde", "Cursor (user)"),
        ("database.schema-newer", new),
        ("version.mixed", new),
        ("vectors.backlog", new),
        ("vectors.backlog", old),
        ("registration.wrong-key", "VS Code (user)"),
    }
    assert by_severity["warning"] == {
        ("names.api-ignores-url", "Gemini CLI (user)"),
        ("database.several", "all registrations"),
        ("database.spellings-differ", new),
        ("database.modes-differ", new),
        ("database.urls-differ", new),
        ("recall.episode-penalty", "Claude Desktop (user)"),
        ("recall.episode-penalty", "Codex (user)"),
    }
    assert by_severity["hint"] == {
        ("registration.leftover-words", "Gemini CLI (user)"),
        ("recall.profile-pool", new),
        ("recall.profile-pool", old),
        *(("identity.policy-missing", name) for name in ("Claude Code", "Codex", "Gemini CLI")),
    }
    assert not any(finding["depends"] for finding in report["findings"])
    assert {check["id"]: check["reason"] for check in report["checks"] if check["state"] == "unknown"} == {}


def test_every_place_is_the_line_that_is_wrong(home: Path, report: Mapping[str, Any]) -> None:
    """What a finding points at stands there, and its edit is spelled for that file."""
    places = {(f["trap"], f["subject"]): f["place"] for f in report["findings"]}
    for (trap, subject), words in {
        ("names.misspelt", "Codex (user)"): "CPERSONA_EMBEDDING_ULR",
        ("database.path-tilde", "Cursor (user)"): "~/memory.db",
        ("registration.wrong-key", "VS Code (user)"): "memory",
        ("names.api-ignores-url", "Gemini CLI (user)"): "CPERSONA_EMBEDDING_",
    }.items():
        place = places[trap, subject]
        assert words in Path(place["file"]).read_text().splitlines()[place["line"] - 1]


def test_no_secret_and_no_home_is_shown(home: Path, report: Mapping[str, Any]) -> None:
    for arguments in (["-v"], ["--json"], ["-v", "--color", "always"]):
        shown = doctor(home, "--offline", *arguments).stdout
        assert "0123456789abcdef" not in shown
    # only what is to be copied into a file, or stands in quotes, must keep the whole path
    edits = {f["repair"]["edit"] for f in report["findings"]}
    commands = {command for f in report["findings"] for command in f["repair"]["commands"] if "'" in command}
    for line in doctor(home, "--offline", "-v").stdout.splitlines():
        assert str(home) not in line or line.strip() in edits | commands
