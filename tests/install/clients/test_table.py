from __future__ import annotations

from pathlib import Path

import pytest
from support.clients import machine, server, write

from cpersona_cli.install.clients.discover import discover
from cpersona_cli.install.clients.table import CLIENTS
from cpersona_cli.install.model import Status, System

_JSON = {"mcpServers": {"memory": server()}}
_SERVERS = {"servers": {"memory": server()}}
_SETTINGS = {"editor.fontSize": 12, "mcp": {"servers": {"memory": server()}}}
_CONTEXT = {"context_servers": {"memory": {"source": "custom", **server()}}}
_CODEX = '[mcp_servers.memory]\ncommand = "uvx"\nargs = ["cpersona"]\n'
_CLOTO = '[[servers]]\nid = "memory.cpersona"\ncommand = "uvx"\nargs = ["cpersona"]\n'
_MAC, _WIN = "home/Library/Application Support", "home/AppData/Roaming"
_PACKAGE = "home/AppData/Local/Packages/Claude_x1/LocalCache/Roaming/Claude"
_DESKTOP = "claude_desktop_config.json"


@pytest.mark.parametrize(
    ("system", "client", "path", "content", "scope"),
    [
        ("linux", "claude-code", "home/.claude.json", _JSON, "user"),
        ("linux", "claude-code", "etc/claude-code/managed-mcp.json", _JSON, "managed"),
        ("darwin", "claude-code", "Library/Application Support/ClaudeCode/managed-mcp.json", _JSON, "managed"),
        ("windows", "claude-code", "Program Files/ClaudeCode/managed-mcp.json", _JSON, "managed"),
        ("linux", "claude-desktop", f"home/.config/Claude/{_DESKTOP}", _JSON, "user"),
        ("darwin", "claude-desktop", f"{_MAC}/Claude/{_DESKTOP}", _JSON, "user"),
        ("windows", "claude-desktop", f"{_WIN}/Claude/{_DESKTOP}", _JSON, "user"),
        ("windows", "claude-desktop", f"{_PACKAGE}/{_DESKTOP}", _JSON, "packaged"),
        ("linux", "codex", "home/.codex/config.toml", _CODEX, "user"),
        ("windows", "codex", "home/.codex/config.toml", _CODEX, "user"),
        ("linux", "cursor", "home/.cursor/mcp.json", _JSON, "user"),
        ("linux", "cursor", "home/work/.cursor/mcp.json", _JSON, "project"),
        ("linux", "vscode", "home/work/.vscode/mcp.json", _SERVERS, "workspace"),
        ("linux", "vscode", "home/work/.vscode/settings.json", _SETTINGS, "workspace"),
        ("linux", "vscode", "home/.config/Code/User/mcp.json", _SERVERS, "user"),
        ("linux", "vscode", "home/.config/Code/User/settings.json", _SETTINGS, "user, settings"),
        ("linux", "vscode", "home/.config/Code/User/profiles/7f/mcp.json", _SERVERS, "user, profile 7f"),
        ("linux", "vscode", "home/.config/Code - Insiders/User/mcp.json", _SERVERS, "user, Insiders"),
        ("darwin", "vscode", f"{_MAC}/Code/User/mcp.json", _SERVERS, "user"),
        ("windows", "vscode", f"{_WIN}/Code/User/mcp.json", _SERVERS, "user"),
        ("linux", "copilot-cli", "home/.copilot/mcp-config.json", _JSON, "user"),
        ("windows", "windsurf", "home/.codeium/windsurf/mcp_config.json", _JSON, "user"),
        ("linux", "gemini-cli", "etc/gemini-cli/settings.json", _JSON, "system"),
        ("darwin", "gemini-cli", "Library/Application Support/GeminiCli/settings.json", _JSON, "system"),
        ("windows", "gemini-cli", "ProgramData/gemini-cli/settings.json", _JSON, "system"),
        ("linux", "gemini-cli", "home/work/.gemini/settings.json", _JSON, "project"),
        ("linux", "gemini-cli", "home/.gemini/settings.json", _JSON, "user"),
        ("linux", "zed", "home/.config/zed/settings.json", _CONTEXT, "user"),
        ("darwin", "zed", "home/.config/zed/settings.json", _CONTEXT, "user"),
        ("windows", "zed", f"{_WIN}/Zed/settings.json", _CONTEXT, "user"),
        ("linux", "zed", "home/work/.zed/settings.json", _CONTEXT, "project"),
        ("linux", "clotocore", "home/work/mcp.toml", _CLOTO, "project"),
    ],
)  # fmt: skip
def test_each_client_is_found_where_it_keeps_its_servers(  # noqa: PLR0917
    tmp_path: Path, system: System, client: str, path: str, content: object, scope: str
) -> None:
    file = write(tmp_path / path, content)
    found = discover(machine(tmp_path, system))
    (registration,) = found.registrations
    assert (registration.client, registration.scope) == (client, scope)
    assert registration.status is Status.ACTIVE
    assert registration.place.file == file
    assert registration.client_title == CLIENTS[client].title
    assert (client, file) in [(looked.client, looked.path) for looked in found.looked if looked.mentions]


