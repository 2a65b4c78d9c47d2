"""One endpoint measured: what is asked, in which order, and what is made of the answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.endpoints_small import Answer, Request, SmallEndpoint, serving
from support.scripted import HTTP, Script, Time, ended

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Measured, Plan, StoredText
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.probe import measure, probe
from cpersona_cli.report.figures import Bars
from cpersona_cli.report.probe import payload, sections
from cpersona_cli.traps.endpoint import findings, unsettled
from cpersona_cli.traps.model import Subject

STEPS = ["contract", "values", "repeat", "alone", "separation", "long", "batch-32", "batch-64", "body"]


def look(server: SmallEndpoint, path: str = "/embed", plan: Plan | None = None, **fields: Any) -> Measured:
    mode = Mode.API if path.endswith("embeddings") else Mode.HTTP
    endpoint = Endpoint(mode=mode, url=server.url(path), **{"model": "m", **fields})
    return probe([endpoint], plan or Plan())[0]


def states(found: Measured) -> dict[str, str]:
    return {step.name: step.state for step in found.steps}


def remarks(found: Measured) -> list[str]:
    return [remark.name for remark in found.remarks]


@pytest.mark.parametrize("path", ["/embed", "/v1/embeddings"])
def test_an_endpoint_in_order(path: str) -> None:
    with serving() as server:
        found = look(server, path, key="sk-12345678")
        assert found.calls == len(server.requests) == 8
    assert [step.name for step in found.steps] == STEPS
    assert set(states(found).values()) == {"pass"}
    assert remarks(found) == []
    assert (found.outcome.kind, found.outcome.dim, found.largest_batch) == (Kind.OK, 64, 64)
    assert found.refinement.experiments == ()
    assert found.identity is not None
    assert found.identity.role == "embedding"
    picture = next(one for one in sections([Subject(label="x", measured=found)], {}) if one.figures)
    (bars,) = picture.figures
    assert isinstance(bars, Bars)
    assert [name for name, _ in bars.rows] == ["first call", "second call", "32 texts", "64 texts"]
    assert dict(bars.rows)["first call"] == round((found.first_call or 0) * 1000)
    assert picture.verbosity, "with -v in text; the page shows it open"


def test_every_text_is_of_this_run() -> None:
    with serving() as server:
        look(server)
        first = {text for request in server.calls for text in request.texts}
        look(server)
        second = [text for request in server.calls[8:] for text in request.texts]
    anchors = first.intersection(second)
    assert len(anchors) == 10


@pytest.mark.parametrize("width", [8, 256, 384, 1024])
def test_any_width(width: int) -> None:
    with serving(width=width) as server:
        assert look(server).outcome.dim == width


FAILING = [Kind.REFUSED, Kind.LOADING, Kind.AUTH, Kind.DNS, Kind.INTERNAL, Kind.TIMEOUT, Kind.THROTTLED]


@pytest.mark.parametrize("kind", FAILING)
def test_nothing_is_measured_behind_a_closed_door(kind: Kind) -> None:
    time = Time()
    endpoint = Endpoint(mode=Mode.HTTP, url="http://embeddings.example.org/embed")
    found = asyncio.run(measure(endpoint, Plan(), Script(time, (0.0, ended(kind))), clock=time.clock))
    assert [step.name for step in found.steps] == STEPS
    undecided = kind in {Kind.LOADING, Kind.TIMEOUT, Kind.THROTTLED, Kind.INTERNAL}
    assert found.steps[0].state == ("unknown" if undecided else "findings")
    assert {step.state for step in found.steps[1:]} == {"skipped"}
    assert (found.first_call, found.ready_after, found.calls) == (None, None, 1)


def test_no_backend_is_nothing_to_measure() -> None:
    found = probe([Endpoint(mode=Mode.NONE, url="")], Plan(count=2))[0]
    assert {step.state for step in found.steps} == {"skipped"}
    assert found.health is not None
    assert found.health.state == "hint"


# ---- meaning


def zeros(_request: Request, vectors: list[list[float]]) -> list[Any]:
    return [[0.0] * len(vector) for vector in vectors]


def same(_request: Request, vectors: list[list[float]]) -> list[Any]:
    return [vectors[0] for _ in vectors]


@pytest.mark.parametrize(("after", "kind"), [(zeros, Kind.ZERO_VECTOR), (same, Kind.CONSTANT_VECTOR)])
def test_vectors_without_meaning(after: Any, kind: Kind) -> None:
    with serving(after=after) as server:
        found = look(server)
        assert len(server.requests) == 1
    assert found.outcome.kind is kind
    assert found.outcome.server_view.ok
    assert states(found)["values"] == "findings"
    assert {states(found)[name] for name in STEPS[2:]} == {"skipped"}


def test_lengths_count_in_mode_http_only() -> None:
    with serving(scale=4.9) as server:
        found = look(server)
        assert found.outcome.kind is Kind.NOT_NORMALIZED
        assert states(found)["values"] == "findings"
        assert states(found)["separation"] == "pass"
        assert look(server, "/v1/embeddings").outcome.kind is Kind.OK


def drifting(request: Request, vectors: list[list[float]]) -> list[Any]:
    turn = drifting.__dict__["turn"] = drifting.__dict__.get("turn", 0) + 1
    return [[*vector[turn % 7 :], *vector[: turn % 7]] for vector in vectors] if request.texts else vectors


def test_the_same_text_with_other_answers() -> None:
    with serving(after=drifting) as server:
        found = look(server)
    assert states(found)["repeat"] == "findings"
    assert "unstable" in remarks(found)
    assert found.repeat is not None
    assert found.repeat < 0.5


def test_how_much_the_same_text_may_differ_is_measured() -> None:
    with serving() as server:
        assert look(server).repeat == pytest.approx(1)


def by_company(request: Request, vectors: list[list[float]]) -> list[Any]:
    return [vector[::-1] for vector in vectors] if len(request.texts) == 1 else vectors


def shuffled(request: Request, vectors: list[list[float]]) -> list[Any]:
    return vectors[1:] + vectors[:1]


def narrower(request: Request, vectors: list[list[float]]) -> list[Any]:
    return [[1.0]] if len(request.texts) == 1 else vectors


@pytest.mark.parametrize(
    ("after", "name", "fatal"),
    [(by_company, "unstable", False), (shuffled, "wrong-order", True), (narrower, "unstable", True)],
)
def test_a_text_alone_and_among_others(after: Any, name: str, *, fatal: bool) -> None:
    with serving(after=after) as server:
        found = look(server)
    assert states(found)["alone"] == "findings"
    remark = next(remark for remark in found.remarks if remark.name == name)
    assert remark.fatal is fatal


def test_out_of_order_by_index_is_in_order() -> None:
    with serving(backwards=True) as server:
        found = look(server, "/v1/embeddings", key="sk-12345678")
    assert set(states(found).values()) == {"pass"}
    assert found.out_of_order


def blurred(request: Request, vectors: list[list[float]]) -> list[Any]:
    """Everything near one direction, the differences kept: what models that expect a prefix do."""
    mixed = [[value + 0.35 for value in vector] for vector in vectors]
    lengths = [sum(value * value for value in vector) ** 0.5 for vector in mixed]
    return [[value / length for value in vector] for vector, length in zip(mixed, lengths, strict=True)]


def by_length(request: Request, vectors: list[list[float]]) -> list[Any]:
    """Different vectors for different texts, and no meaning in them."""
    size = len(vectors[0])
    made = []
    for text in request.texts:
        vector = [0.0] * size
        vector[sum(text.encode()) % size] = 1.0
        made.append(vector)
    return made


@pytest.mark.parametrize(("after", "name"), [(blurred, "crowded"), (by_length, "weak-separation")])
def test_related_texts_against_strangers(after: Any, name: str) -> None:
    with serving(after=after) as server:
        found = look(server)
    assert states(found)["separation"] == "findings"
    assert name in remarks(found)
    assert not any(remark.fatal for remark in found.remarks)


# ---- sizes


@pytest.mark.parametrize(("limit", "largest", "skipped"), [(20, 20, True), (32, 32, False), (40, 40, False)])
def test_the_largest_batch_is_found(limit: int, largest: int, *, skipped: bool) -> None:
    with serving(batch_limit=limit) as server:
        found = look(server)
        assert len(server.requests) < 14
    assert found.largest_batch == largest
    assert remarks(found) == ["batch-too-large"]
    assert (states(found)["batch-64"] == "skipped") is skipped


def test_another_width_in_large_batches() -> None:
    def cut(request: Request, vectors: list[list[float]]) -> list[Any]:
        return [[1.0, 0.0] for _ in vectors] if len(request.texts) > 20 else vectors

    with serving(after=cut) as server:
        found = look(server)
    assert any(remark.name == "unstable" and remark.fatal for remark in found.remarks)


def silent_limit(request: Request, _number: int) -> Answer | None:
    return Answer(422, {"detail": "no"}) if len(request.texts) > 12 else None


def test_a_batch_limit_that_nobody_states() -> None:
    with serving(before=silent_limit) as server:
        found = look(server)
    assert found.largest_batch == 8
    assert [made.size for made in found.batches] == [32, 16, 8]


def test_a_body_limit() -> None:
    with serving(body_limit=500_000) as server:
        found = look(server)
        assert 999_000 < max(request.size for request in server.requests) < 1 << 20
    assert remarks(found) == ["body-limit"]


def test_a_window() -> None:
    with serving(window=300) as server:
        found = look(server)
    assert remarks(found) == ["truncating"]
    assert found.window is not None
    assert found.window.cut
    with serving(refuses_over=512) as server:
        found = look(server)
    assert remarks(found) == ["window-too-small"]
    assert "512 tokens" in found.remarks[0].measured


HEAVY = {"long", "batch-32", "batch-64", "body"}


@pytest.mark.parametrize("full", [True, False])
def test_the_large_requests_stay_on_this_computer(*, full: bool) -> None:
    time = Time()
    script = Script(time, (0.1, ended(Kind.OK)))
    endpoint = Endpoint(mode=Mode.HTTP, url="http://embeddings.example.org/embed")
    found = asyncio.run(measure(endpoint, Plan(full=full), script, clock=time.clock))
    skipped = {step.name for step in found.steps if step.state == "skipped"}
    assert skipped == (set() if full else HEAVY)
    assert len(script.called) == (8 if full else 4)


def test_the_time_for_measurements_ends() -> None:
    time = Time()
    found = asyncio.run(measure(HTTP, Plan(budget=25), Script(time, (10.0, ended(Kind.OK))), clock=time.clock))
    left = [step.name for step in found.steps if step.state == "skipped"]
    assert left == ["long", "batch-32", "batch-64", "body"]
    assert {step.detail for step in found.steps if step.state == "skipped"} == {"the time for measurements is over"}


@pytest.mark.parametrize("number", range(1, 8))
def test_an_endpoint_that_goes_away_in_the_middle_is_no_verdict_on_the_rest(number: int) -> None:
    time = Time()
    steps = [(0.1, ended(Kind.OK))] * number
    found = asyncio.run(measure(HTTP, Plan(), Script(time, *steps, (0.1, ended(Kind.REFUSED))), clock=time.clock))
    assert [step.state for step in found.steps][1 + number :] == ["unknown"] * (8 - number)
    assert remarks(found) == []


def test_one_text_alone_must_be_answered() -> None:
    def refuse(request: Request, _number: int) -> Answer | None:
        return Answer(400, {"error": "no single texts"}) if len(request.texts) == 1 else None

    with serving(before=refuse) as server:
        found = look(server)
    assert "single-fails" in remarks(found)
    assert any(remark.fatal for remark in found.remarks)


# ---- time


def test_a_cold_start_is_told_apart() -> None:
    time = Time()
    steps = ((12.0, ended(Kind.OK)), (0.1, ended(Kind.OK)))
    found = asyncio.run(measure(HTTP, Plan(), Script(time, *steps), clock=time.clock))
    assert (found.first_call, found.second_call) == (12.0, 0.1)
    assert found.steps[2].detail == "the first call took 12.0 s, the second 0.10 s"
    assert remarks(found) == []


def test_a_start_that_takes_longer_than_the_server_waits() -> None:
    time = Time()
    steps = ((121.0, ended(Kind.OK)), (0.05, ended(Kind.OK)))
    found = asyncio.run(measure(HTTP, Plan(wait=180), Script(time, *steps), clock=time.clock))
    assert found.outcome.kind is Kind.OK
    assert remarks(found) == ["slow-start"]
    assert found.remarks[0].measured == "ready after 121 s; CPersona gives up after 30 s"
    time = Time()
    found = asyncio.run(measure(HTTP, Plan(), Script(time, *steps), clock=time.clock))
    assert found.outcome.kind is Kind.TIMEOUT
    assert found.steps[0].state == "unknown"


def test_ready_after() -> None:
    with serving(loading=2) as server:
        assert look(server).outcome.kind is Kind.LOADING
    time = Time()
    steps = ((1.0, ended(Kind.LOADING)), (1.0, ended(Kind.LOADING)), (0.1, ended(Kind.OK)))
    found = asyncio.run(measure(HTTP, Plan(wait=60), Script(time, *steps), clock=time.clock))
    assert found.outcome.kind is Kind.OK
    assert found.ready_after == pytest.approx(2.1 + sum(time.slept))


def dropping(request: Request, number: int) -> Answer | None:
    return Answer(drop=True) if number == 1 else None


def runner_gone(request: Request, number: int) -> Answer | None:
    error = 'do embedding request: Post "http://127.0.0.1:33967/embedding": EOF'
    return Answer(500, {"error": error}) if number == 1 else None


@pytest.mark.parametrize("before", [dropping, runner_gone])
def test_a_server_that_drops_a_call_and_returns(before: Any) -> None:
    with serving(before=before) as server:
        found = look(server)
    assert found.outcome.kind is Kind.OK
    assert remarks(found) == ["unstable"]
    assert found.remarks[0].measured == "1 of 9 calls failed and went through when repeated"


def test_the_timeout_of_the_user_bounds_each_call() -> None:
    time = Time()
    script = Script(time, (5.0, ended(Kind.OK)))
    found = asyncio.run(measure(HTTP, Plan(timeout=2.0), script, clock=time.clock))
    assert found.outcome.kind is Kind.TIMEOUT
    assert found.endpoint.timeout == 30.0


def test_a_timeout_of_zero_stays_what_it_is() -> None:
    endpoint = Endpoint(mode=Mode.HTTP, url="http://127.0.0.1:1/embed", timeout=0)
    assert probe([endpoint], Plan(timeout=5.0, wait=60))[0].outcome.kind is Kind.CONFIG_CLIENT


# ---- what the server would make of it


def test_a_keyless_server_that_only_answers_us() -> None:
    with serving() as server:
        found = look(server, "/v1/embeddings", plan=Plan(count=3))
        assert all("authorization" not in request.headers for request in server.requests)
    assert found.outcome.kind is Kind.OK
    assert not found.outcome.server_view.ok
    assert remarks(found) == ["key-needed"]
    assert found.health is not None
    assert found.health.calls == ((Kind.OK, "unknown"), (Kind.OK, "fault"), (Kind.OK, "fault"))


def test_a_row_of_calls_with_a_gap() -> None:
    def sometimes(request: Request, number: int) -> Answer | None:
        return Answer(500, {"error": "no"}) if number in {10, 11} else None

    with serving(before=sometimes) as server:
        found = look(server, plan=Plan(count=4))
    assert found.health is not None
    assert [state for _, state in found.health.calls] == ["healthy", "healthy", "fault", "healthy"]
    assert remarks(found) == ["unstable"]


def test_a_row_of_calls_to_nobody() -> None:
    with serving() as server:
        gone = server
    found = look(gone, plan=Plan(count=2))
    assert found.health is not None
    assert found.health.calls == ((Kind.REFUSED, "unknown"), (Kind.REFUSED, "fault"))
    assert remarks(found) == []


@pytest.mark.parametrize(
    ("asked", "served", "said"),
    [("bge-m3", "bge-m3:latest", False), ("bge-m3", "BAAI/bge-m3", False), ("bge-m3", "all-minilm", True)],
)
def test_the_model_that_answers(asked: str, served: str, *, said: bool) -> None:
    with serving(answers_as=served) as server:
        found = look(server, "/v1/embeddings", model=asked, key="sk-12345678")
    assert remarks(found) == (["other-model"] if said else [])


def test_a_name_that_not_every_address_answers() -> None:
    async def two(_host: str, _port: int) -> Sequence[str]:
        return ["::1", "127.0.0.1"]

    with serving() as server:
        endpoint = Endpoint(mode=Mode.HTTP, url=f"http://localhost:{server.port}/embed")
        found = asyncio.run(measure(endpoint, Plan(), resolver=two))
        assert found.outcome.kind is Kind.OK
        assert remarks(found) == ["loopback-name"]
        assert found.remarks[0].evidence == (("write", server.url()),)


# ---- identity


def test_identity_only_when_asked_for() -> None:
    gets = {"/info": {"model_id": "m", "model_type": {"embedding": {}}, "max_client_batch_size": 32}}
    with serving(gets=gets) as server:
        found = look(server)
        assert {request.method for request in server.requests} == {"POST"}
        found = look(server, plan=Plan(identify=True))
        assert found.identity is not None
        assert found.identity.family == "Text Embeddings Inference"
        assert found.calls == 8 + 4


def test_another_contract_is_told_with_certainty_where_the_server_tells() -> None:
    gets = {"/info": {"model_id": "m", "model_type": {"embedding": {}}, "max_client_batch_size": 32}}
    with serving(routes={"/embed": "tei", "/v1/embeddings": "api"}, gets=gets) as server:
        found = look(server)
        assert found.identity is not None
        assert found.identity.family == "Text Embeddings Inference"
        assert found.calls == len(server.requests) <= 1 + 8


def test_samples() -> None:
    def poison(request: Request, _number: int) -> Answer | None:
        bad = any("poison" in text for text in request.texts)
        return Answer(400, {"error": "embedding contains NaN or Inf values"}) if bad else None

    rows = (StoredText("1", "fine"), StoredText("2", "poison"), StoredText("3", "also fine"))
    with serving(before=poison) as server:
        found = look(server, plan=Plan(samples=rows))
    assert found.sampled is not None
    assert found.sampled.failed == (("2", Kind.NAN_FOR_INPUT),)
    assert states(found)["samples"] == "findings"
    assert found.outcome.kind is Kind.OK


def test_several_at_once_in_their_order() -> None:
    with serving(width=8) as one, serving(width=16) as two:
        endpoints = [Endpoint(mode=Mode.HTTP, url=server.url()) for server in (one, two, one)]
        assert [found.outcome.dim for found in probe(endpoints, Plan())] == [8, 16, 8]
    assert probe([], Plan()) == []


ROW = StoredText("7", "a text", (1.0, 0.0))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.1, 40.0]), st.sampled_from(list(Kind))), min_size=1, max_size=14), st.data()
)
def test_whatever_the_calls_come_to_there_is_a_report(ends: list[tuple[float, Kind]], data: st.DataObject) -> None:
    plan = Plan(
        wait=data.draw(st.sampled_from([0.0, 60.0])),
        count=data.draw(st.integers(0, 3)),
        full=data.draw(st.booleans()),
        samples=(ROW,) * data.draw(st.integers(0, 3)),
    )
    time = Time()
    endpoint = Endpoint(mode=data.draw(st.sampled_from([Mode.HTTP, Mode.API])), url="http://127.0.0.1:9/v1/embeddings")
    script = Script(time, *((seconds, ended(kind)) for seconds, kind in ends))
    found = asyncio.run(measure(endpoint, plan, script, clock=time.clock, resolver=nowhere))
    subject = Subject(label="x", measured=found)
    told = [*findings(subject), *unsettled(subject)]
    assert {step.state for step in found.steps} <= {"pass", "findings", "unknown", "skipped"}
    assert [step.name for step in found.steps][:9] == STEPS
    if not found.outcome.ok and found.outcome.kind is not Kind.DISABLED:
        assert told
    document = json.dumps(payload([subject], {}), default=str)
    assert json.loads(document)["kind"] == found.outcome.kind
    assert list(sections([subject], {}))


async def nowhere(_host: str, _port: int) -> Sequence[str]:
    return ()
