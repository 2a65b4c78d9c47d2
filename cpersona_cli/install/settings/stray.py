"""Settings that stand where no server sees them: ``.env`` files, shell start files, the shell this tool runs in.

The server loads no ``.env`` file, and clients hand on little or nothing of a shell's environment. Only reading, at
most a few dozen small files. The values are kept for comparison; ``table.is_secret`` says which must not be shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from cpersona_cli.install.files.bounded import read_bounded
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Place, Variable
from cpersona_cli.install.settings.model import Reader
from cpersona_cli.install.settings.table import BY_ALIAS, BY_NAME
from cpersona_cli.install.settings.unknown import OWN_PREFIX, PREFIX

#: The words by which a ``Variable`` found here says where it comes from.
DOTENV, START_FILE, SHELL = ".env file", "shell start file", "this shell"

_LARGEST = 256 * 1024
_MOST_FOLDERS = 40

_DOTENV_FILES = (".env", ".env.local")
_POSIX_FILES = (".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zprofile", ".zshenv")
_POWERSHELL = "Microsoft.PowerShell_profile.ps1"

_NAME = r"(?P<name>(?:CPERSONA|EMBEDDING)_[A-Z0-9_]+)"
_VALUE = r"""(?P<value>"(?:\\.|[^"\\])*"|'[^']*'|(?:\\.|[^\s;&|#\\])*)"""
_EXPORT = re.compile(r"\s*(?P<export>(?:export|declare|typeset)\s+(?:-\w+\s+)*)?")
_ASSIGNMENT = re.compile(rf"{_NAME}={_VALUE}\s*")
_FISH = re.compile(rf"\s*set\s+(?P<options>(?:-\S+\s+)+){_NAME}\s+{_VALUE}")
_POWERSHELL_LINE = re.compile(rf"\s*\$env:{_NAME}\s*=\s*{_VALUE}", re.IGNORECASE)
_POWERSHELL_CALL = re.compile(
    rf"""\s*\[(?:System\.)?Environment\]::SetEnvironmentVariable\(\s*["']{_NAME}["']\s*,\s*{_VALUE}""", re.IGNORECASE
)
_DOTENV_LINE = re.compile(
    rf"""\s*(?:export\s+)?{_NAME}\s*=[ \t]*(?P<value>"(?:\\.|[^"\\])*"|'[^']*'|.*?)[ \t]*(?:[ \t]#.*)?$"""
)


def stray(machine: Machine, folders: Iterable[Path] = ()) -> tuple[Variable, ...]:
    """Every setting of the server found outside of a registration, in the order shell, start files, ``.env`` files.

    ``folders`` are looked at for ``.env`` files beside the working directory and the home. Files that cannot be read
    are passed over: nothing depends on them.
    """
    found = [Variable(name, value, Place(words=SHELL), SHELL) for name, value in machine.env.items() if _is_ours(name)]
    for path in _start_files(machine):
        found += in_file(path, START_FILE)
    for folder in list(dict.fromkeys((machine.cwd, machine.home, *folders)))[:_MOST_FOLDERS]:
        for name in _DOTENV_FILES:
            found += in_file(folder / name, DOTENV)
    return tuple(found)


def _is_ours(name: str) -> bool:
    if name in BY_ALIAS:
        return True
    row = BY_NAME.get(name)
    if row is not None and row.reader is not Reader.NOBODY:
        return row.reader in {Reader.SERVER, Reader.PROXY}
    return name.startswith(PREFIX) and not name.startswith(OWN_PREFIX)


def login_files(shell: str, machine: Machine) -> Iterator[Path]:
    """The files of the user that ``shell`` (``bash``, ``zsh`` ...) reads as a login shell, in its order."""
    if shell == "bash":
        names = (".bash_profile", ".bash_login", ".profile")
        yield next((machine.home / name for name in names if (machine.home / name).is_file()), machine.home / names[-1])
    elif shell == "zsh":
        yield from (machine.home / name for name in (".zshenv", ".zprofile"))
    elif shell == "fish":
        yield machine.config / "fish" / "config.fish"
    else:
        yield machine.home / ".profile"


def _start_files(machine: Machine) -> Iterator[Path]:
    for name in _POSIX_FILES:
        yield machine.home / name
    yield machine.config / "fish" / "config.fish"
    yield machine.config / "powershell" / _POWERSHELL
    if machine.system == "windows":
        for documents in (machine.home / "Documents", machine.home / "OneDrive" / "Documents"):
            for flavour in ("PowerShell", "WindowsPowerShell"):
                yield documents / flavour / _POWERSHELL


def in_file(path: Path, origin: str) -> list[Variable]:
    """The settings of the server that a file of shell code or, by ``origin``, a ``.env`` file assigns.

    Lines are taken one by one: conditions and loops around them are not understood. A file that cannot be read has
    none.
    """
    text = read_bounded(path, _LARGEST).text
    if PREFIX not in text.upper() and "EMBEDDING_" not in text.upper():
        return []
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in _assignments(line, path.suffix, origin):
            name = match["name"].upper() if path.suffix == ".ps1" else match["name"]
            if _is_ours(name):
                place = Place(file=path, line=number, column=match.start("name") + 1)
                found.append(Variable(name, _unquoted(match["value"]), place, origin))
    return found


def _assignments(line: str, suffix: str, origin: str) -> Iterator[re.Match[str]]:
    if origin == DOTENV:
        matches = [_DOTENV_LINE.match(line)]
    elif suffix == ".ps1":
        matches = [_POWERSHELL_LINE.match(line), _POWERSHELL_CALL.match(line)]
    else:
        yield from _posix(line)
        matches = [_exporting_fish(line)] if suffix == ".fish" else []
    yield from (match for match in matches if match)


def _exporting_fish(line: str) -> re.Match[str] | None:
    match = _FISH.match(line)
    if match is None:
        return None
    options = match["options"].split()
    exported = any(o == "--export" or (not o.startswith("--") and "x" in o) for o in options)
    return match if exported else None


def _posix(line: str) -> Iterator[re.Match[str]]:
    """The assignments a line begins with, unless they are given to a command that follows on it."""
    start = _EXPORT.match(line)
    at = start.end() if start else 0
    found = []
    while match := _ASSIGNMENT.match(line, at):
        found.append(match)
        at = match.end()
    rest = line[at:]
    if (start and start["export"]) or not rest or rest[0] in ";&|#":
        yield from found


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]:
        return value[1:-1]
    return value
