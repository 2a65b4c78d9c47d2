"""Whole imports into real files: what is planned is what is stored, once, and can be taken back."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.endpoints_small import Answer, Request, SmallEndpoint, serving
from support.jobs import vector
from support.stores import Other, insert, run_sql, schema_13, snapshot, untouched
from support.talks import ask, at, day, imported, planned, talk, turn, wants

from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.history import plan as planning
from cpersona_cli.history.bring_in import NoVectors, bring_in
from cpersona_cli.history.gather import Item, gather
from cpersona_cli.history.model import (
    Aside,
    Conversation,
    Format,
    HistoryError,
    Looked,
    Stored,
    StoredKind,
    Unread,
)
from cpersona_cli.history.plan import know, make_plan
from cpersona_cli.history.rows import COVERED, NOT_SUMMARISED
from cpersona_cli.history.wants import Form
from cpersona_cli.rebuild.model import Progress
from cpersona_cli.rebuild.stop import Stop
from cpersona_cli.rebuild.target import Identified, identified
from cpersona_cli.store.boundary import Penalty, Rule, Scope, boundary, factor, instant, newest_episodes
from cpersona_cli.store.limits import rules_for
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.writing import comparing
from cpersona_cli.store.writing import insert as inserting
from cpersona_cli.store.writing.imports import Record, backup_path, imports, record_path
from cpersona_cli.store.writing.joblock import JobLock
from cpersona_cli.store.writing.mainfile import Main
from cpersona_cli.store.writing.scratch import SAME_TEXT, STORED_ID, STORED_TEXT, STORED_WIDER, Scratch
from cpersona_cli.store.writing.taking_back import take_back, which

OLD = "2023-04-05T10:00:00"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Twelve memories of two agents in March 2025, and an episode of the fifth; vectors of eight dimensions."""
    path = schema_13(tmp_path / "store" / "c.db", late=True)
    run_sql(path, "PRAGMA journal_mode=WAL")
    return path


def found(endpoint: SmallEndpoint) -> Identified:
    return identified(Endpoint(mode=Mode.HTTP, url=endpoint.url()))


def counts(database: Path) -> tuple[int, int]:
    (row,) = ask(database, "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM episodes)")
    return row[0], row[1]


def test_everything_is_stored_with_its_own_times(database: Path) -> None:
    done = imported(database, [day("c1", OLD), day("c2", "2024-06-07T08:00:00", turns=2)], wants())
    assert done.rows == {Kind.EPISODE: 2, Kind.MEMORY: 5}
    assert (done.memories.read, done.memories.stored) == (5, 5)
    assert (done.episodes.read, done.episodes.stored) == (2, 2)
    assert done.memories.add_up
    assert done.whole
    # no time is that of the import
    spans = ask(
        database,
        "SELECT min(timestamp), max(timestamp), min(created_at), max(created_at) FROM memories WHERE id > 12"
        " UNION ALL SELECT min(start_time), max(end_time), min(created_at), max(created_at) FROM episodes WHERE id > 1",
    )
    assert spans == [
        ("2023-04-05T10:00:00+00:00", "2024-06-07T08:01:00+00:00", "2023-04-05 10:00:00", "2024-06-07 08:01:00"),
        ("2023-04-05T10:00:00+00:00", "2024-06-07T08:01:00+00:00", "2023-04-05 10:02:00", "2024-06-07 08:01:00"),
    ]
    # the text index knows them
    assert ask(database, "SELECT count(*) FROM memories_fts WHERE memories_fts MATCH '\"harbour\"'") == [5]
    assert ask(database, "SELECT count(*) FROM episodes_fts WHERE episodes_fts MATCH '\"harbour\"'") == [2]
    assert backup_path(database).stat().st_mode & 0o777 == 0o600
    assert record_path(database).stat().st_mode & 0o777 == 0o600


