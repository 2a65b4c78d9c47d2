"""Proxy variables that come between the server and its embedding endpoint, or keep the server from starting."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from cpersona_cli.install.model import Place
from cpersona_cli.install.proxies import Proxy, ProxyError, exceptions, is_loopback, proxy_for, variables
from cpersona_cli.text import bare_url, safe
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Target, Trap
from cpersona_cli.traps.network import endpoint
from cpersona_cli.traps.repairs import remove_variable, set_variable
from cpersona_cli.traps.subject import server

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


def _environment(target: Target) -> Mapping[str, str]:
    return {name: value.text for name, value in target.environment.values.items()}


def _place(target: Target, name: str) -> Place:
    value = target.environment.values.get(name)
    return value.place if value is not None else target.registration.place


def _shown(url: str) -> str:
    return safe(bare_url(url), 120)


def _embeds(target: Target) -> bool:
    """Whether the server creates the HTTP client at all: it does so in both modes that embed, whatever the URL."""
    return target.settings["CPERSONA_EMBEDDING_MODE"].value in {"http", "api"}


def _in_the_way(facts: Facts) -> tuple[str, Proxy, Mapping[str, str]] | None:
    """The URL and the proxy that a request to it would take, where the client can be created."""
    target = server(facts)
    setting = endpoint(target)
    if setting is None:
        return None
    environment = _environment(target)
    try:
        proxy = proxy_for(str(setting.value), environment)
    except ProxyError:
        return None  # the server does not even start; network.proxy-unusable says so
    return None if proxy is None else (str(setting.value), proxy, environment)


def _meant_to_be_direct(url: str, environment: Mapping[str, str]) -> str:
    """The entry of NO_PROXY that was written for this URL and does not work for it, or an empty string."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    for part in exceptions(environment):
        if is_loopback(url) and part.strip("[]").lower() in {*_LOCAL_NAMES, "<local>"}:
            return part
        try:
            if "/" in part and ipaddress.ip_address(host) in ipaddress.ip_network(part, strict=False):
                return part
        except ValueError:
            continue
    return ""


def _all_names(environment: Mapping[str, str], host: str) -> str:
    kept = [part for part in exceptions(environment) if "/" not in part and not part.startswith("[")]
    return ",".join(dict.fromkeys((*kept, *_LOCAL_NAMES, host)))


def _direct(facts: Facts, url: str, environment: Mapping[str, str]) -> Repair:
    known = variables(environment).get("no")
    name = "NO_PROXY" if known is None else known.name
    host = urlsplit(url).hostname or "127.0.0.1"
    value = facts.target.environment.values.get(name)
    own = value is not None and value.place.file == facts.target.registration.place.file
    at = value.place if value is not None and own else None
    return set_variable(facts.target.registration, name, _all_names(environment, host), at=at)


def _takes_loopback(facts: Facts) -> Iterator[Finding]:
    found = _in_the_way(facts)
    if found is None or not is_loopback(found[0]) or _meant_to_be_direct(found[0], found[2]):
        return
    url, proxy, environment = found
    yield Finding(
        about=proxy.name,
        place=_place(facts.target, proxy.name),
        measured=f"{proxy.name}={_shown(proxy.url)} is in force for {_shown(url)}",
        repair=_direct(facts, url, environment),
    )


def _misses(facts: Facts) -> Iterator[Finding]:
    found = _in_the_way(facts)
    part = "" if found is None else _meant_to_be_direct(found[0], found[2])
    if found is None or not part:
        return
    url, proxy, environment = found
    name = variables(environment)["no"].name
    why = "address ranges are not honoured" if "/" in part else "each name counts only for itself"
    yield Finding(
        about=name,
        place=_place(facts.target, name),
        measured=f"{name} lists {safe(part, 60)}, which does not cover {_shown(url)} ({why}); "
        f"{proxy.name}={_shown(proxy.url)} takes the request",
        repair=_direct(facts, url, environment),
    )


def _socks(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    if not _embeds(target) or "socksio" in target.version.packages:
        return
    environment = _environment(target)
    if "*" in exceptions(environment):
        return
    for scheme, proxy in variables(environment).items():
        if scheme != "no" and proxy.scheme in {"socks5", "socks5h"}:
            yield Finding(
                about=proxy.name,
                place=_place(target, proxy.name),
                measured=f"{proxy.name}={_shown(proxy.url)}",
                repair=_without(facts, proxy.name),
            )


def _without(facts: Facts, name: str) -> Repair:
    """Switch a proxy variable off for this server alone: an empty small-letter variable outranks the capital one."""
    value = facts.target.environment.values.get(name)
    registration = facts.target.registration
    if value is not None and value.place.file is not None and value.place.file == registration.place.file:
        return remove_variable(registration, name, at=value.place)
    return set_variable(registration, name.lower(), "")


def _unusable(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    if not _embeds(target):
        return
    environment = _environment(target)
    try:
        proxy_for("http://127.0.0.1/", environment)
    except ProxyError as error:
        if error.name.lower() == "no_proxy":
            fixed = ",".join(part.strip("[]") if part == error.part else part for part in exceptions(environment))
            value = target.environment.values.get(error.name)
            own = value is not None and value.place.file == target.registration.place.file
            repair = set_variable(
                target.registration, error.name, fixed, at=value.place if value is not None and own else None
            )
        else:
            repair = _without(facts, error.name)
        yield Finding(
            about=error.name,
            place=_place(target, error.name),
            measured=f"{error.name} holds {_shown(error.part) if '//' in error.part else safe(error.part, 60)}",
            repair=repair,
        )


TRAPS = (
    Trap(
        id="network.proxy-takes-loopback",
        title="A proxy takes the requests to an embedding server on this computer",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_takes_loopback,
        expected="NO_PROXY lists localhost, 127.0.0.1 and ::1",
        costs="the proxy answers 403 or 502 for an address that is its own computer to it; a test with curl may "
        "still work, because curl reads these variables by other rules",
        repair="list localhost, 127.0.0.1 and ::1 in NO_PROXY",
        source="measured on 2.6.14 with httpx 0.28",
        rows=("B12",),
    ),
    Trap(
        id="network.no-proxy-misses",
        title="NO_PROXY was written for the endpoint and does not cover it",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_misses,
        expected="NO_PROXY holds the host exactly as the URL spells it",
        costs="requests still go to the proxy, which cannot reach this address",
        repair="add the host as the URL spells it; ranges such as 127.0.0.0/8 do nothing",
        source="measured on 2.6.14 with httpx 0.28",
        rows=("B13",),
    ),
    Trap(
        id="network.socks-proxy",
        title="A SOCKS proxy variable keeps the server from starting",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_socks,
        expected="no SOCKS proxy, or the socksio package beside the server",
        costs="the server's HTTP client raises ImportError as it is created, even where NO_PROXY covers the endpoint",
        repair="switch the variable off for the server, or install httpx[socks] beside it",
        source="measured on 2.6.14 with httpx 0.28",
        rows=("B14",),
    ),
    Trap(
        id="network.proxy-unusable",
        title="A proxy variable the server's HTTP client cannot parse",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_unusable,
        expected="proxy URLs with http, https or socks5; IPv6 addresses in NO_PROXY without brackets",
        costs="the server's HTTP client raises an error as it is created, and the server does not start",
        repair="write ::1 in place of [::1], and http:// before the proxy's name",
        source="measured on 2.6.14 with httpx 0.28",
        rows=("B15",),
    ),
)
