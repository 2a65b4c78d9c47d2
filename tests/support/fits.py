"""Censuses and fits made by hand, for traps and reports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from support.traps import MACHINE, reading

from cpersona_cli.embedding.kinds import Kind as CallKind
from cpersona_cli.embedding.likeness import Thresholds
from cpersona_cli.fit.model import AgentCost, Basis, Break, Compared, Fit, Likeness, Live, Past, State
from cpersona_cli.install.model import Discovery
from cpersona_cli.record import replace
from cpersona_cli.store.model import Census, Contents, Defect, Flaw, Form, Group, IndexFile, Kind
from cpersona_cli.traps.model import Database, Facts, Judged, Target

DB = Path("/home/u/memory.db")
URL = "http://127.0.0.1:8401/embed"


def group(
    rows: int,
    width: int | None = 768,
    *,
    table: str = "memories",
    label: str = "",
    agent: str = "atlas",
    oldest: str = "2026-01-05 09:30:00",
    newest: str = "2026-03-20 18:00:00",
    form: Form | None = None,
) -> Group:
    """Rows alike in everything; without a width they have no vector."""
    shape = form or (Form.NULL if width is None else Form.VECTOR)
    return Group(
        table=table, form=shape, width=width, label=label, agent=agent, rows=rows, first=1, last=rows,
        oldest=oldest, newest=newest,
    )  # fmt: skip


def census(*groups: Group, flaws: Iterable[Flaw] = (), indexes: Iterable[IndexFile] = (), **fields: object) -> Census:
    """What was counted; the contents of all vectors were read."""
    total = sum(one.rows for one in groups if one.form is Form.VECTOR and one.table in {"memories", "episodes"})
    counted = Census(
        path=DB,
        schema=21,
        groups=groups,
        contents=Contents(looked=total, total=total, flaws=tuple(flaws), norms={1.0: total} if total else {}),
        indexes=tuple(indexes),
    )
    return replace(counted, **fields)


def live(dim: int | None = 768, **fields: object) -> Live:
    """An endpoint that answered, or with no ``dim`` one that did not."""
    call, sentence = (CallKind.OK, "") if dim else (CallKind.REFUSED, "nothing listens at this address")
    made = Live(
        address=URL, mode="http", call=call, sentence=sentence, dim=dim,
        recorded=dim is not None, calls=3,
    )  # fmt: skip
    return replace(made, **fields)


def row(
    identifier: int,
    likeness: Likeness = Likeness.SAME,
    *,
    kind: Kind = Kind.MEMORY,
    width: int = 768,
    created: str = "",
) -> Compared:
    cosine = {Likeness.SAME: 0.9999, Likeness.NEAR: 0.87, Likeness.OTHER: 0.03}.get(likeness)
    return Compared(
        kind=kind, id=identifier, created=created or f"2026-03-{identifier % 28 + 1:02d} 11:20:30", agent="atlas",
        label="", width=width, likeness=likeness, cosine=cosine, characters=40,
        why="the text is refused" if likeness is Likeness.UNJUDGED else "",
    )  # fmt: skip


def fit(state: State, counted: Census, **fields: object) -> Fit:
    """A fit of an endpoint that answers with 768 dimensions."""
    made = Fit(
        state=state,
        census=counted,
        basis=Basis.VECTORS,
        stored_dim=next(iter(counted.widths()), None),
        expected_dim=768,
        live=live(),
        advisory="nothing",
    )
    return replace(made, **fields)


def facts(made: Fit, *, target: Target | None = None, options: tuple[str, ...] = ()) -> Facts:
    """What ``dimension`` knows of one pair."""
    judged = Judged(path=DB, label="Claude Code (user)", fit=made, target=target, options=options)
    database = Database(path=DB, reading=reading(str(DB)), census=made.census)
    return Facts(machine=MACHINE, discovery=Discovery((), ()), databases=(database,), fits=(judged,))


OK = fit(
    State.OK,
    census(group(40), group(5, table="episodes")),
    detail="stored and live vectors are 768 wide and of one model",
    compared=tuple(row(number) for number in range(1, 13)),
    thresholds=Thresholds(same=0.98, other=0.5, repeat=0.99999, strangers=0.05),
    median=0.9999,
    lowest=0.9991,
    lost=(AgentCost(agent="atlas", rows=45, lost=0),),
    texts_sent=12,
)

CHANGED = fit(
    State.CHANGED,
    census(group(40, 384), group(5, 384, table="episodes", agent="borealis")),
    detail="stored vectors are 384 wide, the endpoint makes 768",
    lost=(AgentCost(agent="atlas", rows=40, lost=40, width=40), AgentCost(agent="borealis", rows=5, lost=5, width=5)),
)

#: A fallback model wrote for two weeks, and three rows wait for their vector.
MIXED = fit(
    State.MIXED,
    census(
        group(30, newest="2026-03-04 11:20:30"),
        group(10, agent="borealis", newest="2026-03-03 08:00:00"),
        group(10, 384, label="fallback-minilm", oldest="2026-03-04 11:41:00", newest="2026-03-19 17:00:00"),
        group(3, None),
        group(5, table="episodes"),
    ),
    detail="10 of 55 vectors are 384 wide, the endpoint makes 768",
    lost=(
        AgentCost(agent="atlas", rows=48, lost=13, missing=3, width=10),
        AgentCost(agent="borealis", rows=10, lost=0),
    ),
    compared=tuple(
        row(number, Likeness.SAME if number < 41 else Likeness.WIDTH, width=768 if number < 41 else 384)
        for number in range(1, 51, 3)
    ),
    thresholds=Thresholds(same=0.98, other=0.5, repeat=0.99999, strangers=0.05),
    median=0.9999,
    lowest=0.9991,
    breaks=(
        Break(
            kind=Kind.MEMORY,
            before=row(40, created="2026-03-04 11:20:30"),
            after=row(41, Likeness.WIDTH, width=384, created="2026-03-04 11:41:00"),
            rows_before=40,
            rows_after=10,
        ),
    ),
    texts_sent=14,
)

FOREIGN = fit(
    State.MIXED,
    census(group(50)),
    detail="about half of the vectors are another model's",
    foreign={Kind.MEMORY: 20},
    compared=tuple(row(number, Likeness.SAME if number <= 30 else Likeness.OTHER) for number in range(2, 51, 2)),
    thresholds=Thresholds(same=0.98, other=0.5, repeat=0.99999, strangers=0.05),
    median=0.9999,
    lowest=0.03,
    breaks=(
        Break(
            kind=Kind.MEMORY,
            before=row(30, created="2026-03-04 11:20:30"),
            after=row(31, Likeness.OTHER, created="2026-03-04 11:41:00"),
            rows_before=30,
            rows_after=20,
        ),
    ),
    lost=(AgentCost(agent="atlas", rows=50, lost=20, foreign=20),),
    texts_sent=30,
)

SWAPPED = fit(
    State.SWAPPED,
    census(group(50)),
    detail="the width fits, the model does not",
    foreign={Kind.MEMORY: 50},
    compared=tuple(row(number, Likeness.OTHER) for number in range(1, 25)),
    thresholds=Thresholds(same=0.98, other=0.5, repeat=0.99999, strangers=0.05),
    median=0.03,
    lowest=0.01,
    lost=(AgentCost(agent="atlas", rows=50, lost=50, foreign=50),),
    texts_sent=24,
)

DRIFTED = fit(
    State.DRIFTED,
    census(group(50)),
    detail="the vectors are near the stored ones, not the same",
    compared=tuple(row(number, Likeness.NEAR) for number in range(1, 25)),
    thresholds=Thresholds(same=0.98, other=0.5, repeat=0.99999, strangers=0.05),
    median=0.87,
    lowest=0.8,
    lost=(AgentCost(agent="atlas", rows=50, lost=0),),
    texts_sent=24,
)

DAMAGED = fit(
    State.OK,
    census(
        group(44),
        group(1, None, form=Form.TEXT),
        flaws=(
            Flaw(table="memories", defect=Defect.ZERO, rows=5, ids=(4, 9, 12, 30, 31)),
            Flaw(table="memories", defect=Defect.NOT_UNIT, rows=2, ids=(7, 8)),
        ),
        contents=Contents(
            looked=44, total=44, norms={0.0: 5, 0.91: 1, 1.0: 37, 3.0: 1},
            flaws=(
                Flaw(table="memories", defect=Defect.ZERO, rows=5, ids=(4, 9, 12, 30, 31)),
                Flaw(table="memories", defect=Defect.NOT_UNIT, rows=2, ids=(7, 8)),
            ),
        ),
    ),
    detail="stored and live vectors are 768 wide and of one model",
    damaged=5,
    lost=(AgentCost(agent="atlas", rows=45, lost=1, missing=1),),
)  # fmt: skip

EMPTY = fit(State.EMPTY, census(), stored_dim=None, detail="nothing is stored yet")

DOWN = fit(
    State.UNKNOWN,
    census(group(40)),
    basis=Basis.STORED,
    expected_dim=None,
    live=live(None),
    detail="nothing listens at this address; the stored vectors are all 768 wide",
)

HEALED = replace(
    OK,
    state=State.HEALED,
    past=Past(finished="2026-03-21T10:00:00+00:00", dim=768, label="", rows=45, holds=True),
)

ALL = {
    "ok": OK, "changed": CHANGED, "mixed": MIXED, "foreign": FOREIGN, "swapped": SWAPPED, "drifted": DRIFTED,
    "damaged": DAMAGED, "empty": EMPTY, "down": DOWN, "healed": HEALED,
}  # fmt: skip