def test_a_plan_writes_nothing_and_says_what_will_be(database: Path) -> None:
    insert(
        database,
        "memories",
        [{"content": "In conversation c1 this is remark 0 about the harbour, told at some length."}],
    )
    talks = [day("c1", OLD), day("c1", OLD), talk("c3", turn("m1", "ok"), turn("m2", " ".join(map(str, range(8000)))))]
    with untouched(database.parent):
        plan = planned(database, talks, wants())
    assert plan.memories.read == 8
    assert plan.memories.stored == 3
    assert plan.memories.duplicate == {SAME_TEXT: 3, STORED_TEXT: 1}
    assert plan.memories.left_out == {"short messages": 1}
    assert plan.memories.add_up
    assert plan.episodes.duplicate == {COVERED: 1}
    assert plan.episodes.left_out == {NOT_SUMMARISED: 1}
    assert plan.rows == {Kind.EPISODE: 1, Kind.MEMORY: 5}
    assert (plan.read.split, plan.read.conversations, plan.read.turns) == (1, 3, 8)
    assert (plan.read.first, plan.read.last) == (at(OLD), at("2023-04-05T10:02:00"))
    assert not plan.refusals
    done = imported(database, talks, wants())
    assert (done.memories, done.episodes, done.rows) == (plan.memories, plan.episodes, plan.rows)


def test_an_episode_that_took_the_id_of_a_lost_one_is_not_taken_for_it(database: Path) -> None:
    """A backup was brought back, and the server went on."""
    before = database.read_bytes()
    assert imported(database, [day("c1", OLD)], wants()).episodes.stored == 1
    run_sql(database, "UPDATE episodes SET resolved = 1 WHERE id = (SELECT max(id) FROM episodes)")
    assert imported(database, [day("c1", OLD)], wants()).episodes.duplicate == {COVERED: 1}
    database.write_bytes(before)
    insert(database, "episodes", [{"summary": "Of something else."}])
    assert imported(database, [day("c1", OLD)], wants()).episodes.stored == 1


def test_a_second_run_changes_nothing_and_a_grown_export_adds_what_is_new(database: Path) -> None:
    imported(database, [day("c1", OLD)], wants())
    before = ask(database, "SELECT id, content, timestamp, created_at FROM memories")
    again = imported(database, [day("c1", OLD)], wants())
    assert again.rows == {}
    assert again.id == ""
    assert again.memories.duplicate == {STORED_ID: 3}
    assert again.episodes.duplicate == {COVERED: 1}
    assert ask(database, "SELECT id, content, timestamp, created_at FROM memories") == before
    grown = imported(database, [day("c1", OLD, turns=5)], wants())
    assert grown.rows == {Kind.EPISODE: 1, Kind.MEMORY: 2}
    assert grown.memories.duplicate == {STORED_ID: 3}
    both = imported(database, [day("c2", OLD), day("c2", OLD, turns=5), day("c2", OLD, turns=4)], wants())
    assert (both.rows, both.episodes.duplicate) == ({Kind.EPISODE: 2, Kind.MEMORY: 5}, {COVERED: 1})
    assert ask(database, "SELECT start_time FROM episodes ORDER BY id DESC LIMIT 1") == ["2023-04-05T10:03:00+00:00"]
    assert imported(database, [day("c1", OLD, turns=5)], wants()).rows == {}
    # an episode that was deleted by hand is brought in again
    run_sql(database, "DELETE FROM episodes WHERE id > 1")
    assert imported(database, [day("c1", OLD, turns=5)], wants()).rows == {Kind.EPISODE: 1}


def test_equal_texts_fall_together_and_what_is_there_keeps_its_date(database: Path) -> None:
    told = "Please continue with the harbour."
    insert(database, "memories", [{"content": "Just go on, if you like.", "timestamp": "2026-01-01T00:00:00+00:00"}])
    talks = [talk(f"c{n}", turn("m1", told), turn("m2", "Just go on, if you like.")) for n in range(40)]
    done = imported(database, talks, wants(form=Form.MEMORIES))
    assert done.rows == {Kind.MEMORY: 1}
    assert done.memories.duplicate == {SAME_TEXT: 39 + 39, STORED_TEXT: 1}
    assert ask(database, "SELECT timestamp FROM memories WHERE content = 'Just go on, if you like.'") == [
        "2026-01-01T00:00:00+00:00"
    ]


