"""The staging file: one writer, durable batches, one identity, and what is left of a file cut short."""

from __future__ import annotations

import math
import os
import sqlite3
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.jobs import ours, stage, target, vector
from support.stores import run_sql

from cpersona_cli.store.job import JobState, Refused, Staged, digest, staging_path
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.writing.joblock import JobLock, busy
from cpersona_cli.store.writing.staging import Staging, open_job
from cpersona_cli.store.writing.stagingfile import LAYOUT

M, E = Kind.MEMORY, Kind.EPISODE


def entry(identifier: int, text: str = "", kind: Kind = M, dim: int = 16) -> Staged:
    text = text or f"text {identifier}"
    return Staged(kind, identifier, digest(text), vector(text, dim))


def test_a_job_keeps_what_it_was_given(old: Path) -> None:
    rows = [entry(n, f"text {n % 3}") for n in range(1, 10)]
    with Staging.create(old, target(), only="missing", cut_texts=True) as staging:
        staging.add(
            rows, [Refused(M, 40, digest("long"), "too_long", "512 at most", 900), Refused(E, 2, b"d", "blank")]
        )
        staging.keep("limits", {"batch": 32})
    with open_job(old, target(), only="missing", cut_texts=True) as staging:
        assert not staging.fresh
        assert not staging.whole
        assert (staging.meta.only, staging.meta.cut_texts, staging.state) == ("missing", True, JobState.STAGING)
        assert staging.target == target()
        assert list(staging.staged(M)) == rows
        assert list(staging.staged(M, after=7)) == rows[7:]
        assert list(staging.staged(E)) == []
        assert list(staging.refused()) == [
            Refused(E, 2, b"d", "blank", "", None),
            Refused(M, 40, digest("long"), "too_long", "512 at most", 900),
        ]
        assert [row.id for row in staging.refused(M)] == [40]
        counts = staging.counts()
        assert (counts.rows, counts.refused, counts.staged) == ({M: 9}, {"blank": 1, "too_long": 1}, 9)
        assert staging.staged_digests(M, [2, 40, 99]) == {2: digest("text 2")}
        assert staging.refused_digests(M, [2, 40]) == {40: digest("long")}
        assert staging.vectors(M, [3, 40]) == {3: vector("text 0", 16)}
        assert staging.vector_for(digest("text 1")) == vector("text 1", 16)
        assert staging.vector_for(digest("other")) is None
        assert staging.kept("limits") == {"batch": 32}
        assert staging.kept("nothing") is None


def test_what_is_known_of_a_row_is_replaced(old: Path) -> None:
    with Staging.create(old, target()) as staging:
        staging.add([], [Refused(M, 1, digest("a"), "server_error")])
        staging.add([entry(1, "a")])
        assert list(staging.refused()) == []
        staging.add([entry(1, "b")], [Refused(M, 2, digest("c"), "blank")])
        assert staging.staged_digests(M, [1]) == {1: digest("b")}
        newer = Staged(M, 1, digest("b"), vector("something else", 16))
        staging.add([newer])
        assert list(staging.staged(M)) == [newer]


def test_equal_texts_share_a_vector_across_runs(old: Path) -> None:
    with Staging.create(old, target()) as staging:
        staging.add([entry(1, "same")])
    with open_job(old, target()) as staging:
        staging.add([entry(5, "same"), entry(5, "same", kind=E)])
        assert staging.counts().rows == {M: 2, E: 1}
        assert staging.vectors(E, [5]) == {5: vector("same", 16)}


@pytest.mark.parametrize(
    ("blob", "words"),
    [
        (vector("x", 8), "8 dimensions for a job of 16"),
        (b"\0" * 63, "15.75 dimensions"),
        (b"", "0 dimensions"),
        (struct.pack("<16f", *[0.0] * 15, math.nan), "no finite numbers (row mem:2)"),
        (struct.pack("<16f", math.inf, -math.inf, *[0.0] * 14), "no finite numbers"),
    ],
)
def test_a_batch_with_a_bad_vector_leaves_nothing(old: Path, blob: bytes, words: str) -> None:
    with Staging.create(old, target()) as staging:
        with pytest.raises(StoreError) as caught:
            staging.add([entry(1), Staged(M, 2, digest("x"), blob)], [Refused(M, 3, b"", "blank")])
        assert words in str(caught.value)
        assert staging.counts().staged == 0
        assert staging.counts().refused == {}


def test_large_numbers_are_numbers(old: Path) -> None:
    with Staging.create(old, target()) as staging:
        staging.add([Staged(M, 1, b"d", struct.pack("<16f", *[3.4e38] * 16))])
        assert staging.counts().staged == 1


def test_only_the_owner_reads_it(old: Path) -> None:
    before = os.umask(0)
    try:
        with Staging.create(old, target()) as staging:
            staging.add([entry(1)])
            modes = {file.name: file.stat().st_mode & 0o777 for file in old.parent.iterdir() if ".reembed" in file.name}
    finally:
        os.umask(before)
    assert len(modes) == 4  # the file, its two logs, the lock
    assert set(modes.values()) == {0o600}


