"""Commands that start the server through another command line: shells, ``env``, ``wsl.exe``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cpersona_cli.install.launch.options import leading
from cpersona_cli.install.launch.understand import (
    ASSIGNMENT,
    Site,
    around,
    assigned,
    behind,
    follow,
    split_posix,
    split_windows,
    stem,
)
from cpersona_cli.install.model import Launch, LaunchKind, Variable
from cpersona_cli.install.release import locate
from cpersona_cli.install.settings.stray import in_file, login_files
from cpersona_cli.record import replace


def env(words: Sequence[str], site: Site) -> Launch | None:
    options = leading(words[1:], valued=("-u", "--unset", "-C", "--chdir", "-S", "--split-string"))
    rest = [*(part for text in options.all("-S", "--split-string") for part in split_posix(text)), *options.rest]
    pairs = []
    while rest and (match := ASSIGNMENT.match(rest[0])):
        pairs.append((match.group(1), match.group(2)))
        rest.pop(0)
    inner = follow(rest, site)
    unset = options.all("-u", "--unset")
    if options.has("-i", "--ignore-environment"):
        unset = ("*",)
    found = around(inner, variables=assigned(pairs, "env command"), cwd=options.last("-C", "--chdir"))
    return replace(found, unset=(*unset, *found.unset))


def shell(words: Sequence[str], site: Site) -> Launch | None:
    options = leading(words[1:], valued=("-c", "-o", "-O", "--rcfile", "--init-file", "--command"))
    text = options.last("-c", "--command")
    if not text:
        if not options.rest:
            return None
        said = f"the shell script {options.rest[0]} starts it; what it sets was not read"
        inner = behind((words[0], *options.rest[1:]), site)
        return inner and replace(inner, wrapper=options.rest[0], unclear=(said,))
    found = _script_line(split_posix(text), site)
    if options.has("-l", "--login", "-i"):
        said = f"{stem(words[0])} reads the user's start files first, which may set variables and PATH"
        read = [v for path in login_files(stem(words[0]), site.machine) for v in assigning(path, site)]
        found = replace(
            found,
            wrapper=f"{stem(words[0])} as a login shell",
            variables=(*read, *found.variables),
            unclear=(*found.unclear, said),
        )
    return found


def assigning(path: Path, site: Site) -> list[Variable]:
    """What a file of shell code sets that the server reads, as far as plain lines tell."""
    seen = locate.readable(site.machine) and not site.elsewhere
    return in_file(path, "shell command") if seen else []


def _script_line(tokens: Sequence[str], site: Site) -> Launch:
    """The first of several shell commands that starts a server, with what those before it set."""
    pairs: list[tuple[str, str]] = []
    read: list[Variable] = []
    unclear: list[str] = []
    cwd = ""
    first: Launch | None = None
    for simple in _simple_commands(tokens):
        own = []
        while simple and (match := ASSIGNMENT.match(simple[0])):
            own.append((match.group(1), match.group(2)))
            simple.pop(0)
        if not simple:
            pairs += own
            continue
        head = simple[0]
        if head == "cd" and len(simple) > 1:
            cwd = simple[1]
        elif head == "export":
            pairs += [match.groups() for word in simple[1:] if (match := ASSIGNMENT.match(word))]  # type: ignore[misc]
        elif head in {".", "source"} and len(simple) > 1:
            file = re.sub(r"^(?:~|\$HOME|\$\{HOME\})(?=/)", str(site.machine.home).replace("\\", r"\\"), simple[1])
            read += assigning(site.base / cwd / file, site)
            unclear.append(f"the shell reads {simple[1]} first, which was read line by line and not run")
        elif head not in {"set", "ulimit", "umask", "true", "unset", "sleep", "echo", "mkdir"}:
            base = site if not cwd else replace(site, base=site.base / cwd)
            inner = follow(simple, base)
            variables = (*read, *assigned([*pairs, *own], "shell command"))
            found = around(inner, variables=variables, unclear=unclear, cwd=cwd)
            if inner.package or inner.kind is not LaunchKind.UNKNOWN:
                return found
            first = first or found
    return first or Launch(kind=LaunchKind.UNKNOWN)


def _simple_commands(tokens: Sequence[str]) -> list[list[str]]:
    """Words between separators, redirections dropped."""
    commands: list[list[str]] = [[]]
    skip = False
    for token in tokens:
        if skip:
            skip = False
        elif token and set(token) <= set(";&|()"):
            commands.append([])
        elif token and set(token) <= set("<>&"):
            if commands[-1] and commands[-1][-1] in {"1", "2"}:
                commands[-1].pop()
            skip = True
        else:
            commands[-1].append(token)
    return [command for command in commands if command]


def cmd(words: Sequence[str], site: Site) -> Launch | None:
    rest = list(words[1:])
    while rest and re.match(r"^/[a-bd-jl-z]", rest[0], re.IGNORECASE):
        rest.pop(0)
    if not rest or rest[0].lower()[:2] not in {"/c", "/k"}:
        return None
    first = rest.pop(0)[2:]
    tokens = split_windows(first) if first else []
    for word in rest:
        text = word[1:-1] if word[:1] == word[-1:] == '"' and word.count('"') > 2 else word
        tokens += split_windows(text) if len(rest) == 1 else [word]
    pairs: list[tuple[str, str]] = []
    cwd = ""
    for simple in _simple_commands(tokens):
        head = simple[0].lower()
        setting = ASSIGNMENT.match(" ".join(simple[1:]).strip('"')) if head == "set" else None
        if setting:
            pairs.append((setting.group(1), setting.group(2)))
        elif head == "cd":
            cwd = next((word for word in simple[1:] if not word.startswith("/")), "")
        else:
            inner = follow(simple[1:] if head in {"call", "start", "@call"} else simple, site)
            return around(inner, variables=assigned(pairs, "cmd command"), cwd=cwd)
    return None


def powershell(words: Sequence[str], site: Site) -> Launch | None:
    rest = list(words[1:])
    for index, word in enumerate(rest):
        if word.lower() in {"-file", "-f"}:
            inner = follow(rest[index + 1 :], site)
            said = f"the script {' '.join(rest[index + 1 : index + 2])} starts it; what it sets was not read"
            return inner if inner.package else Launch(kind=LaunchKind.UNKNOWN, wrapper=words[0], unclear=(said,))
        if word.lower() in {"-command", "-c"}:
            rest = rest[index + 1 :]
            break
    else:
        while rest and rest[0].startswith("-"):
            rest = rest[2:] if rest[0].lower() in {"-executionpolicy", "-ep", "-windowstyle", "-version"} else rest[1:]
    pairs = []
    for part in " ".join(rest).split(";"):
        setting = re.match(r"\s*\$env:(\w+)\s*=\s*(['\"]?)(.*?)\2\s*$", part, re.IGNORECASE)
        if setting:
            pairs.append((setting.group(1), setting.group(3)))
            continue
        simple = [word for word in re.findall(r"'[^']*'|\"[^\"]*\"|\S+", part) if word != "&"]
        simple = [word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word for word in simple]
        inner = follow(simple, site)
        if inner.package or inner.kind is not LaunchKind.UNKNOWN:
            return around(inner, variables=assigned(pairs, "powershell command"))
    return None


def wsl(words: Sequence[str], site: Site) -> Launch | None:
    valued = ("-d", "--distribution", "--distribution-id", "-u", "--user", "--cd", "--shell-type", "-e", "--exec")
    options = leading(words[1:], valued=valued, stop=("-e", "--exec", "~"))
    rest = list(options.rest)
    cwd = options.last("--cd")
    if rest[:1] == ["~"]:
        cwd, rest = "~", rest[1:]
    if rest[:1] in (["-e"], ["--exec"], ["--"]):
        rest = rest[1:]
    inner = follow(rest, replace(site, elsewhere=True))
    return replace(inner, inside="wsl", cwd=inner.cwd or cwd)
