"""The backup, the locks, the look from outside, and what a full disk leaves behind."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.jobs import ask, ours, stage, stored, target
from support.stores import Other, Server, run_sql, schema_13, untouched

from cpersona_cli.store.job import JobState, backup_path, staging_path, undo_path
from cpersona_cli.store.model import StoreError
from cpersona_cli.store.writing import backup, calibration, locks
from cpersona_cli.store.writing.backup import back_up
from cpersona_cli.store.writing.cutover import cut_over
from cpersona_cli.store.writing.joblock import JobLock
from cpersona_cli.store.writing.staging import open_job
from cpersona_cli.store.writing.status import job_status
from cpersona_cli.store.writing.undo import undo


def test_a_backup_is_a_whole_copy_of_one_moment(old: Path) -> None:
    run_sql(old, "UPDATE memories SET content = content || ' in the log' WHERE id = 1")
    before = stored(old)
    steps: list[tuple[str, int, int]] = []
    with open_job(old, target()) as staging, Other(old, "UPDATE memories SET recall_count = 3 WHERE id = 2") as other:

        def step(*told: object) -> None:
            # Another process keeps writing, and the copy neither waits for it nor begins anew.
            assert other.say(f"UPDATE memories SET recall_count = {9 + len(steps)} WHERE id = 2") == "[]"
            steps.append(told)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(backup, "_PAGES", 5)
            done = back_up(staging, step)
        assert done.made
        assert done.bytes == backup_path(old).stat().st_size
        again = back_up(staging)
        assert (again.made, again.bytes) == (False, done.bytes)
        stage(staging)
        cut_over(old, staging)
    assert len(steps) > 3
    assert steps[-1][1] == steps[-1][2] == done.bytes
    assert backup_path(old).stat().st_mode & 0o777 == 0o600
    assert stored(backup_path(old)) == before
    assert ask(backup_path(old), "SELECT recall_count FROM memories WHERE id = 2") == [(3,)]
    with open_job(old, target()) as staging:
        assert back_up(staging).made  # another job
    assert stored(backup_path(old)) == stored(old)


def test_a_backup_that_was_touched_is_made_again(old: Path) -> None:
    with open_job(old, target()) as staging:
        back_up(staging)
        backup_path(old).write_bytes(b"short")
        assert back_up(staging).made
        backup_path(old).unlink()
        assert back_up(staging).made


def test_a_damaged_database_has_no_backup(old: Path) -> None:
    run_sql(old, "PRAGMA wal_checkpoint(TRUNCATE)")
    (root,) = ask(old, "SELECT rootpage FROM sqlite_master WHERE name = 'idx_memories_agent'")[0]
    assert isinstance(root, int)
    with old.open("r+b") as file:
        file.seek((root - 1) * 4096 + 3)
        file.write(b"\xff" * 40)
    with open_job(old, target()) as staging:
        with pytest.raises(StoreError, match="damaged"):
            back_up(staging)
        assert ours(old) == {"", "-wal", "-shm", ".lock"}


def test_damage_that_only_a_check_sees_is_seen(old: Path) -> None:
    run_sql(
        old,
        "PRAGMA writable_schema=ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'start_time TEXT', 'start_time TEXT NOT NULL')",
    )
    with open_job(old, target()) as staging:
        with pytest.raises(StoreError, match=r"damaged \(NULL value in episodes.start_time\)"):
            back_up(staging)
        assert not backup_path(old).exists()


def test_a_backup_short_of_rows_does_not_count(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copying = backup._copy

    def losing(main: object, new: Path, tell: object) -> dict[str, int]:
        counts = copying(main, new, tell)  # type: ignore[arg-type]
        run_sql(new, "PRAGMA journal_mode=DELETE", "DELETE FROM memories WHERE id = 4")
        return counts

    monkeypatch.setattr(backup, "_copy", losing)
    with open_job(old, target()) as staging:
        with pytest.raises(StoreError, match="does not hold all"):
            back_up(staging)
        assert not backup_path(old).exists()


#: Ends a step as a full disk does: no file may grow beyond so many bytes.
LIMITED = """
import resource, signal, sys
from pathlib import Path
from support.jobs import stage, target
from cpersona_cli.store.model import StoreError
from cpersona_cli.store.writing import cutover
from cpersona_cli.store.writing.backup import back_up
from cpersona_cli.store.writing.staging import open_job

