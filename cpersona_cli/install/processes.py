"""Live servers: who has a database open, and since when.

Linux tells through ``/proc``, macOS and the BSDs through ``lsof`` and ``ps``; Windows does not tell without a helper.
A process of another user shows neither its files nor its environment. Nothing is ever signalled or ended here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cpersona_cli.install.launch.understand import understand
from cpersona_cli.install.machine import Machine, current_system
from cpersona_cli.install.model import LaunchKind, Process
from cpersona_cli.install.settings.unknown import OWN_PREFIX

#: Seconds an outside program (lsof, ps) gets.
LIMIT = 2.0
_SUFFIXES = ("", "-wal", "-shm")
_OURS = ("CPERSONA_", "EMBEDDING_")


def holders(path: Path, *, proc: Path = Path("/proc")) -> tuple[Process, ...] | None:
    """Processes that have the database at ``path`` open, this one excepted; None where the system does not tell.

    None also when no holder is visible but a server runs whose open files are hidden from this user.
    """
    system = current_system()
    if system == "linux":
        return _holders_by_proc(path, proc) if proc.is_dir() else None
    return None if system == "windows" else _holders_by_lsof(path)


def _pids(proc: Path) -> Iterator[int]:
    try:
        names = os.listdir(proc)  # noqa: PTH208 - thousands of entries, of which texts are enough
    except OSError:
        return
    for name in sorted(names):
        if name.isdigit() and int(name) != os.getpid():
            yield int(name)


def _holders_by_proc(path: Path, proc: Path) -> tuple[Process, ...] | None:
    wanted = {identity for suffix in _SUFFIXES if (identity := _identity(f"{path}{suffix}"))}
    names = {f"{path.name}{suffix}" for suffix in _SUFFIXES}
    found = []
    hidden = False
    for pid in _pids(proc):
        opened = _opened(proc / str(pid) / "fd")
        if opened is None:
            hidden = hidden or _is_server(_command(pid, proc))
        elif any(_same(link, names, wanted) for link in opened):
            found.append(_process(pid, proc))
    return None if hidden and not found else tuple(found)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - called for every candidate descriptor
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _opened(folder: Path) -> list[tuple[str, str]] | None:
    """The open files of a process as (descriptor path, name); None when they are hidden."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except PermissionError:
        return None
    except OSError:
        return []
    links = []
    for name in names:
        link = f"{folder}/{name}"
        try:
            links.append((link, os.readlink(link)))  # noqa: PTH115
        except OSError:
            continue
    return links


def _same(link: tuple[str, str], names: set[str], wanted: set[tuple[int, int]]) -> bool:
    """Whether a descriptor is one of the wanted files.

    Only those of the same name are looked at: a server in a container has the file under another folder, and the
    device and inode still tell.
    """
    return link[1].rsplit("/", 1)[-1] in names and _identity(link[0]) in wanted


def _command(pid: int, proc: Path) -> list[str]:
    try:
        raw = (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return []
    return [word.decode("utf-8", "replace") for word in raw.rstrip(b"\0").split(b"\0")] if raw else []


def _is_server(words: list[str]) -> bool:
    if not any("cpersona" in word for word in words):
        return False
    machine = Machine(system="linux", home=Path("/"), cwd=Path("/"))
    launch = understand(words[0], words[1:], machine)
    direct = launch.kind in {LaunchKind.SCRIPT, LaunchKind.MODULE} and launch.program == words[0]
    return direct and launch.package == "cpersona"


def _process(pid: int, proc: Path) -> Process:
    return Process(
        pid=pid,
        command=" ".join(_command(pid, proc)),
        started=_started(pid, proc),
        environment=_environment(pid, proc),
    )


def _started(pid: int, proc: Path) -> float | None:
    """When a process began: ticks since the boot, and the boot's own time."""
    try:
        fields = (proc / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        boot = re.search(r"^btime (\d+)$", (proc / "stat").read_text("utf-8", "replace"), re.MULTILINE)
        return int(boot.group(1)) + int(fields[19]) / os.sysconf("SC_CLK_TCK") if boot else None
    except (OSError, ValueError, IndexError):
        return None


def _environment(pid: int, proc: Path) -> Mapping[str, str] | None:
    try:
        raw = (proc / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    pairs = (entry.decode("utf-8", "surrogateescape").partition("=") for entry in raw.split(b"\0") if entry)
    return {name: text for name, _, text in pairs if name.startswith(_OURS) and not name.startswith(OWN_PREFIX)}


def _holders_by_lsof(path: Path) -> tuple[Process, ...] | None:
    existing = [f"{path}{suffix}" for suffix in _SUFFIXES if os.path.lexists(f"{path}{suffix}")]
    if not existing:
        return ()
    told = _run(["lsof", "-w", "-Fp", "--", *existing])
    if told is None:
        return None
    pids = [int(line[1:]) for line in told.splitlines() if re.fullmatch(r"p\d+", line)]
    pids = [pid for pid in dict.fromkeys(pids) if pid != os.getpid()]
    if not pids:
        return ()
    listed = _run(["ps", "-ww", "-o", "pid=,etime=,command=", "-p", ",".join(map(str, pids))])
    known = {found.pid: found for found in _from_ps(listed or "")}
    return tuple(known.get(pid, Process(pid=pid)) for pid in pids)


def _run(command: list[str]) -> str | None:
    """What an outside program prints, also when it ends with a complaint; None when it is missing or too slow."""
    import subprocess  # noqa: PLC0415 - only where /proc is not there

    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT, check=False)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace")


def _from_ps(text: str) -> Iterable[Process]:
    """Lines of ``ps -o pid=,etime=,command=``; ``etime`` is ``[[days-]hours:]minutes:seconds``."""
    import time  # noqa: PLC0415

    now = time.time()
    for line in text.splitlines():
        match = re.match(r"^\s*(\d+)\s+(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)\s+(.*)$", line)
        if match and int(match.group(1)) != os.getpid():
            days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:5])
            age = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
            yield Process(pid=int(match.group(1)), command=match.group(6), started=now - age)
