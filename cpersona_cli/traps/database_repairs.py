"""What is done about a database file: nothing here removes one, or touches a log while a process may use it."""

from __future__ import annotations

from cpersona_cli.install.machine import Machine
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.text import plural
from cpersona_cli.traps.model import Facts, Repair
from cpersona_cli.traps.shell import copy, word


def check_spelling(facts: Facts) -> Repair:
    """For a file that is not where it is looked for: the databases of this machine that do exist."""
    others = [
        f"{other.path} ({plural(other.reading.counts.get('memories', 0), 'memory', 'memories')})"
        for other in facts.databases
        if other.reading.state is State.OK and other.path != facts.database.path
    ]
    known = f"; databases that do exist: {', '.join(others)}" if others else ""
    return Repair(prose=f"check the spelling of CPERSONA_DB_PATH{known}")


def take_over(facts: Facts, reading: Reading) -> Repair:
    """Give the database's folder to the user the clients run as."""
    if facts.machine.system == "windows":
        folder = word(reading.path.parent, facts.machine)
        return Repair(
            prose="let the user who starts the client read and write the folder",
            commands=(f'icacls {folder} /grant "%USERNAME%":(OI)(CI)M',),
        )
    files = " ".join(
        word(f"{reading.path}{end}", facts.machine) for end in ("", "-wal", "-shm") if not end or end in reading.files
    )
    owner = "" if reading.owner is None else f" (it belongs to user id {reading.owner})"
    return Repair(
        prose=f"give the folder and the database to the user who starts the client{owner}",
        commands=(
            f'sudo chown "$(id -u)" {word(reading.path.parent, facts.machine)} {files}',
            f"chmod u+rw {files}",
        ),
    )


def salvage(reading: Reading, machine: Machine) -> tuple[str, ...]:
    """Copy a damaged database with its logs, and recover from the copy."""
    safe_copy = f"{reading.path}.damaged"
    ends = [end for end in ("", "-wal", "-shm") if not end or end in reading.files]
    return (
        *(copy(f"{reading.path}{end}", f"{safe_copy}{end}", machine) for end in ends),
        f"sqlite3 {word(safe_copy, machine)} .recover | sqlite3 {word(f'{reading.path}.recovered', machine)}",
    )
