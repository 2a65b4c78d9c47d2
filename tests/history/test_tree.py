"""The way through an edited conversation ends, and is the one to its end, whatever the tree looks like."""

from __future__ import annotations

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.history.tree import CIRCLE, GAP, latest, way

NAMES = [str(n) for n in range(12)]
# Any parent for any message: forests, circles, parents that are not there.
GRAPHS = st.dictionaries(st.sampled_from(NAMES), st.none() | st.sampled_from([*NAMES, "gone"]), min_size=1)


@given(GRAPHS, st.data())
def test_any_graph_has_a_way(parents: dict[str, str | None], data: st.DataObject) -> None:
    end = data.draw(st.sampled_from(sorted(parents)))
    taken = way(parents, end)
    assert taken.ids[-1] == end
    assert len(set(taken.ids)) == len(taken.ids)
    for before, after in zip(taken.ids, taken.ids[1:], strict=False):
        assert parents[after] == before
    first = parents[taken.ids[0]]
    assert taken.remarks == (() if first is None else (CIRCLE,) if first in taken.ids else (GAP,))


@given(st.lists(st.integers(0, 10), max_size=11))
def test_branches_are_the_other_ends(answers: list[int]) -> None:
    # Message n answers one of those before it: a tree.
    parents: dict[str, str | None] = {"0": None}
    for number, before in enumerate(answers, 1):
        parents[str(number)] = str(before % number)
    ends = [name for name in parents if name not in parents.values()]
    for end in ends:
        assert way(parents, end) == way(parents, end, roots=("x",))
        assert way(parents, end).branches == len(ends) - 1
        assert way(parents, end).ids[0] == "0"


def test_a_root_that_no_export_holds() -> None:
    assert way({"a": "root", "b": "a"}, "b", roots=("root",)).remarks == ()
    assert way({"a": "root", "b": "a"}, "b").remarks == (GAP,)


def test_the_latest_end() -> None:
    def at(hour: int) -> dt.datetime:
        return dt.datetime(2025, 1, 1, hour, tzinfo=dt.UTC)

    parents = {"q": None, "first": "q", "second": "q", "third": "q"}
    assert latest(parents, {"first": at(3), "second": at(2)}) == "first"
    assert latest(parents, {"first": at(3), "second": at(3)}) == "second"
    assert latest(parents, {}) == "third"
    assert latest({"a": "b", "b": "a"}, {"a": at(1)}) == "a"
    assert latest({}, {}) is None
