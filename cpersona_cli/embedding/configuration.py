"""What is wrong with an endpoint before anything is sent: mode, URL, key, timeout, proxies."""

from __future__ import annotations

import re

import httpx

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.install.proxies import Proxy, ProxyError, proxy_for
from cpersona_cli.record import field, record

#: Schemes the HTTP client takes; the last two are other names of the first two.
SCHEMES = frozenset({"http", "https", "ws", "wss"})


@record
class Objection:
    """Why an endpoint cannot be called. ``suggestion`` is a URL that could, where one is plain to see.

    ``crash`` names the exception that ends the server at its start, or comes out of every call of its client.
    """

    kind: Kind
    detail: str
    suggestion: str = field(default="", repr=False)
    crash: str = ""


# What the HTTP library lets through as a header value.
_HEADER_VALUE = re.compile(rb"[^\x00\s]+(?:[ \t]+[^\x00\s]+)*")


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
        if not _encodable(endpoint.model):
            return Objection(Kind.CONFIG_CLIENT, "the model’s name holds bytes that are no text")
    if not endpoint.timeout > 0:
        return Objection(Kind.CONFIG_CLIENT, f"a timeout of {endpoint.timeout:g} s ends every call at once")
    return _proxy_objection(endpoint)


def _unsendable_url(url: str) -> str:
    """Why the HTTP client cannot post to ``url``, in words that do not repeat it; empty when it can."""
    if not url:
        return "no URL is set"
    try:
        parsed = httpx.URL(url)
        host = parsed.host
    except (httpx.InvalidURL, ValueError):
        return "the URL cannot be read: a line end, a port that is no number, or a host that is none"
    if not parsed.scheme:
        return (
            "the URL has no scheme" if url == url.strip(" \"'") else "the URL begins with a space or a quotation mark"
        )
    if parsed.scheme not in SCHEMES:
        return "the scheme is neither http nor https"
    if not host:
        return "the URL has no host"
    if parsed.port is not None and not 1 <= parsed.port <= 65535:
        return "the port is not from 1 to 65535"
    return ""


def better_url(url: str) -> str:
    """``url`` with a plain slip mended (white space, quotation marks, a missing scheme or slash), else empty.

    It keeps user info and query, so it is as secret as ``url``.
    """
    better = url.strip().strip("\"'").strip()
    better = re.sub(r"^(https?):/*(?=[^/])", r"\1://", better, flags=re.IGNORECASE)
    if better and "://" not in better and re.match(r"^[\w.-]+(:\d+)?(/|$)|^\[[0-9a-f:]+\]", better, re.IGNORECASE):
        better = f"http://{better}"
    return better if better != url and not _unsendable_url(better) else ""


def key_objection(key: str) -> str:
    """Why ``key`` cannot stand in a header, in words that show nothing of it; empty when it can.

    An empty key is no objection: a call without one leaves the header out, which CPersona itself cannot do.
    """
    if not key.isascii():
        return "the key holds characters that are not ASCII"
    if not key or sendable(key):
        return ""
    if re.search(r"[\r\n\0\v\f]", key):
        return "the key holds a line end or another character that no header may hold"
    return "the key ends with a space"


def sendable(key: str) -> bool:
    """Whether the HTTP library lets ``Authorization: Bearer <key>`` through; ``key`` is ASCII."""
    return _HEADER_VALUE.fullmatch(b"Bearer " + key.encode("ascii")) is not None


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def proxy_of(endpoint: Endpoint) -> Proxy | None:
    """The proxy a call would take. Raises ``ProxyError`` where the variables keep a client from being built."""
    return proxy_for(endpoint.url, endpoint.environment)


def _proxy_objection(endpoint: Endpoint) -> Objection | None:
    try:
        proxy = proxy_of(endpoint)
    except ProxyError as error:
        # the reason quotes a part of the value, which may be a password
        return Objection(Kind.CONFIG_CLIENT, f"{error.name} cannot be used", crash=_proxy_crash(error))
    if proxy is not None and proxy.scheme.startswith("socks"):
        try:
            import socksio  # type: ignore[import-not-found,unused-ignore]  # noqa: F401, PLC0415 - the question is whether
        except ImportError:
            missing = f"{proxy.name} names a SOCKS proxy and the package socksio is missing"
            return Objection(Kind.CONFIG_CLIENT, missing, crash="ImportError")
    return None


def _proxy_crash(error: ProxyError) -> str:
    if error.name.lower() == "no_proxy":
        return "InvalidURL"
    try:
        httpx.Proxy(error.part)
    except Exception as raised:  # noqa: BLE001 - its class is the answer
        return type(raised).__name__
    return "InvalidURL"
