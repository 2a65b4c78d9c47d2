"""Whole machines, laid out on disk and gathered for real: what these traps say of them, and what they leave alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.traps import everything

from cpersona_cli.install.machine import Machine
from cpersona_cli.traps import (
    identity,
    identity_files,
    identity_policy,
    recall,
    recall_rows,
    registration,
    registration_env,
    registration_files,
    registration_scope,
    transport,
    version,
    version_shared,
)
from cpersona_cli.traps.gather import Selection, gather
from cpersona_cli.traps.model import Facts, Finding, Needs, Severity
from cpersona_cli.traps.run import State, run

MODULES = (
    identity,
    identity_files,
    identity_policy,
    recall,
    recall_rows,
    registration,
    registration_env,
    registration_files,
    registration_scope,
    transport,
    version,
    version_shared,
)
TRAPS = tuple(trap for module in MODULES for trap in module.TRAPS)

POLICY = '<!-- BEGIN cpersona-policy v5 -->\nagent_id="{}"\n<!-- END cpersona-policy -->\n'


class Home:
    """A scratch home with a working directory that is a repository, and programs on the PATH."""

    def __init__(self, root: Path) -> None:
        self.root, self.home, self.work = root, root / "home", root / "home" / "work"
        (self.work / ".git").mkdir(parents=True)
        self.env = {"HOME": str(self.home), "PATH": f"{self.program('bin/uvx').parent}:/usr/bin:/bin", "USER": "u"}
        self.database = self.home / "cpersona.db"

    def program(self, name: str) -> Path:
        path = self.write(name, "#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
        return path

    def write(self, name: str, content: str | dict[str, object]) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
        return path

    def entry(self, command: str = "uvx", **env: str) -> dict[str, object]:
        return {
            "command": command,
            "args": ["cpersona"],
            "env": {"CPERSONA_DB_PATH": str(self.database), **env},
        }

    def facts(self) -> Facts:
        machine = Machine(system="linux", home=self.home, cwd=self.work, root=self.root, env=self.env)
        return gather(Selection(before_first_start=True), machine)

    def findings(self) -> list[Finding]:
        checks = run(TRAPS, self.facts())
        failed = [f"{check.trap.id}: {check.reason}" for check in checks if "itself failed" in check.reason]
        assert not failed
        return [finding for check in checks for finding in check.findings]

    def named(self, trap: str) -> str:
        return "\n".join(everything(f) for f in self.findings() if f.trap == f"registration.{trap}")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def codex(database: Path, extra: str = "") -> str:
    return (
        f"[mcp_servers.cpersona]\ncommand = 'uvx'\nargs = ['cpersona']\n{extra}"
        f"[mcp_servers.cpersona.env]\nCPERSONA_DB_PATH = '{database}'\n"
    )


def test_five_healthy_clients(home: Home) -> None:
    absolute = str(home.home / "bin" / "uvx")
    projects: dict[str, object] = {str(home.work): {"mcpServers": {}}}
    home.write(".claude.json", {"mcpServers": {"cpersona": home.entry()}, "projects": projects})
    home.write(".config/Claude/claude_desktop_config.json", {"mcpServers": {"cpersona": home.entry(absolute)}})
    home.write(".codex/config.toml", codex(home.database))
    home.write(".cursor/mcp.json", {"mcpServers": {"cpersona": home.entry(absolute)}})
    inputs: list[object] = [{"type": "promptString", "id": "k", "password": True}]
    prompted = home.entry(absolute, CPERSONA_EMBEDDING_API_KEY="${input:k}")
    text = json.dumps({"inputs": inputs, "servers": {"cpersona": prompted}}, indent=1)
    home.write(".config/Code/User/mcp.json", f"// mine\n{text[:-1]},}}")
    home.write(".claude/CLAUDE.md", POLICY.format("claude-code"))
    home.write(".codex/AGENTS.md", POLICY.format("codex"))
    facts = home.facts()
    assert {r.client for r in facts.active} == {"claude-code", "claude-desktop", "codex", "cursor", "vscode"}
    worse = [everything(f) for f in home.findings() if f.severity is not Severity.HINT]
    assert not worse


def test_a_trailing_comma_in_a_strict_file(home: Home) -> None:
    text = json.dumps({"mcpServers": {"cpersona": home.entry()}}, indent=1)
    home.write(".claude.json", text.replace('cpersona.db"', 'cpersona.db",'))
    said = home.named("file-syntax")
    assert "line 9, column" in said
    assert "Claude Code ignores this whole file" in said


def test_the_key_of_another_client_in_vscode(home: Home) -> None:
    home.write("work/.vscode/mcp.json", {"mcpServers": {"cpersona": home.entry()}})
    said = home.named("wrong-key")
    assert "VS Code reads “servers”" in said
    assert '"servers": {' in said


@pytest.mark.parametrize(
    ("url", "severity"),
    [
        ("${MEMORY_HOST}/embed", "fault"),
        ("${MEMORY_HOST:-http://127.0.0.1:8401}/embed", None),
        ("$MEMORY_HOST/embed", "warning"),
        ("%MEMORY_HOST%/embed", "warning"),
    ],
)
def test_variables_in_claude_code(home: Home, url: str, severity: str | None) -> None:
    entry = home.entry(CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=url)
    home.write(".claude.json", {"mcpServers": {"cpersona": entry}})
    found = [f for f in home.findings() if f.trap == "registration.unexpanded"]
    assert [str(f.severity) for f in found] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("text", "trap", "says"),
    [
        ("[mcpServers.cpersona]\ncommand = 'uvx'\nargs = ['cpersona']\n", "wrong-key", "[mcp_servers.cpersona]"),
        ("[mcp]\ncpersona = {command = 'uvx', args = ['cpersona']}\n", "wrong-key", "[mcp_servers.cpersona]"),
    ],
)
def test_right_data_in_the_wrong_table_of_codex(home: Home, text: str, trap: str, says: str) -> None:
    home.write(".codex/config.toml", text)
    assert says in home.named(trap)


def test_a_program_that_only_the_shell_finds(home: Home) -> None:
    home.write(".config/Claude/claude_desktop_config.json", {"mcpServers": {"cpersona": home.entry("uvx-of-mine")}})
    home.program("bin/other")
    said = home.named("program-missing")
    assert "uvx-of-mine" in said
    assert "absolute path" in said


def test_one_name_in_three_scopes(home: Home) -> None:
    here: dict[str, object] = {"cpersona": {**home.entry(), "env": {"CPERSONA_DB_PATH": "/home/u/b.db"}}}
    state: dict[str, object] = {
        "mcpServers": {"cpersona": {**home.entry(), "env": {"CPERSONA_DB_PATH": "/home/u/a.db"}}},
        "projects": {str(home.work): {"mcpServers": here, "enabledMcpjsonServers": ["cpersona"]}},
    }
    home.write(".claude.json", state)
    home.write("work/.mcp.json", {"mcpServers": {"cpersona": {**home.entry(), "env": {"CPERSONA_DB_PATH": "./c.db"}}}})
    said = home.named("scopes")
    assert "3 times with 3 databases: local" in said
    assert "opens /home/u/b.db and wins" in said
    assert "./c.db" in said
    assert "/home/u/a.db" in said


def test_a_project_file_nobody_approved(home: Home) -> None:
    home.write("work/.mcp.json", {"mcpServers": {"cpersona": home.entry()}})
    assert "approve" in home.named("not-approved")


def test_an_empty_record_beside_the_users_own_entry(home: Home) -> None:
    projects: dict[str, object] = {str(home.work): {"mcpServers": {}}, "/elsewhere": {"mcpServers": {}}}
    home.write(".claude.json", {"mcpServers": {"cpersona": home.entry()}, "projects": projects})
    (found,) = [f for f in home.findings() if f.trap == "registration.empty-record"]
    assert found.severity is Severity.HINT


def test_the_shells_proxy_does_not_reach_a_desktop_program(home: Home) -> None:
    home.env["HTTPS_PROXY"] = "http://proxy:3128"
    entry = home.entry(CPERSONA_EMBEDDING_MODE="api", CPERSONA_EMBEDDING_API_KEY="sk-live-0123456789abcdef")
    home.write(".config/Claude/claude_desktop_config.json", {"mcpServers": {"cpersona": entry}})
    said = home.named("not-inherited")
    assert "HTTPS_PROXY of this shell will not reach the server" in said
    assert "sk-live" not in "\n".join(everything(finding) for finding in home.findings())


def test_an_empty_state_file(home: Home) -> None:
    home.write(".claude.json", "")
    assert "the file is empty" in home.named("file-empty")


def test_nothing_installed(home: Home) -> None:
    checks = run(TRAPS, home.facts())
    assert {check.state for check in checks} <= {State.PASS, State.SKIPPED}
    assert not [check for check in checks if check.trap.needs is Needs.REGISTRATION and check.state is State.PASS]
