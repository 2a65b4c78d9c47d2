"""Finding every registration of CPersona on a machine, in one file, or in this process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from cpersona_cli.install.clients import claude
from cpersona_cli.install.clients.entries import Entry, Shelf, entries, program, registration
from cpersona_cli.install.clients.identify import identify
from cpersona_cli.install.clients.table import CLIENTS, Client, codex_home, project_folders, spelling
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import (
    Discovery,
    Launch,
    LaunchKind,
    Place,
    Registration,
    Status,
    Variable,
)
from cpersona_cli.text import nearest, safe

_PROCESS_NAMES = re.compile(r"CPERSONA_\w*|EMBEDDING_\w*|(?:HTTPS?|ALL|NO)_PROXY|SSL_CERT_(?:FILE|DIR)", re.IGNORECASE)


class BadSpecError(ValueError):
    """What the user asked to look at does not exist; the message is one sentence."""


def discover(machine: Machine, *, clients: Iterable[str] = ()) -> Discovery:
    """Every registration of the named clients, or of all.

    Raises ``BadSpecError`` for a client nobody knows.
    """
    shelf = Shelf()
    found: list[Entry] = []
    empty: list[Place] = []
    for client in _chosen(clients):
        if client.id == "claude-code":
            mine, empty = claude.gather(client, machine, shelf)
        else:
            mine = [
                entry for file in client.files(machine) for entry in entries(client, file, shelf.open(client, file))
            ]  # fmt: skip
            if client.id == "codex":
                _codex(machine, mine, shelf)
            elif client.id == "gemini-cli":
                _gemini(mine)
            elif client.id == "claude-desktop":
                _extensions(mine, shelf)
            if client.by_name:
                _first_of_a_name_wins(mine)
        found += mine
    return _discovery(found, shelf, machine, empty)


def from_file(machine: Machine, spec: str) -> Discovery:
    """The registrations of one file, given as ``FILE`` or ``FILE:NAME``.

    Without a name, the entries that are CPersona; with one, the entries of that name, whatever they start. What only
    other files could tell (precedence, approval, trust) is not judged. Raises ``BadSpecError`` when the file cannot
    be had or holds no such entry; of a broken file the faults are returned instead.
    """
    path, name = _split(machine, spec)
    shelf = Shelf()
    document = shelf.read(path, "toml" if path.suffix.lower() == ".toml" else "jsonc")
    if document.state == "unreadable":
        raise BadSpecError(f"{path} cannot be read: {document.problems[0].detail}")
    client, file = identify(machine, path, document.root)
    shelf = Shelf()
    document = shelf.open(client, file)
    mine = entries(client, file, document)
    if client.id == "claude-code":
        mine += claude.local_entries(client, file, document)
    if name:
        chosen = [entry for entry in mine if entry.name == name]
        if not chosen and document.state == "read":
            raise BadSpecError(f"{path} has no entry “{safe(name)}”; {_names(mine)}")
        return Discovery(tuple(registration(entry, machine) for entry in chosen), tuple(shelf.looked))
    found = _discovery(mine, shelf, machine, [])
    if not found.registrations and document.state == "read":
        hint = f"; name one with {path}:NAME" if mine else ""
        raise BadSpecError(f"nothing in {path} looks like CPersona; {_names(mine)}{hint}")
    return found


def from_process(machine: Machine) -> Discovery:
    """This process's environment as one registration, as a container or a CI step would start the server."""
    place = Place(words="this process's environment")
    variables = tuple(
        Variable(name, value, place, "process")
        for name, value in sorted(machine.env.items())
        if _PROCESS_NAMES.fullmatch(name)
    )
    client = CLIENTS["env"]
    found = Registration(
        client=client.id,
        client_title=client.title,
        scope="process",
        name="env",
        place=place,
        variables=variables,
        launch=Launch(kind=LaunchKind.PROCESS, package="cpersona"),
    )
    return Discovery((found,), ())


