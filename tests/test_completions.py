"""The static completions and the man page: what the application declares, tried in the shells themselves."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tomllib
from pathlib import Path

import pytest
from support.commands_page import commands, options
from support.completions import FILES, PROGRAMS, ROOT, words

from cpersona_cli.report.output import FORMATS
from cpersona_cli.words import COMMANDS

FOLDER = ROOT / "completions"


def shell(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(name), reason=f"{name} is not installed")


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_what_the_application_declares(name: str) -> None:
    """``make docs`` writes them anew."""
    assert (ROOT / name).read_text(encoding="utf-8") == FILES[name]()


def test_no_other_file_lies_there() -> None:
    assert {f"completions/{file.name}" for file in FOLDER.iterdir()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_every_command_and_option_is_offered(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\-", "-")
    for path, command in commands():
        assert path.split()[-1] in text
        for option in options(command):
            assert (f"-l {option[2:]} " if name.endswith(".fish") and option.startswith("--") else option) in text


def test_the_wheel_installs_them_where_shells_look() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    data = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    shared = {source: target for source, target in data.items() if source.startswith(f"{FOLDER.name}/")}
    assert set(shared) == {name for name in FILES if not name.endswith(".ps1")}
    assert set(shared.values()) == {
        "share/bash-completion/completions/cpersona-cli",
        "share/zsh/site-functions/_cpersona-cli",
        "share/fish/vendor_completions.d/cpersona-cli.fish",
        "share/man/man1/cpersona-cli.1",
    }


CASES = [
    ("doct", ["doctor"]),
    ("doctor --form", ["--format"]),
    ("doctor --format ", [*FORMATS]),
    ("doctor --format sar", ["sarif"]),
    ("probe --mode ", ["http", "api"]),
    ("traps ", ["list", "explain"]),
    ("traps explain names.url-miss", ["names.url-missing"]),
    ("doctor --only names.url-miss", ["names.url-missing"]),
    ("reembed ", ["status", "undo", "abandon", "finish", "forget"]),
    ("backfill rep", ["repair"]),
    ("backfill --from cod", ["codex"]),
    ("traps list --group nam", ["names"]),
    ("traps list --command dim", ["dimension"]),
    ("--vers", ["--version"]),
    ("doctor --hel", ["--help"]),
]
#: What bash hands over of ``--format=sar`` and ``--format=``.
IN_BASH = [("doctor --format = sar", ["sarif"]), ("doctor --format =", [*FORMATS])]


@shell("bash")
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("line", "wanted"), [*CASES, *IN_BASH])
def test_bash(line: str, wanted: list[str], program: str, tmp_path: Path) -> None:
    begun = "" if not line.endswith(" ") else "''"
    script = (
        f'source "$1"; COMP_WORDS=({program} {line.rstrip()} {begun})\n'
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cpersona_cli; printf '%s\\n' \"${COMPREPLY[@]}\"\n"
        f"complete -p {program}"
    )
    assert offered("bash", script, tmp_path)[:-1] == wanted


@shell("bash")
def test_bash_completes_files_and_all_commands(tmp_path: Path) -> None:
    (tmp_path / "memory one.db").touch()
    script = (
        'source "$1"; try() { COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cpersona_cli; '
        "printf '%s\\n' \"${COMPREPLY[@]}\"; }; try cpersona-cli doctor --db mem; try cpersona-cli ''"
    )
    assert offered("bash", script, tmp_path) == [
        "memory one.db",
        *(word.path for word in words() if is_first(word.path)),
    ]


def is_first(path: str) -> bool:
    return bool(path) and " " not in path


@shell("fish")
@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_fish(line: str, wanted: list[str], tmp_path: Path) -> None:
    script = f"source $argv[1]; complete -C 'cpersona-cli {line}'"
    found = [answer.partition("\t")[0] for answer in offered("fish", script, tmp_path)]
    assert set(wanted) <= set(found)
    if "." in line or line.endswith("sar"):
        assert found == wanted


@shell("zsh")
@pytest.mark.parametrize("how", ["autoloaded", "sourced"])
def test_zsh(how: str, tmp_path: Path) -> None:
    """In a real line editor: a TAB after each line, and what stands there then."""
    load = f"fpath=({FOLDER} $fpath); autoload -Uz compinit; compinit -u -d {tmp_path}/dump"
    if how == "sourced":
        load = f"autoload -Uz compinit; compinit -u -d {tmp_path}/dump; source {FOLDER}/_cpersona-cli"
    show = "show() { zle -I; print -r -- \"<$BUFFER>\"; BUFFER=; }; zle -N show; bindkey '^X^P' show"
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TERM": "xterm", "LC_ALL": "C.UTF-8", "PS1": "begin>"}
    (tmp_path / "memory one.db").touch()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(shutil.which("zsh") or "zsh", ["zsh", "-f", "-i"], env)
    try:
        said_until(terminal, "begin>")
        for line in ("PS1=", "unsetopt zle_bracketed_paste", load, show, "print rea''dy"):
            os.write(terminal, f"{line}\n".encode())
        said_until(terminal, "ready")
        for line, complete in {
            "cpersona-cli doct": "cpersona-cli doctor ",
            "cpersona-cli doctor --format sar": "cpersona-cli doctor --format sarif ",
            "cpersona-cli traps expl": "cpersona-cli traps explain ",
            "cpersona traps explain names.url-miss": "cpersona traps explain names.url-missing ",
            "cpersona-cli reembed fin": "cpersona-cli reembed finish ",
            "cpersona-cli backfill rep": "cpersona-cli backfill repair ",
            "cpersona-cli backfill mem": r"cpersona-cli backfill memory\ one.db ",
            "cpersona-cli doctor -o json:mem": r"cpersona-cli doctor -o json:memory\ one.db ",
        }.items():
            os.write(terminal, f"{line}\t\x18\x10".encode())
            said = said_until(terminal, ">")
            assert f"<{complete}>" in said
    finally:
        os.close(terminal)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def said_until(terminal: int, mark: str) -> str:
    said = ""
    while mark not in said:
        assert select.select([terminal], [], [], 30)[0], f"{mark!r} never came: {said!r}"
        said += os.read(terminal, 65536).decode("utf-8", "replace")
    return said


def offered(name: str, script: str, folder: Path) -> list[str]:
    file = {"bash": "cpersona-cli.bash", "fish": "cpersona-cli.fish", "zsh": "_cpersona-cli"}[name]
    quiet = {"bash": ["--norc"], "fish": ["--no-config"], "zsh": ["-f"]}[name]
    after = ["bash"] if name == "bash" else []
    ended = subprocess.run(
        [name, *quiet, "-c", script, *after, FOLDER / file],
        cwd=folder, capture_output=True, text=True, encoding="utf-8", check=True, timeout=60,
        env={"HOME": str(folder), "PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "xterm", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert ended.stderr == ""
    return ended.stdout.splitlines()


def test_the_man_page_has_every_command_and_no_bare_control_line() -> None:
    page = (FOLDER / "cpersona-cli.1").read_text(encoding="utf-8")
    headings = re.findall(r"^\.SH (.*)$", page, re.MULTILINE)
    for name in COMMANDS:
        assert any(heading.replace("\\-", "-").startswith(name.upper()) for heading in headings)
    known = {".TH", ".SH", ".PP", ".TP", ".nf", ".fi", ".B", ".I"}
    assert {line.split(" ")[0] for line in page.splitlines() if line.startswith((".", "'"))} <= known


@shell("man")
def test_man_formats_the_page_without_a_warning(tmp_path: Path) -> None:
    ended = subprocess.run(
        ["man", "--warnings", "-l", FOLDER / "cpersona-cli.1"],
        capture_output=True, text=True, encoding="utf-8", check=True, timeout=60,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert ended.stderr == ""
    assert "--registration FILE[:NAME]" in ended.stdout
