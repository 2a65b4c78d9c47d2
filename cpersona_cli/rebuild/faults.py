"""What a failed request says about its texts, about the endpoint, or about neither. Pure.

Where a reply leaves it open, one short text that the endpoint embedded before (the canary) decides: if that still
works, the fault is the texts'; if not, it is the endpoint's. So neither a dead endpoint turns healthy rows into failed
ones, nor does one poisonous row stop a run.
"""

from __future__ import annotations

from enum import StrEnum

from cpersona_cli.embedding.kinds import MEANINGS, Kind, Stage
from cpersona_cli.embedding.model import Outcome


class Step(StrEnum):
    """What is done next with a batch that failed."""

    THROTTLE = "throttle"  # wait as told, then send it again
    WAIT = "wait"  # the endpoint is away: wait, ask the canary, then send it again
    SHRINK = "shrink"  # too much at once: learn the limit, send it in parts
    SPLIT = "split"  # a text of it is at fault: send it in halves
    AGAIN = "again"  # it may have been bad luck: wait, ask the canary, then send it again
    DOUBT = "doubt"  # the text or the endpoint: ask the canary


_AWAY = frozenset({Kind.REFUSED, Kind.UNROUTABLE, Kind.CONNECT_TIMEOUT, Kind.RESOLVER, Kind.LOADING})
_SIZE = frozenset({Kind.BATCH_TOO_LARGE, Kind.NO_BATCHING, Kind.TOO_LARGE})
_TEXT = frozenset(
    {Kind.INPUT_TOO_LARGE, Kind.NAN_FOR_INPUT, Kind.INPUT_INVALID, Kind.CONSTANT_VECTOR, Kind.ZERO_VECTOR}
)
#: What a list of one text cannot be too large for.
_TOO_LONG = frozenset({Kind.INPUT_TOO_LARGE, Kind.BATCH_TOO_LARGE})


def step(outcome: Outcome) -> Step:
    """The next step for the batch that ended so."""
    kind = outcome.kind
    if kind is Kind.THROTTLED:
        return Step.THROTTLE
    if kind in _AWAY:
        return Step.WAIT
    if kind in _SIZE:
        return Step.SHRINK
    if kind in _TEXT:
        return Step.SPLIT
    return Step.AGAIN if outcome.retryable else Step.DOUBT


def passes(kind: Kind, *, answered: bool) -> bool:
    """Whether an endpoint that fails the canary so may come back by itself; ``answered``: it worked in this run.

    Once it worked, a name that is not known, a proxy's page or a broken reply is a network that went to sleep or a
    server that is being restarted. A clear refusal (key, quota, model, path) is final.
    """
    meaning = MEANINGS[kind]
    return meaning.retryable or (
        answered and meaning.stage in {Stage.NETWORK, Stage.BODY} and kind is not Kind.INTERNAL
    )


def too_long(kind: Kind) -> bool:
    """Whether one text alone was refused for its length."""
    return kind in _TOO_LONG


def said(outcome: Outcome) -> str:
    """What is told of a failure: the server's own sentence, else ours with what was seen."""
    if outcome.server_message:
        return f"“{outcome.server_message}”"
    seen = dict(outcome.evidence)
    cause = seen.get("cause") or seen.get("detail") or ""
    sentence = MEANINGS[outcome.kind].sentence
    return f"{sentence} ({cause})" if cause else sentence
