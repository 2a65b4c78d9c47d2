"""What happens rarely: words for what the system says, damage, races of a few lines."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest
from support.jobs import stage, stored, target, vectors
from support.stores import Other, run_sql, schema_13

from cpersona_cli.store.job import JobError, JobState, Staged, digest, record_path, staging_path, undo_path
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.opening import ChangedError, method_for
from cpersona_cli.store.writing import joblock, settling, status
from cpersona_cli.store.writing.clearing import abandon, unvouched
from cpersona_cli.store.writing.cutover import cut_over
from cpersona_cli.store.writing.disk import told
from cpersona_cli.store.writing.joblock import LOCK, JobLock, busy
from cpersona_cli.store.writing.mainfile import Main
from cpersona_cli.store.writing.staging import open_job
from cpersona_cli.store.writing.status import job_status
from cpersona_cli.store.writing.undo import undo
from cpersona_cli.store.writing.undofile import UndoFile, next_path, open_undo

M = Kind.MEMORY


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_FULL, "make room on its disk"),
        (sqlite3.SQLITE_IOERR_WRITE, "make room on its disk"),
        (sqlite3.SQLITE_BUSY, "locked by another process"),
        (sqlite3.SQLITE_CORRUPT, "is damaged"),
        (sqlite3.SQLITE_READONLY, "cannot be opened for writing"),
        (sqlite3.SQLITE_MISUSE, "SQLite refuses"),
    ],
)
def test_one_sentence_for_what_sqlite_says(code: int, words: str) -> None:
    error = sqlite3.OperationalError("its words")
    error.sqlite_errorcode = code
    with pytest.raises(StoreError) as caught, told(Path("/x/c.db")):
        raise error
    assert str(caught.value).startswith(("/x/c.db ", "SQLite refuses to work on /x/c.db"))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "/x/c.db cannot be written (No space left on device): make"),
        (OSError(errno.EACCES, "Permission denied", "/x/other"), "/x/other cannot be written: Permission denied"),
        (OSError(), "/x/c.db cannot be written: OSError"),
    ],
)
def test_one_sentence_for_what_the_system_says(error: OSError, words: str) -> None:
    with pytest.raises(StoreError) as caught, told(Path("/x/c.db")):
        raise error
    assert str(caught.value).startswith(words)


def test_a_lock_file_that_was_removed_meanwhile_is_made_anew(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = old.with_name(old.name + LOCK)
    locking, times = joblock.lock_descriptor, []

    def removed(descriptor: int) -> None:
        locking(descriptor)
        times.append(descriptor)
        if len(times) == 1:
            path.unlink()
        if len(times) == 2:
            path.unlink()
            path.write_text("of another")

    monkeypatch.setattr(joblock, "lock_descriptor", removed)
    with JobLock(old):
        assert len(times) == 3
        assert path.read_text() == str(os.getpid())


def test_a_lock_that_nobody_holds_is_nobodys(old: Path) -> None:
    path = old.with_name(old.name + LOCK)
    path.write_text("4711")
    assert busy(old) is None
    with JobLock(old):
        path.write_text("words")
        assert busy(old) == 0
        with pytest.raises(StoreError, match="another process is at work on"):
            JobLock(old).acquire()


def test_a_lock_that_cannot_be_had_is_said(old: Path) -> None:
    with Main(old) as main:
        main.connection.execute("PRAGMA query_only=ON")
        with pytest.raises(StoreError, match="cannot be opened for writing"):
            main.lock(0.0)


def test_an_undo_file_that_cannot_be_read_back_stops_it(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stored(old)
    monkeypatch.setattr(UndoFile, "sound", lambda _self: False)
    with open_job(old, target()) as staging:
        stage(staging)
        with pytest.raises(StoreError, match="read back"):
            cut_over(old, staging)
        assert staging.state is JobState.STAGING
    assert stored(old) == before
    assert not next_path(old).exists()


def test_a_plan_that_fails_leaves_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Main.rows

    def failing(self: Main, kind: Kind) -> object:
        for count, row in enumerate(rows(self, kind)):
            if count == 4:
                raise KeyboardInterrupt
            yield row

    before = stored(old)
    monkeypatch.setattr(Main, "rows", failing)
    with open_job(old, target()) as staging:
        stage(staging)
        with pytest.raises(KeyboardInterrupt):
            cut_over(old, staging)
    assert stored(old) == before
    assert not next_path(old).exists()


def test_many_rows_in_batches(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "many" / "c.db", rows=2300, text_index=False)
    before = stored(database)
    seen: list[tuple[str, int, int]] = []
    with open_job(database, target()) as staging:
        wanted = stage(staging)
        done = cut_over(database, staging, tell=lambda *step: seen.append(step))
    assert done.rows == 2301
    assert seen == [("plan", n, 2301) for n in (1000, 2000, 2301)]
    assert vectors(database) == wanted
    # Enough rows to tell for certain without looking at all of them.
    undo_path(database).rename(next_path(database))
    with UndoFile(next_path(database)) as file:
        file.write_meta(state="cutting")
    recovered = settling.settle(database, None)
    assert recovered is not None
    assert recovered.rows == 2301
    assert undo(database).restored == 2301
    assert stored(database) == before


def test_a_row_that_got_its_vector_meanwhile_leaves_the_plan(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = Main.lock
    with open_job(old, target()) as staging:
        wanted = stage(staging)

        def changing(self: Main, wait: float) -> None:
            run_sql(old, f"UPDATE memories SET embedding = x'{wanted[M, 3].hex()}' WHERE id = 3")
            lock(self, wait)

        monkeypatch.setattr(Main, "lock", changing)
        done = cut_over(old, staging)
    assert (done.rows, done.already) == (12, 1)
    assert vectors(old) == wanted


def test_a_doubtful_row_may_go_before_it_is_looked_at(old: Path) -> None:
    with open_job(old, target()) as staging:
        stage(staging)
        cut_over(old, staging)
    run_sql(old, "UPDATE memories SET embedding = NULL WHERE id IN (2, 3)")
    rows = unvouched(old)
    assert next(rows).id == 2
    with Other(old, "DELETE FROM memories WHERE id = 3"):
        assert list(rows) == []


def test_an_undo_needs_no_record(old: Path) -> None:
    run_sql(old, "UPDATE memories SET embedding = NULL", "UPDATE episodes SET embedding = NULL")
    sidecar = old.with_name("c.db.calibration.json")
    with open_job(old, target()) as staging:
        stage(staging)
        cut_over(old, staging)
    record_path(old).unlink()
    sidecar.write_text('{"embedding_dim": 16}')
    assert undo(old).restored == 13
    assert not record_path(old).exists()


def test_a_status_is_asked_again_while_the_file_changes(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_job(old, target()).close()
    times: list[Path] = []

    def changing(path: Path) -> object:
        times.append(path)
        if len(times) < 3:
            raise ChangedError
        return method_for(path)

    monkeypatch.setattr(status, "method_for", changing)
    found = job_status(old)
    assert found is not None
    assert found.problem == ""
    times.clear()
    monkeypatch.setattr(status, "_ATTEMPTS", 2)
    found = job_status(old)
    assert found is not None
    assert "changes faster" in found.problem
    staging_path(old).unlink()
    record_path(old).write_text("{}")
    assert job_status(old) is None


def test_a_status_of_a_damaged_undo_file(old: Path) -> None:
    with open_job(old, target()) as staging:
        stage(staging)
        cut_over(old, staging)
    staging_path(old).unlink()
    content = undo_path(old).read_bytes()
    undo_path(old).write_bytes(content[:4096] + bytes(len(content) - 4096))
    found = job_status(old)
    assert found is not None
    assert (found.meta, found.undo) == (None, None)
    assert found.finished is not None


def test_an_undo_file_that_cannot_be_opened(old: Path) -> None:
    with open_job(old, target()) as staging:
        stage(staging)
        cut_over(old, staging)
    content = undo_path(old).read_bytes()
    undo_path(old).write_bytes(content[:200])
    with pytest.raises(StoreError, match="damaged"):
        open_undo(undo_path(old))


def test_a_staging_file_that_is_no_file_to_sqlite(old: Path) -> None:
    with open_job(old, target()) as staging:
        staging.add([Staged(M, 1, digest("a"), bytes(60) + b"\0\0\x80?")])
    staging_path(old).with_name(staging_path(old).name + "-wal").mkdir()
    with pytest.raises(StoreError, match=r"reembed cannot be"):
        open_job(old, target())
    assert busy(old) is None


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="names are text there")
def test_a_folder_whose_name_is_no_text(old: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(old.parent) + b"-\xff"))
    shutil.copytree(old.parent, folder)
    path = folder / old.name
    path.with_name(path.name + ".calibration.json").write_text('{"embedding_dim": 64}')
    before = vectors(path)
    with open_job(path, target()) as staging:
        wanted = stage(staging)
        cut_over(path, staging)
    assert vectors(path) == wanted
    undo(path)
    assert vectors(path) == before
    assert path.with_name(path.name + ".calibration.json").read_text() == '{"embedding_dim": 64}'


@pytest.mark.parametrize("suffix", [".reembed.json", ".reembed-undo.next"])
def test_what_would_be_in_the_way_after_the_switch_is_said_before_it(old: Path, suffix: str) -> None:
    old.with_name(old.name + suffix).mkdir()
    with pytest.raises(StoreError, match=f"{suffix} is not a regular file"):
        open_job(old, target())
    assert not staging_path(old).exists()


def test_a_job_that_was_taken_back_is_not_told_as_switched(old: Path) -> None:
    with open_job(old, target()) as staging:
        stage(staging)
        cut_over(old, staging)
    with pytest.raises(JobError, match=r"are in .* already"):
        abandon(old)
    undo(old)
    with pytest.raises(JobError, match=r"were taken out of .* again: clear up with cpersona-cli reembed forget"):
        abandon(old)
