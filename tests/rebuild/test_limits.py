"""What refusals teach, and how many requests at a time are found to be worth it."""

from __future__ import annotations

import heapq
import random
from functools import lru_cache

import pytest

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Outcome, ServerView
from cpersona_cli.rebuild.batches import FRAME, Ceilings, Item, opening, packed, padded
from cpersona_cli.rebuild.limits import Limits, Senders, shorter, stated_tokens

_VIEW = ServerView(attempted=True, ok=False)


def refusal(kind: Kind, message: str = "", *, limit: int | None = None, status: int = 400) -> Outcome:
    return Outcome(kind=kind, attempted=True, server_view=_VIEW, status=status, server_message=message, limit=limit)


def items(count: int, tokens: int = 10, size: int = 50) -> list[Item]:
    return [Item("x" * size, b"", tokens, size) for _ in range(count)]


def limits() -> Limits:
    return Limits(64, 16_384, 1_000_000)


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        ("However, you requested 1451 tokens in the input", 1451),
        ("`inputs` must have less than 512 tokens. Given: 1451", 1451),
        ("input (1451 tokens) is too large to process (current batch size: 512)", 1451),
        ("maximum context length is 8192 tokens, however you requested 25701 tokens (25701 in your prompt)", 25701),
        ("the input length exceeds the context length", None),
        ("must have less than 512 tokens", None),
    ],
)
def test_the_tokens_a_refusal_states(message: str, tokens: int | None) -> None:
    assert stated_tokens(message) == tokens


def test_a_stated_number_of_texts_is_the_ceiling() -> None:
    known = limits()
    known.refused(refusal(Kind.BATCH_TOO_LARGE, limit=25), items(64))
    assert known.ceilings == Ceilings(25, 16_384, 1_000_000)
    assert known.learned == {"batch": 25}
    known.refused(refusal(Kind.BATCH_TOO_LARGE, limit=32), items(64))
    assert known.count == 25


@pytest.mark.parametrize("limit", [None, 0, 100])
def test_without_a_number_that_helps_it_is_half(limit: int | None) -> None:
    known = limits()
    known.refused(refusal(Kind.BATCH_TOO_LARGE, limit=limit), items(64))
    assert known.count == 32
    known.refused(refusal(Kind.BATCH_TOO_LARGE, limit=limit), items(64))
    assert known.count == 32
    known.refused(refusal(Kind.BATCH_TOO_LARGE, limit=limit), items(1))
    assert known.count == 1


