"""Write-ahead logs that do not belong to the file they stand beside."""

from __future__ import annotations

import os
import shutil
from itertools import chain, repeat
from pathlib import Path

import pytest
from support.readings import ADD, crash_with_log, quietly, read, spoil_the_schema
from support.stores import Other, copy_store, run_sql

from cpersona_cli.install.model import Process
from cpersona_cli.store import opening
from cpersona_cli.store.reading import State


def test_an_empty_file_with_a_log_is_not_opened(wal: Path) -> None:
    crash_with_log(wal)
    wal.write_bytes(b"")
    reading = quietly(wal)
    assert (reading.state, reading.size) == (State.STALE_WAL, 0)
    assert reading.wal_bytes > 0


def test_a_log_without_its_file(wal: Path) -> None:
    crash_with_log(wal)
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
    crash_with_log(wal)
    shutil.copyfile(longer, wal)
    reading = quietly(wal)
    assert reading.state is State.STALE_WAL
    assert "pages" in reading.detail


def test_a_log_of_another_page_size(wal: Path, tmp_path: Path) -> None:
    crash_with_log(wal)
    other = tmp_path / "other.db"
    run_sql(other, "PRAGMA page_size=8192", "CREATE TABLE t(a)")
    shutil.copyfile(other, wal)
    assert quietly(wal).state is State.STALE_WAL


@pytest.mark.parametrize(("seconds", "state"), [(59, State.OK), (3 * 3600, State.STALE_WAL)])
def test_a_file_written_long_after_its_log(wal: Path, seconds: int, state: State) -> None:
    crash_with_log(wal)
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
    crash_with_log(wal)
    reasons = iter(("torn", "torn", ""))
    stamps = chain((1, 2, 3, 4), repeat(5))
    monkeypatch.setattr(opening, "why_stale", lambda *_, **__: next(reasons))
    monkeypatch.setattr(opening, "stamp", lambda _: (next(stamps),))
    reading = quietly(wal)
    assert (reading.state, reading.counts["memories"]) == (State.OK, 13)


def test_a_folder_in_place_of_the_log(wal: Path) -> None:
    wal.with_name("c.db-wal").mkdir()
    reading = read(wal)
    assert (reading.state, "c.db-wal: " in reading.detail) == (State.UNREADABLE, True)


def test_a_damaged_file_that_needs_a_copy(wal: Path) -> None:
    crash_with_log(wal)
    wal.with_name("c.db-shm").touch()
    spoil_the_schema(wal)
    assert quietly(wal).state is State.CORRUPT


def test_a_log_that_is_no_log_is_passed_over(wal: Path) -> None:
    wal.with_name("c.db-wal").write_bytes(b"\0" * 5000)
    assert quietly(wal).counts["memories"] == 12
