"""File systems and folders that are no place for a database."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from support.stores import schema_13

from cpersona_cli.install.machine import current_system
from cpersona_cli.install.model import System
from cpersona_cli.store import inspect, mounts
from cpersona_cli.store.mounts import conflict_copies, ground
from cpersona_cli.store.reading import State

DISK = "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw"


def mount(point: Path | str, kind: str, options: str = "rw") -> str:
    escaped = str(point).replace(" ", "\\040")
    return f"{DISK}\n99 20 0:44 / {escaped} rw,relatime shared:9 - {kind} source {options}"


@pytest.mark.parametrize(
    ("kind", "risk", "words"),
    [
        ("ext4", "", ""),
        ("btrfs", "", ""),
        ("fuseblk", "", ""),
        ("nfs4", "network", "NFS"),
        ("cifs", "network", "SMB"),
        ("9p", "network", "9p"),
        ("drvfs", "network", "WSL"),
        ("fuse.sshfs", "network", "fuse.sshfs"),
        ("fuse", "network", "program"),
        ("virtiofs", "bind-mount", "virtual machine"),
        ("fakeowner", "bind-mount", "Docker Desktop"),
        ("fuse.grpcfuse", "bind-mount", "Docker Desktop"),
        ("tmpfs", "volatile", "memory"),
        ("overlay", "", ""),
    ],
)
def test_the_type_of_the_mount(tmp_path: Path, kind: str, risk: str, words: str) -> None:
    found = ground(tmp_path, mount(tmp_path, kind), "linux")
    assert (found.filesystem, found.risk) == (kind, risk)
    assert words in found.detail


def test_a_windows_drive_is_told_from_its_options(tmp_path: Path) -> None:
    assert "WSL" in ground(tmp_path, mount(tmp_path, "9p", "rw,aname=drvfs;path=C:\\"), "linux").detail


def test_the_root_of_a_container(tmp_path: Path) -> None:
    found = ground(tmp_path, "1 0 0:9 / / rw - overlay overlay rw", "linux")
    assert (found.risk, "container" in found.detail) == ("volatile", True)


def test_the_deepest_and_latest_mount_counts(tmp_path: Path) -> None:
    (tmp_path / "a b" / "c").mkdir(parents=True)
    text = "\n".join((mount(tmp_path, "nfs"), mount(tmp_path / "a b", "xfs"), mount(tmp_path / "a b", "ext4")))
    assert ground(tmp_path / "a b" / "c", text, "linux").filesystem == "ext4"
    assert ground(tmp_path, text, "linux").filesystem == "nfs"


@pytest.mark.parametrize("text", ["", "nonsense", "1 2 3 - ", "a b c d / f - ", "1 0 0:1 / / rw"])
def test_a_list_of_mounts_that_says_nothing(tmp_path: Path, text: str) -> None:
    assert ground(tmp_path, text, "linux").filesystem == ""


@pytest.mark.parametrize(
    ("path", "system", "risk"),
    [
        (PureWindowsPath(r"\\nas\share\x"), "windows", "network"),
        (PureWindowsPath(r"\\wsl.localhost\Ubuntu\home"), "windows", "network"),
        (PureWindowsPath(r"C:\Users\u"), "windows", ""),
        (PureWindowsPath(r"\\?\C:\Users\u"), "windows", ""),
        (PurePosixPath("/Volumes/Disk/x"), "darwin", "network"),
        (PurePosixPath("/Volumes"), "darwin", ""),
        (PurePosixPath("/Users/u"), "darwin", ""),
    ],
)
def test_places_known_by_their_path(path: PurePosixPath | PureWindowsPath, system: System, risk: str) -> None:
    assert mounts._by_path(path, system)[0] == risk


def test_docker_desktop_under_wsl() -> None:
    folder = PurePosixPath("/mnt/wsl/docker-desktop-bind-mounts/Ubuntu/1234")
    assert mounts._by_type(folder, "ext4", PurePosixPath("/mnt/wsl"), "")[0] == "bind-mount"


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("Library/Mobile Documents/com~apple~CloudDocs/db", "iCloud Drive"),
        ("Dropbox/db", "Dropbox"),
        ("Dropbox (Personal)", "Dropbox"),
        ("OneDrive", "OneDrive"),
        ("OneDrive - Example Ltd/db", "OneDrive"),
        ("Library/CloudStorage/GoogleDrive-me@example.com", "Google Drive"),
        ("Google Drive/My Drive", "Google Drive"),
        ("Nextcloud", "Nextcloud"),
        ("Library/CloudStorage/Box-Box", "Box"),
    ],
)
def test_synced_folders(tmp_path: Path, folder: str, name: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    found = ground(tmp_path / folder, DISK, "linux")
    assert (found.risk, name in found.detail) == ("synced", True)


@pytest.mark.parametrize(("mark", "name"), [(".stfolder", "Syncthing"), (".dropbox.cache", "Dropbox")])
def test_folders_marked_by_what_syncs_them(tmp_path: Path, mark: str, name: str) -> None:
    (tmp_path / mark).mkdir()
    (tmp_path / "deep" / "er").mkdir(parents=True)
    assert name in ground(tmp_path / "deep" / "er", DISK, "linux").detail


@pytest.mark.parametrize("folder", ["Dropboxes", "my OneDrive notes", "box", "clouds"])
def test_names_that_only_sound_like_clouds(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    assert ground(tmp_path / folder, DISK, "linux").risk == ""


def test_a_git_working_tree(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "data").mkdir()
    found = ground(tmp_path / "data", DISK, "linux")
    assert (found.risk, str(tmp_path) in found.detail) == ("git", True)
    # A worse place is named first.
    assert ground(tmp_path / "data", mount(tmp_path, "nfs"), "linux").risk == "network"


def test_conflict_copies_with_their_memories(tmp_path: Path) -> None:
    folder = tmp_path / "Dropbox"
    database = schema_13(folder / "c.db", rows=3)
    schema_13(folder / "c (Mira's conflicted copy 2026-01-02).db", rows=5)
    schema_13(folder / "c.sync-conflict-20260102-101500-ABCDEFG.db", rows=2)
    (folder / "c-DESKTOP-7QX.db").write_text("no database")
    (folder / "c-LAPTOP-1.db").write_bytes(database.read_bytes()[:100] + bytes(8000))
    schema_13(folder / "c (1).db", rows=1)
    (folder / "c 2.db").mkdir()
    (folder / "cc.db").write_text("")
    (folder / "notes.txt").write_text("")
    reading = inspect.read(database, timeout=10, mountinfo=DISK, system="linux", holders=lambda _: ())
    assert dict(reading.conflicts) == {
        "c (Mira's conflicted copy 2026-01-02).db": 5,
        "c.sync-conflict-20260102-101500-ABCDEFG.db": 2,
        "c-DESKTOP-7QX.db": None,
        "c-LAPTOP-1.db": None,
        "c (1).db": 1,
        "c 2.db": None,
    }


def test_numbered_copies_count_only_where_files_are_synced(tmp_path: Path) -> None:
    for name in ("c.db", "c (1).db", "c 2.db"):
        (tmp_path / name).touch()
    assert conflict_copies(tmp_path / "c.db", synced=False) == ()


def test_a_missing_database_still_has_a_place(tmp_path: Path) -> None:
    path = tmp_path / "none" / "deeper" / "c.db"
    reading = inspect.read(path, mountinfo=mount(tmp_path, "nfs"), system="linux", holders=lambda _: ())
    assert (reading.state, reading.risk, reading.folder_writable) == (State.NO_FOLDER, "network", True)
    assert reading.free_bytes


@pytest.mark.skipif(current_system() != "linux", reason="reads /proc")
def test_the_mounts_of_this_process(tmp_path: Path) -> None:
    assert inspect.read(tmp_path / "c.db").filesystem
    assert inspect.read(tmp_path / "c.db", system="darwin").filesystem == ""