def test_a_machine_without_any_client_names_every_place_searched(tmp_path: Path) -> None:
    found = discover(machine(tmp_path))
    assert found.registrations == ()
    assert {looked.client for looked in found.looked} == set(CLIENTS) - {"env"}
    assert {looked.state for looked in found.looked} == {"absent"}
    paths = [looked.path for looked in found.looked]
    assert len(paths) == len(set(paths))
    assert list(tmp_path.rglob("*")) == [tmp_path / "home", tmp_path / "home" / "work"]


@pytest.mark.parametrize(
    ("variable", "client", "moved", "left", "content"),
    [
        ("CLAUDE_CONFIG_DIR", "claude-code", ".claude.json", "home/.claude.json", _JSON),
        ("CODEX_HOME", "codex", "config.toml", "home/.codex/config.toml", _CODEX),
        ("COPILOT_HOME", "copilot-cli", "mcp-config.json", "home/.copilot/mcp-config.json", _JSON),
    ],
)
def test_a_variable_that_moves_the_files_is_honoured_and_what_stays_behind_is_not_read(  # noqa: PLR0917
    tmp_path: Path, variable: str, client: str, moved: str, left: str, content: object
) -> None:
    there = write(tmp_path / "moved" / moved, content)
    write(tmp_path / left, content)
    found = discover(machine(tmp_path, env={variable: str(tmp_path / "moved")}), clients=[client]).registrations
    assert [(entry.place.file, entry.status, entry.cause) for entry in found] == [
        (there, Status.ACTIVE, ""),
        (tmp_path / left, Status.IGNORED, "file"),
    ]
    assert variable in found[1].why
    assert str(there) in found[1].why


def test_files_named_by_a_variable_take_the_place_of_the_default(tmp_path: Path) -> None:
    write(tmp_path / "home/work/mcp.toml", _CLOTO)
    cloto = write(tmp_path / "other.toml", _CLOTO)
    gemini = write(tmp_path / "system.json", _JSON)
    env = {"CLOTO_MCP_CONFIG": str(cloto), "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(gemini)}
    found = discover(machine(tmp_path, env=env)).registrations
    assert [entry.place.file for entry in found] == [gemini, cloto]
    assert found[1].name == "memory.cpersona"


def test_xdg_folders_are_honoured(tmp_path: Path) -> None:
    write(tmp_path / "xdg/zed/settings.json", _CONTEXT)
    found = discover(machine(tmp_path, env={"XDG_CONFIG_HOME": str(tmp_path / "xdg")})).registrations
    assert [entry.client for entry in found] == ["zed"]


def test_a_project_s_files_are_found_from_a_folder_below_its_root(tmp_path: Path) -> None:
    (tmp_path / "home/work/.git").mkdir(parents=True)
    write(tmp_path / "home/work/.cursor/mcp.json", _JSON)
    write(tmp_path / "home/.cursor/mcp.json", _JSON)
    found = discover(machine(tmp_path, cwd="work/deep/er"), clients=["cursor"]).registrations
    assert [(entry.scope, entry.status, entry.cause) for entry in found] == [
        ("project", Status.ACTIVE, ""),
        ("user", Status.HIDDEN, "scope"),
    ]
    assert found[0].project == tmp_path / "home/work"


def test_a_home_directory_as_project_is_not_read_twice(tmp_path: Path) -> None:
    for path, content in (
        (".cursor/mcp.json", _JSON),
        (".gemini/settings.json", _JSON),
        (".codex/config.toml", _CODEX),
    ):
        write(tmp_path / "home" / path, content)
    found = discover(machine(tmp_path, cwd=".")).registrations
    assert [(entry.client, entry.scope) for entry in found] == [
        ("codex", "user"), ("cursor", "user"), ("gemini-cli", "user"),
    ]  # fmt: skip


def test_a_packaged_claude_desktop_does_not_read_the_file_people_edit(tmp_path: Path) -> None:
    package = write(tmp_path / _PACKAGE / _DESKTOP, _JSON)
    write(tmp_path / _WIN / "Claude" / _DESKTOP, _JSON)
    found = discover(machine(tmp_path, "windows"), clients=["claude-desktop"]).registrations
    assert [(entry.scope, entry.status, entry.cause) for entry in found] == [
        ("packaged", Status.ACTIVE, ""),
        ("user", Status.IGNORED, "file"),
    ]
    assert str(package) in found[1].why


def test_the_rules_the_environment_is_derived_by() -> None:
    assert {client.id: (client.expansion, client.base) for client in CLIENTS.values()} == {
        "claude-code": ("claude", "own"),
        "claude-desktop": ("none", "whitelist:sdk"),
        "codex": ("none", "whitelist:codex"),
        "cursor": ("editor-env", "own"),
        "vscode": ("vscode", "own"),
        "copilot-cli": ("gemini", "own"),
        "windsurf": ("editor-env", "own"),
        "gemini-cli": ("gemini", "own"),
        "zed": ("none", "own"),
        "clotocore": ("braces", "own"),
        "env": ("none", "process"),
    }
