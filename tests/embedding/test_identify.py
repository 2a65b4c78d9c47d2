from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.endpoints_small import SmallEndpoint, serving
from support.scripted import ended

from cpersona_cli.embedding import identify as module
from cpersona_cli.embedding.identify import identify, models_like, plain_name, with_role
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Identity
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.texts import Separation

APART = Separation(related=0.9, strangers=0.1, closest_stranger=0.2, nearest=10, of=10)
ALIKE = Separation(related=0.9, strangers=0.9, closest_stranger=0.9, nearest=2, of=10)


def ask(server: SmallEndpoint, path: str = "/v1/embeddings", model: str = "m", key: str = "") -> Identity:
    mode = Mode.API if path.endswith("embeddings") else Mode.HTTP
    return asyncio.run(identify(Endpoint(mode=mode, url=server.url(path), model=model, key=key)))


def listed(*entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"/v1/models": {"object": "list", "data": list(entries)}}


SERVERS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "the reference server",
        {
            "/capabilities": {
                "identity": {"model": "all-MiniLM-L6-v2", "dimensions": 384, "window": 512},
                "incomplete": [],
                "fingerprint": "1:aa",
            }
        },
        {"family": "CEmbedding", "model": "all-MiniLM-L6-v2", "dimensions": 384, "window": 512, "role": "embedding"},
    ),
    (
        "Text Embeddings Inference",
        {
            "/info": {
                "model_id": "BAAI/bge-m3",
                "model_type": {"embedding": {"pooling": "cls"}},
                "max_input_length": 8192,
                "max_client_batch_size": 32,
                "version": "1.9.0",
            }
        },
        {
            "family": "Text Embeddings Inference",
            "version": "1.9.0",
            "window": 8192,
            "largest_batch": 32,
            "role": "embedding",
            "role_from": "GET /info",
        },
    ),
    (
        "one that ranks",
        {"/info": {"model_id": "r", "model_type": {"reranker": {}}, "max_client_batch_size": 8}},
        {"family": "Text Embeddings Inference", "role": "unknown"},
    ),
    (
        "Ollama with an embedding model",
        {
            **listed({"id": "bge-m3:latest", "owned_by": "library"}, {"id": "llama3", "owned_by": "library"}),
            "/api/version": {"version": "0.12.3"},
            "/api/show": {
                "model_info": {"bert.embedding_length": 1024, "bert.context_length": 8192},
                "capabilities": ["embedding"],
            },
        },
        {
            "family": "Ollama",
            "version": "0.12.3",
            "models": ("bge-m3:latest", "llama3"),
            "dimensions": 1024,
            "window": 8192,
            "role": "embedding",
            "role_from": "POST /api/show",
        },
    ),
    (
        "Ollama with a chat model",
        {"/api/version": {"version": "0.12.3"}, "/api/show": {"capabilities": ["completion", "tools"]}},
        {"family": "Ollama", "role": "chat"},
    ),
    (
        "an Ollama that does not show",
        {"/api/version": {"version": "0.1"}},
        {"family": "Ollama", "role": "unknown"},
    ),
    (
        "llama.cpp",
        listed({"id": "m.gguf", "owned_by": "llamacpp", "meta": {"n_embd": 768, "n_ctx_train": 2048}}),
        {"family": "llama.cpp", "model": "m.gguf", "dimensions": 768, "window": 2048},
    ),
    ("vLLM", listed({"id": "m", "owned_by": "vllm", "max_model_len": 512}), {"family": "vLLM", "window": 512}),
    ("two owners", listed({"id": "a", "owned_by": "vllm"}, {"id": "b", "owned_by": "library"}), {"family": ""}),
    ("an empty list", listed(), {"models": ()}),
    ("nothing", {}, {"family": "", "role": "unknown"}),
]


@pytest.mark.parametrize(("gets", "expected"), [row[1:] for row in SERVERS], ids=[row[0] for row in SERVERS])
def test_what_servers_say_of_themselves(gets: dict[str, Any], expected: dict[str, Any]) -> None:
    with serving(gets=gets) as server:
        found = ask(server)
    assert {name: getattr(found, name) for name in expected} == expected
    assert len(found.asked) == (5 if "/api/version" in gets else 4)


def test_the_questions_go_to_the_root_of_the_server() -> None:
    with serving(gets={"/x/v1/models": {"data": [{"id": "m"}]}}) as server:
        assert ask(server, "/x/v1/embeddings").models == ("m",)
        assert [request.path for request in server.requests][:2] == ["/x/capabilities", "/x/info"]