def test_a_copy_that_every_project_sees_counts_if_the_same_speaker_said_it(database: Path) -> None:
    talks = [day("c1", OLD, turns=1)]
    imported(database, talks, wants(form=Form.MEMORIES))
    wider = planned(database, talks, wants(form=Form.MEMORIES, project="orion"))
    assert wider.memories.duplicate == {STORED_ID: 1}
    run_sql(database, "UPDATE memories SET msg_id = ''")
    wider = planned(database, talks, wants(form=Form.MEMORIES, project="orion", channel="desk"))
    assert wider.memories.duplicate == {STORED_WIDER: 1}
    run_sql(database, """UPDATE memories SET source = '{"type":"User","id":"someone"}' WHERE id > 12""")
    assert planned(database, talks, wants(form=Form.MEMORIES, project="orion")).memories.stored == 1
    run_sql(database, "UPDATE memories SET source = 'no json' WHERE id > 12")
    assert planned(database, talks, wants(form=Form.MEMORIES, project="orion")).memories.stored == 1


def test_what_was_read_is_counted_whatever_it_was(database: Path) -> None:
    exported = Stored(kind=StoredKind.MEMORY, where="e, line 2", text="An exported one.", at=at(OLD), agent="b")
    items: list[Item] = [
        day("c1", OLD),
        Conversation(
            id="c2", format=Format.CLAUDE, where="x", passed_over="empty", left_out={"images": 2},
            altered={"NULs removed": 1}, undated={"in the future": 1}, branches=3, remarks=("A circle.",),
        ),
        exported,
        Stored(kind=StoredKind.PROFILE, where="e, line 3", text="Likes short answers."),
        Stored(kind=StoredKind.MEMORY, where="e, line 4", text="x", undated="no time is given"),
        Aside(where="e", left_out={"entities": 4}),
        Unread(where="e, line 5", reason="it is not JSON"),
        Looked(where="export.json", size=100, format=Format.CLAUDE),
        Looked(where="notes.txt", size=7, reason="a text"),
    ]  # fmt: skip
    plan = planned(database, items, wants())
    read = plan.read
    assert (read.conversations, read.turns, read.rows, read.branches) == (2, 3, 3, 3)
    assert read.not_talk == {"entities": 4, "images": 2, "profiles": 1}
    assert read.altered == {"NULs removed": 1}
    assert read.undated == {"in the future": 1, "no time is given": 1}
    assert read.remarks == ("x: A circle.",)
    assert read.passed_over == {"empty": 1}
    assert (read.files_read, read.files_passed, read.bytes, read.unread_count) == (1, 1, 100, 1)
    assert plan.memories.read == 5
    assert plan.memories.left_out == {"without a date": 1}
    assert plan.episodes.left_out == {"empty": 1}
    assert plan.memories.add_up
    assert plan.episodes.add_up


def test_lists_are_bounded_and_counts_are_not(database: Path) -> None:
    items = [Unread(where=f"line {n}", reason="x") for n in range(1500)]
    read = planned(database, items, wants()).read
    assert (len(read.unread), read.unread_count) == (1000, 1500)


def test_talk_belongs_to_an_agent(database: Path) -> None:
    with pytest.raises(HistoryError, match="--agent"):
        planned(database, [day("c1", OLD)], wants(agent=""))
    for name in ("project", "channel"):
        with pytest.raises(HistoryError, match=f"--{name} must be printable"):
            planned(database, [], wants(**{name: "a\nb"}))


# the penalty


def test_without_care_the_plan_says_what_would_count_for_less(database: Path) -> None:
    plan = planned(database, [day("c1", "2025-03-20T10:00:00")], wants(form=Form.EPISODES))
    first = plan.scopes[0]
    assert first.before.stamp == "2025-03-05 12:00:00"
    assert first.after.stamp == "2025-03-20 10:02:00"
    # of the eight memories of atlas, from March 2 to 12, the first was at the floor already
    assert (first.rows, first.changed) == (8, 7)
    assert -0.5 <= first.most < -0.4
    assert plan.changed == 7
    assert any("--no-penalty" in warning for warning in plan.warnings)
    assert not plan.refusals


