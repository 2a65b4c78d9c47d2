"""Faults of real embedding servers that only several calls can tell apart, from the command line to the exit code."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pytest_console_scripts import ScriptRunner
from support.documents import document
from support.endpoints_small import Answer, Request, SmallEndpoint, serving

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Clock, Measured, Plan
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.probe import measure

pytestmark = pytest.mark.script_launch_mode("inprocess")

Probe = Callable[..., dict[str, Any]]
ROUTES = {"/embed": "tei", "/v1/embeddings": "api", "/api/embed": "ollama"}


@pytest.fixture
def probe(tmp_path: Path, script_runner: ScriptRunner, monkeypatch: pytest.MonkeyPatch) -> Probe:
    for name in list(os.environ):
        if name.startswith(("CPERSONA_", "EMBEDDING_", "XDG_", "SSL_CERT")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "key").write_text("sk-proj-1234567890abcdef\n")

    def run(url: str, *words: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
        command = ["cpersona-cli", "probe", "--url", url, "--model", "bge-m3", "--json", *words]
        result = script_runner.run(command, cwd=tmp_path, env={**os.environ, **(env or {})}, stdin=io.StringIO())
        found = document(result.stdout)
        assert found["exit_code"] == result.returncode
        assert result.stderr == ""
        assert "sk-proj-1234567890abcdef" not in result.stdout
        return found

    return run


KEY = ("--api-key-file", "key")


def traps(found: dict[str, Any]) -> list[str]:
    return [finding["trap"] for finding in found["findings"]]


def fix(found: dict[str, Any]) -> dict[str, str]:
    """The settings that the first finding says to write."""
    lines = found["findings"][0]["repair"]["edit"].splitlines()
    return dict(line.split("=", 1) for line in lines)


def told(found: dict[str, Any]) -> str:
    return str(found["findings"][0]["measured"])


def always(answer: Answer) -> Callable[[Request, int], Answer]:
    return lambda _request, _number: answer


def wait(server: SmallEndpoint, plan: Plan) -> tuple[Measured, list[float]]:
    """A run with the real client against the real server, in which pauses are noted and not made."""
    slept: list[float] = []

    async def pause(seconds: float) -> None:
        slept.append(seconds)

    endpoint = Endpoint(mode=Mode.API, url=server.url("/v1/embeddings"), model="m", key="sk-12345678")
    clock = Clock(now=lambda: time.monotonic() + sum(slept), sleep=pause)
    return asyncio.run(measure(endpoint, plan, clock=clock)), slept


# ---- loading


BUSY = [
    {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}},
    {"error": "Provider not initialized"},
]


@pytest.mark.parametrize("body", BUSY, ids=["llama-server", "CEmbedding"])
def test_a_server_that_is_loading_is_not_down(probe: Probe, body: object) -> None:
    with serving(before=always(Answer(503, body))) as server:
        found = probe(server.url())
    assert (found["exit_code"], found["kind"], found["findings"]) == (3, "loading", [])
    assert "--wait 120" in found["unsettled"][0]
    assert found["next_command"].endswith("--wait 120")


@pytest.mark.parametrize("body", BUSY, ids=["llama-server", "CEmbedding"])
def test_a_server_that_is_loading_is_waited_for(body: object) -> None:
    def first_two(_request: Request, number: int) -> Answer | None:
        return Answer(503, body) if number <= 2 else None

    with serving(before=first_two) as server:
        found, slept = wait(server, Plan(wait=60))
    assert found.outcome.kind is Kind.OK
    assert slept[:2] == [0.25, 0.5]
    assert found.ready_after is not None
    assert found.ready_after >= 0.75


# ---- rates and quotas


def limited(message: str, code: str, **headers: str) -> Answer:
    error = {"message": message, "type": "tokens", "param": None, "code": code}
    return Answer(429, {"error": error}, headers)


RATE = "Rate limit reached for bge-m3 in organization org-AbCdEf123456: Limit 1000. Please try again in {}."


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (limited(RATE.format("522ms"), "rate_limit_exceeded"), 0.522),
        (limited(RATE.format("2.768s"), "rate_limit_exceeded"), 2.768),
        (limited(RATE.format("40ms"), "rate_limit_exceeded", **{"retry-after": "3"}), 3.0),
        (limited("slower please, you two", "", **{"retry-after-ms": "250"}), 0.25),
    ],
)
def test_a_rate_that_heals_is_waited_for_as_told(answer: Answer, seconds: float) -> None:
    with serving(before=lambda _request, number: answer if number == 1 else None) as server:
        found, slept = wait(server, Plan())
    assert found.outcome.kind is Kind.OK
    assert slept == [seconds]


def test_a_quota_never_heals(probe: Probe) -> None:
    answer = limited("You exceeded your current quota, see org-AbCdEf123456.", "insufficient_quota")
    with serving(before=always(answer)) as server:
        found = probe(server.url("/v1/embeddings"), "--wait", "600", *KEY)
        assert len(server.requests) == 1
    assert (found["exit_code"], traps(found)) == (1, ["endpoint.quota"])
    assert "org-AbCdEf123456" not in str(found)


# ---- windows and batches


def test_short_texts_pass_and_long_ones_fail(probe: Probe) -> None:
    with serving(refuses_over=512) as server:
        found = probe(server.url("/v1/embeddings"), *KEY)
    assert (found["exit_code"], traps(found)) == (0, ["endpoint.window-too-small"])
    assert "512 tokens" in told(found)
    assert found["window"]["refused_with"] == "input_too_large"
    assert "-ub" in found["findings"][0]["repair"]["prose"]


def test_a_batch_limit_of_the_reference_server(probe: Probe) -> None:
    with serving(batch_limit=40) as server:
        found = probe(server.url())
    assert (found["exit_code"], traps(found), found["largest_batch"]) == (0, ["endpoint.batch-too-large"], 40)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": "Batch size exceeds limit (max 100)"}, "batch_too_large"),
        (400, {"error": "'texts' must be a non-empty array of strings"}, "wrong_contract"),
        (500, {"error": "Embedding failed: the session is closed"}, "server_error"),
    ],
)
def test_refusals_of_the_reference_server(probe: Probe, status: int, body: object, kind: str) -> None:
    with serving(before=always(Answer(status, body))) as server:
        found = probe(server.url())
        assert len(server.requests) <= 2 + 8
    assert (found["exit_code"], found["kind"]) == (1, kind)
    assert body["error"].split(": ")[-1] in told(found)  # type: ignore[index]


# ---- contracts


def test_the_other_server_with_a_route_of_the_same_name(probe: Probe) -> None:
    gets = {"/info": {"model_id": "bge", "model_type": {"embedding": {}}, "max_client_batch_size": 32}}
    with serving(routes=ROUTES, gets=gets) as server:
        found = probe(server.url(), "--mode", "http")
        assert len(server.requests) <= 1 + 8
        assert fix(found) == {
            "CPERSONA_EMBEDDING_MODE": "api",
            "CPERSONA_EMBEDDING_API_URL": server.url("/v1/embeddings"),
            "CPERSONA_EMBEDDING_API_KEY": "any-text",
        }
    assert (found["exit_code"], traps(found)) == (1, ["endpoint.wrong-contract"])
    assert found["identity"]["family"] == "Text Embeddings Inference"


def test_a_bare_list_of_vectors(probe: Probe) -> None:
    with serving(before=always(Answer(200, [[0.6, 0.8, 0.0], [1.0, 0.0, 0.0]]))) as server:
        found = probe(server.url())
    assert (found["exit_code"], found["kind"]) == (1, "wrong_contract")
    assert "Text Embeddings Inference" in str(found["evidence"])


MODELS = {"/v1/models": {"data": [{"id": "bge-m3:latest", "owned_by": "library"}, {"id": "llama3"}]}}


@pytest.mark.parametrize(
    ("mode", "path", "model"),
    [("api", "/api/embed", ""), ("http", "/v1/embeddings", ""), ("http", "/api/embed", "bge-m3:latest")],
)
def test_two_contracts_of_one_product(probe: Probe, mode: str, path: str, model: str) -> None:
    served = None if not model else (model, "llama3")
    with serving(routes=ROUTES, models=served, gets=MODELS) as server:
        found = probe(server.url(path), "--mode", mode)
        assert len(server.requests) <= 1 + 8
        wanted = fix(found)
        assert wanted["CPERSONA_EMBEDDING_API_URL"] == server.url("/v1/embeddings")
    assert (found["exit_code"], traps(found)) == (1, ["endpoint.wrong-contract"])
    assert wanted.get("CPERSONA_EMBEDDING_MODE") == (None if mode == "api" else "api")
    assert wanted.get("CPERSONA_EMBEDDING_MODEL", "") == model


def test_no_vectors_where_a_list_is_expected(probe: Probe) -> None:
    with serving(before=always(Answer(200, {"model": "m", "embeddings": []}))) as server:
        found = probe(server.url("/api/embed"), "--mode", "http")
    assert (found["exit_code"], found["ok"]) == (1, False)


@pytest.mark.parametrize("flat", [True, False])
def test_an_unknown_model_in_two_shapes(probe: Probe, *, flat: bool) -> None:
    inner = {"message": "The model `bge-m3` does not exist.", "type": "NotFoundError", "param": None, "code": 404}
    body = {"object": "error", **inner} if flat else {"error": inner}
    gets = {"/v1/models": {"data": [{"id": "intfloat/e5-small"}]}}
    with serving(before=always(Answer(404, body)), gets=gets) as server:
        found = probe(server.url("/v1/embeddings"), *KEY)
    assert (found["exit_code"], traps(found)) == (1, ["endpoint.model-not-found"])
    assert "The model `bge-m3` does not exist." in told(found)
    assert "intfloat/e5-small" in found["findings"][0]["repair"]["prose"]


def test_a_list_is_refused(probe: Probe) -> None:
    def strings_only(request: Request, _number: int) -> Answer | None:
        message = "JSON format issue: expected string at field input got instead array"
        return Answer(400, {"error": {"message": message}}) if isinstance(request.document.get("input"), list) else None

    with serving(before=strings_only) as server:
        found = probe(server.url("/v1/embeddings"), *KEY)
    assert (found["exit_code"], traps(found)) == (1, ["endpoint.no-batching"])


def test_a_list_of_complaints_is_one_line(probe: Probe) -> None:
    complaint = {"type": "list_type", "loc": ["body", "input"], "msg": "Input should be a valid list", "input": "x"}
    with serving(before=always(Answer(422, {"detail": [complaint]}))) as server:
        found = probe(server.url("/v1/embeddings"), *KEY)
    assert found["exit_code"] == 1
    assert "body.input: Input should be a valid list" in told(found)


# ---- keys, order, drops


def test_a_server_that_needs_no_key_and_a_client_that_does(probe: Probe) -> None:
    with serving() as server:
        found = probe(server.url("/v1/embeddings"))
        assert all("authorization" not in request.headers for request in server.requests)
    assert (found["exit_code"], found["kind"], traps(found)) == (0, "ok", ["endpoint.key-needed"])
    assert found["server_view"]["ok"] is False
    assert fix(found) == {"CPERSONA_EMBEDDING_API_KEY": "any-text"}


def test_items_out_of_order(probe: Probe) -> None:
    with serving(backwards=True) as server:
        found = probe(server.url("/v1/embeddings"), *KEY)
    assert (found["exit_code"], found["out_of_order"], traps(found)) == (0, True, [])


@pytest.mark.parametrize(
    "answer",
    [
        Answer(drop=True),
        Answer(500, {"error": 'do embedding request: Post "http://127.0.0.1:33967/embedding": EOF'}),
    ],
    ids=["dropped", "runner gone"],
)
def test_a_server_that_comes_back(probe: Probe, answer: Answer) -> None:
    with serving(before=lambda _request, number: answer if number == 1 else None) as server:
        found = probe(server.url("/v1/embeddings"), *KEY)
    assert (found["exit_code"], found["kind"], traps(found)) == (0, "ok", ["endpoint.unstable"])
    assert "1 of 9 calls failed" in told(found)


# ---- addresses


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        (Answer(503, "<html><body>Service Unavailable</body></html>", {"content-type": "text/html"}), "Service Un"),
        (Answer(200, "<!DOCTYPE html><html><title>Sign in</title>", {"content-type": "text/html"}), "Sign in"),
    ],
    ids=["no service", "sign in"],
)
@pytest.mark.parametrize("mode", ["http", "api"])
def test_a_proxy_answers_for_this_computer(probe: Probe, answer: Answer, title: str, mode: str) -> None:
    path = "/embed" if mode == "http" else "/v1/embeddings"
    with serving() as server, serving(before=always(answer)) as between:
        found = probe(server.url(path), env={"HTTP_PROXY": between.url("")})
        assert len(between.requests) == 1
    assert (found["exit_code"], traps(found)) == (1, ["endpoint.proxy"])
    assert title in told(found)
    assert "HTTP_PROXY" in told(found)
    assert "<html" not in str(found)
    assert fix(found) == {"NO_PROXY": "localhost,127.0.0.1,::1"}


URLS = [
    ("127.0.0.1:{port}/embed", "http://127.0.0.1:{port}/embed"),
    ("localhost:{port}/embed", "http://localhost:{port}/embed"),
    ("http:/127.0.0.1:{port}/embed", "http://127.0.0.1:{port}/embed"),
    ("http://127.0.0.1:{port}/embed ", "http://127.0.0.1:{port}/embed"),
    ("http://127.0.0.1:{port}/embed/", "http://127.0.0.1:{port}/embed"),
    ("http://127.0.0.1:{port}", "http://127.0.0.1:{port}/embed"),
    ("http://127.0.0.1:{port}/v1", "http://127.0.0.1:{port}/v1/embeddings"),
    ("http://127.0.0.1:{port}/v1/embeddings/", "http://127.0.0.1:{port}/v1/embeddings"),
    ("http://127.0.0.1:{port}/v1/embeddings/embeddings", "http://127.0.0.1:{port}/v1/embeddings"),
]


@pytest.mark.parametrize(("written", "meant"), URLS, ids=[row[0] for row in URLS])
def test_slips_in_a_url_are_mended_and_tried(probe: Probe, written: str, meant: str) -> None:
    with serving() as server:
        found = probe(written.format(port=server.port))
        assert found["exit_code"] == 1
        assert meant.format(port=server.port) in fix(found).values()
        assert found["experiments"][-1]["helped"]


@pytest.mark.parametrize("written", ["http://127.0.0.1:84o1/embed", "ftp://127.0.0.1/embed", "", "http://", "\\\\x"])
def test_a_url_that_cannot_be_mended(probe: Probe, written: str) -> None:
    found = probe(written)
    assert (found["exit_code"], traps(found)) == (1, ["endpoint.config-url"])
    assert found["solution"] is None


def test_the_unspecified_address_works_here_only(probe: Probe) -> None:
    with serving() as server:
        found = probe(f"http://0.0.0.0:{server.port}/embed")
        assert (found["exit_code"], traps(found)) == (0, ["endpoint.loopback-name"])
        assert fix(found) == {"CPERSONA_EMBEDDING_URL": server.url()}


def test_started_and_gone(probe: Probe) -> None:
    with serving() as server:
        url = server.url()
    found = probe(url)
    assert (found["exit_code"], traps(found)) == (1, ["endpoint.refused"])


def test_an_endpoint_that_never_answers_is_slow_and_not_down(probe: Probe) -> None:
    import socket  # noqa: PLC0415

    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = probe(f"http://127.0.0.1:{silent.getsockname()[1]}/embed", "--timeout", "0.2")
    assert (found["exit_code"], found["kind"], found["findings"]) == (3, "timeout", [])
    assert "not “down”" in found["unsettled"][0]
    assert found["next_command"].endswith("--wait 180")
