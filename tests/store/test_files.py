"""What the system says of a path, also when it says it in unusual ways."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from cpersona_cli.store import files, mounts
from cpersona_cli.store.reading import State


def failing(number: int) -> object:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("number", "state"),
    [
        (errno.EIO, State.UNREADABLE),
        (errno.ESTALE, State.UNREADABLE),
        (errno.EACCES, State.NO_PERMISSION),
        (errno.EPERM, State.NO_PERMISSION),
        (errno.ELOOP, State.UNREADABLE),
        (errno.ENOTDIR, State.NO_FOLDER),
        (errno.ENOENT, State.MISSING),
    ],
)
def test_every_refusal_has_a_state(tmp_path: Path, number: int, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError(number, os.strerror(number))
    found = files._absent(tmp_path / "c.db", error)
    assert found.state is state
    assert found.detail


def test_a_link_that_cannot_be_read(tmp_path: Path) -> None:
    assert files._target(tmp_path) == "a place that cannot be read"


def test_what_the_system_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", failing(errno.ENOSYS))
        assert files.free_bytes(tmp_path) is None
    assert files.size_of(tmp_path / "a\0b") is None
    assert list(files.names_in(tmp_path / "none")) == []
    with monkeypatch.context() as patch:
        patch.setattr(Path, "is_dir", failing(errno.EACCES))
        assert files.existing_folder(tmp_path / "c.db") is None
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", failing(errno.EACCES))
        assert not mounts._stands(tmp_path)
    monkeypatch.setattr(mounts, "_MOUNTINFO", tmp_path / "none")
    assert mounts.mountinfo_of_this_process() == ""


def test_a_socket_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = files.standing(Path("/dev/null"))
    assert (found.state, "character device" in found.detail) == (State.UNREADABLE, True)


def test_a_file_is_written_and_a_folder_also_entered(tmp_path: Path) -> None:
    (tmp_path / "c.db").touch()
    assert files.may_write(tmp_path / "c.db")
    assert files.may_write(tmp_path)
    assert not files.may_write(tmp_path / "none")
