"""The parts of an import that work on the database: what is looked up, what is kept on record, what is mended."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from support.stores import insert, run_sql
from support.talks import ask

from cpersona_cli.store.audit_model import Lens
from cpersona_cli.store.boundary import Penalty, Rule, Scope
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.job import Staged, Target, digest
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.newrow import NewRow
from cpersona_cli.store.writing import comparing, mending, scratch
from cpersona_cli.store.writing.filling import Filling
from cpersona_cli.store.writing.imports import Action, Record, backup_path, imports, record_path
from cpersona_cli.store.writing.mainfile import Main
from cpersona_cli.store.writing.mending import find, mend
from cpersona_cli.store.writing.scratch import DONE, OPEN, SAME_ID, SAME_TEXT, Scratch
from cpersona_cli.store.writing.taking_back import take_back

LENS = Lens(Rule(), Penalty())


def row(number: int, text: str = "", **given: object) -> NewRow:
    values = {"kind": Kind.MEMORY, "item": number, "agent": "atlas", "project": "", "channel": "", "text": text}
    return NewRow(**{**values, "text": text or f"text {number}", "created": "2023-01-01 00:00:00", **given})  # type: ignore[arg-type]


def test_every_row_is_looked_up_by_an_index_that_leads_to_it(old: Path) -> None:
    with contextlib.closing(sqlite3.connect(old)) as connection:
        for query, values, index in (
            (comparing._BY_ID, ("a", "p", "m"), "idx_memories_dedup_msg_id (agent_id=? AND project_id=? AND msg_id=?)"),
            (comparing._BY_TEXT, ("a", "p", "c", "t"), "AND content=?)"),
        ):
            ((*_, plan),) = connection.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
            assert index in plan


def test_equal_rows_fall_together_and_outcomes_are_of_what_was_read() -> None:
    with Scratch() as gathered:
        assert gathered.add(row(1, msg_id="a")) == ""
        assert gathered.add(row(2, "text 1")) == SAME_TEXT
        assert gathered.add(row(3, msg_id="a")) == SAME_ID
        assert gathered.add(row(4, "text 1", project="orion")) == ""
        assert gathered.add(row(4, "another piece", project="orion")) == ""
        gathered.set([(1, "there"), (2, "there")])
        assert dict(gathered.outcomes(Kind.MEMORY)) == {OPEN: 1, "there": 1}
        gathered.set([(3, DONE)])
        assert dict(gathered.outcomes(Kind.MEMORY, DONE)) == {DONE: 1, "there": 1}
        assert [number for number, _ in gathered.rows()] == []
        gathered.forget_states()
        assert [one.item for _, one in gathered.rows(Kind.MEMORY)] == [1, 4, 4]
        assert gathered.places() == [("atlas", "", ""), ("atlas", "orion", "")]


def test_many_rows_are_kept_page_by_page_where_nobody_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "_MANY", 10)
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    with Scratch() as gathered:
        for number in range(1200):
            gathered.add(row(number))
        assert list(tmp_path.iterdir()) == [], "a run that is killed leaves nothing"
        assert [one.item for _, one in gathered.rows()] == list(range(1200))
        assert gathered.size() == {Kind.MEMORY: (1200, sum(len(f"text {n}") for n in range(1200)))}


def harmed(database: Path) -> None:
    """Three episodes stored together long after they ended, one stored late and alone, one stored in time."""
    run_sql(database, "DELETE FROM episodes")
    ended = {
        "first": ("2024-01-01T10:00:00+00:00", "2026-02-01 09:00:00"),
        "second": ("2024-02-01T10:00:00+09:00", "2026-02-01 09:00:04"),
        "third": ("2024-03-01T10:00:00Z", "2026-02-01T09:00:12+00:00"),
        "alone": ("2025-01-01T10:00:00Z", "2025-06-01 00:00:00"),
        "in time": ("2025-02-01T10:00:00Z", "2025-02-01 10:30:00"),
    }
    insert(
        database,
        "episodes",
        ({"summary": name, "end_time": end, "created_at": stored} for name, (end, stored) in ended.items()),
    )


def test_episodes_of_an_import_are_found_and_dated_back(old: Path) -> None:
    harmed(old)
    before = ask(old, "SELECT summary, created_at FROM episodes ORDER BY id")
    harm = find(CPersonaStore(old), LENS)
    assert (harm.episodes, harm.bursts) == (3, (3,))
    assert (harm.oldest, harm.newest) == ("2024-01-01 10:00:00", "2024-03-01 10:00:00")
    (change, *_) = harm.scopes
    assert change.scope == Scope("atlas")
    assert (change.before.stamp, change.after.stamp) == ("2026-02-01T09:00:12+00:00", "2025-06-01 00:00:00")
    done = mend(old)
    assert (done.mended, done.left) == (3, 0)
    assert dict(ask(old, "SELECT summary, created_at FROM episodes")) == {
        "first": "2024-01-01 10:00:00",
        "second": "2024-02-01 01:00:00",
        "third": "2024-03-01 10:00:00",
        "alone": "2025-06-01 00:00:00",
        "in time": "2025-02-01 10:30:00",
    }
    assert find(CPersonaStore(old), LENS).episodes == 0
    # what was changed since stays
    run_sql(old, "UPDATE episodes SET resolved = 1 WHERE summary = 'first'")
    taken = take_back(old)
    assert (taken.of.action, taken.removed, taken.left) == (Action.REPAIR, 2, 1)
    after = ask(old, "SELECT summary, created_at FROM episodes ORDER BY id")
    assert after[1:] == before[1:]


def test_each_import_is_a_burst_and_what_changes_meanwhile_is_left(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harmed(old)
    again = {"end_time": "2024-05-01T10:00:00Z", "created_at": "2026-04-01 09:00:00"}
    insert(old, "episodes", [{"summary": f"later {number}", **again} for number in range(2)])
    assert find(CPersonaStore(old), LENS).bursts == (3, 2)
    monkeypatch.setattr(mending, "_MANY", 2)
    seen: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        seen.append((done, total))
        run_sql(old, "UPDATE episodes SET created_at = '2026-05-01 00:00:00' WHERE summary = 'later 1'")

    done = mend(old, tell=tell)
    assert (done.mended, done.left, seen) == (4, 1, [(2, 5), (4, 5), (5, 5)])
    told: list[tuple[int, int]] = []
    take_back(old, tell=lambda done, total: told.append((done, total)))
    assert told == [(4, 4)]


def test_a_repair_with_nothing_to_do_leaves_no_trace(old: Path) -> None:
    done = mend(old)
    assert (done.id, done.mended, done.backup) == ("", 0, None)
    assert not record_path(old).exists()
    assert not backup_path(old).exists()


def test_a_repair_is_on_record(old: Path) -> None:
    assert imports(old) == ()
    harmed(old)
    mend(old)
    assert [one.action for one in imports(old)] == [Action.REPAIR]


def test_what_is_kept_with_an_import_is_there_later(old: Path) -> None:
    with Record(old) as kept:
        identifier = kept.begin(Action.IMPORT, agent="atlas")
        kept.finish()
        assert kept.all() == ()  # it did nothing
        assert identifier


def test_vectors_that_may_be_of_another_model_are_taken_back(new: Path) -> None:
    run_sql(new, "UPDATE memories SET embedding = NULL")
    (content,) = ask(new, "SELECT content FROM memories WHERE id = 1")
    target = Target(mode="http", url="", model="m", dim=2, label="m")
    vector = b"\0\0\x80\x3f" * 2
    with Main(new) as main:
        filling = Filling(main, target)
        with pytest.raises(StoreError, match="not of 2 finite numbers"):
            filling.add([Staged(Kind.MEMORY, 1, digest(content), vector * 2)])
        filling.add([Staged(Kind.MEMORY, 1, digest(content), vector), Staged(Kind.MEMORY, 2, b"other", vector)])
        assert ask(new, "SELECT id, embedding, embedding_model FROM memories WHERE embedding IS NOT NULL") == [
            (1, vector, "m")
        ]
        filling.discard([(Kind.MEMORY, 1)])
        assert ask(new, "SELECT count(*), max(embedding_model) FROM memories WHERE embedding IS NULL") == [(20, "")]
