"""Reading a text file that somebody else wrote: bounded, forgiving in its encoding, and never an exception."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cpersona_cli.record import record

#: Bytes read of any one file; what is longer is cut there and named.
LIMIT = 4 << 20


@record(kw_only=True)
class Content:
    """A file's text as far as it could be read; ``problem`` is a sentence when something stood in the way."""

    state: Literal["absent", "read", "unreadable"]
    text: str = ""
    size: int = 0
    mtime: float | None = None
    problem: str = ""


def read_bounded(path: Path, limit: int = LIMIT) -> Content:
    """The text of ``path``, UTF-8 with or without a byte order mark, at most ``limit`` bytes. Raises nothing."""
    try:
        status = path.stat()
        if not path.is_file():
            return Content(state="unreadable", problem="this is not a regular file")
        with path.open("rb") as file:
            raw = file.read(limit + 1)
    except FileNotFoundError:
        return Content(state="absent")
    except (OSError, ValueError) as error:
        return Content(state="unreadable", problem=getattr(error, "strerror", None) or "no file can have this name")
    problem = f"longer than {limit} bytes; the rest was not read" if len(raw) > limit else ""
    try:
        text = raw[:limit].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = raw[:limit].decode("utf-8-sig", "replace")
        problem = problem or f"not UTF-8 at byte {error.start}"
    return Content(state="read", text=text, size=status.st_size, mtime=status.st_mtime, problem=problem)


def line_of(text: str, part: str) -> int | None:
    """The one-based line on which ``part`` first stands in ``text``, or None."""
    at = text.find(part) if part else -1
    return None if at < 0 else text.count("\n", 0, at) + 1
