"""How much disk a rebuild takes beside and inside the database, told from the numbers of rows and their widths."""

from __future__ import annotations

import math
from pathlib import Path

from cpersona_cli.embedding.stored import FLOAT
from cpersona_cli.record import record
from cpersona_cli.store.files import beside, size_of

#: SQLite's page in bytes, what of it a row may fill before it spills over to pages of its own, and a frame of the log.
_PAGE, _FILLED, _FRAME = 4096, 4061, 4120
#: Bytes a row takes in the staging file beside its vector (kind, id, digest, and the index over digests), and bytes
#: beside the old vector in the undo file (digest, label, hash of the new one).
_STAGED, _UNDONE = 130, 110
#: Bytes of a row of the database beside its text and its vector.
_ROW = 250
#: What an SQLite file with tables but no rows takes.
_EMPTY = 64 << 10


@record(kw_only=True)
class Need:
    """Bytes of each file a rebuild makes, and by which the database grows."""

    staging: int
    undo: int
    backup: int
    log: int
    growth: int

    @property
    def total(self) -> int:
        return self.staging + self.undo + self.backup + self.log + self.growth


def need(path: Path, *, rows: int, distinct: int, characters: int, dim: int, old_dim: int | None) -> Need:
    """What a rebuild of ``rows`` rows needs at most; ``characters`` are those of ``distinct`` texts.

    The backup holds what database and log hold now. The log of the cut-over holds each page that changes once.
    """
    new, old = dim * FLOAT, (old_dim or 0) * FLOAT
    least = characters // max(1, distinct)  # bytes of a text: one for each character, and two for a safe guess
    text = 2 * least
    size = (size_of(path) or 0) + beside(path).get("-wal", 0)
    growth = max(0, _table(rows, text + _ROW + new) - _table(rows, least + _ROW // 2 + old))
    changed = min(rows * _pages(text + _ROW + new), (size + growth) // _PAGE)
    return Need(
        staging=_EMPTY + _table(distinct, new + 40) + rows * _STAGED,
        undo=_EMPTY + _table(rows, old + _UNDONE),
        backup=size,
        log=_EMPTY + changed * _FRAME,
        growth=growth,
    )


def _table(rows: int, payload: int) -> int:
    """Bytes of a table of ``rows`` rows, from how many of them share a page, or how many pages one takes."""
    if payload <= _FILLED:
        return math.ceil(rows / (_FILLED // payload)) * _PAGE
    return rows * _pages(payload) * _PAGE


def _pages(payload: int) -> int:
    return math.ceil(payload / _FILLED)
