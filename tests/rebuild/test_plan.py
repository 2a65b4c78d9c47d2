from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.endpoints_small import embed, serving
from support.environments import block
from support.fit_stores import Written, store_of
from support.scripted import HTTP, Script, Time, ended
from support.stores import SENTENCES, run_sql, untouched

from cpersona_cli.embedding.kinds import Kind as CallKind
from cpersona_cli.embedding.measured import Window
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.stored import pack
from cpersona_cli.install.settings.effective import effective
from cpersona_cli.rebuild import objections
from cpersona_cli.rebuild import plan as module
from cpersona_cli.rebuild.batches import estimate_tokens
from cpersona_cli.rebuild.disk import need
from cpersona_cli.rebuild.model import Only, Pilot, Plan
from cpersona_cli.rebuild.objections import Circumstances
from cpersona_cli.rebuild.pilot import pilot, timed
from cpersona_cli.rebuild.plan import circumstances, make_plan
from cpersona_cli.rebuild.select import BLANK, CURRENT, HAS_ONE, NONE_YET, OWN, RIGHT_WIDTH, SOUND, Range
from cpersona_cli.rebuild.survey import Distinct, survey
from cpersona_cli.rebuild.target import Identified
from cpersona_cli.record import replace
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.job import Staged, Target, digest
from cpersona_cli.store.model import Census, Contents, Kind, Row, StoreError
from cpersona_cli.store.writing.cutover import cut_over
from cpersona_cli.store.writing.staging import open_job

DIM = 64
TARGET = Target(mode="http", url="http://127.0.0.1:8401/embed", model="", dim=DIM, fingerprint="new", label="new")
FOUND = Identified(endpoint=HTTP, kind=CallKind.OK, target=TARGET)
AWAY = replace(FOUND, endpoint=Endpoint(mode=Mode.HTTP, url="https://me:secret99@vectors.example/embed"))


def rows() -> list[Written]:
    """Ten memories of the old model, four of the new, one without a vector, two damaged, two blank, one episode."""
    old = [Written(text=SENTENCES[n], vector=embed(SENTENCES[n], 32), label="old") for n in range(10)]
    new = [Written(text=f"New {n}.", vector=embed(f"New {n}.", DIM), label="new") for n in range(4)]
    return [
        *old,
        *new,
        Written(text="Missing.", vector=None),
        Written(text="Zero.", vector=[0.0] * DIM, label="new"),
        Written(text="Text.", vector="no blob"),
        Written(text=" ", vector=None),
        Written(text="\n", vector=None),
        Written(text="An early plan.", vector=embed("An early plan.", 32), kind=Kind.EPISODE),
        Written(text=SENTENCES[0], vector=None, kind=Kind.EPISODE),
    ]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return store_of(tmp_path / "store", rows())


def planned(database: Path, only: Only = Only.ALL, found: Identified = FOUND, **options: Any) -> Plan:
    store = CPersonaStore(database)
    census = store.census(deadline=time.monotonic() + 60)
    around = options.pop("around", None) or circumstances(None, database)
    return make_plan(store, census, found, only, around=around, **options)


def test_everything_is_counted_and_nothing_is_written(database: Path) -> None:
    with untouched(database.parent):
        plan = planned(database, pilot=Pilot(texts_per_second=48, tokens_per_second=100))
    texts = {row.text for row in rows() if row.text.strip()}
    assert plan.target == TARGET
    assert plan.rows == {Kind.MEMORY: 17, Kind.EPISODE: 2}
    assert (plan.blank, plan.left_out) == (2, {})
    assert plan.distinct == len(texts) == 18
    assert plan.characters == sum(map(len, texts))
    assert plan.tokens == sum(map(estimate_tokens, texts))
    assert plan.requests == 1
    assert plan.seconds == pytest.approx(plan.tokens / 100)
    assert plan.old_dim == 32
    assert plan.old_labels == {"old": 10, "new": 5, "": 1}
    assert plan.consent == ""
    assert (plan.refusals, plan.warnings) == ((), ())
    assert plan.free_bytes
    assert plan.backup_bytes == database.stat().st_size


@pytest.mark.parametrize(
    ("only", "chosen", "left_out"),
    [
        (Only.ALL, (17, 2), {}),
        (Only.MISMATCHED, (12, 2), {RIGHT_WIDTH: 5}),
        (Only.FOREIGN, (11, 1), {NONE_YET: 2, OWN: 5}),
    ],
)
def test_each_choice_is_planned_with_what_is_left_out_and_why(
    database: Path, only: Only, chosen: tuple[int, int], left_out: dict[str, int]
) -> None:
    plan = planned(database, only)
    assert (plan.rows[Kind.MEMORY], plan.rows[Kind.EPISODE]) == chosen
    assert plan.left_out == left_out
    assert sum(plan.rows.values()) + plan.blank + sum(left_out.values()) == len(rows())
    assert plan.refusals == ()


