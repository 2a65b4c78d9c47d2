"""The tables of clients and of the files each keeps its servers in, made from the client table on a scratch machine."""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

from support.markdown import code, plain, table

from cpersona_cli.install.clients.table import CLIENTS, Client, ClientFile
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import System

SYSTEMS: dict[System, str] = {"linux": "Linux", "darwin": "macOS", "windows": "Windows"}

_EXPANSION = {
    "claude": "`${VAR}`, `${VAR:-default}`",
    "vscode": "`${env:VAR}`, `${input:ID}`, `${workspaceFolder}`, `${userHome}`",
    "editor-env": "`${env:VAR}`",
    "gemini": "`$VAR`, `${VAR}`",
    "braces": "`${VAR}`",
    "none": "nothing",
}
_BASE = {
    "own": "all that the client itself was started with",
    "whitelist:sdk": "the few names of the MCP library",
    "whitelist:codex": "the few names of Codex, and the entry's `env_vars`",
    "process": "this process's environment",
}
_FORMATS = {"json": "JSON", "json+comments": "JSON, comments allowed", "jsonc": "JSONC", "toml": "TOML"}

# Folders whose content decides which files there are; NAME and ID stand for any.
_PROFILES = ("Code/User/profiles/NAME", "Code - Insiders/User/profiles/NAME", "Claude/Claude Extensions/NAME")
_PARENTS: dict[System, str] = {
    "linux": ".config",
    "darwin": "Library/Application Support",
    "windows": "AppData/Roaming",
}
_PACKAGE = "AppData/Local/Packages/Claude_ID/LocalCache/Roaming/Claude/Claude Extensions/NAME"


def clients() -> str:
    """One row for each client: the name for ``--client`` and what it does with values."""
    rows = (
        (
            code(client.id),
            client.title,
            code(client.key),
            _EXPANSION[client.expansion],
            _BASE[client.base],
        )
        for client in CLIENTS.values()
        if client.key
    )
    heads = ("`--client`", "client", "servers under", "expands in values", "hands on, beside the env block")
    return "\n".join(table(heads, rows))


def short() -> str:
    """The clients in one sentence, for the README."""
    names = ", ".join(f"{client.title} (`{client.id}`)" for client in CLIENTS.values() if client.key)
    return textwrap.fill(f"{names}.", 120, break_on_hyphens=False)


def places() -> str:
    """For each client, every file it keeps its servers in, on each system."""
    return "\n".join(line for client in CLIENTS.values() if client.key for line in _client(client))


def _client(client: Client) -> Iterator[str]:
    found: dict[tuple[str, str, str], dict[System, str]] = {}
    for system in SYSTEMS:
        for file, shown in _files(client, system):
            key = (file.scope, "" if not file.unread else "not read by the client", _FORMATS[file.flavour])
            cell = found.setdefault(key, {})
            cell[system] = f"{cell[system]}, {code(shown)}" if system in cell else code(shown)
    yield f"### {client.title}\n"
    rows = (
        (plain(scope), *(cells.get(system, "—") for system in SYSTEMS), f"{form}{', ' if unread else ''}{unread}")
        for (scope, unread, form), cells in found.items()
    )
    yield from table(("scope", *SYSTEMS.values(), "format"), rows)
    yield ""


def _files(client: Client, system: System) -> list[tuple[ClientFile, str]]:
    """The files of a client on a scratch machine, and how people write their paths."""
    found: dict[str, ClientFile] = {}
    for packaged in (False, True) if system == "windows" else (False,):
        with tempfile.TemporaryDirectory() as folder:
            machine = _machine(Path(folder), system, packaged=packaged)
            for file in client.files(machine):
                if file.project in {None, machine.cwd}:
                    found.setdefault(_shown(file.path, machine), file)
    return [(file, shown) for shown, file in found.items()]


def _machine(folder: Path, system: System, *, packaged: bool) -> Machine:
    home, project = folder / "home", folder / "project"
    for name in (*(f"{_PARENTS[system]}/{profile}" for profile in _PROFILES), *([_PACKAGE] if packaged else [])):
        (home / name).mkdir(parents=True)
    (project / ".git").mkdir(parents=True)
    return Machine(system=system, home=home, cwd=project, root=folder / "root")


def _shown(path: Path, machine: Machine) -> str:
    windows = machine.system == "windows"
    shortest = (
        (machine.cwd, "."),
        *(((machine.roaming, "%APPDATA%"), (machine.local, "%LOCALAPPDATA%")) if windows else ()),
        (machine.home, "%USERPROFILE%" if windows else "~"),
        (machine.root, "C:" if windows else ""),
    )
    for folder, name in shortest:
        if path.is_relative_to(folder):
            text = f"{name}/{path.relative_to(folder).as_posix()}"
            return text.replace("/", "\\") if windows else text
    raise AssertionError(path)
