"""A rebuild step by step, on real stores and a real endpoint."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.endpoints_small import Answer, Request, SmallEndpoint, embed, serving
from support.rebuilds import Oracle, fill, sent, texts, vectors
from support.stores import Other, run_sql, schema_13

from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.rebuild import job as jobs
from cpersona_cli.rebuild.finish import finish
from cpersona_cli.rebuild.job import CANARY, TOLD, Job, settle, told, users
from cpersona_cli.rebuild.judgement import Judgement, Verdict
from cpersona_cli.rebuild.model import Only, Plan, Progress
from cpersona_cli.rebuild.select import selector
from cpersona_cli.rebuild.stop import Stop
from cpersona_cli.rebuild.target import Identified, identified
from cpersona_cli.rebuild.verify import verify
from cpersona_cli.rebuild.work import Ended, Why, Work
from cpersona_cli.record import replace
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.job import JobState
from cpersona_cli.store.model import StoreError
from cpersona_cli.store.writing import cutover
from cpersona_cli.store.writing.locks import Use
from cpersona_cli.store.writing.staging import Staging

WIDTH = 96


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return fill(schema_13(tmp_path / "m.db"), rows=24, width=64)


@pytest.fixture
def server() -> Iterator[SmallEndpoint]:
    with serving(width=WIDTH) as running:
        yield running


class Runner:
    """One run after the other of the same job; what the user is asked is answered by ``better`` and ``waits``."""

    def __init__(self, database: Path, server: SmallEndpoint) -> None:
        self.database, self.endpoint = database, Endpoint(mode="http", url=server.url())
        self.found: Identified = identified(self.endpoint)
        self.store = CPersonaStore(database)
        self.stop = Stop()
        self.told: list[Progress] = []
        self.waited: list[tuple[str, ...]] = []
        self.judged: list[Judgement] = []
        self.better, self.waits = True, False

    def run(self, only: Only = Only.ALL, **fields: Any) -> Ended:
        assert self.found.target is not None
        work = Work(
            database=self.database,
            store=self.store,
            endpoint=self.endpoint,
            identified=self.found,
            plan=Plan(target=self.found.target, only=only),
            select=selector(only, self.found.target),
            batch=4,
            concurrency=1,
            **{"sample": 0, **fields},
        )
        return Job(work, self.stop, self.told.append, agree=self._agree, wait=self._wait).run()

    def _agree(self, judgement: Judgement) -> bool:
        self.judged.append(judgement)
        return self.better

    def _wait(self, names: tuple[str, ...]) -> bool:
        self.waited.append(names)
        return self.waits


@pytest.fixture
def runner(db: Path, server: SmallEndpoint) -> Runner:
    return Runner(db, server)


def test_a_job_from_its_beginning_to_its_end(runner: Runner, db: Path) -> None:
    oracle = Oracle(db, WIDTH)
    ended = runner.run(sample=20)
    assert (ended.complete, ended.held, oracle.state()) == (True, 25, "new")
    assert ended.verified is not None
    assert ended.verified.ok
    assert ended.backup is not None
    with sqlite3.connect(ended.backup) as backup:
        assert backup.execute("SELECT count(*) FROM memories WHERE length(embedding) = 256").fetchone() == (24,)
    backup.close()
    assert [judgement.verdict for judgement in runner.judged] == [Verdict.UNKNOWN]
    phases = list(dict.fromkeys(progress.phase for progress in runner.told))
    assert phases == ["backup", "embed", "checking", "comparing search", "switching", "preparing the switch"]


def test_a_stop_that_was_asked_for_before(runner: Runner, db: Path) -> None:
    oracle = Oracle(db, WIDTH)
    runner.stop.ask()
    ended = runner.run()
    assert (ended.reason, ended.left, ended.counts.done, oracle.state()) == (Why.INTERRUPTED, 25, 0, "old")


def test_who_does_not_want_it_keeps_the_old_vectors(runner: Runner, db: Path) -> None:
    oracle = Oracle(db, WIDTH)
    runner.better = False
    ended = runner.run(sample=20)
    assert (ended.reason, ended.state, ended.counts.done, oracle.state()) == (Why.DECLINED, JobState.STAGED, 25, "old")


def test_it_waits_until_nobody_has_the_database_open(runner: Runner, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "LOOK", 0.01)
    oracle = Oracle(db, WIDTH)
    with Other(db, "SELECT count(*) FROM memories") as other:
        ended = runner.run()
        assert (ended.reason, oracle.state()) == (Why.IN_USE, "old")
        assert str(other.process.pid) in ended.detail
        runner.waits = True
        real = runner._wait

        def wait(names: tuple[str, ...]) -> bool:
            if len(runner.waited) == 3:
                other.say("close")
            return real(names)

        monkeypatch.setattr(runner, "_wait", wait)
        ended = runner.run()
    assert (ended.complete, oracle.state()) == (True, "new")
    assert len(runner.waited) >= 4


def test_nobody_is_asked_where_it_is_open_for_a_moment(
    runner: Runner, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "LOOK", 0.01)
    oracle, looks = Oracle(db, WIDTH), iter([Use(alone=False), Use(alone=False)])
    monkeypatch.setattr(jobs, "in_use", lambda _: next(looks, Use()))
    assert (runner.run().complete, oracle.state(), runner.waited) == (True, "new", [])


def test_a_stop_while_it_waits(runner: Runner, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "LOOK", 0.01)
    with Other(db, "SELECT count(*) FROM memories"):
        runner.waits = True

        def stop(names: tuple[str, ...]) -> bool:
            runner.stop.ask()
            return bool(names)

        runner._wait = stop  # type: ignore[method-assign]
        assert runner.run().reason == Why.INTERRUPTED


def test_who_has_it_open_in_words() -> None:
    assert users(Use()) == ()
    assert users(Use(alone=False)) == ("another program, which this system does not name",)


def test_rows_that_keep_coming_end_the_run(
    runner: Runner, db: Path, server: SmallEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "PASSES", 3)
    oracle = Oracle(db, WIDTH)
    number = iter(range(1000))

    def before(request: Request, _number: int) -> None:
        if sent([request], texts(db).values()):
            text = f"It goes on and on, {next(number)}."
            run_sql(db, f"UPDATE memories SET content = '{text}' WHERE id = {next(number) % 20 + 1}")

    server.behaviour.before = before
    ended = runner.run()
    assert ended.reason == Why.RESTLESS
    assert vectors(db) == oracle.old


def test_most_texts_refused_is_no_switch(runner: Runner, db: Path, server: SmallEndpoint) -> None:
    oracle = Oracle(db, WIDTH)
    good = list(texts(db).values())[:5]
    server.behaviour.before = lambda request, _: (
        Answer(400, {"error": "cannot be embedded"}) if set(sent([request], texts(db).values())) - set(good) else None
    )
    ended = runner.run()
    assert (ended.reason, ended.counts.failed, ended.counts.done) == (Why.TOO_MANY_ERRORS, 20, 5)
    assert ended.detail.startswith("20 of 25 rows could not be embedded, for example: ")
    assert oracle.state() == "old"
    server.behaviour.before = lambda _request, _number: None
    assert runner.run().complete, "what failed is tried again"


# --- what an earlier run left


def _half(runner: Runner, server: SmallEndpoint) -> None:
    """A run that ends half-way."""
    stored = list(texts(runner.database).values())
    server.behaviour.before = lambda _request, _: (
        Answer(401, {"error": "gone"}) if len(set(sent(server.requests[:-1], stored))) >= 12 else None
    )
    assert runner.run().reason == "auth"
    server.behaviour.before = lambda _request, _number: None


def test_the_model_is_another_one_than_before_the_kill(runner: Runner, db: Path, server: SmallEndpoint) -> None:
    """A killed run has kept no canary; some of what it staged is asked for anew."""
    oracle = Oracle(db, WIDTH)
    _half(runner, server)
    staging = Staging.open_existing(db)
    assert staging is not None
    with staging:
        staging.keep(CANARY, None)
    server.behaviour.after = lambda request, _: [embed(text[::-1], WIDTH) for text in request.texts]
    ended = runner.run()
    assert (ended.reason, oracle.state()) == (Why.CHANGED, "old")
    server.behaviour.after = lambda _request, made: made
    ended = runner.run()
    assert (ended.complete, ended.before) == (True, ended.before)
    assert 12 <= ended.before < 25


@pytest.mark.parametrize("phase", ["checking", "comparing search"])
def test_a_wish_to_stop_does_not_wait_for_what_leaves_nothing_behind(
    runner: Runner, db: Path, server: SmallEndpoint, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """A request is under way that nobody answers."""
    oracle, answering = Oracle(db, WIDTH), threading.Event()

    def before(_request: Request, _number: int) -> None:
        if runner.told and runner.told[-1].phase == phase:
            runner.stop.ask()
            answering.wait(60)

    monkeypatch.setattr(server.behaviour, "before", before)
    ended = runner.run(sample=20)
    assert not answering.is_set()
    answering.set()
    assert (ended.reason, ended.state, oracle.state()) == (Why.INTERRUPTED, JobState.STAGED, "old")
    monkeypatch.undo()
    runner.stop = Stop()
    assert runner.run().complete


def test_staged_vectors_that_are_not_the_models_are_never_switched_to(
    runner: Runner, db: Path, server: SmallEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = Oracle(db, WIDTH)

    def late(*args: Any, **fields: Any) -> Any:
        server.behaviour.after = lambda request, _: [embed(text[::-1], WIDTH) for text in request.texts]
        return verify(*args, **fields)

    monkeypatch.setattr("cpersona_cli.rebuild.job.verify", late)
    ended = runner.run()
    assert (ended.reason, ended.switched, oracle.state()) == (Why.NOT_VERIFIED, False, "old")
    assert ended.detail


@pytest.mark.parametrize("happened", [False, True])
def test_a_kill_in_the_middle_of_the_switch_is_settled(
    runner: Runner, db: Path, monkeypatch: pytest.MonkeyPatch, *, happened: bool
) -> None:
    oracle = Oracle(db, WIDTH)
    name = "follow" if happened else "_swap"

    class Killed(BaseException):
        pass

    def killed(*_args: object, **_fields: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(cutover, name, killed)
        patch.setattr(cutover, "settle", lambda *_: None)
        with pytest.raises(Killed):
            runner.run()
    assert oracle.state() == ("new" if happened else "old")
    ended = settle(db, runner.store, runner.told.append)
    assert ended is not None
    assert (ended.complete, ended.held, oracle.state()) == (True, 25, "new")


def test_a_kill_before_the_word_of_it(runner: Runner, db: Path) -> None:
    """The next run says what the killed one could not, and begins nothing anew."""
    assert settle(db, runner.store, runner.told.append) is None
    assert runner.run().complete
    ended = settle(db, runner.store, runner.told.append)
    assert ended is not None
    assert (ended.complete, ended.held, ended.switched) == (True, 25, True)
    told(db)
    assert settle(db, runner.store, runner.told.append) is None


def test_of_some_rows_the_word_is_about_them_alone(runner: Runner, db: Path) -> None:
    run_sql(db, "UPDATE memories SET embedding = NULL WHERE id < 4")
    assert runner.run(Only.MISSING).complete
    run_sql(db, "UPDATE memories SET embedding = NULL WHERE id > 20")
    ended = settle(db, runner.store, runner.told.append)
    assert ended is not None
    assert (ended.complete, ended.counts.done, ended.missed) == (True, 3, 0)


def test_nothing_is_told_of_where_there_is_nothing(tmp_path: Path) -> None:
    told(schema_13(tmp_path / "other.db"))
    assert TOLD == "told"


def test_what_the_database_does_not_hold_is_no_success(
    runner: Runner, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = cutover.cut_over

    def undone_by_others(*args: Any, **fields: Any) -> Any:
        done = real(*args, **fields)
        run_sql(db, "UPDATE memories SET embedding = NULL WHERE id = 3")
        return done

    monkeypatch.setattr(jobs, "cut_over", undone_by_others)
    ended = runner.run()
    assert (ended.complete, ended.reason, ended.held) == (False, Why.NOT_HELD, 24)


def test_vectors_of_the_same_model_stay_where_there_is_no_new_one(tmp_path: Path) -> None:
    database = fill(schema_13(tmp_path / "m.db"), rows=24, width=64)
    bad = texts(database)["mem", 5]
    old = vectors(database)["mem", 5]
    with serving(width=64) as server:
        server.behaviour.before = lambda request, _: Answer(400, {"error": "no"}) if bad in request.texts else None
        ended = Runner(database, server).run()
    assert (ended.counts.failed, ended.counts.done) == (1, 24)
    assert vectors(database)["mem", 5] == old


# --- finish


def test_finishing_needs_a_job_that_has_switched(runner: Runner, db: Path, server: SmallEndpoint) -> None:
    def ask(found: Identified) -> Callable[[], Ended]:
        return lambda: finish(db, runner.store, found, runner.told.append, Stop())

    with pytest.raises(StoreError, match=r"no re-embedding of .* is on record"):
        ask(runner.found)()
    _half(runner, server)
    with pytest.raises(StoreError, match="has not switched yet"):
        ask(runner.found)()
    assert runner.run().complete
    assert runner.found.target is not None
    other = replace(runner.found, target=replace(runner.found.target, dim=32))
    with pytest.raises(StoreError, match=r"the job made vectors of 96 dimensions.*, and the endpoint gives 32"):
        ask(other)()
    with pytest.raises(StoreError, match="and the endpoint gives none that can be used"):
        ask(replace(runner.found, target=None))()


def test_rows_of_the_former_model_are_finished(runner: Runner, db: Path, server: SmallEndpoint) -> None:
    assert runner.run(live=True).complete
    fill_one = "INSERT INTO memories(agent_id, content, timestamp, embedding) VALUES ('a', ?, '2025-05-01', ?)"
    bad = "Cannot be embedded."
    with sqlite3.connect(db) as connection:
        for text in ("Stored meanwhile.", "And another.", bad):
            connection.execute(fill_one, (text, b"\0\0\x80?" * 64))
    connection.close()
    server.behaviour.before = lambda request, _: Answer(400, {"error": "no"}) if bad in request.texts else None
    ended = finish(db, runner.store, runner.found, runner.told.append, Stop())
    assert (ended.counts.done, ended.held, ended.counts.failed) == (2, 2, 1)
    assert [entry.id for entry in ended.failed] == [27]
    oracle = Oracle(db, WIDTH)
    assert {row for row, held in vectors(db).items() if held != oracle.new[row]} == {("mem", 27)}
    stop = Stop()
    stop.ask()
    ended = finish(db, runner.store, runner.found, runner.told.append, stop)
    assert ended.reason == Why.INTERRUPTED
