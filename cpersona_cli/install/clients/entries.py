"""Server entries of client files: found in their right and in their wrong places, and turned into registrations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cpersona_cli.install.clients.table import Client, ClientFile
from cpersona_cli.install.files.documents import Document, read
from cpersona_cli.install.files.tree import Flavour, Node
from cpersona_cli.install.launch.understand import understand
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Looked, Place, ProblemKind, Registration, Status, Variable
from cpersona_cli.record import replace

Program = Literal["", "cpersona", "cembedding"]

# Fields of an entry that have a place of their own in a Registration.
_KNOWN = frozenset({"command", "args", "env", "url", "httpUrl", "serverUrl", "cwd"})
_URLS = ("url", "httpUrl", "serverUrl")
_REMOTE = frozenset({"http", "sse", "streamable-http", "streamable_http", "streamableHttp"})
_OURS = re.compile(r"CPERSONA_", re.IGNORECASE)
# How deep below the top of a file an entry may have strayed.
_DEPTH = 3


@dataclass(slots=True, kw_only=True)
class Entry:
    """One server entry of one file, of whatever program. ``stray_env``: it is an env block outside of any entry."""

    client: Client
    file: ClientFile
    document: Document
    name: str
    node: Node
    scope: str
    project: Path | None = None
    status: Status = Status.ACTIVE
    cause: str = ""
    why: str = ""
    stray_env: bool = False
    inherited: tuple[Variable, ...] = ()

    @property
    def place(self) -> Place:
        return self.document.place(self.node)

    def put(self, status: Status, cause: str, why: str) -> None:
        """Note why the client does not start the entry; the first reason stays."""
        if self.status is Status.ACTIVE:
            self.status, self.cause, self.why = status, cause, why


class Shelf:
    """The files of one discovery: each is read once, and each that matters is noted."""

    def __init__(self) -> None:
        self._documents: dict[Path, Document] = {}
        self._noted: set[Path] = set()
        self.looked: list[Looked] = []

    def read(self, path: Path, flavour: Flavour = "json") -> Document:
        """Read a file without noting it."""
        document = self._documents.get(path)
        if document is None:
            document = self._documents[path] = read(path, flavour)
        return document

    def open(self, client: Client, file: ClientFile) -> Document:
        """Read one of a client's own files and note it."""
        document = self.read(file.path, file.flavour)
        if file.path not in self._noted and (file.listed or document.state != "absent"):
            self._noted.add(file.path)
            problems, state = document.problems, document.state
            if file.unread:  # nothing is lost by a fault in a file nobody reads
                problems = tuple(replace(problem, fatal=False) for problem in problems)
                state = "read" if state == "broken" else state
            mentions = "cpersona" in document.text.lower()
            self.looked.append(Looked(client.id, file.path, state, problems, mentions, document.mtime))
        return document


def entries(client: Client, file: ClientFile, document: Document) -> list[Entry]:
    """Every entry of a file: those where the client looks, then those that strayed."""
    if document.root is None:
        return []
    right = list(_in_place(client, file, document))
    strayed = [] if file.key == ("server", "mcp_config") else list(_strayed(client, file, document, right))
    found = right + strayed
    if file.unread:
        for entry in found:
            entry.status, entry.cause, entry.why = Status.IGNORED, "file", file.unread
    return found


def container_entries(
    client: Client, file: ClientFile, document: Document, container: Node, *, scope: str, project: Path | None
) -> Iterator[Entry]:
    """The entries of one servers object; an array of entries is shown too, though only ClotoCore reads one."""
    for name, node in container.members.items():
        entry = Entry(
            client=client, file=file, document=document, name=name, node=node, scope=scope, project=project
        )  # fmt: skip
        if isinstance(node.value, dict) and not _is_server(node) and any(_OURS.match(key) for key in node.members):
            entry.stray_env = True
            where = f"“{name}” stands among the servers; the env block belongs inside the server's own object"
            entry.put(Status.IGNORED, "shape", where)
        yield entry
    for number, node in enumerate(container.items):
        name = next((node.members[key].text for key in ("id", "name") if key in node.members), "") or f"#{number + 1}"
        entry = Entry(
            client=client, file=file, document=document, name=name, node=node, scope=scope, project=project
        )  # fmt: skip
        if client.id != "clotocore":
            why = f"“{file.key[-1]}” is an array; {client.title} expects an object with one member per server"
            entry.put(Status.IGNORED, "shape", why)
        yield entry


