"""A job that dies: the store is all old or all new, and the next run goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.jobs import everything_else, ours, stage, stored, target, vectors
from support.stores import run_sql

from cpersona_cli.store.job import JobState, staging_path, undo_path
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.writing import cutover, settling
from cpersona_cli.store.writing.clearing import abandon, forget
from cpersona_cli.store.writing.cutover import cut_over
from cpersona_cli.store.writing.mainfile import Main
from cpersona_cli.store.writing.staging import Staging, open_job
from cpersona_cli.store.writing.undo import undo
from cpersona_cli.store.writing.undofile import next_path

M = Kind.MEMORY

#: Ends the process, as a kill does, after the n-th call of a function or method.
SCRIPT = """
import os, sys
from pathlib import Path
from support.jobs import target
from cpersona_cli.store.writing import calibration, cutover, derived, settling, undo
from cpersona_cli.store.writing.mainfile import Main
from cpersona_cli.store.writing.staging import Staging, open_job
from cpersona_cli.store.writing.undofile import UndoFile

database, what, where, number = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
holder, name = where.split(".")
owner, left = globals()[holder], number
called = getattr(owner, name)

def dying(*args, **options):
    global left
    result = called(*args, **options)
    left -= 1
    if not left:
        os._exit(9)
    return result

setattr(owner, name, dying)
if what == "cut":
    with open_job(database, target()) as staging:
        cutover.cut_over(database, staging)
else:
    undo.undo(database)
