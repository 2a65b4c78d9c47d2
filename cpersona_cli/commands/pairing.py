"""Which databases are looked at beside which endpoints: from what was chosen to one pair for each two that meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cpersona_cli.commands.chosen import Chosen, named
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.workplace import by_registration
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.install.clients.discover import BadSpecError
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import LaunchKind
from cpersona_cli.record import record, replace
from cpersona_cli.text import bare_url
from cpersona_cli.traps.gather import Selection, gather
from cpersona_cli.traps.live import goals
from cpersona_cli.traps.model import Database, Facts, Target
from cpersona_cli.traps.network_server import is_for
from cpersona_cli.traps.shell import word

#: Where a server does not run by its own command here, and so calls no endpoint that could be seen.
_ELSEWHERE = frozenset({LaunchKind.REMOTE, LaunchKind.PROXY})


#: A setting of the reference embedding server.
_DIMENSIONS = "EMBEDDING_DIMENSIONS"


@record(kw_only=True)
class Pair:
    """A database and an endpoint that work on each other. ``endpoint`` is None where no registration tells one.

    ``label`` names the registrations, or the option that named the endpoint. ``options`` are the words that make
    another command choose the same endpoint for this database. ``stated`` are the widths that settings claim for it:
    (where, dimensions).
    """

    database: Database
    label: str
    endpoint: Endpoint | None = None
    target: Target | None = None
    options: tuple[str, ...] = ()
    stated: tuple[tuple[str, int], ...] = ()


def look(selection: Selection, machine: Machine, seconds: float) -> Facts:
    """The facts of what was chosen; a file alone is looked up among all registrations of the machine.

    Of databases no more is told than whether they are there.
    Raises ``UsageError``.
    """
    selection = replace(selection, glance=True)
    if not selection.only_database or selection.db is None:
        return _gather(selection, machine, seconds)
    wanted = _real(selection.db.absolute())
    found = _gather(replace(selection, db=None), machine, seconds)
    databases = tuple(database for database in found.databases if database.path == wanted)
    if not databases:
        return _gather(selection, machine, seconds)
    targets = tuple(target for database in databases for target in database.targets)
    # what else this machine has is not asked about
    return replace(found, databases=databases, targets=targets, unfinished=())


def pairs(facts: Facts, chosen: Chosen, machine: Machine) -> list[Pair]:
    """One pair for each database and each different endpoint it is used with. Raises ``UsageError``."""
    if chosen.url is not None:
        endpoint = named(chosen, machine.env)
        return [
            Pair(
                database=database,
                label="--url",
                endpoint=endpoint,
                target=_first(database),
                options=words(chosen, machine),
            )
            for database in facts.databases
        ]
    return [pair for database in facts.databases for pair in _of(database, facts)]


def _of(database: Database, facts: Facts) -> list[Pair]:
    usual = by_registration(database.targets)
    own = goals(replace(facts, targets=tuple(usual), databases=(database,)))
    if not own:
        return [Pair(database=database, label=_labels(database.targets), target=_first(database))]
    return [
        Pair(
            database=database,
            label=goal.label,
            endpoint=goal.endpoint,
            target=goal.targets[0],
            options=goal.options,
            stated=tuple(_stated(goal.targets[0], facts)),
        )
        for goal in own
    ]


def _stated(target: Target, facts: Facts) -> Iterator[tuple[str, int]]:
    """Widths that somebody wrote down for the endpoint of ``target``: for the server, or for the embedding server."""
    value = target.environment.values.get(_DIMENSIONS)
    written = [] if value is None else [(f"{_DIMENSIONS} in {value.place}", value.text)]
    written += [
        (f"{_DIMENSIONS} of the {start.title}", start.get(_DIMENSIONS))
        for start in facts.embedding_servers
        if is_for(target, start)
    ]
    for where, text in written:
        if text.isascii() and text.isdecimal() and 0 < int(text) < 10**9:
            yield where, int(text)


def words(chosen: Chosen, machine: Machine) -> tuple[str, ...]:
    """The endpoint as it was named, without what may be secret in it."""
    if chosen.url is None:
        return ()
    found = ["--url", word(bare_url(chosen.url), machine)]
    for option, value in (("--mode", chosen.mode), ("--model", chosen.model), ("--api-key-file", chosen.key_file)):
        found += [option, word(value, machine)] if value is not None else []
    return tuple(found)


def rerun(command: str, selection: Selection, chosen: Chosen, machine: Machine) -> str:
    """The command line that looks at the same again."""
    said = [command]
    for option, values in (("--client", selection.clients), ("--registration", selection.registrations)):
        said.extend(f"{option} {word(value, machine)}" for value in values)
    said.extend(["--env"] if selection.env else [])
    said.extend([f"--db {word(selection.db, machine)}"] if selection.db is not None else [])
    return " ".join([*said, *words(chosen, machine)])


def elsewhere(facts: Facts) -> bool:
    """Whether all the registrations reach a server that runs on another computer or behind a wrapper."""
    return bool(facts.targets) and all(t.registration.launch.kind in _ELSEWHERE for t in facts.targets)


def _labels(targets: Iterable[Target]) -> str:
    return ", ".join(dict.fromkeys(target.registration.label for target in targets))


def _first(database: Database) -> Target | None:
    usual: Sequence[Target] = by_registration(database.targets)
    return usual[0] if usual else None


def _gather(selection: Selection, machine: Machine, seconds: float) -> Facts:
    try:
        return gather(selection, machine, seconds)
    except BadSpecError as error:
        raise UsageError(str(error)) from error


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, or no path at all: the reading will say so
        return path
