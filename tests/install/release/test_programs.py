"""Programs as clients find them, and the Python behind a script."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.clients import machine
from support.pythons import script, venv
from support.starts import registered

from cpersona_cli.install.environment import environments
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.release.programs import Program, find, home_of, home_of_python
from cpersona_cli.record import replace


def found(where: Machine, client: str, word: str, **fields: object) -> Program:
    registration = registered(where, client, word, **fields)  # type: ignore[arg-type]
    return find(word, registration, environments(registration, where)[0], where)


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    path.chmod(0o755)
    return path


def test_a_desktop_client_on_macos_does_not_search_where_the_shell_does(tmp_path: Path) -> None:
    uvx = executable(tmp_path / "home/.local/bin/uvx")
    where = machine(tmp_path, "darwin", env={"PATH": f"/usr/bin:{uvx.parent}"})
    told = found(where, "claude-desktop", "uvx")
    assert told.path is None
    assert "only this shell's PATH has it" in told.problem
    assert told.write == str(uvx)
    assert found(where, "codex", "uvx") == Program(uvx)
    assert found(where, "claude-desktop", str(uvx)) == Program(uvx)


def test_a_desktop_client_finds_what_the_system_has(tmp_path: Path) -> None:
    uvx = executable(tmp_path / "usr/bin/uvx")
    assert found(machine(tmp_path, "darwin"), "claude-desktop", "uvx") == Program(uvx)
    local = executable(tmp_path / "home/.local/bin/cpersona")
    assert found(machine(tmp_path), "claude-desktop", "cpersona") == Program(local)


def test_a_program_in_no_path_at_all(tmp_path: Path) -> None:
    where = machine(tmp_path, "darwin", env={"PATH": "/none"})
    assert "was not found" in found(where, "claude-desktop", "uvx").problem
    brew = executable(tmp_path / "opt/homebrew/bin/uvx")
    told = found(where, "claude-desktop", "uvx")
    assert "in no folder of that PATH" in told.problem
    assert told.write == str(brew)


def test_a_login_shell_searches_the_shells_path(tmp_path: Path) -> None:
    uvx = executable(tmp_path / "tools/uvx")
    where = machine(tmp_path, "darwin", env={"PATH": str(uvx.parent)})
    registration = registered(where, "claude-desktop", "/bin/bash", "-lc", "uvx cpersona")
    assert find("uvx", registration, environments(registration, where)[0], where) == Program(uvx)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no execute permission")
def test_files_that_may_not_be_executed(tmp_path: Path) -> None:
    where = machine(tmp_path, env={"PATH": str(tmp_path)})
    plain = tmp_path / "uvx"
    plain.touch(0o644)
    where = replace(where, env={"PATH": f"bad\0:{'n' * 300}:{tmp_path}"})
    for word in ("uvx", str(plain)):
        told = found(where, "codex", word)
        assert "may not be executed" in told.problem
        assert told.command == f"chmod +x {plain}"


def test_paths_that_are_no_programs(tmp_path: Path) -> None:
    where = machine(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    rows = {
        str(tmp_path): "is a folder",
        str(tmp_path / "absent"): "does not exist",
        str(tmp_path / "link"): "a link to nothing",
        "~/bin/cpersona": "nothing expands the ~",
        "./bin/cpersona": "relative, and the folder",
        "${NONE}/cpersona": "cannot be told",
        "nul\0": "was not found",
        "/nul\0": "",
    }
    for word, said in rows.items():
        told = found(where, "claude-code", word)
        assert told.path is None
        assert said in told.problem
        assert told.problem


def test_a_relative_program_starts_from_the_entrys_folder(tmp_path: Path) -> None:
    server = executable(tmp_path / "srv/bin/cpersona")
    assert found(machine(tmp_path), "codex", "bin/cpersona", cwd=str(tmp_path / "srv")) == Program(server)


@pytest.mark.parametrize(
    ("folder", "doubtful"),
    [
        (".pyenv/shims", True),
        (".asdf/shims", True),
        (".local/share/mise/shims", True),
        (".nvm/versions/node/v20/bin", False),  # the folder of one version, not a stand-in
    ],
)
def test_a_shim_can_be_started_and_is_doubted(tmp_path: Path, folder: str, *, doubtful: bool) -> None:
    shim = executable(tmp_path / "home" / folder / "cpersona")
    told = found(machine(tmp_path), "codex", str(shim))
    assert (told.path, told.problem) == (shim, "")
    assert ("chooses the real program" in told.doubt) is doubtful


def test_programs_of_another_system_are_not_looked_for(tmp_path: Path) -> None:
    system = "linux" if os.name == "nt" else "windows"
    assert found(machine(tmp_path, system), "claude-desktop", r"C:\uv\uvx.exe") == Program()  # type: ignore[arg-type]
    assert found(machine(tmp_path, system), "claude-desktop", "uvx") == Program()  # type: ignore[arg-type]


# the Python behind a script -------------------------------------------------------------------------------------

FIRST_LINES = {
    "plain": "#!{python}",
    "long or with blanks": "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''",
    "unquoted": "#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''",
    "relocatable": "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python' \"$0\" \"$@\"\n' '''",
    "env": "#!/usr/bin/env python3",
    "env with options": "#!/usr/bin/env -S python3 -I",
    "relative": "#!python3",
}


@pytest.mark.parametrize("first", FIRST_LINES.values(), ids=FIRST_LINES)
def test_a_script_leads_to_its_environment(tmp_path: Path, first: str) -> None:
    prefix = tmp_path / "a b"
    site = venv(prefix, {"cpersona": "2.6.14"})
    installed = script(prefix / "bin/cpersona", first.format(python=prefix / "bin/python"))
    (tmp_path / "link").symlink_to(installed)
    told = home_of(tmp_path / "link", machine(tmp_path / "m"))
    assert (told.site, told.python) == (site, prefix / "bin/python")


def launcher(path: Path, named: str) -> Path:
    """A Windows launcher: a program, the interpreter's line, and a zip archive behind it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("__main__.py", "import cpersona")
    path.write_bytes(b"MZ" + bytes(1 << 18) + named.encode() + b"\r\n" + archive.getvalue())
    return path