@pytest.mark.parametrize(
    ("only", "left_out"), [(Only.MISSING, {HAS_ONE: 17}), (Only.DAMAGED, {NONE_YET: 2, SOUND: 15})]
)
def test_a_choice_that_would_leave_two_models_is_refused(database: Path, only: Only, left_out: dict[str, int]) -> None:
    plan = planned(database, only)
    assert plan.left_out == left_out
    (refusal,) = plan.refusals
    assert refusal == (
        f"most stored vectors have 32 dimensions and this endpoint gives 64: --only {only} would leave two models in"
        " one store; leave --only out, or use --only mismatched"
    )
    run_sql(database, "UPDATE memories SET embedding = NULL", "UPDATE episodes SET embedding = NULL")
    assert planned(database, only).refusals == ()


def test_rows_that_a_label_vouches_for_may_be_left_out(database: Path) -> None:
    plan = planned(database, skip_current=True)
    assert plan.left_out == {CURRENT: 4}
    assert plan.rows[Kind.MEMORY] == 13
    nameless = replace(FOUND, target=replace(TARGET, fingerprint="", label="", model=""))
    assert planned(database, found=nameless, skip_current=True).left_out == {}


def test_measured_ranges_are_planned(database: Path) -> None:
    plan = planned(database, Only.FOREIGN, foreign=[Range(Kind.MEMORY, 11, 12)])
    assert plan.rows[Kind.MEMORY] == 13


def test_texts_that_leave_this_computer_need_consent(database: Path) -> None:
    assert planned(database, found=AWAY).consent == "vectors.example"
    assert planned(database, Only.FOREIGN, found=AWAY).consent == "vectors.example"
    run_sql(database, "DELETE FROM memories", "DELETE FROM episodes")
    nothing = planned(database, found=AWAY)
    assert (nothing.consent, sum(nothing.rows.values()), nothing.seconds) == ("", 0, None)
    odd = replace(FOUND, endpoint=Endpoint(mode=Mode.HTTP, url="http://[::1/embed"))
    assert module._host(odd) == odd.endpoint.address


def test_rows_beyond_the_window_are_a_warning(database: Path) -> None:
    window = Window(words=200, characters=1200, cut=True)
    assert planned(database, found=replace(FOUND, window=window)).warnings == ()
    run_sql(database, f"INSERT INTO memories(agent_id, content, timestamp) VALUES ('a', '{'garden soil ' * 400}', '')")
    plan = planned(database, found=replace(FOUND, window=window, warnings=("first",)))
    assert plan.warnings[0] == "first"
    assert plan.warnings[1].startswith("1 row is longer than what the server reads (the longest has about 962 tokens)")
    assert planned(database, found=replace(FOUND, window=replace(window, at_least=True))).warnings == ()


AROUND = Circumstances(database=Path("/data/memory.db"), free=10**12)

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"objections": ("the registrations disagree",)}, "the registrations disagree"),
    ({"search": "remote", "blobs": False}, "CPERSONA_STORE_BLOB is off, so memories keep no vectors"),
    ({"may_write": False}, "may not be written to by this user"),
    ({"free": 10_000}, "has 10 kB free and the rebuild needs up to"),
    (
        {"job": replace(TARGET, fingerprint="other", served="mini")},
        "a rebuild with mini (http, 64 dimensions, fingerprint other) was begun and is not finished, and this one is",
    ),
]


@pytest.mark.parametrize(("changed", "words"), REFUSED)
def test_what_forbids_a_rebuild(database: Path, changed: dict[str, Any], words: str) -> None:
    plan = planned(database, around=replace(AROUND, **changed))
    assert len(plan.refusals) == 1
    assert words in plan.refusals[0]
    if "job" in changed:
        assert plan.refusals[0].endswith(
            "with new (http, 64 dimensions, fingerprint new); go on with the former, or give it up with"
            " cpersona-cli reembed abandon"
        )