def _in_place(client: Client, file: ClientFile, document: Document) -> Iterator[Entry]:
    root = document.root
    assert root is not None  # noqa: S101 - told to the type checker; entries() has looked
    container = root.find(*file.key)
    if file.scope == "extension":
        if container is not None:
            name = (root.find("name") or root).text or file.path.parent.name
            yield Entry(client=client, file=file, document=document, name=name, node=container, scope=file.scope)
        return
    if container is None and file.bare:
        container = root
    if container is not None:
        yield from container_entries(
            client, file, document, container, scope=file.scope, project=file.project
        )  # fmt: skip


def _strayed(client: Client, file: ClientFile, document: Document, right: Iterable[Entry]) -> Iterator[Entry]:
    """Entries that stand where this client does not look, and an env block at the top of the file."""
    root = document.root
    assert root is not None  # noqa: S101 - told to the type checker; entries() has looked
    container = root.find(*file.key)
    known = {id(entry.node) for entry in right} | ({id(container)} if container is not None else set())
    todo: list[tuple[Node, tuple[str, ...]]] = [(root, ())]
    while todo:
        node, path = todo.pop(0)
        if id(node) in known or (client.id == "claude-code" and path == ("projects",)):
            continue
        if _is_server(node) and not (path and path[-1] in ("command", "config")):
            name = path[-1] if path else file.path.name
            why = _misplaced(client, file, path[:-1])
            yield Entry(
                client=client, file=file, document=document, name=name, node=node, scope=file.scope,
                project=file.project, status=Status.IGNORED, cause="key", why=why,
            )  # fmt: skip
        elif path == ("env",) and not file.own_env and any(_OURS.match(key) for key in node.members):
            why = "“env” stands at the top of the file; it belongs inside the server's own object"
            yield Entry(
                client=client, file=file, document=document, name="env", node=node, scope=file.scope,
                project=file.project, status=Status.IGNORED, cause="shape", why=why, stray_env=True,
            )  # fmt: skip
        elif len(path) < _DEPTH:
            todo += [(child, (*path, key)) for key, child in node.members.items() if child.members]


def _misplaced(client: Client, file: ClientFile, path: tuple[str, ...]) -> str:
    toml = file.flavour == "toml"
    wanted = ".".join(file.key)
    table = "[[servers]]" if client.id == "clotocore" else f"[{wanted}.NAME]"
    right = table if toml else f"“{wanted}”"
    if not path:
        here = "at the top level of the file"
    else:
        here = f"under [{'.'.join(path)}]" if toml else f"under “{'.'.join(path)}”"
    return f"{client.title} reads {right}; this entry stands {here}"


def _is_server(node: Node) -> bool:
    """Whether an object has what every server entry has: something to start or to call."""
    members = node.members
    command = members.get("command")
    if command is not None and command.shape in ("string", "object"):
        return bool(command.text) or "path" in command.members
    return any(key in members and "://" in members[key].text for key in _URLS)


def registration(entry: Entry, machine: Machine) -> Registration:
    """The entry as a registration, its command line understood. Wrong types are kept as far as they can be shown."""
    node, client, document = entry.node, entry.client, entry.document
    if entry.stray_env:
        return _registration(
            entry,
            variables=_variables(document, node),
            env_place=document.place(node),
            launch=understand("", (), machine),
        )
    if not isinstance(node.value, dict):
        entry.put(Status.IGNORED, "shape", f"“{entry.name}” is one {node.shape}; an object with a command belongs here")
        return _registration(entry, command=node.text, launch=understand(node.text, (), machine))
    node = _unwrapped(entry, node)
    members = node.members
    command, args = _command(entry, members)
    url = next((members[key].text for key in _URLS if key in members and members[key].text), "")
    kind = members["type"].text if "type" in members else ""
    remote = (bool(url) and not command) or kind in _REMOTE
    if not command and not url:
        entry.put(Status.IGNORED, "shape", f"“{entry.name}” has neither a command nor an address to call")
    env = members.get("env")
    shape = env.shape if env is not None else "object"
    if env is not None and shape not in ("object", "null"):
        why = f"“env” is one {shape}; it must be an object with one member per variable"
        entry.put(Status.IGNORED, "shape", why)
    if _is(members, "disabled", value=True) or _is(members, "enabled", value=False):
        switch = "disabled" if "disabled" in members else "enabled = false" if document.flavour == "toml" else "enabled"
        entry.put(Status.DISABLED, "switch", f"it is switched off in the file itself (“{switch}”)")
    headers = members.get("http_headers" if client.id == "codex" else "headers")
    env_file = members["envFile"].text if client.id in ("vscode", "cursor") and "envFile" in members else ""
    taken = _KNOWN | ({"http_headers"} if client.id == "codex" else {"headers"}) | ({"envFile"} if env_file else set())
    cwd = members["cwd"].text if "cwd" in members else ""
    base = (entry.project or machine.cwd) / cwd if cwd else entry.project
    return _registration(
        entry,
        transport="http" if remote else "stdio",
        command=command,
        args=args,
        cwd=cwd,
        url=url,
        headers={key: value.text for key, value in headers.members.items()} if headers is not None else {},
        variables=_variables(document, env) if env is not None else (),
        env_place=document.place(env) if env is not None else None,
        env_shape=shape,
        env_file=env_file,
        launch=understand("" if remote else command, () if remote else args, machine, base, url=url),
        fields={key: value.plain() for key, value in members.items() if key not in taken},
    )


