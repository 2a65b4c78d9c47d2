"""Whether it is still the same model, by numbers alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.fetching import target

from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.embedding.meaning import norms
from cpersona_cli.embedding.model import Outcome, ServerView
from cpersona_cli.embedding.stored import pack
from cpersona_cli.rebuild.faults import Step, passes, said, step
from cpersona_cli.rebuild.sameness import Sameness

_VIEW = ServerView(attempted=True, ok=True)


def reply(*vectors: Sequence[float], model: str = "", kind: Kind = Kind.OK) -> Outcome:
    return Outcome(
        kind=kind,
        attempted=True,
        server_view=_VIEW,
        vectors=vectors,
        dim=len(vectors[0]),
        norms=norms(vectors),
        model=model,
    )


def test_the_same_is_the_same() -> None:
    same = Sameness(target(2))
    assert same.other(reply([1, 0])) == ""
    assert same.canary == pack("http", [1, 0])
    assert same.changed(reply([0, 1], [0.6, 0.8])) == ""
    assert same.other(reply([0.999, 0.04471])) == ""


def test_a_width() -> None:
    assert "3 dimensions now, and 2" in Sameness(target(2)).changed(reply([1, 0, 0]))
    assert "3 dimensions now, and 2" in Sameness(target(2)).other(reply([1, 0, 0]))
    assert "2 dimensions now, and 3 in the run before" in Sameness(target(2), pack("http", [1, 0, 0])).other(
        reply([1, 0])
    )


def test_a_name() -> None:
    same = Sameness(target(2, served="a"))
    assert same.changed(reply([1, 0], model="a")) == same.changed(reply([1, 0])) == ""
    assert "“b” now, and “a”" in same.changed(reply([1, 0], model="b"))
    learnt = Sameness(target(2))
    assert learnt.changed(reply([1, 0], model="b")) == ""
    assert learnt.changed(reply([1, 0], model="c")) != ""


def test_a_habit_of_length() -> None:
    unit = Sameness(target(2))
    assert unit.changed(reply([1, 0])) == ""
    assert unit.changed(reply([1, 0], [0, 1], [5, 5])) == ""  # one of them proves nothing
    assert "of 2 now, and of one" in unit.changed(reply([2, 0]))
    free = Sameness(target(2))
    assert free.changed(reply([3, 0])) == free.changed(reply([0, 7])) == ""
    assert "length one now, and of another length" in free.changed(reply([0, 1]))
    assert free.changed(reply([0, 0])) == ""
    api = Sameness(target(2, "api"))
    assert api.changed(reply([3, 0])) == api.changed(reply([1, 0])) == ""


def test_a_direction() -> None:
    same = Sameness(target(2), pack("http", [1, 0]))
    assert "cosine 0.90" in same.other(reply([0.9, 0.43589]))


@pytest.mark.parametrize("kind", Kind)
def test_every_end_has_a_next_step(kind: Kind) -> None:
    outcome = Outcome(kind=kind, attempted=True, server_view=_VIEW)
    found = step(outcome)
    if MEANINGS[kind].retryable:
        assert found in {Step.THROTTLE, Step.WAIT, Step.AGAIN}
        assert passes(kind, answered=False)
    else:
        assert found in {Step.SHRINK, Step.SPLIT, Step.DOUBT}
        assert not passes(kind, answered=False)
    assert said(outcome) == MEANINGS[kind].sentence


@pytest.mark.parametrize(
    ("kind", "answered"),
    [
        (Kind.DNS, True),
        (Kind.TLS, True),
        (Kind.NOT_JSON, True),
        (Kind.AUTH, False),
        (Kind.QUOTA, False),
        (Kind.MODEL_NOT_FOUND, False),
        (Kind.INTERNAL, False),
    ],
)
def test_what_may_pass_once_it_worked(kind: Kind, answered: bool) -> None:
    assert passes(kind, answered=True) == answered
    assert not passes(kind, answered=False)


def test_what_was_seen_is_told_where_the_server_says_nothing() -> None:
    seen = Outcome(kind=Kind.TIMEOUT, attempted=True, server_view=_VIEW, evidence=(("cause", "ReadTimeout"),))
    assert said(seen) == "no complete answer came in time (ReadTimeout)"
