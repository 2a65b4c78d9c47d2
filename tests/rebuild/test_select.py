from __future__ import annotations

import math
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.embedding.kinds import Kind as CallKind
from cpersona_cli.embedding.likeness import Likeness
from cpersona_cli.fit.model import Break, Compared, Fit, Live, State
from cpersona_cli.rebuild.model import Only
from cpersona_cli.rebuild.select import BLANK, CURRENT, Range, current, damaged, foreign_ranges, selector
from cpersona_cli.record import replace
from cpersona_cli.store.job import Target
from cpersona_cli.store.model import Census, Kind, Row

DIM = 4
TARGET = Target(mode="http", url="http://127.0.0.1:8401/embed", model="", dim=DIM, fingerprint="new", label="new")
PLAIN = replace(TARGET, fingerprint="", label="")


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


GOOD = floats(1, 0, 0, 0)
VECTORS: dict[str, bytes | None] = {
    "good": GOOD,
    "none": None,
    "wide": floats(*[0.5] * 8),
    "empty": b"",
    "odd": b"\0" * 15,
    "zero": floats(0, 0, 0, 0),
    "nan": floats(math.nan, 0, 0, 0),
    "infinite": floats(math.inf, 0, 0, 0),
    "long": floats(3, 0, 0, 0),
    "turned": struct.pack(">4f", 0.5, 0.5, 0.5, 0.5),
}


def row(vector: bytes | None = GOOD, *, label: str = "", text: str = "A text.", identifier: int = 1) -> Row:
    return Row(kind=Kind.MEMORY, id=identifier, text=text, vector=vector, label=label)


def chosen(only: Only, *, unit: bool = True) -> set[str]:
    decide = selector(only, TARGET, unit=unit)
    return {name for name, vector in VECTORS.items() if not decide(row(vector))}


def test_each_choice_takes_the_rows_it_names() -> None:
    assert chosen(Only.ALL) == set(VECTORS)
    assert chosen(Only.MISSING) == {"none"}
    assert chosen(Only.MISMATCHED) == {"none", "wide", "empty", "odd"}
    assert chosen(Only.DAMAGED) == {"wide", "empty", "odd", "zero", "nan", "infinite", "long", "turned"}
    assert chosen(Only.FOREIGN) == {"wide", "empty", "odd"}


def test_where_no_vector_has_length_one_only_the_useless_are_damaged() -> None:
    assert chosen(Only.DAMAGED, unit=False) == {"empty", "odd", "zero", "nan", "infinite", "turned"}


def test_no_vector_is_no_damaged_one() -> None:
    assert not damaged(row(None))
    assert damaged(row(b""))


@pytest.mark.parametrize("only", Only)
@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"])
def test_blank_rows_are_never_chosen(only: Only, text: str) -> None:
    assert selector(only, TARGET)(row(None, text=text)) == BLANK


def test_text_unchanged_is_no_reason_to_skip() -> None:
    """Another label, no label, or no sound vector: the row gets a new one."""
    decide = selector(Only.ALL, TARGET, skip_current=True)
    assert decide(row(label="old")) == ""
    assert decide(row(label="")) == ""
    assert decide(row(label="new")) == CURRENT
    assert all(
        decide(row(vector, label="new")) == "" for name, vector in VECTORS.items() if name not in {"good", "long"}
    )


def test_all_means_all_unless_skipping_is_asked_for() -> None:
    assert selector(Only.ALL, TARGET)(row(label="new")) == ""


@pytest.mark.parametrize(
    ("target", "vouched"),
    [
        (TARGET, True),
        (replace(TARGET, mode="api", fingerprint="", model="new"), True),
        (replace(TARGET, fingerprint="", model="new"), False),  # the name of mode http reaches no backend
        (replace(TARGET, mode="api", fingerprint="", label=""), False),
    ],
)
def test_only_a_label_that_can_tell_vouches_for_a_row(target: Target, vouched: bool) -> None:
    assert current(row(label=target.label), target) is vouched


