from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.embedding.likeness import Likeness, likeness, thresholds

SHARES = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("cosine", "verdict"),
    [
        (1.0, Likeness.SAME),
        (0.98, Likeness.SAME),
        (0.9799, Likeness.NEAR),
        (0.85, Likeness.NEAR),
        (0.5, Likeness.NEAR),
        (0.4999, Likeness.OTHER),
        (-0.02, Likeness.OTHER),
        (None, Likeness.UNJUDGED),
        (math.nan, Likeness.UNJUDGED),
    ],
)
@pytest.mark.parametrize("strangers", [None, -0.1, 0.04, 0.3])
def test_an_ordinary_model(cosine: float | None, verdict: Likeness, strangers: float | None) -> None:
    assert likeness(cosine, thresholds(1.0, strangers)) is verdict


def test_a_model_that_keeps_all_texts_in_a_narrow_cone() -> None:
    """multilingual-e5-small: strangers at 0.76, other texts of one store up to 0.84, the same text cut from 0.92."""
    lines = thresholds(1.0, 0.76)
    assert [lines.same, lines.other] == pytest.approx([0.9952, 0.88])
    assert [likeness(value, lines) for value in (0.84, 0.92, 0.996)] == [
        Likeness.OTHER,
        Likeness.NEAR,
        Likeness.SAME,
    ]


def test_an_endpoint_that_repeats_itself_badly_is_asked_for_less() -> None:
    lines = thresholds(0.97, 0.05)
    assert lines.steady
    assert [lines.same, lines.other] == pytest.approx([0.94, 0.5])
    assert likeness(0.95, lines) is Likeness.SAME


def test_an_endpoint_that_does_not_repeat_itself_tells_nothing() -> None:
    lines = thresholds(0.6, 0.05)
    assert not lines.steady
    assert likeness(1.0, lines) is Likeness.UNJUDGED


@given(SHARES, SHARES, st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_a_higher_cosine_never_says_less(repeat: float, strangers: float, one: float, other: float) -> None:
    order = [Likeness.UNJUDGED, Likeness.OTHER, Likeness.NEAR, Likeness.SAME]
    lines = thresholds(repeat, strangers)
    low, high = sorted((one, other))
    assert order.index(likeness(low, lines)) <= order.index(likeness(high, lines))


@given(SHARES, st.floats(0.3, 1.0, exclude_min=True))
def test_strangers_are_never_taken_for_the_same(repeat: float, strangers: float) -> None:
    assert likeness(strangers, thresholds(repeat, strangers)) in {Likeness.OTHER, Likeness.UNJUDGED, Likeness.SAME} - (
        {Likeness.SAME} if strangers < 1 else set()
    )
