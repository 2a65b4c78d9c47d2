"""The exact edit for a registration, in the spelling of the file it stands in.

Where a variable is spelled decides how it is repaired: JSON and JSONC env blocks, TOML tables, ``-e`` options of
``docker run``, words of an ``env NAME=VALUE`` command, compose files, env files, and the environment of a process.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from enum import Enum, auto

from cpersona_cli.install.machine import current_system
from cpersona_cli.install.model import LaunchKind, Place, Registration
from cpersona_cli.text import safe
from cpersona_cli.traps.model import Repair

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # a variable name that a shell can be told of
_CONTAINERS = {LaunchKind.DOCKER, LaunchKind.COMPOSE}


class _Style(Enum):
    SHELL = auto()
    OPTION = auto()  # "-e", "NAME=value" in an argument list
    WORD = auto()  # "NAME=value" in an argument list
    TOML = auto()
    YAML = auto()
    ENV_FILE = auto()
    JSON = auto()


_COMMAS = {_Style.OPTION, _Style.WORD, _Style.JSON}
_BY_SUFFIX = {
    ".json": _Style.JSON,
    ".jsonc": _Style.JSON,
    ".toml": _Style.TOML,
    ".yml": _Style.YAML,
    ".yaml": _Style.YAML,
}


def set_variable(registration: Registration, name: str, value: str, *, at: Place | None = None) -> Repair:
    """Set ``name`` to ``value``: replace the text at ``at`` when it already stands in a file, else add it.

    Where it already stands in the entry's own environment, be it empty, it is replaced: a name given twice is no file
    that a client reads.
    """
    at = at or _standing(registration, name)
    if at is None or at.file is None:
        return set_variables(registration, {name: value})
    edit = _spelled(_style(registration, (name,), at), name, value)
    return Repair(prose=f"in {_where(at)}, write this instead{restart(registration)}", edit=edit, place=at)


def _standing(registration: Registration, name: str) -> Place | None:
    """Where ``name`` stands in the entry's environment, if that is where it counts."""
    found = [v.place for v in registration.variables if v.name == name and v.place.file is not None]
    return found[-1] if found and _env_block_reaches(registration, (name,)) else None


def set_variables(registration: Registration, values: Mapping[str, str]) -> Repair:
    """Set several variables in one edit where the registration keeps its own."""
    style = _style(registration, tuple(values), None)
    lines = [_spelled(style, name, value) for name, value in values.items()]
    place = registration.env_place or registration.place
    if style is _Style.SHELL:
        return Repair(prose="set in the environment that starts the server", commands=tuple(lines), place=place)
    edit = (",\n" if style in _COMMAS else "\n").join(lines)
    if style is _Style.WORD and not registration.launch.variables:
        edit = f'"env",\n{edit}'
    if style in {_Style.OPTION, _Style.WORD}:
        place, verb = registration.place, _in_arguments(registration)
    else:
        standing = [name for name in values if _standing(registration, name)]
        verb = "add to its environment" if registration.env_place else "give the entry an environment"
        verb += f", in place of the {' and '.join(standing)} that stands there" if standing else ""
        edit = edit if registration.env_place else _new_block(style, values)
    return Repair(prose=f"in {_where(place)}, {verb}{restart(registration)}", edit=edit, place=place)


def remove_variable(registration: Registration, name: str, *, at: Place) -> Repair:
    """Take ``name`` out of where it stands."""
    if at.file is None:
        commands = (_unset(name),) if _WORD.fullmatch(name) else ()
        return Repair(prose=f"remove {safe(name)} from the environment ({at})", commands=commands, place=at)
    return Repair(prose=f"in {_where(at)}, remove {safe(name)}{restart(registration)}", place=at)


