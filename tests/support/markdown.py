"""Pieces of Markdown that the generated pages share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table. Cells are Markdown already; only what would end a cell is escaped."""
    yield _row(heads)
    yield f"|{'---|' * len(heads)}"
    yield from (_row(row) for row in rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def plain(text: str) -> str:
    """``text`` such that Markdown shows it as it stands; names in capitals and file names keep their underscores."""
    return re.sub(r"([*\[\]`]|(?<!\w)_|_(?!\w))", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))


def code(text: str) -> str:
    return f"`{text}`" if text else ""
