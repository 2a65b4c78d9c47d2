"""Where programs are looked for on each system."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.clients import machine

from cpersona_cli.install.release.locate import desktop_path, executable, is_bare, usual_places, which


def placed(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
    (folder / name).chmod(0o755)
    return folder / name


def test_windows_tries_its_suffixes(tmp_path: Path) -> None:
    where = machine(tmp_path, "windows")
    command = placed(tmp_path / "b", "uvx.cmd")
    path = f"{tmp_path / 'a'};;{tmp_path / 'b'}"
    assert which("uvx", path, where) == command
    assert which("uvx.cmd", path, where) == command
    assert which("uv", path, where) is None
    assert str(where.home) in usual_places(where)


def test_the_first_folder_wins_and_folders_are_no_programs(tmp_path: Path) -> None:
    where = machine(tmp_path)
    (tmp_path / "a" / "uvx").mkdir(parents=True)
    second, third = placed(tmp_path / "b", "uvx"), placed(tmp_path / "c", "uvx")
    assert which("uvx", f"{tmp_path}/a:{tmp_path}/b:{tmp_path}/c:bad\0", where) == second
    assert which("uvx", f"bad\0:{tmp_path}/c", where) == third
    assert not executable(Path("nul\0"))


def test_desktop_paths(tmp_path: Path) -> None:
    assert desktop_path(machine(tmp_path, "darwin")) == ":".join(
        str(tmp_path / part) for part in ("usr/bin", "bin", "usr/sbin", "sbin")
    )
    assert desktop_path(machine(tmp_path, "windows", env={"Path": r"C:\bin"})) == r"C:\bin"
    assert desktop_path(machine(tmp_path)).startswith(f"{tmp_path}/home/.local/bin:")


@pytest.mark.parametrize(("word", "bare"), [("uvx", True), ("./uvx", False), ("C:\\uvx", False), ("", False)])
def test_bare_words(word: str, bare: bool) -> None:
    assert is_bare(word) is bare
