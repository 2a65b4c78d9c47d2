"""Claude Code's own rules: local servers of each project, approval, switches, plugins, and who wins.

Order: local, project, user, plugin; an administrator's file excludes all others. A project's ``.mcp.json`` needs the
user's approval. Plugins never collide by name; one that starts the same command as another entry gives way.
Source: code.claude.com, pages on MCP, settings and plugins.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from cpersona_cli.install.clients.entries import Entry, Shelf, container_entries, entries
from cpersona_cli.install.clients.table import (
    Client,
    ClientFile,
    claude_folder,
    claude_managed,
    claude_state,
    project_folders,
    spelling,
)
from cpersona_cli.install.files.documents import Document
from cpersona_cli.install.files.tree import Node
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Place, Status, Variable
from cpersona_cli.record import record, replace

_KEY = ("mcpServers",)


@record
class _Folder:
    """What is decided for one project folder: who is approved or switched off, and what the settings add to the env."""

    approved: frozenset[str] = frozenset()
    all_approved: bool = False
    rejected: frozenset[str] = frozenset()
    switched_off: frozenset[str] = frozenset()
    plugins: tuple[tuple[str, bool], ...] = ()
    inherited: tuple[Variable, ...] = ()


def gather(client: Client, machine: Machine, shelf: Shelf) -> tuple[list[Entry], list[Place]]:
    """Every entry of Claude Code in order of precedence, and the empty ``mcpServers`` objects of its projects."""
    files = list(client.files(machine))
    found = {file.path: entries(client, file, shelf.open(client, file)) for file in files}
    state_file = next(file for file in files if file.path == claude_state(machine))
    state = shelf.open(client, state_file)
    records = dict(_records(state))
    here = [spelling(machine, str(folder)) for folder in dict.fromkeys((machine.cwd, project_folders(machine)[-1]))]

    def of(*scopes: str) -> list[Entry]:
        return [entry for file in files if file.scope in scopes and not file.unread for entry in found[file.path]]

    local = {name: _local(client, state_file, state, name, kept) for name, kept in records.items()}
    current = [name for folder in here for name in records if spelling(machine, name) == folder]
    folder = _decided(machine, shelf, machine.cwd, [records[name] for name in current])
    plugins = list(_plugins(client, machine, shelf, folder))
    view = [*(entry for name in current for entry in local[name]), *of("project"), *of("user"), *plugins]
    _judge(view, folder)
    others: list[Entry] = []
    for name, kept in records.items():
        if name not in current:
            elsewhere = [*local[name], *_committed(client, shelf, Path(name), known=found)]
            if elsewhere:
                _judge(elsewhere, _decided(machine, shelf, Path(name), [kept]))
            others += elsewhere
    managed = of("managed")
    if managed:
        why = f"{managed[0].place.file} is managed by an administrator, and with it Claude Code starts no other servers"
        for entry in (*view, *others):
            entry.put(Status.HIDDEN, "scope", why)
    unread = [entry for file in files if file.unread for entry in found[file.path]]
    empty = [
        replace(state.place(node), words=name)
        for name, kept in records.items()
        if (node := kept.find(*_KEY)) is not None and node.value == {}
    ]
    return [*managed, *view, *others, *unread], empty


def local_entries(client: Client, file: ClientFile, state: Document) -> list[Entry]:
    """The local servers of every project in a state file, not judged."""
    return [entry for name, kept in _records(state) for entry in _local(client, file, state, name, kept)]


def _records(state: Document) -> Iterator[tuple[str, Node]]:
    projects = state.root.find("projects") if state.root is not None else None
    if projects is not None:
        yield from projects.members.items()


def _local(client: Client, file: ClientFile, state: Document, name: str, kept: Node) -> list[Entry]:
    container = kept.find(*_KEY)
    if container is None:
        return []
    return list(container_entries(client, file, state, container, scope="local", project=Path(name)))


def _committed(client: Client, shelf: Shelf, project: Path, known: Container[Path]) -> list[Entry]:
    """The entries of the ``.mcp.json`` of a project that is not the working directory."""
    path = project / ".mcp.json"
    if not project.is_absolute() or path in known:
        return []
    file = ClientFile(path=path, scope="project", key=_KEY, project=project, listed=False)
    return entries(client, file, shelf.open(client, file))


def _settings(machine: Machine, folder: Path) -> list[Path]:
    """The settings files that hold for a folder, the weakest first."""
    mine = [claude_folder(machine) / "settings.json"]
    if folder.is_absolute():
        mine += [folder / ".claude" / name for name in ("settings.json", "settings.local.json")]
    return [*dict.fromkeys(mine), claude_managed(machine) / "managed-settings.json"]


def _decided(machine: Machine, shelf: Shelf, folder: Path, records: Iterable[Node]) -> _Folder:
    """What the user has decided for a folder, in its record and in the settings."""
    documents = [shelf.read(path) for path in _settings(machine, folder)]
    roots = [document.root for document in documents if document.root is not None] + list(records)
    env: dict[str, Variable] = {}
    plugins: dict[str, bool] = {}
    for document in documents:
        if document.root is None:
            continue
        block = document.root.find("env")
        for name, node in block.members.items() if block is not None else ():
            if isinstance(node.value, str):
                env[name] = Variable(name, node.value, document.place(node), "client settings")
        switches = document.root.find("enabledPlugins")
        if switches is not None:
            plugins |= {name: node.value is True for name, node in switches.members.items()}

    def names(key: str) -> frozenset[str]:
        lists = (root.find(key) for root in roots)
        return frozenset(item.text for found in lists if found is not None for item in found.items)

    switch = (root.find("enableAllProjectMcpServers") for root in roots)
    return _Folder(
        approved=names("enabledMcpjsonServers"),
        all_approved=any(node is not None and node.value is True for node in switch),
        rejected=names("disabledMcpjsonServers"),
        switched_off=names("disabledMcpServers"),
        plugins=tuple(plugins.items()),
        inherited=tuple(env.values()),
    )


def _judge(view: list[Entry], folder: _Folder) -> None:
    """Say of each entry of one folder, given in order of precedence, whether Claude Code would start it there."""
    winners: dict[str, Entry] = {}
    started: dict[object, Entry] = {}
    for entry in view:
        entry.inherited = folder.inherited
        if entry.name in folder.switched_off:
            entry.put(Status.DISABLED, "switch", "it is switched off for this project (“disabledMcpServers”, see /mcp)")
        if entry.scope == "project":
            _approval(entry, folder)
        if entry.status is not Status.ACTIVE:
            continue
        winner = winners.get(entry.name) or (started.get(_start(entry)) if entry.scope == "plugin" else None)
        if winner is not None:
            why = f"“{winner.name}” of the {winner.scope} scope ({winner.place}) goes before it"
            entry.put(Status.HIDDEN, "scope", why)
            continue
        winners[entry.name] = entry
        started.setdefault(_start(entry), entry)


def _approval(entry: Entry, folder: _Folder) -> None:
    if entry.name in folder.rejected:
        entry.put(Status.DISABLED, "switch", "the user has rejected it for this project (“disabledMcpjsonServers”)")
    elif not folder.all_approved and entry.name not in folder.approved:
        why = (
            "servers of a project's .mcp.json wait for the user's approval: start claude in the project and approve it"
        )
        entry.put(Status.PENDING, "approval", why)


def _start(entry: Entry) -> object:
    """What an entry starts or calls, for comparing two of different names."""
    members = entry.node.members
    args = members["args"].items if "args" in members else []
    words = tuple(members[key].text for key in ("command", "url") if key in members)
    return words, tuple(item.text for item in args)


def _plugins(client: Client, machine: Machine, shelf: Shelf, folder: _Folder) -> Iterator[Entry]:
    """The servers that installed plugins bring along; a plugin starts only where it is switched on."""
    installed = shelf.read(claude_folder(machine) / "plugins" / "installed_plugins.json")
    table = installed.root.find("plugins") if installed.root is not None else None
    switches = dict(folder.plugins)
    for name, kept in table.members.items() if table is not None else ():
        copies = [copy.find("installPath") for copy in (kept, *kept.items)]
        for path in dict.fromkeys(node.text for node in copies if node is not None and node.text):
            for entry in _plugin(client, shelf, Path(path)):
                entry.name = f"{name.partition('@')[0]}:{entry.name}"
                if not switches.get(name, False):
                    why = f"the plugin {name} is not switched on (“enabledPlugins” in the settings)"
                    entry.put(Status.DISABLED, "switch", why)
                yield entry


def _plugin(client: Client, shelf: Shelf, root: Path) -> Iterator[Entry]:
    """The entries of one plugin: its ``.mcp.json``, and what its manifest holds or points to."""
    if not root.is_absolute():
        return
    manifest = root / ".claude-plugin" / "plugin.json"
    document = shelf.read(manifest)
    servers = document.root.find(*_KEY) if document.root is not None else None
    paths = [".mcp.json"]
    if servers is not None:
        if servers.members:
            file = ClientFile(path=manifest, scope="plugin", key=_KEY, listed=False)
            yield from entries(client, file, shelf.open(client, file))
        paths += [node.text for node in (servers, *servers.items) if node.text]
    for path in dict.fromkeys(os.path.normpath(root / path.replace("${CLAUDE_PLUGIN_ROOT}", ".")) for path in paths):
        file = ClientFile(path=Path(path), scope="plugin", key=_KEY, bare=True, listed=False)
        yield from entries(client, file, shelf.open(client, file))
