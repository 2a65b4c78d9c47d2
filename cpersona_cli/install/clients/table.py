"""The MCP clients: where each keeps its registrations, in which format and shape, and what it does with them.

All paths derive from a ``Machine``, so that the layout of any platform can be examined on any platform.
Sources: the vendors' documentation of each client, and reports in their trackers. The layouts of plugins and
extensions, Gemini CLI's lists and the rule that a managed file of Claude Code excludes all others are from general
knowledge of these clients and were not checked against a release.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from cpersona_cli.install.files.tree import Flavour
from cpersona_cli.install.machine import Machine
from cpersona_cli.record import record

Expansion = Literal["claude", "vscode", "editor-env", "gemini", "braces", "none"]
Base = Literal["own", "whitelist:sdk", "whitelist:codex", "process"]


@record(kw_only=True)
class ClientFile:
    """One file of a client.

    ``key`` is the path of keys to its servers. ``unread`` says why the client does not read this file, where people
    believe it does. ``bare``: the servers may also stand at the top level. ``own_env``: a top-level ``env`` of this
    file means something to the client. ``listed``: worth naming among the places searched even when absent.
    """

    path: Path
    scope: str
    key: tuple[str, ...]
    flavour: Flavour = "json"
    project: Path | None = None
    unread: str = ""
    bare: bool = False
    own_env: bool = False
    listed: bool = True


@record(kw_only=True)
class Client:
    """One client.

    ``files`` come in order of precedence. ``by_name``: entries of one name hide each other, the earlier file wins.

    ``expansion`` is the rule for references inside values of the env block:
    ``claude`` knows ``${VAR}`` and ``${VAR:-default}``; ``vscode`` ``${env:VAR}``, ``${input:id}``,
    ``${workspaceFolder}``, ``${userHome}``; ``editor-env`` ``${env:VAR}`` (Cursor also ``${userHome}`` and
    ``${workspaceFolder}``); ``gemini`` ``$VAR`` and ``${VAR}``, an unset one becoming empty; ``braces`` only
    ``${VAR}``; ``none`` hands every text on as it stands.

    ``base`` is what a server gets before its env block: ``own`` all of the client's own environment (a shell's, or
    the desktop's, depending on how the client was started), ``whitelist:sdk`` the fixed names of the MCP library,
    ``whitelist:codex`` those of Codex (plus the entry's ``env_vars``), ``process`` this process's environment.
    """

    id: str
    title: str
    key: str
    expansion: Expansion
    base: Base
    files: Callable[[Machine], Iterator[ClientFile]]
    by_name: bool = True


def folders_up(machine: Machine) -> tuple[Path, ...]:
    """The working directory and every folder above it, nearest first."""
    return (machine.cwd, *machine.cwd.parents)


def project_folders(machine: Machine) -> tuple[Path, ...]:
    """The working directory and the folders above it up to the root of its repository; itself alone outside of one."""
    up = folders_up(machine)
    for depth, folder in enumerate(up):
        if os.path.lexists(folder / ".git"):
            return up[: depth + 1]
    return up[:1]


def spelling(machine: Machine, path: str) -> str:
    """A path such that two spellings of it on the inspected system are equal."""
    text = str(machine.pure(path))
    return text.casefold() if machine.system == "windows" else text


def matching(folder: Path, prefix: str) -> list[Path]:
    """What stands in ``folder`` under names that begin with ``prefix``, sorted; nothing where it cannot be listed."""
    try:
        return sorted(path for path in folder.iterdir() if path.name.startswith(prefix))
    except (OSError, ValueError):
        return []


def claude_folder(machine: Machine) -> Path:
    """Where Claude Code keeps its settings."""
    chosen = machine.env.get("CLAUDE_CONFIG_DIR", "")
    return machine.cwd / chosen if chosen else machine.home / ".claude"


def claude_state(machine: Machine) -> Path:
    """The file in which Claude Code keeps its user and local servers."""
    return (claude_folder(machine) if machine.env.get("CLAUDE_CONFIG_DIR") else machine.home) / ".claude.json"


def claude_managed(machine: Machine) -> Path:
    """The folder through which an administrator manages Claude Code."""
    return {
        "linux": machine.root / "etc" / "claude-code",
        "darwin": machine.root / "Library" / "Application Support" / "ClaudeCode",
        "windows": machine.root / "Program Files" / "ClaudeCode",
    }[machine.system]


def _claude_code(machine: Machine) -> Iterator[ClientFile]:
    key = ("mcpServers",)
    folder = claude_folder(machine)
    yield ClientFile(path=claude_managed(machine) / "managed-mcp.json", scope="managed", key=key)
    yield ClientFile(path=claude_state(machine), scope="user", key=key, own_env=True)
    for up in folders_up(machine):
        yield ClientFile(path=up / ".mcp.json", scope="project", key=key, project=up, listed=up == machine.cwd)
    elsewhere = "Claude Code does not read MCP servers from this file; it reads them from {state} and from .mcp.json"
    unread = elsewhere.format(state=claude_state(machine))
    yield ClientFile(path=folder / "settings.json", scope="settings", key=key, unread=unread, own_env=True)
    yield ClientFile(path=folder / "mcp.json", scope="mcp.json", key=key, unread=unread)
    for name in ("settings.json", "settings.local.json"):
        path = machine.cwd / ".claude" / name
        if path.parent != folder:
            yield ClientFile(
                path=path, scope="settings", key=key, unread=unread, own_env=True, listed=False, project=machine.cwd
            )
    moved = machine.home / ".claude.json"
    if moved != claude_state(machine):
        unread = f"CLAUDE_CONFIG_DIR is set, so Claude Code started here reads {claude_state(machine)} instead"
        yield ClientFile(path=moved, scope="user", key=key, unread=unread, own_env=True)


def _claude_desktop(machine: Machine) -> Iterator[ClientFile]:
    key, name = ("mcpServers",), "claude_desktop_config.json"
    if machine.system == "windows":
        packages = matching(machine.local / "Packages", "Claude_")
        packaged = [package / "LocalCache" / "Roaming" / "Claude" / name for package in packages]
        for path in packaged:
            yield ClientFile(path=path, scope="packaged", key=key)
        unread = f"Claude Desktop is installed as a Windows package here and reads {packaged[0]}" if packaged else ""
        yield ClientFile(path=machine.roaming / "Claude" / name, scope="user", key=key, unread=unread)
        folders = [path.parent for path in packaged] or [machine.roaming / "Claude"]
    elif machine.system == "darwin":
        folders = [machine.home / "Library" / "Application Support" / "Claude"]
        yield ClientFile(path=folders[0] / name, scope="user", key=key)
    else:
        folders = [machine.config / "Claude"]
        yield ClientFile(path=folders[0] / name, scope="user", key=key)
    for folder in folders:
        for extension in matching(folder / "Claude Extensions", ""):
            yield ClientFile(
                path=extension / "manifest.json", scope="extension", key=("server", "mcp_config"), listed=False
            )


def codex_home(machine: Machine) -> Path:
    """Where Codex keeps its settings."""
    chosen = machine.env.get("CODEX_HOME", "")
    return machine.cwd / chosen if chosen else machine.home / ".codex"


def _codex(machine: Machine) -> Iterator[ClientFile]:
    key = ("mcp_servers",)
    user = codex_home(machine) / "config.toml"
    default = machine.home / ".codex" / "config.toml"
    for folder in project_folders(machine):
        path = folder / ".codex" / "config.toml"
        if path not in (user, default):
            yield ClientFile(
                path=path, scope="project", key=key, flavour="toml", project=folder, listed=folder == machine.cwd
            )
    yield ClientFile(path=user, scope="user", key=key, flavour="toml")
    if default != user:
        unread = f"CODEX_HOME is set, so Codex started here reads {user} instead"
        yield ClientFile(path=default, scope="user", key=key, flavour="toml", unread=unread)


def _cursor(machine: Machine) -> Iterator[ClientFile]:
    key = ("mcpServers",)
    user = machine.home / ".cursor" / "mcp.json"
    yield from _in_project(machine, user, ".cursor/mcp.json", key)
    yield ClientFile(path=user, scope="user", key=key)


def _in_project(
    machine: Machine, user: Path, name: str, key: tuple[str, ...], flavour: Flavour = "json"
) -> Iterator[ClientFile]:
    """The project's file ``name``, unless it is the user's own because the home directory is the project."""
    for folder in project_folders(machine):
        path = folder / name
        if path != user:
            yield ClientFile(
                path=path, scope="project", key=key, flavour=flavour, project=folder, listed=folder == machine.cwd
            )


def _vscode(machine: Machine) -> Iterator[ClientFile]:
    base = {
        "linux": machine.config,
        "darwin": machine.home / "Library" / "Application Support",
        "windows": machine.roaming,
    }[machine.system]
    for folder in project_folders(machine):
        here = folder == machine.cwd
        for name, key in (("mcp.json", ("servers",)), ("settings.json", ("mcp", "servers"))):
            yield ClientFile(
                path=folder / ".vscode" / name, scope="workspace", key=key, flavour="jsonc", project=folder,
                own_env=name == "settings.json", listed=here and name == "mcp.json",
            )  # fmt: skip
    for product, title in (("Code", "user"), ("Code - Insiders", "user, Insiders")):
        user = base / product / "User"
        yield ClientFile(path=user / "mcp.json", scope=title, key=("servers",), flavour="jsonc")
        yield ClientFile(
            path=user / "settings.json", scope=f"{title}, settings", key=("mcp", "servers"), flavour="jsonc",
            own_env=True, listed=False,
        )  # fmt: skip
        for profile in matching(user / "profiles", ""):
            scope = f"{title}, profile {profile.name}"
            yield ClientFile(path=profile / "mcp.json", scope=scope, key=("servers",), flavour="jsonc", listed=False)


def _copilot_cli(machine: Machine) -> Iterator[ClientFile]:
    chosen = machine.env.get("COPILOT_HOME", "")
    default = machine.home / ".copilot"
    folder = machine.cwd / chosen if chosen else default
    yield ClientFile(path=folder / "mcp-config.json", scope="user", key=("mcpServers",))
    if folder != default:
        unread = f"COPILOT_HOME is set, so Copilot CLI started here reads {folder / 'mcp-config.json'} instead"
        yield ClientFile(path=default / "mcp-config.json", scope="user", key=("mcpServers",), unread=unread)


def _windsurf(machine: Machine) -> Iterator[ClientFile]:
    path = machine.home / ".codeium" / "windsurf" / "mcp_config.json"
    yield ClientFile(path=path, scope="user", key=("mcpServers",))


def _gemini(machine: Machine) -> Iterator[ClientFile]:
    key = ("mcpServers",)
    system = {
        "linux": machine.root / "etc" / "gemini-cli",
        "darwin": machine.root / "Library" / "Application Support" / "GeminiCli",
        "windows": machine.root / "ProgramData" / "gemini-cli",
    }[machine.system]
    chosen = machine.env.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "")
    path = machine.cwd / chosen if chosen else system / "settings.json"
    user = machine.home / ".gemini" / "settings.json"
    yield ClientFile(path=path, scope="system", key=key, flavour="json+comments")
    if machine.cwd != machine.home:
        project = machine.cwd / ".gemini" / "settings.json"
        yield ClientFile(path=project, scope="project", key=key, flavour="json+comments", project=machine.cwd)
    yield ClientFile(path=user, scope="user", key=key, flavour="json+comments")


def _zed(machine: Machine) -> Iterator[ClientFile]:
    folder = {
        "linux": machine.config / "zed",
        "darwin": machine.home / ".config" / "zed",
        "windows": machine.roaming / "Zed",
    }[machine.system]
    key = ("context_servers",)
    yield from _in_project(machine, folder / "settings.json", ".zed/settings.json", key, "jsonc")
    yield ClientFile(path=folder / "settings.json", scope="user", key=key, flavour="jsonc")


def _clotocore(machine: Machine) -> Iterator[ClientFile]:
    chosen = machine.env.get("CLOTO_MCP_CONFIG", "")
    if chosen:
        yield ClientFile(path=machine.cwd / chosen, scope="CLOTO_MCP_CONFIG", key=("servers",), flavour="toml")
        return
    for folder in project_folders(machine):
        yield ClientFile(
            path=folder / "mcp.toml", scope="project", key=("servers",), flavour="toml", project=folder,
            listed=folder == machine.cwd,
        )  # fmt: skip


_TABLE = (
    Client(
        id="claude-code", title="Claude Code", key="mcpServers", expansion="claude", base="own", files=_claude_code
    ),
    Client(
        id="claude-desktop", title="Claude Desktop", key="mcpServers", expansion="none", base="whitelist:sdk",
        files=_claude_desktop, by_name=False,
    ),
    Client(id="codex", title="Codex", key="mcp_servers", expansion="none", base="whitelist:codex", files=_codex),
    Client(id="cursor", title="Cursor", key="mcpServers", expansion="editor-env", base="own", files=_cursor),
    # VS Code keeps the servers of its files side by side, also those of one name.
    Client(
        id="vscode", title="VS Code", key="servers", expansion="vscode", base="own", files=_vscode, by_name=False
    ),
    Client(
        id="copilot-cli", title="Copilot CLI", key="mcpServers", expansion="gemini", base="own", files=_copilot_cli
    ),
    Client(id="windsurf", title="Windsurf", key="mcpServers", expansion="editor-env", base="own", files=_windsurf),
    Client(id="gemini-cli", title="Gemini CLI", key="mcpServers", expansion="gemini", base="own", files=_gemini),
    Client(id="zed", title="Zed", key="context_servers", expansion="none", base="own", files=_zed),
    Client(id="clotocore", title="ClotoCore", key="servers", expansion="braces", base="own", files=_clotocore),
    # Not a client: the environment of this process, as a container or a CI step would start the server.
    Client(id="env", title="This process", key="", expansion="none", base="process", files=lambda _: iter(())),
)  # fmt: skip

#: Every client by its id, in the order in which registrations are reported.
CLIENTS = {client.id: client for client in _TABLE}

#: Clients that people start in a terminal, whose variables are therefore a shell's.
IN_TERMINAL = frozenset({"claude-code", "codex", "gemini-cli", "copilot-cli"})
