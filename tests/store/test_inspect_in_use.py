"""Reading what others have open, left behind or keep locked, without disturbing a byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.readings import ADD, crash_with_log, quietly, read
from support.stores import Other, Server, run_sql, untouched

from cpersona_cli.install.model import Process
from cpersona_cli.store import census, inspect, opening
from cpersona_cli.store.opening import ChangedError, opened
from cpersona_cli.store.reading import State


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
        with untouched(database.parent):
            found = inspect.read(database)  # the system itself tells who has it open
        assert server.process.pid in [p.pid for p in found.holders] or not found.holders_known
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
    crash_with_log(wal)
    (tmp_path / "private").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "private"))
    assert quietly(wal).counts["memories"] == 13
    assert list((tmp_path / "private").iterdir()) == []


@pytest.mark.parametrize(
    ("limit", "free", "words"), [(1000, None, "at most 0 MiB are copied"), (1 << 30, 1000, "only 0 MiB free")]
)
def test_no_copy_is_made_of_what_is_too_large(
    wal: Path, monkeypatch: pytest.MonkeyPatch, limit: int, free: int | None, words: str
) -> None:
    crash_with_log(wal)
    monkeypatch.setattr("cpersona_cli.store.opening.COPY_LIMIT", limit)
    if free is not None:
        monkeypatch.setattr("cpersona_cli.store.opening.free_bytes", lambda _: free)
    reading = quietly(wal)
    assert reading.state is State.UNREADABLE
    assert words in reading.detail
    assert reading.counts == {}


def test_a_copy_stops_at_the_deadline(wal: Path) -> None:
    crash_with_log(wal)
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
    monkeypatch.setattr(opening, "stamp", lambda _: (next(stamps),))
    for timeout in (10.0, 0.0):
        reading = quietly(wal, timeout=timeout)
        assert (reading.state, reading.counts) == (State.UNREADABLE, {})
        assert "changed faster" in reading.detail


def test_a_file_that_vanishes_meanwhile(wal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: Path) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(opening, "stamp", gone)
    assert read(wal).state is State.UNREADABLE


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


def test_somebody_holds_a_lock_also_where_nobody_is_seen(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a process of another user, or on another computer."""
    monkeypatch.setattr("cpersona_cli.store.opening.WAIT", 0.05)
    with Other(plain, "BEGIN EXCLUSIVE"):
        reading = quietly(plain, holders=lambda _: ())
    assert (reading.state, reading.holders, reading.holders_known) == (State.LOCKED, (), False)


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


def test_clients_that_come_and_go_are_outlasted(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start and end of a server changes the files once more."""
    attempts: list[Path] = []
    attempt = opening.once

    def disturbed(path: Path, *arguments: Any, **options: Any) -> Any:
        attempts.append(path)
        if len(attempts) < 8:
            raise ChangedError
        return attempt(path, *arguments, **options)

    monkeypatch.setattr(opening, "once", disturbed)
    assert quietly(plain).state is State.OK
    assert len(attempts) == 8
