"""The server's own embedding client from the installed package, run on the same endpoint as ours."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx
import httpx._client
import httpx._decoders
import httpx._transports.default
from cpersona._vendored_mcp_common.embedding_client import EmbeddingClient

from cpersona_cli.embedding.client import Client
from cpersona_cli.embedding.model import Endpoint, Mode, Outcome, ServerView
from cpersona_cli.text import redact

# The server logs each failure as it came, and a worker of the test run cannot hand on text that is no UTF-8.
logging.getLogger(EmbeddingClient.__module__).setLevel(logging.CRITICAL)

# The server alone installs neither of the packages with which its HTTP library would understand more.
for _name in ("br", "zstd"):
    httpx._decoders.SUPPORTED_DECODERS.pop(_name, None)
httpx._client.ACCEPT_ENCODING = "gzip, deflate"

# Reading the certificates takes longer than all the rest of a call, and each call makes a client.
_create = httpx.create_ssl_context


@cache
def _default(_file: str, _folder: str) -> ssl.SSLContext:
    return _create()


def _context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
    if verify is True and cert is None and trust_env:
        return _default(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))
    return _create(verify, cert, trust_env)


httpx._transports.default.create_ssl_context = _context  # type: ignore[attr-defined]

TEXTS = ("a falcon over the harbour", "größer als ein Haus")


@dataclass(frozen=True, slots=True)
class Own:
    """What the server's client did: its outcome, or the exception that escaped it, or that it did not come back."""

    view: ServerView
    vectors: Sequence[Sequence[float]] = ()


@contextmanager
def variables(environment: Mapping[str, str]) -> Iterator[None]:
    """This process's environment without anything an HTTP client reads, and with ``environment``."""
    kept = dict(os.environ)
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("SSL_CERT"):
            del os.environ[name]
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def own(endpoint: Endpoint, texts: Sequence[str] = TEXTS, *, patience: float = 30.0) -> Own:
    """The server's client on ``endpoint``; after ``patience`` seconds without an outcome it counts as waiting."""

    async def run() -> Own:
        api = endpoint.mode == Mode.API
        client = EmbeddingClient(
            mode=endpoint.mode,
            http_url="" if api else endpoint.url,
            api_url=endpoint.url if api else "",
            api_key=endpoint.key,
            model=endpoint.model,
            timeout=endpoint.timeout,
        )
        try:
            await client.initialize()
        except Exception as error:  # noqa: BLE001 - whatever ends its start is the answer
            return Own(ServerView(attempted=False, ok=False, crash=type(error).__name__))
        try:
            async with asyncio.timeout(patience):
                vectors, outcome = await client.embed_with_outcome(list(texts))
        except TimeoutError:
            return Own(ServerView(attempted=True, ok=False, pending=True))
        except Exception as error:  # noqa: BLE001 - likewise
            return Own(ServerView(attempted=True, ok=False, crash=type(error).__name__))
        finally:
            await client.close()
        return Own(
            ServerView(attempted=outcome.attempted, ok=outcome.ok, error=outcome.error),
            vectors if outcome.ok else (),
        )

    with variables(endpoint.environment):
        return asyncio.run(run())


def ours(
    endpoint: Endpoint, texts: Sequence[str] = TEXTS, *, deadline: float | None = None, cap: int | None = None
) -> Outcome:
    """Our client on ``endpoint``."""

    async def run() -> Outcome:
        options = {} if cap is None else {"cap": cap}
        async with Client(endpoint, deadline=deadline, **options) as client:
            return await client.embed(texts)

    return asyncio.run(run())


def comparable(view: ServerView, secrets: Sequence[str] = ()) -> tuple[object, ...]:
    """What must agree: all fields, secrets removed; of a crash only the exception, for nothing is recorded then."""
    if view.crash:
        return ("crash", view.crash)
    return (view.attempted, view.ok, None if view.error is None else redact(view.error, secrets), view.pending)
