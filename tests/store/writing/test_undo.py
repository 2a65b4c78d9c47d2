"""Taking a cut-over back, completing it, and clearing up."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from support.jobs import ask, everything_else, ours, stage, stored, target, vector, vectors
from support.stores import run_sql

from cpersona_cli.store.job import JobState, Refused, Staged, backup_path, digest, staging_path, undo_path
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.writing.backup import back_up
from cpersona_cli.store.writing.clearing import abandon, forget, unvouched
from cpersona_cli.store.writing.cutover import cut_over, finish_over
from cpersona_cli.store.writing.finished import read_record
from cpersona_cli.store.writing.mainfile import Main
from cpersona_cli.store.writing.staging import Staging, open_job
from cpersona_cli.store.writing.undo import undo

M, E = Kind.MEMORY, Kind.EPISODE


def switch(database: Path, dim: int = 16, only: str = "all") -> dict[tuple[Kind, int], bytes]:
    with open_job(database, target(dim), only=only) as staging:
        wanted = stage(staging)
        cut_over(database, staging)
    return wanted


def test_every_vector_and_label_comes_back_bit_for_bit(new: Path) -> None:
    run_sql(
        new,
        "UPDATE memories SET embedding = x'' WHERE id = 1",
        "UPDATE memories SET embedding = CAST(x'61ff62' AS TEXT) WHERE id = 2",
        "UPDATE memories SET embedding = 1.5 WHERE id = 3",
        "UPDATE memories SET embedding = 7 WHERE id = 4",
        "UPDATE memories SET embedding = NULL WHERE id = 5",
        "UPDATE memories SET embedding_model = 'some ÿ label' WHERE id = 6",
    )
    forms = "SELECT id, typeof(embedding), hex(embedding), embedding_model FROM memories"
    before, rest = ask(new, forms), everything_else(new)
    sidecar = new.with_name(new.name + ".calibration.json")
    sidecar.write_text('{"embedding_dim": 64,  "agent_betas": {"atlas": 0.5}}')
    sidecar.chmod(0o640)
    kept = sidecar.read_bytes()
    wanted = switch(new)
    assert vectors(new) == wanted
    run_sql(
        new,
        "INSERT INTO record_blocks(parent_kind, parent_id, block_index, agent_id, start_char, end_char)"
        " VALUES ('mem', 1, 0, 'atlas', 0, 9)",
    )
    new.with_name(new.name + ".memories.vecindex").write_bytes(b"of the new vectors")
    done = undo(new)
    assert ask(new, forms) == before
    assert everything_else(new) == rest
    assert (done.restored, done.already, done.left, done.gone, done.newer, done.blocks) == (21, 0, 0, 0, 0, 1)
    assert done.indexes == (f"{new.name}.memories.vecindex",)
    assert (done.calibration, sidecar.read_bytes()) == ("restored", kept)
    assert sidecar.stat().st_mode & 0o777 == 0o640
    assert 0 < done.locked_seconds <= done.seconds
    finished = read_record(new)
    assert finished is not None
    assert finished.undone > finished.finished
    again = undo(new)
    assert (again.restored, again.already) == (0, 21)
    with open_job(new, target()) as staging:
        assert (staging.fresh, staging.counts().staged) == (False, 21)
        assert cut_over(new, staging).rows == 21
    assert vectors(new) == wanted
    undo(new)
    assert ask(new, forms) == before


@pytest.mark.parametrize("column", ["vector = zeroblob(256)", "label = x'61'", "form = 'text'"])
def test_nothing_is_put_back_from_a_damaged_file(new: Path, column: str) -> None:
    switch(new)
    before = stored(new)
    run_sql(undo_path(new), f"UPDATE mem SET {column} WHERE id = 3")
    with pytest.raises(StoreError, match="reembed-undo was damaged"):
        undo(new)
    assert stored(new) == before
    with Staging.open_existing(new) or pytest.fail("the job is gone") as staging:
        assert staging.state is JobState.CUT


def test_a_row_that_changed_since_is_left(new: Path) -> None:
    before = stored(new)
    switch(new, 32)
    run_sql(
        new,
        "UPDATE memories SET embedding = zeroblob(128) WHERE id = 1",
        "UPDATE memories SET content = 'rewritten' WHERE id = 2",
        "DELETE FROM memories WHERE id = 3",
        "INSERT INTO memories(agent_id, content, timestamp, embedding) VALUES ('a', 'new', '2025', zeroblob(128))",
        "INSERT INTO memories(agent_id, content, timestamp) VALUES ('a', 'newer', '2025-01-01')",
    )
    changed = stored(new)
    done = undo(new)
    assert (done.restored, done.left, done.gone, done.newer) == (18, 2, 1, 1)
    left = {key: changed[key] for key in changed if key not in before or key in {(M, 1), (M, 2)}}
    assert stored(new) == {key: before[key] for key in before if key != (M, 3)} | left


def test_it_too_looks_again_under_the_lock(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stored(old)
    wanted = switch(old)
    lock = Main.lock

    def changing(self: Main, wait: float) -> None:
        run_sql(old, "UPDATE memories SET content = 'rewritten' WHERE id = 1")
        lock(self, wait)

    monkeypatch.setattr(Main, "lock", changing)
    assert (undo(old).restored, stored(old)[M, 1]) == (12, ("blob", wanted[M, 1], None))
    assert {key: value for key, value in stored(old).items() if key != (M, 1)} == {
        key: value for key, value in before.items() if key != (M, 1)
    }


def test_only_what_a_partial_job_changed(new: Path) -> None:
    run_sql(new, "UPDATE memories SET embedding = NULL WHERE id = 2")
    before = stored(new)
    with open_job(new, target(64), only="missing") as staging:
        stage(staging, lambda kind, identifier: (kind, identifier) == (M, 2))
        cut_over(new, staging)
    done = undo(new)
    assert (done.restored, done.calibration, done.newer) == (1, "untouched", 0)
    assert stored(new) == before
    assert ask(new, "SELECT count(*) FROM record_blocks") == [(38,)]


def test_labels_that_came_with_an_upgrade_are_empty_again(old: Path) -> None:
    before = vectors(old)
    switch(old)
    for table in ("memories", "episodes"):
        run_sql(old, f"ALTER TABLE {table} ADD COLUMN embedding_model TEXT NOT NULL DEFAULT ''")
    run_sql(old, "UPDATE memories SET embedding_model = 'b-label'")
    undo(old)
    assert vectors(old) == before
    assert {label for _, _, label in stored(old).values()} == {""}


def test_a_precision_chosen_since_outlives_the_undo(old: Path) -> None:
    sidecar = old.with_name("c.db.calibration.json")
    sidecar.write_text(json.dumps({"embedding_dim": 8, "global_threshold": 0.4, "agent_betas": {"atlas": 1.0}}))
    switch(old)
    now = json.loads(sidecar.read_text())
    sidecar.write_text(json.dumps({**now, "agent_betas": {"atlas": 2.0}}))
    undo(old)
    assert json.loads(sidecar.read_text()) == {
        "embedding_dim": 8,
        "global_threshold": 0.4,
        "agent_betas": {"atlas": 2.0},
    }


def test_a_calibration_that_came_since_is_made_anew(old: Path) -> None:
    sidecar = old.with_name("c.db.calibration.json")
    switch(old)
    sidecar.write_text('{"embedding_dim": 16, "global_threshold": 0.4, "scoring_version": "s3"}')
    assert undo(old).calibration == "rewritten"
    found = json.loads(sidecar.read_text())
    assert (found["embedding_dim"], found["global_threshold"], found["scoring_version"]) == (8, None, "s3")


def test_there_is_nothing_to_take_back(old: Path) -> None:
    with pytest.raises(StoreError, match="can be taken back"):
        undo(old)
    assert ours(old) == set()


def test_a_row_a_live_server_wrote_is_found_and_finished(new: Path) -> None:
    """A server on the old backend stores, updates and loses an embedding after the cut."""
    before = stored(new)
    with open_job(new, target(64, fingerprint="f00d")) as staging:
        wanted = stage(staging)
        staging.add([], [Refused(M, 9, digest("x"), "blank")])
        cut_over(new, staging)
        assert list(unvouched(new)) != []  # row 9
    run_sql(
        new,
        "UPDATE memories SET content = 'rewritten', embedding = zeroblob(256), embedding_model = '' WHERE id = 1",
        "UPDATE memories SET embedding = zeroblob(256), embedding_model = '' WHERE id = 2",
        "UPDATE memories SET content = 'lost', embedding = NULL, embedding_model = '' WHERE id = 3",
        "INSERT INTO memories(agent_id, content, timestamp, embedding) VALUES ('a', 'new', '2025', zeroblob(256))",
        "INSERT INTO memories(agent_id, content, timestamp, embedding, embedding_model)"
        " VALUES ('a', 'of the new backend', '2025-01-01', zeroblob(256), 'b-label')",
        "INSERT INTO record_blocks(parent_kind, parent_id, block_index, agent_id, start_char, end_char,"
        " embedding_model) VALUES ('mem', 1, 0, 'a', 0, 9, ''), ('mem', 1, 1, 'a', 0, 9, 'b-label')",
    )
    newest = max(n for _, n in stored(new)) - 1
    rows = {(row.kind, row.id): row for row in unvouched(new)}
    assert rows.keys() == {(M, 1), (M, 2), (M, 3), (M, 9), (M, newest)}
    assert (rows[M, 1].text, rows[M, 1].vector, rows[M, 3].vector) == ("rewritten", bytes(256), None)
    assert rows[M, newest].agent == "a"
    with Staging.open_existing(new) or pytest.fail("no job") as staging:
        fresh = [Staged(r.kind, r.id, digest(r.text), vector(r.text, 64)) for r in rows.values() if r.id != 9]
        staging.add(fresh)
        done = finish_over(new, staging)
        assert staging.state is JobState.CUT
    assert (done.written, done.emptied, done.blocks) == ({M: 4}, 0, 1)
    after = stored(new)
    wanted = {key: blob for key, blob in wanted.items() if key != (M, 9)} | {(r.kind, r.id): r.vector for r in fresh}
    assert {key: after[key] for key in wanted} == {key: ("blob", blob, "b-label") for key, blob in wanted.items()}
    assert [row.id for row in unvouched(new)] == [9]
    finished = read_record(new)
    assert finished is not None
    assert finished.rows == len(wanted)
    undo(new)
    back = stored(new)
    unchanged = before.keys() - {(M, 1), (M, 3)}
    assert {key: back[key] for key in unchanged} == {key: before[key] for key in unchanged}
    assert back[M, 1] == ("blob", bytes(256), "")
    assert back[M, 3] == ("null", None, "")
    assert back[M, newest] == ("blob", bytes(256), "")


def test_a_row_refused_later_loses_what_the_old_backend_gave_it(new: Path) -> None:
    switch(new, 64)
    run_sql(new, "UPDATE memories SET content = 'poison', embedding = zeroblob(256), embedding_model = '' WHERE id = 1")
    run_sql(new, "UPDATE memories SET content = 'unseen', embedding = zeroblob(256), embedding_model = '' WHERE id = 2")
    with Staging.open_existing(new) or pytest.fail("no job") as staging:
        staging.add([], [Refused(M, 1, digest("poison"), "server_error")])
        done = finish_over(new, staging)
    assert (done.rows, done.emptied) == (0, 1)
    assert [stored(new)[M, n][:2] for n in (1, 2)] == [("null", None), ("blob", bytes(256))]


def test_what_changes_while_it_is_finished(new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    switch(new, 64)
    run_sql(new, "UPDATE memories SET content = 'first', embedding = zeroblob(256) WHERE id IN (1)")
    run_sql(new, "UPDATE memories SET content = 'second', embedding = zeroblob(256) WHERE id IN (2)")
    lock = Main.lock

    def changing(self: Main, wait: float) -> None:
        run_sql(new, "UPDATE memories SET content = 'third', embedding = x'0000803f' WHERE id = 1")
        lock(self, wait)

    with Staging.open_existing(new) or pytest.fail("no job") as staging:
        staging.add(Staged(M, n, digest(t), vector(t, 64)) for n, t in ((1, "first"), (2, "second")))
        monkeypatch.setattr(Main, "lock", changing)
        done = finish_over(new, staging)
    assert (done.rows, done.changed) == (1, 1)
    assert vectors(new)[M, 1] == b"\0\0\x80?"
    assert vectors(new)[M, 2] == vector("second", 64)


def test_of_a_partial_job_only_its_rows_are_doubtful(new: Path) -> None:
    with open_job(new, target(64), only="missing") as staging:
        stage(staging, lambda kind, identifier: kind is M and identifier < 4)
        cut_over(new, staging)
    assert list(unvouched(new)) == []
    run_sql(new, "UPDATE memories SET embedding = zeroblob(256), embedding_model = '' WHERE id IN (2, 8)")
    assert [row.id for row in unvouched(new)] == [2]
    staging_path(new).unlink()
    assert [row.id for row in unvouched(new)] == [2]
    assert not staging_path(new).exists()


def test_finishing_needs_a_cut_over(old: Path) -> None:
    with open_job(old, target()) as staging:
        stage(staging)
        with pytest.raises(StoreError, match="no finished re-embedding"):
            finish_over(old, staging)
        with pytest.raises(StoreError, match="no finished re-embedding"):
            list(unvouched(old))


def test_an_unfinished_job_is_abandoned(old: Path) -> None:
    before = old.read_bytes()
    with open_job(old, target()) as staging:
        stage(staging)
        back_up(staging)
        with pytest.raises(StoreError, match="right now"):
            abandon(old)
    with pytest.raises(StoreError, match="unfinished"):
        forget(old)
    assert set(abandon(old)) == {staging_path(old), backup_path(old)}
    assert (ours(old), old.read_bytes()) == (set(), before)
    with pytest.raises(StoreError, match="no unfinished job"):
        abandon(old)
    staging_path(old).write_bytes(b"")
    assert abandon(old) == (staging_path(old),)


def test_a_finished_job_is_forgotten_but_for_its_record(old: Path) -> None:
    with open_job(old, target()) as staging:
        stage(staging)
        back_up(staging)
        cut_over(old, staging)
    with pytest.raises(StoreError, match="already: take them back"):
        abandon(old)
    assert set(forget(old)) == {staging_path(old), backup_path(old), undo_path(old)}
    assert ours(old) == {".json"}
    assert forget(old) == ()
    with pytest.raises(StoreError, match="can be taken back"):
        undo(old)
    finished = read_record(old)
    assert finished is not None
    assert finished.rows == 13


def test_an_earlier_jobs_undo_lasts_until_the_next_cut(old: Path) -> None:
    first = stored(old)
    switch(old, 16)
    second = stored(old)
    with open_job(old, target(32, "model-c")) as staging:
        stage(staging)
    abandon(old)
    undo(old)
    assert stored(old) == first
    switch(old, 16)
    switch(old, 32)
    undo(old)
    assert stored(old) == second


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"null", b'{"job": 3}', b"\xff\xfe", b"[" * 100_000, b'{"job": "x", "dim": 3}']
)
def test_a_record_that_cannot_be_read_is_none(old: Path, content: bytes) -> None:
    old.with_name("c.db.reembed.json").write_bytes(content)
    assert read_record(old) is None


def test_a_record_says_no_more_than_it_should(old: Path) -> None:
    switch(old)
    document = json.loads(old.with_name("c.db.reembed.json").read_text())
    assert document["schema"] == "cpersona-cli/reembedded/1"
    with contextlib.closing(sqlite3.connect(old)) as connection:
        for (text,) in connection.execute("SELECT content FROM memories"):
            assert text not in json.dumps(document)
