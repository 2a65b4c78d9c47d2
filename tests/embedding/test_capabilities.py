from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cpersona._vendored_mcp_common.embedding_client import EmbeddingClient
from support.endpoints_small import Answer, Request, serving
from support.real_endpoints import Running

from cpersona_cli.embedding.capabilities import Stated, capabilities, counts_tokens
from cpersona_cli.embedding.model import Endpoint, Mode

GOOD = {"fingerprint": "a166f63f525a5e17", "identity": {"model": "m"}, "incomplete": []}
UNABLE = {"fingerprint": None, "identity": {"model": "m"}, "incomplete": ["weights"]}


def ours(url: str, mode: str = Mode.HTTP) -> Stated:
    return asyncio.run(capabilities(Endpoint(mode=mode, url=url)))


def theirs(url: str) -> str:
    """The fingerprint the server's own client takes from the same answer."""

    async def asked() -> Any:
        client = EmbeddingClient(mode="http", http_url=url)
        await client.initialize()
        try:
            return await client.capabilities()
        finally:
            await client.close()

    found = asyncio.run(asked())
    return "" if found is None else found.fingerprint or ""


@pytest.mark.parametrize(
    ("document", "fingerprint"),
    [
        (GOOD, "a166f63f525a5e17"),
        ({**GOOD, "incomplete": ["weights"]}, ""),
        ({key: value for key, value in GOOD.items() if key != "incomplete"}, "a166f63f525a5e17"),
        (UNABLE, ""),
        ({**UNABLE, "incomplete": []}, ""),
        ({**GOOD, "fingerprint": ""}, ""),
        ({**GOOD, "fingerprint": 7}, ""),
        ({**GOOD, "incomplete": "no"}, ""),
        ({**GOOD, "incomplete": [1]}, ""),
        ({**GOOD, "identity": "m"}, ""),
        ([], ""),
    ],
)
def test_a_fingerprint_is_what_the_server_would_take(document: Any, fingerprint: str) -> None:
    with serving(gets={"/capabilities": document}) as server:
        stated = ours(server.url())
        assert stated.fingerprint == fingerprint == theirs(server.url())
        assert bool(stated.why) == (not fingerprint)


def test_the_model_is_told_too() -> None:
    with serving(gets={"/capabilities": GOOD}) as server:
        assert ours(server.url()) == Stated(fingerprint="a166f63f525a5e17", model="m")
        assert not ours(server.url("/v1/embeddings"), Mode.API).fingerprint


@pytest.mark.parametrize("path", ["/api/embed", "/embed/", "/embed?key=1", "/x/embed///"])
def test_the_address_is_the_one_beside_the_configured_one(path: str) -> None:
    documents = {at: {**GOOD, "fingerprint": at} for at in ("/capabilities", "/api/capabilities", "/x/capabilities")}
    with serving(gets=documents) as server:
        assert ours(server.url(path)).fingerprint == theirs(server.url(path)) != ""


def test_only_a_route_called_embed_has_one_beside_it() -> None:
    with serving(gets={"/capabilities": GOOD}) as server:
        assert ours(server.url("/vectors")).why == "the URL does not end in /embed"
    assert ours("http://[::1/embed").why == "the URL does not end in /embed"


def test_no_answer_is_no_fingerprint() -> None:
    with serving() as server:
        assert ours(server.url()).why == "GET /capabilities is answered with status 404"
        gone = server.url()
    assert ours(gone).why.startswith("GET /capabilities failed: Connect")


def test_an_answer_that_cannot_be_read() -> None:
    with serving(gets={"/capabilities": {**GOOD, "padding": "x" * (1 << 20)}}) as server:
        assert ours(server.url()).why == "the answer to GET /capabilities is too long"
    with serving(gets={"/capabilities": "<html>"}) as server:
        assert ours(server.url()).why == "the answer to GET /capabilities is not JSON"


def counted(url: str, mode: str = "http") -> bool:
    return asyncio.run(counts_tokens(Endpoint(mode=mode, url=url)))


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        (Answer(200, {"token_info": [{"count": 3, "window": 512, "truncated": False}]}), True),
        (Answer(200, {"token_info": [{"count": 0}]}), False),
        (Answer(200, {"token_info": [{"count": True}]}), False),
        (Answer(200, {"token_info": [{"count": 1}, {"count": 1}]}), False),
        (Answer(200, {"token_info": "3"}), False),
        (Answer(200, [3]), False),
        (Answer(200, "not JSON"), False),
        (Answer(200, {"token_info": [{"count": 1, "more": "x" * (1 << 20)}]}), False),
        (Answer(404, "404 page not found"), False),
        (Answer(drop=True), False),
    ],
)
def test_only_one_count_for_one_text_is_an_answer(answer: Answer, *, counts: bool) -> None:
    asked: list[Request] = []

    def before(request: Request, _number: int) -> Answer:
        asked.append(request)
        return answer

    with serving(before=before) as server:
        assert counted(server.url("/embed")) is counts
    assert [(request.path, list(request.texts)) for request in asked] == [("/count_tokens", ["word"])]


@pytest.mark.parametrize(
    ("url", "mode"),
    [("http://127.0.0.1:9/embed", "api"), ("http://127.0.0.1:9/vectors", "http"), ("http://[/embed", "http")],
)
def test_nobody_is_asked_whom_the_server_would_not_ask(url: str, mode: str) -> None:
    assert not counted(url, mode)


def test_real_servers(minilm: Running, supercat: Running) -> None:
    assert counted(minilm.url)
    assert not counted(supercat.url)
