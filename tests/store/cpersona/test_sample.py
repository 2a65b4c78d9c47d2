"""Rows that stand for all, rows nearby, rows between, and every row in pages."""

from __future__ import annotations

import shutil
import struct
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.readings import crash_with_log
from support.stores import Other, Server, insert, run_sql, schema_13, untouched

from cpersona_cli.store.cpersona import picking
from cpersona_cli.store.cpersona import store as module
from cpersona_cli.store.cpersona.picking import divide, thin
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.model import Kind, Row, Store


def vector(width: int = 4) -> bytes:
    return struct.pack(f"<{width}f", 1.0, *(0.0,) * (width - 1))


def later() -> float:
    return time.monotonic() + 60


def sample(path: Path, count: int) -> Sequence[Row]:
    with untouched(path.parent):
        return CPersonaStore(path).sample(count, deadline=later())


def ids(rows: Iterable[Row], kind: Kind = Kind.MEMORY) -> list[int]:
    return [row.id for row in rows if row.kind is kind]


def test_it_is_a_store(empty: Path) -> None:
    store: Store = CPersonaStore(empty)
    assert store.path == empty


def test_everything_a_row_is(empty: Path) -> None:
    insert(
        empty,
        "episodes",
        [{"id": 7, "summary": "an episode", "embedding": vector(), "embedding_model": "m", "created_at": "2026-01-02"}],
    )
    expected = Row(
        kind=Kind.EPISODE,
        id=7,
        text="an episode",
        vector=vector(),
        label="m",
        agent="atlas",
        created="2026-01-02",
    )
    store = CPersonaStore(empty)
    assert sample(empty, 5) == [expected]
    assert list(store.rows(Kind.EPISODE, vectors=True)) == [expected]
    assert [row.vector for row in store.rows(Kind.EPISODE)] == [None]
    assert store.near(Kind.EPISODE, 1, 3, deadline=later()) == [expected]


