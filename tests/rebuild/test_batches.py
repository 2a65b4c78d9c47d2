"""Which texts travel together: each exactly once, no ceiling broken, little padding."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fetching import rows

from cpersona_cli.rebuild.batches import (
    CYCLE,
    FRAME,
    Ceilings,
    Item,
    estimate_tokens,
    halves,
    interleave,
    item,
    opening,
    pack,
    packed,
    padded,
)

#: Tokens of a word-piece vocabulary of English, of a unigram vocabulary of a hundred languages, and of a byte-pair one.
_MEASURED = {
    "The user prefers short answers and asked that the assistant never send mail without asking first.": (20, 21, 20),
    '{"id": 1234, "created_at": "2026-11-30T20:35:53Z", "tags": ["a","b"], "ok": true, "score": 0.98231}': (62, 57, 62),
    "Пользователь предпочитает краткие ответы и просил никогда не отправлять письма без разрешения.": (83, 21, 33),
    "用户喜欢简短的回答,并要求在未经许可的情况下绝不要发送邮件。": (32, 21, 48),
    "ユーザーは短い返事を好み、許可なくメールを送らないように頼みました。": (32, 21, 42),
    "ผู้ใช้ชอบคำตอบสั้น ๆ และขอว่าอย่าส่งอีเมลโดยไม่ได้รับอนุญาต": (5, 17, 67),
}


@pytest.mark.parametrize("text", _MEASURED)
def test_an_estimate_lies_among_what_real_tokenizers_make_of_it(text: str) -> None:
    measured = _MEASURED[text]
    assert min(measured) * 0.8 <= estimate_tokens(text) <= max(measured) * 1.3


@given(st.text(max_size=200), st.text(max_size=50))
def test_more_text_is_never_fewer_tokens(text: str, more: str) -> None:
    assert 1 <= estimate_tokens(text) <= estimate_tokens(text + more) <= 2 * len(text + more) + 3


def test_half_a_character_is_estimated_and_cannot_be_sent() -> None:
    (row,) = rows("half \ud83d of it")
    assert estimate_tokens(row.text) > 1
    with pytest.raises(UnicodeEncodeError):
        item(row)


@given(st.lists(st.text(min_size=1, max_size=40), max_size=40))
def test_the_size_is_what_the_text_takes_in_a_request(texts: list[str]) -> None:
    items = [item(row) for row in rows(*texts)]
    body = json.dumps({"texts": texts}, ensure_ascii=False, separators=(",", ":")).encode()
    assert len(body) <= FRAME + sum(one.size for one in items) <= len(body) + FRAME


def _items(lengths: list[int]) -> list[Item]:
    return [Item(f"{number}", b"%d" % number, tokens, 4 * tokens) for number, tokens in enumerate(lengths)]


_LENGTHS = st.lists(st.integers(1, 5000), max_size=300)
_CEILINGS = st.builds(
    Ceilings, st.integers(1, 64), st.integers(1, 20_000), st.integers(FRAME, 60_000), st.integers(0, 6000)
)


@given(_LENGTHS, _CEILINGS)
@settings(max_examples=200, deadline=None)
def test_every_text_once_and_no_ceiling_broken(lengths: list[int], ceilings: Ceilings) -> None:
    items = _items(lengths)
    for arranged in (pack, packed, opening):
        batches = arranged(items, ceilings)
        assert sorted(id(one) for batch in batches for one in batch) == sorted(map(id, items))
        for batch in batches:
            assert batch
            if len(batch) > 1:
                assert len(batch) <= ceilings.count
                assert padded(batch) <= ceilings.tokens
                assert FRAME + sum(one.size for one in batch) <= ceilings.size
                assert not ceilings.alone or max(one.tokens for one in batch) < ceilings.alone


@given(_LENGTHS, _CEILINGS)
@settings(deadline=None)
def test_a_batch_is_closed_only_where_the_next_text_would_break_a_ceiling(
    lengths: list[int], ceilings: Ceilings
) -> None:
    batches = pack(_items(lengths), ceilings)
    for batch, following in pairwise(batches):
        one = following[0]
        assert (
            len(batch) == ceilings.count
            or (len(batch) + 1) * one.tokens > ceilings.tokens
            or FRAME + sum(it.size for it in batch) + one.size > ceilings.size
            or 0 < ceilings.alone <= one.tokens
        )


@given(st.lists(st.integers(1, 500), min_size=2, max_size=300))
def test_halves_are_the_whole(lengths: list[int]) -> None:
    items = _items(lengths)
    short, long = halves(items)
    assert short + long == items
    assert 0 <= len(long) - len(short) <= 1


@pytest.mark.parametrize(("median", "spread"), [(40, 0.9), (120, 0.8)])
def test_padding_costs_little(median: int, spread: float) -> None:
    chance = random.Random(3)
    lengths = [min(2000, max(2, int(median * chance.lognormvariate(0, spread)))) for _ in range(4096)]
    batches = pack(_items(lengths), Ceilings(32, 16_384, 1_000_000))
    assert sum(map(padded, batches)) / sum(lengths) < 1.08


def test_any_stretch_of_batches_has_short_and_long_ones() -> None:
    batches = [[one] for one in _items(list(range(1, 61)))]
    mixed = [batch[0].tokens for batch in interleave(batches)]
    for start in range(0, len(mixed) - CYCLE, CYCLE):
        stretch = sorted(mixed[start : start + CYCLE])
        assert [tokens * CYCLE // 61 for tokens in stretch] == list(range(CYCLE))


def test_the_opening_is_small_and_alike() -> None:
    lengths = list(range(1, 1025))
    random.Random(1).shuffle(lengths)
    batches = opening(_items(lengths), Ceilings(32, 100_000, 1_000_000))
    assert [len(batch) for batch in batches[:72]] == [8] * 72
    assert {len(batch) for batch in batches[72:]} == {32}
    first = [batch[0].tokens for batch in batches[:12]]
    assert all(abs(tokens - 512) < 64 for tokens in first)
    assert abs(sum(first) / len(first) - 512) < 16


def test_a_shortened_text_keeps_the_digest_of_the_stored_one() -> None:
    (row,) = rows("one two three four five six seven")
    one = item(row)
    before = (one.digest, one.tokens, one.size)
    one.shorten(7)
    assert (one.text, one.digest, one.cut) == ("one two", before[0], True)
    assert one.tokens < before[1]
    assert one.size == 10