@pytest.mark.parametrize(("path", "sent"), [("/v1/embeddings", "Bearer sk-12345678"), ("/embed", None)])
def test_the_key_goes_only_where_it_would_have_gone(path: str, sent: str | None) -> None:
    with serving() as server:
        ask(server, path, key="sk-12345678")
        assert {request.headers.get("authorization") for request in server.requests} == {sent}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = ["identity", "model", "dimensions", "window", "model_id", "max_client_batch_size", "model_type", "data", "id"]
NAMES += ["meta", "model_info", "capabilities", "fingerprint", "owned_by", "version", "a.embedding_length"]
DOCUMENTS = st.dictionaries(
    st.sampled_from(NAMES),
    JSON
    | st.dictionaries(st.sampled_from(NAMES), JSON, max_size=4)
    | st.lists(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=4), max_size=3),
    max_size=4,
)


@settings(max_examples=60)
@given(DOCUMENTS)
def test_no_answer_breaks_the_reading(document: dict[str, Any]) -> None:
    for read in (module._capabilities, module._info, module._models):
        assert isinstance(read(Identity(), document, "m"), Identity)
    assert isinstance(module._show(Identity(), document), Identity)
    assert isinstance(module._names(document), tuple)


def test_names_from_outside_are_harmless() -> None:
    with serving(gets=listed({"id": "a\x1b[31m\nb"}, {"id": "x" * 900}, {"id": 7}, "odd")) as server:  # type: ignore[arg-type]
        found = ask(server)
    assert found.models[0] == "a\\x1b[31m\\nb"
    assert len(found.models) == 2
    assert max(len(name) for name in found.models) <= 100


@pytest.mark.parametrize(
    "body", ["[1]", "no json", "{" * 9, '{"data":' + '[{"id":"x"},' * 60_000 + "{}]" + "]" * 59_999]
)
def test_an_answer_that_is_none(body: str) -> None:
    class Odd(SmallEndpoint):
        def answer(self, request: Any) -> Any:
            from support.endpoints_small import Answer  # noqa: PLC0415

            return Answer(200, body)

    with serving() as plain:
        behaviour = plain.behaviour
    with Odd(behaviour) as server:
        assert ask(server).models == ()


def test_nobody_there() -> None:
    with serving() as server:
        gone = server
    found = ask(gone)
    assert found.family == ""
    assert {answer for _, answer in found.asked} == {"ConnectError"}


def test_a_url_without_a_host() -> None:
    assert asyncio.run(identify(Endpoint(mode=Mode.HTTP, url="nonsense"))).asked == ()


def test_a_proxy_that_cannot_be_used() -> None:
    odd = Endpoint(mode=Mode.HTTP, url="http://127.0.0.1:1/embed", environment={"HTTP_PROXY": "odd://x"})
    assert asyncio.run(identify(odd)).asked == ()


@pytest.mark.parametrize(
    ("stated", "override", "kind", "apart", "role"),
    [
        ("embedding", "chat", Kind.OK, APART, ("chat", "--role")),
        ("chat", "embedding", Kind.OK, ALIKE, ("embedding", "--role")),
        ("chat", "", Kind.OK, APART, ("chat", "the server")),
        ("unknown", "", Kind.NOT_AN_EMBEDDING_MODEL, None, ("chat", "the server’s refusal")),
        ("unknown", "", Kind.OK, APART, ("embedding", "measured: related texts are nearer than strangers")),
        ("unknown", "", Kind.OK, ALIKE, ("unknown", "")),
        ("unknown", "", Kind.REFUSED, None, ("unknown", "")),
    ],
)
def test_who_decides_over_the_role(
    stated: Any, override: str, kind: Kind, apart: Separation | None, role: tuple[str, str]
) -> None:
    identity = Identity(role=stated, role_from="the server" if stated != "unknown" else "")
    found = with_role(identity, override, ended(kind), apart)
    assert (found.role, found.role_from) == role


def test_names_of_one_model() -> None:
    assert plain_name("BAAI/BGE-M3:latest") == "bge-m3"
    names = ("llama3", "bge-m3:latest", "x/BGE-M3", "jina-v5")
    assert models_like("bge-m3", names) == ["bge-m3:latest", "x/BGE-M3"]
    assert models_like("other", names, others=True) == ["bge-m3:latest", "x/BGE-M3", "jina-v5"]
