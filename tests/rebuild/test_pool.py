from __future__ import annotations

import math
import struct
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_cli.rebuild.chance import sign_test, wilson
from cpersona_cli.rebuild.pool import Pool


def blob(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


@settings(max_examples=60)
@given(
    st.integers(1, 40),
    st.integers(1, 30),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-6, 0.03, 1.0, 300.0]),
)
def test_scores_are_the_dot_products(dim: int, count: int, seed: int, scale: float) -> None:
    numbers = np.random.default_rng(seed)
    pool = (numbers.standard_normal((count, dim)) * scale).astype("<f4")
    query = (numbers.standard_normal(dim) / scale).astype("<f4")
    vectors = [row.tobytes() for row in pool]
    (scores,) = Pool(vectors).scores([query.tobytes()])
    exact = pool.astype(float) @ query.astype(float)
    lengths = np.linalg.norm(pool.astype(float), axis=1) * np.linalg.norm(query.astype(float))
    assert np.all(np.abs(np.array(scores) - exact) <= 5e-7 * lengths + 1e-12)


@settings(max_examples=60)
@given(
    st.integers(1, 40),
    st.sampled_from([1, 2, 255, 256, 257, 700]),
    st.integers(1, 70),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-42, 1e-6, 1.0, 1e30]),
)
def test_scores_are_the_same_without_numpy(dim: int, count: int, asked: int, seed: int, scale: float) -> None:
    numbers = np.random.default_rng(seed)
    pool = numbers.standard_normal((count, dim)) * scale
    pool[0] = 0
    vectors = [row.astype("<f4").tobytes() for row in pool]
    queries = [row.astype("<f4").tobytes() for row in numbers.standard_normal((asked, dim))]
    with_numpy = list(Pool(vectors).scores(queries))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numpy", None)
        assert list(Pool(vectors).scores(queries)) == with_numpy
    assert (len(with_numpy), {len(scores) for scores in with_numpy}) == (asked, {count})


@pytest.fixture(params=["numpy", "plain"], autouse=True)
def _engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test with numpy and without."""
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "numpy", None)


def scores(vectors: Sequence[bytes], query: bytes) -> list[float]:
    (found,) = Pool(vectors).scores([query])
    return found


def test_the_widest_vectors_do_not_overflow() -> None:
    wide = blob(*[1.0] * 16384)  # what the server takes at the most
    narrow = blob(*[-1.0] * 16384)
    assert scores([wide, narrow], wide) == pytest.approx([16384, -16384])
    assert scores([narrow, wide], narrow) == pytest.approx([16384, -16384])
    with pytest.raises(ValueError, match="too many"):
        Pool([blob(*[1.0] * 16385)])


def test_a_vector_of_zeros_has_no_score() -> None:
    assert scores([blob(0, 0), blob(3, 4)], blob(1, 0)) == pytest.approx([0, 3])
    assert scores([blob(3, 4)], blob(0, 0)) == [0]


def test_an_empty_pool_has_no_scores() -> None:
    assert list(Pool([]).scores([])) == []


@pytest.mark.parametrize("vectors", [[blob(1), blob(1, 2)], [blob(math.nan, 1)], [blob(1, math.inf)], [b"abc"]])
def test_what_cannot_be_compared(vectors: list[bytes]) -> None:
    with pytest.raises(ValueError, match="vector"):
        Pool(vectors)


def test_a_query_of_another_width() -> None:
    with pytest.raises(ValueError, match="a query of 1 dimensions for vectors of 2"):
        scores([blob(1, 2)], blob(1))


def test_intervals_and_chances_of_the_tables() -> None:
    """Values as printed in textbooks and by statistics packages."""
    assert wilson(0, 0) == (0, 1)
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert wilson(20, 20) == pytest.approx((0.8389, 1.0), abs=1e-4)
    assert sign_test(9, 1) == pytest.approx(22 / 1024)
    assert sign_test(5, 5) == 1
    assert sign_test(0, 0) == 1
    assert sign_test(700, 300) < 1e-30
    assert sign_test(505, 495) == pytest.approx(0.7759, abs=1e-3)
    assert sign_test(520, 479) == pytest.approx(sign_test(520, 480), abs=0.02)
