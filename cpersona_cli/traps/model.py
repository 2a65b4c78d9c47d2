"""The vocabulary of traps: a trap, what it may look at, and what it finds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from cpersona_cli.embedding.kinds import MEANINGS, Kind, Stage
from cpersona_cli.install.embedding_server import EmbeddingServer
from cpersona_cli.install.instructions import AlwaysLoaded
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import (
    DatabasePath,
    Discovery,
    Environment,
    Place,
    Registration,
    ServerVersion,
    Status,
    Variable,
)
from cpersona_cli.install.settings.effective import Effective, Settings
from cpersona_cli.install.sidefiles import SideFiles
from cpersona_cli.record import field, record, replace
from cpersona_cli.start.model import Start
from cpersona_cli.store.reading import Reading

if TYPE_CHECKING:
    from cpersona_cli.advisory.texts import Language
    from cpersona_cli.embedding.measured import Measured
    from cpersona_cli.fit.model import Fit
    from cpersona_cli.store.model import Census


class Severity(StrEnum):
    """How bad a finding is.

    ``fault``: the server does not start, or memories or vectors are silently lost or go to the wrong place.
    ``warning``: works now, but wrong or fragile. ``hint``: supported, and worth knowing.
    """

    FAULT = "fault"
    WARNING = "warning"
    HINT = "hint"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


class Group(StrEnum):
    """The order of groups is the order of the report."""

    NAMES = "names"
    NETWORK = "network"
    ENDPOINT = "endpoint"
    ADVISORY = "advisory"
    DATABASE = "database"
    VECTORS = "vectors"
    IDENTITY = "identity"
    RECALL = "recall"
    REGISTRATION = "registration"
    VERSION = "version"
    TRANSPORT = "transport"
    START = "start"
    TOOL = "tool"  # findings about a run of this tool itself, such as an expired waiver


class Needs(StrEnum):
    """What a trap looks at, and so how often it runs."""

    MACHINE = "machine"  # once: the files found, all registrations against each other
    REGISTRATION = "registration"  # once for each registration a client would start
    DATABASE = "database"  # once for each database
    ENDPOINT = "endpoint"  # once for each embedding endpoint, over the network
    START = "start"  # once for each registration whose server was started
    FIT = "fit"  # once for each database and endpoint that were measured against each other
    ADVISORY = "advisory"  # once for each registration whose advisory was previewed


class CannotTellError(Exception):
    """Raised by a trap that could not find out; the check becomes ``unknown`` with this reason."""


class SkipError(Exception):
    """Raised by a trap that has nothing to look at; the check is ``skipped`` with this reason."""


@record(kw_only=True)
class Repair:
    """The one thing that fixes it: a sentence, complete commands to copy, or the exact text to write, and where."""

    prose: str
    commands: tuple[str, ...] = ()
    edit: str = ""
    place: Place | None = None


@record(kw_only=True)
class Finding:
    """One thing found wrong.

    ``subject`` is what a person would call it (``Claude Code (user)``, a database path), ``place`` where the wrong
    thing stands, ``about`` the setting, table or field. ``trap``, ``severity``, ``expected`` and ``costs`` come from
    the trap unless the finding knows better. ``depends`` says under which condition it holds, if not always.
    """

    measured: str
    repair: Repair
    subject: str = ""
    about: str = ""
    place: Place | None = None
    expected: str = ""
    costs: str = ""
    severity: Severity | None = None
    trap: str = ""
    depends: str = ""
    evidence: tuple[tuple[str, str], ...] = ()

    @property
    def fingerprint(self) -> str:
        """The same in every run for the same trap, subject, file and setting; line numbers and values may move."""
        file = "" if self.place is None or self.place.file is None else str(self.place.file)
        parts = f"{self.trap}\n{self.subject}\n{file}\n{self.about}"
        return hashlib.sha256(parts.encode("utf-8", "backslashreplace")).hexdigest()[:12]


@record(kw_only=True)
class Target:
    """One registration as its client would start it, under one assumption about the inherited environment."""

    registration: Registration
    environment: Environment
    settings: Settings
    version: ServerVersion
    database: DatabasePath
    files: SideFiles = field(default_factory=SideFiles)  # access table, operating context, alias ledger
    candidates: tuple[Reading, ...] = ()  # databases that exist where a relative or ``~`` path may have been meant


@record(kw_only=True)
class Database:
    """One database file: what reading it showed and which targets open it.

    ``census`` is what its vectors are, where they were looked at.
    """

    path: Path
    reading: Reading
    targets: tuple[Target, ...] = ()
    census: Census | None = None

    @property
    def subject(self) -> str:
        return str(self.path)


@record(kw_only=True)
class Subject:
    """One endpoint as it was measured, for whom, and the database its vectors are meant for.

    ``label`` names the registrations that use it, or the option it came from; ``target`` is the first of them.
    ``rebuild`` is the command that makes the vectors of that database anew with this endpoint.
    """

    label: str
    measured: Measured
    target: Target | None = None
    reading: Reading | None = None
    rebuild: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        return self.measured.outcome.kind

    @property
    def outside(self) -> bool:
        """Whether the server stands on another network than this command, so that what is not reached may be."""
        base = "" if self.target is None else self.target.environment.base
        return base in {"container", "wsl"} and MEANINGS[self.kind].stage is Stage.NETWORK


@record(kw_only=True)
class Judged:
    """One database and one endpoint, measured against each other.

    ``label`` names the registrations that bring them together, or the option; ``target`` is the first of these.
    ``options`` are words that make a command choose this endpoint for this database.
    """

    path: Path
    label: str
    fit: Fit
    target: Target | None = None
    options: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return str(self.path)


@record(kw_only=True)
class Previewed:
    """What the next recalls of one registration would tell its agent, with secrets removed.

    ``live``: measured, not replayed. ``state`` is the server's own at the end (``hint``, ``fault``, ...), ``evidence``
    the reason it gives and ``means`` the reason as we name it. ``hidden`` counts the secret characters in its words.
    ``refused`` is the exception with which the server does not start. ``enabled``: it tells its agent at all, and
    ``switch`` is the setting that says so. ``silent`` are sentences about what is broken and not said. ``repair``
    mends what is broken. ``chosen``: the registration was told that it is to run without an endpoint. ``language`` is
    that of the sentences.
    """

    label: str
    target: Target
    live: bool = True
    state: str = "unknown"
    evidence: str = ""
    means: str = ""
    hidden: int = 0
    refused: str = ""
    enabled: bool = True
    switch: str = ""
    silent: tuple[str, ...] = ()
    repair: Repair = Repair(prose="")
    chosen: bool = False
    language: Language = "en"


@record(kw_only=True)
class Facts:
    """All a trap may know. A trap is a pure function of this: it opens, starts and measures nothing itself.

    ``targets`` are the registrations a client would start (one per assumption about the environment), ``target`` and
    ``database`` are set for the traps that need them. ``embedding_servers`` are the starts of the reference embedding
    server that were found in client files, service units and compose files. ``stray`` are settings of the server found
    where no registration reads them: shell start files, ``.env``, this shell. ``instructions`` are the files that the
    clients' agents read in every session. ``endpoints`` are those that were asked, with what was
    measured. ``starts`` are the registrations whose server was started, or was to be. ``fits`` are databases that were
    measured against an endpoint, ``previews`` what registrations would tell their agents.
    ``unfinished`` names what could not be looked at in time, and why.
    """

    machine: Machine
    discovery: Discovery
    targets: tuple[Target, ...] = ()
    databases: tuple[Database, ...] = ()
    before_first_start: bool = False
    embedding_servers: tuple[EmbeddingServer, ...] = ()
    stray: tuple[Variable, ...] = ()
    instructions: AlwaysLoaded = field(default_factory=AlwaysLoaded)
    endpoints: tuple[Subject, ...] = ()
    starts: tuple[Start, ...] = ()
    fits: tuple[Judged, ...] = ()
    previews: tuple[Previewed, ...] = ()
    unfinished: tuple[str, ...] = ()
    current: Target | Database | Subject | Start | Judged | Previewed | None = None

    @property
    def target(self) -> Target:
        """The registration under examination."""
        if not isinstance(self.current, Target):
            raise SkipError("no registration was chosen")
        return self.current

    @property
    def database(self) -> Database:
        """The database under examination."""
        if not isinstance(self.current, Database):
            raise SkipError("no database was chosen")
        return self.current

    @property
    def endpoint(self) -> Subject:
        """The endpoint under examination."""
        if not isinstance(self.current, Subject):
            raise SkipError("no endpoint was asked")
        return self.current

    @property
    def start(self) -> Start:
        """The start under examination."""
        if not isinstance(self.current, Start):
            raise SkipError("no server was started")
        return self.current

    @property
    def judged(self) -> Judged:
        """The database and the endpoint under examination."""
        if not isinstance(self.current, Judged):
            raise SkipError("no vectors were compared")
        return self.current

    @property
    def previewed(self) -> Previewed:
        """The preview under examination."""
        if not isinstance(self.current, Previewed):
            raise SkipError("no advisory was previewed")
        return self.current

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """Every registration found, also those no client would start."""
        return self.discovery.registrations

    @property
    def active(self) -> tuple[Registration, ...]:
        return tuple(r for r in self.registrations if r.status is Status.ACTIVE)

    def setting(self, name: str) -> Effective:
        """The effective value of a setting for the registration under examination."""
        return self.target.settings[name]


Detect = Callable[[Facts], Iterable[Finding]]


@record(kw_only=True)
class Trap:
    """One known way to be wrong.

    ``id`` is ``group.name``, permanent and never reused. ``rows`` are the catalogue rows it covers (docs/traps.md).
    ``expected`` and ``costs`` are its defaults for findings. ``repair`` is the general advice that ``traps explain``
    prints; a finding brings the exact one. ``since``/``until`` bound the server releases it applies to: from
    ``since`` on, and before ``until``. ``source`` says where the rule comes from.
    """

    id: str
    title: str
    severity: Severity
    needs: Needs
    detect: Detect = field(repr=False)
    expected: str
    costs: str
    repair: str
    source: str
    rows: tuple[str, ...] = ()
    since: str = ""
    until: str = ""

    @property
    def group(self) -> Group:
        return Group(self.id.partition(".")[0])

    def stamp(self, finding: Finding, subject: str) -> Finding:
        """``finding`` with everything filled in that it left to its trap."""
        return replace(
            finding,
            trap=self.id,
            severity=finding.severity or self.severity,
            subject=finding.subject or subject,
            expected=finding.expected or self.expected,
            costs=finding.costs or self.costs,
        )
