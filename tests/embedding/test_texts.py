from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.endpoints_small import embed

from cpersona_cli.embedding import texts


def test_two_runs_share_no_text() -> None:
    first, second = texts.nonce(), texts.nonce()
    assert first != second
    made = [*texts.fresh(first), *texts.fresh(second), texts.single(first, 1), texts.single(second, 1)]
    made += [*texts.twins(first, 40), *texts.twins(second, 40), *texts.batch(first, 8)[0], *texts.batch(second, 8)[0]]
    assert len(set(made)) == len(made)


def test_the_four_texts_are_of_four_kinds() -> None:
    plain, accented, cjk, emoji = texts.fresh("abcd")
    assert plain.isascii()
    assert any("À" <= char <= "ʯ" for char in accented)
    assert any("\u3040" <= char <= "\u9fff" for char in cjk)
    assert any(char > "\U0001f000" for char in emoji)
    assert all("abcd" in text for text in (plain, accented, cjk, emoji))


@given(st.integers(0, 400))
def test_twins_agree_up_to_their_ends(words: int) -> None:
    left, right = texts.twins("n", words)
    head = texts.passage("n", words)
    assert left.startswith(head)
    assert right.startswith(head)
    assert left != right
    assert len(head.split()) == words + 1


@given(st.integers(1, 70), st.integers(0, 4))
def test_a_batch_is_all_different_and_holds_what_is_known(size: int, known: int) -> None:
    given_texts = texts.fresh("n")[:known]
    made, places = texts.batch("n", size, given_texts)
    assert len(made) == len(set(made)) == size
    if size >= known:
        assert [made[place] for place in places] == list(given_texts)
    else:
        assert places == []


def test_a_large_body_is_few_words() -> None:
    made = texts.padded("n", 32, 1_000_000)
    assert 999_000 < sum(len(text) for text in made) <= 1_000_000
    assert max(len(text.split()) for text in made) < 15


def test_anchors_find_each_other_by_words_alone() -> None:
    apart = texts.separation([embed(text, 256) for text in texts.anchor_texts()])
    assert (apart.nearest, apart.of) == (10, 10)
    assert not apart.weak
    assert apart.related > apart.closest_stranger > apart.strangers


def test_vectors_without_meaning_are_weak() -> None:
    apart = texts.separation([embed(str(number), 256) for number in range(10)])
    assert apart.weak
    same = texts.separation([[1.0, 0.0]] * 10)
    assert same.weak
    assert same.strangers == pytest.approx(1.0)
