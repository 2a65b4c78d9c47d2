"""Which command lines surely hand our settings on to the server, and which only may."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.impostor import here
from support.starts import registered

from cpersona_cli.install.environment import environments
from cpersona_cli.install.release import programs
from cpersona_cli.record import replace
from cpersona_cli.start.plan import kept
from cpersona_cli.start.transparent import Reader, objection

PYTHON = sys.executable


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    """Programs in ``bin`` are found; so are those of this system."""
    machine = here(tmp_path)
    (tmp_path / "bin").mkdir()
    entry = registered(machine, "claude-code", "x", env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"})
    environment = environments(entry, machine)[-1]
    return Reader(
        machine=machine,
        cwd=tmp_path,
        find=lambda word: programs.find(word, entry, environment, machine),
        kept=kept(),
    )


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


ENTRY = f"#!{PYTHON}\nimport sys\nfrom cpersona.server import run\nif __name__ == '__main__':\n    sys.exit(run())\n"


@pytest.mark.parametrize(
    "words",
    [
        (PYTHON, "-m", "cpersona"),
        (PYTHON, "-X", "utf8", "-m", "cpersona", "leftover"),
        ("cpersona",),
        (PYTHON, "@/bin/cpersona"),
        ("nice", "-n", "5", "cpersona"),
        ("timeout", "60", "nice", PYTHON, "-m", "cpersona"),
        ("env", "-u", "OTHER", "CPERSONA_EMBEDDING_MODE=none", "cpersona"),
        ("sh", "-c", "cpersona"),
        ("sh", "-c", "echo hello; cd /tmp && exec cpersona"),
        ("bash", "-c", "export LANG=C; sleep 1\nexec cpersona >/dev/null 2>&1"),
        ("sh", "plain.sh"),
        ("@/bin/plain.sh",),
        ("outer.sh",),
    ],
    ids=" ".join,
)
def test_a_command_that_hands_everything_on(reader: Reader, tmp_path: Path, words: tuple[str, ...]) -> None:
    program(tmp_path, "cpersona", ENTRY)
    plain = f'#!/bin/sh\n# starts it\necho "Welcome \\033[1m"\nset -e\nexec {PYTHON} \\\n  -m cpersona "$@"\n'
    program(tmp_path, "plain.sh", plain)
    (tmp_path / "plain.sh").write_text(plain)
    program(tmp_path, "outer.sh", f"#!/usr/bin/env bash\n{tmp_path}/bin/plain.sh\n")
    assert objection([word.replace("@", str(tmp_path)) for word in words], reader) == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("env", "CPERSONA_DB_PATH=/x", "cpersona"), "itself sets or removes CPERSONA_DB_PATH"),
        (("env", "-u", "CPERSONA_DB_PATH", "cpersona"), "itself sets or removes CPERSONA_DB_PATH"),
        (("env", "CPERSONA_VECTOR_SEARCH_MODE=remote", "cpersona"), "CPERSONA_VECTOR_SEARCH_MODE"),
        (("env", "PATH=/x", "cpersona"), "changes PATH"),
        (("env", "-i", "cpersona"), "may empty"),
        (("env", "-u"), "nested too deeply"),
        (("conda", "run", "-n", "memory", "cpersona"), "what conda changes"),
        (("nice", "-n", "5", "./memory"), "what nice changes"),
        (("sh", "-lc", "cpersona"), "start files"),
        (("bash", "-l", "-c", "cpersona"), "start files"),
        (("zsh", "-c", "cpersona"), "start files"),
        (("fish", "-c", "cpersona"), "start files"),
        (("sh",), "start files"),
        (("sh", "-c", ""), "does not say plainly"),
        (("sh", "-c", "CPERSONA_DB_PATH=/x cpersona"), "speaks of CPERSONA_DB_PATH"),
        (("sh", "-c", 'echo "$((CPERSONA_DB_PATH=1))"; cpersona'), "speaks of CPERSONA_DB_PATH"),
        (("sh", "-c", "PATH=/x cpersona"), "sets PATH"),
        (("sh", "-c", ". ./memory.env; cpersona"), "was not found"),
        (("sh", "-c", "eval x; cpersona"), "was not found"),
        (("sh", "-c", 'eval "$(cat x)"; cpersona'), "makes its command line up"),
        (("sh", "-c", "echo a#b; . ./memory.env; cpersona"), "was not found"),
        (("sh", "-c", "echo '#'; cpersona"), "more than plain"),
        (("sh", "-c", "echo a\\\\\n. x; cpersona"), "more than plain"),
        (("sh", "-c", "echo a\u2028cpersona\n. ./x"), "was not found"),
        (("sh", "-c", "cpersona\r"), "more than plain"),
        (("sh", "-c", "cpersona | tee log"), "more than plain"),
        (("sh", "-c", "cpersona &"), "more than plain"),
        (("sh", "-c", "x() { cpersona; }; x"), "more than plain"),
        (("sh", "-c", "cpersona <<X"), "more than plain"),
        (("sh", "-c", "echo 'open"), "more than plain"),
        (("sh", "-c", "printf -v X y; cpersona"), "what printf changes"),
        (("sh", "-c", "exec $SERVER"), "makes its command line up"),
        (("sh", "-c", "exec"), "makes its command line up"),
        (("sh", "-c", "export -n X; cpersona"), "was not found"),
        (("sh", "-c", "if true; then cpersona; fi"), "was not found"),
        (("sh", "gone.sh"), "cannot be read"),
        (("sh", "nul\0.sh"), "cannot be read"),
        (("ruby.sh",), "what ruby.sh changes"),
        (("many.sh",), "what many.sh changes"),
        (("zsh.sh",), "what zsh.sh changes"),
        (("long.sh",), "too long"),
        (("loop.sh",), "nested too deeply"),
        (("own",), "a Python program of its own"),
        (("@/setting/bin/cpersona",), "a Python program of its own"),
        ((PYTHON, "@/setting/bin/cpersona"), "a Python program of its own"),
        (("@/binary/bin/cpersona",), "what "),
        (("memory",), "what memory changes"),
        ((PYTHON, "-c", "from cpersona import server; server.run()"), "may set anything first"),
        (("uvx", "--from", "cpersona", "env", "CPERSONA_DB_PATH=/x", "cpersona"), "what uvx changes"),
        (("@/.pyenv/shims/cpersona",), "belongs to pyenv"),
        (("cmd", "/c", "cpersona"), "what cmd changes"),
        (("pwsh", "-Command", ". ./memory.ps1; cpersona"), "what pwsh changes"),
        ((), "nested too deeply"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_that_may_change_it(reader: Reader, tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    program(tmp_path, "cpersona", ENTRY)
    program(tmp_path, "ruby.sh", "#!/usr/bin/ruby\nexec 'cpersona'\n")
    program(tmp_path, "many.sh", "#!/bin/sh -l\ncpersona\n")
    program(tmp_path, "zsh.sh", "#!/usr/bin/env zsh\ncpersona\n")
    program(tmp_path, "long.sh", "#!/bin/sh\n" + "#\n" * 40_000 + "cpersona\n")
    program(tmp_path, "loop.sh", "#!/bin/sh\nexec loop.sh\n")
    program(tmp_path, "own", f"#!{PYTHON}\nimport cpersona\n")
    for name in ("memory", "conda", "cmd", "pwsh"):
        program(tmp_path, name, "\x7fELF\0")
    program(tmp_path / "setting", "cpersona", ENTRY.replace("import sys", "import os, sys\nos.environ['A'] = 'b'"))
    program(tmp_path / "binary", "cpersona", "\x7fELF\0")
    shim = tmp_path / ".pyenv" / "shims" / "cpersona"
    shim.parent.mkdir(parents=True)
    shim.write_text("#!/bin/sh\n")
    shim.chmod(0o755)
    said = objection([word.replace("@/", f"{tmp_path}/") for word in words], reader)
    assert says in said


def test_what_bash_is_made_to_read(reader: Reader, tmp_path: Path) -> None:
    program(tmp_path, "cpersona", ENTRY)
    program(tmp_path, "bash.sh", "#!/bin/bash\ncpersona\n")
    ahead = replace(reader, prelude=True)
    for words in (["bash", "-c", "cpersona"], ["bash.sh"]):
        assert objection(words, reader) == ""
        assert objection(words, ahead) != ""
    assert objection(["sh", "-c", "cpersona"], ahead) == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("cmd", "/c", "uvx", "cpersona"), ""),
        (("cmd.exe", "/C", "uvx cpersona"), ""),
        (("cmd", "/k", "uvx", "cpersona"), "what cmd changes"),
        (("cmd", "/c", "set X=1 && uvx cpersona"), "does more than start one program"),
        (("cmd", "/c", "%SERVER%"), "does more than start one program"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_cmd(reader: Reader, tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    program(tmp_path, "uvx", "MZ\0")
    windows = replace(reader, machine=replace(reader.machine, system="windows"))
    said = objection(words, windows)
    assert says in said
    assert bool(said) == bool(says)
