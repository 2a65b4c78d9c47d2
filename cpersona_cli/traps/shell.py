"""Commands to copy and paste, quoted for the shell of the inspected system."""

from __future__ import annotations

from pathlib import Path

from cpersona_cli.install.machine import Machine
from cpersona_cli.text import quoted
from cpersona_cli.traps.model import Target


def word(text: str | Path, machine: Machine) -> str:
    """One argument: POSIX quoting, or double quotes where the system is Windows."""
    plain = str(text)
    if machine.system != "windows":
        return quoted(plain)
    return f'"{plain}"' if not plain or set(plain) & set(" &()^%!;,=") else plain


def move(source: str | Path, target: str | Path, machine: Machine) -> str:
    """Rename a file."""
    return f"{'move' if machine.system == 'windows' else 'mv'} {word(source, machine)} {word(target, machine)}"


def copy(source: str | Path, target: str | Path, machine: Machine) -> str:
    """Copy a file with its times and modes."""
    return f"{'copy' if machine.system == 'windows' else 'cp -p'} {word(source, machine)} {word(target, machine)}"


def tool(subcommand: str, path: Path, machine: Machine, *options: str) -> tuple[str, ...]:
    """A command of this tool on one database (``reembed``, ``backfill repair``)."""
    return (" ".join(("cpersona-cli", subcommand, "--db", word(path, machine), *options)),)


def registration(target: Target, machine: Machine) -> tuple[str, ...]:
    """The options that choose this registration among those that open the same database with other endpoints."""
    place = target.registration.place
    if place.file is None:
        return ("--env",)
    return ("--registration", word(f"{place.file}:{target.registration.name}", machine))
