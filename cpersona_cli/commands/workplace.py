"""The one database that a command writes to, and who opens it: found from what was chosen, asked for, or refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from cpersona_cli.commands.chosen import terminal
from cpersona_cli.commands.errors import CommandError, UsageError
from cpersona_cli.install.clients.discover import BadSpecError
from cpersona_cli.install.machine import Machine
from cpersona_cli.record import record, replace
from cpersona_cli.report.output import say
from cpersona_cli.store.reading import State
from cpersona_cli.text import plural, quoted, safe, tilde
from cpersona_cli.traps.gather import Selection, gather, usual
from cpersona_cli.traps.live import Goal, goals
from cpersona_cli.traps.model import Database, Facts, Target

#: Seconds that looking at the machine may take.
GATHERING = 20.0

Ask = Callable[[str], str | None]


@record(kw_only=True)
class Workplace:
    """One database. ``facts`` are of it alone; its ``targets`` are the chosen registrations that open it.

    ``others`` are targets of registrations that open it too and were not chosen.
    """

    facts: Facts
    database: Database
    others: tuple[Target, ...] = ()

    @property
    def targets(self) -> tuple[Target, ...]:
        return self.database.targets

    @property
    def everyone(self) -> tuple[Target, ...]:
        """One target for each registration that opens the database, as it is usually started."""
        return tuple(by_registration((*self.targets, *self.others)))

    def goals(self) -> Sequence[Goal]:
        """The different endpoints that the chosen registrations call."""
        chosen = by_registration(self.targets)
        return goals(replace(self.facts, targets=tuple(chosen)))


def by_registration(targets: Sequence[Target]) -> list[Target]:
    """One target for each registration, as it is usually started."""
    groups: dict[int, list[Target]] = {}
    for target in targets:
        groups.setdefault(id(target.registration), []).append(target)
    return [usual(group) for group in groups.values()]


def find(selection: Selection, machine: Machine, command: str, ask: Ask | None = None) -> Workplace:
    """The database that ``selection`` means. Raises ``UsageError`` and ``CommandError``.

    A file alone is looked up among all registrations of the machine: they say which endpoint belongs to it. Where
    several databases are meant, ``ask`` is asked for one, if somebody is there to ask.
    """
    lookup = selection.only_database
    facts = _gather(replace(selection, db=None) if lookup else selection, machine)
    databases = facts.databases
    if lookup and selection.db is not None:
        path = _real(selection.db.absolute())
        databases = tuple(database for database in databases if database.path == path)
        if not databases:
            facts = _gather(selection, machine)
            databases = facts.databases
    database = _one(databases, facts, machine, command, ask)
    others: tuple[Target, ...] = ()
    if selection.clients or selection.registrations:
        chosen = {target.registration.place for target in database.targets}
        everything = _gather(Selection(), machine)
        others = tuple(
            target
            for other in everything.databases
            if other.path == database.path
            for target in other.targets
            if target.registration.place not in chosen
        )
    own = replace(facts, databases=(database,), targets=database.targets)
    return Workplace(facts=own, database=database, others=others)


def _gather(selection: Selection, machine: Machine) -> Facts:
    try:
        return gather(selection, machine, GATHERING)
    except BadSpecError as error:
        raise UsageError(str(error)) from error


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path


def _one(databases: Sequence[Database], facts: Facts, machine: Machine, command: str, ask: Ask | None) -> Database:
    there = [d for d in databases if d.reading.state not in {State.MISSING, State.NO_FOLDER, State.VOLATILE}]
    if len(there) == 1:
        return there[0]
    if len(there) > 1:
        return _chosen(there, machine, command, ask)
    if facts.unfinished:
        raise CommandError("; ".join(facts.unfinished))
    if databases:
        raise CommandError(f"{databases[0].path}: there is no such database; `cpersona-cli doctor` shows those in use")
    if facts.registrations:
        raise CommandError(
            f"{plural(len(facts.registrations), 'registration')} found, and none tells a database; name it with --db"
        )
    raise CommandError(
        "no registration of CPersona was found; name the database with --db, and for new vectors the endpoint with "
        "--url; `cpersona-cli doctor` shows where was looked"
    )


def _chosen(databases: Sequence[Database], machine: Machine, command: str, ask: Ask | None) -> Database:
    def line(database: Database) -> str:
        names = ", ".join(dict.fromkeys(target.registration.label for target in database.targets))
        rows = plural(database.reading.counts.get("memories", 0), "memory", "memories")
        return f"{safe(tilde(str(database.path), str(machine.home)))} ({rows}; {safe(names)})"

    if ask is not None:
        listed = "\n".join(f"  {number}  {line(database)}" for number, database in enumerate(databases, 1))
        answer = ask(f"The registrations open different databases:\n{listed}\nWhich one? Type its number:")
        if answer and answer.isdecimal() and 0 < int(answer) <= len(databases):
            return databases[int(answer) - 1]
    listed = "; ".join(line(database) for database in databases)
    first = quoted(str(databases[0].path))
    raise UsageError(
        f"{plural(len(databases), 'database')} are in question: {listed}; name one: {command} --db {first}"
    )


def asking() -> Ask | None:
    """How the user is asked, where somebody sits at a terminal; a sentence in, the line typed out."""
    return _typed if terminal(sys.stdin) and terminal(sys.stderr) else None


def _typed(question: str) -> str | None:
    for line in question.splitlines():
        say(line)
    return sys.stdin.readline().strip()
