"""Files of ``NAME=value`` lines: ``.env`` files, and the plainer ones that docker reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from cpersona_cli.install.files.bounded import read_bounded
from cpersona_cli.install.model import Place, Variable

_LIMIT = 1 << 20
_LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*)$", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def read(
    path: Path, style: Literal["dotenv", "docker"], origin: str
) -> tuple[tuple[Variable, ...], tuple[str, ...], str]:
    """The variables of a file, the names it hands on without a value, and a sentence when it cannot be read.

    ``dotenv`` files have quotes, ``export`` and comments behind a value. ``docker`` takes every character behind the
    first ``=`` as it stands, quotes included, and hands on a name that stands alone from its own environment.
    """
    content = read_bounded(path, _LIMIT)
    if content.state == "absent":
        return (), (), f"the environment file {path} does not exist"
    if content.problem:
        return (), (), f"the environment file {path} was not read: {content.problem}"
    lines = content.text.split("\n")
    found, passed = (_docker if style == "docker" else _dotenv)(lines, path, origin)
    return tuple(found), tuple(passed), ""


def _docker(lines: list[str], path: Path, origin: str) -> tuple[list[Variable], list[str]]:
    found = []
    passed = []
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix("\r").lstrip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if equals:
            found.append(Variable(name, value, Place(path, number), origin))
        else:
            passed.append(name.strip())
    return found, passed


def _dotenv(lines: list[str], path: Path, origin: str) -> tuple[list[Variable], list[str]]:
    found = []
    index = 0
    while index < len(lines):
        number = index + 1
        match = _LINE.match(lines[index].removesuffix("\r"))
        index += 1
        if match is None:
            continue
        name, rest = match.group(1), match.group(2)
        quote = rest[:1]
        if quote in {"'", '"'}:
            # A quoted value may go on over lines; without its closing quote only this line is taken.
            following = index
            whole = rest
            while not _closed(whole, quote) and following < len(lines):
                whole += "\n" + lines[following].removesuffix("\r")
                following += 1
            if _closed(whole, quote):
                rest, index = whole, following
        found.append(Variable(name, _value(rest), Place(path, number), origin))
    return found, []


def _closed(text: str, quote: str) -> bool:
    return _quoted(text, quote) is not None


def _quoted(text: str, quote: str) -> str | None:
    """The text between ``quote`` at the start and its closing partner; None without one."""
    body = r"(?:[^\"\\]|\\.)*" if quote == '"' else r"[^']*"
    match = re.match(f"{quote}({body}){quote}", text, re.DOTALL)
    return match.group(1) if match else None


def _value(rest: str) -> str:
    quote = rest[:1]
    if quote in {"'", '"'}:
        inner = _quoted(rest, quote)
        if inner is not None:
            return re.sub(r"\\(.)", _unescaped, inner, flags=re.DOTALL) if quote == '"' else inner
    return re.split(r"\s#", rest, maxsplit=1)[0].strip()


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match.group(1), match.group())
