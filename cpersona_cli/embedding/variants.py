"""Other ways to write an endpoint, each with one thing changed, and all on the same host.

A key goes only where it would have gone: a variant keeps host and port (two names of this computer count as one
host), an encrypted request that carries a secret stays encrypted, and mode http lends no key to a variant in mode api.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit, urlunsplit

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.record import record, replace
from cpersona_cli.text import bare_url

#: Known endings of paths, longest first: what stands before them is the server's own root.
_ENDINGS = ("/v1/embeddings", "/api/embeddings", "/api/embed", "/embeddings", "/embedding", "/embed", "/v1", "/api")

_HOSTS = {
    "localhost": ("127.0.0.1", "[::1]"),
    "127.0.0.1": ("localhost",),
    "0.0.0.0": ("127.0.0.1",),  # noqa: S104 - what a URL says, nothing is bound
    "::": ("127.0.0.1",),
    "::1": ("127.0.0.1",),
}

#: The address does not answer, so another name of this computer might.
UNREACHED = frozenset({Kind.REFUSED, Kind.CONNECT_TIMEOUT, Kind.UNROUTABLE, Kind.DNS})
#: Something answers, and it may be the path or the contract.
MISUNDERSTOOD = frozenset({
    Kind.REDIRECTED, Kind.ROUTE_NOT_FOUND, Kind.WRONG_CONTRACT, Kind.REJECTED, Kind.NOT_JSON, Kind.ERROR_IN_SUCCESS,
    Kind.WRONG_SHAPE, Kind.EMPTY,
})  # fmt: skip


@record
class Variant:
    """An endpoint with one thing changed, in words that finish the sentence “tried …”."""

    changed: str
    endpoint: Endpoint


def variants(endpoint: Endpoint, kind: Kind, *, proxied: bool = False) -> Iterator[Variant]:
    """What might help an endpoint whose call ended in ``kind``, the likeliest first."""
    if proxied and kind not in {Kind.AUTH, Kind.MODEL_NOT_FOUND}:
        yield Variant("without the proxy", replace(endpoint, environment=_without_proxies(endpoint)))
    if kind is Kind.CONFIG_CREDENTIAL and endpoint.key.strip() not in {"", endpoint.key}:
        yield Variant("the key without the white space around it", replace(endpoint, key=endpoint.key.strip()))
    parts = split(endpoint.url)
    if parts is None:
        return
    if kind is Kind.TLS and endpoint.mode == Mode.HTTP and parts.port and bare_url(endpoint.url) == endpoint.url:
        # nothing secret is in such a request, so it may be sent without encryption
        yield Variant("http in place of https", replace(endpoint, url=urlunsplit(parts._replace(scheme="http"))))
    if kind in UNREACHED:
        yield from _other_names(endpoint, parts)
    if kind in MISUNDERSTOOD:
        yield from _other_paths(endpoint, parts)
        yield from _other_contract(endpoint, parts)


def split(url: str) -> SplitResult | None:
    """The parts of a URL that has a host, else None."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.hostname else None


def root(path: str) -> str:
    """The part of a path before the known ending of an embedding route; empty for a server at the top."""
    bare = path.rstrip("/")
    for ending in _ENDINGS:
        if bare.endswith(ending):
            return bare.removesuffix(ending)
    return bare


def same_host(left: str, right: str) -> bool:
    """Whether two URLs go to one server: equal port, and one host or two names of this computer."""
    one, other = split(left), split(right)
    if one is None or other is None or _port(one) != _port(other):
        return False
    return one.hostname == other.hostname or (is_loopback(left) and is_loopback(right))


def with_name(url: str, host: str) -> str:
    """``url`` with another host of the same port, everything else kept."""
    parts = urlsplit(url)
    before, at, _ = parts.netloc.rpartition("@")
    port = "" if parts.port is None else f":{parts.port}"
    return urlunsplit(parts._replace(netloc=f"{before}{at}{host}{port}"))


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _without_proxies(endpoint: Endpoint) -> dict[str, str]:
    return {name: text for name, text in endpoint.environment.items() if not name.lower().endswith("_proxy")}


def _other_names(endpoint: Endpoint, parts: SplitResult) -> Iterator[Variant]:
    for host in _HOSTS.get(parts.hostname or "", ()):
        yield Variant(f"{host} in place of {parts.hostname}", replace(endpoint, url=with_name(endpoint.url, host)))


def _other_paths(endpoint: Endpoint, parts: SplitResult) -> Iterator[Variant]:
    path = parts.path

    def variant(changed: str, new: str) -> Variant:
        return Variant(changed, replace(endpoint, url=urlunsplit(parts._replace(path=new))))

    bare = path.rstrip("/")
    if bare != path and bare:
        yield variant("without the slash at the end", bare)
    single = re.sub(r"((?:/[^/]+)+)\1+", r"\1", bare)
    if single != bare:
        yield variant("without the doubled part of the path", single)
    if endpoint.mode == Mode.API:
        if not bare.endswith("/embeddings"):
            yield variant("with /embeddings at the end", f"{bare}/embeddings")
        if bare != f"{root(path)}/v1/embeddings":
            yield variant("with the path /v1/embeddings", f"{root(path)}/v1/embeddings")
    elif not bare.endswith(("/embed", "/embeddings", "/v1")):
        yield variant("with /embed at the end", f"{bare}/embed")


def _other_contract(endpoint: Endpoint, parts: SplitResult) -> Iterator[Variant]:
    """The other mode: at the path where that contract lives, and then, unless it is another product's, as it stands."""
    if endpoint.mode == Mode.API:
        other, path, what = Mode.HTTP, "/embed", "`texts` in place of `input` (mode http)"
    else:
        other, path, what = Mode.API, "/v1/embeddings", "`input` in place of `texts` (mode api)"
    changed = replace(endpoint, mode=other, key="")
    place = f"{root(parts.path)}{path}"
    there = urlunsplit(parts._replace(path=place))
    yield Variant(what if parts.path == place else f"{what} at {place}", replace(changed, url=there))
    if parts.path not in {place, f"{root(parts.path)}/api/embed"}:
        yield Variant(what, changed)
