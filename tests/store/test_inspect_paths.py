"""Paths at which there is no file to read, and files that cannot be read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from support.readings import ADD, quietly, read
from support.stores import Other, schema_13, untouched

from cpersona_cli.install.model import Process
from cpersona_cli.store.reading import State


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

    monkeypatch.setattr("cpersona_cli.store.refusal.head_of", fail)
    reading = read(plain)
    assert (reading.state, words in reading.detail) == (state, True)


def test_a_disk_that_fails_while_it_is_read(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("cpersona_cli.store.opening.stamp", fail)
    assert "c.db: Input/output error" in read(plain).detail


def test_a_copy_made_because_the_file_cannot_be_opened_may_be_damaged(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = {"in-place": sqlite3.SQLITE_CANTOPEN, "copy": sqlite3.SQLITE_CORRUPT}

    def fail(method: str, *_: object) -> None:
        error = sqlite3.DatabaseError(method)
        error.sqlite_errorcode = codes[method]
        raise error

    monkeypatch.setattr("cpersona_cli.store.opening._by", fail)
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
