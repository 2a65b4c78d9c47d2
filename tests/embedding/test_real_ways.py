"""Real embedding servers behind TLS and behind a real proxy: what stands between is told from what is behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.own_client import comparable, ours, own
from support.real_endpoints import Running, cembedding, forwarded
from support.replies import CERTIFICATE, closed_port, forward_proxy, serve

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Measured, Plan
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.probe import measure
from cpersona_cli.record import replace

#: Enough of a probe to see which way it takes.
BRIEF = Plan(batches=(2,), words=20, body=1000)


def probed(target: Endpoint) -> Measured:
    return asyncio.run(measure(target, BRIEF))


# ---- TLS


@pytest.fixture(scope="module")
def secure(minilm: Running) -> Iterator[Endpoint]:
    """MiniLM behind a certificate that nobody has signed but itself."""
    with serve(lambda request: [forwarded(request, minilm)], tls=True) as front:
        yield Endpoint(mode=Mode.HTTP, url=front.url)


def test_certificate_that_nobody_trusts(secure: Endpoint) -> None:
    outcome = ours(secure)
    assert (outcome.kind, outcome.attempted, outcome.status) == (Kind.TLS, True, None)
    assert any("self-signed" in value for _, value in outcome.evidence)
    assert comparable(outcome.server_view) == comparable(own(secure).view)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_certificate_that_the_settings_trust(secure: Endpoint, host: str) -> None:
    target = replace(secure, url=secure.url.replace("127.0.0.1", host), environment={"SSL_CERT_FILE": str(CERTIFICATE)})
    outcome = ours(target)
    assert (outcome.kind, outcome.dim) == (Kind.OK, 384)
    assert comparable(outcome.server_view) == comparable(own(target).view)


def test_https_at_a_plain_port(minilm: Running) -> None:
    target = Endpoint(mode=Mode.HTTP, url=minilm.url.replace("http:", "https:"), timeout=5.0)
    outcome = ours(target)
    assert outcome.kind is Kind.TLS
    assert comparable(outcome.server_view) == comparable(own(target).view)


def test_plain_http_at_a_tls_port(secure: Endpoint) -> None:
    target = replace(secure, url=secure.url.replace("https:", "http:"), timeout=5.0)
    outcome = ours(target)
    assert outcome.kind is Kind.DISCONNECTED
    assert comparable(outcome.server_view) == comparable(own(target).view)


# ---- a proxy


@pytest.fixture(scope="module")
def proxy() -> Iterator[str]:
    with forward_proxy() as url:
        yield url


def test_through_a_proxy(minilm: Running, proxy: str) -> None:
    target = Endpoint(mode=Mode.HTTP, url=minilm.url, environment={"HTTP_PROXY": proxy})
    outcome = ours(target)
    assert (outcome.kind, outcome.via_proxy) == (Kind.OK, f"HTTP_PROXY={proxy}")
    assert comparable(outcome.server_view) == comparable(own(target).view)


def test_past_a_proxy(minilm: Running, proxy: str) -> None:
    target = Endpoint(mode=Mode.HTTP, url=minilm.url, environment={"HTTP_PROXY": proxy, "NO_PROXY": "127.0.0.1"})
    outcome = ours(target)
    assert (outcome.kind, outcome.via_proxy) == (Kind.OK, "")


def test_tls_through_a_proxy(secure: Endpoint, proxy: str) -> None:
    target = replace(secure, environment={"HTTPS_PROXY": proxy, "SSL_CERT_FILE": str(CERTIFICATE)})
    outcome = ours(target)
    assert (outcome.kind, outcome.via_proxy) == (Kind.OK, f"HTTPS_PROXY={proxy}")
    assert comparable(outcome.server_view) == comparable(own(target).view)


def test_proxy_that_is_gone(minilm: Running) -> None:
    """The refusal is the proxy's; without it the same call is answered, and that is what to set."""
    target = Endpoint(mode=Mode.HTTP, url=minilm.url, environment={"http_proxy": f"http://127.0.0.1:{closed_port()}"})
    found = probed(target)
    assert found.outcome.kind is Kind.PROXY
    assert comparable(found.outcome.server_view) == comparable(own(target).view)
    assert [made.helped for made in found.refinement.experiments] == [True]
    assert found.refinement.solution is not None
    assert found.refinement.solution.no_proxy == "127.0.0.1"
    assert found.refinement.solution.url == minilm.url


def test_server_that_is_gone_behind_a_proxy(embed_python: Path, proxy: str) -> None:
    """The proxy answers for it with 502; without the proxy the call is refused, so the proxy is not at fault."""
    with cembedding(embed_python) as server:
        target = Endpoint(mode=Mode.HTTP, url=server.url, environment={"HTTP_PROXY": proxy})
        assert ours(target).kind is Kind.OK
        server.kill()
        found = probed(target)
    assert (found.outcome.kind, found.outcome.status) == (Kind.PROXY, 502)
    assert comparable(found.outcome.server_view) == comparable(own(target).view)
    assert found.refinement.solution is None
    assert found.refinement.experiments[0].kind is Kind.REFUSED
