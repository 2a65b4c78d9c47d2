"""Programs and files named by a client, found on this machine the way the client would find them."""

from __future__ import annotations

import os
from pathlib import Path

from cpersona_cli.install.machine import Machine, current_system

#: What a program started from the macOS desktop searches (launchd's default).
_DARWIN_PATH = ("usr/bin", "bin", "usr/sbin", "sbin")
#: What desktop sessions of common Linux distributions search besides ``~/.local/bin``.
_LINUX_PATH = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin", "snap/bin")
_WINDOWS_SUFFIXES = (".exe", ".cmd", ".bat", ".com")


def desktop_path(machine: Machine) -> str:
    """PATH of a program that was started from the desktop and not from a terminal."""
    if machine.system == "windows":
        return machine.env.get("PATH", machine.env.get("Path", ""))
    if machine.system == "darwin":
        return ":".join(str(machine.root / part) for part in _DARWIN_PATH)
    folders = [machine.home / ".local" / "bin", *(machine.root / part for part in _LINUX_PATH)]
    return ":".join(str(folder) for folder in folders)


def usual_places(machine: Machine) -> str:
    """Folders in which installers put uv and scripts, whether or not any PATH has them."""
    if machine.system == "windows":
        return ";".join(str(folder) for folder in (machine.home / ".local" / "bin", machine.home / ".cargo" / "bin"))
    folders = [machine.home / ".local" / "bin", machine.home / ".cargo" / "bin"]
    folders += [machine.root / part for part in ("opt/homebrew/bin", "usr/local/bin", "opt/local/bin")]
    return ":".join(str(folder) for folder in folders)


def readable(machine: Machine) -> bool:
    """Whether paths written for the inspected system can name files of the system this process runs on."""
    return (machine.system == "windows") == (current_system() == "windows")


def is_bare(word: str) -> bool:
    """Whether a program is named without a folder, so that PATH is searched for it."""
    return bool(word) and "/" not in word and "\\" not in word


def which(word: str, path: str, machine: Machine) -> Path | None:
    """The first executable file called ``word`` in the folders of ``path``; None when there is none."""
    separator = ";" if machine.system == "windows" else ":"
    names = [word]
    if machine.system == "windows" and not word.lower().endswith(_WINDOWS_SUFFIXES):
        names = [word + suffix for suffix in _WINDOWS_SUFFIXES]
    for folder in path.split(separator):
        if not folder or "\0" in folder:
            continue
        for name in names:
            found = Path(folder) / name
            if executable(found):
                return found
    return None


def executable(path: Path) -> bool:
    """Whether ``path`` is a file that may be executed."""
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False
