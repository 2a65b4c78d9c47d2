"""Reading a client's file: every encoding, every kind of damage, and never a change to it."""

from __future__ import annotations

import codecs
import os
import stat
from bisect import bisect_right
from pathlib import Path
from typing import Literal

from cpersona_cli.install.files import jsonc, toml
from cpersona_cli.install.files.tree import Fault, Flavour, Node
from cpersona_cli.install.model import Place, Problem, ProblemKind
from cpersona_cli.record import record, replace
from cpersona_cli.text import plural

#: A larger file is no client's settings, and is not read. Bytes.
LARGEST = 128 * 1024 * 1024

State = Literal["absent", "read", "broken", "unreadable"]

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16 (little-endian)"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16 (big-endian)"),
)
_SAVE = "save the file as UTF-8 without a byte order mark"


@record
class Document:
    """One file as read.

    ``root`` is as much of the tree as could be read (None: nothing). ``state`` is ``absent`` when there is no such
    file, ``unreadable`` when its bytes could not be had, ``broken`` when its owner will not accept it, else ``read``.
    """

    path: Path
    flavour: Flavour
    state: State
    root: Node | None = None
    problems: tuple[Problem, ...] = ()
    text: str = ""
    mtime: float | None = None  # Unix time in seconds
    _lines: tuple[int, ...] = (0,)

    def at(self, offset: int) -> Place:
        """The one-based line and column of a character offset."""
        line = bisect_right(self._lines, offset)
        return Place(self.path, line, offset - self._lines[line - 1] + 1)

    def place(self, node: Node) -> Place:
        """Where a value stands: its key, or the value itself when it has none."""
        return self.at(node.key_at)


def read(path: Path, flavour: Flavour) -> Document:
    """Read ``path``. Never raises, never blocks on anything but the disk, never writes."""
    data, mtime = _bytes(path)
    if data is None:
        return Document(path, flavour, "absent")
    if isinstance(data, Problem):
        return Document(path, flavour, "unreadable", problems=(data,), mtime=mtime)
    text, faults = _decode(data, flavour)
    root: Node | None = None
    if data and not data.strip(b"\0 \t\r\n"):
        faults = []  # NUL bytes alone are emptiness too, however it came about
    if text.strip():
        root, more = toml.parse(text) if flavour == "toml" else jsonc.parse(text, flavour)
        faults += more
        if root is not None and not isinstance(root.value, dict):
            faults.append(Fault(ProblemKind.SHAPE, root.at, f"the file holds one {root.shape}, not an object"))
    elif flavour != "toml":  # an empty TOML file is a valid one
        size = f"{len(data)} bytes of white space" if data else "0 bytes"
        if b"\0" in data:
            size = f"{plural(data.count(0), 'NUL byte')}, as after a crash while it was written"
        advice = "restore it from a backup, or let the client write it anew"
        faults.append(Fault(ProblemKind.EMPTY, 0, f"the file is empty ({size})", flavour != "jsonc", advice))
    state: State = "broken" if any(fault.fatal for fault in faults) else "read"
    document = Document(path, flavour, state, root, (), text, mtime, tuple(_line_starts(text)))
    return replace(
        document, problems=tuple(Problem(f.kind, document.at(f.at), f.detail, f.fatal, f.advice) for f in faults)
    )


def _line_starts(text: str) -> list[int]:
    starts, at = [0], text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts


def _bytes(path: Path) -> tuple[bytes | Problem | None, float | None]:
    """The bytes of an ordinary file (None: it does not exist; or what stands in the way) and when it was changed."""
    mtime: float | None = None
    try:
        info = path.stat()
        mtime = info.st_mtime
        if not stat.S_ISREG(info.st_mode):
            return _unreadable(path, f"this is {_kind(info.st_mode)}, not a file"), mtime
        if info.st_size > LARGEST:
            detail = f"the file is {info.st_size:,} bytes large; more than {LARGEST:,} are not read"
            return _unreadable(path, detail, "make it smaller: what fills it is no settings"), mtime
        # Should a pipe have taken the file's place in between, opening it does not wait for a writer.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123
            return file.read(LARGEST), mtime
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            return _unreadable(path, f"this is a symbolic link to {path.readlink()}, which does not exist"), mtime
        return None, None
    except PermissionError:
        return _unreadable(
            path, "this user may not read it", "give yourself read permission, or run as its owner"
        ), mtime
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return _unreadable(path, f"it cannot be read: {reason}"), mtime


def _unreadable(path: Path, detail: str, advice: str = "") -> Problem:
    return Problem(ProblemKind.UNREADABLE, Place(path), detail, fatal=True, advice=advice)


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def _decode(data: bytes, flavour: Flavour) -> tuple[str, list[Fault]]:
    """The text of a file and what its encoding does to its owner."""
    for mark, codec, name in _WIDE:
        if data.startswith(mark):
            text = data[len(mark) :].decode(codec, "replace")
            detail = f"the file is encoded as {name}; the client expects UTF-8 and cannot read it"
            return text.replace("\0", " "), [Fault(ProblemKind.UTF16, 0, detail, advice=_SAVE)]
    faults: list[Fault] = []
    if data.startswith(codecs.BOM_UTF8):
        data = data[3:]
        detail = "the file begins with a byte order mark (EF BB BF), which some programs do not accept"
        faults.append(Fault(ProblemKind.BOM, 0, detail, flavour == "toml", _SAVE))
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        at = len(data[: error.start].decode(errors="replace"))
        detail = f"the file is not UTF-8: byte {data[error.start]:02X} cannot stand here"
        # Clients written in JavaScript put U+FFFD in its place and read on; a TOML reader refuses.
        faults.append(Fault(ProblemKind.NOT_UTF8, at, detail, flavour == "toml", _SAVE))
    if "\0" in text:
        wide = _hidden_wide(data)
        if wide:
            detail = "the file is encoded as UTF-16 without a byte order mark; the client cannot read it"
            return data.decode(wide, "replace").replace("\0", " "), [Fault(ProblemKind.UTF16, 0, detail, advice=_SAVE)]
        count = plural(text.count("\0"), "NUL byte")
        detail = f"{count} in the file, as after a crash while it was written"
        faults.append(Fault(ProblemKind.SYNTAX, text.index("\0"), detail, advice="restore it from a backup"))
        text = text.replace("\0", " ")
    return text, faults


def _hidden_wide(data: bytes) -> str:
    """The codec of a UTF-16 text without its mark: every second byte of mostly Latin text is zero."""
    head = data[:64]
    if len(head) >= 4 and head[1::2].count(0) == len(head) // 2 and 0 not in head[::2]:
        return "utf-16-le"
    if len(head) >= 4 and head[::2].count(0) == (len(head) + 1) // 2 and 0 not in head[1::2]:
        return "utf-16-be"
    return ""
