"""How much of a long text an endpoint takes in, found with few calls."""

from __future__ import annotations

from collections.abc import Sequence

from cpersona_cli.embedding.calling import Caller
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Plan, Window
from cpersona_cli.embedding.model import Outcome
from cpersona_cli.embedding.texts import passage, twins

#: Vectors whose elements all agree to this are those of one and the same input; other endings differ by far more.
_EQUAL = 1e-5

#: Ends of a call with a long text that say nothing about its length.
_ELSEWHERE = frozenset({
    Kind.THROTTLED, Kind.QUOTA, Kind.AUTH, Kind.LOADING, Kind.REFUSED, Kind.DISCONNECTED, Kind.TIMEOUT,
})  # fmt: skip


async def window(caller: Caller, plan: Plan, word: str) -> Window | Outcome:
    """Send two passages that differ only at the end; where they come back equal or refused, find the usable length.

    Returns the outcome itself where it tells nothing of lengths (throttled, gone, too slow).
    """
    outcome = await caller.embed(twins(word, plan.words))
    if outcome.kind in _ELSEWHERE:
        return outcome
    if _whole(outcome):
        return Window(words=plan.words, characters=len(passage(word, plan.words)), at_least=True)
    cut, refused, limit = outcome.ok, None if outcome.ok else outcome.kind, outcome.limit
    low, high = 0, plan.words
    for _ in range(plan.bisections):
        middle = (low + high) // 2
        tried = await caller.once(twins(word, middle))
        if tried.kind in _ELSEWHERE:
            break
        if _whole(tried):
            low = middle
        else:
            high = middle
            cut, limit = cut or tried.ok, limit or tried.limit
    return Window(words=low, characters=len(passage(word, low)), cut=cut, refused=refused, limit=limit)


def _whole(outcome: Outcome) -> bool:
    """Whether the two endings made a difference."""
    return outcome.ok and len(outcome.vectors) == 2 and not _equal(*outcome.vectors)


def _equal(left: Sequence[float], right: Sequence[float]) -> bool:
    scale = max(map(abs, left), default=0.0) or 1.0
    return all(abs(a - b) <= _EQUAL * scale for a, b in zip(left, right, strict=True))