def test_an_episode_newer_than_the_boundary_is_refused(database: Path) -> None:
    talks = [day("c1", OLD), day("c2", "2025-03-20T10:00:00"), day("c3", "2025-03-21T10:00:00")]
    plan = planned(database, talks, wants(no_penalty=True))
    assert plan.late_count == 2
    assert (plan.late[0].ended, plan.late[0].allowed) == ("2025-03-20 10:02:00", "2025-03-05 12:00:00")
    (refusal,) = plan.refusals
    assert "2 episodes are newer than the boundary" in refusal
    assert "--clamp" in refusal
    with untouched(database.parent), pytest.raises(StoreError, match="newer than the boundary"):
        imported(database, talks, wants(no_penalty=True))


def test_with_clamp_it_is_dated_back_and_keeps_its_own_times(database: Path) -> None:
    wanted = wants(no_penalty=True, clamp=True)
    talks = [day("c1", OLD), day("c2", "2025-03-20T10:00:00")]
    plan = planned(database, talks, wanted)
    assert (plan.late_count, plan.clamped, plan.refusals) == (1, 1, ())
    assert any("dated back" in warning for warning in plan.warnings)
    done = imported(database, talks, wanted)
    assert done.held is True
    assert not any(one.moved for one in done.scopes)
    assert ask(database, "SELECT created_at, end_time FROM episodes WHERE id > 1 ORDER BY created_at") == [
        ("2023-04-05 10:02:00", "2023-04-05T10:02:00+00:00"),
        ("2025-03-05 12:00:00", "2025-03-20T10:02:00+00:00"),
    ]


def test_what_cannot_be_dated_at_all_is_refused_with_and_without_clamp(database: Path) -> None:
    run_sql(database, "DELETE FROM episodes", "UPDATE memories SET timestamp = '1969-01-01T00:00:00+00:00'")
    for clamp in (False, True):
        plan = planned(database, [day("c1", OLD)], wants(no_penalty=True, clamp=clamp))
        assert "cannot be dated" in plan.refusals[0]


_PLACES = st.sampled_from([("", ""), ("orion", ""), ("vega", "desk"), ("", "desk")])
_DAYS = st.dates(at("2025-02-20T00:00:00").date(), at("2025-03-25T00:00:00").date())
_IMPORTS = st.lists(
    st.tuples(_PLACES, st.lists(_DAYS, min_size=1, max_size=2), st.sampled_from(list(Form)), st.booleans()),
    min_size=1,
    max_size=3,
)
_STORED = st.lists(st.tuples(_PLACES, _DAYS), max_size=3)


def factors(database: Path, upto: int) -> list[float]:
    """What the memories up to an id count for, in every recall that sees them, by every release."""
    penalty = Penalty(rate=0.0001, floor=0.0)  # a floor would hide a move
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        newest = newest_episodes(connection, frozenset({"agent_id", "project_id", "channel", "created_at"}), "atlas")
        memories = connection.execute(
            "SELECT project_id, channel, timestamp FROM memories WHERE agent_id = 'atlas' AND id <= ? ORDER BY id",
            (upto,),
        ).fetchall()
    connection.close()
    rules = rules_for(13)
    assert Rule() in rules
    return [
        factor(instant(stamp, local=rule.local), boundary(newest, scope, rule).at, penalty)
        for rule in rules
        for project in (None, "", "orion", "vega", "elsewhere")
        for channel in ("", "desk", "elsewhere")
        for scope in [Scope("atlas", project, channel)]
        for own, its, stamp in memories
        if scope.covers(own, its)
    ]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_STORED, _STORED, _IMPORTS)
