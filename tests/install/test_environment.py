"""The environment that reaches a server, per client and launcher, with the origin of each value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.clients import machine
from support.starts import FILE, registered

from cpersona_cli.install.environment import CODEX_POSIX, SDK_POSIX, environments
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Environment, Place, Registration, Variable

DB, URL, MODE = "CPERSONA_DB_PATH", "CPERSONA_EMBEDDING_URL", "CPERSONA_EMBEDDING_MODE"
SHELL = {
    "HOME": "/home/ada",
    "PATH": "/usr/bin",
    "USER": "ada",
    "TERM": "xterm",
    "TZ": "UTC",
    "HTTP_PROXY": "http://p:1",
}
ABSOLUTE = "/opt/memory/bin/cpersona"


def one(registration: Registration, where: Machine) -> Environment:
    (found,) = environments(registration, where)
    return found


def text(environment: Environment, *names: str) -> list[str | None]:
    return [environment.get(name) for name in names]


# what the client hands on ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_claude_desktop_hands_on_the_library_list_only(tmp_path: Path, system: Any) -> None:
    where = machine(tmp_path, system, env={**SHELL, DB: "/shell.db", "XYZ": "1"})
    found = one(registered(where, "claude-desktop", ABSOLUTE, env={MODE: "none"}), where)
    assert found.base == "whitelist"
    assert set(found.values) <= {*SDK_POSIX, MODE}
    assert text(found, DB, "HTTP_PROXY", "TERM", MODE) == [None, None, "xterm", "none"]
    assert str(tmp_path / "usr/bin") in found.values["PATH"].text
    assert found.values["PATH"].text != SHELL["PATH"]
    assert found.values[MODE].place == Place(FILE, 11)


def test_codex_hands_on_its_list_and_what_env_vars_names(tmp_path: Path) -> None:
    where = machine(tmp_path, env={**SHELL, DB: "/shell.db", URL: "http://h", "TOKEN": "t"})
    fields = {"env_vars": [URL, {"name": "TOKEN", "source": "local"}, 5, "ABSENT"]}
    found = one(registered(where, "codex", ABSOLUTE, fields=fields), where)
    assert set(found.values) <= {*CODEX_POSIX, URL, "TOKEN"}
    assert text(found, DB, URL, "TOKEN", "TZ", "PATH") == [None, "http://h", "t", "UTC", "/usr/bin"]
    assert (found.values[URL].origin, found.values["TZ"].origin) == ("env_vars", "whitelist")
    assert one(registered(where, "codex", ABSOLUTE, fields={"env_vars": "no list"}), where).get(URL) is None


@pytest.mark.parametrize(
    "client", ["claude-code", "cursor", "vscode", "copilot-cli", "windsurf", "gemini-cli", "zed", "file"]
)
def test_a_client_that_hands_on_everything_is_looked_at_twice(tmp_path: Path, client: str) -> None:
    where = machine(tmp_path, env={**SHELL, DB: "/shell.db"})
    desktop, shell = environments(registered(where, client, ABSOLUTE, env={MODE: "http"}), where)
    assert (desktop.base, shell.base) == ("none", "shell")
    assert text(desktop, DB, "HTTP_PROXY", MODE, "USER") == [None, None, "http", "ada"]
    assert text(shell, DB, "HTTP_PROXY", MODE) == ["/shell.db", "http://p:1", "http"]
    assert shell.values[DB].origin == "shell"
    assert str(shell.values[DB].place) == "this shell"


def test_one_look_is_enough_where_nothing_that_matters_differs(tmp_path: Path) -> None:
    where = machine(tmp_path, env={"HOME": "/home/ada", "PATH": "/usr/bin", "EDITOR": "vi", DB: "/same.db"})
    assert one(registered(where, "cursor", ABSOLUTE, env={DB: "/same.db"}), where).base == "none"
    assert len(environments(registered(where, "cursor", ABSOLUTE, env={DB: "/other.db"}), where)) == 1
    assert len(environments(registered(where, "cursor", ABSOLUTE), where)) == 2


def test_a_program_found_only_by_the_shell_makes_two(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "uvx").touch(0o755)
    where = machine(tmp_path, "darwin", env={"PATH": str(tools)})
    assert [e.base for e in environments(registered(where, "cursor", "uvx", "cpersona"), where)] == ["none", "shell"]
    assert len(environments(registered(where, "claude-code", "uvx", "cpersona"), where)) == 1
    assert len(environments(registered(where, "cursor", str(tools / "uvx"), "cpersona"), where)) == 1


def test_this_process_is_taken_as_it_is(tmp_path: Path) -> None:
    where = machine(tmp_path, env={DB: "${HOME}/a.db"})
    found = one(registered(where, "env", env={DB: "${HOME}/a.db"}), where)
    assert (found.base, found.get(DB), found.values[DB].unresolved) == ("process", "${HOME}/a.db", "")
    assert one(registered(where, "env"), where).values[DB].origin == "process"


def test_a_remote_server_has_its_own_environment(tmp_path: Path) -> None:
    where = machine(tmp_path, env={DB: "/a.db"})
    assert one(registered(where, "cursor", url="http://h:8402/mcp"), where).values == {}


def test_windows_does_not_tell_upper_from_lower_case(tmp_path: Path) -> None:
    where = machine(tmp_path, "windows", env={"Path": r"C:\bin", "cpersona_db_path": r"C:\a.db", "AppData": "x"})
    _, shell = environments(
        registered(where, "vscode", r"C:\uvx.exe", "cpersona", env={"Cpersona_Fts_Enabled": "1"}), where
    )
    assert text(shell, DB, "CPERSONA_FTS_ENABLED", "APPDATA") == [r"C:\a.db", "1", "x"]
    desktop = one(registered(where, "claude-desktop", r"C:\uvx.exe", "cpersona"), where)
    assert text(desktop, DB, "PATH") == [None, r"C:\bin"]


def test_the_clients_own_settings_stand_below_the_block(tmp_path: Path) -> None:
    where = machine(tmp_path, env={DB: "/shell.db", URL: "http://shell"})
    inherited = tuple(Variable(n, t, Place(FILE, 3), "client settings") for n, t in {DB: "/s.db", MODE: "none"}.items())
    for found in environments(
        registered(where, "claude-code", ABSOLUTE, env={MODE: "http"}, inherited=inherited), where
    ):
        assert text(found, DB, MODE) == ["/s.db", "http"]
        assert found.values[DB].origin == "client settings"


# the env block --------------------------------------------------------------------------------------------------


def test_block_values_are_expanded_from_the_clients_environment(tmp_path: Path) -> None:
    where = machine(tmp_path, env={"MEMORY": "/srv"})
    desktop, shell = environments(registered(where, "claude-code", ABSOLUTE, env={DB: "${MEMORY}/c.db"}), where)
    assert shell.values[DB].text == "/srv/c.db"
    assert (shell.values[DB].raw, shell.values[DB].unresolved) == ("${MEMORY}/c.db", "")
    assert desktop.values[DB].text == "${MEMORY}/c.db"
    assert "MEMORY is not set where Claude Code starts" in desktop.values[DB].unresolved


@pytest.mark.parametrize(
    ("client", "written", "received", "said"),
    [
        ("claude-code", "${CPERSONA_HOME}/c.db", "${CPERSONA_HOME}/c.db", "not set"),
        ("claude-code", "${CPERSONA_HOME:-/srv/m}/c.db", "/srv/m/c.db", ""),
        ("claude-code", "$HOME/c.db", "$HOME/c.db", "not expanded by Claude Code"),
        ("claude-code", "%APPDATA%\\c.db", "%APPDATA%\\c.db", "not expanded by Claude Code"),
        ("gemini-cli", "${CPERSONA_HOME}/c.db", "/c.db", "becomes empty"),
        ("codex", "${CPERSONA_HOME}/c.db", "${CPERSONA_HOME}/c.db", "not expanded by Codex"),
        ("zed", "$HOME/c.db", "$HOME/c.db", "not expanded by Zed"),
        ("vscode", "${input:db}", "${input:db}", "prompted for by VS Code"),
        ("cursor", "${env:CPERSONA_HOME}/c.db", "/c.db", "becomes empty"),
    ],
)
def test_an_unset_reference_per_client(tmp_path: Path, client: str, written: str, received: str, said: str) -> None:
    where = machine(tmp_path)
    value = one(registered(where, client, ABSOLUTE, env={DB: written}), where).values[DB]
    assert value.text == received
    assert (said in value.unresolved) if said else (value.unresolved == "")


def test_an_environment_file_stands_below_the_block(tmp_path: Path) -> None:
    where = machine(tmp_path)
    (where.cwd / "memory.env").write_text(f"{DB}=/file.db\n{URL}='http://h/embed'\n")
    registration = registered(
        where, "vscode", ABSOLUTE, env={DB: "/block.db"}, env_file="${workspaceFolder}/memory.env", project=where.cwd
    )
    found = one(registration, where)
    assert text(found, DB, URL) == ["/block.db", "http://h/embed"]
    assert (found.values[URL].origin, found.values[URL].place) == ("envFile", Place(where.cwd / "memory.env", 2))


@pytest.mark.parametrize(("name", "said"), [("absent.env", "does not exist"), ("${env:NO}/x", "becomes empty")])
def test_a_missing_environment_file_is_said(tmp_path: Path, name: str, said: str) -> None:
    where = machine(tmp_path)
    assert said in one(registered(where, "cursor", ABSOLUTE, env_file=name), where).problems[0]


# the command line -----------------------------------------------------------------------------------------------


def test_the_command_line_has_the_last_word(tmp_path: Path) -> None:
    where = machine(tmp_path, env={"HOME": "/home/ada"})
    found = one(registered(where, "codex", "env", f"{DB}=/word.db", "cpersona", env={DB: "/block.db"}), where)
    assert (found.get(DB), found.values[DB].place) == ("/word.db", Place(FILE, 7))


def test_a_shell_expands_what_the_client_would_not(tmp_path: Path) -> None:
    where = machine(tmp_path, env={"HOME": "/home/ada"})
    line = f"export {DB}=$HOME/c.db; {URL}=~/x cpersona"
    found = one(registered(where, "codex", "sh", "-c", line), where)
    assert (found.get(DB), found.values[DB].unresolved) == ("/home/ada/c.db", "")
    assert found.get(URL) == f"{where.home}/x"


def test_env_takes_away(tmp_path: Path) -> None:
    where = machine(tmp_path, env=SHELL)
    block = {DB: "/b.db", MODE: "http"}
    assert one(registered(where, "codex", "env", "-u", DB, "cpersona", env=block), where).get(DB) is None
    emptied = one(registered(where, "codex", "env", "-i", "X=1", "cpersona", env=block), where)
    assert set(emptied.values) == {"X"}


def test_uv_lets_set_variables_win_over_its_file(tmp_path: Path) -> None:
    where = machine(tmp_path, env=SHELL)
    (where.cwd / ".env").write_text(f"{DB}=/file.db\n{MODE}=http\n")
    found = one(registered(where, "codex", "uvx", "--env-file", ".env", "cpersona", env={DB: "/block.db"}), where)
    assert text(found, DB, MODE) == ["/block.db", "http"]


# containers -----------------------------------------------------------------------------------------------------

IMAGE = "ghcr.io/someone/cpersona:2.6.14"


def test_a_container_sees_only_what_is_handed_over(tmp_path: Path) -> None:
    where = machine(tmp_path, env={**SHELL, "CPERSONA_AUTH_TOKEN": "secret", URL: "http://shell"})
    (where.cwd / "m.env").write_text(f'{MODE}="http"\n{URL}\nCPERSONA_FTS_ENABLED=true\n')
    words = ("docker", "run", "-i", "-e", f"{DB}=/data/x.db", "-e", "CPERSONA_AUTH_TOKEN", "-e", "ABSENT", "--env-file",
             "m.env", IMAGE)  # fmt: skip
    found = environments(registered(where, "claude-code", *words, env={"CPERSONA_RRF_K": "5"}), where)[-1]
    assert found.base == "container"
    assert text(found, DB, "CPERSONA_AUTH_TOKEN", URL, "ABSENT") == ["/data/x.db", "secret", "http://shell", None]
    assert text(found, "CPERSONA_RRF_K", "PATH", "HTTP_PROXY") == [None, None, None]
    assert text(found, MODE, "CPERSONA_TRANSPORT", "CPERSONA_HTTP_PORT") == ['"http"', "streamable-http", "8402"]
    assert found.outer["CPERSONA_RRF_K"].text == "5"
    assert found.values["CPERSONA_TRANSPORT"].origin == "image"
    assert found.values[MODE].place == Place(where.cwd / "m.env", 1)


def test_image_defaults_are_those_of_the_known_image_only(tmp_path: Path) -> None:
    where = machine(tmp_path)
    assert one(registered(where, "codex", "docker", "run", "-i", IMAGE), where).get(DB) == "/data/cpersona.db"
    assert one(registered(where, "codex", "docker", "run", "-i", "-e", f"{MODE}=none", "memory"), where).get(DB) is None
    assert one(registered(where, "codex", "docker", "exec", "-i", "m", "cpersona"), where).get(DB) is None


def test_a_container_differs_only_by_what_is_passed(tmp_path: Path) -> None:
    where = machine(tmp_path, env={**SHELL, DB: "/shell.db"})
    words = ("/usr/bin/docker", "run", "-i")
    assert len(environments(registered(where, "cursor", *words, IMAGE), where)) == 1
    both = environments(registered(where, "cursor", *words, "-e", DB, IMAGE), where)
    assert [(found.base, found.assumption) for found in both] == [("container", "none"), ("container", "shell")]


def test_compose_interpolates_from_the_shell_then_its_env_file(tmp_path: Path) -> None:
    where = machine(tmp_path, env={"A": "from shell", "B": "from shell"})
    (where.cwd / ".env").write_text("A=from file\nC=from file\n")
    (where.cwd / "m.env").write_text("CPERSONA_RRF_K='7'\n")
    (where.cwd / "compose.yaml").write_text(
        "services:\n  cpersona:\n    image: x/cpersona\n    env_file: m.env\n    environment:\n"
        f"      {DB}: /data/${{A}}.db\n      {URL}: ${{C}}\n      {MODE}: ${{NONE:-http}}\n"
        "      CPERSONA_RRF_K2: ${NONE}\n"
        "      B:\n"
    )
    found = environments(registered(where, "claude-code", "docker", "compose", "run", "-e", "D=1", "cpersona"), where)[
        -1
    ]
    assert text(found, DB, URL, MODE, "B", "D") == ["/data/from shell.db", "from file", "http", "from shell", "1"]
    assert (found.get("CPERSONA_RRF_K"), found.values["CPERSONA_RRF_K"].origin) == ("7", "env_file")
    assert found.values[DB].place == Place(where.cwd / "compose.yaml", 6)
    assert "becomes empty" in found.values["CPERSONA_RRF_K2"].unresolved


# wsl ------------------------------------------------------------------------------------------------------------


def test_wsl_lets_through_what_wslenv_names(tmp_path: Path) -> None:
    where = machine(tmp_path, "windows", env={"TZ": "UTC"})
    block = {
        DB: r"C:\data\c.db",
        URL: "http://h",
        MODE: "http",
        "CPERSONA_RRF_K": "5",
        "WSLENV": f"{DB}/p:{MODE}/u:{URL}/w:ABSENT",
    }
    found = one(registered(where, "claude-desktop", "wsl.exe", "-e", "env", "X=1", "cpersona", env=block), where)
    assert found.base == "wsl"
    assert {n: v.text for n, v in found.values.items()} == {DB: "/mnt/c/data/c.db", MODE: "http", "X": "1"}
    assert found.outer["CPERSONA_RRF_K"].text == "5"
    del block["WSLENV"]
    bare = one(registered(where, "claude-desktop", "wsl.exe", "cpersona", env=block), where)
    assert bare.values == {}


def test_gemini_cli_adds_the_nearest_env_file_to_its_own_environment(tmp_path: Path) -> None:
    where = machine(tmp_path, env={"HOME": str(tmp_path / "home"), "SET": "shell"})
    (where.home / ".gemini").mkdir(parents=True)
    (where.home / ".gemini/.env").write_text("ENDPOINT=http://user/embed\nSET=file\n")
    gemini = registered(where, "gemini-cli", ABSOLUTE, env={URL: "$ENDPOINT", MODE: "$SET"})
    assert text(environments(gemini, where)[-1], URL, MODE) == ["http://user/embed", "shell"]
    assert text(environments(registered(where, "cursor", ABSOLUTE), where)[-1], "ENDPOINT") == [None]
    where.cwd.mkdir(parents=True, exist_ok=True)
    (where.cwd / ".env").write_text("ENDPOINT=http://project/embed\n")
    assert text(environments(gemini, where)[-1], URL) == ["http://project/embed"]