@pytest.mark.parametrize(("count", "shown"), [(0, "0 kB"), (1_250_000, "1.2 MB"), (3 * 10**9, "3.0 GB")])
def test_sizes_are_shown_in_the_unit_that_fits(count: int, shown: str) -> None:
    assert objections._size(count) == shown


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"search": "local", "blobs": False},
        {"job": replace(TARGET, url="http://127.0.0.1:9999/embed", label="x", served="y")},
        {"job": TARGET, "free": 10},  # what is needed was taken already
        {"free": None},
    ],
)
def test_what_does_not(database: Path, changed: dict[str, Any]) -> None:
    assert planned(database, around=replace(AROUND, **changed)).refusals == ()


def test_a_part_of_the_rows_gets_no_other_scale(database: Path) -> None:
    store = CPersonaStore(database)
    census = replace(
        store.census(deadline=time.monotonic() + 60), contents=Contents(looked=10, total=10, norms={1.0: 9, 7.1: 1})
    )
    long = replace(FOUND, kind=CallKind.NOT_NORMALIZED)

    def refusals(only: Only, found: Identified, census: Census) -> Sequence[str]:
        return make_plan(store, census, found, only, around=AROUND).refusals

    assert "would be on another scale than the rest" in refusals(Only.MISMATCHED, long, census)[0]
    assert refusals(Only.ALL, long, census) == ()
    assert refusals(Only.MISMATCHED, FOUND, census) == ()
    same = replace(census, contents=Contents(norms={4.5: 10}))
    assert refusals(Only.MISMATCHED, long, same) == ()


def test_remarks_about_what_is_around(database: Path) -> None:
    plan = planned(database, around=replace(AROUND, search="remote", free=None))
    assert "the index of that service is not rebuilt here" in plan.warnings[0]
    assert plan.warnings[1] == "the system does not tell how much disk is free"


def test_a_long_lock_is_said_beforehand(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "predict_lock", lambda _rows, _dim, _blocks: 7.7)
    plan = planned(database)
    assert plan.lock_seconds == 7.7
    (warning,) = plan.warnings
    assert warning == (
        "the switch keeps other writers waiting for about 8 s, and a server gives up after 5 s: stop it for the switch,"
        " or what it stores then is lost"
    )


def test_what_the_census_had_no_time_for_is_said(database: Path) -> None:
    store = CPersonaStore(database)
    census = replace(store.census(deadline=time.monotonic() + 60), unmeasured=("record_blocks",))
    plan = make_plan(store, census, FOUND, Only.ALL, around=AROUND)
    assert plan.warnings == ("not counted, for want of time: record_blocks",)


def test_no_target_has_no_plan(database: Path) -> None:
    with pytest.raises(ValueError, match="no target"):
        planned(database, found=replace(FOUND, target=None))


