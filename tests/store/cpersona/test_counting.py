"""Groups of rows: the quick way agrees with counting every row, whatever the rows are."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import struct
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.stores import insert as fill
from support.stores import run_sql, schema_13

from cpersona_cli.store.cpersona import counting
from cpersona_cli.store.cpersona.census import take
from cpersona_cli.store.cpersona.features import Table
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.model import FOLDED, LISTED_GROUPS, Census, Form, StoreError


def census(path: Path) -> Census:
    return CPersonaStore(path).census(deadline=time.monotonic() + 60)


def groups(path: Path, *tables: str) -> set[tuple[object, ...]]:
    return {
        (g.table, g.form, g.width, g.label, g.agent, g.rows, g.first, g.last, g.oldest, g.newest)
        for g in census(path).of(*(tables or ("memories", "episodes")))
    }


def vector(width: int) -> bytes:
    return struct.pack(f"<{width}f", 1.0, *(0.0,) * (width - 1))


def test_two_widths_in_one_table(empty: Path) -> None:
    """M01: empty places are counted apart, and are no width of nought."""
    rows: list[Mapping[str, Any]] = [{"embedding": vector(768)} for _ in range(40)]
    rows += [{"embedding": vector(384), "created_at": "2026-04-01 00:00:00"} for _ in range(10)]
    rows += [{"embedding": None, "agent_id": "borealis"} for _ in range(3)]
    fill(empty, "memories", rows)
    fill(empty, "episodes", [{"embedding": vector(768)} for _ in range(5)])
    then, later = "2026-03-01 08:00:00", "2026-04-01 00:00:00"
    assert groups(empty) == {
        ("memories", Form.VECTOR, 768, "", "atlas", 40, 1, 40, then, then),
        ("memories", Form.VECTOR, 384, "", "atlas", 10, 41, 50, later, later),
        ("memories", Form.NULL, None, "", "borealis", 3, 51, 53, then, then),
        ("episodes", Form.VECTOR, 768, "", "atlas", 5, 1, 5, then, then),
    }
    found = census(empty)
    assert (found.widths(), found.widths("episodes")) == ({768: 45, 384: 10}, {768: 5})
    assert [group.rows for group in found.of("memories")] == [40, 10, 3]


def test_a_break_in_time(empty: Path) -> None:
    """M03: what one model wrote ends where the other begins."""
    days = [f"2026-{month:02d}-{day:02d} 10:00:00" for month in (2, 3) for day in range(1, 29)]
    fill(
        empty,
        "memories",
        [
            {"embedding": vector(768 if day < "2026-03-04" else 384), "created_at": day, "embedding_model": label}
            for day in days
            for label in ["" if day < "2026-03-04" else "fallback"]
        ],
    )
    assert groups(empty) == {
        ("memories", Form.VECTOR, 768, "", "atlas", 31, 1, 31, "2026-02-01 10:00:00", "2026-03-03 10:00:00"),
        ("memories", Form.VECTOR, 384, "fallback", "atlas", 25, 32, 56, "2026-03-04 10:00:00", "2026-03-28 10:00:00"),
    }


def test_what_stands_in_a_vectors_place(empty: Path) -> None:
    values = (vector(4), None, "text", "more text", 7, b"", b"12345", b"123456", b"123", vector(4))
    fill(empty, "memories", [{"embedding": value} for value in values])
    assert {(form, width, rows) for _, form, width, _, _, rows, *_ in groups(empty)} == {
        (Form.VECTOR, 4, 2),
        (Form.NULL, None, 1),
        (Form.TEXT, None, 3),
        (Form.EMPTY, None, 1),
        (Form.ODD, None, 3),
    }


def test_blank_texts(empty: Path) -> None:
    blanks: list[object] = ["", " ", "\n\t ", "\u3000\u00a0", b"bytes", "\x1f"]
    fill(empty, "memories", [{"content": text} for text in [*blanks, "a", " b", "\u3000ö", "あ", "\x7f", "\u00adx"]])
    fill(empty, "episodes", [{"summary": ""}])
    assert {str(kind): number for kind, number in census(empty).blank.items()} == {"mem": 6, "ep": 1}


def test_derived_tables(store: Path) -> None:
    run_sql(
        store,
        "DELETE FROM record_nodes",
        "DELETE FROM record_blocks",
        *(
            f"INSERT INTO record_nodes VALUES ('mem', {n // 3}, {n % 3}, 0, 1, 1, 1, x'{vector(8).hex()}', 'm')"
            for n in range(3, 9)
        ),
        *(
            "INSERT INTO record_blocks(parent_kind, parent_id, block_index, agent_id, start_char, end_char,"
            f" embedding_bits) VALUES ('ep', {n}, 0, 'atlas', 0, 1, x'{'ff' * width}')"
            for n, width in ((4, 2), (5, 2), (7, 3), (6, 3))
        ),
        *(f"INSERT INTO record_block_vectors VALUES ('ep', {n}, 0, x'{'01' * 16}')" for n in (4, 5)),
    )
    found = groups(store, "record_nodes", "record_blocks", "record_block_vectors")
    assert found == {
        ("record_nodes", Form.VECTOR, 8, "m", "", 6, 1, 2, "", ""),
        ("record_blocks", Form.VECTOR, 16, "", "atlas", 2, 4, 5, "", ""),
        ("record_blocks", Form.VECTOR, 24, "", "atlas", 2, 6, 7, "", ""),
        ("record_block_vectors", Form.VECTOR, 16, "", "", 2, 4, 5, "", ""),
    }


@pytest.mark.parametrize("own", [0, 2])  # an agent that has the name of those that are not listed
def test_agents_that_are_too_many_to_list(empty: Path, own: int) -> None:
    rows = [{"agent_id": f"a{n}", "embedding": vector(4 if n % 2 else 8)} for n in range(300)]
    rows += [{"agent_id": FOLDED, "embedding": vector(4)} for _ in range(own)]
    rows += [{"agent_id": "many", "embedding": vector(4)} for _ in range(9)]
    fill(empty, "memories", rows)
    found = census(empty).of("memories")
    assert sum(group.rows for group in found) == 309 + own
    assert census(empty).widths() == {4: 159 + own, 8: 150}
    assert found[0].agent == FOLDED
    assert next(group.rows for group in found if group.agent == "many") == 9
    assert len({group.agent for group in found}) == counting.AGENTS + (not own)


def test_groups_that_are_too_many_to_list(empty: Path) -> None:
    fill(
        empty,
        "memories",
        [
            {"agent_id": f"a{n % 150}", "embedding": vector(4 + n % 2), "embedding_model": f"m{n // 150}"}
            for n in range(1200)
        ],
    )
    found = census(empty).of("memories")
    assert LISTED_GROUPS <= len(found) <= LISTED_GROUPS + 16
    assert sum(group.rows for group in found) == 1200
    assert {group.agent for group in found if group.rows > 1} == {FOLDED}


def test_labels_that_are_too_many_to_tell_apart(empty: Path) -> None:
    fill(empty, "memories", [{"embedding": vector(4), "embedding_model": f"m{n}"} for n in range(300)])
    found = census(empty).of("memories")
    assert {group.label: group.rows for group in found}[FOLDED] == 100
    assert sum(group.rows for group in found) == 300


def test_an_index_out_of_step_with_its_table(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(empty, "memories", [{"embedding": vector(4)} for _ in range(5)] + [{"embedding": None}])
    wrong = {"atlas": counting.Tally("atlas", counting.Sort("", None, ""), 0, 1, 6)}
    monkeypatch.setattr(counting, "_totals", lambda *_: wrong)
    assert {(form, rows) for _, form, _, _, _, rows, *_ in groups(empty)} == {(Form.VECTOR, 5), (Form.NULL, 1)}


def test_labels_behind_wide_vectors_take_time_of_their_own(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(empty, "memories", [{"embedding": vector(1536), "embedding_model": "m" * (n % 2)} for n in range(4)])
    assert {(label, rows) for _, _, _, label, _, rows, *_ in groups(empty)} == {("", 2), ("m", 2)}
    count = counting._tallies

    def late(connection: sqlite3.Connection, table: Table) -> Sequence[counting.Tally]:
        if table.label:
            connection.set_progress_handler(lambda: True, 1)
        return count(connection, table)

    monkeypatch.setattr(counting, "_tallies", late)
    found = census(empty)
    assert found.unmeasured[:1] == ("labels of memories",)
    assert [(group.width, group.label, group.rows) for group in found.of("memories")] == [(1536, "", 4)]


@pytest.mark.parametrize("place", ["census.tallies", "contents._all", "sample.tallies", "counting._tallies"])
def test_errors_that_are_not_the_clocks_are_told(empty: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    fill(empty, "memories", [{"embedding": vector(1536)}])
    count = counting._tallies

    def broken(connection: sqlite3.Connection, table: Table, *_: object) -> Sequence[counting.Tally]:
        if "counting" in place and not table.label:
            return count(connection, table)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(f"cpersona_cli.store.cpersona.{place}", broken)
    store = CPersonaStore(empty)
    with pytest.raises(StoreError, match="disk I/O error"):
        store.sample(3, deadline=time.monotonic() + 60) if "sample" in place else census(empty)


ROWS = st.lists(
    st.fixed_dictionaries({
        "agent_id": st.sampled_from(["atlas", "borealis", "cirrus", "Ärger"]),
        "embedding": st.sampled_from([vector(4), vector(4), vector(4), vector(8), None, b"", b"odd", "text"]),
        "embedding_model": st.sampled_from(["", "", "m"]),
        "created_at": st.sampled_from(["2026-01-01", "2026-01-02", "2026-01-03", "2025-12-31 23:59:59"]),
    }),
    max_size=25,
)  # fmt: skip


@given(rows=ROWS, worth=st.sampled_from([0.0, 1e9]))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_counts_agree_with_counting_every_row(empty: Path, rows: list[Mapping[str, Any]], worth: float) -> None:
    database = empty.with_name("copy.db")
    shutil.copy(empty, database)
    fill(database, "memories", rows)
    alike: dict[tuple[object, ...], list[tuple[int, str]]] = {}
    for number, row in enumerate(rows, 1):
        value = row["embedding"]
        form, width = Form.VECTOR, None
        if value is None:
            form = Form.NULL
        elif isinstance(value, str):
            form = Form.TEXT
        elif len(value) % 4:
            form = Form.ODD
        elif value:
            width = len(value) // 4
        else:
            form = Form.EMPTY
        key = (form, width, row["embedding_model"], row["agent_id"])
        alike.setdefault(key, []).append((number, row["created_at"]))
    expected = {
        ("memories", *key, len(found), found[0][0], found[-1][0], min(d for _, d in found), max(d for _, d in found))
        for key, found in alike.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_WORTH", worth)
        assert groups(database, "memories") == expected
    assert Counter(group.table for group in census(database).groups)["memories"] == len(expected)


@pytest.mark.parametrize("worth", [0.0, 1e9])
def test_names_that_are_not_utf8(empty: Path, monkeypatch: pytest.MonkeyPatch, worth: float) -> None:
    monkeypatch.setattr(counting, "_WORTH", worth)
    fill(empty, "memories", [{"embedding": vector(4), "embedding_model": "m"} for _ in range(9)])
    run_sql(
        empty,
        "UPDATE memories SET agent_id = CAST(x'ff41' AS TEXT) WHERE id < 6",
        "UPDATE memories SET embedding_model = CAST(x'fe42' AS TEXT) WHERE id IN (3, 7)",
        "UPDATE memories SET embedding = NULL WHERE id IN (1, 9)",
    )
    found = {(agent, form, label, rows) for _, form, _, label, agent, rows, *_ in groups(empty)}
    assert found == {
        ("\\xffA", Form.VECTOR, "m", 3),
        ("\\xffA", Form.VECTOR, "\\xfeB", 1),
        ("\\xffA", Form.NULL, "m", 1),
        ("atlas", Form.VECTOR, "m", 2),
        ("atlas", Form.VECTOR, "\\xfeB", 1),
        ("atlas", Form.NULL, "m", 1),
    }


def test_labels_that_are_no_text(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "c.db")
    run_sql(database, "ALTER TABLE memories ADD COLUMN embedding_model", "UPDATE memories SET embedding_model = 7")
    run_sql(database, "UPDATE memories SET embedding_model = NULL WHERE id < 4")
    assert {(group.label, group.rows) for group in census(database).of("memories") if group.agent == "atlas"} == {
        ("7", 6),
        ("", 2),
    }


def test_time_that_is_up_is_told(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.store.sql._STEPS", 200)
    fill(empty, "memories", [{"embedding": vector(4)} for _ in range(3000)])
    whole = CPersonaStore(empty)
    features = whole.look(lambda _, found, __: found, time.monotonic() + 60)
    with contextlib.closing(sqlite3.connect(empty, isolation_level=None)) as connection:
        found, _ = take(connection, features, empty, deep=False, live_width=None, deadline=time.monotonic() - 1)
    assert set(found.unmeasured) >= {"memories", "blank", "contents"}
    assert found.of("memories") == []
    assert (found.contents.looked, found.contents.total) == (0, 0)


def test_damage_found_while_counting_is_told(empty: Path) -> None:
    fill(empty, "memories", [{"embedding": vector(700)} for _ in range(300)])
    with empty.open("r+b") as file:
        file.seek(40 * 4096)
        file.write(b"\xee" * (200 * 4096))
    with pytest.raises(StoreError, match=r"is damaged .* restore a backup"):
        census(empty)
