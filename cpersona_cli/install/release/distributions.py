"""What is installed in a Python environment, read from its files: nothing is imported and nothing is run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from cpersona_cli.install.launch.requirement import normal
from cpersona_cli.install.machine import Machine
from cpersona_cli.record import record

#: Distributions beside the server that decide something about it.
BESIDE = ("mcp", "cembedding", "cpersona-cli", "socksio", "httpx", "numpy", "aiosqlite")
_HEAD = 16 * 1024


@record
class Distribution:
    """One installed distribution: its release as its metadata states it, and its ``.dist-info`` folder."""

    name: str
    release: str
    folder: Path

    @property
    def installed(self) -> float | None:
        """When its files were written, Unix time in seconds."""
        try:
            return self.folder.stat().st_mtime
        except OSError:
            return None


def installed(site: Path) -> dict[str, Distribution]:
    """Every distribution of a site-packages folder by its normal name; empty when it cannot be listed."""
    found = {}
    try:
        names = sorted(os.listdir(site))  # noqa: PTH208 - texts are all that is needed, of some hundred entries
    except (OSError, ValueError):
        return {}
    for name in names:
        match = re.match(r"^(.+)-([^-]+)\.dist-info$", name)
        if match and normal(match.group(1)) not in found:
            found[normal(match.group(1))] = Distribution(normal(match.group(1)), match.group(2), site / name)
    return found


def server(site: Path, listed: Mapping[str, Distribution] | None = None) -> Distribution | None:
    """The CPersona of a site-packages folder, its release taken from its METADATA; None when there is none."""
    found = (installed(site) if listed is None else listed).get("cpersona")
    if found is None:
        return None
    stated = _stated(found.folder / "METADATA")
    return Distribution(found.name, stated, found.folder) if stated else None


def beside(listed: Mapping[str, Distribution]) -> dict[str, str]:
    """Releases of the other distributions that matter."""
    return {name: listed[name].release for name in BESIDE if name in listed}


def _stated(metadata: Path) -> str:
    try:
        with metadata.open("rb") as stream:
            head = stream.read(_HEAD).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
    match = re.search(r"^Version:[ \t]*(\S+)", head.split("\n\n", 1)[0], re.MULTILINE)
    return match.group(1) if match else ""


def script_owner(listed: Mapping[str, Distribution], script: Path) -> str:
    """The distribution whose installation wrote ``script`` (its bin/cpersona) last; empty when none is recorded.

    Two distributions may claim one script; each RECORD has the checksum of its own, and the file has one content.
    """
    claims = {}
    for name, found in listed.items():
        if not (found.folder / "entry_points.txt").is_file():
            continue
        recorded = _recorded(found.folder / "RECORD", script.name)
        if recorded is not None:
            claims[name] = recorded
    if len(claims) < 2:
        return next(iter(claims), "")
    actual = _digest(script)
    return next((name for name, recorded in claims.items() if recorded == actual), "")


def _recorded(record: Path, script: str) -> str | None:
    """The checksum a RECORD has of a script in the environment's bin or Scripts folder; None when it has none."""
    try:
        text = record.read_bytes().decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    match = re.search(
        rf'^"?\.\./(?:[^,\n]*/)?(?:bin|Scripts)/{re.escape(script)}"?,(?:sha256=([^,\s]*))?', text, re.MULTILINE
    )
    return (match.group(1) or "") if match else None


def _digest(path: Path) -> str:
    import base64  # noqa: PLC0415 - only where two distributions claim one script
    import hashlib  # noqa: PLC0415

    try:
        return base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode().rstrip("=")
    except (OSError, ValueError):
        return "unreadable"


def venv_site(prefix: Path, machine: Machine) -> Path | None:
    """The site-packages folder of the virtual environment in ``prefix``; None when that is none."""
    try:
        text = (prefix / "pyvenv.cfg").read_text("utf-8", "replace")
    except (OSError, ValueError):
        return None
    if machine.system == "windows":
        return prefix / "Lib" / "site-packages"
    match = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+)", text, re.MULTILINE)
    if match and (stated := prefix / "lib" / f"python{match.group(1)}" / "site-packages").is_dir():
        return stated
    folders = sorted((prefix / "lib").glob("python3*/site-packages"))
    return folders[-1] if folders else None


def venv_python(prefix: Path, machine: Machine) -> Path:
    """The interpreter of the virtual environment in ``prefix``."""
    return prefix / "Scripts" / "python.exe" if machine.system == "windows" else prefix / "bin" / "python"
