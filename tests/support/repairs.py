"""Doing what a repair says: its edit parsed in the spelling it is written in, and applied to the registration."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Mapping
from typing import Any

from support.traps import facts, variables

from cpersona_cli.install.model import LaunchKind, Variable
from cpersona_cli.record import replace
from cpersona_cli.traps.model import Facts, Repair

_RENAME = re.compile(r"rename (\S+) to (\S+?)(?:,| in the|$)")
_REMOVE = re.compile(r"remove (\S+?)(?:,| from the| \(|$)")


def assignments(repair: Repair) -> Mapping[str, str]:
    """The variables that the edit or the commands set, whatever the spelling."""
    edit = repair.edit
    if not edit:
        exports = (shlex.split(line) for line in repair.commands if line.startswith("export "))
        return dict(word.split("=", 1) for words in exports for word in words[1:])
    if edit.startswith('"-e"'):
        return dict(word.split("=", 1) for word in json.loads(f"[{edit}]") if word != "-e")
    if edit.startswith('"env": {'):
        return dict(json.loads(f"{{{edit}}}")["env"])
    if edit.startswith('"'):
        return dict(json.loads(f"{{{edit}}}"))
    return dict(tomllib.loads(edit))


def applied(repair: Repair, env: Mapping[str, object]) -> dict[str, object]:
    """``env`` after the repair; gaps such as ``<your key>`` are filled in."""
    done = dict(env)
    for name, to in _RENAME.findall(repair.prose):
        done[to] = done.pop(name)
    for name in _REMOVE.findall(repair.prose):
        done.pop(name, None)
    for name, value in assignments(repair).items() if "rename" not in repair.prose else ():
        if isinstance(value, str):  # a list is a field of the entry itself
            done[name] = "filled-in" if value.startswith("<") else value
    assert done != dict(env), f"nothing to do in: {repair.prose}"
    return done


def repaired(known: Facts, repair: Repair) -> Facts:
    """The same facts after the repair."""
    entry = known.registrations[0]
    carried = entry.launch.kind is LaunchKind.DOCKER
    old = entry.launch.variables if carried else entry.variables
    env = applied(repair, {variable.name: variable.raw for variable in old})
    first = known.targets[0]
    rest: dict[str, Any] = {
        "version": first.version.version,
        "machine": known.machine,
        "stray": known.stray,
        "client": entry.client,
    }
    if carried:
        launch = replace(entry.launch, variables=_carried(env))
        return facts({}, launch=launch, **rest)
    fields: dict[str, Any] = {"env_file": entry.env_file, "transport": entry.transport, "url": entry.url}
    return facts(env, launch=entry.launch, **fields, **rest)


def _carried(env: Mapping[str, object]) -> tuple[Variable, ...]:
    return tuple(replace(variable, origin="docker -e") for variable in variables(env, None))
