"""The search for changes of writer, on tables that are only numbers."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.embedding.likeness import Likeness
from cpersona_cli.fit.locate import MOST_BREAKS, NEIGHBOURS, locate
from cpersona_cli.fit.model import Compared, Located
from cpersona_cli.store.model import Kind, Row

Wrote = Callable[[int], str]


class Table:
    """Rows by id, and who wrote each: ``this`` model, ``another``, one of another width, or nobody can tell."""

    def __init__(self, ids: Sequence[int], wrote: Wrote, looks: int | None = None) -> None:
        self.ids, self.wrote, self.left = sorted(ids), wrote, looks
        self.looks = self.seen = 0

    def near(self, middle: int, count: int) -> Sequence[Row]:
        nearest = sorted(self.ids, key=lambda i: (abs(i - middle), i))[:count]
        return [Row(kind=Kind.MEMORY, id=i, text="") for i in sorted(nearest)]

    async def look(self, rows: Sequence[Row]) -> Sequence[Compared]:
        if self.left is not None and self.looks >= self.left:
            return ()
        self.looks += 1
        self.seen += len(rows)
        return [self.row(row.id) for row in rows]

    def row(self, identifier: int) -> Compared:
        verdict = {"this": Likeness.SAME, "another": Likeness.OTHER, "": Likeness.UNJUDGED}
        word = self.wrote(identifier)
        return Compared(
            kind=Kind.MEMORY,
            id=identifier,
            created="",
            agent="",
            label="",
            width=int(word) if word.isdigit() else 64,
            likeness=verdict.get(word, Likeness.WIDTH),
        )

    def search(self, sample: int = 12) -> Located:
        step = max(1, (len(self.ids) - 1) // (sample - 1))
        chosen = [*self.ids[::step], self.ids[-1]]
        return asyncio.run(locate(Kind.MEMORY, [self.row(i) for i in dict.fromkeys(chosen)], self.look, self.near))

    def found(self, sample: int = 12) -> list[tuple[int, int]]:
        located = self.search(sample)
        assert not located.interleaved
        assert all(change.exact for change in located.breaks)
        return [(change.before.id, change.after.id) for change in located.breaks]


def changing(*at: int, words: Sequence[str] = ("this", "another")) -> Wrote:
    """The writer changes with each of these ids."""
    return lambda i: words[sum(i >= place for place in at) % len(words)]


@pytest.mark.parametrize("first", [1, 2, 3, 499, 500, 501, 777, 998, 999])
def test_one_change_is_found_to_the_row(first: int) -> None:
    table = Table(range(1000), changing(first))
    assert table.found() == [(first - 1, first)]
    assert table.looks <= math.log2(1000 / 11) + 3
    assert table.seen <= NEIGHBOURS * table.looks + NEIGHBOURS


def test_a_million_rows_cost_a_few_looks_more() -> None:
    class Million(Table):
        def near(self, middle: int, count: int) -> Sequence[Row]:
            low = max(0, middle - count // 2)
            return [Row(kind=Kind.MEMORY, id=i, text="") for i in range(low, min(low + count, 1_000_000))]

    table = Million(range(1_000_000), changing(654_321))
    assert table.found(24) == [(654_320, 654_321)]
    assert table.looks <= 18


def test_all_of_one_writer_is_no_change_and_costs_nothing() -> None:
    table = Table(range(1000), changing())
    assert (table.found(), table.looks) == ([], 0)


def test_there_and_back() -> None:
    assert Table(range(1000), changing(300, 620)).found() == [(299, 300), (619, 620)]


def test_several_writers() -> None:
    wrote = changing(200, 450, 460, 800, words=("this", "another", "32"))
    assert Table(range(1000), wrote).found(40) == [(199, 200), (449, 450), (459, 460), (799, 800)]


def test_rows_that_cannot_be_told_stand_between() -> None:
    wrote = changing(500)
    table = Table(range(1000), lambda i: "" if 480 <= i < 520 or i % 7 == 0 else wrote(i))
    assert table.found() == [(479, 520)]


def test_too_many_rows_that_cannot_be_told_leave_it_inexact() -> None:
    wrote = changing(500)
    located = Table(range(1000), lambda i: "" if 300 <= i < 700 else wrote(i)).search(100)
    (change,) = located.breaks
    assert (change.exact, change.before.id < 300, change.after.id >= 700) == (False, True, True)


def test_the_end_of_time_leaves_it_inexact() -> None:
    table = Table(range(1000), changing(555), looks=3)
    (change,) = table.search().breaks
    assert not change.exact
    assert change.before.id < 555 <= change.after.id
    assert change.after.id - change.before.id < 40


def test_two_writers_at_the_same_time() -> None:
    located = Table(range(1000), lambda i: "this" if i % 2 else "another").search(13)
    assert (located.interleaved, located.breaks) == (True, ())


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_two_writers_by_chance(share: float, seed: int) -> None:
    chance = random.Random(seed)
    drawn = ["this" if chance.random() < share else "another" for _ in range(2000)]
    located = Table(range(2000), drawn.__getitem__).search(20)
    assert (located.interleaved, located.breaks) == (True, ())


def test_a_few_rows_of_another_writer_among_many_are_no_changes() -> None:
    """The sampled ones among them are named."""
    table = Table(range(1000), lambda i: "another" if i % 90 == 0 and i % 180 else "this")
    located = table.search(12)
    assert (located.interleaved, located.breaks) == (True, ())
    assert [row.id for row in located.isolated] == [90, 270, 450, 630, 810, 990][: len(located.isolated)]


def test_one_odd_row_is_named() -> None:
    located = Table(range(1000), lambda i: "another" if i == 180 else "this").search(12)
    assert (located.interleaved, located.breaks, [row.id for row in located.isolated]) == (False, (), [180])


def test_odd_rows_near_a_change_do_not_hide_it() -> None:
    wrote = changing(500)
    other = {"this": "another", "another": "this"}
    table = Table(range(1000), lambda i: other[wrote(i)] if i in {492, 507} else wrote(i))
    assert table.found() == [(499, 500)]


def test_the_newest_row_alone_is_a_change() -> None:
    assert Table(range(1000), changing(999)).found() == [(998, 999)]


@given(
    st.sets(st.integers(1, 100_000), min_size=2, max_size=300),
    st.data(),
)
def test_one_change_in_any_table_is_found_to_the_row(ids: set[int], data: st.DataObject) -> None:
    ordered = sorted(ids)
    first = data.draw(st.sampled_from(ordered[1:]))
    table = Table(ordered, changing(first))
    assert table.found() == [(ordered[ordered.index(first) - 1], first)]
    assert table.looks <= math.log2(100_000) + 4


@given(st.lists(st.sampled_from(["this", "another", "32", ""]), min_size=1, max_size=120), st.integers(2, 30))
def test_any_table_ends_and_what_it_says_is_true(words: list[str], sample: int) -> None:
    table = Table(range(len(words)), words.__getitem__)
    located = table.search(sample)
    assert len(located.breaks) <= MOST_BREAKS
    for change in located.breaks:
        assert words[change.before.id] != words[change.after.id]
        odd = {row.id for row in located.isolated}
        between = [i for i in range(change.before.id + 1, change.after.id) if i not in odd]
        if change.exact:
            assert {words[i] for i in between} <= {""}
