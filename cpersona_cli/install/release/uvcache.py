"""Where uv and pipx keep the server: installed tools, cached environments, cached wheels (uv 0.4 to 0.13).

Layout of uv's cache: ``environments-v2/INTERPRETER/RESOLUTION`` is an environment that ``uvx`` made, and
``wheels-v8/pypi/cpersona/2.6.14-py3-none-any`` a wheel it unpacked; the numbers behind ``-v`` grow with uv's releases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from cpersona_cli.install.machine import Machine
from cpersona_cli.install.release import distributions, locate
from cpersona_cli.install.release.version import key
from cpersona_cli.record import record

_MOST = 2000


@record
class Held:
    """An environment that holds CPersona: its folder, its site-packages, and the distribution."""

    prefix: Path
    site: Path
    server: distributions.Distribution


def tool(env: Mapping[str, str], machine: Machine) -> Held | None:
    """CPersona as installed by ``uv tool install``."""
    chosen = _chosen(env, "UV_TOOL_DIR", machine)
    if chosen:
        folders = [chosen]
    elif machine.system == "windows":
        folders = [machine.roaming / "uv" / "data" / "tools", machine.roaming / "uv" / "tools"]
    else:
        folders = [_xdg(env, "XDG_DATA_HOME", machine.home / ".local" / "share", machine) / "uv" / "tools"]
    for folder in folders:
        held = _held(folder / "cpersona", machine)
        if held:
            return held
    return None


def cache_folder(env: Mapping[str, str], machine: Machine) -> Path:
    """Uv's cache, as far as its environment and defaults tell."""
    chosen = _chosen(env, "UV_CACHE_DIR", machine)
    if chosen:
        return chosen
    if machine.system == "windows":
        return machine.local / "uv" / "cache"
    return _xdg(env, "XDG_CACHE_HOME", machine.home / ".cache", machine) / "uv"


def environments(cache: Path, machine: Machine) -> tuple[Held, ...]:
    """Environments of ``uvx`` that hold CPersona, the highest release first."""
    found = []
    for parent in _folders(cache, "environments-v*"):
        prefixes = [prefix for group in _folders(parent, "*") for prefix in (group, *_folders(group, "*"))]
        for prefix in prefixes[:_MOST]:
            held = _held(prefix, machine)
            if held:
                found.append(held)
    return tuple(sorted(found, key=lambda held: key(held.server.release) or ((0,), (0, 0), 0, 0), reverse=True))


def wheels(cache: Path) -> tuple[str, ...]:
    """Releases of CPersona whose wheels are in the cache, the highest first."""
    releases = set()
    for parent in _folders(cache, "wheels-v*"):
        for folder in (parent / "pypi" / "cpersona", *_folders(parent / "index", "*/cpersona")):
            for name in _names(folder):
                match = re.match(r"^(?:cpersona-)?(\d[^-]*)-py3-none-any$", name)
                if match and key(match.group(1)) is not None:
                    releases.add(match.group(1))
    return tuple(sorted(releases, key=lambda release: key(release) or ((0,), (0, 0), 0, 0), reverse=True))


def pipx_environments(env: Mapping[str, str], machine: Machine) -> tuple[Held, ...]:
    """Temporary environments of ``pipx run`` that hold CPersona."""
    homes = [machine.home / ".local" / "share" / "pipx", machine.home / ".local" / "pipx"]
    if machine.system == "darwin":
        homes.insert(0, machine.home / "Library" / "Application Support" / "pipx")
    if machine.system == "windows":
        homes = [machine.local / "pipx" / "pipx", machine.home / "pipx"]
    chosen = _chosen(env, "PIPX_HOME", machine)
    places = [home / ".cache" for home in ([chosen] if chosen else homes)]
    places.append(_xdg(env, "XDG_CACHE_HOME", machine.home / ".cache", machine) / "pipx")
    found = [_held(prefix, machine) for place in places for prefix in _folders(place, "*")]
    return tuple(held for held in found if held)


def _held(prefix: Path, machine: Machine) -> Held | None:
    site = distributions.venv_site(prefix, machine)
    server = distributions.server(site) if site else None
    return Held(prefix, site, server) if site and server else None


def _chosen(env: Mapping[str, str], name: str, machine: Machine) -> Path | None:
    text = env.get(name, "")
    return machine.cwd / text if text and "\0" not in text and locate.readable(machine) else None


def _xdg(env: Mapping[str, str], name: str, default: Path, machine: Machine) -> Path:
    text = env.get(name, "")
    return Path(text) if text.startswith("/") and machine.system != "windows" else default


def _folders(parent: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path for path in parent.glob(pattern) if path.is_dir())
    except (OSError, ValueError):
        return []


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except (OSError, ValueError):
        return []
