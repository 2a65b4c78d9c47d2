"""Whether the database file is there, is a database, is CPersona's, and is whole."""

from __future__ import annotations

from collections.abc import Iterator
from time import gmtime, strftime

from cpersona_cli.install.model import Process
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.text import safe
from cpersona_cli.traps.database_path import well_formed
from cpersona_cli.traps.database_repairs import check_spelling, salvage, take_over
from cpersona_cli.traps.model import (
    CannotTellError,
    Database,
    Facts,
    Finding,
    Needs,
    Repair,
    Severity,
    Trap,
)
from cpersona_cli.traps.shell import move
from cpersona_cli.traps.subject import obstacle, readable


def process(one: Process) -> str:
    """A process in words: number, command, and since when it runs, in UTC."""
    since = "" if one.started is None else strftime(", since %Y-%m-%d %H:%M UTC", gmtime(max(0.0, one.started)))
    return f"process {one.pid}{since}" + (f": {safe(one.command, 120)}" if one.command else "")


def holders(reading: Reading) -> str:
    """Who has the file open, in words."""
    if reading.holders:
        return "; ".join(process(one) for one in reading.holders)
    return "no process has it open" if reading.holders_known else "which process has it open, the system does not tell"


def _opened_by(database: Database) -> tuple[tuple[str, str], ...]:
    labels = dict.fromkeys(target.registration.label for target in database.targets)
    return (("opened by", ", ".join(labels)),) if labels else ()


def _finding(facts: Facts, text: str, repair: Repair, severity: Severity | None = None) -> Finding:
    database = facts.database
    return Finding(about="file", measured=text, repair=repair, severity=severity, evidence=_opened_by(database))


def _others_have_memories(facts: Facts) -> bool:
    return any(other.reading.counts.get("memories", 0) for other in facts.databases)


def _missing(facts: Facts) -> Iterator[Finding]:
    path = facts.database.path
    if facts.database.reading.state is State.MISSING and not facts.before_first_start and not _consequence(facts):
        yield _finding(
            facts,
            f"there is no file {path}; its folder exists, and the server makes the file at its first start",
            check_spelling(facts),
            Severity.WARNING if _others_have_memories(facts) else None,
        )


