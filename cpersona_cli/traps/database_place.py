"""Whether the place where the database lies is fit for one: its file system, its modes, its disk, its container."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.store.reading import Reading, State
from cpersona_cli.text import plural, safe
from cpersona_cli.traps.database_file import holders
from cpersona_cli.traps.database_path import DB
from cpersona_cli.traps.database_repairs import take_over
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, SkipError, Trap
from cpersona_cli.traps.repairs import remove_variable
from cpersona_cli.traps.shell import copy, word
from cpersona_cli.traps.subject import present, readable, server

MIB = 1 << 20

#: Below this many free bytes the next few stores fail, and a migration at the next start certainly does.
LITTLE_SPACE = 64 * MIB
#: SQLite folds its log back at about 4 MiB; one this large shows that something keeps it from doing so.
LARGE_LOG = 64 * MIB


def _place(facts: Facts, risk: str) -> Reading | None:
    """The reading, where its folder carries that risk."""
    reading = facts.database.reading
    if reading.state is State.VOLATILE:
        raise SkipError("the database is in memory")
    return reading if reading.risk == risk else None


def _lies_on(reading: Reading) -> str:
    kind = f" (file system {reading.filesystem})" if reading.filesystem else ""
    return f"{reading.path.parent}: {reading.risk_detail or reading.risk}{kind}"


def _elsewhere(facts: Facts) -> Repair:
    """Move the database to a folder of this computer alone."""
    reading = facts.database.reading
    machine = facts.machine
    target = machine.home / ".claude" / reading.path.name
    if target == reading.path or reading.path.parent.is_relative_to(target.parent):
        target = machine.home / ".local" / "share" / "cpersona" / reading.path.name
    ends = ["", *(end for end in sorted(reading.files) if end.startswith(".") or end in {"-wal", "-shm"})]
    return Repair(
        prose=f"end every client that uses it, copy it with the files that belong to it, and set {DB}={target} in "
        "every registration",
        commands=tuple(copy(f"{reading.path}{end}", f"{target}{end}", machine) for end in ends),
    )


def _synced(facts: Facts) -> Iterator[Finding]:
    reading = _place(facts, "synced") or (facts.database.reading if facts.database.reading.conflicts else None)
    if reading is None:
        return
    listed = tuple(
        (name, "could not be read" if count is None else plural(count, "memory", "memories"))
        for name, count in reading.conflicts
    )
    copies = "; ".join(f"{safe(name, 120)} ({count})" for name, count in listed)
    where = (
        f"{reading.path.parent} is copied to other computers by {reading.risk_detail}" if reading.risk_detail else ""
    )
    beside = f"{plural(len(listed), 'conflict copy', 'conflict copies')} beside it: {copies}" if listed else ""
    own = reading.counts.get("memories")
    yield Finding(
        about="folder",
        severity=Severity.FAULT if listed else None,
        measured="; ".join(part for part in (where, beside) if part)
        + (f"; the database itself has {plural(own, 'memory', 'memories')}" if listed and own is not None else ""),
        repair=_elsewhere(facts),
        evidence=listed,
    )


def _unsafe(facts: Facts) -> Iterator[Finding]:
    reading = _place(facts, "network") or _place(facts, "bind-mount")
    if reading is None:
        return
    bind = reading.risk == "bind-mount"
    # Without a file system's type the path alone speaks, and an attached volume may be a local disk.
    guessed = not reading.filesystem and not str(reading.path).startswith(("\\\\", "//"))
    repair = _elsewhere(facts)
    if bind:
        repair = Repair(
            prose="keep the database in a named volume in place of a bind mount: -v cpersona-data:/data; or "
            + repair.prose,
            commands=repair.commands,
        )
    yield Finding(
        about="folder",
        severity=Severity.WARNING if bind or guessed else None,
        measured=_lies_on(reading),
        repair=repair,
    )


def _volatile(facts: Facts) -> Iterator[Finding]:
    reading = _place(facts, "volatile")
    if reading is not None:
        yield Finding(
            about="folder",
            measured=_lies_on(reading),
            repair=_elsewhere(facts),
        )


def _git(facts: Facts) -> Iterator[Finding]:
    reading = _place(facts, "git")
    if reading is not None:
        yield Finding(
            about="folder",
            measured=f"{reading.path}: {reading.risk_detail or 'inside a git working tree'}",
            repair=_elsewhere(facts),
        )


def _not_writable(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.state not in {State.OK, State.MISSING, State.NO_FOLDER, State.EMPTY}:
        raise SkipError(f"{reading.path}: {reading.detail or reading.state}")
    inside = {target.registration.launch.inside for target in facts.database.targets}
    if inside and inside <= {"container", "wsl"}:
        raise SkipError("the server runs as another user, in a container or in WSL")
    exists = reading.state in {State.OK, State.EMPTY}
    if exists and not reading.writable:
        yield Finding(
            about="permissions", measured=f"this user may not write {reading.path}", repair=take_over(facts, reading)
        )
    elif not reading.folder_writable:
        yield Finding(
            about="permissions",
            measured=f"this user may not write in {reading.path.parent}"
            + ("" if exists else ", and the database has yet to be made there"),
            repair=take_over(facts, reading),
        )


def _open_to_others(facts: Facts) -> Iterator[Finding]:
    reading = present(facts)
    if reading.mode is None or not reading.mode & 0o077 or reading.state is State.IS_FOLDER:
        return
    files = " ".join(
        word(f"{reading.path}{end}", facts.machine) for end in ("", "-wal", "-shm") if not end or end in reading.files
    )
    yield Finding(
        about="permissions",
        measured=f"{reading.path} has mode {reading.mode & 0o777:04o}: others on this computer may read "
        + ("and write it" if reading.mode & 0o022 else "it"),
        repair=Repair(prose="keep it to yourself", commands=(f"chmod 600 {files}",)),
    )


def _disk(facts: Facts) -> Iterator[Finding]:
    reading = facts.database.reading
    if reading.free_bytes is None or reading.free_bytes >= LITTLE_SPACE:
        return
    yield Finding(
        about="disk",
        measured=f"{reading.free_bytes / MIB:.1f} MiB are free where {reading.path} lies",
        repair=Repair(prose=f"free some space on the disk of {reading.path.parent}, or move the database"),
    )


def _large_log(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    if reading.wal_bytes < LARGE_LOG:
        return
    checkpoint = f'sqlite3 {word(reading.path, facts.machine)} "PRAGMA wal_checkpoint(TRUNCATE)"'
    yield Finding(
        about="-wal",
        measured=f"the write-ahead log has {reading.wal_bytes / MIB:.0f} MiB, the database {reading.size / MIB:.0f} "
        f"({holders(reading)})",
        repair=Repair(
            prose="end the clients that use the database and let SQLite fold the log back into it",
            commands=(checkpoint,),
        ),
    )


def _export_dir(facts: Facts) -> Iterator[Finding]:
    setting = server(facts).settings["CPERSONA_EXPORT_DIR"]
    if setting.given:
        yield Finding(
            about=setting.setting.name,
            place=setting.place,
            measured=f"{setting.name}={safe(str(setting.text), 160)}",
            repair=remove_variable(facts.target.registration, setting.name, at=setting.place),
        )


def _ledger(facts: Facts) -> Iterator[Finding]:
    ledger = server(facts).files.ledger
    if ledger is None or ledger.state != "absent":
        return
    # Names of this shape are given by the server to signed-in people; only the ledger says who is who.
    given = [
        agent
        for database in facts.databases
        if facts.target in database.targets
        for agent in database.reading.agents
        if agent.startswith("u-")
    ]
    if given:
        yield Finding(
            about="CPERSONA_ALIAS_LEDGER_FILE",
            place=ledger.at,
            measured=f"{ledger.path or ledger.text} is absent, and the database holds {plural(len(given), 'agent id')} "
            "that the server gave to signed-in people",
            repair=Repair(
                prose=f"restore {ledger.path or ledger.text} from the backup the database was restored from; do not "
                "start the server before",
                place=ledger.at,
            ),
        )


_MOVE = "move the database to a folder on a local disk"

TRAPS = (
    Trap(
        id="database.synced-folder",
        title="The database lies in a folder that is copied to other computers",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_synced,
        expected="a folder on a disk of this computer that nothing else copies",
        costs="the log and the database are copied at different times, so another computer gets a damaged or an older "
        "database, or two computers each keep their own",
        repair=_MOVE,
        source="the server's setup skill and operations page",
        rows=("C11",),
    ),
    Trap(
        id="database.unsafe-filesystem",
        title="The database lies on a file system that SQLite's log does not work on",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_unsafe,
        expected="a folder on a disk of this computer that nothing else copies",
        costs="the log needs memory shared between processes and working locks; without them come “locking protocol”, "
        "“disk I/O error”, and damaged databases",
        repair=_MOVE,
        source="SQLite's pages on write-ahead logs and on use over a network",
        rows=("C12",),
    ),
    Trap(
        id="database.volatile-folder",
        title="The database lies where nothing survives a restart",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_volatile,
        expected="a folder on a disk",
        costs="every memory is gone after the next restart",
        repair=_MOVE,
        source="the file system's type",
        rows=("C26",),
    ),
    Trap(
        id="database.git-folder",
        title="The database lies inside a git working tree",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_git,
        expected="a folder on a disk of this computer that nothing else copies",
        costs="private memories may be committed, and a checkout, clean or stash changes the file under a live server",
        repair="move it out of the working tree",
        source="reasoned from what git does with its working tree",
        rows=("C26",),
    ),
    Trap(
        id="database.not-writable",
        title="The database or its folder may not be written",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_not_writable,
        expected="the user who starts the client may write the database and its folder",
        costs="every store fails with “attempt to write a readonly database”, or the server does not start",
        repair="give the folder and the files to the user who starts the client",
        source="SQLite makes -wal and -shm beside the file; a first start by sudo or docker leaves another owner",
        rows=("C13",),
    ),
    Trap(
        id="database.open-to-others",
        title="Other users of this computer may read the database",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_open_to_others,
        expected="mode 0600, as the server makes it since 2.5",
        costs="everything the agent remembers is open to whoever can log in here",
        repair="chmod 600",
        source="the server's issue bug-289; releases before 2.5 made it 0644",
        rows=("C14",),
    ),
    Trap(
        id="database.disk-full",
        title="The disk is almost full",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_disk,
        expected=f"{LITTLE_SPACE // MIB} MiB free at least",
        costs="a store fails with “database or disk is full”, and the memory is lost",
        repair="free some space",
        source="the file system's free space",
        rows=("C24",),
    ),
    Trap(
        id="database.wal-large",
        title="The write-ahead log has grown large",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_large_log,
        expected="a log of a few MiB",
        costs="every recall reads through it, and whoever copies the database without it loses what only the log holds",
        repair="end the clients and checkpoint",
        source="SQLite checkpoints at 1000 pages unless a reader stays open",
    ),
    Trap(
        id="database.export-folder",
        title="Exports and imports are confined to one folder",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_export_dir,
        expected="known to whoever exports",
        costs="export_memories and import_memories refuse every path outside that folder",
        repair="export into that folder, or remove CPERSONA_EXPORT_DIR",
        source="the server's issue bug-054",
        rows=("C27",),
    ),
    Trap(
        id="database.alias-ledger-lost",
        title="The alias ledger is missing beside a database that needs it",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_ledger,
        expected="alias_ledger.json beside the database",
        costs="the server refuses to start, rather than give signed-in people new names and empty memories",
        repair="restore the ledger from the backup",
        source="the server's issue bug-267",
        rows=("C22",),
    ),
)
