"""Whether what stands between a client and its server surely hands our settings on.

A server is started only if the database it opens can be chosen from outside, that is by its environment. So every
program of the command line must be one that leaves the environment alone, and every script among them must be short
and plain enough to be read to the last word. Whatever is not understood counts as changing it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from cpersona_cli.install.launch.options import names
from cpersona_cli.install.launch.understand import ASSIGNMENT, split_windows, stem, understand
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import LaunchKind
from cpersona_cli.install.release.programs import Program, shim
from cpersona_cli.record import record
from cpersona_cli.text import safe

#: Programs that start their arguments in the environment they have, in the session they are in.
_HARMLESS = names("nice nohup timeout stdbuf time caffeinate ionice chrt")
_SHELLS = names("sh bash zsh dash ksh fish ash csh tcsh")
#: Those among them that read no start files when they are given a script.
_PLAIN = names("sh bash dash ksh ash")
#: Shell commands that change nothing of the environment of what comes after them.
_IDLE = names("echo printf sleep true : set ulimit umask cd")
_STARTERS = {LaunchKind.UVX, LaunchKind.PIPX, LaunchKind.MODULE, LaunchKind.SCRIPT}
#: Assigned by a script, these make other programs be found, or other scripts be read.
_FATEFUL = frozenset({"PATH", "ENV", "BASH_ENV", "ZDOTDIR", "IFS"})
_LONGEST = 64 << 10
_LEVELS = 6

Find = Callable[[str], Program]


@record(kw_only=True)
class Reader:
    """How command lines are read: the machine, the folder they start in, how programs are found, what must be kept.

    ``kept`` are the variables that must arrive unchanged. ``prelude``: the environment has bash read a file first.
    """

    machine: Machine
    cwd: Path
    find: Find
    kept: Collection[str]
    prelude: bool = False


def objection(words: Sequence[str], reader: Reader, level: int = 0) -> str:
    """Why the server that ``words`` start might not see what we hand on; an empty text if it surely does."""
    if not words or level > _LEVELS:
        return "the command line is nested too deeply to be followed"
    word, rest = words[0], list(words[1:])
    name = stem(word)
    if name == "env":
        return _env(rest, reader, level)
    if name in _SHELLS:
        return _shell(word, rest, reader, level)
    if name == "cmd" and reader.machine.system == "windows":
        return _cmd(rest, reader, level)
    if name in _HARMLESS:
        inner = next((i for i, one in enumerate(rest) if _may_start(one)), None)
        return _unknown(word) if inner is None else objection(rest[inner:], reader, level + 1)
    launch = understand(word, rest, reader.machine)
    own = launch.program == word and not launch.wrapper  # else it was read through a program that is not known here
    if own and launch.kind in _STARTERS and launch.package == "cpersona":
        if launch.unclear:
            return launch.unclear[0]
        if any(stem(one) in _SHELLS | {"env"} for one in rest):
            return _unknown(word)
        script = next((one for one in rest if re.search(r"[/\\](?:bin|[Ss]cripts)[/\\][^/\\]+$", one)), None)
        if launch.kind is LaunchKind.MODULE and script is not None:
            return _content(reader.cwd / script, script, reader, level, known=True)
        return _file(word, reader, level, known=True)
    return _file(word, reader, level, known=False)


def _unknown(word: str) -> str:
    return f"what {safe(word, 80)} changes before the server starts is not known, the database among it"


def _may_start(word: str) -> bool:
    name = stem(word)
    return name in _SHELLS | _HARMLESS | {"env", "uvx", "uv", "pipx", "cpersona"} or name.startswith("python")


def _env(rest: list[str], reader: Reader, level: int) -> str:
    while rest and (rest[0] in {"-u", "--unset"} or ASSIGNMENT.match(rest[0])):
        word = rest.pop(0)
        name = (rest.pop(0) if rest else "") if word in {"-u", "--unset"} else word.partition("=")[0]
        if name in reader.kept:
            return f"the command line itself sets or removes {name}"
        if name in _FATEFUL:
            return f"the command line itself changes {name}, so which program it starts is not known"
    if rest and rest[0].startswith("-"):
        return f"env {safe(rest[0], 40)} may empty or change the environment"
    return objection(rest, reader, level + 1)


def _cmd(rest: list[str], reader: Reader, level: int) -> str:
    if not rest or rest[0].lower() != "/c":
        return _unknown("cmd")
    words = split_windows(rest[1]) if len(rest) == 2 else rest[1:]
    if any(set(word) & set("&|<>%^") for word in words) or words[:1] == ["set"]:
        return "the command line of cmd does more than start one program"
    return objection(words, reader, level + 1)


def _shell(word: str, rest: list[str], reader: Reader, level: int) -> str:
    name = stem(word)
    if name not in _PLAIN or (reader.prelude and name == "bash"):
        return f"{safe(word, 80)} reads start files first, and what they set is not known"
    if rest[:1] == ["-c"] and len(rest) > 1:
        return _script(rest[1], f"{word} -c", reader, level)
    if rest and not rest[0].startswith("-"):
        return _content(reader.cwd / rest[0], rest[0], reader, level, known=False)
    return f"{safe(word, 80)} {safe(' '.join(rest[:1]), 40)} may read start files, and what they set is not known"


def _file(word: str, reader: Reader, level: int, *, known: bool) -> str:
    """An objection to the program that ``word`` names. A first one that cannot be found is not started at all."""
    found = reader.find(word).path
    if found is None:
        return "" if level == 0 else f"{safe(word, 80)} was not found, so what it starts is not known"
    if shim(found):
        return f"{shim(found)}, and may set variables"
    return _content(found, word, reader, level, known=known)


def _content(found: Path, word: str, reader: Reader, level: int, *, known: bool) -> str:
    try:
        with found.open("rb") as stream:
            head = stream.read(_LONGEST + 1)
    except (OSError, ValueError) as error:
        return f"{safe(str(found), 120)} cannot be read ({getattr(error, 'strerror', None) or 'no file has this name'})"
    script = head.startswith(b"#!")
    if not script and not known and b"\0" not in head and found.suffix == ".sh":
        head, script = b"#!/bin/sh\n" + head, True
    if not script:
        windows = reader.machine.system == "windows"
        program = known and (windows or stem(word) != "cpersona") and found.suffix.lower() not in {".cmd", ".bat"}
        return "" if program else _unknown(word)
    if len(head) > _LONGEST:
        return f"{found} is too long to be read"
    text = head.decode("utf-8", "replace")
    first, _, body = text.partition("\n")
    if "python" in first or (body.startswith("'''exec'") and "python" in body.partition("\n")[0]):
        return _python(found, body, known=known)
    shell = first.removeprefix("#!").split()
    if shell[:1] == ["/usr/bin/env"]:
        shell = shell[1:]
    if len(shell) != 1 or stem(shell[0]) not in _PLAIN or (reader.prelude and stem(shell[0]) == "bash"):
        return _unknown(word)
    return _script(body, str(found), reader, level + 1)


def _python(path: Path, text: str, *, known: bool) -> str:
    """An installed script imports the program and runs it, and does nothing else that matters."""
    if not known or re.search(r"environ|putenv|CPERSONA_|\bexec\(|\beval\(", text):
        return f"{path} is a Python program of its own, and what it sets is not known"
    return ""


def _script(text: str, where: str, reader: Reader, level: int) -> str:
    """An objection to shell code: it must be plain commands of which one starts the server."""
    named = next((name for name in sorted(reader.kept) if name in text), "")
    if named:
        return f"{safe(where, 120)} speaks of {named}"
    if "\\\\\n" in text or "\r" in text:
        return f"{safe(where, 120)} is more than plain commands; what it sets is not known"
    for line in text.replace("\\\n", " ").split("\n"):
        if line.lstrip().startswith("#"):
            continue
        try:
            commands = _commands(line)
        except ValueError:
            return f"{safe(where, 120)} is more than plain commands; what it sets is not known"
        for words in commands:
            verdict = _step(words, where, reader, level)
            if verdict is not None:
                return verdict
    return f"{safe(where, 120)} does not say plainly that it starts a server"


def _step(words: list[str], where: str, reader: Reader, level: int) -> str | None:
    """One simple command: an objection, an empty text when it surely starts the server, None to go on."""
    if words[0] == "export":
        words = words[1:]
    pairs = 0
    while pairs < len(words) and (match := ASSIGNMENT.match(words[pairs])):
        if match[1] in reader.kept or match[1] in _FATEFUL:
            return f"{safe(where, 120)} sets {match[1]}"
        pairs += 1
    words = words[pairs:]
    if not words or (words[0] in _IDLE and words[:2] != ["printf", "-v"]):
        return None
    while words[:1] in (["exec"], ["command"]):
        words = words[1:]
    if not words or any("$" in word or "`" in word for word in words if word not in {"$@", "$*"}):
        return f"{safe(where, 120)} makes its command line up as it runs"
    return objection([word for word in words if word not in {"$@", "$*"}], reader, level + 1)


def _commands(line: str) -> list[list[str]]:
    """The simple commands of one line. Raises ``ValueError`` for anything but ``;``, ``&&`` and redirected output."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[list[str]] = [[]]
    tokens = iter(lexer)
    for token in tokens:
        if token in {";", "&&"}:
            found.append([])
        elif token in {">&", ">", ">>"}:
            if found[-1][-1:] in (["1"], ["2"]):
                found[-1].pop()
            next(tokens, None)
        elif token.startswith("#") or (token and set(token) <= set("();<>|&")):
            raise ValueError(token)
        else:
            found[-1].append(token)
    return [words for words in found if words]
