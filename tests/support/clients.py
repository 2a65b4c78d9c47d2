"""A scratch machine of any platform, and client files on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Registration, System


def machine(
    root: Path, system: System = "linux", *, cwd: str = "work", env: Mapping[str, str] | None = None
) -> Machine:
    """A machine whose ``/`` is ``root``: home ``root/home``, working directory ``root/home/<cwd>``."""
    home = root / "home"
    (home / cwd).mkdir(parents=True, exist_ok=True)
    return Machine(system=system, home=home, cwd=home / cwd, env=dict(env or {}), root=root)


def server(database: str = "/srv/memory.db", **more: object) -> dict[str, object]:
    """An entry that starts CPersona through uvx."""
    return {"command": "uvx", "args": ["cpersona"], "env": {"CPERSONA_DB_PATH": database}, **more}


def write(path: Path, content: object) -> Path:
    """``content`` as JSON, or as it stands when it is text, in a file whose folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8")
    return path


def database(registration: Registration) -> object:
    """What the env block says of the database path; None when it says nothing."""
    found = {variable.name: variable.raw for variable in registration.variables}
    return found.get("CPERSONA_DB_PATH")