def rename_variable(registration: Registration, name: str, to: str, *, at: Place) -> Repair:
    """Give the variable at ``at`` its right name, the value unchanged."""
    if at.file is None:
        commands = (_copy(name, to), _unset(name)) if _WORD.fullmatch(name) else ()
        return Repair(prose=f"rename {safe(name)} to {to} in the environment ({at})", commands=commands, place=at)
    return Repair(prose=f"in {_where(at)}, rename {safe(name)} to {to}{restart(registration)}", place=at)


def _where(place: Place) -> str:
    return f"{place.file}, line {place.line}" if place.line else str(place.file)


def restart(registration: Registration) -> str:
    """The end of a sentence about a change; this process's own environment counts at the next start anyway."""
    return "" if registration.launch.kind is LaunchKind.PROCESS else f", then restart {registration.client_title}"


def _spelled(style: _Style, name: str, value: str) -> str:
    """``name`` set to ``value``, in one of the spellings."""
    text = json.dumps(value, ensure_ascii=False)
    match style:
        case _Style.SHELL:
            return f"$env:{name} = {_powershell(value)}" if _windows() else f"export {name}={shlex.quote(value)}"
        case _Style.OPTION:
            return f'"-e", {json.dumps(f"{name}={value}", ensure_ascii=False)}'
        case _Style.WORD:
            return json.dumps(f"{name}={value}", ensure_ascii=False)
        case _Style.TOML:
            return f"{name} = {_toml(value)}"
        case _Style.YAML:
            return f"{name}: {text}"
        case _Style.ENV_FILE:
            return f"{name}={value}"
        case _:
            return f"{json.dumps(name)}: {text}"


def _style(registration: Registration, names: Iterable[str], at: Place | None) -> _Style:
    """How variables are spelled at ``at`` (None: where the registration keeps its variables)."""
    place = at or registration.env_place or registration.place
    if place.file is None:
        return _Style.SHELL
    by_suffix = _BY_SUFFIX.get(place.file.suffix)
    if place.file != registration.place.file:
        return by_suffix or _Style.ENV_FILE
    launch = registration.launch
    if at is None:
        in_arguments = not _env_block_reaches(registration, names)
    else:
        carried = any(v.name in names for v in launch.variables)
        in_arguments = carried and at == registration.place
    if in_arguments:
        return _Style.OPTION if launch.kind in _CONTAINERS else _Style.WORD
    return by_suffix or _Style.JSON


def _env_block_reaches(registration: Registration, names: Iterable[str]) -> bool:
    """Whether variables of the env block reach the server under this launch."""
    launch = registration.launch
    return (launch.kind not in _CONTAINERS and launch.inside == "host") or all(n in launch.passed for n in names)


def _in_arguments(registration: Registration) -> str:
    """Where a variable goes that the env block would not hand on."""
    if registration.launch.kind is LaunchKind.DOCKER:
        return "add to its arguments, before the image name"
    if registration.launch.kind is LaunchKind.COMPOSE:
        return "add to its arguments, before the service name (or, without -e, under environment: in the compose file)"
    return "add to its arguments, before the server's command, because the env block does not reach into WSL"


def _new_block(style: _Style, values: Mapping[str, str]) -> str:
    """The whole env block, for an entry that has none yet; on one line, so that it can stand anywhere in the entry."""
    inner = ", ".join(_spelled(style, name, value) for name, value in values.items())
    return f"env = {{ {inner} }}" if style is _Style.TOML else f'"env": {{ {inner} }}'


def _toml(value: str) -> str:
    literal = "\\" in value and "'" not in value and value.isprintable()
    return f"'{value}'" if literal else json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _windows() -> bool:
    """Only this process's own environment is repaired by commands, so this process's system decides their spelling."""
    return current_system() == "windows"


def _powershell(value: str) -> str:
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def _unset(name: str) -> str:
    return f"Remove-Item Env:{name}" if _windows() else f"unset {name}"


def _copy(name: str, to: str) -> str:
    return f"$env:{to} = $env:{name}" if _windows() else f'export {to}="${name}"'
