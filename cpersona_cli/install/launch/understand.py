"""A registered command line understood: how it starts the server, where, and with which variables.

Nothing is executed. The words are read the way the programs they name would read them: uv, pipx, Python, shells,
``env``, containers, ``wsl.exe``. What stands in front of the server is followed to any sensible depth; a program
nobody knows is named as ``wrapper`` and never guessed through beyond the words that plainly start a server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from cpersona_cli.install.launch.options import names
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Launch, LaunchKind, Place, Variable
from cpersona_cli.record import record, replace

Package = Literal["", "cpersona", "cembedding"]

#: Programs that change nothing that matters here about what stands behind them.
_HARMLESS = names("nice nohup timeout stdbuf exec command time caffeinate arch setsid ionice chrt unbuffer")
#: Package runners: their arguments are theirs, a word among them starts nothing.
_RUNNERS = names("npx npm bunx bun pnpm yarn node deno")
_SHELLS = names("sh bash zsh dash ksh fish ash")
_SUFFIXES = (".exe", ".cmd", ".bat", ".com", ".ps1")
ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=(.*)$", re.DOTALL)
_PYTHON = re.compile(r"^(?:python|pypy)(?:\d+(?:\.\d+)*)?w?$|^pyw?$")
_LEVELS = 8


@record(kw_only=True)
class Site:
    """Where a command line is read: the machine, the folder relative names start from, and how deep it stands.

    ``elsewhere``: inside a container or WSL, where files of these names are not the machine's own.
    """

    machine: Machine
    base: Path
    level: int = 0
    elsewhere: bool = False


def understand(
    command: str, args: Sequence[object], machine: Machine, base_dir: Path | None = None, *, url: str = ""
) -> Launch:
    """What ``command`` with ``args`` would start.

    ``base_dir`` is the folder in which the client starts it (compose files are looked for there). ``url`` is the
    address of a registration without a command. Arguments that are no strings are taken as their text. The kind is
    ``unknown`` for a program that is neither CPersona nor something that may hold it.
    """
    words = tuple(str(word) for word in (command, *args))
    if not command:
        return Launch(kind=LaunchKind.REMOTE, url=url) if url else Launch(kind=LaunchKind.UNKNOWN, words=words)
    site = Site(machine=machine, base=base_dir or machine.cwd)
    found = follow(words, site)
    if found.kind is LaunchKind.UNKNOWN and not args and re.search(r"\s", command.strip()):
        parts = split_posix(command) if machine.system != "windows" else split_windows(command)
        whole = follow(parts, site)
        if whole.package:
            said = f"the field for the program holds the whole line {command!r}; a client looks for a file so named"
            found = replace(whole, program=command, unclear=(*whole.unclear, said))
    return replace(found, words=words)


def follow(words: Sequence[str], site: Site) -> Launch:
    """``understand`` for words found inside a command line."""
    unknown = Launch(kind=LaunchKind.UNKNOWN, program=words[0] if words else "", words=tuple(words))
    if not words or site.level > _LEVELS:
        return unknown
    site = replace(site, level=site.level + 1)
    handler = _handler(stem(words[0]))
    if handler is not None:
        return handler(words, site) or unknown
    return behind(words, site) or unknown


def stem(word: str) -> str:
    """The program a word names: its last path component, lower case, without ``.exe`` and the like."""
    name = re.split(r"[/\\]", word)[-1].lower()
    return next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)


def split_posix(text: str) -> list[str]:
    """Words of a POSIX shell line, separators and redirections as words of their own; unbalanced quotes are kept."""
    import shlex  # noqa: PLC0415 - only command lines inside strings need it

    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return text.split()


def split_windows(text: str) -> list[str]:
    """Words of a ``cmd.exe`` line: double quotes group, backslashes are plain, ``&`` and ``|`` stand alone."""
    return [
        quoted[1:-1] if len(quoted) > 1 and quoted[0] == quoted[-1] == '"' else quoted
        for quoted in re.findall(r'"[^"]*"|&&|\|\||[&|]|[^\s&|"]+(?:"[^"]*"[^\s&|"]*)*', text)
    ]


def package_of(name: str) -> Package:
    """The server a distribution name stands for."""
    return "cpersona" if name == "cpersona" else "cembedding" if name == "cembedding" else ""


def assigned(pairs: Sequence[tuple[str, str]], origin: str) -> tuple[Variable, ...]:
    """Variables that a command line carries; its reader knows in which file it stands."""
    return tuple(Variable(name, value, Place(words=origin), origin) for name, value in pairs)


def around(
    launch: Launch, *, variables: tuple[Variable, ...] = (), unclear: Sequence[str] = (), cwd: str = ""
) -> Launch:
    """``launch`` with what the words in front of it add; the inner words win, as they do when it runs."""
    return replace(
        launch,
        variables=(*variables, *launch.variables),
        unclear=(*unclear, *launch.unclear),
        cwd=launch.cwd or cwd,
    )


def _handler(name: str) -> Callable[[Sequence[str], Site], Launch | None] | None:
    """The reader of a program's words. The readers follow inner words with this module, hence the late import."""
    from cpersona_cli.install.launch import containers, pythons, shells  # noqa: PLC0415

    if _PYTHON.match(name):
        return pythons.python
    if name in _SHELLS:
        return shells.shell
    table: dict[str, Callable[[Sequence[str], Site], Launch | None]] = {
        "uvx": pythons.uvx,
        "uv": pythons.uv,
        "pipx": pythons.pipx,
        "cpersona": pythons.script,
        "cembedding": pythons.script,
        "env": shells.env,
        "cmd": shells.cmd,
        "powershell": shells.powershell,
        "pwsh": shells.powershell,
        "wsl": shells.wsl,
        "docker": containers.engine,
        "podman": containers.engine,
        "nerdctl": containers.engine,
        "docker-compose": containers.composed,
        "podman-compose": containers.composed,
    }
    return table.get(name)


def behind(words: Sequence[str], site: Site) -> Launch | None:
    """What stands behind a program that starts its arguments, known or not."""
    name = stem(words[0])
    bridge = next((word for word in words[1:] if re.match(r"^https?://", word)), "")
    if bridge and any(re.match(r"^(?:mcp-remote|mcp-proxy|supergateway)(?:@.*)?$", stem(word)) for word in words):
        return Launch(kind=LaunchKind.REMOTE, program=words[0], url=bridge)
    divided = "--" in words
    if name in _RUNNERS and not divided:
        return None
    start = words.index("--") + 1 if divided else 1
    for index in range(start, len(words)):
        if not (index == start and divided) and not _starts(words[index]):
            continue
        inner = follow(words[index:], site)
        if inner.package:
            if name in _HARMLESS:
                return inner
            said = f"{words[0]} stands in front of the server; what it changes is not known"
            before = [word for word in words[1:index] if word.startswith("--env-file=")]
            files = [word.partition("=")[2] for word in before]
            return replace(
                inner,
                wrapper=inner.wrapper or words[0],
                unclear=(said, *inner.unclear),
                env_files=(*files, *inner.env_files),
            )
    return None


def _starts(word: str) -> bool:
    """Whether a word among an unknown program's arguments plainly names a program that can start a server."""
    if _handler(stem(word)) is None or ASSIGNMENT.match(word):
        return False
    folders = re.split(r"[/\\]", word.lower())
    return len(folders) == 1 or folders[-2] in {"bin", "scripts", "shims"} or folders[-1].endswith(".exe")
