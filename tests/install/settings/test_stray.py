from __future__ import annotations

import os
from pathlib import Path

import pytest

from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import System, Variable
from cpersona_cli.install.settings.stray import DOTENV, SHELL, START_FILE, stray
from cpersona_cli.install.settings.table import is_secret


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path / "home"


def machine(home: Path, system: System = "linux", env: dict[str, str] | None = None) -> Machine:
    return Machine(system=system, home=home, cwd=home.parent / "work", env=env or {})


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def found(home: Path, **kwargs: object) -> list[tuple[str, object]]:
    return [(variable.name, variable.raw) for variable in stray(machine(home, **kwargs))]  # type: ignore[arg-type]


def test_nothing_anywhere(home: Path) -> None:
    assert stray(machine(home)) == ()


def test_this_shell(home: Path) -> None:
    env = {
        "CPERSONA_DB_PATH": "/a.db",
        "EMBEDDING_MODE": "http",
        "EMBEDDING_PROVIDER": "onnx_bge_m3",
        "EMBEDDING_API_KEY": "k",
        "CPERSONA_AGENT_ID": "me",
        "CPERSONA_TYPO": "1",
        "CPERSONA_CLI_TIMEOUT": "3",
        "OPENAI_API_KEY": "sk",
        "HTTP_PROXY": "http://p",
        "PATH": "/bin",
    }
    variables = stray(machine(home, env=env))
    assert [v.name for v in variables] == ["CPERSONA_DB_PATH", "EMBEDDING_MODE", "EMBEDDING_API_KEY", "CPERSONA_TYPO"]
    assert {v.origin for v in variables} == {SHELL}
    assert str(variables[0].place) == "this shell"
    assert variables[2].raw == "k"
    assert is_secret(variables[2].name)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("export CPERSONA_DB_PATH=/a.db", [("CPERSONA_DB_PATH", "/a.db")]),
        ("  CPERSONA_DB_PATH='/a b.db' # here", [("CPERSONA_DB_PATH", "/a b.db")]),
        ('export CPERSONA_DB_PATH="$HOME/a.db"; echo', [("CPERSONA_DB_PATH", "$HOME/a.db")]),
        ("export EMBEDDING_MODE=http CPERSONA_RRF_K=3", [("EMBEDDING_MODE", "http"), ("CPERSONA_RRF_K", "3")]),
        ("export CPERSONA_RRF_K=3 PATH=/x", [("CPERSONA_RRF_K", "3")]),
        ("declare -x CPERSONA_RRF_K=3", [("CPERSONA_RRF_K", "3")]),
        ("typeset -gx CPERSONA_RRF_K=", [("CPERSONA_RRF_K", "")]),
        (r"CPERSONA_DB_PATH=/a\ b.db", [("CPERSONA_DB_PATH", r"/a\ b.db")]),
        ('CPERSONA_DB_PATH="unfinished', [("CPERSONA_DB_PATH", '"unfinished')]),
        ("# export CPERSONA_DB_PATH=/a.db", []),
        ("CPERSONA_RRF_K=3 uvx cpersona", []),
        ("alias c='CPERSONA_RRF_K=3 cpersona'", []),
        ("unset CPERSONA_RRF_K", []),
        ("MY_CPERSONA_RRF_K=3", []),
        ("export cpersona_rrf_k=3", []),
        ("export CPERSONA_CLI_FORMAT=json", []),
    ],
)
def test_posix_start_files(home: Path, line: str, expected: list[tuple[str, str]]) -> None:
    write(home / ".zshrc", f"# first\n{line}\n")
    assert found(home) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("set -gx CPERSONA_DB_PATH /a.db", [("CPERSONA_DB_PATH", "/a.db")]),
        ("set --export --global CPERSONA_DB_PATH '/a b.db'", [("CPERSONA_DB_PATH", "/a b.db")]),
        ("export CPERSONA_DB_PATH=/a.db", [("CPERSONA_DB_PATH", "/a.db")]),
        ("set -g CPERSONA_DB_PATH /a.db", []),
        ("set --local CPERSONA_DB_PATH /a.db", []),
        ("set -e CPERSONA_DB_PATH", []),
    ],
)
def test_fish(home: Path, line: str, expected: list[tuple[str, str]]) -> None:
    write(home / ".config/fish/config.fish", line)
    assert found(home) == expected