def test_after_any_sequence_of_imports_every_memory_counts_as_before(
    tmp_path_factory: pytest.TempPathFactory, memories: Any, episodes: Any, sequence: Any
) -> None:
    database = schema_13(tmp_path_factory.mktemp("sequence") / "c.db", rows=0, text_index=False)
    run_sql(database, "DELETE FROM episodes")
    insert(
        database,
        "memories",
        (
            {"content": f"stored {n}", "project_id": p, "channel": c, "timestamp": f"{d}T12:00:00+00:00"}
            for n, ((p, c), d) in enumerate(memories)
        ),
    )
    insert(
        database,
        "episodes",
        (
            {"project_id": p, "channel": c, "created_at": f"{d}{'T' if n % 2 else ' '}08:00:00"}
            for n, ((p, c), d) in enumerate(episodes)
        ),
    )
    for number, ((project, channel), days, form, clamp) in enumerate(sequence):
        (upto,) = ask(database, "SELECT coalesce(max(id), 0) FROM memories")
        before = factors(database, upto)
        talks = [day(f"c{number}-{n}", f"{when}T10:00:00") for n, when in enumerate(days)]
        wanted = wants(project=project, channel=channel, form=form, no_penalty=True, clamp=clamp)
        if planned(database, talks, wanted).refusals:
            assert not clamp
            with pytest.raises(StoreError, match="newer than the boundary"):
                imported(database, talks, wanted)
        else:
            done = imported(database, talks, wanted)
            assert done.held is True
            assert not done.memories.failures + done.episodes.failures
        assert factors(database, upto) == before


def test_a_disk_without_room_is_told_before_anything_is_written(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "free_bytes", lambda _folder: 1 << 20)
    (refusal,) = planned(database, [day("c1", OLD)], wants()).refusals
    assert "1 MiB are free" in refusal
    assert not planned(database, [], wants()).refusals


def test_a_database_that_lacks_an_index_is_told_and_still_holds_each_memory_once(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "_MANY", 2)
    run_sql(database, "DROP INDEX idx_memories_dedup_msg_id", "DROP INDEX idx_memories_dedup_content")
    plan = planned(database, [day("c1", OLD)], wants())
    assert any("lacks an index" in warning for warning in plan.warnings)
    imported(database, [day("c1", OLD)], wants())
    assert imported(database, [day("c1", OLD)], wants()).memories.duplicate == {STORED_ID: 3}


# beside others, and cut off


def test_what_others_change_between_plan_and_writing_is_seen(database: Path) -> None:
    """A memory that a server stored meanwhile is a duplicate; a boundary that fell meanwhile holds episodes off."""
    wanted = wants(no_penalty=True)
    talks = [day("c1", OLD), day("c2", "2025-03-01T10:00:00")]
    with Scratch() as scratch:
        know(database, scratch)
        plan = make_plan(database, scratch, gather(talks, wanted, scratch), wanted)
        assert not plan.refusals
        run_sql(database, "UPDATE episodes SET created_at = '2024-01-01 00:00:00'")
        insert(
            database,
            "memories",
            [{"content": "In conversation c1 this is remark 1 about the harbour, told at some length."}],
        )
        insert(database, "episodes", [{"agent_id": "someone else"}])
        done = bring_in(database, scratch, plan, wanted)
    assert done.memories.duplicate == {STORED_TEXT: 1}
    assert done.memories.stored == 5
    assert done.episodes.failed == {inserting.LATE: 1}
    assert done.episodes.stored == 1
    assert done.episodes.add_up
    assert done.held is True
    assert not done.whole
    assert counts(database) == (12 + 1 + 5, 1 + 1 + 1)


def test_between_two_transactions_a_change_is_seen_too(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inserting, "_LOCKED", 0.0)  # one row each
    wanted = wants(no_penalty=True, clamp=True, form=Form.EPISODES)
    seen: list[int] = []

    def tell(progress: Progress) -> None:
        if progress.phase == "storing" and not seen:
            seen.append(progress.done)
            run_sql(database, "UPDATE episodes SET created_at = '2024-01-01 00:00:00' WHERE id = 1")

    talks = [day("c1", OLD), day("c2", "2025-03-01T10:00:00")]
    done = imported(database, talks, wanted, tell=tell)
    assert seen == [1]
    assert ask(database, "SELECT created_at FROM episodes WHERE id > 1") == [
        "2023-04-05 10:02:00",
        "2024-01-01 00:00:00",
    ]
    assert done.held is True


