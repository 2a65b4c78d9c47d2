"""Which rows get a new vector, decided row by row from what stands in the database and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from cpersona_cli.embedding.likeness import Likeness
from cpersona_cli.embedding.meaning import NORM_TOLERANCE, ZERO
from cpersona_cli.embedding.stored import FLOAT, length
from cpersona_cli.fit.model import Break, Compared, Fit
from cpersona_cli.rebuild.model import Only
from cpersona_cli.record import record
from cpersona_cli.store.job import Target
from cpersona_cli.store.model import Kind, Row

#: An id past every other.
_END = 2**63 - 1

#: Why a row is left out, in words for the plan.
BLANK = "blank: nothing to embed"
CURRENT = "labelled as this model’s, and sound"
HAS_ONE = "have a vector"
RIGHT_WIDTH = "of the right width"
SOUND = "have a sound vector"
OWN = "of this model, as far as label and measurement tell"
NONE_YET = "have no vector (--only missing takes them)"

#: The reason why a row is left out; empty when it gets a new vector.
Selector = Callable[[Row], str]


@record
class Range:
    """Ids of one kind, both ends included."""

    kind: Kind
    first: int
    last: int


def selector(
    only: Only, target: Target, *, foreign: Sequence[Range] = (), skip_current: bool = False, unit: bool = True
) -> Selector:
    """What decides over one row; all but ``Only.ALL`` need its vector and label.

    ``foreign`` are rows told to be another model's by measurement. With ``skip_current`` a row is left out that
    ``current`` vouches for. ``unit``: the target's vectors have length one, so another length is a defect.
    """
    ranges = tuple(foreign)
    size = target.dim * FLOAT

    def reason(row: Row) -> str:
        if not row.text.strip():
            return BLANK
        if skip_current and current(row, target):
            return CURRENT
        match only:
            case Only.ALL:
                return ""
            case Only.MISSING:
                return HAS_ONE if row.vector is not None else ""
            case Only.MISMATCHED:
                return RIGHT_WIDTH if row.vector is not None and len(row.vector) == size else ""
            case Only.DAMAGED:
                return NONE_YET if row.vector is None else "" if damaged(row, unit=unit) else SOUND
        return NONE_YET if row.vector is None else "" if _foreign(row, target, ranges) else OWN

    return reason


def current(row: Row, target: Target) -> bool:
    """Whether a row may be skipped: its label says that the target made its vector, and the vector is sound.

    Only a label that tells can say so (``Target.telling``). That the text is unchanged is no reason.
    """
    if not target.telling or row.label != target.label:
        return False
    return row.vector is not None and len(row.vector) == target.dim * FLOAT and not damaged(row, unit=False)


def damaged(row: Row, *, unit: bool = True) -> bool:
    """Whether a row has something in its vector's place that no search could use, whatever the model."""
    if row.vector is None:
        return False
    norm = length(row.vector)
    return norm is None or norm < ZERO or (unit and abs(norm - 1) > NORM_TOLERANCE)


def _foreign(row: Row, target: Target, ranges: Iterable[Range]) -> bool:
    if len(row.vector or b"") != target.dim * FLOAT:
        return True
    if target.telling and row.label and row.label != target.label:
        return True
    return any(found.kind is row.kind and found.first <= row.id <= found.last for found in ranges)


def foreign_ranges(fit: Fit) -> tuple[Range, ...]:
    """The rows a fit tells to be another model's; what lies between two judged rows of different models counts in.

    A table where foreign rows lie among others without a clean break is taken as a whole: a new vector harms no row.
    Rows of another width are not listed, as each shows that by itself.
    """
    return tuple(found for kind in Kind for found in _ranges(fit, kind))


def _ranges(fit: Fit, kind: Kind) -> Iterator[Range]:
    others = [one for one in (*fit.compared, *fit.isolated) if one.kind is kind and _other(one)]
    breaks = sorted((found for found in fit.breaks if found.kind is kind), key=lambda found: found.before.id)
    if kind in fit.interleaved or (others and not breaks):
        yield Range(kind, 0, _END)
        return
    segments = tuple(_segments(kind, breaks))
    yield from segments
    for number in sorted({one.id for one in others}):
        if not any(found.first <= number <= found.last for found in segments):
            yield Range(kind, number, number)


def _segments(kind: Kind, breaks: Sequence[Break]) -> Iterator[Range]:
    if not breaks:
        return
    if _other(breaks[0].before):
        yield Range(kind, 0, breaks[0].after.id - 1)
    for left, right in pairwise(breaks):
        if _other(left.after) or _other(right.before):
            yield Range(kind, left.before.id + 1, right.after.id - 1)
    if _other(breaks[-1].after):
        yield Range(kind, breaks[-1].before.id + 1, _END)


def _other(one: Compared) -> bool:
    return one.likeness is Likeness.OTHER