def _registration(entry: Entry, **known: object) -> Registration:
    values: dict[str, object] = {
        "client": entry.client.id,
        "client_title": entry.client.title,
        "scope": entry.scope,
        "name": entry.name,
        "place": entry.place,
        "status": entry.status,
        "cause": entry.cause,
        "why": entry.why,
        "project": entry.project,
        "inherited": entry.inherited,
        "torn": any(problem.kind is ProblemKind.TRUNCATED for problem in entry.document.problems),
    }
    return Registration(**{**values, **known})  # type: ignore[arg-type]


def _unwrapped(entry: Entry, node: Node) -> Node:
    """The object with command and env: Zed once had them under ``command``, VS Code for a while under ``config``."""
    command, config = node.members.get("command"), node.members.get("config")
    if command is not None and "path" in command.members:
        inner = dict(command.members)
        inner["command"] = inner.pop("path")
        return Node({**node.members, **inner}, node.at, node.key_at)
    if command is None and config is not None and _is_server(config):
        entry.put(Status.IGNORED, "shape", "command and env stand one level too deep, under “config”")
        return Node({**node.members, **config.members}, node.at, node.key_at)
    return node


def _command(entry: Entry, members: dict[str, Node]) -> tuple[str, tuple[str, ...]]:
    command, args = members.get("command"), members.get("args")
    program = command.text if command is not None else ""
    words = tuple(item.text or _shown(item) for item in args.items) if args is not None else ()
    if command is not None and command.shape != "string":
        entry.put(Status.IGNORED, "shape", f"“command” is one {command.shape}; it must be the program as text")
        first, *rest = [item.text or _shown(item) for item in command.items] or [""]
        program, words = first, (*rest, *words)
    if args is not None and args.shape != "array":
        entry.put(Status.IGNORED, "shape", f"“args” is one {args.shape}; it must be an array of texts")
        words = (*words, *args.text.split())
    return program, words


def _shown(node: Node) -> str:
    return "" if node.value == "" else str(node.plain())


def _is(members: dict[str, Node], key: str, *, value: bool) -> bool:
    return key in members and members[key].value is value


def _variables(document: Document, env: Node) -> tuple[Variable, ...]:
    return tuple(
        Variable(name, value.plain(), document.place(value), "env block") for name, value in env.members.items()
    )


def program(found: Registration) -> Program:
    """Which program an entry belongs to, told by command, arguments, variables and address, never by its name alone.

    An entry whose command says nothing is CPersona when a variable of CPersona stands anywhere in it.
    """
    if found.launch.package:
        return found.launch.package
    names = {variable.name for variable in (*found.variables, *found.launch.variables)}
    names |= {*found.launch.passed, *found.fields}
    if any(_OURS.match(name) for name in names) or _calls(found):
        return "cpersona"
    return "cembedding" if "EMBEDDING_PROVIDER" in names else ""


def _calls(found: Registration) -> bool:
    """Whether a remote entry points at CPersona: its name in the address, its default port, or its token."""
    tokens = (*found.headers.values(), str(found.fields.get("bearer_token_env_var", "")))
    if any(_OURS.search(token) for token in tokens):
        return True
    address = re.split(r"[?#]", found.url or found.launch.url, maxsplit=1)[0].rpartition("@")[2].lower()
    old_port = "cpersona" in found.name.lower() and bool(re.search(r":8400(?=/|$)", address))
    return "cpersona" in address or old_port or bool(re.search(r":8402(?=/|$)", address))
