"""Addresses of embedding endpoints, taken apart; and why the server's HTTP client would refuse one."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit, urlunsplit

from cpersona_cli.install.settings.effective import Effective
from cpersona_cli.record import record, replace
from cpersona_cli.text import bare_url, safe
from cpersona_cli.traps.model import Facts, Repair
from cpersona_cli.traps.names import API_URL, URL, mode
from cpersona_cli.traps.repairs import set_variable
from cpersona_cli.traps.subject import server, written

#: A longer address is refused by the client library (characters).
LONGEST = 65536

#: The port of the reference embedding server.
REFERENCE_PORT = 8401

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DOTTED = re.compile(r"\d+\.\d+\.\d+\.\d+")


@record
class Address:
    """An address that was written for the mode in force, taken apart."""

    setting: Effective
    text: str
    parts: SplitResult

    @property
    def host(self) -> str:
        return self.parts.hostname or ""

    @property
    def port(self) -> int | None:
        return self.parts.port

    @property
    def path(self) -> str:
        return self.parts.path

    @property
    def shown(self) -> str:
        return f"{self.setting.name}={safe(bare_url(self.text), 120)}"

    def with_path(self, path: str) -> str:
        """The same endpoint with another path; user, password and query are left out, as they may be secret."""
        return bare_url(urlunsplit(self.parts._replace(path=path)))


def used(facts: Facts) -> Effective | None:
    """The address the mode in force reads, when somebody wrote one."""
    server(facts)  # skips what is started elsewhere
    name = {"http": URL, "api": API_URL}.get(mode(facts))
    return written(facts, name) if name else None


def address(facts: Facts) -> Address | None:
    """The address in use when it can be used at all; what is wrong with others is a finding of its own."""
    found = used(facts)
    if found is None or unusable(str(found.text)) or port_too_large(str(found.text)):
        return None
    return Address(found, str(found.text), urlsplit(str(found.text)))


def unusable(url: str) -> str:
    """Why the server's HTTP client refuses ``url`` before anything is sent; empty when it would try.

    Measured against httpx, which the server uses: it does not strip, needs http:// or https:// and a host, refuses
    control characters, ports that are not numbers, and names that are no host names.
    """
    if len(url) > LONGEST:
        return f"is {len(url)} characters long"
    if match := _CONTROL.search(url):
        return f"contains the control character {match.group()!a}"
    if url != url.strip():
        return "begins or ends with a space" if url.isascii() else "begins or ends with an invisible character"
    if url[0] in "\"'`“”" or url[-1] in "\"'`“”":
        return "contains quotation marks"
    if any(0xD800 <= ord(c) <= 0xDFFF for c in url):
        return "is not valid text"
    if not re.match(r"https?://", url, re.IGNORECASE):
        return "does not begin with http:// or https://"
    return _unusable_host(url)


def _unusable_host(url: str) -> str:
    authority = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0].rpartition("@")[2]
    if authority.startswith("["):
        host, closed, rest = authority[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            return "has an IPv6 address without its closing bracket"
        port = rest[1:]
        if not _is_ip(host.partition("%")[0]):
            return "has brackets around something that is no IPv6 address"
    else:
        host, _, port = authority.partition(":")
    if not host:
        return "names no host"
    if port and not re.fullmatch(r"[+-]?\d+", port):
        return f"has a port that is not a number (“{safe(port, 20)}”)"
    if host.isascii() and re.search(r"[\s\"<>\\^`{|}$]", host):
        return "names a host with characters that no host name has"
    if _DOTTED.fullmatch(host) and not _is_ip(host):
        return "names an IPv4 address that does not exist"
    if not host.isascii() and any(c.isspace() or not c.isprintable() for c in host):
        return "names a host with an invisible character"
    return ""


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def port_too_large(url: str) -> bool:
    """Whether the port is a number that no port has."""
    if unusable(url):
        return False
    try:
        urlsplit(url).port  # noqa: B018 - reading it is the check
    except ValueError:
        return True
    return False


def loopback(host: str) -> bool:
    """Whether ``host`` is this machine itself, or a container on it by its usual names."""
    if host in {"localhost", "host.docker.internal"}:
        return True
    return _is_ip(host) and ip_address(host).is_loopback


def private(host: str) -> bool:
    """Whether ``host`` is this machine or stands in a private network, so no public service."""
    if _is_ip(host):
        return ip_address(host).is_private
    return "." not in host or host.endswith((".local", ".lan", ".internal", ".home.arpa"))


def set_path(facts: Facts, endpoint: Address, path: str) -> Repair:
    """The same address with another path."""
    return set_address(facts, endpoint.setting, endpoint.with_path(path))


def set_address(facts: Facts, setting: Effective, value: str) -> Repair:
    """Write an address anew; a user name, password or query, which is not shown, is to be kept by hand."""
    repair = set_variable(facts.target.registration, setting.name, value, at=setting.place)
    if bare_url(str(setting.text)) == setting.text:
        return repair
    return replace(repair, prose=f"{repair.prose} (keep a user name and what follows “?” as they are)")
