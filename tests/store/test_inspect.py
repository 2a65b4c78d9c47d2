"""Every state a database can be in, and that reading it leaves its folder as it was."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.stores import Other, Server, copy_store, run_sql, schema_13, untouched

from cpersona_cli.install.model import Process
from cpersona_cli.store import census, inspect
from cpersona_cli.store.opening import opened
from cpersona_cli.store.reading import Reading, State

ROOT_DISK = "1 0 0:1 / / rw - ext4 /dev/x rw"


def nobody(path: Path) -> tuple[Process, ...]:
    return ()


def read(path: Path, *, holders: inspect.Holders = nobody, timeout: float = 10.0) -> Reading:
    """A reading that finds nobody else, on an ordinary disk."""
    return inspect.read(path, timeout=timeout, mountinfo=ROOT_DISK, system="linux", holders=holders)


def quietly(path: Path, **options: object) -> Reading:
    """A reading during which the folder must stay as it is, byte for byte."""
    with untouched(path.parent):
        return read(path, **options)  # type: ignore[arg-type]


# --- what a healthy store shows


def test_a_closed_store_of_the_server_is_read_without_locks(store: Path) -> None:
    reading = quietly(store)
    assert (reading.state, reading.detail, reading.method, reading.integrity) == (State.OK, "", "immutable", "whole")
    assert reading.schema == 21
    assert reading.journal == "wal"
    assert reading.mode == 0o600
    assert reading.agents == {"atlas": 15, "borealis": 5}
    assert reading.agents_total == 2
    assert reading.projects == {"": 20}
    assert reading.unembedded == 20
    assert reading.widths == {}
    assert reading.labels == {}
    assert reading.counts["memories"] == 20
    assert reading.counts["episodes"] == 1
    assert reading.counts["profiles"] == 1
    assert not any("fts" in table for table in reading.counts)
    assert reading.fts_rows == {"memories_fts": 20, "episodes_fts": 1}
    assert reading.missing == ()
    assert not reading.fts_pending
    assert reading.newest_memory.startswith("2025-03-20T09:30:00")
    assert reading.newest_episode_created
    assert reading.newest_episode_ended.startswith("2025-03-09T10:00:00")
    assert reading.before_newest_episode == 15  # an episode is stamped when it is archived
    assert (reading.invalid_timestamps, reading.future_timestamps) == (0, 0)
    assert reading.unmeasured == reading.unchecked == ()
    assert reading.conflicts == ()
    assert reading.calibration is None
    assert (reading.sqlite_version, reading.fts5) == (sqlite3.sqlite_version, True)
    assert reading.size == store.stat().st_size


@pytest.mark.parametrize("late", [False, True])
def test_a_store_of_an_older_server(tmp_path: Path, late: bool) -> None:
    reading = quietly(schema_13(tmp_path / "d" / "old.db", late=late))
    assert (reading.state, reading.schema, reading.journal, reading.method) == (State.OK, 13, "rollback", "in-place")
    assert reading.widths == {8: 12}
    assert reading.labels == {}  # labels came with schema 18
    assert reading.unembedded == 0
    assert reading.missing == ()
    assert reading.before_newest_episode == 3
    assert reading.fts_rows == {"memories_fts": 12, "episodes_fts": 1}


# --- WAL, live servers, crashes


@pytest.mark.server
def test_a_live_server_is_read_and_not_disturbed(tmp_path: Path) -> None:
    database = tmp_path / "live" / "memory.db"
    database.parent.mkdir()
    with Server(database) as server:
        server.store("atlas", "Written while the file is watched.")
        assert (database.parent / "memory.db-wal").stat().st_size > 0
        reading = quietly(database, holders=lambda _: (Process(pid=server.process.pid),))
        assert (reading.state, reading.method) == (State.OK, "in-place")
        assert reading.agents == {"atlas": 1}
        assert [p.pid for p in reading.holders] == [server.process.pid]
        assert reading.wal_bytes > 0
        server.store("atlas", "And it still writes.")
        assert quietly(database).agents == {"atlas": 2}
        assert len(server.call("recall", agent_id="atlas", query="still writes", limit=5)["messages"]) >= 1
    assert sorted(p.name for p in database.parent.iterdir()) == ["memory.db"]
    assert quietly(database).agents == {"atlas": 2}


@pytest.mark.server
def test_a_crashed_server_loses_nothing(tmp_path: Path) -> None:
    database = tmp_path / "crashed" / "memory.db"
    database.parent.mkdir()
    server = Server(database)
    server.store("atlas", "Never checkpointed.")
    server.kill()
    assert (database.parent / "memory.db-shm").exists()
    reading = quietly(database)
    assert (reading.state, reading.method, reading.agents) == (State.OK, "in-place", {"atlas": 1})
    (database.parent / "memory.db-shm").unlink()
    reading = quietly(database)
    assert (reading.state, reading.method, reading.agents) == (State.OK, "copy", {"atlas": 1})
    with Server(database) as server:
        server.store("atlas", "After the crash.")
    assert quietly(database).agents == {"atlas": 2}


@pytest.fixture
def wal(tmp_path: Path) -> Path:
    """A store in WAL mode, closed."""
    database = schema_13(tmp_path / "wal" / "c.db")
    run_sql(database, "PRAGMA journal_mode=WAL")
    return database


ADD = "INSERT INTO memories(agent_id, content, timestamp) VALUES ('cirrus', 'one more', '2025-04-01T00:00:00+00:00')"


@pytest.mark.parametrize(
    ("statements", "method"),
    [
        ((ADD,), "in-place"),
        ((ADD, "PRAGMA wal_checkpoint(PASSIVE)"), "in-place"),
        ((ADD, "PRAGMA wal_checkpoint(TRUNCATE)"), "immutable"),
        ((ADD, "BEGIN EXCLUSIVE", "DELETE FROM memories"), "in-place"),
        ((ADD, "BEGIN IMMEDIATE", "DELETE FROM memories"), "in-place"),
    ],
)
def test_another_connection_in_wal_mode(wal: Path, statements: tuple[str, ...], method: str) -> None:
    with Other(wal, *statements) as other:
        reading = quietly(wal)
        assert (reading.state, reading.method) == (State.OK, method)
        assert reading.counts["memories"] == 13
        assert not other.say("SELECT count(*) FROM memories").startswith("error")


def test_the_last_other_connection_may_close_while_it_is_read(wal: Path) -> None:
    with Other(wal, ADD) as other:
        with opened(wal, "in-place", deadline=float("inf")) as connection:
            connection.execute("BEGIN")
            assert connection.execute("SELECT count(*) FROM memories").fetchone() == (13,)
            assert other.say("close") == "closed"
            with untouched(wal.parent):
                assert connection.execute("SELECT count(*) FROM memories").fetchone() == (13,)
                connection.close()
        assert quietly(wal).counts["memories"] == 13
    run_sql(wal, "DELETE FROM memories WHERE agent_id = 'cirrus'")
    assert [p.name for p in wal.parent.iterdir()] == ["c.db"]
    assert quietly(wal).counts["memories"] == 12


@pytest.mark.parametrize("leftovers", [("-wal",), ("-shm",), ("-wal", "-shm")])
def test_empty_leftovers_beside_a_closed_store(wal: Path, leftovers: tuple[str, ...]) -> None:
    for suffix in leftovers:
        wal.with_name(wal.name + suffix).touch()
    reading = quietly(wal)
    assert (reading.state, reading.method, reading.counts["memories"]) == (State.OK, "immutable", 12)


def test_a_log_without_shm_is_read_from_a_copy(wal: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _crash_with_log(wal)
    (tmp_path / "private").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "private"))
    assert quietly(wal).counts["memories"] == 13
    assert list((tmp_path / "private").iterdir()) == []


def _crash_with_log(database: Path) -> None:
    """Leave a log with one committed row, and no ``-shm``."""
    with Other(database, "PRAGMA wal_autocheckpoint=0", ADD) as other:
        other.crash()
    database.with_name(database.name + "-shm").unlink()


@pytest.mark.parametrize(
    ("limit", "free", "words"), [(1000, None, "at most 0 MiB are copied"), (1 << 30, 1000, "only 0 MiB free")]
)
def test_no_copy_is_made_of_what_is_too_large(
    wal: Path, monkeypatch: pytest.MonkeyPatch, limit: int, free: int | None, words: str
) -> None:
    _crash_with_log(wal)
    monkeypatch.setattr("cpersona_cli.store.opening.COPY_LIMIT", limit)
    if free is not None:
        monkeypatch.setattr("cpersona_cli.store.opening.free_bytes", lambda _: free)
    reading = quietly(wal)
    assert reading.state is State.UNREADABLE
    assert words in reading.detail
    assert reading.counts == {}


def test_a_copy_stops_at_the_deadline(wal: Path) -> None:
    _crash_with_log(wal)
    reading = quietly(wal, timeout=0.0)
    assert reading.state is State.UNREADABLE
    assert "no time" in reading.detail


def test_a_server_that_starts_meanwhile_is_noticed(wal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first, lock-free answer is thrown away, the second one comes from the log."""
    others: list[Other] = []
    count = census.count

    def late(*arguments: object) -> None:
        if not others:
            others.append(Other(wal, ADD))
        count(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(inspect, "count", late)
    reading = read(wal)
    with others[0]:
        assert (reading.state, reading.method, reading.counts["memories"]) == (State.OK, "in-place", 13)


def test_a_store_that_never_rests_is_given_up(wal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = iter(range(1000))
    monkeypatch.setattr(inspect, "stamp", lambda _: (next(stamps),))
    for timeout in (10.0, 0.0):
        reading = quietly(wal, timeout=timeout)
        assert (reading.state, reading.counts) == (State.UNREADABLE, {})
        assert "changed faster" in reading.detail


def test_a_file_that_vanishes_meanwhile(wal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: Path) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(inspect, "stamp", gone)
    assert read(wal).state is State.UNREADABLE


# --- rollback mode, locks, hot journals


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A store in rollback mode."""
    return schema_13(tmp_path / "plain" / "c.db")


def test_a_writer_that_has_not_committed_does_not_hinder(plain: Path) -> None:
    with Other(plain, "BEGIN IMMEDIATE", ADD):
        reading = quietly(plain)
        assert (reading.state, reading.counts["memories"]) == (State.OK, 12)


def test_an_exclusive_lock_is_named_with_its_holder(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.store.opening.WAIT", 0.05)
    with Other(plain, "BEGIN EXCLUSIVE") as other:
        reading = quietly(plain, holders=lambda _: (Process(pid=other.process.pid, command="sleepy"),))
        assert reading.state is State.LOCKED
        assert [p.command for p in reading.holders] == ["sleepy"]
        assert reading.counts == {}
        other.say("ROLLBACK")
        assert quietly(plain).state is State.OK


def test_a_wal_store_kept_exclusively_is_locked(wal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.store.opening.WAIT", 0.05)
    with Other(wal, ADD, "PRAGMA locking_mode=EXCLUSIVE", ADD.replace("one", "yet one")):
        assert quietly(wal).state is State.LOCKED


def test_holders_the_system_hides(plain: Path) -> None:
    reading = read(plain, holders=lambda _: None)
    assert (reading.holders, reading.holders_known) == ((), False)


def test_a_journal_to_roll_back_is_rolled_back_in_a_copy(plain: Path) -> None:
    with Other(plain, "PRAGMA cache_size=1", "PRAGMA cache_spill=1", "BEGIN", "DELETE FROM memories") as other:
        other.say("CREATE TABLE wide AS SELECT randomblob(100000) FROM episodes")
        other.crash()
    assert plain.with_name("c.db-journal").stat().st_size > 0
    reading = quietly(plain)
    assert (reading.state, reading.method, reading.counts["memories"]) == (State.OK, "copy", 12)


# --- logs that do not belong


def test_an_empty_file_with_a_log_is_not_opened(wal: Path) -> None:
    _crash_with_log(wal)
    wal.write_bytes(b"")
    reading = quietly(wal)
    assert (reading.state, reading.size) == (State.STALE_WAL, 0)
    assert reading.wal_bytes > 0


def test_a_log_without_its_file(wal: Path) -> None:
    _crash_with_log(wal)
    wal.unlink()
    assert quietly(wal).state is State.STALE_WAL


def test_a_log_left_from_an_older_file(wal: Path, tmp_path: Path) -> None:
    """A backup was put in place of the file, and its log forgotten."""
    newer = copy_store(wal, tmp_path / "newer")
    for number in range(5):
        run_sql(newer, f"UPDATE schema_version SET version = 13 + {number}", f"PRAGMA user_version = {number}")
    with Other(wal, "PRAGMA wal_autocheckpoint=0", "PRAGMA user_version = 1", ADD) as other:
        other.crash()
    shutil.copyfile(newer, wal)
    reading = quietly(wal)
    assert reading.state is State.STALE_WAL
    assert "went on without it" in reading.detail


def test_a_log_of_a_later_file(wal: Path, tmp_path: Path) -> None:
    older = copy_store(wal, tmp_path / "older")
    for number in range(5):
        run_sql(wal, f"PRAGMA user_version = {2 * number}")
    with Other(wal, "PRAGMA wal_autocheckpoint=0", "PRAGMA user_version = 1", ADD) as other:
        other.crash()
    shutil.copyfile(older, wal)
    reading = quietly(wal)
    assert reading.state is State.STALE_WAL
    assert "older than it" in reading.detail


def test_a_log_written_for_a_database_of_another_size(wal: Path, tmp_path: Path) -> None:
    longer = copy_store(wal, tmp_path / "longer")
    run_sql(longer, "CREATE TABLE extra(a)")
    _crash_with_log(wal)
    shutil.copyfile(longer, wal)
    reading = quietly(wal)
    assert reading.state is State.STALE_WAL
    assert "pages" in reading.detail


def test_a_log_of_another_page_size(wal: Path, tmp_path: Path) -> None:
    _crash_with_log(wal)
    other = tmp_path / "other.db"
    run_sql(other, "PRAGMA page_size=8192", "CREATE TABLE t(a)")
    shutil.copyfile(other, wal)
    assert quietly(wal).state is State.STALE_WAL


@pytest.mark.parametrize(("seconds", "state"), [(59, State.OK), (3 * 3600, State.STALE_WAL)])
def test_a_file_written_long_after_its_log(wal: Path, seconds: int, state: State) -> None:
    _crash_with_log(wal)
    log = wal.with_name("c.db-wal").stat()
    os.utime(wal, (log.st_atime, log.st_mtime + seconds))
    reading = quietly(wal)
    assert reading.state is state
    assert ("3 hours after it" in reading.detail) == (state is State.STALE_WAL)
    # Somebody uses it: then the times prove nothing.
    assert quietly(wal, holders=lambda _: (Process(pid=1),)).state is State.OK


def test_a_finished_checkpoint_needs_no_time(wal: Path) -> None:
    """The log is older than the file, and everything in it is in the file."""
    with Other(wal, "PRAGMA wal_autocheckpoint=0", ADD, "PRAGMA wal_checkpoint(PASSIVE)") as other:
        other.crash()
    log = wal.with_name("c.db-wal").stat()
    os.utime(wal, (log.st_atime, log.st_mtime + 7200))
    assert quietly(wal).counts["memories"] == 13


def test_a_log_that_changes_while_it_is_judged_is_looked_at_again(wal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _crash_with_log(wal)
    reasons = iter(("torn", "torn", ""))
    stamps = iter((1, 2, 3, 4, 5))
    monkeypatch.setattr(inspect, "why_stale", lambda *_, **__: next(reasons))
    monkeypatch.setattr(inspect, "stamp", lambda _: (next(stamps),))
    reading = quietly(wal)
    assert (reading.state, reading.counts["memories"]) == (State.OK, 13)


def test_a_folder_in_place_of_the_log(wal: Path) -> None:
    wal.with_name("c.db-wal").mkdir()
    reading = read(wal)
    assert (reading.state, "c.db-wal: " in reading.detail) == (State.UNREADABLE, True)


def test_a_damaged_file_that_needs_a_copy(wal: Path) -> None:
    _crash_with_log(wal)
    wal.with_name("c.db-shm").touch()
    spoil_the_schema(wal)
    assert quietly(wal).state is State.CORRUPT


def test_a_log_that_is_no_log_is_passed_over(wal: Path) -> None:
    wal.with_name("c.db-wal").write_bytes(b"\0" * 5000)
    assert quietly(wal).counts["memories"] == 12


# --- paths at which there is no file to read


def long_name(folder: Path) -> Path:
    return folder / ("x" * 300)


def long_path(folder: Path) -> Path:
    deep = folder.joinpath(*["d" * 100] * 5)
    deep.mkdir(parents=True)
    (deep / "c.db").touch()
    return deep / "c.db"


def nul(folder: Path) -> Path:
    return folder / "a\0b.db"


def surrogate(folder: Path) -> Path:
    return folder / "a\ud800.db"


def dangling(folder: Path) -> Path:
    (folder / "link.db").symlink_to(folder / "nowhere.db")
    return folder / "link.db"


def dangling_folder(folder: Path) -> Path:
    (folder / "link").symlink_to(folder / "nowhere")
    return folder / "link" / "c.db"


def loop(folder: Path) -> Path:
    (folder / "one").symlink_to(folder / "two")
    (folder / "two").symlink_to(folder / "one")
    return folder / "one"


def below_a_file(folder: Path) -> Path:
    (folder / "file").write_text("x")
    return folder / "file" / "deeper" / "c.db"


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.db")
    return folder / "pipe.db"


@pytest.mark.parametrize(
    ("make", "state", "words"),
    [
        (lambda f: f / "c.db", State.MISSING, "no such file"),
        (lambda f: f / "none" / "c.db", State.NO_FOLDER, "does not exist"),
        (lambda f: f, State.IS_FOLDER, "folder"),
        (long_name, State.NAME_TOO_LONG, "300 bytes"),
        (long_path, State.NAME_TOO_LONG, "SQLite opens at most 504"),
        (nul, State.UNREADABLE, "NUL"),
        (surrogate, State.UNREADABLE, "no file name can hold"),
        (dangling, State.MISSING, "symbolic link to"),
        (dangling_folder, State.NO_FOLDER, "symbolic link to"),
        (loop, State.UNREADABLE, "circle"),
        (below_a_file, State.NO_FOLDER, "is a file, not a folder"),
        (pipe, State.UNREADABLE, "named pipe"),
    ],
)
def test_no_file_to_read(tmp_path: Path, make: Callable[[Path], Path], state: State, words: str) -> None:
    path = make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    reading = read(path)
    assert reading.state is state
    assert words in reading.detail
    assert reading.path == path
    assert sorted(tmp_path.rglob("*")) == before


def test_the_reasons_for_unable_to_open_differ(tmp_path: Path) -> None:
    paths = (tmp_path / "c.db", tmp_path / "none" / "c.db", tmp_path, long_name(tmp_path), nul(tmp_path))
    assert len({read(path).detail for path in paths}) == len(paths)


@pytest.mark.parametrize(
    ("error", "state", "words"),
    [
        (OSError(5, "Input/output error"), State.UNREADABLE, "Input/output error"),
        (PermissionError(13, "Permission denied"), State.NO_PERMISSION, "may not read"),
    ],
)
def test_a_file_that_cannot_be_read(
    plain: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, state: State, words: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(inspect, "head_of", fail)
    reading = read(plain)
    assert (reading.state, words in reading.detail) == (state, True)


def test_a_disk_that_fails_while_it_is_read(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(inspect, "stamp", fail)
    assert "c.db: Input/output error" in read(plain).detail


def test_a_copy_made_because_the_file_cannot_be_opened_may_be_damaged(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = {"in-place": sqlite3.SQLITE_CANTOPEN, "copy": sqlite3.SQLITE_CORRUPT}

    def fail(method: str, *_: object) -> None:
        error = sqlite3.DatabaseError(method)
        error.sqlite_errorcode = codes[method]
        raise error

    monkeypatch.setattr(inspect, "_by", fail)
    reading = quietly(plain)
    assert (reading.state, reading.detail) == (State.CORRUPT, "copy")


def test_a_folder_without_shm_that_somebody_uses(wal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.store.files.may_write", lambda _: False)
    reading = quietly(wal, holders=lambda _: (Process(pid=1),))
    assert (reading.state, reading.counts) == (State.FOLDER_READ_ONLY, {})
    reading = quietly(wal, holders=lambda _: None)
    assert (reading.state, reading.folder_writable) == (State.OK, False)


def test_a_drive_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.store.files.existing_folder", lambda _: None)
    assert not read(tmp_path / "c.db").folder_writable


def test_in_memory_is_volatile() -> None:
    assert read(Path(":memory:")).state is State.VOLATILE


def test_a_link_is_followed_and_the_log_found_beside_the_file(wal: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(wal)
    (tmp_path / "link.db.calibration.json").write_text('{"embedding_dim": 8}')
    with Other(wal, ADD), untouched(tmp_path):
        reading = read(link)
    assert (reading.counts["memories"], reading.method) == (13, "in-place")
    assert reading.wal_bytes > 0
    assert reading.calibration == {"embedding_dim": 8}


def test_unusual_names(tmp_path: Path) -> None:
    for name in ("a b?c#d%41.db", "файл.db", os.fsdecode(b"\xff\xfe.db")):
        database = schema_13(tmp_path / "odd" / "c.db")
        renamed = database.rename(tmp_path / name)
        assert read(renamed).counts["memories"] == 12, name


# --- not a database, or not one of ours


def test_zero_bytes(tmp_path: Path) -> None:
    (tmp_path / "c.db").touch()
    assert quietly(tmp_path / "c.db").state is State.EMPTY


def test_no_tables(tmp_path: Path) -> None:
    run_sql(tmp_path / "c.db", "CREATE TABLE t(a)", "DROP TABLE t")
    assert quietly(tmp_path / "c.db").state is State.EMPTY


def test_the_schema_and_no_rows(tmp_path: Path) -> None:
    reading = quietly(schema_13(tmp_path / "c.db", rows=0))
    assert (reading.state, reading.counts["memories"], reading.widths, reading.agents) == (State.OK, 0, {}, {})


@pytest.mark.parametrize(
    "tables",
    [
        ("messages(id, body)", "threads(id, title)"),
        ("memories(id, text)", "users(id)"),
        ("schema_version(version)", "episodes(season, title)"),
    ],
)
def test_the_database_of_another_program(tmp_path: Path, tables: tuple[str, ...]) -> None:
    run_sql(tmp_path / "c.db", *(f"CREATE TABLE {table}" for table in tables))
    reading = quietly(tmp_path / "c.db")
    assert reading.state is State.FOREIGN
    assert all(table.partition("(")[0] in reading.detail for table in tables)
    assert "memories" not in reading.counts


def test_not_sqlite_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_text("<!DOCTYPE html><title>Sign in</title>")
    reading = quietly(tmp_path / "c.db")
    assert (reading.state, "HTML page" in reading.detail) == (State.NOT_SQLITE, True)


@pytest.mark.parametrize("keep", [16, 60, 100, 512, 4095])
def test_only_the_beginning_is_left(plain: Path, keep: int) -> None:
    os.truncate(plain, keep)
    reading = quietly(plain)
    assert reading.state is State.CORRUPT
    assert f"{keep} bytes" in reading.detail


# --- damage


def large(database: Path) -> Path:
    return schema_13(database, rows=400, dim=256)


def zero_a_page(database: Path) -> None:
    with database.open("r+b") as file:
        file.seek(30 * 4096)
        file.write(bytes(4096))


def cut(database: Path) -> None:
    os.truncate(database, int(database.stat().st_size * 0.6))


def spoil_the_schema(database: Path) -> None:
    with database.open("r+b") as file:
        file.seek(100)
        file.write(b"\xee" * 200)


def spoil_the_header(database: Path) -> None:
    with database.open("r+b") as file:
        file.seek(16)
        file.write(b"\x00\x07\x09\x09")


def break_a_rule(database: Path) -> None:
    """No page is broken: here quick_check does not raise, it answers with a row of text."""
    run_sql(
        database,
        "CREATE TABLE extra(a)",
        "INSERT INTO extra VALUES (NULL)",
        "PRAGMA writable_schema=1",
        "UPDATE sqlite_master SET sql = 'CREATE TABLE extra(a NOT NULL)' WHERE name = 'extra'",
    )


@pytest.mark.parametrize("damage", [zero_a_page, cut, spoil_the_schema, spoil_the_header, break_a_rule])
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_damage(tmp_path: Path, damage: Callable[[Path], None], mode: str) -> None:
    database = large(tmp_path / "d" / "c.db")
    run_sql(database, f"PRAGMA journal_mode={mode}")
    damage(database)
    reading = quietly(database)
    assert reading.state is State.CORRUPT
    assert reading.detail
    assert "Traceback" not in reading.detail


# --- time


def test_no_time_is_said_not_guessed(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "c.db", rows=20_000, text_index=False)
    reading = quietly(database, timeout=0.0)
    assert reading.state is State.OK
    assert {"widths", "longest_content"} <= set(reading.unmeasured)
    assert reading.integrity == ""
    assert "memories" in reading.unchecked or "counts" in reading.unmeasured


# --- users without rights (the suite may run as root)

AS_NOBODY = """
import os, sys
from pathlib import Path
from cpersona_cli.store.inspect import read
from cpersona_cli.install.model import Process
import fcntl
os.setgroups([]); os.setgid(65534); os.setuid(65534)
holders = {"": (), "held": (Process(pid=1),)}[sys.argv[2]]
reading = read(Path(sys.argv[1]), timeout=10, mountinfo="", system="linux", holders=lambda _: holders)
print(reading.state.value, reading.method, reading.counts.get("memories"), reading.writable, reading.folder_writable)
print(reading.detail)
"""

needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another")


@pytest.fixture
def shared(wal: Path) -> Iterator[Path]:
    """A copy of ``wal`` in a folder that anybody may enter; pytest's own are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield copy_store(wal, Path(folder) / "store")


def as_nobody(path: Path, held: str = "") -> tuple[str, str]:
    """The reading as a user without rights makes it: (state, method, memories, writable, folder_writable), detail."""
    modules = os.pathsep.join(p for p in sys.path if p)
    run = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(path), held],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": modules},
    )
    assert run.returncode == 0, run.stderr
    first, _, second = run.stdout.strip("\n").partition("\n")
    return first, second