def test_a_store_that_cannot_be_read_has_none(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        planned(tmp_path / "missing.db")


def test_circumstances_are_read_from_settings_and_the_disk(database: Path, tmp_path: Path) -> None:
    settings = effective(block({"CPERSONA_VECTOR_SEARCH_MODE": "remote", "CPERSONA_STORE_BLOB": "false"}), "2.6.14")
    found = circumstances(settings, database, holders=["pid 7: cpersona"])
    assert (found.search, found.blobs, found.may_write, found.holders) == ("remote", False, True, ("pid 7: cpersona",))
    assert found.free
    usual = circumstances(effective(block({}), "2.6.14"), database)
    assert (usual.search, usual.blobs) == ("local", True)
    assert not circumstances(None, tmp_path / "none" / "none.db").may_write


class Texts:
    """A store of nothing but texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def rows(self, kind: Kind, *, after: int = 0, vectors: bool = False) -> Iterator[Row]:
        assert not vectors
        if kind is Kind.MEMORY:
            for number, text in enumerate(self.texts, 1):
                yield Row(kind=kind, id=number, text=text)


def test_a_survey_tells_how_far_it_is() -> None:
    told: list[int] = []
    select: Callable[[Row], str] = lambda row: "" if row.text.strip() else BLANK  # noqa: E731
    found = survey(Texts(["one", "two", " "] * 1000), select, vectors=False, tell=told.append)  # type: ignore[arg-type]
    assert told == [1000, 2000, 3000]
    assert (found.chosen, found.distinct, found.blank, found.characters) == (2000, 2, 1000, 6)


def test_many_texts_are_estimated_in_constant_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"memory {number % 30_000}" for number in range(40_000)]
    exact = survey(Texts(texts), lambda _: "", vectors=False)  # type: ignore[arg-type]
    monkeypatch.setattr("cpersona_cli.rebuild.survey.Distinct", lambda: Distinct(1 << 10))
    found = survey(Texts(texts), lambda _: "", vectors=False)  # type: ignore[arg-type]
    assert exact.distinct == 30_000
    assert found.distinct == pytest.approx(30_000, rel=0.1)
    assert found.distinct != 30_000
    assert found.tokens == pytest.approx(exact.tokens, rel=0.1)
    assert found.characters == pytest.approx(exact.characters, rel=0.1)


@given(st.lists(st.text(max_size=3), max_size=50))
def test_few_texts_are_counted_exactly(texts: list[str]) -> None:
    counter = Distinct[None](64)
    new = sum(counter.add(digest(text), None) for text in texts)
    assert counter.count == new == len(set(texts))


def test_never_more_is_kept_than_allowed() -> None:
    counter = Distinct[None](100)
    for number in range(5000):
        counter.add(digest(str(number)), None)
        assert len(counter.kept) <= 100
    assert counter.count == pytest.approx(5000, rel=0.35)


@pytest.mark.parametrize(("dim", "old_dim"), [(768, 384), (96, 64), (1536, 768)])
def test_the_disk_a_rebuild_takes_is_foreseen(tmp_path: Path, dim: int, old_dim: int) -> None:
    """Somewhat above what a real staging file, undo file and log take, and never below."""
    count = 600
    texts = [f"{SENTENCES[n % 10]} {n} " + "and so on " * (n % 30) for n in range(count)]
    written = [Written(text=text, vector=embed(text, old_dim)) for text in texts]
    database = store_of(tmp_path / "store", written)
    run_sql(database, "PRAGMA journal_mode=WAL")
    before = database.stat().st_size
    told = need(database, rows=count, distinct=count, characters=sum(map(len, texts)), dim=dim, old_dim=old_dim)
    target = replace(TARGET, dim=dim)
    with open_job(database, target) as staging:
        staging.add(
            Staged(Kind.MEMORY, number, digest(text), pack("http", embed(text, dim)))
            for number, text in enumerate(texts, 1)
        )
        size = _whole(staging.path)
        assert size <= told.staging <= 1.35 * size
        cut = cut_over(database, staging)
    undo = _whole(database.with_name(database.name + ".reembed-undo"))
    assert undo <= told.undo <= 1.5 * undo
    assert cut.wal_bytes <= told.log + told.growth <= 2.0 * cut.wal_bytes + (1 << 20)
    assert database.stat().st_size - before <= told.growth + (1 << 16)


def _whole(path: Path) -> int:
    """Bytes of an SQLite file without its log."""
    connection = sqlite3.connect(path)
    (pages,), (page,) = (
        connection.execute("PRAGMA page_count").fetchone(),
        connection.execute("PRAGMA page_size").fetchone(),
    )
    connection.close()
    return int(pages * page)


def test_a_pilot_times_real_requests_of_made_up_texts() -> None:
    with serving() as server:
        found = timed(Endpoint(mode=Mode.HTTP, url=server.url()))
        sizes = [len(request.texts) for request in server.calls]
        texts = {text for request in server.calls for text in request.texts}
    assert found is not None
    assert sizes == [32, 32, 32]
    assert len(texts) == 96
    assert found.tokens_per_second > found.texts_per_second


def test_a_slow_endpoint_is_not_asked_for_long() -> None:
    script = Script(time_ := Time(), (12.0, ended(CallKind.OK)))
    found = asyncio.run(pilot(HTTP, factory=script, clock=time_.clock))
    assert found is not None
    assert found.texts_per_second == pytest.approx(32 / 12)


def test_what_was_answered_before_a_failure_counts_and_failures_are_no_pilot() -> None:
    script = Script(time_ := Time(), (1.0, ended(CallKind.OK)), (0.1, ended(CallKind.REFUSED)))
    found = asyncio.run(pilot(HTTP, factory=script, clock=time_.clock))
    assert found is not None
    assert found.texts_per_second == pytest.approx(32)
    assert asyncio.run(pilot(HTTP, factory=script, clock=time_.clock)) is None


def test_requests_follow_the_ceiling_that_is_reached_first(database: Path) -> None:
    small = replace(FOUND, largest_batch=4)
    assert planned(database, found=small).requests == 5
    run_sql(
        database,
        "INSERT INTO memories(agent_id, content, timestamp) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
        f" FROM n WHERE i < 40) SELECT 'a', '{'garden soil ' * 900}' || i, '' FROM n",
    )
    plan = planned(database)
    assert plan.requests == pytest.approx(plan.tokens * 1.1 / 16_384, abs=1)
    assert plan.requests > plan.distinct / 32 + 1