def test_bytes_are_learned_where_bytes_were_too_many() -> None:
    known = limits()
    known.refused(refusal(Kind.BATCH_TOO_LARGE, status=413), items(64, size=1000))
    assert known.learned == {"bytes": (64_000 + FRAME) // 2}
    known = limits()
    known.refused(refusal(Kind.BATCH_TOO_LARGE, "Invalid JSON body"), items(64, size=20_000))
    assert known.learned == {"bytes": (64 * 20_000 + FRAME) // 2}


def test_tokens_of_a_request_are_scaled_by_what_the_server_counted() -> None:
    known = limits()
    said = "Requested 351929 tokens, max 300000 tokens per request"
    known.refused(refusal(Kind.BATCH_TOO_LARGE, said), items(60, tokens=200))
    assert known.learned == {"tokens": int(12_000 * 300_000 / 351_929 * 0.95)}
    known.refused(refusal(Kind.BATCH_TOO_LARGE, "max 300000 tokens per request"), items(10, tokens=100))
    assert known.tokens == 500


def test_one_text_in_a_request_where_lists_are_refused() -> None:
    known = limits()
    known.refused(refusal(Kind.NO_BATCHING), items(64))
    assert known.count == 1


def test_a_window_makes_long_texts_travel_alone() -> None:
    known = limits()
    known.window(refusal(Kind.INPUT_TOO_LARGE), items(8))
    assert known.alone == 0
    known.window(refusal(Kind.INPUT_TOO_LARGE, limit=512), items(8))
    assert (known.alone, known.learned) == (358, {"window": 512})
    known.window(refusal(Kind.INPUT_TOO_LARGE), items(1, tokens=300))
    assert known.alone == 300
    known.window(refusal(Kind.INPUT_TOO_LARGE), items(1, tokens=900))
    assert known.alone == 300


def test_how_much_of_a_long_text_is_kept() -> None:
    (one,) = items(1, tokens=1000, size=4000)
    said = "maximum context length is 500 tokens, however you requested 2000 tokens"
    assert shorter(one, refusal(Kind.INPUT_TOO_LARGE, said, limit=500)) == int(4000 * 0.25 * 0.95)
    assert shorter(one, refusal(Kind.INPUT_TOO_LARGE, limit=500)) == int(4000 * 0.5 * 0.95)
    assert shorter(one, refusal(Kind.INPUT_TOO_LARGE, limit=990)) == int(4000 * 0.9)
    assert shorter(one, refusal(Kind.INPUT_TOO_LARGE)) == 2000
    assert shorter(one, refusal(Kind.INPUT_TOO_LARGE, limit=2000)) == 2000


# How many at a time: an endpoint is simulated that takes 20 ms for a request and 0.1 ms for each padded token, give or
# take a tenth, on so many slots.


@lru_cache(maxsize=16)
def _batches(seed: int, count: int) -> tuple[int, ...]:
    """Padded tokens of batches in the order they are sent."""
    chance = random.Random(seed)

    def window(rows: int) -> list[Item]:
        return [Item("", b"", max(3, int(chance.lognormvariate(3.7, 0.8))), 1) for _ in range(rows)]

    ceilings = Ceilings(32, 16_384, 1_000_000)
    found = list(map(padded, opening(window(1024), ceilings)))
    while len(found) < count:
        found.extend(map(padded, packed(window(4096), ceilings)))
    return tuple(found[:count])


def _simulate(senders: Senders, slots: int, seed: int, count: int) -> tuple[int, float]:
    """The most requests at a time, and the seconds it took."""
    chance = random.Random(seed)
    waiting = list(_batches(seed, count))[::-1]
    free, under_way, now, most = [0.0] * slots, list[tuple[float, float, int]](), 0.0, 0
    while waiting or under_way:
        while waiting and len(under_way) < senders.count:
            tokens = waiting.pop()
            done = max(now, free[0]) + (0.02 + 0.0001 * tokens) * chance.uniform(0.9, 1.1)
            heapq.heapreplace(free, done)
            heapq.heappush(under_way, (done, now, tokens))
        now, sent, tokens = heapq.heappop(under_way)
        senders.answered(tokens, sent, now + 0.005)
        most = max(most, senders.count)
    return most, now


@pytest.mark.parametrize("seed", range(8))
def test_one_thing_at_a_time_never_gets_more_than_three(seed: int) -> None:
    senders = Senders(16)
    most, _ = _simulate(senders, 1, seed, 400)
    assert most == 3
    assert senders.count == 2


@pytest.mark.parametrize("slots", [4, 8, 16])
def test_many_at_a_time_are_used(slots: int) -> None:
    class Fixed(Senders):
        def answered(self, tokens: int, sent: float, now: float) -> None:
            pass

    shares = []
    for seed in range(3):
        fixed = Fixed(16)
        fixed.count = slots
        best = _simulate(fixed, slots, seed, 1000)[1]
        shares.append(best / _simulate(Senders(16), slots, seed, 1000)[1])
    assert sum(shares) / len(shares) > 0.9


def test_the_number_for_the_beginning_is_found() -> None:
    assert not Senders(16).settled
    assert Senders(2).settled
    senders = Senders(16)
    _simulate(senders, 1, 1, 80)
    assert senders.settled
    assert senders.count == 2


def test_the_cap_is_kept() -> None:
    for cap in (1, 2, 5):
        senders = Senders(cap)
        assert _simulate(senders, 16, 1, 300)[0] <= cap


def test_a_refusal_halves_and_growth_is_gentle_afterwards() -> None:
    senders = Senders(16)
    _simulate(senders, 16, 2, 300)
    grown = senders.count
    assert grown > 8
    assert senders.halve(1000.0)
    assert senders.count == grown // 2
    seen = set()
    now = 1000.0
    for _ in range(400):
        now += 0.1
        senders.answered(100, now - 0.1 * senders.count, now + 0.001)
        seen.add(senders.count)
    assert max(seen) == grown // 2 + 1  # no gain in this
    while senders.halve(now):
        pass
    assert senders.count == 1


def test_answers_near_the_timeout_allow_no_more() -> None:
    senders = Senders(16, timeout=1.0)
    now = 0.0
    for _ in range(200):
        now += 0.2
        senders.answered(100, now - 0.4, now)
    assert senders.count == 2


def test_what_was_sent_before_a_change_does_not_count() -> None:
    senders = Senders(16)
    senders.disturbed(10.0)
    for _ in range(100):
        senders.answered(100, 9.9, 10.1)
    assert senders.count == 2
