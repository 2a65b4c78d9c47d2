"""The cut-over: the new vectors all at once, everything derived with them, and nothing else touched."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.jobs import ask, everything_else, ours, stage, stored, target, vector, vectors
from support.stores import Other, run_sql

from cpersona_cli.store.job import JobState, Refused, Staged, digest, undo_path
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.writing.cutover import cut_over, predict_lock
from cpersona_cli.store.writing.finished import read_record
from cpersona_cli.store.writing.mainfile import Main
from cpersona_cli.store.writing.settling import CutOver
from cpersona_cli.store.writing.staging import Staging, open_job
from cpersona_cli.store.writing.undo import undo

M, E = Kind.MEMORY, Kind.EPISODE

INDEXES = (".memories.vecindex", ".episodes.vecindex", ".memories.coarseindex", ".blocks.blockindex")


def switched(database: Path, dim: int = 16, **options: Any) -> CutOver:
    """A whole job at once."""
    with open_job(database, target(dim)) as staging:
        stage(staging)
        return cut_over(database, staging, **options)


def test_every_vector_is_the_new_one(old: Path) -> None:
    rest = everything_else(old)
    with open_job(old, target()) as staging:
        wanted = stage(staging)
        seen: list[tuple[str, int, int]] = []
        done = cut_over(old, staging, tell=lambda *step: seen.append(step))
        assert staging.state is JobState.CUT
    assert vectors(old) == wanted
    assert everything_else(old) == rest
    assert (done.written, done.rows, done.emptied, done.recovered) == ({M: 12, E: 1}, 13, 0, False)
    assert 0 < done.locked_seconds <= done.seconds
    assert done.wal_bytes > 0
    assert seen[-1] == ("plan", 13, 13)
    assert ours(old) == {"", "-undo", ".json"}
    assert not ask(old, "SELECT 1 FROM pending_memory_tasks")
    finished = read_record(old)
    assert finished is not None
    assert (finished.dim, finished.model, finished.rows, finished.label) == (16, "model-b", 13, "b-label")
    assert finished.started < finished.finished
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in old.parent.glob("*.reembed*"))
    with open_job(old, target()) as staging:
        assert staging.fresh


def test_everything_derived_follows(new: Path) -> None:
    for suffix in INDEXES:
        new.with_name(new.name + suffix).write_bytes(b"old")
    before = stored(new)
    rest = everything_else(new)
    done = switched(new, 32)
    assert {label for _, _, label in stored(new).values()} == {"b-label"}
    assert stored(new).keys() == before.keys()
    assert everything_else(new) == rest
    assert (done.rows, done.blocks, done.nodes) == (21, 40, 20)
    assert sorted(done.indexes) == sorted(new.name + suffix for suffix in INDEXES)
    assert not any(new.with_name(new.name + suffix).exists() for suffix in INDEXES)
    for table in (
        "record_blocks",
        "record_block_vectors",
        "record_nodes",
        "record_vector_changes",
        "record_block_changes",
    ):
        assert ask(new, f"SELECT count(*) FROM {table}") == [(0,)]
    # A file built before this is refused: the log is off, and the numbers before the cut are gone.
    assert ask(new, "SELECT logging, generation, head, pruned_through FROM vector_log_clock") == [(0, 3, 7, 7)]
    assert ask(new, "SELECT logging, generation, head, pruned_through FROM block_log_clock") == [(0, 2, 5, 5)]
    assert ask(new, "SELECT task_type, agent_id, payload FROM pending_memory_tasks") == [("backfill_blocks", "", "{}")]


def test_nodes_are_asked_for_where_tokens_are_counted(new: Path) -> None:
    run_sql(new, "INSERT INTO pending_memory_tasks(task_type, agent_id, payload) VALUES ('backfill_blocks', '', '{}')")
    switched(new, tokens=True)
    tasks = ask(new, "SELECT task_type, agent_id, payload FROM pending_memory_tasks ORDER BY id")
    assert len(tasks) == 21
    assert tasks[0] == ("backfill_blocks", "", "{}")  # not twice
    owners = ask(new, "SELECT id, agent_id FROM memories ORDER BY id")
    assert tasks[1:] == [("build_nodes", owner, f'{{"kind": "mem", "id": {n}}}') for n, owner in owners]


def test_some_rows_and_only_what_is_theirs(new: Path) -> None:
    run_sql(new, "UPDATE memories SET embedding = NULL, embedding_model = '' WHERE id IN (3, 4)")
    run_sql(new, "UPDATE memories SET embedding = zeroblob(12) WHERE id = 5")
    before = stored(new)
    with open_job(new, target(64), only="damaged") as staging:
        wanted = stage(staging, lambda kind, identifier: kind is M and identifier in {3, 4, 5})
        staging.add([], [Refused(M, 6, digest("whatever"), "blank")])
        done = cut_over(new, staging)
    assert stored(new) == before | {key: ("blob", blob, "b-label") for key, blob in wanted.items()}
    assert (done.written, done.emptied, done.blocks, done.nodes) == ({M: 3}, 0, 6, 3)
    for table in ("record_blocks", "record_block_vectors", "record_nodes"):
        ids = {row[0] for row in ask(new, f"SELECT parent_id FROM {table}")}
        assert ids == {n for _, n in before} - {3, 4, 5}
    assert ask(new, "SELECT count(*) FROM pending_memory_tasks") == [(1,)]


def rows_left_over(database: Path, fingerprint: str = "") -> Staging:
    """A job in which 2 was refused, 3 changed since, 4 is new to it, and 5 was deleted."""
    staging = open_job(database, target(64, fingerprint=fingerprint))
    stage(staging, lambda kind, identifier: kind is E or identifier not in {2, 4})
    staging.add([], [Refused(M, 2, digest("x"), "server_error")])
    run_sql(
        database, "UPDATE memories SET content = content || ' more' WHERE id = 3", "DELETE FROM memories WHERE id = 5"
    )
    return staging


def test_no_vector_of_the_old_model_is_left(new: Path) -> None:
    before = stored(new)
    with rows_left_over(new) as staging:
        done = cut_over(new, staging)
    after = stored(new)
    assert [after[M, n] for n in (2, 3, 4)] == [("null", None, "")] * 3
    assert (M, 5) not in after
    assert (done.rows, done.emptied, done.kept, done.changed, done.gone) == (17, 3, 0, 1, 1)
    finished = read_record(new)
    assert finished is not None
    assert (finished.rows, finished.emptied) == (17, 3)
    undo(new)
    assert [stored(new)[M, n] for n in (2, 3, 4)] == [before[M, n] for n in (2, 3, 4)]


def test_a_vector_of_the_same_model_stays(new: Path) -> None:
    before = stored(new)
    with rows_left_over(new) as staging:
        done = cut_over(new, staging, same_model=True)
    assert [stored(new)[M, n] for n in (2, 3, 4)] == [before[M, n] for n in (2, 3, 4)]
    assert (done.emptied, done.kept) == (0, 3)


def test_a_label_vouches_for_a_vector_of_the_right_width(new: Path) -> None:
    run_sql(new, "UPDATE memories SET embedding_model = 'b-label' WHERE id IN (2, 4)")
    run_sql(new, "UPDATE memories SET embedding = zeroblob(12) WHERE id = 4")
    with rows_left_over(new, fingerprint="f00d") as staging:
        done = cut_over(new, staging)
    assert [stored(new)[M, n][0] for n in (2, 3, 4)] == ["blob", "null", "null"]
    assert (done.emptied, done.kept) == (2, 1)


def test_a_name_that_never_reaches_the_endpoint_vouches_for_nothing(new: Path) -> None:
    """In mode http the label is what the settings say: the same before and after another model was put there."""
    run_sql(new, "UPDATE memories SET embedding_model = 'b-label'")
    with rows_left_over(new) as staging:
        done = cut_over(new, staging)
    assert [stored(new)[M, n][0] for n in (2, 3, 4)] == ["null"] * 3
    assert (done.emptied, done.kept) == (3, 0)


def test_a_width_is_never_vouched_for(old: Path) -> None:
    with open_job(old, target(16)) as staging:
        stage(staging, lambda _kind, identifier: identifier != 7)
        done = cut_over(old, staging, same_model=True)
    assert (done.emptied, done.kept) == (1, 0)
    assert {len(blob) for blob in vectors(old).values() if isinstance(blob, bytes)} == {64}


def test_rows_that_have_their_vector_are_not_written_again(old: Path) -> None:
    with open_job(old, target()) as staging:
        wanted = stage(staging)
        with contextlib.closing(sqlite3.connect(old)) as connection, connection:
            connection.execute("UPDATE memories SET embedding = ? WHERE id = 1", (wanted[M, 1],))
        done = cut_over(old, staging)
    assert (done.rows, done.already) == (12, 1)
    assert vectors(old) == wanted


def test_a_text_that_is_no_text_has_no_new_vector(old: Path) -> None:
    run_sql(old, "UPDATE memories SET content = x'00ff' WHERE id = 1")
    run_sql(old, "UPDATE memories SET content = CAST(x'61ff62' AS TEXT) WHERE id = 3")
    with open_job(old, target()) as staging:
        staging.add([Staged(M, 1, digest("\0ÿ"), vector("17", 16))])
        # Read as every reader here reads it.
        staging.add([Staged(M, 3, digest("a\\xffb"), vector("a", 16))])
        done = cut_over(old, staging)
    assert done.written == {M: 1}
    assert vectors(old)[M, 3] == vector("a", 16)
    assert vectors(old)[M, 1] is None


def change_before_lock(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    """Let another process write after a job looked at the database, and before it has the lock."""
    lock = Main.lock

    def first_change(self: Main, wait: float) -> None:
        change()
        lock(self, wait)

    monkeypatch.setattr(Main, "lock", first_change)


def test_what_changes_at_the_last_moment_is_seen(new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change() -> None:
        run_sql(
            new,
            "UPDATE memories SET content = content || ' edited', embedding = zeroblob(256) WHERE id = 1",
            "UPDATE memories SET embedding = x'0000803f', embedding_model = 'z' WHERE id = 2",
            "DELETE FROM memories WHERE id = 3",
            "INSERT INTO memories(agent_id, content, timestamp, embedding) VALUES ('a', 'new', '2025-01-01', x'00')",
            "UPDATE memories SET recall_count = recall_count + 1 WHERE id = 4",
        )

    before = stored(new)
    change_before_lock(monkeypatch, change)
    with open_job(new, target(32)) as staging:
        wanted = stage(staging)
        done = cut_over(new, staging)
    after = stored(new)
    (newest,) = after.keys() - before.keys()
    expected = {key: ("blob", blob, "b-label") for key, blob in wanted.items() if key != (M, 3)}
    assert after == expected | {(M, 1): ("null", None, ""), newest: ("null", None, "")}
    assert (done.rows, done.emptied, done.changed, done.gone) == (19, 2, 1, 1)
    monkeypatch.undo()
    undo(new)
    # What was there at the moment of the cut comes back, not what was there when the job looked.
    assert stored(new) == {key: value for key, value in before.items() if key != (M, 3)} | {
        (M, 1): ("blob", bytes(256), before[M, 1][2]),
        (M, 2): ("blob", b"\0\0\x80?", "z"),
        newest: ("blob", b"\0", ""),
    }


def test_a_lock_of_another_is_waited_for(old: Path) -> None:
    with open_job(old, target()) as staging:
        wanted = stage(staging)
        before = stored(old)
        with Other(old, "BEGIN IMMEDIATE") as other:
            with pytest.raises(StoreError, match=r"kept locked by another process for 0\.3 seconds"):
                cut_over(old, staging, wait=0.3)
            assert stored(old) == before
            assert staging.state is JobState.STAGED
            assert ours(old) == {"", "-wal", "-shm", ".lock"}
            waiting = Main.lock

            def released(self: Main, wait: float) -> None:
                with pytest.raises(StoreError):
                    waiting(self, 0.0)
                other.say("COMMIT")
                waiting(self, wait)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Main, "lock", released)
                assert cut_over(old, staging).rows == 13
    assert vectors(old) == wanted


def test_readers_keep_reading_and_writers_go_on_after(old: Path) -> None:
    with Other(old, "BEGIN", "SELECT count(*) FROM memories") as reader, Other(old, "SELECT 1 FROM memories") as idle:
        switched(old)
        assert reader.say("SELECT length(embedding) FROM memories WHERE id = 1") == "[(32,)]"
        assert idle.say("SELECT length(embedding) FROM memories WHERE id = 1") == "[(64,)]"
        assert idle.say("UPDATE memories SET recall_count = 1 WHERE id = 1") == "[]"
        assert reader.say("COMMIT") == "[]"


def test_a_rollback_journal_serves_as_well(tmp_path: Path) -> None:
    from support.stores import schema_13  # noqa: PLC0415 - the fixture's other half

    database = schema_13(tmp_path / "plain" / "c.db", late=True, text_index=False)
    before, rest = stored(database), everything_else(database)
    done = switched(database)
    assert (done.rows, done.wal_bytes) == (13, 0)
    assert everything_else(database) == rest
    undo(database)
    assert stored(database) == before


def test_indexes_and_calibration_go_by_both_names(old: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(old)
    for database in (link, old):
        database.with_name(database.name + ".memories.vecindex").write_bytes(b"old")
        database.with_name(database.name + ".calibration.json").write_text('{"embedding_dim": 8}')
    done = switched(link)
    assert set(done.indexes) == {"link.db.memories.vecindex", "c.db.memories.vecindex"}
    assert done.calibration == "rewritten"
    for database in (link, old):
        assert '"embedding_dim": 16' in database.with_name(database.name + ".calibration.json").read_text()
    assert ours(old) == {"", "-undo", ".json"}


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE schema_version SET version = 12", "start the server once"),
        ("UPDATE schema_version SET version = 99", "update cpersona-cli"),
        ("DROP TABLE episodes", "not a database of CPersona"),
    ],
)
def test_what_it_does_not_know_it_does_not_write(old: Path, statement: str, words: str) -> None:
    with open_job(old, target()) as staging:
        stage(staging)
        run_sql(old, statement)
        before = old.read_bytes()
        with pytest.raises(StoreError, match=words):
            cut_over(old, staging)
        assert staging.state is JobState.STAGING
    assert old.read_bytes() == before


def test_a_job_is_cut_over_once(old: Path) -> None:
    with open_job(old, target()) as staging:
        stage(staging)
        cut_over(old, staging)
        kept = undo_path(old).read_bytes()
        with pytest.raises(StoreError, match="already"):
            cut_over(old, staging)
    assert undo_path(old).read_bytes() == kept


def test_a_foreign_file_in_the_place_of_the_undo_file(old: Path) -> None:
    undo_path(old).write_text("mine")
    with open_job(old, target()) as staging:
        stage(staging)
        with pytest.raises(StoreError, match="not a file of this tool"):
            cut_over(old, staging)
    assert undo_path(old).read_text() == "mine"
    assert {len(value) for value in vectors(old).values() if isinstance(value, bytes)} == {32}


def test_the_lock_is_predicted_by_size() -> None:
    assert predict_lock(0, 768) == 0
    assert predict_lock(20_000, 768) < 5
    assert predict_lock(1_000_000, 768) > 5
    assert predict_lock(1000, 1024) > predict_lock(1000, 384)
    assert predict_lock(0, 384, blocks=10) > 0
