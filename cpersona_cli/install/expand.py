"""References such as ``${NAME}`` inside configured texts, expanded by the rule of whoever reads them.

Each rule answers with the text the server receives and, where a reference could not be replaced, a sentence that says
so. What a rule does not know stays in the text: that is what the client does with it, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from cpersona_cli.install.clients.table import CLIENTS
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Registration
from cpersona_cli.record import record

Lookup = Callable[[str], str | None]

_LOOKS_LIKE_REFERENCE = re.compile(r"\$\{[^}]+\}|\$(?:env:)?[A-Z_][A-Z0-9_]+\b|%[A-Z_][A-Z0-9_()]{2,}%", re.IGNORECASE)


@record(kw_only=True)
class Context:
    """What references may mean: the rule, the reader's name, variables, and the folders a client knows."""

    rule: str
    reader: str
    lookup: Lookup
    home: str
    project: Path | None = None
    windows: bool = False


def context(registration: Registration, machine: Machine, lookup: Lookup) -> Context:
    """The rule of the registration's own client; a file of no known client is read without one."""
    client = CLIENTS.get(registration.client)
    return Context(
        rule="final" if registration.client == "env" else client.expansion if client else "none",
        reader=client.title if client else "a client of unknown kind",
        lookup=lookup,
        home=str(machine.home),
        project=registration.project or (machine.cwd if registration.client == "claude-code" else None),
        windows=machine.system == "windows",
    )


def expand(text: str, where: Context) -> tuple[str, str]:
    """``text`` as the server receives it, and why something in it could not be replaced (empty: all is well)."""
    if "$" not in text and "%" not in text and not text.startswith("~"):
        return text, ""
    reasons: list[str] = []
    rule = _RULES[where.rule]
    result = rule(text, where, reasons)
    return result, "; ".join(dict.fromkeys(reasons))


def _none(text: str, where: Context, reasons: list[str]) -> str:
    _leftover(text, where, reasons)
    return text


def _final(text: str, where: Context, reasons: list[str]) -> str:
    """The environment of a process: nobody is going to expand anything in it."""
    del where, reasons
    return text


def _leftover(text: str, where: Context, reasons: list[str]) -> None:
    """Say of every reference-like text still there that this reader hands it on as it stands."""
    for match in _LOOKS_LIKE_REFERENCE.finditer(text):
        word = match.group()
        bare = word.lstrip("$%").removeprefix("env:").rstrip("%")
        if word.startswith("${") or bare.isupper():
            reasons.append(f"{word} is not expanded by {where.reader}; the server receives it as it stands")


def _braces(text: str, where: Context, reasons: list[str], *, defaults: bool = False) -> str:
    """``${NAME}``, and ``${NAME:-default}`` where the reader knows it; an unset one stays as it is written."""

    def one(match: re.Match[str]) -> str:
        name, divider, default = match.group(1).partition(":-") if defaults else (match.group(1), "", "")
        value = where.lookup(name) if re.fullmatch(r"\w+", name) else None
        if value is not None:
            return value
        if divider:
            return default
        known = re.fullmatch(r"\w+", name)
        why = f"{name} is not set where {where.reader} starts" if known else f"{where.reader} does not know this form"
        reasons.append(f"{match.group()} stays as it stands: {why}")
        return match.group()

    result = re.sub(r"\$\{([^}]+)\}", one, text)
    _leftover(re.sub(r"\$\{[^}]+\}", "", text), where, reasons)
    return result


def _claude(text: str, where: Context, reasons: list[str]) -> str:
    return _braces(text, where, reasons, defaults=True)


