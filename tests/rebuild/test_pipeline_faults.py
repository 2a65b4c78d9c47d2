"""The pipeline against servers that refuse, fail, lie and die, on real sockets; nobody waits for a clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from email.utils import formatdate
from time import time
from typing import Any

import pytest
from support.endpoints_small import Answer, Request, embed, serving
from support.fetching import FakeClock, ListSink, fetched, many, right, rows, target

from cpersona_cli.rebuild.sameness import CANARY

POISON = "poison"


def is_canary(request: Request) -> bool:
    return list(request.texts) == [CANARY]


def poisoned(answer: Answer) -> Callable[[Request, int], Answer | None]:
    """A server that answers so to every request that has the poison in it."""
    return lambda request, _: answer if any(POISON in text for text in request.texts) else None


def error(status: int, message: str, **extra: Any) -> Answer:
    return Answer(status, {"error": {"message": message, "type": "error", "code": status, **extra}})


# poison


@pytest.mark.parametrize(
    ("answer", "reason", "patient"),
    [
        (error(500, "failed to encode response: json: unsupported value: NaN"), "nan_for_input", False),
        (error(400, "I do not like this text"), "rejected", False),
        (error(403, "blocked by policy"), "auth", False),
        (error(500, "boom"), "server_error", True),
        (Answer(drop=True), "disconnected", True),
        (Answer(200, "<html>a filter’s page</html>", {"content-type": "text/html"}), "not_json", False),
        (Answer(200, {"embeddings": []}), "empty", True),
        (Answer(200, {"embeddings": [None]}), "null_vector", False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_poisonous_text_stands_alone_with_its_reason(answer: Answer, reason: str, patient: bool) -> None:
    some = many(200)
    some[77] = rows(f"this one is {POISON}", first=78)[0]
    clock, sink = FakeClock(), ListSink()

    def before(request: Request, number: int) -> Answer | None:
        if reason == "null_vector" and any(POISON in text for text in request.texts):
            return Answer(200, {"embeddings": [None] * len(request.texts)})
        return poisoned(answer)(request, number)

    with serving(before=before) as server:
        result = fetched(server, some, sink, clock=clock)
    assert (result.reason, result.detail) == ("", "")
    assert result.counts.add_up
    assert (result.counts.planned, result.counts.done, result.counts.failed) == (200, 199, 1)
    assert sink.reasons == {78: reason}
    assert right(sink, some[:77] + some[78:])
    assert bool(clock.slept) == patient
    assert sum(clock.slept) < 5


def test_the_reason_quotes_the_server() -> None:
    sink = ListSink()
    with serving(before=poisoned(error(400, "this text has no meaning"))) as server:
        fetched(server, rows("good", POISON), sink)
    (refused,) = sink.refused.values()
    assert refused.detail == "“this text has no meaning”"


def test_too_many_failures_end_the_run_and_keep_what_is_done() -> None:
    some = [*many(100), *rows(*(f"{POISON} {number}" for number in range(20)), first=101)]
    sink = ListSink()
    with serving(before=poisoned(error(400, "this is refused"))) as server:
        result = fetched(server, some, sink, max_errors=3, total=120)
    assert result.reason == "too_many_errors"
    assert "4 texts failed, and 3 may" in result.detail
    assert "“this is refused”" in result.detail
    assert len(sink.refused) == 4
    assert result.counts.planned == 120
    assert right(sink, [row for row in some if (row.kind, row.id) in sink.staged])


def test_equal_poison_is_sent_once_and_counts_as_one_error() -> None:
    sink = ListSink()
    some = rows(*[POISON] * 50, "good")
    with serving(before=poisoned(error(400, "no"))) as server:
        result = fetched(server, some, sink, max_errors=1)
    assert result.reason == ""
    assert (result.counts.failed, result.counts.done) == (50, 1)
    assert result.same == 49


@pytest.mark.usefixtures("narrow")
def test_a_poison_that_comes_again_later_is_not_sent_again() -> None:
    sink = ListSink()
    some = [*rows(POISON), *many(60), *rows(POISON, first=100)]
    some = [row for position, row in enumerate(some) if position == 0 or row.id != 1]
    with serving(before=poisoned(error(400, "no"))) as server:
        result = fetched(server, some, sink)
    assert sink.reasons == {1: "rejected", 100: "rejected"}
    assert [len(call.texts) for call in server.calls if POISON in call.texts] == [8, 4, 2, 1]
    assert result.counts.add_up


# lengths


_TOO_LONG = {
    "ollama": (400, {"error": "the input length exceeds the context length"}, None),
    "ollama, old": (400, {"error": "input length exceeds maximum context length"}, None),
    "vllm": (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 512 tokens. However, you requested 1451 tokens in the"
            " input for embedding generation. Please reduce the length of the input.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        1451,
    ),
    "tei": (
        422,
        {
            "message": "Input validation error: `inputs` must have less than 512 tokens. Given: 1451",
            "code": 422,
            "type": "Validation",
        },
        1451,
    ),
    "llama.cpp": (
        500,
        {
            "error": {
                "code": 500,
                "message": "input (1451 tokens) is too large to process. increase the physical batch size"
                " (current batch size: 512)",
                "type": "server_error",
            }
        },
        1451,
    ),
    "openai": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens, however you requested 25701 tokens"
                " (25701 in your prompt; 0 for the completion). Please reduce your prompt; or completion length.",
                "type": "invalid_request_error",
                "param": None,
                "code": None,
            }
        },
        25701,
    ),
}


@pytest.mark.parametrize("name", _TOO_LONG)
def test_a_text_longer_than_the_window_is_left_and_told(name: str) -> None:
    status, body, tokens = _TOO_LONG[name]
    some = [*many(40), *rows(" ".join([POISON] * 300), first=41)]
    sink = ListSink()
    with serving(before=poisoned(Answer(status, body))) as server:
        result = fetched(server, some, sink)
    assert result.reason == ""
    assert (result.counts.done, result.counts.failed, result.counts.unchanged) == (40, 0, 1)
    assert result.counts.add_up
    (refused,) = sink.refused.values()
    assert (refused.reason, refused.tokens) == ("too_long", tokens)
    assert result.learned.get("window") == (None if tokens is None else 8192 if name == "openai" else 512)


@pytest.mark.parametrize("limit", [40, 100])
def test_a_long_text_is_cut_only_when_asked_to(limit: int) -> None:
    long = " ".join(f"word{number}" for number in range(400))
    some = [*many(50), *rows(long, long, first=51)]
    sink = ListSink()
    with serving(refuses_over=limit) as server:
        result = fetched(server, some, sink, cut=True)
    assert result.counts.done == result.counts.planned == 52
    assert result.cut == 2
    assert right(sink, some[:50])
    sent = max((text for call in server.calls for text in call.texts if long.startswith(text)), key=len)
    kept = [text for call in server.calls for text in call.texts if long.startswith(text) and len(text) < len(long)]
    assert sent == long
    assert len(kept[-1].split()) <= limit
    assert len(kept[-1].split()) > limit / 3
    assert sink.staged[some[51].kind, 52].vector == sink.staged[some[50].kind, 51].vector


def test_a_text_that_no_cut_makes_short_enough_is_left() -> None:
    sink = ListSink()
    answer = Answer(400, {"error": "the input length exceeds the context length"})
    with serving(before=lambda request, _: None if is_canary(request) else answer) as server:
        result = fetched(server, rows("a text and more"), sink, cut=True)
    assert sink.reasons == {1: "too_long"}
    assert (result.counts.unchanged, result.cut) == (1, 0)


def test_many_long_texts_cost_one_request_each_once_the_window_is_known() -> None:
    long = [" ".join(f"w{number}x{place}" for place in range(200)) for number in range(40)]
    some = [*many(600), *rows(*long, first=601)]
    sink = ListSink()
    with serving(refuses_over=60) as server:
        result = fetched(server, some, sink, concurrency=2)
    assert result.counts.unchanged == 40
    assert result.counts.done == 600
    assert result.learned["window"] == 60
    refused = sum(any(len(text.split()) > 60 for text in call.texts) for call in server.calls)
    assert refused <= 50


# sizes


def test_a_stated_batch_limit_is_learned_and_kept() -> None:
    message = (
        "<400> InternalError.Algo.InvalidParameter: Value error, batch size is invalid, it should not be larger"
        " than 10.: input.contents"
    )
    answer = Answer(400, {"error": {"message": message, "type": "InvalidParameter", "code": "InvalidParameter"}})
    some, sink = many(1000), ListSink()
    with serving(before=lambda request, _: answer if len(request.texts) > 10 else None) as server:
        result = fetched(server, some, sink, concurrency=2)
    assert result.learned["batch"] == 10
    assert right(sink, some)
    assert sum(len(call.texts) > 10 for call in server.calls) <= 3


def test_a_batch_limit_nobody_states_is_halved() -> None:
    some, sink = many(650), ListSink()
    with serving(body_limit=None, before=lambda r, _: Answer(413, "") if len(r.texts) > 20 else None) as server:
        result = fetched(server, some, sink, concurrency=2)
    assert right(sink, some)
    assert result.learned["bytes"] > 0
    assert sum(len(call.texts) > 20 for call in server.calls) <= 12


def test_a_server_that_takes_one_text_at_a_time() -> None:
    some, sink = many(30), ListSink()
    answer = error(400, "Expected a string at field `input`, but got an array")
    with serving(before=lambda request, _: answer if len(request.texts) > 1 else None) as server:
        result = fetched(server, some, sink)
    assert right(sink, some)
    assert result.learned["batch"] == 1


def test_a_server_that_takes_no_list_at_all_is_refused() -> None:
    sink = ListSink()
    with serving(before=lambda *_: error(400, "Expected a string at field `input`, but got an array")) as server:
        result = fetched(server, many(5), sink)
    assert result.reason == "no_batching"
    assert not sink.staged
    assert not sink.refused


def test_the_tokens_of_a_request_are_no_length_of_a_text() -> None:
    """R09"""

    def before(request: Request, _number: int) -> Answer | None:
        tokens = sum(len(text.split()) for text in request.texts)
        if tokens <= 100:
            return None
        message = f"Requested {tokens} tokens, max 100 tokens per request"
        return Answer(400, {"error": {"message": message, "type": "max_tokens_per_request",
                                      "code": "max_tokens_per_request"}})  # fmt: skip

    some, sink = many(900), ListSink()
    with serving(before=before) as server:
        result = fetched(server, some, sink, concurrency=2)
    assert right(sink, some)
    assert not sink.refused
    assert 0 < result.learned["tokens"] < 400
    assert sum(sum(len(text.split()) for text in call.texts) > 100 for call in server.calls) <= 12


def test_a_runner_that_dies_of_large_batches_gets_smaller_ones() -> None:
    """R12"""
    message = 'do embedding request: Post "http://127.0.0.1:43229/embedding": EOF'
    some, sink, clock = many(900), ListSink(), FakeClock()
    with serving(before=lambda r, _: Answer(500, {"error": message}) if len(r.texts) > 9 else None) as server:
        result = fetched(server, some, sink, clock=clock, batch=32)
    assert right(sink, some)
    assert not sink.refused
    assert result.learned["batch"] <= 9
    assert result.learned["batch"] >= 4
    assert clock.slept


# answers that do not fit


def test_a_missing_vector_costs_nobody_else_theirs() -> None:
    """R13"""

    def after(request: Request, vectors: list[list[float]]) -> list[Any]:
        return vectors[:-1] if len(vectors) > 1 and "n17 " in " ".join(request.texts) else vectors

    some, sink = many(64), ListSink()
    with serving(after=after) as server:
        result = fetched(server, some, sink)
    assert right(sink, some)
    assert result.counts.done == 64
    assert "batch" not in result.learned


def test_a_server_that_never_brings_more_than_a_few_is_given_smaller_batches() -> None:
    some, sink = many(900), ListSink()
    with serving(after=lambda _, vectors: vectors[:16]) as server:
        result = fetched(server, some, sink)
    assert right(sink, some)
    assert result.learned["batch"] == 16


def test_vectors_come_by_index_whatever_their_order() -> None:
    some, sink = many(100), ListSink()
    with serving(backwards=True) as server:
        result = fetched(server, some, sink, path="/v1/embeddings")
    assert result.counts.done == 100
    assert right(sink, some, mode="api")


def test_zero_vectors_are_refused_and_the_others_kept() -> None:
    def after(request: Request, vectors: list[list[float]]) -> list[Any]:
        return [[0.0] * 64 if POISON in text else v for text, v in zip(request.texts, vectors, strict=True)]

    some = [*many(20), *rows(POISON, f"{POISON} 2", first=21)]
    sink = ListSink()
    with serving(after=after) as server:
        result = fetched(server, some, sink)
    assert sink.reasons == {21: "zero_vector", 22: "zero_vector"}
    assert right(sink, some[:20])
    assert result.counts.add_up


def test_texts_that_are_equal_in_what_the_model_reads_are_no_fault() -> None:
    start = "the very same beginning of a long story " * 3
    some = rows(*(start + str(number) for number in range(6)))
    sink = ListSink()
    with serving(window=10) as server:
        result = fetched(server, some, sink)
    assert result.counts.done == 6
    assert len({staged.vector for staged in sink.staged.values()}) == 1
    assert "batch" not in result.learned


def test_a_batch_that_is_answered_with_one_vector_is_asked_for_one_by_one() -> None:
    some, sink = many(16), ListSink()
    with serving(after=lambda _, vectors: [vectors[0]] * len(vectors)) as server:
        result = fetched(server, some, sink)
    assert right(sink, some)
    assert result.counts.done == 16


# another model


@pytest.mark.parametrize("change", ["width", "model", "length", "vectors"])
def test_a_model_that_changes_ends_the_run(change: str) -> None:
    path = "/v1/embeddings" if change == "model" else "/embed"

    def before(request: Request, number: int) -> Answer | None:
        if number <= 4 or change == "vectors":
            return None
        width, scale = (96 if change == "width" else 64), (3.0 if change == "length" else 1.0)
        vectors = [[value * scale for value in embed(text, width)] for text in request.texts]
        if path == "/embed":
            return Answer(200, {"embeddings": vectors})
        data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        return Answer(200, {"data": data, "model": "another"})

    def after(request: Request, vectors: list[list[float]]) -> list[Any]:
        swapped = change == "vectors" and len(server.calls) > 40
        return [vector[1:] + vector[:1] for vector in vectors] if swapped else vectors

    some, sink = many(1200), ListSink()
    with serving(before=before, after=after) as server:
        result = fetched(server, some, sink, path=path, total=1200)
    assert result.reason == "changed_mid_run"
    said = {"width": "96 dimensions now", "model": "“another” now", "length": "length", "vectors": "another vector"}
    assert said[change] in result.detail
    staged = [row for row in some if (row.kind, row.id) in sink.staged]
    assert 0 < len(staged) < 1200
    assert right(sink, staged, mode="api" if change == "model" else "http")
    assert result.counts.done == len(staged)
    assert bool(sink.discarded) == (change == "vectors")
    assert result.counts.planned == 1200


def test_a_server_that_comes_back_with_another_model_writes_nothing() -> None:
    dead = 3

    def before(_request: Request, number: int) -> Answer | None:
        return Answer(drop=True) if 10 <= number < 10 + dead else None

    def after(_request: Request, vectors: list[list[float]]) -> list[Any]:
        return [vector[1:] + vector[:1] for vector in vectors] if len(server.calls) >= 10 + dead else vectors

    some, sink = many(400), ListSink()
    with serving(before=before, after=after) as server:
        result = fetched(server, some, sink, clock=FakeClock())
    assert result.reason == "changed_mid_run"
    assert right(sink, [row for row in some if (row.kind, row.id) in sink.staged])


def test_another_model_at_the_beginning_sends_nothing() -> None:
    sink = ListSink()
    with serving() as server:
        first = fetched(server, many(10), sink)
        server.behaviour.after = lambda _, vectors: [vector[1:] + vector[:1] for vector in vectors]
        server.requests.clear()
        result = fetched(server, many(20), sink, canary=first.canary)
        assert [list(call.texts) for call in server.calls] == [[CANARY]]
    assert result.reason == "changed_mid_run"
    assert len(sink.staged) == 10


def test_a_width_other_than_the_target_sends_nothing() -> None:
    sink = ListSink()
    with serving(width=96) as server:
        result = fetched(server, many(20), sink, aim=target(64))
    assert result.reason == "changed_mid_run"
    assert "96 dimensions" in result.detail
    assert not sink.staged


def test_a_swap_found_in_the_last_look_takes_the_last_rows_back() -> None:
    def after(request: Request, vectors: list[list[float]]) -> list[Any]:
        asked = [call for call in server.calls if is_canary(call)]
        return [vector[1:] + vector[:1] for vector in vectors] if is_canary(request) and len(asked) > 1 else vectors

    some, sink = many(100), ListSink()
    with serving(after=after) as server:
        result = fetched(server, some, sink)
    assert result.reason == "changed_mid_run"
    assert not sink.staged
    assert result.counts.done == 0


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of ten rows, read five at a time, none ahead."""
    monkeypatch.setattr("cpersona_cli.rebuild.intake.FIRST_WINDOW", 10)
    monkeypatch.setattr("cpersona_cli.rebuild.intake.WINDOW", 10)
    monkeypatch.setattr("cpersona_cli.rebuild.intake.SLICE", 5)
    monkeypatch.setattr("cpersona_cli.rebuild.waiting._AHEAD", 0)


