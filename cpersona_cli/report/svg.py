"""Figures as inline pictures. Each carries its numbers as text too, so that nothing is told by colour alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cpersona_cli.report.figures import Bars, Figure, Spans, Strip, Table, cut, day, seconds
from cpersona_cli.report.layout import columns

Text = Callable[[str], str]

#: Narrow, so that a phone shows all of it in letters that can be read.
_WIDTH, _ROW, _BAR, _CHAR = 400, 24, 14, 7.2
_LABEL = 22  # columns of a name at most
_CALM = (0, 1, 3, 4)  # shades that are not the red one
_THIN = 4  # cells that are narrower have no gap between them


def is_picture(figure: Figure) -> bool:
    """Whether a look tells it: it is never folded away."""
    return isinstance(figure, (Spans, Strip, Bars))


def draw(figure: Figure, text: Text) -> str:
    """``figure`` as HTML; ``text`` makes a word fit to stand there. A figure not known here is shown in characters."""
    match figure:
        case Table():
            return _table(figure, text)
        case Spans():
            return _spans(figure, text)
        case Strip():
            return _strip(figure, text)
        case Bars():
            return _bars(figure, text)
        case _:
            return f"<pre>{chr(10).join(text(line) for line in figure.lines(72))}</pre>"


def _table(figure: Table, text: Text) -> str:
    """Every cell names its column too, for a page so narrow that cells stand below each other."""

    def row(cells: Sequence[str], tag: str) -> str:
        named = (f' data-label="{text(name)}"' if tag == "td" else "" for name in figure.header)
        shown = (
            f"<{tag}{' class=n' if number in figure.numbers else ''}{name}>{text(cell)}</{tag}>"
            for number, (cell, name) in enumerate(zip(cells, named, strict=False))
        )
        return f"<tr>{''.join(shown)}</tr>"

    body = "".join(row(cells, "td") for cells in figure.rows)
    return f'<div class="wide"><table><thead>{row(figure.header, "th")}</thead><tbody>{body}</tbody></table></div>'


def _spans(figure: Spans, text: Text) -> str:
    known = [
        (name, start, max(start, end))
        for name, first, last in figure.rows
        if (start := seconds(first)) is not None and (end := seconds(last)) is not None
    ]
    if not known:
        return ""
    left = _left(name for name, _, _ in known)
    low, high = min(start for _, start, _ in known), max(end for _, _, end in known)
    room = _WIDTH - left
    scale = room / (high - low) if high > low else 0.0
    parts = []
    for number, (name, start, end) in enumerate(known):
        begins = left + (start - low) * scale
        size = max(3.0, (end - start) * scale) if scale else room
        begins = min(begins, _WIDTH - size)
        parts += _named(number, name, text)
        parts.append(_rect(left, number, room, "ground"))
        parts.append(_rect(begins, number, size, f"s{_CALM[number % len(_CALM)]}", f"{day(start)} to {day(end)}"))
    parts += _axis(left, len(known), (day(low), day(high)), text)
    described = "; ".join(f"{name} {day(start)} to {day(end)}" for name, start, end in known)
    return _svg(parts, len(known) + 1, text(described))


def _strip(figure: Strip, text: Text) -> str:
    left = _left(name for name, _ in figure.rows)
    longest = max(len(cells) for _, cells in figure.rows)
    size = min(18.0, (_WIDTH - left) / longest)
    classes = {mark: f"s{number}" for (mark, _), number in zip(figure.marks, _shades(len(figure.marks)), strict=True)}
    meanings = dict(figure.marks)
    parts = []
    for number, (name, cells) in enumerate(figure.rows):
        parts += _named(number, name, text)
        parts += [
            _rect(left + place * size, number, size if size < _THIN else size - 1, classes[mark], text(meanings[mark]))
            for place, mark in enumerate(cells)
        ]
    rows = len(figure.rows)
    if any(figure.ends):
        parts += _axis(left, rows, figure.ends, text, end=left + size * longest)
        rows += 1
    used = [(mark, meaning) for mark, meaning in figure.marks if any(mark in cells for _, cells in figure.rows)]
    for mark, meaning in used:
        parts.append(_rect(left, rows, _BAR, classes[mark]))
        parts.append(f'<text x="{left + _BAR + 8}" y="{rows * _ROW + 15}">{text(meaning)}</text>')
        rows += 1
    counts = (
        f"{name}: " + ", ".join(f"{cells.count(mark)} {meaning}" for mark, meaning in used if mark in cells)
        for name, cells in figure.rows
    )
    return _svg(parts, rows, text("; ".join(counts)))


def _shades(count: int) -> Sequence[int]:
    """The most serious mark, which stands last, is red; the first one is calm, the next grey, the others warm."""
    calm = (0, 3, 1, 4)
    return [2 if number == count - 1 and count > 1 else calm[number % len(calm)] for number in range(count)]


def _bars(figure: Bars, text: Text) -> str:
    if not figure.rows:
        return ""
    left = _left(name for name, _ in figure.rows)
    most = max(number for _, number in figure.rows) or 1
    room = _WIDTH - left - 80
    parts = []
    for number, (name, value) in enumerate(figure.rows):
        size = max(2.0 if value else 0.0, value / most * room)
        parts += _named(number, name, text)
        parts.append(_rect(left, number, size, "s0"))
        parts.append(f'<text x="{left + size + 8:.1f}" y="{number * _ROW + 15}">{value:,}</text>')
    return _svg(parts, len(figure.rows), text("; ".join(f"{name}: {value:,}" for name, value in figure.rows)))


def _left(names: Iterator[str]) -> float:
    return min(_LABEL, max(columns(name) for name in names)) * _CHAR + 12


def _named(number: int, name: str, text: Text) -> list[str]:
    """The name before a row, cut where it would run into it, and then whole for those who point at it."""
    shown = cut(name, _LABEL)
    whole = f"<title>{text(name)}</title>" if shown != name else ""
    return [f'<text x="0" y="{number * _ROW + 15}">{whole}{text(shown)}</text>']


def _rect(x: float, row: int, width: float, shade: str, told: str = "") -> str:
    inner = f"<title>{told}</title>" if told else ""
    size = f'x="{x:.1f}" y="{row * _ROW + 4}" width="{width:.1f}" height="{_BAR}"'
    return f'<rect class="{shade}" {size} rx="2">{inner}</rect>'


def _axis(left: float, row: int, ends: tuple[str, str], text: Text, end: float = _WIDTH) -> list[str]:
    first, last = ends
    y = row * _ROW + 13
    start = f'<text class="soft" x="{left:.1f}" y="{y}">{text(first)}</text>'
    if first == last:
        return [start]
    place = f'x="{max(end, left + 170):.1f}" y="{y}" text-anchor="end"'
    return [start, f'<text class="soft" {place}>{text(last)}</text>']


def _svg(parts: Sequence[str], rows: int, described: str) -> str:
    size = f'viewBox="0 0 {_WIDTH} {rows * _ROW + 4}"'
    return f'<svg role="img" aria-label="{described}" {size} xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
