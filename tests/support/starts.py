"""Registrations as they come out of a client's file, built from a command line and an env block."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cpersona_cli.install.clients.table import CLIENTS
from cpersona_cli.install.launch.understand import understand
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Place, Registration, Variable

FILE = Path("/client/file.json")


def registered(
    machine: Machine, client: str, *words: str, env: Mapping[str, Any] | None = None, **fields: Any
) -> Registration:
    """An entry of ``client`` that starts ``words``; the env block stands from line 11 on, the entry on line 7."""
    known = CLIENTS.get(client)
    command, args = (words[0], words[1:]) if words else ("", ())
    fields.setdefault("scope", "user")
    return Registration(
        client=client,
        client_title=known.title if known else "",
        name="memory",
        place=Place(FILE, 7),
        command=command,
        args=tuple(args),
        variables=tuple(
            Variable(name, raw, Place(FILE, line)) for line, (name, raw) in enumerate((env or {}).items(), 11)
        ),
        launch=understand(command, args, machine, fields.get("project") or machine.cwd, url=fields.get("url", "")),
        **fields,
    )
