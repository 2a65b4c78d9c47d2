from __future__ import annotations

from pathlib import Path

import pytest
from support.clients import machine, server, write

from cpersona_cli.install.clients.discover import from_file
from cpersona_cli.install.model import Status

_JSON = {"mcpServers": {"m": server()}}
_SERVERS = {"servers": {"m": server()}}
_SETTINGS = {"mcp": {"servers": {"m": server()}}}
_CONTEXT = {"context_servers": {"m": server()}}
_CODEX = '[mcp_servers.m]\ncommand = "cpersona"\n'
_CLOTO = '[[servers]]\nid = "m"\ncommand = "cpersona"\n'


@pytest.mark.parametrize(
    ("path", "content", "client", "scope"),
    [
        ("home/.claude.json", _JSON, "claude-code", "user"),
        ("home/.config/zed/settings.json", _CONTEXT, "zed", "user"),
        ("away/.mcp.json", _JSON, "claude-code", "project"),
        ("away/.claude.json", _JSON, "claude-code", "user"),
        ("away/managed-mcp.json", _JSON, "claude-code", "managed"),
        ("away/claude_desktop_config.json", _JSON, "claude-desktop", "user"),
        ("away/.codex/config.toml", _CODEX, "codex", "project"),
        ("away/config.toml", _CODEX, "codex", "file"),
        ("away/mcp.toml", _CLOTO, "clotocore", "project"),
        ("away/other.toml", _CLOTO, "clotocore", "file"),
        ("away/mcp_config.json", _JSON, "windsurf", "user"),
        ("away/mcp-config.json", _JSON, "copilot-cli", "user"),
        ("away/.cursor/mcp.json", _JSON, "cursor", "project"),
        ("away/.vscode/mcp.json", _SERVERS, "vscode", "workspace"),
        ("away/.vscode/settings.json", _SETTINGS, "vscode", "workspace"),
        ("away/Code/User/mcp.json", _SERVERS, "vscode", "user"),
        ("away/Code/User/settings.json", _SETTINGS, "vscode", "user"),
        ("away/.gemini/settings.json", _JSON, "gemini-cli", "project"),
        ("away/.zed/settings.json", _CONTEXT, "zed", "project"),
        ("away/Zed/settings.json", _CONTEXT, "zed", "user"),
        ("away/anything.json", _JSON, "claude-code", "file"),
        ("away/anything.json", _SERVERS, "vscode", "file"),
        ("away/anything.json", _SETTINGS, "vscode", "file"),
        ("away/anything.json", _CONTEXT, "zed", "file"),
        ("away/anything.json", {"name": "m", "server": {"mcp_config": server()}}, "claude-desktop", "extension"),
        ("away/no-ending", _JSON, "claude-code", "file"),
    ],
)
def test_a_file_is_read_the_way_its_client_reads_it(
    tmp_path: Path, path: str, content: object, client: str, scope: str
) -> None:
    file = write(tmp_path / path, content)
    (found,) = from_file(machine(tmp_path), str(file)).registrations
    assert (found.client, found.scope, found.name, found.status) == (client, scope, "m", Status.ACTIVE)
    if scope in ("project", "workspace"):
        assert found.project == tmp_path / "away"


def test_a_file_of_no_known_client_with_a_stray_entry_is_read_as_claude_code_s(tmp_path: Path) -> None:
    file = write(tmp_path / "x.json", {"tools": {"m": server()}})
    (found,) = from_file(machine(tmp_path), str(file)).registrations
    assert (found.client, found.status, found.cause) == ("claude-code", Status.IGNORED, "key")
