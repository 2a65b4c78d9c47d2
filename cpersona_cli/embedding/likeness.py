"""How alike two vectors of one text must be to come from one model: told by what the endpoint makes of known texts."""

from __future__ import annotations

import math
from enum import StrEnum

from cpersona_cli.record import record

#: Cosine from which two vectors of one text are of one model, and below which they are of two, where texts that have
#: nothing in common lie far apart. Batches, devices and 8-bit storage keep above the first; another build, shorter
#: windows and coarse quantisation fall between the two.
SAME, OTHER = 0.98, 0.5
#: Cosine of unrelated texts up to which these numbers hold as they are: the server's own first threshold of a match.
APART = 0.3


class Likeness(StrEnum):
    """What the cosine of a stored vector and a fresh one of the same text says."""

    SAME = "same"
    NEAR = "near"  # between: truncation, quantisation, another build
    OTHER = "other"
    WIDTH = "width"  # of another width, so no cosine
    UNJUDGED = "unjudged"


@record(kw_only=True)
class Thresholds:
    """From which cosine vectors count as the same model's, and below which as another's.

    ``repeat`` is the lowest cosine of the same texts embedded twice, alone and in a batch: what the endpoint itself
    makes of one text. ``strangers`` is the mean cosine of texts that have nothing in common.
    """

    same: float = SAME
    other: float = OTHER
    repeat: float = 1.0
    strangers: float | None = None

    @property
    def steady(self) -> bool:
        """Whether the endpoint repeats itself well enough for anything to be told."""
        return self.same > self.other


def thresholds(repeat: float, strangers: float | None = None) -> Thresholds:
    """Where the lines lie for an endpoint.

    Some models keep all texts in a narrow cone (e5: strangers at 0.76), where 0.8 means nothing in common. There both
    numbers are taken as shares of the way from strangers to identity. An endpoint that does not repeat itself cannot
    be asked for more than twice its own distance.
    """
    floor = strangers if strangers is not None and strangers > APART else 0.0
    same, other = floor + SAME * (1 - floor), floor + OTHER * (1 - floor)
    return Thresholds(same=min(same, 2 * repeat - 1), other=other, repeat=repeat, strangers=strangers)


def likeness(cosine: float | None, lines: Thresholds) -> Likeness:
    """What ``cosine`` says; nothing where there is none or the endpoint does not repeat itself."""
    if cosine is None or math.isnan(cosine) or not lines.steady:
        return Likeness.UNJUDGED
    if cosine >= lines.same:
        return Likeness.SAME
    return Likeness.NEAR if cosine >= lines.other else Likeness.OTHER
