"""States of a database file, and the place it lies in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.traps import MACHINE, Case, all_traps, docker, everything, facts, outcome, reading
from support.variations import severities

from cpersona_cli.install.model import Process
from cpersona_cli.record import replace
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.traps.model import Facts

DB = "/home/u/cpersona.db"
OTHER = reading("/home/u/other.db", counts={"memories": 12})
HELD = (Process(pid=4711, command="/usr/bin/python -m cpersona", started=1_700_000_000.0),)
WINDOWS = replace(MACHINE, system="windows")


def seen(state: State = State.OK, *others: Reading, detail: str = "", pre: bool = False, **fields: object) -> Facts:
    one = reading(DB, state, detail=detail, **fields)
    return facts({"CPERSONA_DB_PATH": DB}, reading=[one, *others], before_first_start=pre)


def led_astray(state: State) -> Facts:
    """A path that begins with ``~``, and the file of that name in the folder the server starts in."""
    return facts({"CPERSONA_DB_PATH": "~/m.db"}, reading=reading("/home/u/work/~/m.db", state), cwd="/home/u/work")


def case(name: str, what: str, known: Facts, state: str = "findings", says: str | tuple[str, ...] = ()) -> Case:
    return Case(f"database.{name}", what, known, state, says)


LOCKED = seen(State.LOCKED, holders=HELD)
READ_ONLY = seen(State.FOLDER_READ_ONLY, owner=10001, files={"-wal": 5}, holders=HELD)
STALE = seen(State.STALE_WAL, detail="its log is older than the file", files={"-wal": 400})
CORRUPT = seen(State.CORRUPT, detail="database disk image is malformed", files={"-wal": 4, "-shm": 5})

CASES = (
    case(
        "missing", "another has memories", seen(State.MISSING, OTHER), says=("other.db (12 memories)", "makes the file")
    ),
    case("missing", "nothing else", seen(State.MISSING), says="makes the file"),
    case("missing", "before the first start", seen(State.MISSING, OTHER, pre=True), "pass"),
    case("missing", "there", seen(), "pass"),
    case("no-folder", "no folder", seen(State.NO_FOLDER), says="the folder /home/u does not exist"),
    case("no-folder", "before the first start", seen(State.NO_FOLDER, pre=True), says="at its first start"),
    case("no-folder", "there", seen(), "pass"),
    case("no-folder", "of a path that is wrong as it is written", led_astray(State.NO_FOLDER), "pass"),
    case("missing", "of a path that is wrong as it is written", led_astray(State.MISSING), "pass"),
    case("is-folder", "a folder", seen(State.IS_FOLDER), says=f"{DB}/cpersona.db"),
    case("is-folder", "a file", seen(), "pass"),
    case("no-permission", "refused", seen(State.NO_PERMISSION, owner=0), says=("may not read", "user id 0", "chown")),
    case("no-permission", "allowed", seen(), "pass"),
    case("name-too-long", "long", seen(State.NAME_TOO_LONG), says="19 characters"),
    case("name-too-long", "short", seen(), "pass"),
    case(
        "not-sqlite",
        "a page",
        seen(State.NOT_SQLITE, detail="this is an HTML page"),
        says=("this is an HTML page", "mv "),
    ),
    case("not-sqlite", "a database", seen(), "pass"),
    case("empty", "zero bytes", seen(State.EMPTY, OTHER, size=0), says=("zero bytes", "wrong path", "other.db")),
    case("empty", "no tables", seen(State.EMPTY, size=4096), says="without any table"),
    case("empty", "before the first start", seen(State.EMPTY, pre=True), "pass"),
    case("empty", "the schema and no rows", seen(counts={"memories": 0}), "pass"),
    case(
        "foreign", "another program's", seen(State.FOREIGN, detail="tables messages, threads"), says="messages, threads"
    ),
    case("foreign", "ours", seen(), "pass"),
    case("corrupt", "damaged", CORRUPT, says=("malformed", ".recover", f"cp -p {DB}-wal", f"{DB}.damaged-shm")),
    case("corrupt", "whole", seen(), "pass"),
    case("integrity-unknown", "partly checked", seen(integrity="partial", unchecked=("episodes",)), "unknown"),
    case("integrity-unknown", "no time at all", seen(unmeasured=("integrity",)), "unknown"),
    case("integrity-unknown", "whole", seen(integrity="whole"), "pass"),
    case("integrity-unknown", "unreadable", seen(State.CORRUPT), "skipped"),
    case("locked", "locked", LOCKED, "unknown"),
    case("locked", "free", seen(), "pass"),
    case("folder-read-only", "held", READ_ONLY, says=("-shm", "process 4711", "user id 10001", f"{DB}-wal")),
    case("folder-read-only", "not held", seen(State.FOLDER_READ_ONLY), says="immutable=1"),
    case("folder-read-only", "not told", seen(State.FOLDER_READ_ONLY, holders_known=False), says="does not tell"),
    case("folder-read-only", "writable", seen(), "pass"),
    case(
        "stale-wal",
        "an older log",
        STALE,
        says=("its log is older", "mv ", "of-another-database", "every process has closed"),
    ),
    case("stale-wal", "its own log", seen(files={"-wal": 1}), "pass"),
    case("unreadable", "whatever", seen(State.UNREADABLE, detail="disk I/O error"), "unknown"),
    case("unreadable", "read", seen(), "pass"),
    case("synced-folder", "a cloud", seen(risk="synced", risk_detail="OneDrive is copied away"), says="OneDrive"),
    case(
        "synced-folder",
        "conflict copies",
        seen(
            risk="synced",
            risk_detail="Dropbox is copied away",
            conflicts=(("c (conflicted copy 2026-01-02).db", 9), ("c 2.db", None)),
            counts={"memories": 11},
        ),
        says=("c (conflicted copy 2026-01-02).db (9 memories)", "c 2.db (could not be read)", "has 11 memories"),
    ),
    case("synced-folder", "copies alone", seen(conflicts=(("c-conflict.db", 1),)), says="1 conflict copy"),
    case("synced-folder", "a local disk", seen(), "pass"),
    case("synced-folder", "in memory", seen(State.VOLATILE), "skipped"),
    case(
        "unsafe-filesystem",
        "NFS",
        seen(risk="network", filesystem="nfs4", risk_detail="/net is an NFS share"),
        says="nfs4",
    ),
    case("unsafe-filesystem", "a bind mount", seen(risk="bind-mount", filesystem="fakeowner"), says="named volume"),
    case("unsafe-filesystem", "ext4", seen(filesystem="ext4"), "pass"),
    case("unsafe-filesystem", "before it exists", seen(State.MISSING, risk="network", filesystem="9p"), says="9p"),
    case("volatile-folder", "tmpfs", seen(risk="volatile", filesystem="tmpfs"), says="tmpfs"),
    case("volatile-folder", "a disk", seen(), "pass"),
    case(
        "git-folder",
        "a working tree",
        seen(risk="git", risk_detail="inside the git working tree /home/u"),
        says="tree /home/u",
    ),
    case("git-folder", "none", seen(), "pass"),
    case("not-writable", "the file", seen(writable=False), says=f"may not write {DB}"),
    case("not-writable", "the folder", seen(folder_writable=False), says="may not write in /home/u"),
    case("not-writable", "before it exists", seen(State.MISSING, folder_writable=False), says="has yet to be made"),
    case("not-writable", "both fine", seen(), "pass"),
    case("not-writable", "another state", seen(State.CORRUPT, writable=False), "skipped"),
    case("open-to-others", "0644", seen(mode=0o100644), says=("0644", "may read it", "chmod 600")),
    case("open-to-others", "0666", seen(mode=0o666, files={"-wal": 1}), says=("and write it", f"{DB}-wal")),
    case("open-to-others", "0600", seen(), "pass"),
    case("open-to-others", "no modes", seen(mode=None), "pass"),
    case("open-to-others", "a folder", seen(State.IS_FOLDER, mode=0o755), "pass"),
    case("open-to-others", "nothing there", seen(State.MISSING, mode=0o755), "skipped"),
    case("disk-full", "little", seen(free_bytes=3 << 20), says="3.0 MiB"),
    case("disk-full", "enough", seen(free_bytes=64 << 20), "pass"),
    case("disk-full", "not told", seen(), "pass"),
    case("wal-large", "large", seen(wal_bytes=64 << 20), says=("64 MiB", "wal_checkpoint", "no process has it open")),
    case("wal-large", "small", seen(wal_bytes=4 << 20), "pass"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_files(case: Case) -> None:
    case.check()


def test_severities_that_depend() -> None:
    assert severities(outcome("database.missing", seen(State.MISSING))[1]) == ["hint"]
    assert severities(outcome("database.missing", seen(State.MISSING, OTHER))[1]) == ["warning"]
    assert severities(outcome("database.no-folder", seen(State.NO_FOLDER))[1]) == ["warning"]
    assert severities(outcome("database.no-folder", seen(State.NO_FOLDER, pre=True))[1]) == ["hint"]
    assert severities(outcome("database.synced-folder", seen(risk="synced", risk_detail="x"))[1]) == ["warning"]
    assert severities(outcome("database.synced-folder", seen(conflicts=(("c", 1),)))[1]) == ["fault"]
    assert severities(outcome("database.unsafe-filesystem", seen(risk="network", filesystem="nfs"))[1]) == ["fault"]
    assert severities(outcome("database.unsafe-filesystem", seen(risk="network"))[1]) == ["warning"]
    assert severities(outcome("database.unsafe-filesystem", seen(risk="bind-mount", filesystem="x"))[1]) == ["warning"]


def reason(name: str, known: Facts) -> str:
    from cpersona_cli.traps.run import check  # noqa: PLC0415

    return check(all_traps()[f"database.{name}"], known).reason


def test_a_lock_is_told_with_its_holder_and_nothing_is_ended() -> None:
    told = reason("locked", LOCKED)
    assert "process 4711, since 2023-11-14 22:13 UTC: /usr/bin/python -m cpersona" in told
    assert "nothing was ended or removed" in told
    assert "kill" not in told


def test_what_was_not_checked_is_named() -> None:
    assert "episodes not checked" in reason("integrity-unknown", seen(integrity="partial", unchecked=("episodes",)))
    assert "disk I/O error" in reason("unreadable", seen(State.UNREADABLE, detail="disk I/O error"))


def test_each_reason_why_it_cannot_be_opened_has_its_own_sentence() -> None:
    states = (State.MISSING, State.NO_FOLDER, State.IS_FOLDER, State.NO_PERMISSION, State.NAME_TOO_LONG)
    told = set()
    for state in states:
        _, (finding,) = outcome(f"database.{state}", seen(state))
        told.add(finding.measured)
    assert len(told) == len(states)


@pytest.mark.parametrize("state", list(State))
def test_no_sentence_proposes_to_remove_a_log(state: State) -> None:
    """Removing ``-wal`` loses what only the log holds; removing ``-shm`` under a live process destroys the database."""
    known = seen(state, OTHER, holders=HELD, files={"-wal": 900, "-shm": 900}, wal_bytes=1 << 30, detail="whatever")
    for trap in all_traps().values():
        if trap.group != "database":
            continue
        ended, findings = outcome(trap.id, known)
        told = [reason(trap.id.partition(".")[2], known), trap.repair, trap.costs, *map(everything, findings)]
        for text in told:
            assert not re.search(r"\b(rm|del|delete|remove|unlink|erase)\b[^.;]*-(wal|shm)", text), (ended, text)


def test_a_file_in_a_container_is_another_users() -> None:
    mount = ((str(Path(DB).parent), "/data"),)
    known = facts(
        launch=docker({"CPERSONA_DB_PATH": "/data/cpersona.db"}, mounts=mount), reading=reading(DB, writable=False)
    )
    assert [target.database.path for target in known.databases[0].targets] == [Path(DB)]
    assert outcome("database.not-writable", known)[0] == "skipped"


def test_commands_for_windows() -> None:
    known = replace(seen(State.NOT_SQLITE), machine=WINDOWS)
    _, (finding,) = outcome("database.not-sqlite", known)
    assert finding.repair.commands == (f"move {DB} {DB}.not-a-database",)
    _, (refused,) = outcome("database.no-permission", replace(seen(State.NO_PERMISSION), machine=WINDOWS))
    assert refused.repair.commands[0].startswith("icacls ")
    spaced = replace(facts(reading=reading("/home/u/my c.db", State.CORRUPT)), machine=WINDOWS)
    _, (damaged,) = outcome("database.corrupt", spaced)
    assert damaged.repair.commands[0] == 'copy "/home/u/my c.db" "/home/u/my c.db.damaged"'


def test_a_database_already_in_the_usual_folder_is_sent_elsewhere() -> None:
    known = facts(
        reading=reading("/home/u/.claude/c.db", risk="git", files={".calibration.json": 3, "-wal": 1, "x": 1})
    )
    _, (finding,) = outcome("database.git-folder", known)
    assert "/home/u/.local/share/cpersona/c.db" in finding.repair.prose
    assert [command.split()[2] for command in finding.repair.commands] == [
        "/home/u/.claude/c.db",
        "/home/u/.claude/c.db-wal",
        "/home/u/.claude/c.db.calibration.json",
    ]
