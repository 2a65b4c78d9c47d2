"""The file a server would open, per client, folder, container and system."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.clients import machine
from support.starts import registered

from cpersona_cli.install.database import database_path
from cpersona_cli.install.environment import environments
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import DatabasePath
from cpersona_cli.install.settings.effective import effective

DB = "CPERSONA_DB_PATH"
SCRIPT = ("/opt/memory/bin/cpersona",)
IMAGE = "x/cpersona:2.6.14"


def told(where: Machine, client: str, *words: str, env: Mapping[str, Any] | None = None, **fields: Any) -> DatabasePath:
    registration = registered(where, client, *(words or SCRIPT), env=env, **fields)
    setting = effective(environments(registration, where)[-1], "2.6.14")[DB]
    return database_path(registration, setting, where)


def test_an_absolute_path_is_the_file(tmp_path: Path) -> None:
    found = told(machine(tmp_path), "cursor", env={DB: "/srv/m.db"})
    assert (found.path, found.why, found.text, found.place.line) == (Path("/srv/m.db"), "", "/srv/m.db", 11)


@pytest.mark.parametrize(
    "written", ["~/.claude/c.db", "'/srv/c.db'", "file:/srv/c.db", "c.db", r"C:\srv\c.db", "/srv/c.db "]
)
def test_the_text_is_a_name_and_nothing_more(tmp_path: Path, written: str) -> None:
    where = machine(tmp_path)
    found = told(where, "codex", env={DB: written}, cwd="/base")
    assert found.path == Path("/base") / written


@pytest.mark.parametrize(
    ("client", "fields", "start"),
    [
        ("env", {}, "home/work"),
        ("claude-code", {"project": "proj"}, "home/work/proj"),
        ("vscode", {"project": "proj", "scope": "workspace"}, "home/work/proj"),
        ("codex", {"cwd": "sub", "project": "proj"}, "home/work/proj/sub"),
        ("codex", {"cwd": "sub"}, "home/work/sub"),
        ("cursor", {}, None),
        ("claude-code", {}, None),
        ("codex", {}, None),
        ("claude-desktop", {}, None),
        ("claude-code", {"cwd": "${NONE}"}, None),
    ],
)
def test_the_default_lies_where_the_server_is_started(
    tmp_path: Path, client: str, fields: dict[str, Any], start: str | None
) -> None:
    where = machine(tmp_path)
    if "project" in fields:
        fields = {**fields, "project": where.cwd / fields["project"]}
    found = told(where, client, **fields)
    assert found.text == "data/cpersona.db"
    if start is None:
        assert found.path is None
        assert "starts the server is not fixed" in found.why
    else:
        assert found.path == tmp_path / start / "data/cpersona.db"


def test_claude_desktop_starts_servers_in_the_root_on_macos(tmp_path: Path) -> None:
    assert told(machine(tmp_path, "darwin"), "claude-desktop").path == tmp_path / "data/cpersona.db"


def test_three_scopes_of_one_name_are_three_databases(tmp_path: Path) -> None:
    where = machine(tmp_path)
    user = told(where, "claude-code", env={DB: "/home/u/a.db"})
    local = told(where, "claude-code", env={DB: "/home/u/b.db"}, scope="local", project=where.cwd)
    project = told(where, "claude-code", env={DB: "./c.db"}, scope="project", project=where.cwd)
    assert [user.path, local.path, project.path] == [Path("/home/u/a.db"), Path("/home/u/b.db"), where.cwd / "c.db"]


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("cd /srv && cpersona", "/srv"),
        ("cd ~/m; cpersona", "{home}/m"),
        ("cd $HOME && cpersona", "{home}"),
        ("cd sub && cpersona", "{cwd}/sub"),
    ],
)
def test_the_command_line_may_change_the_folder(tmp_path: Path, line: str, start: str) -> None:
    where = machine(tmp_path)
    expected = Path(start.format(home=where.home, cwd=where.cwd)) / "data/cpersona.db"
    assert told(where, "claude-code", "sh", "-c", line, project=where.cwd).path == expected


@pytest.mark.parametrize("line", ["cd $ELSEWHERE && cpersona", "cd sub && cpersona"])
def test_a_folder_that_cannot_be_told(tmp_path: Path, line: str) -> None:
    assert told(machine(tmp_path), "codex", "sh", "-c", line).path is None


@pytest.mark.parametrize(
    ("written", "said"), [(":memory:", "lost"), ("a\0b", "NUL"), ("${NONE}/c.db", "NONE is not set")]
)
def test_what_is_no_file(tmp_path: Path, written: str, said: str) -> None:
    found = told(machine(tmp_path), "claude-code", env={DB: written}, cwd="/base")
    assert found.path is None
    assert said in found.why


def test_servers_elsewhere_have_their_own(tmp_path: Path) -> None:
    where = machine(tmp_path)
    for found in (
        told(where, "cursor", "python", "-m", "cpersona.proxy_stdio", env={DB: "/x.db"}),
        told(where, "cursor", "npx", "mcp-remote", "http://h/mcp"),
    ):
        assert found.path is None
        assert "elsewhere" in found.why


@pytest.mark.skipif(os.name == "nt", reason="on Windows these are its own paths")
def test_a_path_of_windows_is_no_file_here(tmp_path: Path) -> None:
    where = machine(tmp_path, "windows")
    found = told(where, "claude-desktop", r"C:\bin\cpersona.exe", env={DB: r"C:\m\c.db"})
    assert found.path is None
    assert "another system" in found.why
    mounted = told(where, "claude-desktop", "docker", "run", "-i", "-v", r"C:\m:/data", IMAGE)
    assert "another system" in mounted.why


# containers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "path", "said"),
    [
        (["-v", "/srv/m:/data"], "/srv/m/cpersona.db", ""),
        (["-v", "/srv/m:/data", "-e", f"{DB}=/data/sub/x.db"], "/srv/m/sub/x.db", ""),
        (["-v", "/a:/data", "-v", "/b:/data/sub", "-e", f"{DB}=/data/sub/x.db"], "/b/x.db", ""),
        (["-v", "/srv/x.db:/data/cpersona.db"], "/srv/x.db", ""),
        (["-v", "/srv:/home/cpersona", "-e", f"{DB}=x.db"], "/srv/x.db", ""),
        (["-v", "/srv:/work", "-w", "/work", "-e", f"{DB}=x.db"], "/srv/x.db", ""),
        (["-v", "${MEMORY}:/data"], "/mem/cpersona.db", ""),
        (["-v", "${NONE}:/data"], None, "NONE is not set"),
        (["-v", "memory:/data"], None, "named volume 'memory'"),
        (["-v", "./m:/data"], None, "is relative"),
        (["-v", "/srv/m:/elsewhere"], None, "lost with the container"),
        ([], None, "/data/cpersona.db lies inside the container"),
    ],
)
def test_a_containers_path_is_translated_through_its_mounts(
    tmp_path: Path, words: list[str], path: str | None, said: str
) -> None:
    where = machine(tmp_path, env={"MEMORY": "/mem"})
    found = told(where, "claude-code", "docker", "run", "-i", *words, IMAGE)
    assert found.path == (Path(path) if path else None)
    assert said in found.why


def test_relative_mounts_start_from_the_clients_folder(tmp_path: Path) -> None:
    found = told(machine(tmp_path), "codex", "docker", "run", "-i", "-v", "./m:/data", IMAGE, cwd="/base")
    assert found.path == Path("/base/m/cpersona.db")


def test_a_compose_service_mounts_from_its_files_folder(tmp_path: Path) -> None:
    where = machine(tmp_path)
    text = "services:\n  cpersona:\n    image: x/cpersona\n    volumes:\n      - {source}:/data\n"
    for source, folder in (("./d", where.cwd / "d"), ("~/d", where.home / "d")):
        (where.cwd / "compose.yaml").write_text(text.format(source=source))
        found = told(where, "codex", "docker", "compose", "run", "cpersona")
        assert found.path == folder / "cpersona.db"


def test_a_container_made_earlier_tells_nothing(tmp_path: Path) -> None:
    assert "made earlier" in told(machine(tmp_path), "codex", "docker", "exec", "-i", "m", "cpersona").why


# wsl ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "written", "said"),
    [
        (["-d", "Ubuntu", "-e"], "/home/ada/c.db", r"\\wsl.localhost\Ubuntu\home\ada\c.db"),
        ([], "/home/ada/c.db", "default WSL distribution"),
        ([], "/mnt/c/m/c.db", r"C:\m\c.db"),
        ([], "c.db", "relative to the folder"),
        (["--cd", "/mnt/d"], "c.db", r"D:\c.db"),
    ],
)
def test_wsl_paths_seen_from_windows(tmp_path: Path, words: list[str], written: str, said: str) -> None:
    where = machine(tmp_path, "windows")
    found = told(where, "claude-desktop", "wsl.exe", *words, "env", f"{DB}={written}", "cpersona")
    assert said in f"{found.why} {found.path}"


def test_wsl_paths_seen_from_inside(tmp_path: Path) -> None:
    found = told(machine(tmp_path), "claude-desktop", "wsl.exe", "env", f"{DB}=/home/ada/c.db", "cpersona")
    assert found.path == Path("/home/ada/c.db")
