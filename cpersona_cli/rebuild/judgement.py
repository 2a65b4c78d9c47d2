"""What a comparison of old and new vectors says, in figures and in sentences."""

from __future__ import annotations

from enum import StrEnum

from cpersona_cli.record import record
from cpersona_cli.text import plural


class Verdict(StrEnum):
    """How search with the new vectors compares with the old ones, on these rows."""

    BETTER = "better"
    SAME = "same"  # no difference that a sample of this size could show
    WORSE = "worse"
    UNKNOWN = "unknown"


@record(kw_only=True)
class Found:
    """Known-item search: of ``asked`` searches among ``rows`` rows, ``first`` had the row itself in the first place.

    ``low`` and ``high`` bound the share of these (95 %); ``within`` came among the first ten, ``reciprocal`` is the
    mean of one divided by the place (0 behind the tenth).
    """

    asked: int
    rows: int
    first: int
    low: float
    high: float
    within: int
    reciprocal: float


@record(kw_only=True)
class Agreement:
    """Of a row's ``top`` nearest rows, the share that is the same before and after: the mean over ``asked`` rows."""

    asked: int
    rows: int
    top: int
    mean: float


@record(kw_only=True)
class Judgement:
    """What the samples say. ``ahead`` searches find their row at a better place than before, ``behind`` at a worse.

    ``chance`` is the probability of so uneven a split where there is no difference (sign test). ``old_unknown`` says
    why the old vectors could not be searched, where they could not. ``texts_sent`` counts texts of either endpoint.
    """

    verdict: Verdict
    new: Found | None = None
    old: Found | None = None
    ahead: int = 0
    behind: int = 0
    chance: float | None = None
    agreement: Agreement | None = None
    old_unknown: str = ""
    texts_sent: int = 0
    sentences: tuple[str, ...] = ()


def sentences(judgement: Judgement, failure: str) -> list[str]:
    """A judgement for people; ``failure`` says why nothing was searched for, where nothing was."""
    lines = []
    if judgement.new is None:
        lines.append(f"search with the new vectors could not be tried: {failure or 'no text is long enough'}")
    else:
        lines.append(f"new vectors: {_counted(judgement.new)}")
    if judgement.old is not None:
        lines.append(f"old vectors: {_counted(judgement.old)}")
        lines.append(_compared(judgement))
    elif judgement.new is not None:
        lines.append(f"old vectors could not be searched, so which is better is not known: {judgement.old_unknown}")
    if judgement.agreement is not None:
        one = judgement.agreement
        lines.append(
            f"of the {one.top} nearest memories of a memory, {one.top * one.mean:.1f} stay the same"
            f" ({one.asked} sampled among {one.rows:,}); that alone is neither good nor bad"
        )
    return lines


def _counted(found: Found) -> str:
    return (
        f"{found.first} of {plural(found.asked, 'search', 'searches')} with a part of a memory’s text find that memory"
        f" first among {found.rows:,} ({found.first / found.asked:.0%}, 95 % interval {found.low:.0%} to"
        f" {found.high:.0%}), {found.within} among the first ten"
    )


def _compared(judgement: Judgement) -> str:
    split = f"{judgement.ahead} find their memory at a better place than before, {judgement.behind} at a worse one"
    if judgement.verdict is Verdict.UNKNOWN or judgement.chance is None:
        return f"too few searches to compare: {split}"
    same = judgement.verdict is Verdict.SAME
    word = "the same, as far as this sample can tell," if same else str(judgement.verdict)
    return f"{word} on your memories, searched by words of their own: {split} (p = {judgement.chance:.2g})"
