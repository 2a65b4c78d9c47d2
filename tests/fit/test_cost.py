from __future__ import annotations

from pathlib import Path

import pytest

from cpersona_cli.embedding.kinds import Kind as CallKind
from cpersona_cli.fit.cost import advisory, damaged, lost
from cpersona_cli.fit.model import AgentCost, Live, State
from cpersona_cli.store.model import Census, Contents, Defect, Flaw, Form, Group


def census(*groups: Group, contents: Contents | None = None) -> Census:
    return Census(path=Path("c.db"), schema=18, groups=groups, contents=contents or Contents())


def group(agent: str, rows: int, width: int | None, *, table: str = "memories", form: Form = Form.VECTOR) -> Group:
    return Group(table=table, form=form, width=width, label="", agent=agent, rows=rows)


ROWS = (
    group("a", 10, 64),
    group("a", 4, None, form=Form.NULL),
    group("a", 1, None, form=Form.ODD),
    group("a", 2, 96, table="episodes"),
    group("a", 50, 8, table="record_blocks"),
    group("b", 7, 64),
    group("c", 9, 96),
)


def test_what_cannot_be_found_by_agent() -> None:
    assert lost(census(*ROWS), 64, {"a": 3, "b": 70}) == (
        AgentCost(agent="a", rows=17, lost=10, missing=5, width=2, foreign=3),
        AgentCost(agent="c", rows=9, lost=9, width=9),
        AgentCost(agent="b", rows=7, lost=7, foreign=7),
    )


def test_without_a_live_width_only_what_is_missing_is_lost() -> None:
    assert [(cost.agent, cost.lost) for cost in lost(census(*ROWS), None, {})] == [("a", 5), ("c", 0), ("b", 0)]


def test_damaged_vectors_are_estimated_where_not_all_were_looked_at() -> None:
    flaws = (
        Flaw(table="memories", defect=Defect.ZERO, rows=3),
        Flaw(table="episodes", defect=Defect.NON_FINITE, rows=2),
        Flaw(table="memories", defect=Defect.NOT_UNIT, rows=9),
        Flaw(table="record_nodes", defect=Defect.ZERO, rows=9),
    )
    assert damaged(census(contents=Contents(looked=50, total=50, flaws=flaws))) == 5
    assert damaged(census(contents=Contents(looked=50, total=500, flaws=flaws))) == 50
    assert damaged(census()) == 0


@pytest.mark.parametrize(
    ("live", "state", "words"),
    [
        (None, State.UNKNOWN, ""),
        ({"call": CallKind.DISABLED}, State.UNKNOWN, "a hint at the first recall"),
        (
            {"call": CallKind.REFUSED, "recorded": False, "error": "x"},
            State.UNKNOWN,
            "a fault, once two calls in a row",
        ),
        ({"call": CallKind.ZERO_VECTOR}, State.UNKNOWN, "nothing"),
        ({"call": CallKind.OK, "dim": 64}, State.CHANGED, "nothing, if it was started after the change"),
        ({"call": CallKind.OK, "dim": 64}, State.SWAPPED, "nothing: it takes every vector"),
        ({"call": CallKind.OK, "dim": 64}, State.DRIFTED, "nothing: it takes every vector"),
        ({"call": CallKind.OK, "dim": 64}, State.OK, "nothing"),
    ],
)
def test_what_the_server_will_say(live: dict[str, object] | None, state: State, words: str) -> None:
    endpoint = None if live is None else Live(address="", mode="http", **live)  # type: ignore[arg-type]
    assert advisory(endpoint, state).startswith(words)
