"""The exact edit for a registration, in the spelling of the file it stands in."""

from __future__ import annotations

import json
import shlex

from cpersona_cli.install.model import LaunchKind, Place, Registration
from cpersona_cli.traps.model import Repair


def _where(registration: Registration, line: int | None) -> str:
    file = registration.place.file
    if file is None:
        return registration.place.words or "this process's environment"
    return f"{file}, line {line}" if line else str(file)


def _assignment(registration: Registration, name: str, value: str) -> str:
    """``name`` set to ``value`` as the registration's own file would spell it."""
    file = registration.place.file
    if file is None:
        return f"export {name}={shlex.quote(value)}"
    if registration.launch.kind is LaunchKind.DOCKER:
        return f'"-e", {json.dumps(f"{name}={value}", ensure_ascii=False)}'
    if file.suffix == ".toml":
        literal = f"'{value}'" if "\\" in value and "'" not in value else json.dumps(value, ensure_ascii=False)
        return f"{name} = {literal}"
    return f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"


def _then(registration: Registration) -> str:
    return "" if registration.place.file is None else f", then restart {registration.client_title}"


def set_variable(registration: Registration, name: str, value: str, *, at: Place | None = None) -> Repair:
    """Set ``name`` to ``value``: replace the text at ``at`` when it already stands there, else add it."""
    exists = at is not None and at.line is not None
    place = at if at is not None and exists else registration.env_place or registration.place
    verb = "change to" if exists else "add to its environment"
    return Repair(
        prose=f"in {_where(registration, place.line)}, {verb}{_then(registration)}",
        edit=_assignment(registration, name, value),
        place=place,
    )


def remove_variable(registration: Registration, name: str, *, at: Place) -> Repair:
    """Take ``name`` out of the registration."""
    if at.file is None:
        return Repair(prose=f"unset {name}", commands=(f"unset {name}",), place=at)
    return Repair(prose=f"in {at}, remove {name}{_then(registration)}", place=at)


def rename_variable(registration: Registration, name: str, to: str, *, at: Place) -> Repair:
    """Give the variable at ``at`` its right name, the value unchanged."""
    return Repair(prose=f"in {at}, rename {name} to {to}{_then(registration)}", place=at)
