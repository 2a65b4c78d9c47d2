"""What is known of an installation: where a value stands, what a client would start, and with which environment."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Literal

from cpersona_cli.record import field, record

System = Literal["linux", "darwin", "windows"]


@record
class Place:
    """Where something stands: a file with a one-based line and column, or words such as ``this shell``."""

    file: Path | None = None
    line: int | None = None
    column: int | None = None
    words: str = ""

    def __str__(self) -> str:
        if self.file is None:
            return self.words or "unknown place"
        position = f":{self.line}" if self.line else ""
        return f"{self.file}{position}"


@record
class Variable:
    """One environment variable as a file spells it; ``raw`` may be no string at all, which clients punish."""

    name: str
    raw: str | float | bool | list[object] | dict[str, object] | None
    place: Place
    origin: str = "env block"

    @property
    def text(self) -> str:
        """The value as a string, a non-string as most clients would stringify it."""
        return self.raw if isinstance(self.raw, str) else str(self.raw)


@record
class Value:
    """A variable of an effective environment: its final text and how it came about.

    ``raw`` is the text before the client expanded it. ``unresolved`` names what could not be expanded and why; then
    ``text`` is what the server would receive as far as that is known (usually the literal text).
    """

    text: str
    place: Place
    origin: str
    raw: str = ""
    unresolved: str = ""


@record
class Environment:
    """The environment a server would be started with.

    ``base`` says what the client hands on before the env block: ``whitelist`` (a fixed, known set), ``shell`` (all of
    the environment the client itself was started with, taken to be this shell's) or ``none`` (the client was started
    by the desktop, with nothing of the shell's). ``process`` is this process's own, ``container`` and ``wsl`` are
    other systems that see only what the command line hands over; then ``outer`` is the environment of the program that
    the client itself starts. ``problems`` are sentences about what should have been read, such as an environment file,
    and could not be. ``assumption`` is set where two environments are made of one registration: which of the two bases
    this one assumes of the client, also for a server in a container.
    """

    base: Literal["whitelist", "shell", "none", "process", "container", "wsl"]
    values: Mapping[str, Value]
    problems: tuple[str, ...] = ()
    outer: Mapping[str, Value] = field(default_factory=dict)
    assumption: Literal["", "none", "shell"] = ""

    def get(self, name: str) -> str | None:
        value = self.values.get(name)
        return None if value is None else value.text


class Status(StrEnum):
    """Whether a client would start the entry at all."""

    ACTIVE = "active"
    HIDDEN = "hidden"  # another scope of the same client wins
    DISABLED = "disabled"  # switched off in the client
    PENDING = "pending"  # waits for the user's approval or trust
    IGNORED = "ignored"  # stands where the client does not read it


class LaunchKind(StrEnum):
    """How the command line starts the server."""

    UVX = "uvx"  # any command of uv: uvx, uv tool run, uv run
    PIPX = "pipx"
    SCRIPT = "script"
    MODULE = "module"
    DOCKER = "docker"
    COMPOSE = "compose"
    PROXY = "proxy"
    REMOTE = "remote"
    PROCESS = "process"
    UNKNOWN = "unknown"


@record(kw_only=True)
class Launch:
    """A command line understood.

    ``program`` is the word that must be found on PATH; ``requirement`` a uv requirement such as ``cpersona@latest``;
    ``python`` the interpreter of a module launch; ``image`` a container image; ``variables`` those carried by the
    command line itself (``docker -e``, ``env NAME=VALUE``, compose); ``passed`` names handed on from the client's own
    environment (``docker -e NAME``); ``mounts`` are (host, container) paths; ``leftover`` words the server ignores.
    ``inside`` tells where the process runs.

    ``package`` is the distribution whose program the words start, told by command and arguments and never by an entry's
    name; empty when the words do not say (an image or a wrapper of any name may hold a server). ``python`` is also the
    ``--python`` of uv. ``beside`` are distributions installed beside it (``uvx --with``). ``fresh``: every start asks
    for the newest release. ``cwd`` is a folder the command line changes into, ``project`` that of ``uv run``; ``url``
    what a bridge to a remote server points at; ``wrapper`` an unknown program in front that may change anything;
    ``unset`` names the command line removes (``*``: all); ``unclear`` sentences about what could not be told.
    """

    kind: LaunchKind
    package: Literal["", "cpersona", "cembedding"] = ""
    program: str = ""
    requirement: str = ""
    python: str = ""
    image: str = ""
    variables: tuple[Variable, ...] = ()
    passed: tuple[str, ...] = ()
    env_files: tuple[str, ...] = ()
    mounts: tuple[tuple[str, str], ...] = ()
    leftover: tuple[str, ...] = ()
    interactive: bool = True
    network_host: bool = False
    inside: Literal["host", "container", "wsl"] = "host"
    words: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    fresh: bool = False
    cwd: str = ""
    project: str = ""
    url: str = ""
    wrapper: str = ""
    unset: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()

    @property
    def made_earlier(self) -> bool:
        """Whether it enters a container that exists already, whose image, variables and mounts the words do not say."""
        return self.inside == "container" and not self.image and self.kind is not LaunchKind.COMPOSE


@record(kw_only=True)
class Registration:
    """One entry of one client file that starts, or would start, CPersona.

    ``cause`` is a short stable word for why ``status`` is not ``active`` (``key``, ``file``, ``scope``, ``approval``,
    ``switch``, ``untrusted``, ``shape``) and ``why`` the sentence. ``project`` is the folder of a local or project
    scope. ``fields`` holds the entry's other plain fields (``timeout``, ``startup_timeout_sec``, ``type`` ...).
    """

    client: str
    client_title: str
    scope: str
    name: str
    place: Place
    transport: Literal["stdio", "http"] = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    env_place: Place | None = None
    env_shape: str = "object"
    env_file: str = ""
    launch: Launch = Launch(kind=LaunchKind.UNKNOWN)
    status: Status = Status.ACTIVE
    cause: str = ""
    why: str = ""
    project: Path | None = None
    fields: Mapping[str, object] = field(default_factory=dict)
    inherited: tuple[Variable, ...] = ()  # what the client's own settings put into its environment
    torn: bool = False  # its file breaks off, so that parts of the entry may be missing

    @property
    def label(self) -> str:
        """How a person would point at it: ``Claude Code (user)``."""
        return f"{self.client_title} ({self.scope})" if self.scope not in {"", "process"} else self.client_title


class ProblemKind(StrEnum):
    """What can be wrong with a client's file as a file."""

    EMPTY = "empty"
    BOM = "bom"
    UTF16 = "utf-16"
    NOT_UTF8 = "not-utf8"
    SYNTAX = "syntax"
    TRUNCATED = "truncated"
    COMMENT = "comment"
    TRAILING_COMMA = "trailing-comma"
    DUPLICATE = "duplicate"
    SHAPE = "shape"
    UNREADABLE = "unreadable"


@record
class Problem:
    """One thing wrong with a document. ``fatal``: the owning client will not read the file at all."""

    kind: ProblemKind
    place: Place
    detail: str
    fatal: bool
    advice: str = ""


@record
class Looked:
    """A file that was looked for. ``mentions``: the text speaks of CPersona, readable or not."""

    client: str
    path: Path
    state: Literal["absent", "read", "broken", "unreadable"]
    problems: tuple[Problem, ...] = ()
    mentions: bool = False
    mtime: float | None = None  # Unix time in seconds


@record
class Discovery:
    """Everything found: the registrations in order of precedence, and every file looked for."""

    registrations: tuple[Registration, ...]
    looked: tuple[Looked, ...]
    embedding_servers: tuple[Registration, ...] = ()  # entries that start the reference embedding server
    empty_projects: tuple[Place, ...] = ()  # empty mcpServers objects of Claude Code's projects; words name the project


@record(kw_only=True)
class Interpreter:
    """The Python that would run a server, asked directly: its release, its SQLite, and what that SQLite can do."""

    python: Path
    release: str = ""
    sqlite: str = ""
    fts5: bool = True
    trigram: bool = True
    problem: str = ""


@record(kw_only=True)
class ServerVersion:
    """Which CPersona a registration would start.

    ``version`` is None when it cannot be told without starting it; ``evidence`` says how it was told or why not.
    ``interpreter`` is what would run it, where known; ``site`` its site-packages. ``floating``: the next start may
    bring another release. ``packages`` are the other distributions beside it that matter (``mcp``, ``cembedding``).
    ``script_owner`` is the distribution that owns the ``cpersona`` script of that environment.
    """

    version: str | None
    evidence: str
    interpreter: Interpreter | None = None
    site: Path | None = None
    floating: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)
    script_owner: str = ""
    program: Path | None = None  # the file the command word resolves to with the client's PATH
    installed: float | None = None  # when its files were written, Unix time in seconds
    program_problem: str = ""  # why it would not start: not found, not executable, only on the shell's PATH
    program_write: str = ""  # the path that would work in its place
    program_command: str = ""  # what makes the file itself work, for a shell
    program_doubt: str = ""  # it would start, and perhaps the wrong thing


@record(kw_only=True)
class Process:
    """A live server process; ``started`` is a Unix time in seconds, where the system tells."""

    pid: int
    command: str = ""
    started: float | None = None
    environment: Mapping[str, str] | None = None  # CPERSONA_* and EMBEDDING_* only; None: the system hides them


@record
class DatabasePath:
    """The database a server would open: ``text`` as configured, ``path`` as a file of this machine, or why not.

    A container path is translated through its mounts; ``path`` is None where no mount holds it.
    """

    text: str
    place: Place
    path: Path | None
    why: str = ""