@pytest.mark.usefixtures("narrow")
def test_rows_that_share_a_suspect_vector_are_taken_back_with_it() -> None:
    def after(request: Request, vectors: list[list[float]]) -> list[Any]:
        asked = [call for call in server.calls if is_canary(call)]
        return [vector[1:] + vector[:1] for vector in vectors] if is_canary(request) and len(asked) > 1 else vectors

    some = [*many(30), *many(30)]
    some[30:] = rows(*(row.text for row in some[:30]), first=101)
    sink = ListSink()
    with serving(after=after) as server:
        result = fetched(server, some, sink)
    assert result.reason == "changed_mid_run"
    assert result.same == 30
    assert len(set(sink.discarded)) == len(sink.discarded) == 60
    assert result.counts.done == 0
    assert not sink.staged


# waiting


def _told(kind: str) -> tuple[Answer, float]:
    if kind == "seconds":
        return Answer(429, {"error": "rate limit"}, {"retry-after": "7"}), 7
    if kind == "date":
        return Answer(429, {"error": "rate limit"}, {"retry-after": formatdate(time() + 30, usegmt=True)}), 30
    if kind == "sentence":
        return error(429, "Rate limit reached. Please try again in 2.768s"), 2.768
    return error(429, "No deployments available. Try again in 497 seconds"), 497


