"""How the reference embedding server is started on this machine: by a client, a service unit, a launch agent, compose.

Only what is written down is looked at; nothing is started or asked. Values stand as they are written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from cpersona_cli.install.files.bounded import line_of, read_bounded
from cpersona_cli.install.launch import compose
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Discovery, Environment, LaunchKind, Place, Registration
from cpersona_cli.record import field, record

Manner = Literal["client", "unit", "agent", "compose"]

#: Where the server listens when EMBEDDING_HTTP_PORT says nothing.
DEFAULT_PORT = 8401

#: Vector widths of the providers that name one model (the reference server's own table).
PROVIDER_WIDTHS: Mapping[str, int] = {
    "onnx_miniml": 384,
    "onnx_jina_v5_nano": 768,
    "onnx_bge_m3": 1024,
    "mlx_bge_m3": 1024,
    "auto_bge_m3": 1024,
}

_LARGEST_FILE = 256 * 1024


@record(kw_only=True)
class EmbeddingServer:
    """One start of the reference embedding server.

    ``title`` is what a person would call it. ``variables`` are name -> text as written. ``whole`` is False when more
    variables may come from a place that could not be read, so that an absent name proves nothing. ``holds_stdin`` tells
    whether something keeps its standard input open: the server ends as soon as that closes. ``cwd`` is the folder
    it is started in, where one is named.
    """

    title: str
    place: Place
    manner: Manner
    variables: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True
    holds_stdin: bool = True
    container: bool = False
    cwd: str = ""

    def get(self, name: str, default: str = "") -> str:
        """The text of one variable; an empty text counts as unset."""
        return self.variables.get(name) or default

    @property
    def port(self) -> int | None:
        """The port its REST interface listens on, or None when what is written is no number."""
        text = self.get("EMBEDDING_HTTP_PORT", str(DEFAULT_PORT)).strip()
        return int(text) if re.fullmatch(r"[0-9]{1,5}", text) else None

    @property
    def width(self) -> int | None:
        """Numbers per vector of the model its provider stands for, where the provider fixes it."""
        return PROVIDER_WIDTHS.get(self.get("EMBEDDING_PROVIDER").strip())


def embedding_servers(
    discovery: Discovery, machine: Machine, environments: Mapping[int, Environment] | None = None
) -> tuple[EmbeddingServer, ...]:
    """Every start of the reference embedding server that is written down.

    Client entries come from ``discovery``; ``environments`` may give the effective environment of each by ``id()`` of
    its registration, otherwise only its own variables count and ``whole`` is False.
    """
    known = environments or {}
    found = [_from_client(entry, known.get(id(entry))) for entry in discovery.embedding_servers]
    found.extend(_from_units(machine))
    found.extend(_from_agents(machine))
    found.extend(_from_compose(discovery, machine))
    return tuple(found)


def _from_client(entry: Registration, environment: Environment | None) -> EmbeddingServer:
    if environment is None:
        variables = {v.name: v.text for v in (*entry.variables, *entry.launch.variables)}
    else:
        variables = {name: value.text for name, value in environment.values.items()}
    docker = entry.launch.kind in {LaunchKind.DOCKER, LaunchKind.COMPOSE}
    return EmbeddingServer(
        title=f"entry “{entry.name}” of {entry.label}",
        place=entry.place,
        manner="client",
        variables=variables,
        whole=environment is not None and not entry.launch.env_files,
        # A client keeps a pipe to what it starts; docker hands it on only when told to.
        holds_stdin=entry.launch.interactive or not docker,
        container=docker,
        cwd=entry.cwd,
    )


def _text(path: Path) -> str | None:
    """The text of a small file that speaks of the embedding server, else None."""
    text = read_bounded(path, _LARGEST_FILE).text
    return text if "cembedding" in text else None


def _files(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except (OSError, ValueError):
        return []


def _from_units(machine: Machine) -> Iterator[EmbeddingServer]:
    """Service units of systemd: the user's own and the administrator's."""
    if machine.system != "linux":
        return
    folders = (machine.config / "systemd" / "user", machine.root / "etc" / "systemd" / "system")
    for path in (path for folder in folders for path in _files(folder, "*.service")):
        text = _text(path)
        server = None if text is None else _unit(path, text)
        if server is not None:
            yield server


def _unit(path: Path, text: str) -> EmbeddingServer | None:
    variables: dict[str, str] = {}
    whole, stdin, cwd, start, line = True, "null", "", "", 0
    joined = text.replace("\\\n", "  ")
    for row in joined.splitlines():
        name, equals, value = row.strip().partition("=")
        name, value = name.strip(), value.strip()
        if not equals or name.startswith(("#", ";")):
            continue
        if name == "ExecStart" and "cembedding" in value:
            start, line = value, line_of(text, "ExecStart") or 1
        elif name == "Environment":
            variables.update(_assignments(_words(value)))
        elif name == "EnvironmentFile":
            named = value.removeprefix("-")
            more = _environment_file(path.parent, named)
            whole = whole and more is not None
            variables.update(more or {})
        elif name == "StandardInput":
            stdin = value
        elif name == "WorkingDirectory":
            cwd = value.removeprefix("-")
    if not start:
        return None
    return EmbeddingServer(
        title=f"service unit {path.name}",
        place=Place(path, line),
        manner="unit",
        variables=variables,
        whole=whole,
        holds_stdin="|" in start or stdin.startswith(("tty", "socket", "fd")),
        container=bool(re.search(r"\b(docker|podman)\b", start)),
        cwd=cwd,
    )


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _assignments(words: Iterable[str]) -> dict[str, str]:
    pairs = (word.partition("=") for word in words)
    return {name: value for name, equals, value in pairs if equals and name}


def _environment_file(folder: Path, named: str) -> dict[str, str] | None:
    """``NAME=VALUE`` lines, or None when the file cannot be read (``%h`` and the like are not followed)."""
    if not named or "%" in named:
        return None
    content = read_bounded(folder / named, _LARGEST_FILE)
    if content.state != "read":
        return None
    rows = (row.strip() for row in content.text.splitlines())
    pairs = (row.partition("=") for row in rows if row and not row.startswith(("#", ";")))
    return {name.strip(): value.strip().strip("\"'") for name, equals, value in pairs if equals}


def _from_agents(machine: Machine) -> Iterator[EmbeddingServer]:
    """Launch agents and daemons of macOS."""
    if machine.system != "darwin":
        return
    folders = (machine.home / "Library" / "LaunchAgents", machine.root / "Library" / "LaunchDaemons")
    for path in (path for folder in folders for path in _files(folder, "*.plist")):
        text = _text(path)
        if text is None:
            continue
        import plistlib  # noqa: PLC0415 - only where such a file exists
        from xml.parsers.expat import ExpatError  # noqa: PLC0415

        try:
            agent = plistlib.loads(text.encode())
        except (plistlib.InvalidFileException, ExpatError, ValueError, TypeError, AttributeError, LookupError):
            continue
        arguments = agent.get("ProgramArguments") if isinstance(agent, dict) else None
        words = [word for word in arguments if isinstance(word, str)] if isinstance(arguments, list) else []
        if not any("cembedding" in word for word in words):
            continue
        block = agent.get("EnvironmentVariables")
        folder = agent.get("WorkingDirectory")
        yield EmbeddingServer(
            title=f"launch agent {path.name}",
            place=Place(path, line_of(text, "<key>ProgramArguments")),
            manner="agent",
            variables={str(k): str(v) for k, v in block.items()} if isinstance(block, dict) else {},
            holds_stdin=any("|" in word for word in words),
            cwd=folder if isinstance(folder, str) else "",
        )


def _from_compose(discovery: Discovery, machine: Machine) -> Iterator[EmbeddingServer]:
    """Compose files in this folder and in the project folders of registrations."""
    projects = (entry.project for entry in discovery.registrations if entry.project is not None)
    for folder in dict.fromkeys((machine.cwd, *projects)):
        for name in compose.NAMES:
            if _text(folder / name) is not None:
                yield from _services(folder / name)


def _services(path: Path) -> Iterator[EmbeddingServer]:
    """The services of a compose file whose image or command is the embedding server.

    An image brings variables of its own, so an absent name proves nothing: none of them is ``whole``.
    """
    root, _ = compose.read(path)
    services = None if root is None else root.get("services")
    if services is None or not isinstance(services.value, dict):
        return
    for name, service in services.value.items():
        starts = " ".join(_texts(service.get(key)) for key in ("image", "command", "entrypoint"))
        if "cembedding" not in starts:
            continue
        held = (service.get(key) for key in ("stdin_open", "tty"))
        yield EmbeddingServer(
            title=f"service “{name}” of {path.name}",
            place=Place(path, service.line),
            manner="compose",
            variables=_environment(service.get("environment")),
            whole=False,
            holds_stdin="|" in starts or any(node is not None and node.text == "true" for node in held),
            container=True,
        )


def _texts(node: compose.Node | None) -> str:
    """The words of a text or of a list of texts."""
    if node is None:
        return ""
    return " ".join(item.text for item in node.value) if isinstance(node.value, list) else node.text


def _environment(node: compose.Node | None) -> dict[str, str]:
    if node is not None and isinstance(node.value, dict):
        return {name: value.text for name, value in node.value.items() if value.value is not None}
    return _assignments(item.text for item in node.value) if node is not None and isinstance(node.value, list) else {}
