"""The pipeline against a server on a real socket that answers well: everything once, in order to stop, and shown."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.endpoints_small import Answer, Request, serving
from support.fetching import FakeClock, ListSink, fetched, many, right, rows, target

from cpersona_cli.embedding.client import Client
from cpersona_cli.embedding.loop import run
from cpersona_cli.embedding.measured import Clock
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.rebuild.model import Options, Progress
from cpersona_cli.rebuild.pipeline import fetch
from cpersona_cli.rebuild.run import Run
from cpersona_cli.rebuild.sameness import CANARY
from cpersona_cli.store.job import digest
from cpersona_cli.store.model import Kind, Row, StoreError


def sent_texts(server: Any) -> list[str]:
    return [text for call in server.calls for text in call.texts if text != CANARY]


@pytest.mark.parametrize("path", ["/embed", "/v1/embeddings"])
def test_every_row_gets_the_vector_of_its_text(path: str) -> None:
    some, sink = many(1000), ListSink()
    with serving(scale=1.0 if path == "/embed" else 3.0) as server:
        result = fetched(server, some, sink, path=path)
    assert (result.reason, result.detail, result.interrupted) == ("", "", False)
    assert result.counts.add_up
    assert (result.counts.planned, result.counts.done) == (1000, 1000)
    assert result.requests == len(server.calls)
    assert sorted(sent_texts(server)) == sorted(row.text for row in some)
    assert max(len(call.texts) for call in server.calls) == 32
    assert result.padded / result.tokens < 1.2
    # mode api stores them at length one, whatever length they came in
    assert right(sink, some, mode="api" if path != "/embed" else "http")


@pytest.mark.parametrize(("concurrency", "small"), [(1, 1), (2, 2)])
def test_small_requests_end_as_soon_as_it_is_known_how_many_are_sent_at_a_time(concurrency: int, small: int) -> None:
    some = many(900)
    with serving() as server:
        result = fetched(server, some, ListSink(), concurrency=concurrency)
    assert result.counts.done == 900
    sizes = [len(call.texts) for call in server.calls if len(call.texts) > 1]
    assert sizes.count(8) == small  # in whatever order they were seen to arrive
    assert len(sizes) <= small + 900 // 32 + 2


def test_http_vectors_are_kept_as_they_came() -> None:
    some, sink = many(60), ListSink()
    with serving(scale=3.0) as server:
        result = fetched(server, some, sink)
    assert result.counts.done == 60
    (before,) = {staged.vector for staged in sink.staged.values() if staged.id == 1}
    assert pytest.approx(3.0) == sum(value * value for value in memoryview(before).cast("f")) ** 0.5


def test_no_rows_are_no_fault() -> None:
    with serving(before=lambda *_: Answer(503, "")) as server:
        result = fetched(server, [], ListSink(), clock=FakeClock())
    assert result.counts.planned == 0
    assert result.reason == ""


def test_blank_texts_are_never_sent() -> None:
    some = rows("good", "", "  \n\t", " ", "\u3000", "also good")
    sink = ListSink()
    with serving() as server:
        result = fetched(server, some, sink)
    assert sink.reasons == dict.fromkeys((2, 3, 4, 5), "blank")
    assert (result.counts.nothing, result.counts.done, result.counts.failed) == (4, 2, 0)
    assert result.counts.add_up
    assert sorted(sent_texts(server)) == ["also good", "good"]


def test_a_text_that_cannot_be_sent_fails_alone() -> None:
    sink = ListSink()
    with serving() as server:
        result = fetched(server, rows("good", "half \ud83d of it", "also good"), sink)
    assert sink.reasons == {2: "input_invalid"}
    assert (result.counts.done, result.counts.failed) == (2, 1)


def test_equal_texts_are_sent_once() -> None:
    some = [*rows(*["the same"] * 40, "another"), Row(kind=Kind.EPISODE, id=1, text="the same")]
    sink = ListSink()
    with serving() as server:
        result = fetched(server, some, sink)
    assert sorted(sent_texts(server)) == ["another", "the same"]
    assert (result.counts.done, result.same) == (42, 40)
    assert right(sink, some)


def test_texts_with_a_vector_already_are_not_sent() -> None:
    some, sink = many(300), ListSink()
    with serving() as server:
        fetched(server, some, sink)
        server.requests.clear()
        again = fetched(server, [Row(kind=Kind.EPISODE, id=row.id, text=row.text) for row in some], sink)
        assert sent_texts(server) == []
    assert (again.counts.done, again.same) == (300, 300)
    assert len(sink.staged) == 600


def test_one_commit_for_each_batch() -> None:
    some, sink = many(640), ListSink()
    with serving() as server:
        fetched(server, some, sink)
    batches = sorted(len(call.texts) for call in server.calls if call.texts != [CANARY])
    assert sorted(staged for staged, _ in sink.adds) == batches


def test_one_request_at_a_time_where_that_is_asked() -> None:
    busy, most = [0], [0]
    lock = threading.Lock()

    def before(_request: Request, _number: int) -> None:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])

    def after(_request: Request, vectors: list[list[float]]) -> list[Any]:
        with lock:
            busy[0] -= 1
        return vectors

    sink = ListSink()
    with serving(before=before, after=after) as server:
        fetched(server, many(200), sink, concurrency=1, batch=5)
    assert most == [1]
    assert max(len(call.texts) for call in server.calls) == 5


def test_ceilings_are_kept() -> None:
    some = [*many(300), *rows("x" * 3000, "y " * 2000, "short", first=500)]
    sink = ListSink()
    with serving() as server:
        result = fetched(server, some, sink, batch_bytes=2500, batch_tokens=200)
    assert result.counts.done == 303
    for call in server.calls:
        assert call.size <= 2500 or len(call.texts) == 1


# memory and order of reading


def test_rows_are_read_no_further_than_a_window_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.rebuild.intake.FIRST_WINDOW", 100)
    monkeypatch.setattr("cpersona_cli.rebuild.intake.WINDOW", 500)
    taken = [0]
    furthest = [0]
    sink = ListSink()

    def read() -> Iterator[Row]:
        for row in many(4000):
            taken[0] += 1
            furthest[0] = max(furthest[0], taken[0] - len(sink.staged))
            yield row

    with serving() as server:
        result = fetched(server, read(), sink)
    assert result.counts.add_up
    assert result.counts.done > 3900
    # one window, the end of the one before, and what is under way
    assert furthest[0] <= 500 + 17 * 32 + 16 * 32


def test_a_window_of_long_texts_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.rebuild.intake.CHARACTERS", 400_000)
    taken, furthest = [0], [0]
    sink = ListSink()

    def read() -> Iterator[Row]:
        for number in range(100):
            taken[0] += 1
            furthest[0] = max(furthest[0], taken[0] - len(sink.staged))
            yield Row(kind=Kind.MEMORY, id=number, text=f"{number}".zfill(20_000))

    with serving() as server:
        result = fetched(server, read(), sink, batch_bytes=100_000, concurrency=2)
    assert result.counts.done == 100
    # two windows, and what is under way
    assert furthest[0] * 20_000 <= 2 * 400_000 + 3 * 100_000


# endings


def test_stopping_keeps_what_is_under_way() -> None:
    some, sink, stop = many(2000), ListSink(), asyncio.Event()

    def enough() -> None:
        if len(sink.staged) >= 100:
            stop.set()

    sink.before = enough
    with serving() as server:
        result = fetched(server, some, sink, stop=stop, total=2000)
    assert result.interrupted
    assert result.reason == ""
    sent = len(sent_texts(server))
    assert sent == len(sink.staged) == result.counts.done < 300
    assert result.counts.planned == 2000
    assert right(sink, [row for row in some if (row.kind, row.id) in sink.staged])


def test_stopping_waits_only_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.rebuild.run._GRACE", 0.05)
    sink, stop, held = ListSink(), asyncio.Event(), threading.Event()

    def before(request: Request, number: int) -> Answer | None:
        if number > 1:
            asyncio.run_coroutine_threadsafe(_set(stop), loop[0])
            held.wait(20)
        return None

    async def _set(event: asyncio.Event) -> None:
        event.set()

    loop: list[asyncio.AbstractEventLoop] = []

    async def main(url: str) -> Any:
        loop.append(asyncio.get_running_loop())
        where = Endpoint(mode="http", url=url)
        return await fetch(many(50), sink, where, Options(target=target(), total=50), stop=stop)

    with serving(before=before) as server:
        result = run(main(server.url()))
        held.set()
    assert result.interrupted
    assert result.counts.done == 0
    assert not sink.staged


def test_stopping_ends_a_pause() -> None:
    stop = asyncio.Event()

    def tell(progress: Progress) -> None:
        if progress.why:
            stop.set()

    with serving(before=lambda *_: Answer(429, "", {"retry-after": "300"})) as server:
        result = fetched(server, many(5), ListSink(), stop=stop, tell=tell)
    assert result.interrupted
    assert result.seconds < 100


def test_cancelling_ends_it_at_once_and_loses_little() -> None:
    some, sink = many(600), ListSink()

    async def main(url: str) -> None:
        where = Endpoint(mode="http", url=url)
        task = asyncio.ensure_future(fetch(some, sink, where, Options(target=target())))

        def enough() -> None:
            if len(sink.staged) >= 64:
                task.cancel()

        sink.before = enough
        with pytest.raises(asyncio.CancelledError):
            await task

    with serving() as server:
        run(main(server.url()))
        staged = dict(sink.staged)
        assert right(sink, [row for row in some if (row.kind, row.id) in staged])
        before = sent_texts(server)
        sink.before = lambda: None
        server.requests.clear()
        result = fetched(server, [row for row in some if (row.kind, row.id) not in staged], sink)
        twice = set(before) & set(sent_texts(server))
    assert result.counts.done == 600 - len(staged)
    assert len(twice) <= 3 * 32


def test_a_store_that_fails_ends_it_and_keeps_what_is_done() -> None:
    sink = ListSink()

    def full() -> None:
        if len(sink.staged) >= 40:
            raise StoreError("the disk is full")

    sink.before = full
    with serving() as server, pytest.raises(StoreError, match="disk is full"):
        fetched(server, many(400), sink)
    assert 40 <= len(sink.staged) < 60


def test_a_store_that_cannot_be_read_ends_it() -> None:
    def read() -> Iterator[Row]:
        yield from many(10)
        raise StoreError("locked")

    with serving() as server, pytest.raises(StoreError, match="locked"):
        fetched(server, read(), ListSink())


# what is shown


def test_progress_is_told_seldom_and_ends_with_all() -> None:
    looks: list[Progress] = []
    clock = FakeClock()

    def after(_request: Request, vectors: list[list[float]]) -> list[Any]:
        clock.time += 0.05
        return vectors

    some = many(640)
    with serving(after=after) as server:
        result = fetched(server, some, ListSink(), clock=clock, tell=looks.append, total=640)
    assert 5 <= len(looks) <= result.seconds * 5 + 2
    assert all(look.phase == "embed" and look.total == 640 for look in looks)
    assert [look.done for look in looks] == sorted(look.done for look in looks)
    assert (looks[-1].done, looks[-1].left, looks[-1].in_flight) == (640, 0.0, 0)
    assert looks[0].left is None
    middle = looks[len(looks) // 2]
    assert middle.left is not None
    assert middle.rate > 0
    assert middle.left == pytest.approx((640 - middle.done) / middle.rate)
    assert middle.tokens > 0


def test_the_canary_is_kept_for_the_next_run() -> None:
    sink = ListSink()
    with serving() as server:
        first = fetched(server, many(5), sink)
        second = fetched(server, many(9), sink, canary=first.canary)
    assert len(first.canary) == 4 * 64
    assert second.canary == first.canary
    assert second.counts.done == 9
    assert second.reason == ""


# anything at all


_FATES = st.sampled_from(["ok", "ok", "ok", "ok", "poison", "blank", "long", "twin", "half"])


@given(
    fates=st.lists(_FATES, max_size=60),
    limit=st.integers(1, 40),
    fails=st.sets(st.integers(2, 40), max_size=8),
    lame=st.sampled_from([429, 500, 503, 0]),
)
@settings(max_examples=25, deadline=None)
def test_counts_add_up_and_nobody_gets_anothers_vector(
    fates: list[str], limit: int, fails: set[int], lame: int
) -> None:
    texts = {"poison": "poison {}", "blank": " ", "long": "w " * 80 + "{}", "twin": "twin", "half": "\ud83d {}"}
    some = rows(*(texts.get(fate, "text number {}").format(number) for number, fate in enumerate(fates)))

    def before(request: Request, number: int) -> Answer | None:
        if number in fails:
            return Answer(lame, "") if lame else Answer(drop=True)
        return Answer(400, {"error": "this is refused"}) if any("poison" in text for text in request.texts) else None

    sink = ListSink()
    with serving(before=before, batch_limit=limit, refuses_over=60) as server:
        result = fetched(server, some, sink, clock=FakeClock())
    assert result.reason == ""
    assert result.counts.add_up
    assert result.counts.planned == len(some)
    assert len(sink.staged) + len(sink.refused) == len(some)
    by_reason = {"poison": "rejected", "blank": "blank", "long": "too_long", "half": "input_invalid"}
    # A text that meets the failing requests twice when it is sent alone is given up for their reason.
    unlucky = {number for number, reason in sink.reasons.items() if reason in {"server_error", "disconnected"}}
    assert len({some[number - 1].text for number in unlucky}) * 2 <= len(fails)
    assert {number: reason for number, reason in sink.reasons.items() if number not in unlucky} == {
        number: by_reason[fate]
        for number, fate in enumerate(fates, 1)
        if fate in by_reason and number not in unlucky
    }  # fmt: skip
    assert right(sink, [row for row, fate in zip(some, fates, strict=True)
                        if fate not in by_reason and row.id not in unlucky])  # fmt: skip
    assert all(refused.digest == digest(some[refused.id - 1].text) for refused in sink.refused.values())


def test_answers_are_kept_before_more_is_asked_for() -> None:
    """An endpoint that does many things at a time and is quicker than the disk: what a kill would lose stays small."""
    answered: list[str] = []
    batch = 8
    waiting: list[int] = []
    lock = threading.Lock()

    def after(request: Request, vectors: list[list[float]]) -> list[Any]:
        time.sleep(0.03)  # the work, done for as many at a time as ask
        with lock:
            answered.extend(text for text in request.texts if text != CANARY)
        return vectors

    async def main() -> Run:
        where = Endpoint(mode="http", url=server.url())
        options = Options(target=target(), batch=batch)
        async with Client(where) as client:
            run = Run(some, sink, client, options, tell=None, stop=asyncio.Event(), clock=Clock())
            run.senders.count = 12
            try:
                await run.go()
            finally:
                await run.close()
            return run

    def before() -> None:
        time.sleep(0.015)
        with lock:
            waiting.append(len(answered) - len(sink.staged))

    some, sink = many(400), ListSink(before=before)
    with serving(after=after) as server:
        assert run(main()).ledger.done == 400
    usual = sorted(waiting)[len(waiting) * 9 // 10]  # a machine that stands still for a moment is no fault
    assert usual <= 3 * batch, f"{usual} texts were answered and not kept"