@pytest.mark.parametrize("kind", ["seconds", "date", "sentence", "long"])
def test_it_waits_as_told_and_finishes(kind: str) -> None:
    answer, seconds = _told(kind)
    some, sink, clock = many(200), ListSink(), FakeClock()
    shown: list[Any] = []
    with serving(before=lambda _, number: answer if number % 3 == 0 else None) as server:
        result = fetched(server, some, sink, clock=clock, tell=shown.append)
    assert right(sink, some)
    assert result.counts.failed == 0
    assert clock.slept
    assert max(clock.slept) == pytest.approx(seconds, abs=2.5 if kind == "date" else 0.01)
    assert min(clock.slept) > seconds * 0.8 - 2.5
    assert any("asks to wait" in look.why for look in shown)
    assert shown[-1].why == ""
    assert result.learned["concurrency"] == 1
    assert result.retries > 0


def test_without_a_word_it_waits_longer_each_time() -> None:
    sink, clock = ListSink(), FakeClock()
    with serving(before=lambda _, number: Answer(429, "") if 3 <= number < 12 else None) as server:
        result = fetched(server, many(60), sink, clock=clock, concurrency=1)
    assert result.counts.done == 60
    assert len(clock.slept) == 9
    for number, pause in enumerate(clock.slept):
        full = min(20, 0.5 * 2**number)
        assert full / 2 <= pause <= full


