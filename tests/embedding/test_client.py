"""What bounds a call: time as a whole, memory, and nothing that escapes."""

from __future__ import annotations

import asyncio
import gzip
import random
import subprocess
import sys
import tracemalloc
import zlib

import httpx
import pytest
from support.own_client import ours
from support.replies import Hold, Script, Trickle, bomb, closed_port, full_backlog, head, reply, serve

from cpersona_cli.embedding import client as client_module
from cpersona_cli.embedding.client import Client
from cpersona_cli.embedding.inflate import STEP, decoder
from cpersona_cli.embedding.kinds import Kind, Stage
from cpersona_cli.embedding.model import Endpoint, Outcome, Reply, ServerView

MEBIBYTE = 1 << 20
GOOD = {"embeddings": [[0.6, 0.8], [1.0, 0.0]]}


def http(url: str, timeout: float = 20.0) -> Endpoint:
    return Endpoint(mode="http", url=url, timeout=timeout)


def test_a_call_that_works() -> None:
    with serve([reply(GOOD)]) as server:
        outcome = ours(http(server.url))
    assert outcome.kind is Kind.OK
    assert outcome.ok
    assert outcome.stage is Stage.DONE
    assert not outcome.retryable
    assert outcome.elapsed > 0
    assert outcome.via_proxy == ""


@pytest.mark.parametrize(
    ("said", "heard"), [(2, 2), (1536, 1536), ("1536", None), (True, None), (0, None), (10**9, None), (None, None)]
)
def test_a_stated_width_is_heard_and_not_believed(said: object, heard: int | None) -> None:
    items = [{"index": n, "embedding": vector} for n, vector in enumerate(GOOD["embeddings"])]
    with serve([reply({**GOOD, "dimensions": said})]) as server:
        plain = ours(http(server.url))
    with serve([reply({"data": items, "dimensions": said})]) as server:
        api = ours(Endpoint(mode="api", url=server.url, key="k", model="m", timeout=20.0))
    for outcome in (plain, api):
        assert (outcome.kind, outcome.dim, outcome.stated_dim) == (Kind.OK, 2, heard)


@pytest.mark.parametrize(
    ("script", "phase"),
    [
        ([Hold()], "an answer"),
        ([b"HTTP/1.1 200 OK\r\n", Trickle(b"x: y\r\n")], "an answer"),
        ([head(length=10**6), Hold()], "the rest of the body"),
        ([head(length=10**6), Trickle()], "the rest of the body"),
        ([head(headers={"transfer-encoding": "chunked"}), Trickle(b"1\r\n \r\n")], "the rest of the body"),
    ],
)
def test_the_deadline_ends_what_no_timeout_does(script: Script, phase: str) -> None:
    with serve(script) as server:
        outcome = ours(http(server.url), deadline=0.6)
    assert outcome.kind is Kind.TIMEOUT
    assert dict(outcome.evidence)["while"] == f"waiting for {phase}"
    assert outcome.server_view.pending
    assert outcome.attempted


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a full queue neither accept nor refuse")
def test_the_deadline_ends_a_connection_that_is_never_made() -> None:
    with full_backlog() as url:
        outcome = ours(http(url), deadline=0.4)
    assert outcome.kind is Kind.CONNECT_TIMEOUT
    assert dict(outcome.evidence) == {"cause": "deadline", "while": "waiting for a connection"}


def test_the_deadline_ends_a_handshake() -> None:
    with serve([Hold()], whole=False) as server:
        outcome = ours(http(server.url.replace("http:", "https:")), deadline=0.6)
    assert outcome.kind is Kind.TLS
    assert dict(outcome.evidence)["while"] == "waiting for a secure connection"


def test_the_deadline_is_four_times_the_timeout_unless_told() -> None:
    assert Client(http("http://127.0.0.1:1/", 5)).deadline == 20
    assert Client(http("http://127.0.0.1:1/", 0.1)).deadline == 4
    assert Client(http("http://127.0.0.1:1/"), deadline=3).deadline == 3


def test_a_body_beyond_the_cap_is_not_read_on() -> None:
    with serve([head(), Trickle(b" " * 65536)]) as server:
        outcome = ours(http(server.url), cap=MEBIBYTE)
    assert outcome.kind is Kind.TOO_LARGE
    assert dict(outcome.evidence)["detail"] == f"more than {MEBIBYTE} bytes"
    assert "over the 67108864-byte budget" in (outcome.server_view.error or "")


def test_a_body_of_exactly_the_cap_is_read() -> None:
    body = b'{"embeddings": [[1.0, 0.0], [0.0, 1.0]]}'
    with serve([reply(body)]) as server:
        assert ours(http(server.url), cap=len(body)).kind is Kind.OK
        assert ours(http(server.url), cap=len(body) - 1).kind is Kind.TOO_LARGE


