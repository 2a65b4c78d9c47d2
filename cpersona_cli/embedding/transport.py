"""The way to an endpoint: the proxy, the certificates and the time limits that the server's own client would have."""

from __future__ import annotations

import logging
import ssl
import sys
from functools import cache
from importlib.util import find_spec

import httpx

from cpersona_cli.embedding.configuration import proxy_of
from cpersona_cli.embedding.model import Endpoint


def open_http(endpoint: Endpoint, timeout: float) -> httpx.AsyncClient:
    """A client for ``endpoint`` with ``timeout`` seconds for each phase of a call; redirects are not followed.

    Raises whatever a client that cannot be built raises: an unusable proxy, certificates that cannot be read.
    """
    _silence()
    _alone()
    proxy = proxy_of(endpoint)
    return httpx.AsyncClient(
        timeout=timeout,
        trust_env=False,
        proxy=None if proxy is None else proxy.url,
        verify=_trust(endpoint, "" if proxy is None else proxy.scheme),
    )


def _trust(endpoint: Endpoint, proxy_scheme: str) -> ssl.SSLContext | bool:
    """The certificates the server's client would trust: its own bundle, unless a variable names another."""
    file, folder = endpoint.environment.get("SSL_CERT_FILE"), endpoint.environment.get("SSL_CERT_DIR")
    if file:
        return _bundle(file, None)
    if folder:
        return _bundle(None, folder)
    if httpx.URL(endpoint.url).scheme in {"http", "ws"} and proxy_scheme != "https":
        # plain HTTP needs no certificates, and reading them takes longer than a call; this trusts none at all
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return True


@cache
def _bundle(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Certificates of a file or folder, read once: that takes longer than a call, and a command makes many clients."""
    return ssl.create_default_context(cafile=file, capath=folder)


@cache
def _alone() -> None:
    """The HTTP library asks at every step of a call for a module that tells it of other event loops than asyncio.

    Where it is not installed, that searches all folders each time, and costs more than sending a request.
    """
    if find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment]


def _silence() -> None:
    """The HTTP library logs each URL, with user info and query, at INFO, and headers at DEBUG."""
    for name in ("httpx", "httpcore"):
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.WARNING))