def test_a_server_that_is_loading_is_waited_for() -> None:
    sink, clock = ListSink(), FakeClock()
    with serving(loading=8) as server:
        result = fetched(server, many(60), sink, clock=clock)
    assert result.counts.done == 60
    assert all(is_canary(call) for call in server.calls[:9])


def test_a_batch_beyond_the_rate_of_a_period_is_sent_in_parts() -> None:
    answer = error(429, "Request too large for this model on tokens per min (TPM)")
    some, sink, clock = many(40), ListSink(), FakeClock()
    with serving(before=lambda request, _: answer if len(request.texts) > 3 else None) as server:
        result = fetched(server, some, sink, clock=clock)
    assert right(sink, some)
    assert result.counts.failed == 0


def test_an_endpoint_that_never_answers_well_changes_nothing() -> None:
    sink, clock = ListSink(), FakeClock()
    with serving(before=lambda *_: Answer(503, {"error": "busy"})) as server:
        result = fetched(server, many(30), sink, clock=clock, total=30)
    assert result.reason == "loading"
    assert "no success for 600 s" in result.detail
    assert 600 <= sum(clock.slept) < 700
    assert not sink.adds
    assert (result.counts.planned, result.counts.done) == (30, 0)


def test_an_endpoint_that_dies_is_given_a_bounded_time() -> None:
    some, sink, clock = many(400), ListSink(), FakeClock()
    with serving(before=lambda _, number: Answer(drop=True) if number > 20 else None) as server:
        result = fetched(server, some, sink, clock=clock, patience=60, total=400)
    assert result.reason == "disconnected"
    assert 30 <= sum(clock.slept) <= 90
    assert 0 < result.counts.done < 400
    assert not sink.refused
    assert right(sink, [row for row in some if (row.kind, row.id) in sink.staged])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (error(401, "bad key"), "auth"),
        (error(402, "pay"), "quota"),
        (error(404, "model 'x' not found"), "model_not_found"),
    ],
)
def test_a_clear_refusal_of_everything_ends_it_at_once(answer: Answer, reason: str) -> None:
    some, sink, clock = many(300), ListSink(), FakeClock()
    with serving(before=lambda _, number: answer if number > 12 else None) as server:
        result = fetched(server, some, sink, clock=clock)
    assert result.reason == reason
    assert not clock.slept
    assert not sink.refused
    assert result.counts.done == len(sink.staged) > 0
    assert len(server.calls) < 20


