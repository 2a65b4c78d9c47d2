"""A database's path as the file system sees it: what stands there, what stands beside it, who may write."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from cpersona_cli.record import record
from cpersona_cli.store.reading import State

#: SQLite's own files; it follows links before it names them.
LOGS = ("-wal", "-shm", "-journal")
#: What the server (2.4 to 2.6.14) keeps beside its database, named after the path as it was given.
SIDECARS = (
    ".calibration.json",
    ".calibration.json.lock",
    ".memories.vecindex",
    ".episodes.vecindex",
    ".memories.coarseindex",
    ".blocks.blockindex",
)
LEDGER = "alias_ledger.json"

#: Names looked at in the database's folder when searching for copies.
_LISTED = 10_000

#: Bytes of the longest absolute path SQLite opens outside Windows: 512 with the longest suffix (os_unix.c).
_LONGEST = 504

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


@record
class Standing:
    """What stands at a path: ``state`` is ``ok`` for a regular file, whose ``status`` is set; else why not."""

    state: State
    detail: str = ""
    status: os.stat_result | None = None


def standing(path: Path) -> Standing:
    """Look at ``path`` without opening it; links are followed. Raises nothing."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        return _absent(path, error)
    if stat.S_ISDIR(status.st_mode):
        return Standing(State.IS_FOLDER, "this is a folder; the path must name the database file in it")
    if not stat.S_ISREG(status.st_mode):
        kind = next((words for test, words in _KINDS if test(status.st_mode)), "a special file")
        return Standing(State.UNREADABLE, f"this is {kind}, not a regular file; it was not opened")
    length = len(os.fsencode(real_path(path)))
    if os.name != "nt" and length > _LONGEST:
        return Standing(State.NAME_TOO_LONG, f"the whole path has {length} bytes, and SQLite opens at most {_LONGEST}")
    return Standing(State.OK, status=status)


def _absent(path: Path, error: OSError | ValueError) -> Standing:
    if not isinstance(error, OSError):
        words = "a NUL character" if "\0" in str(path) else "characters no file name can hold"
        return Standing(State.UNREADABLE, f"the path holds {words}")
    if error.errno == errno.ENAMETOOLONG:
        longest = max((len(os.fsencode(part)) for part in path.parts), default=0)
        return Standing(State.NAME_TOO_LONG, f"the name is longer than the system allows ({longest} bytes)")
    if error.errno == errno.ELOOP:
        return Standing(State.UNREADABLE, "symbolic links on the way to it go in a circle")
    if error.errno in {errno.EACCES, errno.EPERM}:
        return Standing(State.NO_PERMISSION, "a folder on the way to it may not be entered by this user")
    if error.errno == errno.ENOTDIR:
        blocker = next((p for p in path.parents if os.path.lexists(p) and not _is_folder(p)), path.parent)
        return Standing(State.NO_FOLDER, f"{blocker} is a file, not a folder")
    if error.errno == errno.ENOENT:
        return _missing(path)
    return Standing(State.UNREADABLE, f"the system says: {error.strerror}")


def _missing(path: Path) -> Standing:
    if path.is_symlink():
        return Standing(State.MISSING, f"a symbolic link to {_target(path)}, which does not exist")
    folder = path.parent
    if _is_folder(folder):
        return Standing(State.MISSING, "no such file; its folder exists")
    if folder.is_symlink():
        return Standing(State.NO_FOLDER, f"its folder is a symbolic link to {_target(folder)}, which does not exist")
    return Standing(State.NO_FOLDER, f"its folder {folder} does not exist")


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return "a place that cannot be read"


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def existing_folder(path: Path) -> Path | None:
    """The folder of ``path``, or the nearest one above that exists."""
    for folder in path.absolute().parents:
        if _is_folder(folder):
            return folder
    return None


def may_write(path: Path) -> bool:
    """Whether this user may write to a file, or create files in a folder; read-only media count as no."""
    wanted = os.W_OK | os.X_OK if path.is_dir() else os.W_OK
    return os.access(path, wanted, effective_ids=os.access in os.supports_effective_ids)


def free_bytes(folder: Path) -> int | None:
    """Bytes this user may still write to the disk of ``folder``, or None where the system does not tell."""
    try:
        return shutil.disk_usage(folder).free
    except (OSError, ValueError):
        return None


def size_of(path: Path) -> int | None:
    """Size in bytes of what stands at ``path``, or None where nothing does or it cannot be told."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return None


def sibling(path: Path, suffix: str) -> Path:
    """The file whose name is that of ``path`` with ``suffix`` appended."""
    return path.with_name(path.name + suffix)


def real_path(path: Path) -> Path:
    """``path`` with links followed, or only made absolute where they lead nowhere."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path.absolute()


def beside(path: Path) -> dict[str, int]:
    """Sizes in bytes of what SQLite or the server keep beside ``path``, by suffix; the alias ledger by its name."""
    real = real_path(path)
    places = {suffix: sibling(real, suffix) for suffix in LOGS}
    places |= {suffix: sibling(path, suffix) for suffix in SIDECARS} | {LEDGER: path.with_name(LEDGER)}
    sizes = {name: size_of(place) for name, place in places.items()}
    return {name: size for name, size in sizes.items() if size is not None}


def names_in(folder: Path) -> Iterator[str]:
    """File names in ``folder``, at most 10,000; none where it may not be listed."""
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(_LISTED), entries, strict=False):
                yield entry.name
    except OSError:
        return