@needs_root
@pytest.mark.parametrize(
    ("file", "folder", "held", "expected", "words"),
    [
        (0o600, 0o755, "", "no-permission", "may not read the file"),
        (0o644, 0o700, "", "no-permission", "may not be entered"),
        (0o644, 0o555, "", "ok immutable 12 False False", ""),
        (0o666, 0o777, "", "ok immutable 12 True True", ""),
        (0o644, 0o555, "held", "folder-read-only", "-shm"),
    ],
)
def test_rights(  # noqa: PLR0917
    shared: Path, file: int, folder: int, held: str, expected: str, words: str
) -> None:
    shared.chmod(file)
    shared.parent.chmod(folder)
    answer, detail = as_nobody(shared, held)
    assert answer.startswith(expected)
    assert words in detail


@needs_root
def test_rights_with_a_live_writer(shared: Path) -> None:
    shared.chmod(0o644)
    with Other(shared, ADD), untouched(shared.parent):
        for log in shared.parent.iterdir():
            log.chmod(0o644)
        shared.parent.chmod(0o555)
        assert as_nobody(shared, "held")[0] == "ok in-place 13 False False"


@needs_root
def test_a_shm_that_may_not_be_read(shared: Path) -> None:
    shared.chmod(0o644)
    with Other(shared, ADD):
        shared.with_name("c.db-wal").chmod(0o644)
        shared.with_name("c.db-shm").chmod(0o600)
        assert as_nobody(shared)[0].startswith("ok copy 13")
