"""One state and one sentence from hand-made evidence: the orders of seriousness and of proof."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.embedding.kinds import Kind as CallKind
from cpersona_cli.embedding.likeness import Thresholds, likeness, thresholds
from cpersona_cli.fit.model import Basis, Break, Compared, Likeness, Live, Located, Past, State
from cpersona_cli.fit.states import Evidence, Verdict, judge
from cpersona_cli.store.model import Census, Contents, Defect, Flaw, Form, Group, Kind

LIVE = Live(address="http://127.0.0.1:1/embed", mode="http", call=CallKind.OK, dim=64)
ONE, TWO = "1:" + "1" * 32, "1:" + "2" * 32


def group(rows: int = 100, width: int | None = 64, **fields: Any) -> Group:
    known: dict[str, Any] = {"table": "memories", "form": Form.VECTOR, "label": "", "agent": "atlas"}
    return Group(rows=rows, width=width, **{**known, **fields})


def census(*groups: Group, **fields: Any) -> Census:
    return Census(path=Path("/home/u/c.db"), schema=18, groups=groups or (group(),), **fields)


def row(cosine: float | None, number: int = 1, lines: Thresholds | None = None, **fields: Any) -> Compared:
    known: dict[str, Any] = {"kind": Kind.MEMORY, "created": "2026-03-04 11:20:00", "agent": "atlas", "label": ""}
    verdict = likeness(cosine, lines or Thresholds())
    return Compared(id=number, width=64, cosine=cosine, **{**known, "likeness": verdict, "characters": 9, **fields})


def judged(*cosines: float, **fields: Any) -> Verdict:
    rows = tuple(row(cosine, number) for number, cosine in enumerate(cosines))
    return judge(Evidence(census=census(), live=LIVE, compared=rows, **fields))


@pytest.mark.parametrize(
    ("cosines", "state"),
    [
        ((1.0, 1.0, 1.0), State.OK),
        ((0.99, 0.99, 0.9), State.OK),
        ((0.99, 0.9, 0.9), State.DRIFTED),
        ((0.9, 0.9, 0.4), State.DRIFTED),
        ((0.9, 0.4, 0.4), State.SWAPPED),
        ((1.0, 0.1, 0.1), State.MIXED),
        ((1.0, 1.0, 0.1), State.MIXED),
        ((1.0, 0.8, 0.1), State.MIXED),
        ((-0.1, 0.0, 0.1), State.SWAPPED),
    ],
)
def test_what_was_measured(cosines: Sequence[float], state: State) -> None:
    verdict = judged(*cosines)
    assert (verdict.state, verdict.basis) == (state, Basis.VECTORS)


def test_nearly_is_said_where_it_does_not_decide() -> None:
    assert judged(0.99, 0.99, 0.9).detail.endswith("(cosines: median 0.990, lowest 0.900 of 3); 1 of them only nearly")


def test_the_lines_of_the_endpoint_decide() -> None:
    """Two unlike texts of a model with a narrow cone are at 0.85: that is nothing in common."""
    lines = thresholds(1.0, 0.76)
    rows = tuple(row(0.85, number, lines) for number in range(5))
    verdict = judge(Evidence(census=census(), live=LIVE, lines=lines, compared=rows))
    assert verdict.state is State.SWAPPED


def test_labels_that_say_otherwise_are_mentioned() -> None:
    live = Live(address="", mode="http", call=CallKind.OK, dim=64, fingerprint=ONE)

    def detail(label: str, *cosines: float) -> str:
        rows = tuple(row(cosine, number, label=label) for number, cosine in enumerate(cosines))
        return judge(Evidence(census=census(), live=live, compared=rows)).detail

    assert detail(TWO, 1.0, 1.0).endswith("; their labels name another model")
    assert detail(ONE, 0.1, 0.1).endswith("; their labels name this one")
    assert "labels" not in detail(ONE, 1.0, 1.0) + detail(TWO, 0.1, 0.1) + detail("", 1.0, 0.1)


def test_too_few_that_could_be_compared_are_no_proof() -> None:
    refused = [row(None, number, why="the endpoint does not embed its text: no") for number in range(10, 20)]
    verdict = judge(Evidence(census=census(), live=LIVE, compared=(row(1.0), *refused)))
    assert verdict.state is State.UNKNOWN
    assert "only 1 of 11 stored texts could be compared: the endpoint does not embed its text: no" in verdict.detail


def test_one_that_does_not_fit_is_enough_also_then() -> None:
    refused = [row(None, number, why="no") for number in range(10, 20)]
    verdict = judge(Evidence(census=census(), live=LIVE, compared=(row(1.0), row(0.1, 2), *refused)))
    assert verdict.state is State.MIXED


def located(*changes: tuple[Compared, Compared], **fields: Any) -> Located:
    breaks = tuple(Break(kind=Kind.MEMORY, before=before, after=after, **fields) for before, after in changes)
    return Located(kind=Kind.MEMORY, breaks=breaks)


def test_where_it_changed_is_said() -> None:
    change = (row(0.1, 7), row(1.0, 8, created="2026-03-04 11:21:00"))
    detail = judged(0.1, 1.0, located=(located(change),)).detail
    assert detail.endswith(
        "; memories changed between 2026-03-04 11:20:00 (id 7, another model’s) "
        "and 2026-03-04 11:21:00 (id 8, this model’s)"
    )
    detail = judged(0.1, 1.0, located=(located(change, (row(1.0, 9), row(0.7, 11, created=""))),)).detail
    assert "changed 2 times, last between" in detail
    assert detail.endswith("an unknown time (id 11, near this model’s)")
    detail = judged(0.1, 1.0, located=(located(change, exact=False),)).detail
    assert "changed somewhere between" in detail
    detail = judged(0.1, 1.0, located=(Located(kind=Kind.EPISODE, interleaved=True),)).detail
    assert detail.endswith("episodes of both stand among each other, as two clients write them")
    detail = judged(0.1, 1.0, located=(Located(kind=Kind.MEMORY, isolated=(row(0.1, 7),)),)).detail
    assert detail.endswith("; in memories, id 7 differs from all around it")
    assert judged(0.1, 1.0, located=(Located(kind=Kind.MEMORY),)).detail.endswith("than the stored one")


def test_a_change_between_same_and_near_is_drift() -> None:
    change = (row(0.9, 7), row(1.0, 8))
    assert judged(0.9, 1.0, 1.0, located=(located(change),)).state is State.DRIFTED


@pytest.mark.parametrize(
    ("groups", "live", "state", "words"),
    [
        ((group(40, 768), group(10, 384)), 768, State.MIXED, "10 of 50 stored vectors have another width"),
        ((group(40, 768), group(10, 384)), 1024, State.CHANGED, "40 with 768 and 10 with 384; the endpoint makes 1024"),
        ((group(40, 768),), 1024, State.CHANGED, "all 40 stored vectors have 768 dimensions; the endpoint makes 1024"),
        ((group(40, 768), group(10, 384)), None, State.MIXED, "stored vectors are of 2 widths"),
        (
            (group(40, 768),),
            None,
            State.UNKNOWN,
            "40 stored vectors have 768 dimensions; what the endpoint makes could",
        ),
        ((group(1, 768),), None, State.UNKNOWN, "1 stored vector has 768 dimensions"),
        ((group(3, None, form=Form.NULL),), None, State.UNKNOWN, "no vectors are stored; 3 rows have none, and what"),
        ((group(1, None, form=Form.NULL),), 64, State.EMPTY, "no vectors are stored; 1 row has none"),
        ((group(0),), 64, State.EMPTY, "no vectors are stored"),
        ((group(1, 768),), 64, State.CHANGED, "the one stored vector has 768 dimensions; the endpoint makes 64"),
    ],
)
def test_widths(groups: tuple[Group, ...], live: int | None, state: State, words: str) -> None:
    endpoint = Live(address="", mode="http", call=CallKind.REFUSED, sentence="nothing listens", dim=live)
    verdict = judge(Evidence(census=census(*groups), live=endpoint))
    assert verdict.state is state
    assert words in verdict.detail


def test_a_width_that_fits_in_part_says_what_else_is_wrong() -> None:
    rows = (row(0.1, 1), row(0.2, 2), row(1.0, 3))
    verdict = judge(Evidence(census=census(group(90), group(10, 96)), live=LIVE, compared=rows))
    assert (verdict.state, verdict.basis) == (State.MIXED, Basis.WIDTH)
    assert "; of those as wide, 2 of 3 compared are another model’s too" in verdict.detail


def test_no_endpoint_asked_is_said_so() -> None:
    assert (
        judge(Evidence(census=census())).detail == "100 stored vectors have 64 dimensions; the endpoint was not asked"
    )
    empty = judge(Evidence(census=census(group(2, None, form=Form.NULL))))
    assert empty.detail == "no vectors are stored; 2 rows have none, and the endpoint was not asked"


@pytest.mark.parametrize("defect", [Defect.FLOAT64, Defect.BIG_ENDIAN])
def test_blobs_in_another_reading_are_unreadable(defect: Defect) -> None:
    contents = Contents(looked=10, total=100, flaws=(Flaw(table="memories", defect=defect, rows=6),))
    verdict = judge(Evidence(census=census(contents=contents), live=LIVE))
    assert verdict.state is State.UNREADABLE
    few = Contents(looked=10, total=100, flaws=(Flaw(table="memories", defect=defect, rows=5),))
    assert judge(Evidence(census=census(contents=few), live=LIVE)).state is State.UNKNOWN


def test_labels_are_shown_harmlessly() -> None:
    live = Live(address="", mode="api", call=CallKind.OK, dim=64, asked="nomic-embed-text")
    verdict = judge(Evidence(census=census(group(label="evil\x1b[2J")), live=live))
    assert (verdict.state, verdict.basis) == (State.SWAPPED, Basis.LABEL)
    assert "\x1b" not in verdict.detail
    assert verdict.detail.endswith("; no texts were compared")


def test_a_break_told_by_label_names_the_label() -> None:
    live = Live(address="", mode="http", call=CallKind.OK, dim=64, fingerprint=ONE)
    before, after = row(None, 3, label=TWO), row(None, 4, label=ONE)
    groups = (group(50, label=TWO), group(50, label=ONE))
    verdict = judge(
        Evidence(census=census(*groups), live=live, compared=(before, after), located=(located((before, after)),))
    )
    assert (verdict.state, verdict.basis) == (State.MIXED, Basis.LABEL)
    assert f"64 dimensions, “{TWO}”" in verdict.detail


@pytest.mark.parametrize(("holds", "state"), [(True, State.HEALED), (False, State.OK)])
def test_a_finished_job(holds: bool, state: State) -> None:
    past = Past(finished="2026-03-04 11:20:31", dim=64, label="", rows=100, holds=holds)
    verdict = judged(1.0, 1.0, past=past)
    assert verdict.state is state
    assert ("re-embedded on 2026-03-04 11:20 UTC; 2 stored texts" in verdict.detail) == holds
    # it is no proof by itself
    assert judged(0.1, 0.1, past=past).state is State.SWAPPED


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_worse_vectors_never_make_a_better_state(cosines: list[float], other: list[float]) -> None:
    """Lowering every cosine below the line of another model never ends in ok."""
    low = [min(value, 0.4) for value in cosines]
    assert judged(*low).state is State.SWAPPED
    assert judged(*cosines, *(min(value, 0.4) for value in other)).state is not State.OK


@given(st.floats(0.98, 1.0), st.integers(1, 30))
def test_equal_vectors_are_ok(cosine: float, count: int) -> None:
    assert judged(*([cosine] * count)).state is State.OK


def test_likeness_of_rows_without_a_cosine() -> None:
    assert row(None).likeness is Likeness.UNJUDGED