def test_of_an_error_only_the_beginning_is_read() -> None:
    with serve([head(500), b'{"error": "it broke for good", "log": "', Trickle(b"x" * 65536)]) as server:
        outcome = ours(http(server.url))
    assert outcome.kind is Kind.SERVER_ERROR
    assert outcome.server_message == "it broke for good"


@pytest.mark.parametrize("size", [16 * MEBIBYTE, 128 * MEBIBYTE])
def test_a_packed_body_does_not_fill_the_memory(size: int) -> None:
    cap = 4 * MEBIBYTE
    with serve([bomb(size)]) as server:
        tracemalloc.start()
        try:
            outcome = ours(http(server.url), cap=cap)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert outcome.kind is Kind.TOO_LARGE
    # the cap, room for a growing buffer and one step; not the size
    assert peak < 3 * cap


@pytest.mark.parametrize("name", ["gzip", "deflate", "bare"])
def test_unpacking_goes_in_steps(name: str) -> None:
    data = bytes(5 * STEP + 17)
    packed = {"gzip": gzip.compress(data), "deflate": zlib.compress(data), "bare": zlib.compress(data)[2:-4]}[name]
    pieces = list(decoder("deflate" if name == "bare" else name).decode(packed))
    assert b"".join(pieces) == data
    assert max(len(piece) for piece in pieces) <= STEP


@pytest.mark.parametrize("name", ["gzip", "deflate"])
def test_unpacking_what_is_broken_far_inside(name: str) -> None:
    data = random.Random(4711).randbytes(3 * STEP)
    packed = bytearray(gzip.compress(data) if name == "gzip" else zlib.compress(data))
    packed[2 * STEP + 70_000 : 2 * STEP + 140_000] = b"\xff" * 70_000
    with pytest.raises(httpx.DecodingError):
        list(decoder(name).decode(bytes(packed)))


def test_unpacking_layer_by_layer() -> None:
    data = b"falcon" * 1000
    layers = decoder("deflate, identity, GZIP")
    packed = gzip.compress(zlib.compress(data))
    assert b"".join(piece for byte in packed for piece in layers.decode(bytes([byte]))) == data
    assert list(layers.decode(b"what follows the end")) == []


def test_a_cancelled_call_is_cancelled() -> None:
    arrived = asyncio.Event()

    def script(_: bytes) -> list[Hold]:
        loop.call_soon_threadsafe(arrived.set)
        return [Hold()]

    async def run(url: str) -> None:
        async with Client(http(url)) as client:
            task = asyncio.create_task(client.embed(["a"]))
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with serve(script) as server, asyncio.Runner() as runner:
        loop = runner.get_loop()
        runner.run(run(server.url))


def test_an_outer_time_limit_is_the_callers() -> None:
    async def run(url: str) -> None:
        async with Client(http(url)) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await client.embed(["a"])

    with serve([Hold()]) as server:
        asyncio.run(run(server.url))


def test_calls_at_the_same_time_do_not_mix() -> None:
    def script(request: bytes) -> list[bytes]:
        return [reply({"embeddings": [[1.0, 0.0] if b"one" in request else [0.0, 1.0]]})]

    async def run(url: str) -> list[Outcome]:
        async with Client(http(url)) as client:
            return await asyncio.gather(*(client.embed([text]) for text in ("one", "two") * 5))

    with serve(script) as server:
        outcomes = asyncio.run(run(server.url))
    assert [outcome.vectors for outcome in outcomes] == [[[1.0, 0.0]], [[0.0, 1.0]]] * 5


def test_texts_that_are_none() -> None:
    outcome = ours(http(f"http://127.0.0.1:{closed_port()}/"), [None])  # type: ignore[list-item]
    assert outcome.kind is Kind.INPUT_INVALID
    assert outcome.server_view.crash == "AttributeError"
    outcome = ours(http(f"http://127.0.0.1:{closed_port()}/"), ["a", 7])  # type: ignore[list-item]
    assert (outcome.kind, outcome.server_view.crash) == (Kind.INPUT_INVALID, "")


def test_a_client_that_was_not_opened_says_so_in_an_outcome() -> None:
    assert asyncio.run(Client(http("http://127.0.0.1:1/")).embed(["a"])).kind is Kind.INTERNAL


def test_a_fault_in_the_judges_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> ServerView:
        raise ZeroDivisionError

    monkeypatch.setattr(client_module, "judge_body", broken)
    with serve([reply(GOOD)]) as server:
        outcome = ours(http(server.url))
    assert outcome.kind is Kind.INTERNAL
    assert dict(outcome.evidence)["cause"] == "ZeroDivisionError"


def test_a_reply_is_capped_as_the_server_caps_it() -> None:
    assert Reply(status=200, headers={}, body=b"").cap == client_module.BODY_CAP == 64 * MEBIBYTE


def test_the_library_does_not_bring_its_own_command_line() -> None:
    script = "import sys, cpersona_cli.embedding.client; print(sorted({'rich', 'click'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"