def test_garbage_for_a_while_passes() -> None:
    page = Answer(502, "<html>Bad Gateway</html>", {"content-type": "text/html"})
    html = Answer(200, "<html>back soon</html>", {"content-type": "text/html"})
    some, sink, clock = many(300), ListSink(), FakeClock()

    def before(_request: Request, number: int) -> Answer | None:
        return page if 10 < number <= 14 else html if 14 < number <= 18 else None

    with serving(before=before) as server:
        result = fetched(server, some, sink, clock=clock)
    assert result.reason == ""
    assert right(sink, some)


def test_a_text_that_only_fails_beside_others_gets_another_chance_at_the_end() -> None:
    failing = threading.Event()

    def before(request: Request, _number: int) -> Answer | None:
        return error(500, "boom") if any(POISON in text for text in request.texts) and not failing.is_set() else None

    def read() -> Any:
        yield from many(120)
        yield from rows(POISON, first=500)

    some, sink, clock = list(read()), ListSink(), FakeClock()
    with serving(before=before) as server:

        def recovered() -> None:
            if len(sink.staged) >= 112:
                failing.set()

        sink.before = recovered
        result = fetched(server, some, sink, clock=clock)
    assert result.counts.done == 121
    assert right(sink, some)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What slow answers wait for, until the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_batches_that_take_too_long_are_made_smaller(gate: threading.Event) -> None:
    def before(request: Request, _number: int) -> None:
        if len(request.texts) > 4:
            gate.wait(30)

    some, sink, clock = many(40), ListSink(), FakeClock()
    with serving(before=before) as server:
        result = fetched(server, some, sink, clock=clock, timeout=0.2)
        gate.set()
    assert right(sink, some)
    assert result.learned["tokens"] < 200
    assert result.learned["concurrency"] == 1
    assert result.counts.add_up


def test_a_text_that_takes_too_long_stands_alone(gate: threading.Event) -> None:
    def before(request: Request, _number: int) -> None:
        if any(POISON in text for text in request.texts):
            gate.wait(30)

    some, sink, clock = [*many(3), *rows(POISON, first=4)], ListSink(), FakeClock()
    with serving(before=before) as server:
        result = fetched(server, some, sink, clock=clock, timeout=0.15)
        gate.set()
    assert sink.reasons == {4: "timeout"}
    assert right(sink, some[:3])
    assert result.counts.add_up


def test_an_endpoint_that_hangs_is_no_fault_of_the_texts(gate: threading.Event) -> None:
    def before(_request: Request, number: int) -> None:
        if number > 5:
            gate.wait(30)

    some, sink, clock = many(60), ListSink(), FakeClock()
    with serving(before=before) as server:
        result = fetched(server, some, sink, clock=clock, timeout=0.1, patience=5.0)
        gate.set()
    assert result.reason == "timeout"
    assert not sink.refused
    assert "tokens" not in result.learned
