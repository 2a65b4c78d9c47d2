"""What stands in the vectors' places, as findings; for the doctor too, where it has read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.fit_stores import Written, store_of
from support.fits import DB, census, group
from support.traps import MACHINE, Case, outcome, reading

from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Discovery
from cpersona_cli.store.model import Census, Contents, Defect, Flaw, Form, IndexFile
from cpersona_cli.store.reading import State
from cpersona_cli.traps.gather import Selection, gather
from cpersona_cli.traps.model import Database, Facts
from cpersona_cli.traps.vectors_stored import TRAPS, rows_of


def known(counted: Census | None, state: State = State.OK) -> Facts:
    database = Database(path=DB, reading=reading(str(DB), state), census=counted)
    return Facts(machine=MACHINE, discovery=Discovery((), ()), databases=(database,))


def flaw(defect: Defect, *, table: str = "memories", rows: int = 2, ids: tuple[int, ...] = (3, 7)) -> Flaw:
    return Flaw(table=table, defect=defect, rows=rows, ids=ids)


def with_flaws(*found: Flaw, **fields: Any) -> Facts:
    return known(census(group(50), flaws=found, **fields))


def blocks(width: int, table: str = "record_blocks", rows: int = 87) -> Any:
    return group(rows, width, table=table, oldest="", newest="")


def index(width: int | None, **fields: Any) -> Facts:
    name = f"{DB.name}.memories.vecindex"
    return known(census(group(50, 96), indexes=[IndexFile(name=name, size=900, width=width, rows=50, **fields)]))


def case(name: str, what: str, facts: Facts, state: str = "findings", says: str | tuple[str, ...] = ()) -> Case:
    return Case(f"vectors.{name}", what, facts, state, says)


CASES = (
    case("unreadable", "vectors", known(census(group(3))), "pass"),
    case("unreadable", "nothing is no fault", known(census(group(3, None))), "pass"),
    case(
        "unreadable",
        "three forms in two tables",
        known(
            census(
                group(1, None, form=Form.TEXT),
                group(2, None, form=Form.TEXT, table="episodes"),
                group(4, None, form=Form.ODD),
                group(1, None, form=Form.EMPTY),
            )
        ),
        says=(
            "1 memory and 2 episodes with text where a vector should be",
            "1 memory with a vector without a single number",
            "4 memories with a vector of a length that is no whole number",
        ),
    ),
    case(
        "unreadable", "blocks are another matter", known(census(group(3), group(1, 3, table="record_blocks"))), "pass"
    ),
    case("zero", "five", with_flaws(flaw(Defect.ZERO)), says="2 memories have a vector of nothing but zeros: id 3, 7"),
    case("zero", "others", with_flaws(flaw(Defect.NON_FINITE)), "pass"),
    case("zero", "nodes", with_flaws(flaw(Defect.ZERO, table="record_nodes")), "pass"),
    case(
        "not-finite", "episodes", with_flaws(flaw(Defect.NON_FINITE, table="episodes")), says="2 episodes have a vector"
    ),
    case("not-unit", "too long", with_flaws(flaw(Defect.NOT_UNIT)), says=("length is not one", "normalisation")),
    case("encoding", "big-endian", with_flaws(flaw(Defect.BIG_ENDIAN)), says="big-endian"),
    case("encoding", "64-bit", with_flaws(flaw(Defect.FLOAT64)), says="memories float64: 3, 7"),
    case("encoding", "base64", with_flaws(flaw(Defect.QUARTER_WIDTH)), says="2 memories"),
    case(
        "zero",
        "seen in a part",
        with_flaws(contents=Contents(looked=2000, total=9000, flaws=(flaw(Defect.ZERO, ids=()),))),
        says="of 2,000 looked at (9,000 in all)",
    ),
    case("zero", "not read in time", with_flaws(contents=Contents(looked=0, total=9000)), "unknown"),
    case("zero", "no vectors", known(census(group(3, None))), "pass"),
    case("blocks-width", "of the vectors", known(census(group(9, 96), blocks(96))), "pass"),
    case("blocks-width", "bits are whole bytes", known(census(group(9, 100), blocks(104))), "pass"),
    case(
        "blocks-width",
        "of an earlier model",
        known(census(group(9, 96), blocks(64), blocks(64, "record_block_vectors"))),
        says=("87 blocks of 64 dimensions, and the memories have 96", "removes them"),
    ),
    case(
        "blocks-width", "bytes alone", known(census(group(9, 96), blocks(64, "record_block_vectors"))), says="87 blocks"
    ),
    case("blocks-width", "one of two widths", known(census(group(9, 96), group(1, 64), blocks(64))), "pass"),
    case("blocks-width", "no vectors", known(census(blocks(64))), "skipped"),
    case("nodes-width", "of the vectors", known(census(group(9, 96), blocks(96, "record_nodes"))), "pass"),
    case("nodes-width", "earlier", known(census(group(9, 96), blocks(64, "record_nodes", 1))), says="1 node of 64"),
    case("stale-index", "of the vectors", index(96), "pass"),
    case("stale-index", "of no known width", index(None, unsafe="schema 13 cannot tell"), "pass"),
    case(
        "stale-index",
        "earlier",
        index(64),
        says=(f"{DB}.memories.vecindex was built from vectors of 64", f"mv {DB}.memories.vecindex {DB}"),
    ),
    *(case(trap.id.partition(".")[2], "not looked at", known(None), "skipped") for trap in TRAPS),
    *(case(trap.id.partition(".")[2], "no database", known(None, State.MISSING), "skipped") for trap in TRAPS[:1]),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_stored_vectors(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.id)
def test_a_healthy_store_sets_nothing_off(trap: Any) -> None:
    healthy = census(
        group(40), group(3, None), group(5, table="episodes"), blocks(768), blocks(768, "record_block_vectors"),
        blocks(768, "record_nodes"), indexes=[IndexFile(name="memory.db.blocks.blockindex", size=9, width=768)],
    )  # fmt: skip
    assert outcome(trap.id, known(healthy)) == ("pass", ())


def test_the_first_ids_are_enough() -> None:
    many = with_flaws(flaw(Defect.ZERO, rows=40, ids=tuple(range(1, 31))))
    (finding,) = outcome("vectors.zero", many)[1]
    assert finding.measured.endswith("id 1, 2, 3, 4, 5, 6, 7, 8, 9, 10")


def test_an_index_file_named_by_its_suffix() -> None:
    counted = census(group(50, 96), indexes=[IndexFile(name=".memories.vecindex", size=900, width=64)])
    (finding,) = outcome("vectors.stale-index", known(counted))[1]
    assert finding.measured.startswith(f"{Path(DB)}.memories.vecindex ")


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([], "nothing"),
        ([("memories", 1)], "1 memory"),
        ([("memories", 2), ("episodes", 1), ("memories", 3)], "5 memories and 1 episode"),
        ([("record_nodes", 2)], "2 rows of record_nodes"),
    ],
)
def test_rows_in_words(counts: list[tuple[str, int]], said: str) -> None:
    assert rows_of(counts) == said


@pytest.mark.parametrize(
    ("missed", "unknown"),
    [
        ("memories", {trap.id for trap in TRAPS}),
        ("record_blocks", {"vectors.blocks-width"}),
        ("record_nodes", {"vectors.nodes-width"}),
        ("indexes", {"vectors.stale-index"}),
        ("labels of memories", set()),
    ],
)
def test_what_was_not_counted_in_time_is_not_passed(missed: str, unknown: set[str]) -> None:
    late = known(census(group(3), unmeasured=(missed,)))
    states = {trap.id: outcome(trap.id, late)[0] for trap in TRAPS}
    assert {name for name, state in states.items() if state == "unknown"} == unknown
    assert set(states.values()) <= {"unknown", "pass"}


def test_the_doctor_looks_at_the_vectors(tmp_path: Path) -> None:
    """A store with a zero vector, one that is no database, and one that is not there."""
    machine = Machine(system="linux", home=tmp_path, cwd=tmp_path, env={"PATH": "/usr/bin"}, root=tmp_path / "root")
    database = store_of(tmp_path, [Written(text="a", vector=[0.6, 0.8]), Written(text="b", vector=[0.0, 0.0])])
    (tmp_path / "odd.db").write_bytes(b"no database at all")
    looked = {
        name: gather(Selection(db=tmp_path / name, census=True), machine) for name in (database.name, "odd.db", "no.db")
    }
    assert outcome("vectors.zero", looked[database.name])[0] == "findings"
    assert [known.databases[0].census is None for known in looked.values()] == [False, True, True]
    assert gather(Selection(db=database), machine).databases[0].census is None, "only where it is asked for"


def test_at_a_glance_nothing_is_opened(tmp_path: Path) -> None:
    machine = Machine(system="linux", home=tmp_path, cwd=tmp_path, env={"PATH": "/usr/bin"}, root=tmp_path / "root")
    (tmp_path / "odd.db").write_bytes(b"no database at all")
    states = [
        gather(Selection(db=tmp_path / name, glance=True), machine).databases[0].reading.state
        for name in ("odd.db", "absent.db")
    ]
    assert states == [State.OK, State.MISSING]
