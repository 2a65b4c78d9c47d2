"""Experiments on servers that answer otherwise than the configuration expects."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from support.endpoints_small import Answer, Request, SmallEndpoint, serving

from cpersona_cli.embedding.client import Client
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Refinement
from cpersona_cli.embedding.model import Endpoint, Mode, Outcome
from cpersona_cli.embedding.refine import LIMIT, listens, loopback_name, refine, resolve
from cpersona_cli.embedding.texts import fresh

TEXTS = fresh("refine")


def run(endpoint: Endpoint, limit: int = LIMIT) -> tuple[Outcome, Refinement]:
    async def both() -> tuple[Outcome, Refinement]:
        async with Client(endpoint) as client:
            outcome = await client.embed(TEXTS)
        return outcome, await refine(endpoint, outcome, TEXTS, limit=limit)

    return asyncio.run(both())


def pair(found: Refinement, server: SmallEndpoint) -> tuple[str, str]:
    assert found.solution is not None
    return found.solution.mode, found.solution.url.removeprefix(server.url(""))


@pytest.mark.parametrize(
    ("mode", "path", "solution"),
    [
        (Mode.API, "/v1", (Mode.API, "/v1/embeddings")),
        (Mode.API, "/", (Mode.API, "/v1/embeddings")),
        (Mode.API, "/v1/embeddings/", (Mode.API, "/v1/embeddings")),
        (Mode.API, "/v1/embeddings/embeddings", (Mode.API, "/v1/embeddings")),
        (Mode.API, "/embed", (Mode.API, "/v1/embeddings")),
        (Mode.HTTP, "/v1/embeddings", (Mode.API, "/v1/embeddings")),
        (Mode.HTTP, "/", (Mode.HTTP, "/embed")),
        (Mode.HTTP, "/embed/", (Mode.HTTP, "/embed")),
        (Mode.HTTP, "/embed/embed", (Mode.HTTP, "/embed")),
        (Mode.HTTP, "/v1", (Mode.API, "/v1/embeddings")),
    ],
)
def test_the_pair_to_set_was_answered(mode: Mode, path: str, solution: tuple[str, str]) -> None:
    with serving() as server:
        outcome, found = run(Endpoint(mode=mode, url=server.url(path), model="m"))
        assert not outcome.ok
        assert pair(found, server) == solution
        assert found.experiments[-1].helped
        assert [made.helped for made in found.experiments[:-1]] == [False] * (len(found.experiments) - 1)
        assert len(server.requests) == 1 + len(found.experiments) <= 1 + LIMIT


@pytest.mark.parametrize("mode", [Mode.HTTP, Mode.API])
def test_the_other_product_at_the_same_path(mode: Mode) -> None:
    with serving(routes={"/embed": "tei", "/v1/embeddings": "api"}) as server:
        outcome, found = run(Endpoint(mode=mode, url=server.url(), model="m"))
        assert outcome.kind is Kind.WRONG_CONTRACT
        assert pair(found, server) == (Mode.API, "/v1/embeddings")
        assert found.solution is not None
        assert found.solution.key


def test_a_server_that_speaks_only_its_own_contract() -> None:
    with serving(routes={"/embed": "http"}) as server:
        _, found = run(Endpoint(mode=Mode.API, url=server.url("/v1/embeddings"), key="k" * 9, model="m"))
        assert pair(found, server) == (Mode.HTTP, "/embed")
        assert all("authorization" not in request.headers for request in server.calls if request.path == "/embed")


MODELS = {"/v1/models": {"object": "list", "data": [{"id": "llama3:8b"}, {"id": "nomic-embed-text:latest"}]}}


@pytest.mark.parametrize("path", ["/api/embed", "/v1/embeddings"])
def test_a_model_is_found_where_none_was_chosen(path: str) -> None:
    routes = {"/api/embed": "ollama", "/v1/embeddings": "api"}
    with serving(routes=routes, models=("llama3:8b", "nomic-embed-text:latest"), gets=MODELS) as server:
        endpoint = Endpoint(mode=Mode.HTTP, url=server.url(path), model="text-embedding-3-small")
        outcome, found = run(endpoint)
        assert outcome.kind is Kind.WRONG_CONTRACT
        assert pair(found, server) == (Mode.API, "/v1/embeddings")
        assert found.solution is not None
        assert found.solution.model == "nomic-embed-text:latest"
        assert len(server.requests) <= 1 + LIMIT


def test_a_chosen_model_is_not_exchanged() -> None:
    with serving(models=("llama3:8b", "nomic-embed-text:latest"), gets=MODELS) as server:
        outcome, found = run(Endpoint(mode=Mode.API, url=server.url("/v1/embeddings"), model="bge-m3"))
        assert outcome.kind is Kind.MODEL_NOT_FOUND
        assert found.solution is None
        assert [made.message for made in found.experiments] == ["llama3:8b, nomic-embed-text:latest"]


def test_a_chosen_model_in_another_spelling_is_the_same() -> None:
    with serving(models=("nomic-embed-text:latest",), gets=MODELS) as server:
        _, found = run(Endpoint(mode=Mode.API, url=server.url("/v1/embeddings"), model="Nomic-Embed-Text"))
        assert found.solution is not None
        assert found.solution.model == "nomic-embed-text:latest"


def test_no_list_of_models_is_said() -> None:
    with serving(models=()) as server:
        _, found = run(Endpoint(mode=Mode.API, url=server.url("/v1/embeddings"), model="m"))
        assert [(made.message, made.kind) for made in found.experiments] == [("no list", Kind.ROUTE_NOT_FOUND)]


def test_without_the_proxy() -> None:
    def page(_request: Request, _number: int) -> Answer:
        return Answer(503, "<html><body>Service Unavailable</body></html>", {"content-type": "text/html"})

    with serving() as server, serving(before=page) as proxy:
        environment = {"HTTP_PROXY": proxy.url("")}
        outcome, found = run(Endpoint(mode=Mode.HTTP, url=server.url(), environment=environment))
        assert outcome.kind is Kind.PROXY
        assert found.solution is not None
        assert found.solution.no_proxy == "127.0.0.1"
        assert [made.changed for made in found.experiments] == ["without the proxy"]


@pytest.mark.parametrize("slip", ["{} ", " {}", '"{}"', "'{}'"])
def test_a_slip_in_the_url(slip: str) -> None:
    with serving() as server:
        outcome, found = run(Endpoint(mode=Mode.HTTP, url=slip.format(server.url())))
        assert not outcome.ok
        assert pair(found, server) == (Mode.HTTP, "/embed")
        assert [made.changed for made in found.experiments] == ["the URL without its slip"]


@pytest.mark.parametrize("written", ["127.0.0.1:{}/embed", "localhost:{}/embed", "http:/127.0.0.1:{}/embed"])
def test_a_url_without_its_beginning(written: str) -> None:
    with serving() as server:
        outcome, found = run(Endpoint(mode=Mode.HTTP, url=written.format(server.port)))
        assert outcome.kind is Kind.CONFIG_URL
        assert found.solution is not None
        assert found.solution.url.startswith("http://")


def test_encryption_at_a_plain_port() -> None:
    with serving() as server:
        outcome, found = run(Endpoint(mode=Mode.HTTP, url=server.url().replace("http:", "https:")))
        assert outcome.kind is Kind.TLS
        assert pair(found, server) == (Mode.HTTP, "/embed")


def test_a_slip_that_cannot_be_mended_is_not_guessed() -> None:
    outcome, found = run(Endpoint(mode=Mode.HTTP, url="http://127.0.0.1:84o1/embed"))
    assert outcome.kind is Kind.CONFIG_URL
    assert found == Refinement()


def test_the_white_space_around_a_key() -> None:
    with serving(key="sk-12345678") as server:
        endpoint = Endpoint(mode=Mode.API, url=server.url("/v1/embeddings"), key="sk-12345678\n", model="m")
        outcome, found = run(endpoint)
        assert outcome.kind is Kind.CONFIG_CREDENTIAL
        assert found.solution is not None
        assert found.solution.trim_key
        assert not found.solution.key


def only_single(request: Request, _number: int) -> Answer | None:
    if len(request.texts) > 1:
        message = "JSON format issue: expected string at field input got instead array"
        return Answer(400, {"error": {"message": message}})
    return None


def test_one_text_at_a_time() -> None:
    with serving(before=only_single) as server:
        outcome, found = run(Endpoint(mode=Mode.API, url=server.url("/v1/embeddings"), key="kkkkkkkk", model="m"))
        assert outcome.kind is Kind.NO_BATCHING
        assert found.solution is None
        assert found.remark == "one text at a time is answered"


def shut(_request: Request, _number: int) -> Answer:
    return Answer(404, "404 page not found")


@pytest.mark.parametrize("mode", [Mode.HTTP, Mode.API])
@pytest.mark.parametrize("path", ["", "/", "/v1", "/embed/", "/v1/embeddings", "/embed/embed/", "/x/y"])
@pytest.mark.parametrize("limit", [0, 1, 3, LIMIT])
def test_never_more_requests_than_allowed(mode: Mode, path: str, limit: int) -> None:
    with serving(before=shut) as server:
        _, found = run(Endpoint(mode=mode, url=server.url(path), model="m"), limit)
        assert found.solution is None
        assert len(server.requests) == 1 + len(found.experiments) <= 1 + limit
        assert len({(made.mode, made.url) for made in found.experiments}) == len(found.experiments)


def test_a_redirect_is_not_followed_to_another_host() -> None:
    with serving() as elsewhere:

        def away(_request: Request, _number: int) -> Answer:
            return Answer(307, "", {"location": elsewhere.url()})

        with serving(before=away) as server:
            outcome, found = run(Endpoint(mode=Mode.HTTP, url=server.url()))
            assert outcome.kind is Kind.REDIRECTED
            assert found.solution is None
        assert elsewhere.requests == []


def test_refused_on_every_name() -> None:
    with serving() as server:
        url = server.url()
    outcome, found = run(Endpoint(mode=Mode.HTTP, url=url))
    assert outcome.kind is Kind.REFUSED
    assert (found.solution, len(found.experiments)) == (None, 1)


# ---- names of this computer


async def two(_host: str, _port: int) -> Sequence[str]:
    return ["::1", "127.0.0.1"]


async def other(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.2", "127.0.0.1"]


async def one(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.1"]


def better(url: str, resolver: object = resolve) -> str:
    return asyncio.run(loopback_name(Endpoint(mode=Mode.HTTP, url=url), resolver))  # type: ignore[arg-type]


def test_localhost_stands_for_an_address_that_nobody_answers() -> None:
    with serving() as server:
        url = f"http://localhost:{server.port}/embed"
        assert better(url, two) == server.url()
        assert better(url, other) == server.url()
        assert better(url, one) == ""


@pytest.mark.parametrize("name", ["0.0.0.0", "[::]"])
def test_the_unspecified_address(name: str) -> None:
    with serving() as server:
        assert better(f"http://{name}:{server.port}/embed") == server.url()
        port = server.port
    assert better(f"http://{name}:{port}/embed") == ""


def test_plain_names_need_nothing() -> None:
    for url in ("http://127.0.0.1:1/embed", "http://example.org/embed", "nonsense", "https://localhost/embed"):
        assert better(url, one) == ""


def test_a_name_without_an_address() -> None:
    assert asyncio.run(resolve("nobody.invalid", 1)) == ()
    assert not asyncio.run(listens("nobody.invalid", 1))
