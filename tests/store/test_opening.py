"""The ways into a database, where the system or another process gets between."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest
from support.stores import Other, run_sql, schema_13, untouched

from cpersona_cli.store import opening
from cpersona_cli.store.opening import ChangedError, LockedError, method_for, opened

FAR = float("inf")


@pytest.fixture
def live(tmp_path: Path) -> Path:
    database = schema_13(tmp_path / "store" / "c.db")
    run_sql(database, "PRAGMA journal_mode=WAL")
    return database


def count(path: Path, method: opening.Method) -> int:
    with opened(path, method, FAR) as connection:
        number: int = connection.execute("SELECT count(*) FROM memories").fetchone()[0]
        return number


ENDING = """
import sys, threading, time
from pathlib import Path
from cpersona_cli.store.opening import opened

ready = threading.Event()

def look():
    with opened(Path(sys.argv[1]), "copy", time.monotonic() + 60):
        ready.set()
        threading.Event().wait()

threading.Thread(target=look, daemon=True).start()
ready.wait()
"""


def test_no_copy_of_memories_outlives_the_process(live: Path, tmp_path: Path) -> None:
    """As after a signal or at a deadline, when a thread is still reading."""
    place = tmp_path / "temporary"
    place.mkdir()
    environment = {**os.environ, "TMPDIR": str(place)}
    subprocess.run([sys.executable, "-c", ENDING, str(live)], env=environment, check=True)
    assert list(place.iterdir()) == []


def test_nothing_can_be_written(live: Path) -> None:
    for method in ("immutable", "in-place"):
        with (
            Other(live, "DELETE FROM memories WHERE id = 1"),
            opened(live, method, FAR) as connection,
            pytest.raises(sqlite3.OperationalError, match="readonly"),
        ):
            connection.execute("DELETE FROM profiles")


@pytest.mark.parametrize("way", ["no locks", "no fcntl"])
def test_without_locks_of_our_own(live: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(37, "No locks available")

    with Other(live, "DELETE FROM memories WHERE id = 1"), untouched(live.parent):
        if way == "no locks":
            monkeypatch.setattr(fcntl, "lockf", refuse)
        else:
            monkeypatch.setitem(sys.modules, "fcntl", None)
        assert count(live, "in-place") == 11


def test_a_log_that_vanishes_before_it_is_opened(live: Path) -> None:
    """The last connection closed between the choice of the way and the opening: no new log may appear."""
    live.with_name("c.db-wal").touch()  # and no -shm any more
    with untouched(live.parent), pytest.raises(ChangedError):
        count(live, "in-place")


def test_the_exclusive_lock_of_a_closing_server_is_waited_for(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "WAIT", 0.0)
    with (
        Other(live, "PRAGMA locking_mode=EXCLUSIVE", "DELETE FROM memories WHERE id = 1"),
        pytest.raises(LockedError),
    ):
        count(live, "in-place")
    answers = iter((BlockingIOError(11, "busy"), None))

    def lockf(*_: Any) -> None:
        answer = next(answers)
        if answer:
            raise answer

    monkeypatch.setattr(opening, "WAIT", 60.0)
    monkeypatch.setattr(fcntl, "lockf", lockf)
    with Other(live, "DELETE FROM memories WHERE id = 2"):
        assert count(live, "in-place") == 10


def test_a_copy_is_whole_or_none(live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "private").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "private"))
    copy = opening._copy

    def disturbed(source: Path, target: Path, deadline: float) -> None:
        copy(source, target, deadline)
        live.with_name("c.db-journal").touch()

    monkeypatch.setattr(opening, "_copy", disturbed)
    with pytest.raises(ChangedError):
        count(live, "copy")
    with pytest.raises(ChangedError):
        copy(tmp_path / "none", tmp_path / "private" / "x", time.monotonic() + 60)
    assert list((tmp_path / "private").iterdir()) == []


@pytest.mark.parametrize(
    ("beside", "method"),
    [
        ({}, "immutable"),
        ({"-wal": b"", "-shm": b"x"}, "immutable"),
        ({"-wal": b"x"}, "copy"),
        ({"-wal": b"x", "-shm": b""}, "copy"),
        ({"-wal": b"x", "-shm": b"x"}, "in-place"),
        ({"-journal": b"x"}, "copy"),
        ({"-journal": b""}, "immutable"),
    ],
)
def test_the_way_follows_from_what_stands_beside(live: Path, beside: dict[str, bytes], method: str) -> None:
    for suffix, content in beside.items():
        live.with_name(live.name + suffix).write_bytes(content)
    assert method_for(live) == method


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    class Windows(PureWindowsPath):
        def absolute(self) -> PureWindowsPath:
            return self

    for path, address in (
        (Windows("C:\\a b\\c.db"), "file:/C%3A/a%20b/c.db"),
        (Windows("\\\\nas\\share\\c.db"), "file:////nas/share/c.db"),
        (Path("/a/c?.db"), "file:/a/c%3F.db"),
    ):
        anything: Any = path
        assert opening._address(anything) == address