database, what, limit = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)

def full():
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with open_job(database, target(256)) as staging:
        if what == "staging":
            full()
        stage(staging)
        if what == "backup":
            full()
            back_up(staging)
        if what == "undo":
            full()
        if what == "log":
            updating = cutover._update
            def limited(*args):
                full()
                updating(*args)
            cutover._update = limited
        if what != "staging":
            cutover.cut_over(database, staging)
except StoreError as error:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    print(error)
    sys.exit(5)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
@pytest.mark.parametrize(
    ("what", "limit", "name"),
    [
        ("staging", 100_000, ".reembed"),
        ("backup", 60_000, ".reembed-backup.new"),
        ("undo", 60_000, ".reembed-undo.next"),
        ("log", 30_000, ""),
    ],
)
def test_a_full_disk_loses_nothing(tmp_path: Path, what: str, limit: int, name: str) -> None:
    database = schema_13(tmp_path / "old" / "c.db", rows=200, dim=64)
    run_sql(database, "PRAGMA journal_mode=WAL")
    before = stored(database)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED), str(database), what, str(limit)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["tests", "."])},
        cwd=Path(__file__).parents[3],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (5, "")
    assert done.stdout.startswith(f"{database}{name} cannot be written")
    assert "make room on its disk" in done.stdout
    assert stored(database) == before
    # With no room left even a state may stay as it was; the next run asks the database.
    assert ours(database) <= {"", "-wal", "-shm"} | ({"-undo.next"} if what == "log" else set())
    with open_job(database, target(256)) as staging:
        assert not staging.fresh
        assert staging.state is not JobState.CUT
        wanted = stage(staging)
        cut_over(database, staging)
    assert {key: value[1] for key, value in stored(database).items()} == wanted
    undo(database)
    assert stored(database) == before


def test_who_has_it_open(old: Path) -> None:
    assert locks.in_use(old) == locks.Use()
    assert not locks.in_use(old).live
    with Other(old, "SELECT count(*) FROM memories") as other:
        use = locks.in_use(old)
        assert (use.live, use.alone, [holder.pid for holder in use.holders]) == (True, False, [other.process.pid])
        # Looking took nothing away from the other.
        assert other.say("UPDATE memories SET recall_count = 1 WHERE id = 1") == "[]"
    assert locks.in_use(old).alone
    with pytest.raises(StoreError, match="cannot be opened"):
        locks.in_use(old.with_name("missing.db"))


def test_where_the_system_does_not_tell_sqlite_does(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "holders", lambda _path: None)
    with Other(old, "SELECT count(*) FROM memories"):
        use = locks.in_use(old)
        assert (use.holders, use.alone, use.live) == ((), False, True)
    use = locks.in_use(old)
    assert (use.holders, use.alone, use.live) == ((), True, False)


@pytest.mark.server
def test_a_live_server_is_seen(store: Path) -> None:
    with Server(store) as server:
        use = locks.in_use(store)
        assert [holder.pid for holder in use.holders] == [server.process.pid]
        assert not use.alone
        server.store("atlas", "It still writes after the look.")


def test_how_far_it_is_can_be_seen_from_outside(old: Path) -> None:
    assert job_status(old) is None
    with open_job(old, target()) as staging:
        stage(staging, lambda _kind, identifier: identifier < 5)
        staging.keep("planned", 13)
        status = job_status(old)
        assert status is not None
        assert status.meta is not None
        assert (status.meta.job, status.meta.target) == (staging.meta.job, target())
        assert status.meta.heartbeat >= staging.meta.heartbeat
        assert (status.counts.staged, status.kept, status.running) == (5, {"planned": 13}, os.getpid())
        assert set(status.sizes) == {staging_path(old)}
        stage(staging)
        cut_over(old, staging)
    with untouched(old.parent):
        status = job_status(old)
    assert status is not None
    assert status.meta is not None
    assert status.undo is not None
    assert (status.running, status.meta.state, status.undo.state) == (None, JobState.CUT, "cut")
    assert status.finished is not None
    undo(old)
    status = job_status(old)
    assert status is not None
    assert status.undo is not None
    assert (status.undo.state, status.problem) == ("undone", "")