def _no_folder(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.state is State.NO_FOLDER and not _consequence(facts):
        yield _finding(
            facts,
            f"the folder {reading.path.parent} does not exist"
            + ("; the server makes it at its first start" if facts.before_first_start else ""),
            check_spelling(facts),
            Severity.HINT if facts.before_first_start else None,
        )


def _consequence(facts: Facts) -> bool:
    """Whether every entry that leads here has a path that is wrong as it is written, which is a finding already."""
    targets = facts.database.targets
    return bool(targets) and not any(well_formed(target, facts.machine) for target in targets)


def _is_folder(facts: Facts) -> Iterator[Finding]:
    path = facts.database.path
    if facts.database.reading.state is State.IS_FOLDER:
        yield _finding(
            facts,
            f"{path} is a folder",
            Repair(prose=f"name the file: change CPERSONA_DB_PATH to {path / 'cpersona.db'}"),
        )


def _no_permission(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.state is State.NO_PERMISSION:
        yield _finding(facts, f"this user may not read {reading.path}: {obstacle(reading)}", take_over(facts, reading))


def _name_too_long(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.state is State.NAME_TOO_LONG:
        yield _finding(
            facts,
            f"the path of {len(str(reading.path))} characters is longer than the system allows: {obstacle(reading)}",
            Repair(prose="choose a shorter path for CPERSONA_DB_PATH"),
        )


def _not_sqlite(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.state is State.NOT_SQLITE:
        yield _finding(
            facts,
            f"{reading.path} is no SQLite database: {obstacle(reading)}",
            Repair(
                prose="move the file aside and restore the database from a backup, or check the spelling of "
                "CPERSONA_DB_PATH",
                commands=(move(reading.path, f"{reading.path}.not-a-database", facts.machine),),
            ),
        )


def _empty(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.state is State.EMPTY and not facts.before_first_start:
        what = "has zero bytes" if not reading.size else "is an SQLite database without any table"
        yield _finding(facts, f"{reading.path} {what}; probably made by a wrong path", check_spelling(facts))


def _foreign(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.state is State.FOREIGN:
        yield _finding(
            facts,
            f"{reading.path} is an SQLite database of another program: {obstacle(reading)}",
            Repair(prose="change CPERSONA_DB_PATH to a file of CPersona's own; leave this one alone"),
        )


def _corrupt(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.state is not State.CORRUPT:
        return
    yield _finding(
        facts,
        f"{reading.path}: {obstacle(reading)}",
        Repair(
            prose="let no program write to it any more: end every client that uses it, copy the database with its "
            "-wal and -shm files to a safe place, then recover what can be read into a new file and compare that with "
            "your newest backup",
            commands=salvage(reading, facts.machine),
        ),
    )


def _unchecked(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    if reading.integrity == "partial" or "integrity" in reading.unmeasured:
        left = f": {', '.join(reading.unchecked)} not checked" if reading.unchecked else ""
        raise CannotTellError(f"{reading.path}: there was no time to check every page{left}; allow more with --timeout")
    yield from ()


def _locked(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.state is State.LOCKED:
        raise CannotTellError(
            f"{reading.path} is locked: {holders(reading)}. Close the client that started it, or wait until it is "
            "done, and run this again; nothing was ended or removed"
        )
    yield from ()


def _folder_read_only(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.state is State.FOLDER_READ_ONLY:
        alone = reading.holders_known and not reading.holders
        look = f"; as no process has it open, file:{reading.path}?immutable=1 shows what is in it" if alone else ""
        repair = take_over(facts, reading)
        yield _finding(
            facts,
            f"{reading.path} uses a write-ahead log, whose readers too need a -shm file beside it, and "
            f"{reading.path.parent} may not be written ({holders(reading)})",
            Repair(prose=repair.prose + look, commands=repair.commands),
        )


def _stale_wal(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.state is not State.STALE_WAL:
        return
    log = f"{reading.path}-wal"
    yield _finding(
        facts,
        f"{log} does not belong to {reading.path}: {obstacle(reading)} ({holders(reading)})",
        Repair(
            prose="do not start a client before this is settled: SQLite would replay that log into the database. "
            "When every process has closed the file, either put the old main file back beside its log, or move the "
            "log away and keep it",
            commands=(move(log, f"{log}.of-another-database", facts.machine),),
        ),
    )


def _unreadable(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.state is State.UNREADABLE:
        raise CannotTellError(f"{reading.path} could not be read: {obstacle(reading)}")
    yield from ()


TRAPS = (
    Trap(
        id="database.missing",
        title="There is no database yet",
        severity=Severity.HINT,
        needs=Needs.DATABASE,
        detect=_missing,
        expected="a database of CPersona, readable and writable",
        costs="fine before the first start; otherwise the memories lie somewhere else",
        repair="check the spelling of the path, or start the client once (--pre says that this is before the first "
        "start)",
        source="measured with SQLite 3.40",
    ),
    Trap(
        id="database.no-folder",
        title="The database's folder does not exist",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_no_folder,
        expected="a database of CPersona, readable and writable",
        costs="the server makes the folder and an empty database in it, and everything seems forgotten",
        repair="check the spelling of the path",
        source="measured with SQLite 3.40",
    ),
    Trap(
        id="database.is-folder",
        title="The database path is a folder",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_is_folder,
        expected="a database of CPersona, readable and writable",
        costs="the server ends with “unable to open database file”",
        repair="name a file inside the folder",
        source="measured on 2.6.14",
        rows=("C5",),
    ),
    Trap(
        id="database.no-permission",
        title="This user may not read the database",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_no_permission,
        expected="a database of CPersona, readable and writable",
        costs="the server ends with “unable to open database file”, if it runs as the same user",
        repair="give the file to the user who starts the client",
        source="measured with SQLite 3.40",
        rows=("C13",),
    ),
    Trap(
        id="database.name-too-long",
        title="The database path is longer than the system allows",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_name_too_long,
        expected="a database of CPersona, readable and writable",
        costs="the server ends with “unable to open database file”",
        repair="choose a shorter path",
        source="measured with SQLite 3.40",
    ),
    Trap(
        id="database.not-sqlite",
        title="The file is no SQLite database",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_not_sqlite,
        expected="a database of CPersona, readable and writable",
        costs="the server ends with “file is not a database”",
        repair="move the file aside and restore a backup",
        source="measured with SQLite 3.40",
    ),
    Trap(
        id="database.empty",
        title="The database has nothing in it",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_empty,
        expected="a database of CPersona, readable and writable",
        costs="the server fills it with empty tables at its next start, and the memories stay wherever they really are",
        repair="check the spelling of the path; the memories are probably elsewhere",
        source="measured with SQLite 3.40",
    ),
    Trap(
        id="database.foreign",
        title="The database belongs to another program",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_foreign,
        expected="a database of CPersona, readable and writable",
        costs="the server would add its own tables to the other program's data",
        repair="give CPersona a file of its own",
        source="measured with SQLite 3.40",
    ),
    Trap(
        id="database.corrupt",
        title="The database is damaged",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_corrupt,
        expected="PRAGMA quick_check finds nothing",
        costs="memories on the damaged pages are lost, and every further write may destroy more",
        repair="stop all clients, copy the three files, recover from the copy",
        source="SQLite's page on recovering data; a copy made while a client was writing is a common cause",
        rows=("C18",),
    ),
    Trap(
        id="database.integrity-unknown",
        title="Not every page of the database was checked",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_unchecked,
        expected="PRAGMA quick_check over all of it",
        costs="a damaged page would not have been noticed",
        repair="allow more time with --timeout",
        source="measured with SQLite 3.40",
    ),
    Trap(
        id="database.locked",
        title="The database is locked",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_locked,
        expected="no transaction that stays open",
        costs="a store waits five seconds for a lock and then fails, and the memory is lost unless the agent tries "
        "again",
        repair="close the client that holds the lock",
        source="measured on 2.6.14",
    ),
    Trap(
        id="database.folder-read-only",
        title="The database's folder may not be written",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_folder_read_only,
        expected="a database of CPersona, readable and writable",
        costs="SQLite cannot make its -wal and -shm files there, so even a recall fails",
        repair="let the user who starts the client write the folder",
        source="measured with SQLite 3.40",
        rows=("C13",),
    ),
    Trap(
        id="database.stale-wal",
        title="A write-ahead log of another database lies beside this one",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_stale_wal,
        expected="a database of CPersona, readable and writable",
        costs="the next program that opens the database replays that log into it, or loses what only the log holds",
        repair="move the log away once every process has closed the file, or restore the main file it belongs to",
        source="measured with SQLite 3.40",
        rows=("C18",),
    ),
    Trap(
        id="database.unreadable",
        title="The database could not be read",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_unreadable,
        expected="a database of CPersona, readable and writable",
        costs="nothing else can be said about it",
        repair="see the reason",
        source="measured with SQLite 3.40",
    ),
)
