"""Which proxy the server's HTTP client takes for a URL, from the environment it is started with.

The rules are those of httpx 0.27 and 0.28 with ``trust_env`` on, which is how the server creates its client: the
variables ``*_proxy`` in any case (small letters win), ``NO_PROXY`` names with their subdomains, no address ranges.
Proxies that Windows or macOS keep in their system settings are not seen here.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from cpersona_cli.record import record

_SCHEMES = ("http", "https", "socks5", "socks5h")
_DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21, "ws": 80, "wss": 443}
_AUTHORITY = re.compile(r"^(?:.*@)?(?P<host>\[.*\]|[^:@]*):?(?P<port>.*)$", re.DOTALL)
_DOTTED = re.compile(r"^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$")


class ProxyError(ValueError):
    """The client cannot even be created with these variables; ``name`` is the variable, ``part`` the piece at fault."""

    def __init__(self, name: str, part: str, why: str) -> None:
        super().__init__(why)
        self.name = name
        self.part = part


@record
class Proxy:
    """One proxy variable in force: its name as written and the proxy's URL."""

    name: str
    url: str

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0].lower()


@record
class _Pattern:
    scheme: str
    host: str
    port: int | None
    proxy: Proxy | None

    @property
    def priority(self) -> tuple[int, int, int]:
        return (self.port is None, -len(self.host), -len(self.scheme))

    def matches(self, scheme: str, host: str, port: int | None) -> bool:
        if self.scheme and self.scheme != scheme:
            return False
        if self.port is not None and self.port != port:
            return False
        if not self.host:
            return True
        if self.host.startswith("*."):
            return host.endswith(self.host[1:]) and len(host) > len(self.host) - 1
        if self.host.startswith("*"):
            return host == self.host[1:] or host.endswith("." + self.host[1:])
        return host == self.host


def variables(environment: Mapping[str, str]) -> dict[str, Proxy]:
    """``http``, ``https``, ``all`` and ``no`` -> the variable in force, small letters before capitals.

    An empty small-letter variable switches the capital one off, and a CGI process ignores HTTP_PROXY.
    """
    found = {
        name.lower()[:-6]: Proxy(name, text)
        for name, text in environment.items()
        if text and name.lower().endswith("_proxy")
    }
    if "REQUEST_METHOD" in environment:
        found.pop("http", None)
    for name, text in environment.items():
        if name.endswith("_proxy"):
            if text:
                found[name.lower()[:-6]] = Proxy(name, text)
            else:
                found.pop(name.lower()[:-6], None)
    return {scheme: found[scheme] for scheme in ("http", "https", "all", "no") if scheme in found}


def exceptions(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts of ``NO_PROXY``, as written."""
    listed = variables(environment).get("no")
    return () if listed is None else tuple(part for part in map(str.strip, listed.url.split(",")) if part)


def proxy_for(url: str, environment: Mapping[str, str]) -> Proxy | None:
    """The proxy that a request to ``url`` would take, or None for a direct connection.

    Raises :class:`ProxyError` when the variables keep the client from being created at all, which stops the server
    at its start whatever the URL is. A URL that cannot be parsed has no proxy.
    """
    patterns = sorted(_patterns(environment), key=lambda pattern: pattern.priority)
    try:
        scheme, host, port = _parsed(url)
    except ValueError:
        return None
    for pattern in patterns:
        if pattern.matches(scheme, host, port):
            return pattern.proxy
    return None


def _patterns(environment: Mapping[str, str]) -> list[_Pattern]:
    known = variables(environment)
    if "*" in exceptions(environment):
        return []
    patterns = []
    for scheme in ("http", "https", "all"):
        proxy = known.get(scheme)
        if proxy is not None:
            proxy = Proxy(proxy.name, proxy.url if "://" in proxy.url else f"http://{proxy.url}")
            _require_usable(proxy)
            patterns.append(_Pattern("" if scheme == "all" else scheme, "", None, proxy))
    for part in exceptions(environment):
        key = _key(part)
        try:
            scheme, host, port = _parsed(key)
        except ValueError as error:
            raise ProxyError(known["no"].name, part, str(error)) from error
        patterns.append(_Pattern("" if scheme == "all" else scheme, "" if host == "*" else host, port, None))
    return patterns


def _key(part: str) -> str:
    """One ``NO_PROXY`` entry as the client turns it into a URL pattern."""
    if "://" in part:
        return part
    head = part.split("/", maxsplit=1)[0]
    for kind, form in ((ipaddress.IPv4Address, "all://{}"), (ipaddress.IPv6Address, "all://[{}]")):
        try:
            kind(head)
        except ValueError:
            continue
        return form.format(part)
    return f"all://{part}" if part.lower() == "localhost" else f"all://*{part}"


def _require_usable(proxy: Proxy) -> None:
    try:
        scheme, _, _ = _parsed(proxy.url)
    except ValueError as error:
        raise ProxyError(proxy.name, proxy.url, str(error)) from error
    if scheme not in _SCHEMES:
        raise ProxyError(proxy.name, proxy.url, f"unknown proxy scheme {scheme!r}")


def _parsed(url: str) -> tuple[str, str, int | None]:
    """(scheme, host, port) as httpx normalises them; a scheme's own port is none. Raises ``ValueError``."""
    if any(char.isascii() and not char.isprintable() for char in url):
        raise ValueError("a control character")
    match = re.match(r"^(?:([a-zA-Z][a-zA-Z0-9+.-]*)?:)?(?://([^/?#]*))?", url)
    scheme, authority = (match[1] or "", match[2] or "") if match else ("", "")
    parts = _AUTHORITY.match(authority)
    host, port = (parts["host"], parts["port"]) if parts else ("", "")
    scheme = scheme.lower()
    try:
        number = int(port) if port else None
    except ValueError:
        raise ValueError(f"{port!r} is no port") from None
    return scheme, _host(host), None if number == _DEFAULT_PORTS.get(scheme) else number


def _host(host: str) -> str:
    if _DOTTED.match(host):
        ipaddress.IPv4Address(host)
        return host
    if host.startswith("[") and host.endswith("]"):
        ipaddress.IPv6Address(host[1:-1])
        return host[1:-1]
    if host.isascii():
        return host.lower()
    # The client encodes other names by IDNA 2008; Python's own codec (2003) agrees on all but a few letters. No name
    # with the star that stands before every host of NO_PROXY can be encoded.
    if "*" in host:
        raise ValueError("a name that is not ASCII")
    return host.lower().encode("idna").decode()


def is_loopback(url: str) -> bool:
    """Whether ``url`` names this computer: ``localhost``, 127.0.0.0/8, ``::1`` or the unspecified address."""
    try:
        host = (urlsplit(url.strip()).hostname or "").rstrip(".")
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
