"""Where a database may lie whose configured path the server takes in another way than its owner meant it."""

from __future__ import annotations

import re
from pathlib import Path

from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Registration
from cpersona_cli.install.settings.effective import Effective

#: Where the server puts its database when no path is configured, below the folder it is started in.
DEFAULT_TEXT = "data/cpersona.db"

_LIMIT = 24
#: How people write their home folder, at the start of a path.
HOME_WORDS = re.compile(
    r"^(?:~|\$HOME|\$\{HOME\}|\$\{userHome\}|%USERPROFILE%|%HOMEDRIVE%%HOMEPATH%)(?=$|[/\\])", re.IGNORECASE
)


def candidates(registration: Registration, setting: Effective, machine: Machine) -> tuple[Path, ...]:
    """Paths at which the database of ``registration`` may be found, the likeliest first; none is looked at here.

    A path that is absolute and taken literally has no candidates, neither has one of a container. A relative one
    (or none at all) is tried below every folder a client may start the server in; ``~`` and ``$HOME`` are tried both
    expanded, as meant, and as the literal folder name that the server makes of them.
    """
    text = (setting.text or DEFAULT_TEXT).strip().strip("\"'")
    if registration.launch.inside != "host" or "\0" in text or text.startswith((":memory:", "file:")):
        return ()
    if not HOME_WORDS.match(text) and machine.pure(text).is_absolute():
        return ()
    expanded = HOME_WORDS.sub(lambda _: str(machine.home), text)
    found = [Path(expanded)] if expanded != text else []
    found += [folder / text for folder in _folders(registration, machine)]
    if not setting.given:
        # What people write when they do give a path, in the server's own documents.
        found.append(machine.home / ".claude" / "cpersona.db")
    return tuple(dict.fromkeys(found))[:_LIMIT]


def _folders(registration: Registration, machine: Machine) -> list[Path]:
    """Folders a server may be started in."""
    named = [Path(registration.cwd)] if registration.cwd and Path(registration.cwd).is_absolute() else []
    project = [registration.project] if registration.project is not None else []
    system = machine.root / "Windows" / "System32" if machine.system == "windows" else machine.root
    return [*named, *project, machine.cwd, machine.home, machine.home / ".claude", system]
