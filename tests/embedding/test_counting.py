"""``POST /count_tokens``, asked as the server would."""

from __future__ import annotations

import pytest
from support.endpoints_small import Answer, Request, serving
from support.real_endpoints import Running

from cpersona_cli.embedding.counting import counts_tokens
from cpersona_cli.embedding.loop import run
from cpersona_cli.embedding.model import Endpoint


def _asked(url: str, mode: str = "http") -> bool:
    return run(counts_tokens(Endpoint(mode=mode, url=url)))


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
        (Answer(200, {"token_info": [{"count": 1, "more": "x" * (1 << 16)}]}), False),
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
        assert _asked(server.url("/embed")) is counts
    assert [(request.path, list(request.texts)) for request in asked] == [("/count_tokens", ["word"])]


@pytest.mark.parametrize(
    ("url", "mode"),
    [("http://127.0.0.1:9/embed", "api"), ("http://127.0.0.1:9/vectors", "http"), ("http://[/embed", "http")],
)
def test_nobody_is_asked_whom_the_server_would_not_ask(url: str, mode: str) -> None:
    assert not _asked(url, mode)


def test_real_servers(minilm: Running, supercat: Running) -> None:
    assert _asked(minilm.url)
    assert not _asked(supercat.url)