def _editor(text: str, where: Context, reasons: list[str]) -> str:
    """``${env:NAME}``, ``${workspaceFolder}``, ``${userHome}`` and, asked of a person, ``${input:id}``."""

    def one(match: re.Match[str]) -> str:
        kind, _, name = match.group(1).rpartition(":")
        if kind == "env":
            value = where.lookup(name)
            if value is None:
                reasons.append(f"{match.group()} becomes empty: {name} is not set where {where.reader} starts")
            return value or ""
        if kind == "input":
            reasons.append(f"{match.group()} is prompted for by {where.reader}; its value is not in any file")
            return match.group()
        if match.group(1) == "userHome":
            return where.home
        if match.group(1) in {"workspaceFolder", "workspaceRoot"} and where.project is not None:
            return str(where.project)
        if match.group(1) == "workspaceFolderBasename" and where.project is not None:
            return where.project.name
        if match.group(1) in {"pathSeparator", "/"}:
            return "\\" if where.windows else "/"
        folder = "workspace" in match.group(1)
        why = "the folder depends on what is open" if folder else f"{where.reader} does not expand this form"
        reasons.append(f"{match.group()} is not told: {why}")
        return match.group()

    result = re.sub(r"\$\{([^}]+)\}", one, text)
    _leftover(re.sub(r"\$\{[^}]+\}", "", text), where, reasons)
    return result


def _gemini(text: str, where: Context, reasons: list[str]) -> str:
    """``$NAME`` and ``${NAME}``; an unset one becomes empty."""

    def one(match: re.Match[str]) -> str:
        name, divider, default = (match.group(1) or match.group(2)).partition(":-")
        value = where.lookup(name)
        if value is None and divider:
            return default
        if value is None:
            reasons.append(f"{match.group()} becomes empty: {name} is not set where {where.reader} starts")
        return value or ""

    result = re.sub(r"\$\{([^}]+)\}|\$([A-Za-z_]\w*)", one, text)
    _leftover(re.sub(r"\$\{[^}]+\}|\$\w+", "", text), where, reasons)
    return result


def _shell(text: str, where: Context, reasons: list[str]) -> str:
    """A POSIX shell: ``~`` in front, ``$NAME``, ``${NAME}``, ``${NAME:-default}``; an unset one becomes empty."""
    if re.match(r"^~(?:/|$)", text):
        text = where.home + text[1:]
    return _posix(text, where, reasons, dollar=False)


def _compose(text: str, where: Context, reasons: list[str]) -> str:
    """Compose: as a shell, ``$$`` being a plain dollar sign; no ``~``."""
    return _posix(text, where, reasons, dollar=True)


def _posix(text: str, where: Context, reasons: list[str], *, dollar: bool) -> str:
    def one(match: re.Match[str]) -> str:
        if match.group() == "$$":
            return "$" if dollar else "$$"
        name, operator, default = match.group(1) or match.group(4), match.group(2) or "", match.group(3) or ""
        value = where.lookup(name)
        if value or (value is not None and not operator.startswith(":")):
            return value
        if operator in {":-", "-"}:
            return default
        reasons.append(f"{match.group()} becomes empty: {name} is not set where {where.reader} starts")
        return ""

    return re.sub(r"\$\$|\$\{(\w+)(?:(:?[-?+])([^}]*))?\}|\$([A-Za-z_]\w*)", one, text)


def _cmd(text: str, where: Context, reasons: list[str]) -> str:
    """``cmd.exe``: ``%NAME%``; an unset one stays as it is written."""

    def one(match: re.Match[str]) -> str:
        value = where.lookup(match.group(1))
        if value is None:
            reasons.append(f"{match.group()} stays as it stands: {match.group(1)} is not set")
        return match.group() if value is None else value

    return re.sub(r"%([^%]+)%", one, text)


def _powershell(text: str, where: Context, reasons: list[str]) -> str:
    """PowerShell: ``$env:NAME``; an unset one becomes empty."""

    def one(match: re.Match[str]) -> str:
        value = where.lookup(match.group(1))
        if value is None:
            reasons.append(f"{match.group()} becomes empty: {match.group(1)} is not set")
        return value or ""

    return re.sub(r"\$env:(\w+)", one, text, flags=re.IGNORECASE)


_RULES: dict[str, Callable[[str, Context, list[str]], str]] = {
    "claude": _claude,
    "vscode": _editor,
    "editor-env": _editor,
    "gemini": _gemini,
    "braces": _braces,
    "none": _none,
    "final": _final,
    "shell command": _shell,
    "compose environment": _compose,
    "cmd command": _cmd,
    "powershell command": _powershell,
}

#: Origins of variables that a command line carries and whose reader expands them itself.
COMMAND_RULES = frozenset({"shell command", "compose environment", "cmd command", "powershell command"})
