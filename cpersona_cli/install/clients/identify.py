"""Which client a file belongs to, told by where it lies, else by its name, else by what stands in it."""

from __future__ import annotations

from pathlib import Path

from cpersona_cli.install.clients.table import CLIENTS, Client, ClientFile
from cpersona_cli.install.files.tree import Flavour, Node
from cpersona_cli.install.machine import Machine

# File name and, where the name is not enough, the folder it stands in; scope, key and flavour of the client's file.
_BY_NAME: tuple[tuple[str, str, str, str, tuple[str, ...], Flavour], ...] = (
    (".mcp.json", "", "claude-code", "project", ("mcpServers",), "json"),
    (".claude.json", "", "claude-code", "user", ("mcpServers",), "json"),
    ("managed-mcp.json", "", "claude-code", "managed", ("mcpServers",), "json"),
    ("claude_desktop_config.json", "", "claude-desktop", "user", ("mcpServers",), "json"),
    ("config.toml", ".codex", "codex", "project", ("mcp_servers",), "toml"),
    ("mcp.toml", "", "clotocore", "project", ("servers",), "toml"),
    ("mcp_config.json", "", "windsurf", "user", ("mcpServers",), "json"),
    ("mcp-config.json", "", "copilot-cli", "user", ("mcpServers",), "json"),
    ("mcp.json", ".cursor", "cursor", "project", ("mcpServers",), "json"),
    ("mcp.json", ".vscode", "vscode", "workspace", ("servers",), "jsonc"),
    ("mcp.json", "User", "vscode", "user", ("servers",), "jsonc"),
    ("settings.json", ".vscode", "vscode", "workspace", ("mcp", "servers"), "jsonc"),
    ("settings.json", "User", "vscode", "user", ("mcp", "servers"), "jsonc"),
    ("settings.json", ".gemini", "gemini-cli", "project", ("mcpServers",), "json+comments"),
    ("settings.json", ".zed", "zed", "project", ("context_servers",), "jsonc"),
    ("settings.json", "zed", "zed", "user", ("context_servers",), "jsonc"),
)

# A key that only one client's files have; the first that is present decides.
_BY_KEY: tuple[tuple[tuple[str, ...], str, Flavour], ...] = (
    (("context_servers",), "zed", "jsonc"),
    (("mcp", "servers"), "vscode", "jsonc"),
    (("servers",), "vscode", "jsonc"),
    (("server", "mcp_config"), "claude-desktop", "json"),
    (("mcpServers",), "claude-code", "json"),
)


def identify(machine: Machine, path: Path, root: Node | None) -> tuple[Client, ClientFile]:
    """The client of a file and how that client reads it; a file of no known client is taken for Claude Code's."""
    for client in CLIENTS.values():
        for file in client.files(machine):
            if file.path == path:
                return client, file
    folder = path.parent.name
    for name, parent, owner, scope, key, flavour in _BY_NAME:
        if path.name.lower() == name and (not parent or folder.lower() == parent.lower()):
            project = path.parent.parent if parent.startswith(".") else path.parent
            inside = project if scope in ("project", "workspace") else None
            own_env = name in ("settings.json", ".claude.json")
            return CLIENTS[owner], ClientFile(
                path=path, scope=scope, key=key, flavour=flavour, project=inside, own_env=own_env
            )
    if path.suffix.lower() == ".toml":
        return _toml(path, root)
    for key, owner, flavour in _BY_KEY:
        if root is not None and root.find(*key) is not None:
            scope = "extension" if key == ("server", "mcp_config") else "file"
            return CLIENTS[owner], ClientFile(path=path, scope=scope, key=key, flavour=flavour)
    return CLIENTS["claude-code"], ClientFile(path=path, scope="file", key=("mcpServers",))


def _toml(path: Path, root: Node | None) -> tuple[Client, ClientFile]:
    servers = root.find("servers") if root is not None else None
    owner, key = ("clotocore", "servers") if servers is not None and servers.items else ("codex", "mcp_servers")
    return CLIENTS[owner], ClientFile(path=path, scope="file", key=(key,), flavour="toml")