def test_a_link_is_not_followed(old: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    staging_path(old).symlink_to(elsewhere)
    begins: list[Callable[[], object]] = [
        lambda: open_job(old, target()),
        lambda: Staging.create(old, target()),
        lambda: Staging.open_existing(old),
    ]
    for begin in begins:
        with pytest.raises(StoreError, match="not a regular file"):
            begin()
    assert elsewhere.read_text() == "precious"
    assert busy(old) is None


def test_a_link_to_a_database_leads_to_the_same_job(old: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(old)
    with open_job(link, target()) as staging:
        assert staging.path.parent == old.parent
        with pytest.raises(StoreError, match="right now"):
            open_job(old, target())


def test_two_runs_at_once_cannot_be(old: Path) -> None:
    with open_job(old, target()):
        assert busy(old) == os.getpid()
        begins: list[Callable[[], object]] = [
            lambda: open_job(old, target()),
            lambda: Staging.open_existing(old),
            lambda: JobLock(old).acquire(),
        ]
        for begin in begins:
            with pytest.raises(StoreError, match=f"process {os.getpid()} is at work on"):
                begin()
    assert busy(old) is None
    assert ours(old) == {""}
    with JobLock(old) as lock:
        lock.release()
        lock.release()


def test_a_dead_workers_job_goes_on(old: Path) -> None:
    script = """
        import os, sys
        from pathlib import Path
        from support.jobs import target, vector
        from cpersona_cli.store.job import Staged, digest
        from cpersona_cli.store.model import Kind
        from cpersona_cli.store.writing.staging import open_job
        staging = open_job(Path(sys.argv[1]), target())
        staging.add([Staged(Kind.MEMORY, 1, digest("a"), vector("a", 16))])
        print(staging.meta.job, flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(old)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["tests", "."])},
        cwd=Path(__file__).parents[3],
    ) as process:
        assert process.stdout is not None
        job = process.stdout.readline().strip()
        with pytest.raises(StoreError, match=f"process {process.pid}"):
            open_job(old, target())
        process.kill()
    with open_job(old, target()) as staging:
        assert staging.meta.job == job
        assert staging.counts().staged == 1


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (target(dim=32), "32 dimensions"),
        (target(model="model-c"), "model model-c"),
        (target(fingerprint="f00d"), "fingerprint f00d"),
    ],
)
def test_other_vectors_are_refused(old: Path, other: object, words: str) -> None:
    with Staging.create(old, target()) as staging:
        staging.add([entry(1)])
    with pytest.raises(StoreError) as caught:
        open_job(old, other)  # type: ignore[arg-type]
    assert words in str(caught.value)
    assert "16 dimensions, mode http, model model-b" in str(caught.value)
    assert "cpersona-cli reembed abandon" in str(caught.value)
    with open_job(old, target()) as staging:
        assert staging.counts().staged == 1


def test_an_address_may_move_and_a_label_come(old: Path) -> None:
    Staging.create(old, target(label="")).close()
    with open_job(old, target(label="later")) as staging:
        assert staging.target.label == "later"


def test_other_rows_are_refused(old: Path) -> None:
    Staging.create(old, target()).close()
    with pytest.raises(StoreError, match="--only all, not --only missing"):
        open_job(old, target(), only="missing")
    with pytest.raises(StoreError, match="begun without --cut-long"):
        open_job(old, target(), cut_texts=True)
    with pytest.raises(StoreError, match="unfinished job"):
        Staging.create(old, target())
    assert busy(old) is None


def test_a_finished_job_is_followed_by_a_new_one(old: Path) -> None:
    with Staging.create(old, target()) as staging:
        staging.add([entry(1)])
        first = staging.meta.job
        staging.set_state(JobState.CUT)
    with open_job(old, target()) as staging:
        assert staging.fresh
        assert staging.meta.job != first
        assert staging.counts().staged == 0


def test_an_undone_job_goes_on_or_gives_way(old: Path) -> None:
    with Staging.create(old, target()) as staging:
        staging.add([entry(1)])
        staging.set_state(JobState.UNDONE)
    with open_job(old, target()) as staging:
        assert (staging.fresh, staging.state, staging.counts().staged) == (False, JobState.STAGING, 1)
        staging.set_state(JobState.UNDONE)
    with open_job(old, target(model="model-c")) as staging:
        assert (staging.fresh, staging.counts().staged) == (True, 0)


def test_no_job(old: Path) -> None:
    assert Staging.open_existing(old) is None
    assert ours(old) == set()


def test_a_sample_is_spread_over_all_rows(old: Path) -> None:
    with Staging.create(old, target()) as staging:
        staging.add(
            [entry(n) for n in range(1, 81)] + [entry(n, kind=E) for n in range(1, 21)], [Refused(M, 90, b"", "blank")]
        )
        sample = staging.sample(10)
        assert [(row.kind, row.id) for row in sample] == [(E, 1), (E, 11), *((M, n) for n in range(1, 81, 10))]
        assert all(row.vector == vector(f"text {row.id}", 16) for row in sample)
        assert len(staging.sample(500)) == 100
        assert staging.sample(0) == []


def test_files_of_others_are_left_alone(old: Path) -> None:
    path = staging_path(old)
    path.write_bytes(b"my own notes " * 20)
    with pytest.raises(StoreError, match="not a file of this tool"):
        open_job(old, target())
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine(x)")
    connection.close()
    with pytest.raises(StoreError, match="not a file of this tool"):
        Staging.create(old, target())
    path.unlink()
    Staging.create(old, target()).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version={LAYOUT + 1}")
    connection.close()
    with pytest.raises(StoreError, match="newer release"):
        open_job(old, target())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(share=st.floats(0, 1), damage=st.sampled_from(["cut", "zeros", "hole"]) | st.binary(min_size=1, max_size=40))
@example(share=0.9999, damage="cut")
@example(share=0.5, damage=b"\x01")
@example(share=0.063, damage=b"\x80")
def test_a_damaged_file_keeps_what_is_whole(old: Path, share: float, damage: str | bytes) -> None:
    """Cut short, its end or a page never written, or other bytes in the middle: no vector comes out as another."""
    for file in old.parent.glob("c.db.reembed*"):
        file.unlink()
    with Staging.create(old, target()) as staging:
        staging.add([entry(n) for n in range(1, 200)])
        staging.keep("limits", 3)
    content = staging_path(old).read_bytes()
    keep = int(len(content) * share)
    lost = {"cut": b"", "zeros": bytes(len(content) - keep)}
    page = keep // 4096 * 4096
    if isinstance(damage, bytes):
        left = content[:keep] + damage + content[keep + len(damage) :]
    elif damage == "hole":
        left = content[:page] + bytes(4096) + content[page + 4096 :]
    else:
        left = content[:keep] + lost[damage]
    staging_path(old).write_bytes(left)
    refused = ""
    try:
        staging = open_job(old, target())
    except StoreError as error:
        refused = str(error)
    if refused:  # no job of this tool, or another one, by what is left of its description
        assert isinstance(damage, bytes)
        assert any(
            way in refused for way in ("move it away", "newer release", "reembed abandon", "check the rights")
        ), refused
        return
    with staging:
        rows = list(staging.staged(M))
        assert all(row == entry(row.id) for row in rows)
        if damage == "cut" and keep < len(content):
            # Of a torn last page nothing is told: its rows are fetched again.
            assert len(staging.notes) == 1 or len(rows) >= 190
        staging.add([entry(n) for n in range(1, 200)])
        assert staging.counts().rows == {M: 199}
        assert staging.fresh or isinstance(damage, bytes) or staging.kept("limits") in {3, None}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE vectors SET vector = zeroblob(length(vector)) WHERE ref = 2",
        "UPDATE vectors SET vector = 'text' WHERE ref = 2",
        "UPDATE rows SET ref = 3 WHERE id = 2",
        "UPDATE rows SET kind = 'mom' WHERE id = 2",
    ],
)
def test_a_vector_that_is_not_what_was_written_is_made_again(old: Path, statement: str) -> None:
    """Damage that SQLite does not see."""
    with Staging.create(old, target()) as staging:
        staging.add([entry(n) for n in range(1, 10)])
    run_sql(staging_path(old), statement)
    with open_job(old, target()) as staging:
        assert [row.id for row in staging.staged(M)] == [1, 3, 4, 5, 6, 7, 8, 9]
        assert all(row == entry(row.id) for row in staging.staged(M))
        assert "was damaged" in staging.notes[0]


def test_nothing_left_of_a_file_is_said(old: Path) -> None:
    Staging.create(old, target()).close()
    staging_path(old).write_bytes(b"")
    assert Staging.open_existing(old) is None
    with open_job(old, target()) as staging:
        assert staging.fresh
        assert "nothing in it can be read" in staging.notes[0]
    staging_path(old).write_bytes(bytes(5000))
    with Staging.create(old, target()) as staging:
        assert stage(staging)


def test_it_cannot_be_made_where_nobody_may_write(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        open_job(tmp_path / "missing" / "c.db", target())


def test_a_vector_that_may_be_another_models_is_forgotten_with_all_rows_of_its_text(old: Path) -> None:
    with Staging.create(old, target()) as staging:
        staging.add([entry(n, f"text {n % 3}") for n in range(1, 7)], [Refused(M, 40, digest("long"), "too_long")])
        staging.discard([(M, 1), (M, 40), (M, 99)])
        assert [row.id for row in staging.staged(M)] == [2, 3, 5, 6]
        assert [row.id for row in staging.refused()] == [40]
        assert staging.vector_for(digest("text 1")) is None
        assert staging.vector_for(digest("text 2")) == vector("text 2", 16)
