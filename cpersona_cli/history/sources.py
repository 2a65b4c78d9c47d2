"""From the paths a user gives to streams of bytes: files, folders, zip archives and compressed files.

Nothing is unpacked to disk. What an archive claims about itself is bounded before a byte of it is read, and what comes
out of a compressed stream is bounded while it is read.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from cpersona_cli.history import unpack
from cpersona_cli.history.model import HistoryError, Looked, Source
from cpersona_cli.history.unpack import StreamError, unpacked
from cpersona_cli.record import record
from cpersona_cli.text import safe

#: Bounds on archives: entries in one, and bytes of one entry.
MOST_ENTRIES = 100_000
LARGEST_ENTRY = 16 * 2**30

# Why a file is passed over, where others need to know.
READ_ALREADY = "read already"
UNNAMED = "not a JSON file, by its name"

_NAMES = re.compile(r"\.(?:json|jsonl|ndjson|zip)(?:\.(?:gz|zst))?$", re.IGNORECASE)
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")

# What the standard reader of archives raises for one that is damaged, or packed in a way it does not know.
_DAMAGED = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, struct.error)

Open = Callable[[], BinaryIO]


@record(kw_only=True)
class Found:
    """One stream, open while its turn lasts: an archive is closed when the next source is asked for."""

    source: Source
    open: Open


def find(path: Path, seen: set[tuple[int, int]]) -> Iterator[Found | Looked]:
    """The streams at or under ``path``, folders and archives in the order of names.

    In a folder only files whose names promise JSON or an archive of it are taken, links are not followed. What is
    passed over comes as ``Looked`` with the reason, also a file that is in ``seen``; those that come are added to it.
    Raises ``HistoryError`` for a path that is not there or cannot be read.
    """
    try:
        if path.is_dir():
            for found in _folder(path):
                yield from _file(found, seen, given=False) if isinstance(found, Path) else (found,)
        else:
            yield from _file(path, seen, given=True)
    except OSError as error:
        raise HistoryError(f"{path} cannot be read: {error.strerror or error}.") from None


def _folder(folder: Path) -> Iterator[Path | Looked]:
    failed: list[OSError] = []
    for here, folders, files in os.walk(folder, onerror=failed.append):
        for name in sorted(folders):
            if Path(here, name).is_symlink():
                yield _passed(Path(here, name), "a link, not followed")
        folders[:] = sorted(name for name in folders if not Path(here, name).is_symlink())
        for name in sorted(files):
            path = Path(here, name)
            if path.is_symlink():
                yield _passed(path, "a link, not followed")
            elif name.startswith("._") or not _NAMES.search(name):
                yield _passed(path, UNNAMED)
            else:
                yield path
    for error in failed:
        yield _passed(Path(str(error.filename)), f"cannot be read: {error.strerror}", lost=True)


def _passed(path: Path, reason: str, *, lost: bool = False) -> Looked:
    try:
        size = path.lstat().st_size
    except OSError:
        size = 0
    return Looked(where=str(path), size=size, reason=reason, lost=lost)


def _file(path: Path, seen: set[tuple[int, int]], *, given: bool) -> Iterator[Found | Looked]:
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            if given:
                raise HistoryError(f"{path} is neither a file nor a folder: save what it gives to a file first.")
            yield _passed(path, "not a regular file")
            return
        key = (about.st_dev, about.st_ino)
        if key in seen and about.st_ino:
            yield _passed(path, READ_ALREADY)
            return
        seen.add(key)
        with path.open("rb") as stream:
            start = stream.read(4)
    except OSError as error:
        if given:
            raise
        yield _passed(path, f"cannot be read: {error.strerror or error}", lost=True)
        return
    where = str(path)
    if start.startswith(_ZIP):
        yield from _archive(path, about.st_size)
    else:
        source = Source(path=path, where=where, size=about.st_size)
        yield Found(source=source, open=lambda: unpacked(path.open("rb"), about.st_size, where))


def _archive(path: Path, size: int) -> Iterator[Found | Looked]:
    try:
        archive = zipfile.ZipFile(path)
    except (*_DAMAGED, EOFError, OSError) as error:
        # it begins as one, but the table at its end is missing
        cut = isinstance(error, zipfile.BadZipFile) and str(error) == "File is not a zip file"
        what = "its end is missing, as after a download that broke off" if cut else safe(str(error))
        yield Looked(where=str(path), size=size, reason=f"a damaged zip archive: {what}", lost=True)
        return
    with archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        claimed = sum(entry.file_size for entry in entries)
        if len(entries) > MOST_ENTRIES:
            reason = f"an archive of {len(entries):,} files, more than {MOST_ENTRIES:,}"
            yield Looked(where=str(path), size=size, reason=reason, lost=True)
            return
        if claimed > unpack.HARMLESS and claimed > unpack.RATIO * size:
            reason = f"an archive that claims to hold {claimed / max(size, 1):,.0f} times its own size"
            yield Looked(where=str(path), size=size, reason=reason, lost=True)
            return
        for entry in sorted(entries, key=lambda entry: entry.filename):
            where = f"{path}/{safe(entry.filename)}"
            aside = _aside(entry)
            if reason := aside or _shut(entry):
                yield Looked(where=where, size=entry.file_size, reason=reason, lost=not aside)
            else:
                yield Found(
                    source=Source(path=path, where=where, size=entry.file_size, entry=entry.filename),
                    open=_opener(archive, entry, where),
                )


def _aside(entry: zipfile.ZipInfo) -> str:
    """Why an entry is none of the conversations that are looked for; empty if it may be one."""
    name = entry.orig_filename.replace("\\", "/")
    if name.startswith("/") or re.match("[A-Za-z]:", name) or "\0" in name or ".." in name.split("/"):
        return "refused: its name leads out of the archive"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "a link, not followed"
    last = name.rpartition("/")[2]
    if last.startswith("._") or "__MACOSX" in name.split("/") or not _NAMES.search(last):
        return UNNAMED
    return "an archive within an archive, not opened" if last.lower().endswith(".zip") else ""


def _shut(entry: zipfile.ZipInfo) -> str:
    """Why an entry cannot be opened; empty if it can."""
    if entry.flag_bits & 0x1:
        return "encrypted: unpack it with its password and give the folder"
    if entry.file_size > LARGEST_ENTRY:
        return f"refused: {entry.file_size / 2**30:.0f} GiB, more than the {LARGEST_ENTRY // 2**30} GiB one may take"
    if entry.file_size > unpack.HARMLESS and entry.file_size > unpack.RATIO * entry.compress_size:
        return f"refused: it claims to be more than {unpack.RATIO} times its compressed size"
    return ""


def _opener(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, where: str) -> Open:
    def opened() -> BinaryIO:
        try:
            stream = cast("BinaryIO", archive.open(entry))
        except _DAMAGED as error:
            raise StreamError(where, f"cannot be unpacked: {safe(str(error))}") from None
        return unpacked(stream, entry.file_size, where)

    return opened