def test_a_windows_launcher_leads_to_its_environment(tmp_path: Path) -> None:
    where = machine(tmp_path / "m", "windows")
    site = venv(tmp_path / "v", {"cpersona": "2.6.14"}, windows=True)
    for named in ('#!"C:\\v\\Scripts\\python.exe"', "no interpreter"):
        told = home_of(launcher(tmp_path / "v/Scripts/cpersona.exe", named), where)
        assert told.site == (site if named.startswith("no") else None)
    assert "does not say" in home_of(launcher(tmp_path / "lost.exe", ""), where).why


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("#!/bin/bash", "not a Python script"),
        ("echo", "not a Python script"),
        ("#!/bin/sh\n'''exec' garbage", "not a Python script"),
        ("#!/gone/bin/python3", "does not exist"),
        ("#!/usr/bin/env python3", "whichever python"),
        ("#!/bin/sh\n'''exec' \"$(dirname x)\"/'python'", "does not say"),
    ],
)
def test_scripts_that_lead_nowhere(tmp_path: Path, first: str, said: str) -> None:
    told = home_of(script(tmp_path / "bin/cpersona", first), machine(tmp_path / "m"))
    assert told.site is None
    assert said in told.why


def test_a_script_that_cannot_be_read(tmp_path: Path) -> None:
    assert "cannot be read" in home_of(tmp_path / "absent", machine(tmp_path / "m")).why
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "cannot be read" in home_of(loop, machine(tmp_path / "m")).why


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    assert "does not exist" in home_of_python(tmp_path / "bin/python", machine(tmp_path)).why


def test_an_interpreter_outside_of_environments_is_asked(tmp_path: Path) -> None:
    where = replace(machine(tmp_path), system="darwin" if sys.platform == "darwin" else "linux")
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    told = home_of_python(base, where)
    asked = subprocess.run(
        [base, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.site == Path(asked.stdout.strip())
