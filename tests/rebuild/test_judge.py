from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.endpoints_small import Answer, Request, embed, serving
from support.real_endpoints import Running
from support.scripted import HTTP, Script, Time, ended

from cpersona_cli.embedding.calling import Caller
from cpersona_cli.embedding.kinds import Kind as CallKind
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.sampling import embed_each
from cpersona_cli.embedding.stored import pack
from cpersona_cli.rebuild.judge import Item, judge, judged, part_of
from cpersona_cli.rebuild.judgement import Verdict

NAMES = ["Mira", "Jonas", "Ada", "Omar", "Lena", "Pavel", "Sofia", "Hugo", "Ines", "Tomas", "Aiko", "Noor"]
THINGS = ["lamp", "ladder", "kettle", "compass", "anchor", "violin", "parser", "ledger", "orchard", "invoice"]
TEXTS = [
    f"{one} keeps the {left} number {number} in the cellar, and the {right} of {other} stands behind {number * 7}."
    for number, (one, other, left, right) in enumerate(
        (one, other, THINGS[n % 10], THINGS[(n * 3 + 1) % 10])
        for n, (one, other) in enumerate((a, b) for a in NAMES for b in NAMES if a != b)
    )
]


def items(old: int | None, new: int | None, texts: Sequence[str] = TEXTS) -> list[Item]:
    """Rows with vectors of so many dimensions from the words of their texts."""

    def vector(text: str, width: int | None) -> bytes | None:
        return None if width is None else pack("http", embed(text, width))

    return [Item(text=text, old=vector(text, old), new=vector(text, new)) for number, text in enumerate(texts, 1)]


def http(url: str) -> Endpoint:
    return Endpoint(mode=Mode.HTTP, url=url)


WIDE, NARROW = 256, 12


def test_better_worse_and_the_same() -> None:
    with serving(width=WIDE) as wide, serving(width=NARROW) as narrow:
        there = judged(items(NARROW, WIDE), new=http(wide.url()), old=http(narrow.url()))
        back = judged(items(WIDE, NARROW), new=http(narrow.url()), old=http(wide.url()))
        stays = judged(items(WIDE, WIDE), new=http(wide.url()), old=http(wide.url()))
    assert (there.verdict, back.verdict, stays.verdict) == (Verdict.BETTER, Verdict.WORSE, Verdict.SAME)
    assert (there.ahead, there.behind) == (back.behind, back.ahead)
    assert there.ahead > 2 * there.behind
    assert there.new == back.old == stays.new == stays.old
    assert (stays.ahead, stays.behind, stays.chance) == (0, 0, 1)
    assert stays.agreement is not None
    assert stays.agreement.mean == 1
    assert there.agreement is not None
    assert 0.1 < there.agreement.mean < 0.9
    assert there.agreement == back.agreement
    assert there.new is not None
    assert (there.new.asked, there.new.rows) == (132, 132)
    assert there.new.low < there.new.first / 132 < there.new.high
    assert any(line.startswith("better on your memories") for line in there.sentences)
    assert any(line.startswith("worse on your memories") for line in back.sentences)
    assert any(
        line.startswith("the same, as far as this sample can tell, on your memories") for line in stays.sentences
    )