"""


def killed(database: Path, what: str, where: str, number: int = 1) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(database), what, where, str(number)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["tests", "."])},
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == 9


#: Where a cut-over can die, in order, and whether it has happened by then.
POINTS = (
    ("UndoFile.make", 1, False),
    ("cutover._write_plan", 1, False),
    ("UndoFile.write_meta", 4, False),  # says that it is cutting, the staging file does not yet
    ("Staging.set_state", 1, False),
    ("Main.lock", 1, False),
    ("cutover._update", 1, False),
    ("cutover._drop", 1, False),
    ("cutover._swap", 1, True),
    ("Main.make_durable", 1, True),
    ("settling.make_final", 1, True),
    ("calibration.renew", 1, True),
    ("settling.write_record", 1, True),
    ("UndoFile.write_meta", 5, True),  # says that it is cut, the staging file does not yet
)


@pytest.mark.parametrize(("where", "number", "happened"), POINTS)
def test_killed_anywhere_the_next_run_goes_on(old: Path, where: str, number: int, happened: bool) -> None:
    before, rest = stored(old), everything_else(old)
    with open_job(old, target()) as staging:
        wanted = stage(staging)
        staging.set_state(JobState.STAGED)
    killed(old, "cut", where, number)
    assert vectors(old) == (wanted if happened else {key: value[1] for key, value in before.items()})
    copy = old.parent.parent / "copy"
    shutil.copytree(old.parent, copy)
    with open_job(old, target()) as staging:
        assert not staging.fresh
        assert staging.counts().staged == len(wanted)
        done = cut_over(old, staging)
        assert staging.state is JobState.CUT
    assert (done.recovered, done.rows) == (happened, 13)
    assert vectors(old) == wanted
    assert ours(old) == {"", "-undo", ".json"}
    undo(old)
    assert stored(old) == before
    assert everything_else(old) == rest
    # The same files, and somebody who wants no more of it.
    if happened:
        with pytest.raises(StoreError, match="take them back"):
            abandon(copy / old.name)
        undo(copy / old.name)
    else:
        abandon(copy / old.name)
        assert ours(copy / old.name) == set()
    assert stored(copy / old.name) == before


@pytest.mark.parametrize("where", ["UndoFile.write_meta", "Main.lock", "undo._swap_back", "calibration.restore"])
def test_an_undo_that_is_killed_is_called_again(old: Path, where: str) -> None:
    old.with_name("c.db.calibration.json").write_text('{"embedding_dim": 8}')
    before = stored(old)
    with open_job(old, target()) as staging:
        wanted = stage(staging)
        cut_over(old, staging)
    killed(old, "undo", where)
    assert vectors(old) in (wanted, {key: value[1] for key, value in before.items()})
    undo(old)
    assert stored(old) == before
    assert old.with_name("c.db.calibration.json").read_text() == '{"embedding_dim": 8}'


def test_files_taken_in_the_middle_are_all_old_or_all_new(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a loss of power leaves: the database, and any part of its log."""
    before = vectors(old)
    copies = old.parent.parent / "copies"

    def take(name: str) -> None:
        (copies / name).mkdir(parents=True)
        for suffix in ("", "-wal"):
            shutil.copy(f"{old}{suffix}", copies / name / f"c.db{suffix}")

    drop, follow = cutover._drop, settling.follow

    def dropping(*args: object) -> object:
        dropped = drop(*args)  # type: ignore[arg-type]
        main = args[1]
        assert isinstance(main, Main)
        main.connection.execute("PRAGMA cache_spill=1")
        take("middle")
        return dropped

    def following(*args: object) -> object:
        take("committed")
        return follow(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(cutover, "_drop", dropping)
    monkeypatch.setattr(cutover, "follow", following)
    with open_job(old, target()) as staging:
        wanted = stage(staging)
        cut_over(old, staging)
    assert vectors(copies / "middle" / "c.db") == before
    log = (copies / "committed" / "c.db-wal").read_bytes()
    seen = set()
    for share in range(21):
        folder = copies / str(share)
        folder.mkdir()
        shutil.copy(copies / "committed" / "c.db", folder / "c.db")
        (folder / "c.db-wal").write_bytes(log[: len(log) * share // 20])
        found = vectors(folder / "c.db")
        assert found in (before, wanted)
        seen.add(found == wanted)
    assert seen == {False, True}


def test_power_lost_after_the_commit_and_before_the_disk_had_it(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stored(old)
    folder = old.parent.parent / "lost"

    def losing(*_: object) -> object:
        shutil.copytree(old.parent, folder)
        (folder / "c.db-wal").write_bytes(b"")
        raise KeyboardInterrupt

    monkeypatch.setattr(cutover, "follow", losing)
    with open_job(old, target()) as staging:
        wanted = stage(staging)
        with pytest.raises(KeyboardInterrupt):
            cut_over(old, staging)
    monkeypatch.undo()
    lost = folder / "c.db"
    assert stored(lost) == before
    with open_job(lost, target()) as staging:
        assert staging.state is JobState.CUTTING
        done = cut_over(lost, staging)
    assert (done.recovered, vectors(lost)) == (False, wanted)
    undo(lost)
    assert stored(lost) == before


@pytest.mark.parametrize("where", ["_update", "_drop"])
def test_an_interrupt_in_the_transaction_changes_nothing(
    old: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    before = stored(old)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with open_job(old, target()) as staging:
        wanted = stage(staging)
        with monkeypatch.context() as patch:
            patch.setattr(cutover, where, interrupted)
            with pytest.raises(KeyboardInterrupt):
                cut_over(old, staging)
        assert (staging.state, stored(old)) == (JobState.STAGED, before)
        assert not next_path(old).exists()
        cut_over(old, staging)
    assert vectors(old) == wanted


def test_a_server_that_went_on_does_not_hide_what_happened(old: Path) -> None:
    """After the kill a server rewrote most of the rows that could tell, and undo still has the others."""
    before = stored(old)
    with open_job(old, target()) as staging:
        wanted = stage(staging)
    killed(old, "cut", "cutover._swap")
    run_sql(old, "UPDATE memories SET embedding = zeroblob(64) WHERE id < 11", "DELETE FROM memories WHERE id = 11")
    assert undo(old).restored == 2
    assert stored(old)[M, 12] == before[M, 12]
    assert wanted[M, 12] != before[M, 12][1]


def test_the_staging_file_is_not_needed_to_settle(old: Path) -> None:
    before = stored(old)
    with open_job(old, target()) as staging:
        stage(staging)
    killed(old, "cut", "cutover._swap")
    staging_path(old).unlink()
    with pytest.raises(StoreError, match="no unfinished job"):
        abandon(old)
    undo(old)
    assert stored(old) == before
    forget(old)
    assert ours(old) == {".json"}


def test_a_damaged_undo_file_is_not_passed_over(old: Path) -> None:
    with open_job(old, target()) as staging:
        stage(staging)
    killed(old, "cut", "cutover._swap")
    content = next_path(old).read_bytes()
    next_path(old).write_bytes(content[:4096] + bytes(len(content) - 4096))
    with open_job(old, target()) as staging:
        with pytest.raises(StoreError, match="alone tells"):
            cut_over(old, staging)
        assert next_path(old).exists()
        # Before the cut-over such a file was only being written.
        staging.set_state(JobState.STAGED)
        assert settling.settle(old, staging) is None
    assert not next_path(old).exists()


def test_an_undo_file_that_is_gone_is_said(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def removing(database: Path) -> None:
        next_path(database).unlink()

    monkeypatch.setattr(settling, "make_final", removing)
    with open_job(old, target()) as staging:
        wanted = stage(staging)
        with pytest.raises(StoreError, match="cannot be taken back"):
            cut_over(old, staging)
    assert vectors(old) == wanted
    assert not undo_path(old).exists()


def test_a_state_without_traces_begins_anew(old: Path) -> None:
    with Staging.create(old, target()) as staging:
        stage(staging)
        staging.set_state(JobState.CUTTING)
        assert cut_over(old, staging).rows == 13
