"""From what the user chose to the facts the traps look at: all reading happens here, concurrently, under a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

from cpersona_cli.install.clients.discover import discover, from_file, from_process
from cpersona_cli.install.clients.table import IN_TERMINAL
from cpersona_cli.install.database import database_path
from cpersona_cli.install.database_candidates import candidates
from cpersona_cli.install.embedding_server import embedding_servers
from cpersona_cli.install.environment import environments
from cpersona_cli.install.instructions import AlwaysLoaded, always_loaded
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Discovery, Environment, Place, Registration, Status, Value
from cpersona_cli.install.release.versions import server_version
from cpersona_cli.install.settings.effective import effective
from cpersona_cli.install.settings.stray import stray
from cpersona_cli.install.sidefiles import side_files
from cpersona_cli.record import record, replace
from cpersona_cli.store.audit_model import Wants
from cpersona_cli.store.files import standing
from cpersona_cli.store.inspect import read
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.traps.concurrent import concurrently
from cpersona_cli.traps.live import ask
from cpersona_cli.traps.model import Database, Facts, Target
from cpersona_cli.traps.recall_settings import wants

#: Seconds a whole run may take unless the user says otherwise.
DEADLINE = 20.0
#: Share of the time for each database that is looked at only because it might have been meant.
_BESIDES = 0.2
#: Share of the time left for looking at stored vectors, and seconds after which a late answer is given up.
_COUNTING, _GRACE = 0.5, 1.0


@record(kw_only=True)
class Starting:
    """How servers are started: seconds for all of them (None: the rest of the run's), and who hears of progress."""

    seconds: float | None = None
    tell: Callable[[str], None] | None = None


@record(kw_only=True)
class Selection:
    """What to work on; with nothing chosen, every registration on the machine.

    ``clients`` are client ids, ``registrations`` are ``FILE[:NAME]``, ``env`` takes this process's environment, ``db``
    one database file (alone, or in place of the chosen registrations' own). ``before_first_start`` allows that there
    is no database yet. With ``glance`` no more is told of a database than whether its file is there; ``census`` has
    the stored vectors looked at, ``online`` has the embedding endpoints asked, for up to ``wait`` seconds more where
    one is not ready yet; ``start`` has the registered servers started.
    """

    clients: tuple[str, ...] = ()
    registrations: tuple[str, ...] = ()
    env: bool = False
    db: Path | None = None
    before_first_start: bool = False
    glance: bool = False
    census: bool = False
    online: bool = False
    wait: float = 0.0
    start: Starting | None = None

    @property
    def pointed_at(self) -> bool:
        """Whether single things were named, rather than the machine or a client of it."""
        return bool(self.registrations or self.env or self.db is not None)

    @property
    def only_database(self) -> bool:
        return self.db is not None and not (self.clients or self.registrations or self.env)


def gather(selection: Selection, machine: Machine, deadline: float = DEADLINE) -> Facts:
    """Everything the traps may look at, within ``deadline`` seconds; what took longer is named in ``Facts.unfinished``.

    Seconds waited for an endpoint that is not ready come on top.

    Raises ``BadSpecError`` when ``--registration`` names a file or an entry that is not there.
    """
    end = time.monotonic() + deadline
    found = _discovery(selection, machine)
    chosen = [r for r in found.registrations if _examined(r, selection)]
    groups, missed = concurrently(lambda r: _targets(r, selection, machine, end), chosen, end)
    targets = tuple(target for group in groups for target in group)
    by_path = _by_path(selection, targets)
    look = _glance if selection.glance else lambda p: _read(p, end, wants=wants(by_path[p]))
    readings, unread = concurrently(look, list(by_path), end)
    databases = tuple(
        Database(path=reading.path, reading=reading, targets=by_path[reading.path]) for reading in readings
    )
    if selection.census:
        databases = _counted(databases, end)
    facts = Facts(
        machine=machine,
        discovery=found,
        targets=targets,
        databases=databases,
        before_first_start=selection.before_first_start,
        embedding_servers=embedding_servers(found, machine, _surroundings(found, machine)),
        # what a person left in a shell or told an agent says nothing about one file that was pointed at
        stray=() if selection.pointed_at else stray(machine, _folders(found)),
        instructions=AlwaysLoaded() if selection.pointed_at else always_loaded(machine),
        unfinished=(*(f"{r.label}: {why}" for r, why in missed), *(f"{p}: {why}" for p, why in unread)),
    )
    if selection.online:
        endpoints, unasked = ask(facts, end + selection.wait, selection.wait)
        facts = replace(facts, endpoints=endpoints, unfinished=(*facts.unfinished, *unasked))
    return facts if selection.start is None else _started(facts, selection.start, end)


def _counted(databases: Sequence[Database], end: float) -> tuple[Database, ...]:
    """With what the stored vectors are, as far as half of the time left allows; where they cannot be read, without."""
    from cpersona_cli.store.cpersona.store import CPersonaStore  # noqa: PLC0415 - only where they are asked for

    until = time.monotonic() + max(0.1, (end - time.monotonic()) * _COUNTING)

    def count(database: Database) -> Database:
        return replace(database, census=CPersonaStore(database.path).census(deadline=until))

    readable = [database for database in databases if database.reading.state is State.OK]
    counted, _ = concurrently(count, readable, until + _GRACE)
    by_path = {database.path: database for database in counted}
    return tuple(by_path.get(database.path, database) for database in databases)


def _started(facts: Facts, how: Starting, end: float) -> Facts:
    """With what the servers do when they are started: each registration once, as it is usually started."""
    from cpersona_cli.start.check import Work, start_all  # noqa: PLC0415 - brings the MCP library along
    from cpersona_cli.start.plan import Candidate, over_stdio  # noqa: PLC0415

    groups = groupby(facts.targets, key=lambda target: id(target.registration))
    started = [usual(list(targets)) for _, targets in groups]
    candidates = [
        Candidate(
            registration=target.registration,
            environment=target.environment,
            settings=target.settings,
            version=target.version,
        )
        for target in started
        if over_stdio(target.registration)
    ]
    until = end if how.seconds is None else time.monotonic() + how.seconds
    starts, missed = start_all(candidates, facts.machine, Work(end=until, tell=how.tell))
    late = (f"{candidate.registration.label}: its server was not started in time" for candidate in missed)
    return replace(facts, starts=tuple(starts), unfinished=(*facts.unfinished, *late))


def usual(targets: Sequence[Target]) -> Target:
    """Of a client that people start in a terminal, the shell's environment; of others, the desktop's."""
    wanted = "shell" if targets[0].registration.client in IN_TERMINAL else "none"
    return next((target for target in targets if target.environment.assumption == wanted), targets[0])


def _surroundings(found: Discovery, machine: Machine) -> dict[int, Environment]:
    return {id(entry): environments(entry, machine)[-1] for entry in found.embedding_servers}


def _folders(found: Discovery) -> tuple[Path, ...]:
    """Where, beside the home, a ``.env`` meant for a registration might lie."""
    return tuple(r.project for r in found.registrations if r.project is not None)


def _discovery(selection: Selection, machine: Machine) -> Discovery:
    parts = [from_file(machine, spec) for spec in selection.registrations]
    if selection.env:
        parts.append(from_process(machine))
    if selection.clients or not (parts or selection.only_database):
        parts.append(discover(machine, clients=selection.clients))
    if not parts:
        return Discovery((), ())
    return replace(
        parts[-1],
        registrations=tuple(r for part in parts for r in part.registrations),
        looked=tuple(looked for part in parts for looked in part.looked),
        embedding_servers=tuple(r for part in parts for r in part.embedding_servers),
    )


def _examined(registration: Registration, selection: Selection) -> bool:
    """What a client would start, and what the user pointed at even if no client would."""
    return registration.status is Status.ACTIVE or bool(
        selection.registrations and registration.status in {Status.DISABLED, Status.PENDING}
    )


def _targets(registration: Registration, selection: Selection, machine: Machine, end: float) -> tuple[Target, ...]:
    return tuple(
        _target(registration, _with_database(environment, selection.db), machine, end)
        for environment in environments(registration, machine)
    )


def _target(registration: Registration, environment: Environment, machine: Machine, end: float) -> Target:
    version = server_version(registration, environment, machine)
    settings = effective(environment, version.version, system=machine.system)
    configured = settings["CPERSONA_DB_PATH"]
    database = database_path(registration, configured, machine)
    meant = (path for path in candidates(registration, configured, machine) if standing(path).state is State.OK)
    return Target(
        registration=registration,
        environment=environment,
        settings=settings,
        version=version,
        database=database,
        files=side_files(registration, environment, settings, database, machine),
        candidates=tuple(_read(path, end, _BESIDES) for path in meant),
    )


def _with_database(environment: Environment, db: Path | None) -> Environment:
    if db is None:
        return environment
    chosen = Value(text=str(db.absolute()), place=Place(words="--db"), origin="option")
    return replace(environment, values={**environment.values, "CPERSONA_DB_PATH": chosen})


def _by_path(selection: Selection, targets: Sequence[Target]) -> dict[Path, tuple[Target, ...]]:
    """Targets by the file they would open; two spellings of one file are one database."""
    groups: dict[Path, tuple[Target, ...]] = {}
    for target in targets:
        path = target.database.path
        if path is not None:
            key = _real(path)
            groups[key] = (*groups.get(key, ()), target)
    if selection.only_database and selection.db is not None:
        groups.setdefault(selection.db.absolute(), ())
    return groups


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, or no path at all: the reading will say so
        return path


def _glance(path: Path) -> Reading:
    """Whether the file is there; what is in it is for others to find out."""
    stands = standing(path)
    return Reading(path=path, state=stands.state, detail=stands.detail)


def _read(path: Path, end: float, share: float = 0.9, wants: Wants | None = None) -> Reading:
    """A database read within its ``share`` of what is left of the time: a reading that comes too late is none."""
    return read(path, timeout=max(0.1, share * (end - time.monotonic())), wants=wants)
