"""Fitting text into columns without breaking what people copy."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cpersona_cli.record import record

# Stands for a space that must not become a line break. Text on its way here holds no control characters.
_GLUE = "\x00"
_QUOTED = re.compile(r'`[^`]+`|"[^"]+"|“[^”]+”')
_BREAK = re.compile(r" +")

#: Characters of this tool's own, and what stands for them where a stream cannot carry them.
_PLAIN = {"█": "#", "▒": "+", "░": "-", "▁": "_", "“": '"', "”": '"', "’": "'", "…": "...", "→": "->", "—": "-"}

_CODES = {"bold": "1", "dim": "2", "red": "1;31", "green": "1;32", "yellow": "1;33", "blue": "1;36"}


@record(kw_only=True)
class Style:
    """How a renderer may present a report; one that writes for machines looks at none of it but ``root``.

    ``root`` is the checkout that a CI system works in: files inside are named as seen from there.
    """

    width: int = 80
    color: bool = False
    verbose: int = 0
    quiet: bool = False
    root: str = ""

    def paint(self, text: str, color: str) -> str:
        """``text`` in one of the few colours, or as it is."""
        return f"\x1b[{_CODES[color]}m{text}\x1b[0m" if self.color and text else text


def columns(text: str) -> int:
    """How many terminal columns ``text`` takes: two for each wide East Asian character, none for a combining one."""
    if text.isascii():
        return len(text)
    import unicodedata  # noqa: PLC0415 - most text is ASCII

    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def pad(text: str, width: int) -> str:
    """``text`` with spaces up to ``width`` columns."""
    return text + " " * max(0, width - columns(text))


def wrap(text: str, width: int, whole: Iterable[str] = ()) -> list[str]:
    """Lines of at most ``width`` columns, broken at spaces only.

    A word that is longer stands alone on its line. The texts in ``whole`` (paths with spaces in their names), and
    whatever is quoted and fits on a line, are never broken.
    """
    for unit in whole:
        if " " in unit:
            text = text.replace(unit, unit.replace(" ", _GLUE))
    text = _QUOTED.sub(lambda m: m.group().replace(" ", _GLUE) if columns(m.group()) <= width else m.group(), text)
    lines: list[str] = []
    line, used = "", 0
    for word in _BREAK.split(text.strip()):
        size = columns(word)
        if line and used + 1 + size > width:
            lines.append(line)
            line, used = word, size
        else:
            line, used = (f"{line} {word}", used + 1 + size) if line else (word, size)
    lines.append(line)
    return [line.replace(_GLUE, " ") for line in lines]


def flow(items: Iterable[str], width: int, gap: int = 4) -> list[str]:
    """Items side by side, ``gap`` columns apart, none of them broken."""
    lines: list[str] = []
    for item in items:
        if lines and columns(lines[-1]) + gap + columns(item) <= width:
            lines[-1] += " " * gap + item
        else:
            lines.append(item)
    return lines


def spelled(text: str, encoding: str | None) -> str:
    """``text`` with this tool's own characters put plainly where ``encoding`` has none for them."""
    if text.isascii():
        return text
    lacking = [char for char in _PLAIN if char in text and not _carries(encoding, char)]
    for char in lacking:
        text = text.replace(char, _PLAIN[char])
    return text


def _carries(encoding: str | None, char: str) -> bool:
    try:
        char.encode(encoding or "utf-8")
    except (LookupError, UnicodeError):
        return False
    return True
