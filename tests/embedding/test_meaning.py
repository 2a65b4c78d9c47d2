"""Numbers that are well-formed and still wrong."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.meaning import NORM_TOLERANCE, ZERO, cosine, judge_vectors, norms


def judged(*vectors: list[float], mode: str = "http", texts: tuple[str, ...] | None = None) -> Kind:
    names = texts or tuple(f"text {place}" for place in range(len(vectors)))
    return judge_vectors(mode, names, vectors, norms(vectors)).kind


def test_lengths() -> None:
    assert norms([[3.0, 4.0], [0.0, 0.0], [1e30, 0.0]]) == (5.0, 0.0, 1e30)


def test_angles() -> None:
    assert cosine([1, 0], [0, 2]) == 0
    assert cosine([1, 1], [2, 2]) == pytest.approx(1)
    assert cosine([1, 0], [-3, 0]) == pytest.approx(-1)
    assert cosine([0, 0], [1, 0]) == 0
    assert cosine([math.inf, -math.inf], [1, 1]) == cosine([1, 1], [math.nan, 1]) == 0
    with pytest.raises(ValueError, match="1 and 2 dimensions"):
        cosine([1], [1, 2])


@pytest.mark.parametrize(
    ("vectors", "kind"),
    [
        (([1.0, 0.0], [0.0, 1.0]), Kind.OK),
        (([1.0, 0.0],), Kind.OK),
        (([1.0, 0.0], [0.0, 0.0]), Kind.ZERO_VECTOR),
        (([ZERO / 2, 0.0], [1.0, 0.0]), Kind.ZERO_VECTOR),
        (([1.0, 0.0], [1.0, 0.0]), Kind.CONSTANT_VECTOR),
        (([1.0, 0.0], [1.0, 0.001]), Kind.CONSTANT_VECTOR),
        (([1.0, 0.0], [math.cos(0.02), math.sin(0.02)]), Kind.OK),
        (([1.0, 0.0], [1.0, 0.0], [0.0, 1.0]), Kind.OK),
        (([2.0, 0.0], [0.0, 2.0]), Kind.NOT_NORMALIZED),
        (([1.0, 0.0], [0.0, 0.9]), Kind.NOT_NORMALIZED),
        (([1 + NORM_TOLERANCE / 2, 0.0], [0.0, 1 - NORM_TOLERANCE / 2]), Kind.OK),
    ],
)
def test_kinds(vectors: tuple[list[float], ...], kind: Kind) -> None:
    assert judged(*vectors) is kind
    # the server itself makes unit vectors of what an OpenAI-compatible backend sends
    assert judged(*vectors, mode="api") is (Kind.OK if kind is Kind.NOT_NORMALIZED else kind)


def test_the_same_text_may_have_the_same_vector() -> None:
    assert judged([1.0, 0.0], [1.0, 0.0], texts=("a", "a")) is Kind.OK


def test_the_evidence_counts() -> None:
    worth = judge_vectors("http", ("a", "b"), [[0.0], [0.0]], (0.0, 0.0))
    assert worth.evidence == (("zero", "2 of 2 vectors"),)
    worth = judge_vectors("http", ("a", "b"), [[3.0, 0.0], [0.0, 5.0]], (3.0, 5.0))
    assert worth.evidence == (("lengths", "3 to 5"),)


@given(st.lists(st.lists(st.floats(-3.4e38, 3.4e38), min_size=3, max_size=3), min_size=1, max_size=5))
def test_any_numbers_of_32_bits_are_judged(vectors: list[list[float]]) -> None:
    for mode in ("http", "api"):
        assert judged(*vectors, mode=mode) in {
            Kind.OK,
            Kind.ZERO_VECTOR,
            Kind.CONSTANT_VECTOR,
            Kind.NOT_NORMALIZED,
        }