def test_what_cannot_be_read_is_a_problem_not_a_crash(old: Path) -> None:
    staging_path(old).write_bytes(b"not a database at all " * 100)
    status = job_status(old)
    assert status is not None
    assert (status.meta, status.undo) == (None, None)
    assert "not a file of this tool" in status.problem
    staging_path(old).unlink()
    os.mkfifo(staging_path(old))
    assert "is not a regular file" in (job_status(old) or pytest.fail("none")).problem
    staging_path(old).unlink()
    open_job(old, target()).close()
    with sqlite3.connect(staging_path(old)) as connection:
        connection.execute("DELETE FROM meta WHERE name = 'target'")
    connection.close()
    status = job_status(old)
    assert status is not None
    assert "does not say" in status.problem
    with JobLock(old):
        assert (job_status(old) or pytest.fail("none")).running == os.getpid()
    undo_path(old).write_bytes(b"")
    assert (job_status(old) or pytest.fail("none")).undo is None


def sidecar(database: Path, content: object) -> Path:
    path = database.with_name(database.name + ".calibration.json")
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_calibration_keeps_the_operators_precision_and_its_mode(old: Path) -> None:
    assert calibration.renew(old, 16, 21) == "absent"
    assert not any(".calibration" in file.name for file in old.parent.iterdir())
    path = sidecar(old, {"embedding_dim": 8, "scoring_version": "s", "global_threshold": 0.3, "agent_betas": {"a": 2}})
    path.chmod(0o604)
    assert calibration.renew(old, 16, 13) == "rewritten"
    assert json.loads(path.read_text()) == {
        "embedding_dim": 16,
        "scoring_version": "s",
        "global_threshold": None,
        "agent_thresholds": {},
        "global_fused_gate": None,
        "agent_fused_gates": {},
        "fused_gate_signal": None,
        "agent_betas": {"a": 2},
    }
    assert path.stat().st_mode & 0o777 == 0o604
    assert not path.with_name(path.name + ".lock").exists()
    assert calibration.renew(old, 16, 21) == "rewritten"
    assert path.with_name(path.name + ".lock").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "{", "[]", "nonsense"])
def test_a_calibration_that_cannot_be_read_is_left(old: Path, content: str) -> None:
    path = sidecar(old, content)
    assert calibration.renew(old, 16, 21).startswith("left as it is: it ")
    assert path.read_text() == content
    assert calibration.restore(path, None, 8, 21).startswith("left as it is")
    assert calibration.restore(path, b"as before", 8, 21) == "restored"
    assert path.read_bytes() == b"as before"


def test_a_calibration_is_replaced_whole_or_not_at_all(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    path = sidecar(old, {"embedding_dim": 8})
    monkeypatch.setattr(calibration, "sync", failing)
    assert calibration.renew(old, 16, 13) == "left as it is: No space left on device"
    assert json.loads(path.read_text()) == {"embedding_dim": 8}
    assert not list(old.parent.glob("*.tmp.*"))


@pytest.mark.skipif(sys.platform == "win32", reason="flock")
def test_a_server_that_keeps_the_calibration_is_waited_for(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl  # noqa: PLC0415 - not on Windows

    monkeypatch.setattr(calibration, "_WAIT", 0.05)
    path = sidecar(old, {"embedding_dim": 8})
    lock = path.with_name(path.name + ".lock")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert calibration.renew(old, 16, 13) == "left as it is: a server keeps it to itself"
        assert calibration.restore(path, b"{}", 16, 13) == "left as it is: a server keeps it to itself"
        assert json.loads(path.read_text()) == {"embedding_dim": 8}
    assert calibration.renew(old, 16, 13) == "rewritten"