def test_labels_of_other_models_are_foreign_where_labels_tell() -> None:
    assert selector(Only.FOREIGN, TARGET)(row(label="old")) == ""
    assert selector(Only.FOREIGN, TARGET)(row(label="new")) != ""
    assert selector(Only.FOREIGN, TARGET)(row(None, label="old")) != ""
    assert selector(Only.FOREIGN, TARGET)(row(label="")) != ""
    assert selector(Only.FOREIGN, replace(PLAIN, model="mine", label="mine"))(row(label="old")) != ""


def test_ranges_of_ids_are_foreign_in_their_own_table_only() -> None:
    decide = selector(Only.FOREIGN, PLAIN, foreign=[Range(Kind.MEMORY, 10, 20)])
    assert [n for n in (9, 10, 20, 21) if not decide(row(identifier=n))] == [10, 20]
    assert decide(replace(row(identifier=15), kind=Kind.EPISODE)) != ""


def compared(identifier: int, likeness: Likeness, kind: Kind = Kind.MEMORY) -> Compared:
    return Compared(kind=kind, id=identifier, created="", agent="", label="", width=DIM, likeness=likeness, cosine=None)


def fit(*ones: Compared, breaks: tuple[Break, ...] = ()) -> Fit:
    live = Live(address="", mode="http", call=CallKind.OK)
    census = Census(path=Path("memory.db"), schema=21)
    return Fit(state=State.MIXED, census=census, live=live, compared=ones, breaks=breaks)


SAME, OTHER = Likeness.SAME, Likeness.OTHER


def test_a_break_splits_a_table_and_the_gap_counts_as_foreign() -> None:
    old, new = compared(40, OTHER), compared(44, SAME)
    found = foreign_ranges(fit(old, new, breaks=(Break(kind=Kind.MEMORY, before=old, after=new),)))
    assert found == (Range(Kind.MEMORY, 0, 43),)


def test_several_breaks_and_a_lone_foreign_row() -> None:
    ones = [compared(*pair) for pair in ((10, SAME), (11, OTHER), (30, OTHER), (31, SAME), (50, OTHER), (60, SAME))]
    breaks = (
        Break(kind=Kind.MEMORY, before=ones[2], after=ones[3]),
        Break(kind=Kind.MEMORY, before=ones[0], after=ones[1]),
    )
    assert foreign_ranges(fit(*ones, breaks=breaks)) == (Range(Kind.MEMORY, 11, 30), Range(Kind.MEMORY, 50, 50))


def test_the_rows_behind_the_last_break() -> None:
    ones = [compared(10, SAME), compared(12, OTHER)]
    (found,) = foreign_ranges(fit(*ones, breaks=(Break(kind=Kind.MEMORY, before=ones[0], after=ones[1]),)))
    assert (found.first, found.last > 10**18) == (11, True)


def test_without_a_clean_break_the_whole_table_is_taken() -> None:
    ones = (compared(1, SAME), compared(2, OTHER), compared(3, SAME), compared(1, SAME, Kind.EPISODE))
    (found,) = foreign_ranges(fit(*ones))
    assert (found.kind, found.first) == (Kind.MEMORY, 0)
    assert foreign_ranges(fit(ones[0], ones[3])) == ()
    assert foreign_ranges(fit(ones[0], compared(5, Likeness.WIDTH), compared(6, Likeness.NEAR))) == ()
    (found,) = foreign_ranges(replace(fit(ones[0]), interleaved=(Kind.EPISODE,)))
    assert (found.kind, found.first) == (Kind.EPISODE, 0)


@given(st.lists(st.sampled_from([SAME, OTHER]), min_size=1, max_size=30))
def test_every_foreign_row_is_in_a_range_and_no_other_model_s_neighbour(truth: list[Likeness]) -> None:
    ones = [compared(10 * (place + 1), likeness) for place, likeness in enumerate(truth)]
    breaks = tuple(
        Break(kind=Kind.MEMORY, before=left, after=right)
        for left, right in pairwise(ones)
        if left.likeness is not right.likeness
    )
    ranges = foreign_ranges(fit(*ones, breaks=breaks))
    inside = [one.likeness for one in ones if any(found.first <= one.id <= found.last for found in ranges)]
    assert inside == [OTHER] * truth.count(OTHER)
