"""What is wrong with an endpoint before anything is sent: mode, URL, key, timeout, proxies."""

from __future__ import annotations

import re
from dataclasses import dataclass

import httpx

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.install.proxies import Proxy, ProxyError, proxy_for


@dataclass(frozen=True, slots=True)
class Objection:
    """Why an endpoint cannot be called. ``suggestion`` is a URL that could, where one is plain to see."""

    kind: Kind
    detail: str
    suggestion: str = ""


def objection(endpoint: Endpoint) -> Objection | None:
    """The first thing that keeps any request from leaving, or None. What can be sent is sent, however odd it looks."""
    if endpoint.mode == Mode.NONE:
        return Objection(Kind.DISABLED, "mode none")
    if endpoint.mode not in {Mode.HTTP, Mode.API}:
        return Objection(Kind.CONFIG_MODE, "the mode must be exactly none, http or api")
    wrong = _unsendable_url(endpoint.url)
    if wrong:
        return Objection(Kind.CONFIG_URL, wrong, better_url(endpoint.url))
    if endpoint.mode == Mode.API:
        key = key_objection(endpoint.key)
        if key:
            return Objection(Kind.CONFIG_CREDENTIAL, key)
    if endpoint.timeout <= 0:
        return Objection(Kind.CONFIG_CLIENT, f"a timeout of {endpoint.timeout:g} s ends every call at once")
    return _proxy_objection(endpoint)


def _unsendable_url(url: str) -> str:
    """Why the HTTP client cannot post to ``url``, in words that do not repeat it; empty when it can."""
    if not url:
        return "no URL is set"
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return "the URL cannot be read: a line end, a port that is no number, or a host that is none"
    if not parsed.scheme:
        return (
            "the URL has no scheme" if url == url.strip(" \"'") else "the URL begins with a space or a quotation mark"
        )
    if parsed.scheme not in {"http", "https"}:
        return "the scheme is neither http nor https"
    if not parsed.host:
        return "the URL has no host"
    if parsed.port is not None and not 1 <= parsed.port <= 65535:
        return "the port is not from 1 to 65535"
    return ""


def better_url(url: str) -> str:
    """``url`` with a plain slip mended (white space, quotation marks, a missing scheme or slash), else empty."""
    better = url.strip().strip("\"'").strip()
    better = re.sub(r"^(https?):/+(?=[^/])", r"\1://", better, flags=re.IGNORECASE)
    if better and "://" not in better and re.match(r"^[\w.-]+(:\d+)?(/|$)|^\[[0-9a-f:]+\]", better, re.IGNORECASE):
        better = f"http://{better}"
    return better if better != url and not _unsendable_url(better) else ""


def key_objection(key: str) -> str:
    """Why ``key`` cannot stand in a header, in words that show nothing of it; empty when it can."""
    if not key.isascii():
        return "the key holds characters that are not ASCII"
    if re.search(r"[\x00-\x1f\x7f]", key):
        return "the key holds a line end or another control character"
    if key != key.strip():
        return "the key begins or ends with a space"
    return ""


def proxy_of(endpoint: Endpoint) -> Proxy | None:
    """The proxy a call would take. Raises ``ProxyError`` where the variables keep a client from being built."""
    return proxy_for(endpoint.url, endpoint.environment)


def _proxy_objection(endpoint: Endpoint) -> Objection | None:
    try:
        proxy = proxy_of(endpoint)
    except ProxyError as error:
        return Objection(Kind.CONFIG_CLIENT, f"{error.name} cannot be used: {error}")
    if proxy is not None and proxy.scheme.startswith("socks"):
        try:
            import socksio  # type: ignore[import-not-found]  # noqa: F401, PLC0415 - present or not is the question
        except ImportError:
            return Objection(Kind.CONFIG_CLIENT, f"{proxy.name} names a SOCKS proxy and the package socksio is missing")
    return None