def test_figures_are_those_of_a_plain_computation() -> None:
    with serving(width=NARROW) as server:
        found = judged(items(WIDE, NARROW), new=http(server.url()))
    vectors = {width: [embed(text, width) for text in TEXTS] for width in (WIDE, NARROW)}

    def dot(left: Sequence[float], right: Sequence[float]) -> float:
        return sum(a * b for a, b in zip(left, right, strict=True))

    places = []
    for number, text in enumerate(TEXTS):
        words = text.split()
        half = words[: len(words) // 2] if number % 2 == 0 else words[len(words) // 2 :]
        query = embed(" ".join(half), NARROW)
        own = dot(query, vectors[NARROW][number])
        places.append(sum(dot(query, vector) >= own - 1e-6 for vector in vectors[NARROW]))
    assert found.new is not None
    assert found.new.first == places.count(1)
    assert found.new.within == sum(place <= 10 for place in places)
    assert found.new.reciprocal == pytest.approx(sum(1 / place for place in places if place <= 10) / len(places))


def test_neighbours_need_no_call_and_are_counted_without_the_old_model() -> None:
    with serving(width=WIDE) as server:
        found = judged(items(NARROW, WIDE), new=http(server.url()))
    assert (found.verdict, found.old, found.chance) == (Verdict.UNKNOWN, None, None)
    assert found.old_unknown == "no endpoint with the old model was named"
    assert found.new is not None
    assert found.agreement is not None
    assert found.texts_sent == 132
    assert found.sentences[1].startswith("old vectors could not be searched, so which is better is not known")
    assert found.sentences[2].endswith("that alone is neither good nor bad")


def test_rows_without_a_new_vector_are_embedded_first() -> None:
    told: list[tuple[str, int, int]] = []

    async def run(url: str) -> Any:
        return await judge(items(NARROW, None), new=http(url), tell=lambda *step: told.append(step))

    with serving(width=WIDE) as server:
        found = asyncio.run(run(server.url()))
        staged = judged(items(NARROW, WIDE), new=http(server.url()))
    assert (found.new, found.agreement) == (staged.new, staged.agreement)
    assert found.texts_sent == 2 * 132
    assert told[0] == ("rows", 64, 132)
    assert told[-1] == ("searches", 132, 132)


def turned(_request: Request, vectors: list[list[float]]) -> list[Any]:
    return [vector[::-1] for vector in vectors]


def test_only_the_model_of_the_stored_vectors_searches_them() -> None:
    with serving(width=WIDE) as new, serving(width=NARROW, after=turned) as other, serving(width=20) as wider:
        found = judged(items(NARROW, WIDE), new=http(new.url()), old=http(other.url()))
        assert (found.verdict, found.old) == (Verdict.UNKNOWN, None)
        assert found.old_unknown.startswith(f"{other.url()} is not what made the stored vectors (median cosine")
        assert len(other.calls) == 1
        found = judged(items(NARROW, WIDE), new=http(new.url()), old=http(wider.url()))
        assert found.old_unknown == f"{wider.url()} answers with 20 dimensions, and 12 are stored"
        gone = wider.url()
    found = judged(items(NARROW, None), new=http(gone), old=http(gone))
    assert found.old_unknown == "too few rows have a vector that can be read"
    assert found.new is None
    assert found.sentences[0] == "search with the new vectors could not be tried: nothing listens at this address"
    with serving(width=WIDE) as new:
        found = judged(items(NARROW, WIDE), new=http(new.url()), old=http(gone))
    assert found.old_unknown == f"{gone}: nothing listens at this address"


def test_an_old_endpoint_that_leaves_in_the_middle() -> None:
    def leaving(_request: Request, number: int) -> Answer | None:
        return Answer(503, {"error": {"message": "Loading model", "code": 503}}) if number > 1 else None

    with serving(width=WIDE) as new, serving(width=NARROW, before=leaving) as old:
        found = judged(items(NARROW, WIDE), new=http(new.url()), old=http(old.url()))
    assert (found.old, found.old_unknown) == (None, "the server is not ready yet")


def test_a_row_whose_old_vector_is_no_use_was_found_by_no_search() -> None:
    """The store of somebody who needs this tool: half the rows have vectors of another width, or none."""
    rows = [
        Item(text=row.text, old=change(row.old or b""), new=row.new)
        for row, change in zip(items(WIDE, WIDE), [_same, _none, _same, _short] * 33, strict=True)
    ]
    with serving(width=WIDE) as server:
        found = judged(rows, new=http(server.url()), old=http(server.url()))
    assert found.old is not None
    assert found.new is not None
    assert (found.old.asked, found.old.rows, found.new.rows) == (132, 66, 132)
    assert found.old.within <= 66 < found.new.within
    assert found.verdict is Verdict.BETTER
    assert found.agreement is not None
    assert (found.agreement.rows, found.agreement.asked) == (66, 60)


def _same(vector: bytes) -> bytes:
    return vector


def _none(_vector: bytes) -> None:
    return None


def _short(vector: bytes) -> bytes:
    return vector[:64]


def test_equal_texts_are_one_row_and_blank_ones_none() -> None:
    texts = [*TEXTS[:40], *TEXTS[:40], " ", "\n"]
    with serving(width=WIDE) as server:
        found = judged(items(WIDE, WIDE, texts), new=http(server.url()))
    assert found.new is not None
    assert (found.new.rows, found.new.asked) == (40, 40)


def test_texts_that_an_endpoint_refuses_are_left_out_on_the_new_side_only() -> None:
    with serving(width=WIDE, refuses_over=25) as server:
        rows = items(WIDE, None, [*TEXTS[:60], *("and so on " * 20 + text for text in TEXTS[60:80])])
        found = judged(rows, new=http(server.url()))
    assert found.new is not None
    assert found.new.rows == 60


def test_what_was_never_tried_counts_on_neither_side() -> None:
    time = Time()
    script = Script(time, *[(10.0, ended(CallKind.OK))] * 4, (0.1, ended(CallKind.REFUSED)))

    async def run() -> Any:
        return await judge(items(64, None), new=HTTP, factory=script, clock=time.clock)

    found = asyncio.run(run())
    assert found.texts_sent == 64
    assert found.agreement is not None
    assert found.agreement.rows == 64
    assert found.new is None


def test_the_time_is_kept() -> None:
    time = Time()

    async def run() -> Any:
        script = Script(time, (10.0, ended(CallKind.OK)))
        return await judge(items(64, None), new=HTTP, factory=script, clock=time.clock, budget=25.0)

    found = asyncio.run(run())
    assert (found.texts_sent, time.seconds) == (48, 30)
    assert found.sentences[0] == "search with the new vectors could not be tried: the time for it was over"


@pytest.mark.parametrize("count", [0, 1, 5, 15])
def test_few_rows_are_no_verdict(count: int) -> None:
    with serving(width=WIDE) as server:
        found = judged(items(WIDE, WIDE, TEXTS[:count]), new=http(server.url()), old=http(server.url()))
    assert (found.verdict, found.agreement) == (Verdict.UNKNOWN, None)
    if count:
        assert found.sentences[2].startswith("too few searches to compare")
    else:
        assert found.sentences == ("search with the new vectors could not be tried: no text is long enough",)


def test_a_sample_is_spread_over_all_rows() -> None:
    with serving(width=WIDE) as server:
        found = judged(items(None, WIDE), new=http(server.url()), queries=44)
        sent = [text for request in server.calls for text in request.texts]
    assert found.new is not None
    assert (found.new.asked, found.new.rows) == (44, 132)
    assert {text.split()[0] for text in sent if text[0].isupper()} >= set(NAMES[:4])


def test_wide_vectors_are_searched_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.rebuild.judge.WORK", 2 * 132 * (WIDE + NARROW) * 30)
    with serving(width=WIDE) as server:
        found = judged(items(NARROW, WIDE), new=http(server.url()))
    assert found.new is not None
    assert found.new.asked == 30


def test_damaged_vectors_stop_nothing() -> None:
    rows = items(NARROW, WIDE)
    bad = [b"", b"abc", struct.pack("<12f", *[0.0] * 12), struct.pack("<12f", *[float("nan")] * 12)]
    rows[:4] = [Item(text=row.text, old=vector, new=row.new) for row, vector in zip(rows, bad, strict=False)]
    with serving(width=WIDE) as server:
        found = judged(rows, new=http(server.url()))
    assert found.agreement is not None
    assert found.agreement.rows == 128


def test_new_vectors_of_another_width_than_the_endpoint_s_are_not_searched() -> None:
    with serving(width=32) as server:
        found = judged(items(NARROW, WIDE), new=http(server.url()))
    assert found.new is None
    assert found.sentences[0].endswith("the endpoint answers with another width than that of the new vectors")


PARTS: list[tuple[str, str, str]] = [
    ("one two three four five six", "one two three", "four five six"),
    ("kurz", "", ""),
    ("図書館の窓から港の灯りが見える。", "図書館の窓から港", "の灯りが見える。"),
    ("w" * 2000, "w" * 300, "w" * 300),
    ("  a\tb \n", "", ""),
]


@pytest.mark.parametrize(("text", "first", "second"), PARTS)
def test_the_parts_that_are_searched_for(text: str, first: str, second: str) -> None:
    assert (part_of(text, 0), part_of(text, 1)) == (first, second)


@given(st.text(), st.integers(0, 1))
def test_a_part_is_of_its_text(text: str, number: int) -> None:
    part = part_of(text, number)
    assert part in " ".join(text.split())
    assert len(part) <= 300


SWAPPED = [
    f"{one} taught {other} how to sail a boat, and afterwards {other} taught {one} how to bake bread."
    for one in NAMES
    for other in NAMES
    if one != other
]


@pytest.mark.parametrize(("turn", "verdict"), [(1, Verdict.BETTER), (-1, Verdict.WORSE)])
def test_a_model_of_sentences_is_better_than_one_of_words_where_the_order_counts(
    minilm: Running, supercat: Running, turn: int, verdict: Verdict
) -> None:
    """Each text has a twin with the same words in another order, which WordLlama cannot tell apart, and MiniLM can."""
    old, new = [http(supercat.url), http(minilm.url)][::turn]

    async def all_of(endpoint: Endpoint) -> list[bytes]:
        async with Caller(endpoint=endpoint) as caller:
            each = await embed_each(caller, SWAPPED, 120)
        return [pack(endpoint.mode, each.vectors[number]) for number in range(len(SWAPPED))]

    pairs: Callable[[], Any] = lambda: zip(SWAPPED, asyncio.run(all_of(old)), asyncio.run(all_of(new)), strict=True)  # noqa: E731
    rows = [Item(text=text, old=before, new=after) for number, (text, before, after) in enumerate(pairs())]
    found = judged(rows, new=new, old=old)
    assert found.verdict is verdict
    assert found.chance is not None
    assert found.chance < 1e-6
    words, sentences = (found.old, found.new)[::turn]
    assert words is not None
    assert sentences is not None
    assert words.first < 10
    assert sentences.first > 40