@pytest.mark.parametrize(
    ("folder", "line"),
    [
        ("Documents/PowerShell", '$env:CPERSONA_DB_PATH = "/a.db"'),
        ("Documents/WindowsPowerShell", "$Env:cpersona_db_path='/a.db'"),
        ("OneDrive/Documents/PowerShell", '[Environment]::SetEnvironmentVariable("CPERSONA_DB_PATH", "/a.db", "User")'),
        (".config/powershell", "[System.Environment]::SetEnvironmentVariable('CPERSONA_DB_PATH','/a.db')"),
    ],
)
def test_powershell(home: Path, folder: str, line: str) -> None:
    write(home / folder / "Microsoft.PowerShell_profile.ps1", f"{line}\r\n")
    assert found(home, system="windows") == [("CPERSONA_DB_PATH", "/a.db")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("CPERSONA_DB_PATH=/a.db", "/a.db"),
        ("export CPERSONA_DB_PATH = /a b.db  # mine", "/a b.db"),
        ('CPERSONA_DB_PATH="/a # b.db"', "/a # b.db"),
        ("CPERSONA_DB_PATH=", ""),
        ("CPERSONA_DB_PATH='", "'"),
        ("#CPERSONA_DB_PATH=/a.db", None),
        ("CPERSONA_DB_PATH", None),
    ],
)
def test_dotenv(home: Path, line: str, expected: str | None) -> None:
    write(home.parent / "work" / ".env", line)
    assert found(home) == ([] if expected is None else [("CPERSONA_DB_PATH", expected)])


def test_place_and_order(home: Path, tmp_path: Path) -> None:
    shell = write(home / ".bashrc", "a=1\n  export CPERSONA_RRF_K=3\n")
    project = write(tmp_path / "project" / ".env", "\nEMBEDDING_HTTP_URL=http://x/embed\n")
    local = write(home / ".env.local", "CPERSONA_RRF_K=4\n")
    folders = [tmp_path / "project", tmp_path / "project", home]
    variables = stray(machine(home, env={"CPERSONA_RRF_K": "2"}), folders)
    assert [(v.raw, v.origin) for v in variables] == [
        ("2", SHELL),
        ("3", START_FILE),
        ("4", DOTENV),
        ("http://x/embed", DOTENV),
    ]
    assert (variables[1].place.file, variables[1].place.line, variables[1].place.column) == (shell, 2, 10)
    assert variables[2].place.file == local
    assert str(variables[3].place) == f"{project}:2"


def test_no_more_than_a_few_dozen_folders(home: Path, tmp_path: Path) -> None:
    for number in range(60):
        write(tmp_path / str(number) / ".env", "CPERSONA_RRF_K=1")
    assert len(stray(machine(home), [tmp_path / str(number) for number in range(60)])) == 38


def test_what_cannot_be_read_is_passed_over(home: Path) -> None:
    (home / ".zshrc").mkdir()
    (home / ".profile").symlink_to(home / ".profile")
    os.mkfifo(home / ".bash_profile")
    (home / ".zprofile").write_bytes(b"export CPERSONA_RRF_K=3\xff\n\x00CPERSONA_RRF_K=4\n")
    (home / ".bashrc").write_bytes("export CPERSONA_RRF_K=5\n".encode("utf-16"))
    variables = stray(machine(home), [home / "missing", Path("a\0b")])
    assert [v.raw for v in variables] == ["3\ufffd"]


def test_a_huge_file_is_cut(home: Path) -> None:
    write(home / ".zshrc", "export CPERSONA_RRF_K=1\n" + "# filler\n" * 100_000 + "export CPERSONA_RRF_K=2\n")
    assert found(home) == [("CPERSONA_RRF_K", "1")]


def test_a_line_of_nothing_but_quotes_takes_no_time(home: Path) -> None:
    write(home / ".zshrc", 'export CPERSONA_RRF_K="' + "\\" * 100_000)
    write(home / ".env", "CPERSONA_RRF_K=" + " " * 100_000 + "x #")
    variables = stray(machine(home))
    assert all(isinstance(variable, Variable) for variable in variables)
