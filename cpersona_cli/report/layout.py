"""Fitting text into columns without breaking what people copy."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cpersona_cli.record import record

# Stands for a space that must not become a line break. Text on its way here holds no control characters.
_GLUE = "\x00"
_QUOTED = re.compile(r'`[^`]+`|"[^"]+"|“[^”]+”')
_BREAK = re.compile(r" +")
# Japanese prose has no spaces: a word with one of these marks in it is prose, and none of the paths people copy.
_PROSE = re.compile("[。、：；（）「」・？！]")
# What may not begin a line, and what may not end one.
_NEVER_FIRST = frozenset("。、：；）」』】・？！ーん々ゃゅょっァィゥェォャュョッ,.;:)]}%")
_NEVER_LAST = frozenset("（「『【([{")

#: Characters of this tool's own, and what stands for them where a stream cannot carry them.
_PLAIN = {"█": "#", "▒": "+", "░": "-", "▁": "_", "“": '"', "”": '"', "’": "'", "…": "...", "→": "->", "—": "-",
          "┌": "+", "│": "|", "└": "+"}  # fmt: skip

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
    """Lines of at most ``width`` columns, broken at spaces only; Japanese sentences also between their characters.

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
        gap = " "
        for piece in _pieces(word):
            size = columns(piece)
            gap = gap if line else ""
            if line and used + len(gap) + size > width:
                lines.append(line)
                line, used = piece, size
            else:
                line, used = f"{line}{gap}{piece}", used + len(gap) + size
            gap = ""
    lines.append(line)
    return [line.replace(_GLUE, " ") for line in lines]


def _pieces(word: str) -> list[str]:
    """The parts between which a line may be broken: the word itself, or what Japanese rules leave together."""
    if word.isascii() or not _PROSE.search(word):
        return [word]
    pieces: list[str] = []
    for char in word:
        before = pieces[-1] if pieces else ""
        apart = columns(char) == 2 or columns(before[-1:]) == 2
        if not before or (apart and char not in _NEVER_FIRST and before[-1] not in _NEVER_LAST):
            pieces.append(char)
        else:
            pieces[-1] = before + char
    return pieces


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