def test_a_sample_is_of_every_kind_width_label_and_agent_and_of_all_times(empty: Path) -> None:
    rows: list[Mapping[str, Any]] = [
        {
            "agent_id": "rare" if number in {37, 38} else f"a{number % 2}",
            "embedding": vector(8 if 200 <= number < 210 else 4),
            "embedding_model": "m" if number >= 300 else "",
        }
        for number in range(400)
    ]
    insert(empty, "memories", rows)
    insert(empty, "episodes", [{"embedding": vector()} for _ in range(10)])
    found = sample(empty, 40)
    assert len(found) == len(set(found)) == 40
    assert found == sorted(found, key=lambda row: (row.kind is not Kind.MEMORY, row.id))
    # The first and the last of each width and label.
    assert {1, 300, 201, 210, 301, 400} <= set(ids(found))
    assert {1, 10} <= set(ids(found, Kind.EPISODE))
    assert {row.agent for row in found} == {"a0", "a1", "rare", "atlas"}
    parts = Counter((row.id - 1) // 100 for row in found if row.kind is Kind.MEMORY)
    assert all(parts[part] >= 5 for part in range(4))


@pytest.mark.parametrize(("count", "found"), [(0, 0), (1, 1), (2, 2), (3, 3), (29, 29), (30, 30), (31, 30), (500, 30)])
def test_never_more_than_there_are(empty: Path, count: int, found: int) -> None:
    insert(empty, "memories", [{"embedding": vector(), "agent_id": f"a{n % 3}"} for n in range(30)])
    rows = sample(empty, count)
    assert len(rows) == len(set(rows)) == found


def test_rows_without_a_text_or_a_vector_are_no_sample(empty: Path) -> None:
    values = (None, "text", b"", b"12345", vector())
    insert(empty, "memories", [{"embedding": value} for value in values for _ in range(4)])
    insert(empty, "memories", [{"embedding": vector(), "content": text} for text in ("", " \n", "\u3000", b"b")])
    insert(empty, "memories", [{"embedding": vector(8), "content": ""}])
    assert ids(sample(empty, 50)) == [17, 18, 19, 20]
    store = CPersonaStore(empty)
    assert ids(store.near(Kind.MEMORY, 1, 2, deadline=later())) == [17, 18]
    assert store.count(Kind.MEMORY, deadline=later()) == {"atlas": 9}


def test_blank_rows_among_those_of_a_rare_width(empty: Path) -> None:
    insert(empty, "memories", [{"embedding": vector(), "content": "" if n % 2 else f"t{n}"} for n in range(40)])
    insert(empty, "memories", [{"embedding": vector(8), "content": "" if n % 2 else f"u{n}"} for n in range(10)])
    found = sample(empty, 12)
    assert len(found) == 12
    assert all(row.text for row in found)
    assert {1, 39, 41, 49} <= set(ids(found))


def test_gaps_between_ids(empty: Path) -> None:
    insert(empty, "memories", [{"id": number, "embedding": vector()} for number in (1, 2, 3, 9_000_000, 9_000_001)])
    assert ids(sample(empty, 4)) == [1, 2, 9_000_000, 9_000_001] or len(sample(empty, 4)) == 4
    assert ids(sample(empty, 5)) == [1, 2, 3, 9_000_000, 9_000_001]


def test_many_rows_are_searched_rather_than_listed(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picking, "_LISTED", 3)
    insert(empty, "memories", [{"embedding": vector(), "agent_id": f"a{n % 2}"} for n in range(100)])
    run_sql(empty, "DELETE FROM memories WHERE id BETWEEN 20 AND 60")
    found = sample(empty, 12)
    assert len(found) == 12
    assert {1, 100} <= set(ids(found))
    assert {row.agent for row in found} == {"a0", "a1"}


def test_a_table_there_is_no_time_to_count_is_sampled_too(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.store.cpersona.sample._COUNTING", -1.0)
    monkeypatch.setattr("cpersona_cli.store.sql._STEPS", 500)
    insert(empty, "memories", [{"embedding": vector(4 if n % 3 else 8)} for n in range(3000)])
    found = sample(empty, 12)
    assert {1, 3000} <= set(ids(found))
    assert 10 <= len(found) <= 12
    run_sql(empty, "DELETE FROM memories")
    assert sample(empty, 12) == []


def test_a_sample_after_a_census_counts_again_only_what_has_changed(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(empty, "memories", [{"embedding": vector()} for _ in range(9)])
    store = CPersonaStore(empty)
    store.census(deadline=later())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cpersona_cli.store.cpersona.sample.tallies", lambda *_: pytest.fail("it was counted again"))
        assert ids(store.sample(9, deadline=later())) == list(range(1, 10))
    insert(empty, "memories", [{"embedding": vector(8)}])
    assert ids(store.sample(99, deadline=later())) == list(range(1, 11))


def test_few_of_many_rows_are_remembered(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.store.cpersona.counting._REMEMBERED", 8)
    rows = [{"embedding": vector(4)} for _ in range(200)] + [{"embedding": vector(8)} for _ in range(100)]
    insert(empty, "memories", rows)
    found = [row.id for row in sample(empty, 10) if row.vector == vector(8)]
    assert len(found) >= 3
    assert (found[0], found[-1]) == (201, 300)


def test_nearest_rows(empty: Path) -> None:
    insert(empty, "memories", [{"id": n, "embedding": vector()} for n in (1, 5, 9, 10, 11, 30, 31)])
    store = CPersonaStore(empty)
    for identifier, count, expected in ((10, 3, [9, 10, 11]), (0, 2, [1, 5]), (99, 2, [30, 31]), (10, 99, None)):
        found = ids(store.near(Kind.MEMORY, identifier, count, deadline=later()))
        assert found == (expected or [1, 5, 9, 10, 11, 30, 31])
    assert ids(store.near(Kind.MEMORY, 20, 4, deadline=later())) == [9, 10, 11, 30]
    assert store.near(Kind.EPISODE, 1, 4, deadline=later()) == []


def test_vectors_between_two_rows(empty: Path) -> None:
    insert(empty, "memories", [{"embedding": vector(), "agent_id": f"a{n % 2}"} for n in range(10)])
    store = CPersonaStore(empty)
    assert store.count(Kind.MEMORY, deadline=later()) == {"a0": 5, "a1": 5}
    assert store.count(Kind.MEMORY, after=2, upto=5, deadline=later()) == {"a0": 2, "a1": 1}
    assert store.count(Kind.MEMORY, after=5, upto=5, deadline=later()) == {}


def test_tables_that_are_not_there(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "c.db", text_index=False)
    run_sql(database, "DROP TABLE episodes")
    store = CPersonaStore(database)
    assert list(store.rows(Kind.EPISODE)) == []
    assert store.near(Kind.EPISODE, 1, 1, deadline=later()) == ()
    assert store.count(Kind.EPISODE, deadline=later()) == {}
    assert {row.kind for row in store.sample(5, deadline=later())} == {Kind.MEMORY}


@pytest.mark.parametrize("after", [0, 1, 499, 500, 1200, 1201])
def test_rows_come_in_pages(empty: Path, after: int) -> None:
    insert(empty, "memories", [{"embedding": vector() if n % 2 else None} for n in range(1200)])
    assert ids(CPersonaStore(empty).rows(Kind.MEMORY, after=after)) == list(range(after + 1, 1201))


def test_a_writer_gets_in_between_the_pages(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGE", 10)
    run_sql(empty, "PRAGMA journal_mode=WAL")
    insert(empty, "memories", [{"embedding": vector()} for _ in range(100)])
    with Other(empty, "PRAGMA wal_autocheckpoint=0") as other:
        found = []
        for row in CPersonaStore(empty).rows(Kind.MEMORY):
            found.append(row.id)
            if row.id == 15:
                other.say("DELETE FROM memories WHERE id BETWEEN 12 AND 30")
                # Nothing of the reader holds the log: all of it goes into the file.
                blocked, log, moved = other.say("PRAGMA wal_checkpoint(TRUNCATE)").strip("[()]").split(", ")
                assert (blocked, log, moved) == ("0", "0", "0")
    assert found == [*range(1, 21), *range(31, 101)]


def test_rows_of_a_store_that_must_be_copied(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGE", 1)
    monkeypatch.setattr(module, "_COPIED_PAGE", 40)
    run_sql(empty, "PRAGMA journal_mode=WAL")
    insert(empty, "memories", [{"embedding": vector()} for _ in range(100)])
    crash_with_log(empty)
    with untouched(empty.parent):
        assert len(list(CPersonaStore(empty).rows(Kind.MEMORY))) == 101


@pytest.mark.server
def test_a_live_server_writes_on_during_every_kind_of_look(tmp_path: Path) -> None:
    database = tmp_path / "live" / "memory.db"
    database.parent.mkdir()
    store = CPersonaStore(database)
    with Server(database) as server:
        for number in range(5):
            server.store("atlas", f"before {number}")
        with untouched(database.parent):
            found = store.census(deadline=later())
            assert sum(group.rows for group in found.of("memories")) == 5
            assert store.sample(5, deadline=later()) == []
            assert len(store.texts(9, deadline=later())) == 5
            rows = store.rows(Kind.MEMORY)
            assert next(rows).text == "before 0"
        server.store("atlas", "while the rows are read")
        assert [row.text for row in rows][-1] == "while the rows are read"
    with untouched(database.parent):
        assert sum(group.rows for group in store.census(deadline=later()).of("memories")) == 6


def test_thinning() -> None:
    assert thin(range(10), 20) == range(10)
    assert list(thin(range(10), 4)) == [0, 3, 6, 9]
    assert list(thin(range(10), 1)) == [9]
    assert list(thin(range(10), 0)) == []


@given(count=st.integers(0, 60), weights=st.lists(st.integers(0, 40), max_size=12))
def test_dividing(count: int, weights: list[int]) -> None:
    shares = divide(count, weights)
    assert sum(shares) == min(count, sum(weights))
    assert all(share <= weight for share, weight in zip(shares, weights, strict=True))
    if count >= len(weights):
        assert all(share > 0 for share, weight in zip(shares, weights, strict=True) if weight)
    for one, other in ((0, 1), (1, 0)):
        if len(weights) > 1 and weights[one] > weights[other]:
            assert shares[one] >= shares[other]


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]), st.sampled_from([4, 4, 8, 0]), st.sampled_from(["", "m"]), st.booleans()
        ),
        max_size=30,
    ),
    count=st.integers(1, 35),
    listed=st.sampled_from([0, 1000]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_sample_of_any_store(empty: Path, rows: list[tuple[str, int, str, bool]], count: int, listed: int) -> None:
    database = empty.with_name("copy.db")
    shutil.copy(empty, database)
    insert(
        database,
        "memories",
        [
            {
                "agent_id": a,
                "embedding": vector(w) if w else None,
                "embedding_model": m,
                "content": "" if b else f"t{n}",
            }
            for n, (a, w, m, b) in enumerate(rows)
        ],
    )
    fit = [n for n, (_, width, _, blank) in enumerate(rows, 1) if width and not blank]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(picking, "_LISTED", listed)
        found = ids(CPersonaStore(database).sample(count, deadline=later()))
    assert set(found) <= set(fit)
    assert len(found) == len(set(found)) <= count
    if count >= len(rows):
        assert found == fit