def test_a_change_in_the_moment_before_the_lock_is_seen_too(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lock(self: Main, wait: float) -> None:
        if not locks:
            run_sql(database, "UPDATE episodes SET created_at = '2024-01-01 00:00:00' WHERE id = 1")
        locks.append(wait)
        real(self, wait)

    real = Main.lock
    locks: list[float] = []
    monkeypatch.setattr(Main, "lock", lock)
    monkeypatch.setattr(inserting, "_LOG", 1)
    wanted = wants(no_penalty=True, clamp=True, form=Form.EPISODES)
    done = imported(database, [day("c2", "2025-03-01T10:00:00")], wanted)
    assert ask(database, "SELECT created_at FROM episodes WHERE id > 1") == ["2024-01-01 00:00:00"]
    assert done.held is True
    assert locks


def test_a_row_that_the_database_refuses_is_told_and_the_rest_is_stored(database: Path) -> None:
    run_sql(
        database,
        "CREATE TRIGGER picky BEFORE INSERT ON memories WHEN new.content LIKE '%remark 1%'"
        " BEGIN SELECT raise(ABORT, 'no'); END",
        "CREATE TRIGGER silent BEFORE INSERT ON memories WHEN new.content LIKE '%remark 2%'"
        " BEGIN SELECT raise(IGNORE); END",
    )
    done = imported(database, [day("c1", OLD, turns=4)], wants(form=Form.MEMORIES))
    assert done.memories.failed == {inserting.REFUSED: 2}
    assert done.memories.stored == 2
    assert done.memories.add_up
    assert not done.whole


def test_stopping_keeps_what_is_stored_and_the_same_import_goes_on(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inserting, "_LOCKED", 0.0)
    stop = Stop()

    def tell(progress: Progress) -> None:
        if progress.phase == "storing" and progress.done == 3:
            stop.ask()

    talks = [day("c1", OLD, turns=6)]
    with serving(width=8) as endpoint:
        first = imported(database, talks, wants(), identified=found(endpoint), tell=tell, stop=stop)
    assert first.interrupted
    assert first.why_none == NoVectors.INTERRUPTED
    assert first.rows == {Kind.EPISODE: 1, Kind.MEMORY: 2}
    assert (first.memories.stored, first.memories.rest) == (2, 4)
    assert first.memories.add_up
    assert not first.whole
    saved = backup_path(database).stat()
    second = imported(database, talks, wants())
    assert second.rows == {Kind.MEMORY: 4}
    assert second.memories.duplicate == {STORED_ID: 2}
    # the backup is still that from before the first part
    assert second.backup is not None
    assert not second.backup.made
    assert backup_path(database).stat().st_mtime_ns == saved.st_mtime_ns
    assert imported(database, [day("c9", OLD)], wants()).backup.made  # type: ignore[union-attr]


def test_only_one_job_at_a_time(database: Path) -> None:
    with JobLock(database), pytest.raises(StoreError, match="right now"):
        imported(database, [day("c1", OLD)], wants())


def test_a_database_that_is_kept_locked_is_told(database: Path) -> None:
    with Other(database, "BEGIN IMMEDIATE"), pytest.raises(StoreError, match="kept locked"):
        imported(database, [day("c1", OLD)], wants(), wait=0.0)
    assert counts(database) == (12, 1)
    with pytest.raises(StoreError, match="no import is on record"):
        which(database)


# vectors


def test_rows_get_the_vectors_of_their_texts(database: Path) -> None:
    with serving(width=8) as endpoint:
        done = imported(database, [day("c1", OLD)], wants(), identified=found(endpoint))
    assert (done.embedded, done.without_vector, done.why_none) == (4, 0, "")
    assert done.whole
    rows = ask(database, "SELECT content, embedding FROM memories WHERE id > 12")
    rows += ask(database, "SELECT summary, embedding FROM episodes WHERE id > 1")
    assert len(rows) == 4
    assert all(stored == vector(text, 8) for text, stored in rows)


def test_without_an_endpoint_rows_have_no_vector_and_a_later_run_gives_it(database: Path) -> None:
    done = imported(database, [day("c1", OLD)], wants())
    assert (done.without_vector, done.why_none, done.whole) == (4, NoVectors.NOT_WANTED, True)
    assert ask(database, "SELECT count(*) FROM memories WHERE id > 12 AND embedding IS NULL") == [3]
    with serving(width=8) as endpoint:
        again = imported(database, [day("c1", OLD)], wants(), identified=found(endpoint))
    assert (again.rows, again.embedded, again.without_vector) == ({}, 4, 0)


def test_an_endpoint_that_goes_down_leaves_rows_without_vectors_never_zeros(database: Path) -> None:
    turns = [turn(f"m{n}", f"Remark number {n} about something else than the {n} before.") for n in range(40)]
    with serving(width=8) as endpoint:
        target = found(endpoint)

        def down(request: Request, _number: int) -> Answer | None:
            embedded.append(len(request.texts))
            return Answer(401, "") if len(embedded) > 2 else None

        embedded: list[int] = []
        endpoint.behaviour.before = down
        done = imported(database, [talk("c1", *turns)], wants(form=Form.MEMORIES), identified=target)
    assert done.fetched is not None
    assert done.fetched.reason
    assert 0 < done.embedded < 40
    assert done.without_vector == 40 - done.embedded
    assert not done.whole
    assert ask(database, "SELECT count(*) FROM memories WHERE id > 12 AND embedding IS NULL") == [done.without_vector]
    assert ask(database, "SELECT count(*) FROM memories WHERE embedding = zeroblob(32)") == [0]


def test_a_refused_text_is_named_and_the_others_have_their_vectors(database: Path) -> None:
    with serving(width=8, refuses_over=60) as endpoint:
        long = turn("m9", "word " * 80)
        done = imported(
            database, [talk("c1", *day("c1", OLD).turns, long)], wants(form=Form.MEMORIES), identified=found(endpoint)
        )
    assert (done.embedded, done.without_vector) == (3, 1)
    assert [one.kind for one in done.refused] == [Kind.MEMORY]
    assert not done.whole


def test_vectors_of_another_width_are_never_mixed_in(database: Path) -> None:
    with serving(width=64) as endpoint:
        done = imported(database, [day("c1", OLD)], wants(), identified=found(endpoint))
    assert (done.why_none, done.without_vector, done.whole) == (NoVectors.OTHER_WIDTH, 4, False)


def test_an_endpoint_that_cannot_be_used_is_told(database: Path) -> None:
    with serving(width=8, before=lambda _request, _number: Answer(401, "")) as endpoint:
        done = imported(database, [day("c1", OLD)], wants(), identified=found(endpoint))
    assert (done.why_none, done.without_vector, done.whole) == (NoVectors.UNUSABLE, 4, False)


def test_a_text_that_changes_while_it_is_embedded_gets_no_vector_of_the_old_one(database: Path) -> None:
    def meanwhile(_request: Request, _number: int) -> None:
        if not changed:
            changed.append(True)
            run_sql(database, "UPDATE memories SET content = 'Something else.' WHERE id = 13")

    changed: list[bool] = []
    with serving(width=8) as endpoint:
        target = found(endpoint)
        endpoint.behaviour.before = meanwhile
        done = imported(database, [day("c1", OLD)], wants(form=Form.MEMORIES), identified=target)
    assert ask(database, "SELECT id FROM memories WHERE embedding IS NULL") == [13]
    assert done.without_vector == 1


# taking back


def test_an_import_is_taken_back_but_for_what_was_changed_since(database: Path) -> None:
    before = ask(database, "SELECT id, content FROM memories")
    first = imported(database, [day("c1", OLD)], wants())
    second = imported(database, [day("c2", OLD, turns=4)], wants(form=Form.MEMORIES))
    run_sql(
        database,
        "UPDATE memories SET content = content || ' Really.' WHERE id = 16",
        "UPDATE memories SET recall_count = 5, embedding = zeroblob(32) WHERE id = 17",
        "DELETE FROM memories WHERE id = 18",
    )
    assert which(database).id == second.id
    taken = take_back(database)
    assert (taken.of.id, taken.removed, taken.left, taken.gone) == (second.id, 2, 1, 1)
    assert [one.id for one in imports(database) if one.undone] == [second.id]
    taken = take_back(database, first.id)
    assert (taken.removed, taken.left, taken.gone) == (4, 0, 0)
    run_sql(database, "DELETE FROM memories WHERE id = 16")
    assert ask(database, "SELECT id, content FROM memories") == before
    assert ask(database, "SELECT count(*) FROM memories_fts WHERE memories_fts MATCH '\"harbour\"'") == [0]
    with pytest.raises(StoreError, match="no import is on record"):
        take_back(database)
    with pytest.raises(StoreError, match="no import nonsense"):
        take_back(database, "nonsense")
    # what was taken back may be brought in again
    assert imported(database, [day("c1", OLD)], wants()).rows == {Kind.EPISODE: 1, Kind.MEMORY: 3}


def test_what_is_noted_of_a_transaction_that_did_not_happen_is_dropped(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def note(self: Record, entries: Any) -> None:
        real(self, entries)
        raise StoreError("the power is gone")

    real = Record.note
    monkeypatch.setattr(Record, "note", note)
    with pytest.raises(StoreError, match="the power is gone"):
        imported(database, [day("c1", OLD)], wants(form=Form.MEMORIES))
    monkeypatch.undo()
    assert counts(database) == (12, 1)
    (one,) = imports(database)
    assert (one.rows, one.finished) == ({Kind.MEMORY: 3}, 0.0)
    # another memory takes the id; it is not the import's
    insert(database, "memories", [{"content": "A memory of its own."}])
    taken = take_back(database)
    assert (taken.removed, taken.left, taken.gone) == (0, 0, 0)
    assert counts(database) == (13, 1)


def test_indexes_that_hear_of_no_change_are_removed(database: Path) -> None:
    index = database.with_name(database.name + ".memories.vecindex")
    index.write_bytes(b"CPXIDX01")
    imported(database, [day("c1", OLD)], wants())
    assert not index.exists()


def test_a_file_of_somebody_else_in_the_place_of_the_record_is_left_alone(database: Path) -> None:
    record_path(database).write_bytes(b"mine" * 100)
    with pytest.raises(StoreError, match="is not a file of this tool"):
        imported(database, [day("c1", OLD)], wants())
    before = snapshot(database.parent)
    assert before[record_path(database).name][0] == 400
    record_path(database).unlink()
    record_path(database).mkdir()
    with pytest.raises(StoreError, match="not a regular file"):
        imports(database)


_KILLED = """
import os, signal, sys
from pathlib import Path
from support.talks import day, imported, wants
from cpersona_cli.store.writing import insert

insert._LOCKED = 0.0

def tell(progress):
    if progress.phase == "storing" and progress.done == 4:
        os.kill(os.getpid(), signal.SIGKILL)

imported(Path(sys.argv[1]), [day("c1", "2023-04-05T10:00:00", turns=8)], wants(no_penalty=True), tell=tell)
"""


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_after_a_kill_the_same_import_goes_on_and_both_parts_can_be_taken_back(database: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", _KILLED, str(database)], env=env, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert counts(database) == (12 + 3, 2)
    done = imported(database, [day("c1", OLD, turns=8)], wants(no_penalty=True))
    assert done.rows == {Kind.MEMORY: 5}
    assert done.memories.duplicate == {STORED_ID: 3}
    assert done.episodes.duplicate == {COVERED: 1}
    assert ask(database, "PRAGMA quick_check") == ["ok"]
    assert [take_back(database).removed for _ in range(2)] == [5, 4]
    assert counts(database) == (12, 1)
