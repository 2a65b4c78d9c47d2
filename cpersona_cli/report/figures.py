"""Tables and small plots in characters: what a look tells faster than a sentence.

Every figure is a value that knows how to fill a given width. The block characters have plain ones in their place where
a stream cannot carry them (``layout.spelled``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol

from cpersona_cli.record import record
from cpersona_cli.report.layout import columns, flow, pad
from cpersona_cli.text import safe

FULL, HALF, FAINT, LOW = "█", "▒", "░", "▁"

#: Columns that a plot takes at most, however wide the terminal is.
_WIDEST = 64
_NARROWEST = 10


class Figure(Protocol):
    """Something to be drawn below a section's title."""

    def lines(self, width: int) -> Iterator[str]:
        """The lines, at most ``width`` columns wide as far as that is possible."""


@record(kw_only=True)
class Table:
    """Rows under a header. Columns in ``numbers`` stand to the right; the ``elastic`` one gives way, cut at its end."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: frozenset[int] = frozenset()
    elastic: int = 0

    def lines(self, width: int) -> Iterator[str]:
        every = [self.header, *self.rows]
        sizes = [max(columns(row[number]) for row in every) for number in range(len(self.header))]
        over = sum(sizes) + 2 * (len(sizes) - 1) - width
        if over > 0:
            sizes[self.elastic] = max(columns(self.header[self.elastic]), sizes[self.elastic] - over, 8)
        for row in every:
            yield "  ".join(self._cell(text, sizes[number], number) for number, text in enumerate(row)).rstrip()

    def _cell(self, text: str, size: int, number: int) -> str:
        text = cut(text, size)
        return " " * (size - columns(text)) + text if number in self.numbers else pad(text, size)


@record
class Copied:
    """Lines to be copied: an edit, a command. They are never broken."""

    text: Sequence[str]

    def lines(self, width: int) -> Iterator[str]:  # noqa: ARG002 - of a figure
        for part in self.text:
            yield from (f"    {line}" for line in part.splitlines())


@record(kw_only=True)
class Spans:
    """For each name the stretch of time between two stamps, all on one scale; names without times are left out."""

    rows: Sequence[tuple[str, str, str]]

    def lines(self, width: int) -> Iterator[str]:
        known = [
            (name, start, max(start, end))
            for name, first, last in self.rows
            if (start := seconds(first)) is not None and (end := seconds(last)) is not None
        ]
        if not known:
            return
        left = max(columns(name) for name, _, _ in known) + 2
        room = _room(width, left)
        low, high = min(start for _, start, _ in known), max(end for _, _, end in known)
        scale = (room - 1) / (high - low) if high > low else 0.0
        for name, start, end in known:
            first, last = round((start - low) * scale), round((end - low) * scale)
            if not scale:
                last = room - 1
            bar = FAINT * first + FULL * (last - first + 1) + FAINT * (room - 1 - last)
            yield f"{pad(name, left)}{bar}"
        yield f"{' ' * left}{_axis(day(low), day(high), room)}"


@record(kw_only=True)
class Strip:
    """For each name one cell for each thing looked at, in order; a cell is a mark that the legend explains.

    ``marks`` are (character, meaning), the most serious last: where there are more cells than columns, neighbours share
    a column, and the most serious of them is shown. ``ends`` are the words under the first and the last cell.
    """

    rows: Sequence[tuple[str, str]]
    marks: Sequence[tuple[str, str]]
    ends: tuple[str, str] = ("", "")

    def lines(self, width: int) -> Iterator[str]:
        left = max(columns(name) for name, _ in self.rows) + 2
        room = _room(width, left)
        longest = max(len(cells) for _, cells in self.rows)
        for name, cells in self.rows:
            yield f"{pad(name, left)}{self._fitted(cells, room)}"
        if any(self.ends):
            yield f"{' ' * left}{_axis(*self.ends, min(room, longest))}"
        used = {mark for _, cells in self.rows for mark in cells}
        legend = (f"{mark} {meaning}" for mark, meaning in self.marks if mark in used)
        yield from (f"{' ' * left}{line}" for line in flow(legend, width - left))

    def _fitted(self, cells: str, room: int) -> str:
        if len(cells) <= room:
            return cells
        order = [mark for mark, _ in self.marks]
        bounds = [number * len(cells) // room for number in range(room + 1)]
        shares = (cells[start:end] for start, end in pairwise(bounds))
        return "".join(max(share, key=order.index) for share in shares)


@record(kw_only=True)
class Bars:
    """For each name a bar as long as its number, beside the number."""

    rows: Sequence[tuple[str, int]]

    def lines(self, width: int) -> Iterator[str]:
        if not self.rows:
            return
        left = max(columns(name) for name, _ in self.rows)
        digits = max(len(f"{number:,}") for _, number in self.rows)
        most = max(number for _, number in self.rows)
        room = _room(width, left + digits + 4)
        for name, number in self.rows:
            # what is there at all is seen
            size = max(1 if number else 0, round(number * room / most)) if most else 0
            yield f"{pad(name, left)}  {number:>{digits},}  {FULL * size}".rstrip()


def seconds(stamp: str) -> float | None:
    """A stored time stamp as seconds since 1970; one without an offset is UTC. None where it is no time."""
    try:
        moment = dt.datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()


def day(moment: float) -> str:
    """The day of a moment, UTC."""
    return f"{dt.datetime.fromtimestamp(moment, dt.UTC):%Y-%m-%d}"


def minute(stamp: str) -> str:
    """A stored time stamp to the minute, in UTC; what is no time stays as it is, made safe."""
    moment = seconds(stamp)
    return safe(stamp, 40) if moment is None else f"{dt.datetime.fromtimestamp(moment, dt.UTC):%Y-%m-%d %H:%M}"


def _room(width: int, left: int) -> int:
    return max(_NARROWEST, min(_WIDEST, width - left))


def _axis(first: str, last: str, room: int) -> str:
    gap = room - columns(first) - columns(last)
    return f"{first}{' ' * gap}{last}" if gap > 0 and first != last else first if first == last else f"{first} {last}"


def cut(text: str, size: int) -> str:
    """``text`` with an ellipsis for what is beyond ``size`` columns."""
    if columns(text) <= size:
        return text
    while text and columns(text) >= size:
        text = text[:-1]
    return f"{text}…"
