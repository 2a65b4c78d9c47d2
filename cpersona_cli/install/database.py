"""Which file of this machine a server would open as its database.

The server hands its text to SQLite as it stands: ``~``, ``$HOME``, quotes and ``file:`` are parts of a file name, a
relative one starts from the folder the process runs in.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath, PureWindowsPath

from cpersona_cli.install.environment import folder
from cpersona_cli.install.expand import context, expand
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import DatabasePath, Launch, LaunchKind, Registration
from cpersona_cli.install.release import locate
from cpersona_cli.install.settings.effective import Effective


def database_path(registration: Registration, setting: Effective, machine: Machine) -> DatabasePath:
    """The file that ``setting`` (CPERSONA_DB_PATH) means for this registration; ``path`` None and ``why`` if untold."""
    launch = registration.launch
    text = "" if setting.value is None else str(setting.value)
    path, why = None, ""
    if launch.kind in {LaunchKind.REMOTE, LaunchKind.PROXY} or (registration.url and not registration.command):
        why = "the registration points at a server elsewhere, which has its own database"
    elif setting.unresolved:
        why = setting.unresolved
    elif "\0" in text:
        why = "the path holds a NUL character, which no file name can"
    elif text == ":memory:":
        why = "`:memory:` is no file: everything is lost when the server ends"
    elif launch.inside == "container":
        path, why = _in_container(text, registration, machine)
    elif launch.inside == "wsl":
        path, why = _in_wsl(text, launch, machine)
    else:
        path, why = _on_host(text, registration, machine)
    return DatabasePath(text=text, place=setting.place, path=path, why=why)


def _on_host(text: str, registration: Registration, machine: Machine) -> tuple[Path | None, str]:
    if machine.pure(text).is_absolute():
        if not locate.readable(machine):
            return None, f"{text} is a path of another system than this one"
        return Path(text), ""
    base = _start(registration, machine)
    if base is None:
        title = registration.client_title or "the client"
        return None, f"{text!r} is relative, and the folder in which {title} starts the server is not fixed"
    return base / text, ""


def _start(registration: Registration, machine: Machine) -> Path | None:
    """The folder the server itself starts in: where the client starts the command, and what the words change to."""
    base = folder(registration, machine)
    moved = registration.launch.cwd
    if not moved:
        return base
    text, unresolved = expand(moved, context(registration, machine, machine.env.get))
    if text.startswith(("~/", "$HOME/")) or text in {"~", "$HOME"}:
        return machine.home / text.removeprefix("~").removeprefix("$HOME").lstrip("/")
    if unresolved or not locate.readable(machine):
        return None
    if machine.pure(text).is_absolute():
        return Path(text)
    return base / text if base else None


def _in_container(text: str, registration: Registration, machine: Machine) -> tuple[Path | None, str]:
    launch = registration.launch
    if launch.unclear and not launch.mounts and not launch.image:
        return None, launch.unclear[0]
    inner = PurePosixPath(launch.cwd or "/home/cpersona") / text
    fitting = []
    for source, target in launch.mounts:
        where = PurePosixPath(target)
        if inner == where or where in inner.parents:
            fitting.append((len(where.parts), source, inner.relative_to(where)))
    if not fitting:
        return None, f"{inner} lies inside the container, in no mount: it is lost with the container"
    _, source, rest = max(fitting, key=lambda found: found[0])
    source, unresolved = expand(source, context(registration, machine, machine.env.get))
    if unresolved:
        return None, unresolved
    named = re.fullmatch(r"[A-Za-z0-9][\w.-]*", source)
    if named:
        return None, f"{inner} lies in the named volume {source!r}, which only the container engine opens"
    if source.startswith("~") and launch.kind is LaunchKind.COMPOSE:
        source = str(machine.home) + source[1:]
    if not locate.readable(machine):
        return None, f"{source} is a path of another system than this one"
    if machine.pure(source).is_absolute():
        return Path(source) / rest, ""
    base = folder(registration, machine)
    if base is None:
        return None, f"the mounted folder {source!r} is relative, and where the client starts the command is not fixed"
    return base / source / rest, ""


def _in_wsl(text: str, launch: Launch, machine: Machine) -> tuple[Path | None, str]:
    """A path inside a distribution: a drive of Windows under ``/mnt``, else the distribution's own share."""
    if not text.startswith("/"):
        start = launch.cwd if launch.cwd.startswith("/") else ""
        if not start:
            return None, f"{text!r} is relative to the folder in which WSL starts the server, which is not fixed"
        text = f"{start.rstrip('/')}/{text}"
    if machine.system == "linux":
        return Path(text), ""
    drive = re.match(r"^/mnt/([a-z])/(.*)$", text)
    if drive:
        full = PureWindowsPath(f"{drive.group(1).upper()}:\\") / drive.group(2)
    else:
        name = _distribution(launch)
        if not name:
            return None, f"{text} lies inside the default WSL distribution, whose name is not in the command"
        full = PureWindowsPath(rf"\\wsl.localhost\{name}") / text.lstrip("/")
    return (Path(full), "") if locate.readable(machine) else (None, f"{full} is a path of another system than this one")


def _distribution(launch: Launch) -> str:
    for index, word in enumerate(launch.words[:-1]):
        if word in {"-d", "--distribution"}:
            return launch.words[index + 1]
    return ""