def _chosen(names: Iterable[str]) -> list[Client]:
    wanted = list(names)
    for name in wanted:
        if name not in CLIENTS:
            meant = nearest(name, CLIENTS)
            hint = f"did you mean {meant}?" if meant else f"known are {', '.join(CLIENTS)}"
            raise BadSpecError(f"there is no client “{safe(name)}”; {hint}")
    return [client for client in CLIENTS.values() if not wanted or client.id in wanted]


def _discovery(found: Iterable[Entry], shelf: Shelf, machine: Machine, empty: Sequence[Place]) -> Discovery:
    ours: list[Registration] = []
    servers: list[Registration] = []
    for entry in found:
        built = registration(entry, machine)
        kind = program(built)
        if kind:
            (ours if kind == "cpersona" else servers).append(built)
    return Discovery(tuple(ours), tuple(shelf.looked), tuple(servers), tuple(empty))


def _names(found: Sequence[Entry]) -> str:
    names = ", ".join(f"“{safe(name)}”" for name in dict.fromkeys(entry.name for entry in found))
    return f"its entries are {names}" if names else "it has no entries of MCP servers"


def _split(machine: Machine, spec: str) -> tuple[Path, str]:
    """File and name of a spec: the longest beginning that is a file wins, so that colons in either do no harm."""
    at = len(spec)
    while at > 0:
        path = _resolved(machine, spec[:at])
        if os.path.lexists(path):
            return path, spec[at + 1 :]
        at = spec.rfind(":", 0, at)
    head, colon, _ = spec.rpartition(":")
    drive = re.fullmatch(r"[A-Za-z]", head) is not None
    raise BadSpecError(f"there is no file {_resolved(machine, head if colon and head and not drive else spec)}")


def _resolved(machine: Machine, text: str) -> Path:
    if text == "~" or text.startswith(("~/", "~\\")):
        return machine.home / text[2:]
    return machine.cwd / text


def _first_of_a_name_wins(found: Iterable[Entry]) -> None:
    winners: dict[str, Entry] = {}
    for entry in found:
        winner = winners.setdefault(entry.name, entry) if entry.status is Status.ACTIVE else entry
        if winner is not entry:
            why = f"the entry of the same name in {winner.place} ({winner.scope}) goes before it"
            entry.put(Status.HIDDEN, "scope", why)


def _codex(machine: Machine, found: Sequence[Entry], shelf: Shelf) -> None:
    """Codex reads a project's file only in a project the user has declared trusted."""
    user = codex_home(machine) / "config.toml"
    root = shelf.read(user, "toml").root
    projects = root.find("projects") if root is not None else None
    trusted = {
        spelling(machine, name)
        for name, record in (projects.members.items() if projects is not None else ())
        if (level := record.find("trust_level")) is not None and level.value == "trusted"
    }
    if trusted.isdisjoint(spelling(machine, str(folder)) for folder in project_folders(machine)):
        for entry in found:
            if entry.scope == "project":
                why = f"Codex reads this file only in a trusted project; {user} does not name this one as trusted"
                entry.put(Status.PENDING, "untrusted", why)


def _gemini(found: Sequence[Entry]) -> None:
    """Gemini CLI keeps lists of the servers it may and must not start."""
    for entry in found:
        root = entry.document.root
        for path, listed in (
            (("mcp", "excluded"), True),
            (("excludeMCPServers",), True),
            (("mcp", "allowed"), False),
            (("allowMCPServers",), False),
        ):
            names = root.find(*path) if root is not None else None
            if names is None:
                continue
            if (entry.name in {item.text for item in names.items}) is listed:
                said = "names it" if listed else "does not name it"
                entry.put(Status.DISABLED, "switch", f"“{'.'.join(path)}” in {entry.file.path} {said}")


def _extensions(found: Sequence[Entry], shelf: Shelf) -> None:
    """An extension's switch stands in a file of its own."""
    for entry in found:
        if entry.scope == "extension":
            folder = entry.file.path.parent
            settings = folder.parent.parent / "Claude Extensions Settings" / f"{folder.name}.json"
            root = shelf.read(settings).root
            switch = root.find("isEnabled") if root is not None else None
            if switch is not None and switch.value is False:
                entry.put(Status.DISABLED, "switch", f"the extension is switched off (“isEnabled” in {settings})")
