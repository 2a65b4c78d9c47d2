"""From an exception to a kind: by classes, error numbers and TLS reasons along the whole chain, never by its words.

httpcore raises its own exceptions ``from None`` and httpx wraps them again, so the fact that matters (an errno, a
certificate's verdict) stands several links down: in the first argument, the cause, the context or a group's members.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import httpx

from cpersona_cli.embedding.kinds import Kind

T = TypeVar("T", bound=BaseException)

_UNROUTABLE = frozenset({
    errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EADDRNOTAVAIL, errno.ENETDOWN, errno.EPERM,
})  # fmt: skip
_CONFIGURATION = (httpx.UnsupportedProtocol, httpx.InvalidURL, OverflowError)


class DeadlineError(Exception):
    """Our own total deadline passed; ``phase`` says what was being waited for."""

    def __init__(self, phase: str) -> None:
        super().__init__(phase)
        self.phase = phase


@dataclass(frozen=True, slots=True)
class Failure:
    """The kind of an exception; ``detail`` is its class, with the number or reason that decided."""

    kind: Kind
    detail: str


def chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and everything linked to it, each once, nearest first."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(current.exceptions)
        first = current.args[0] if current.args else None
        linked = (first, current.__cause__, current.__context__)
        waiting.extend(link for link in linked if isinstance(link, BaseException))


def judge_exception(error: BaseException, *, proxied: bool = False, head_seen: bool = False) -> Failure:
    """The kind of ``error``. ``head_seen``: the response's head had arrived, so the address does speak HTTP. Total."""
    links = list(chain(error))
    for judge in (_ours, _configuration, _secure, _names, _timeouts, _connection):
        failure = judge(links, proxied=proxied, head_seen=head_seen)
        if failure is not None:
            return failure
    return Failure(Kind.INTERNAL, type(error).__name__)


def _ours(links: list[BaseException], **_: bool) -> Failure | None:
    late = _first(links, DeadlineError)
    if late is not None:
        return Failure(Kind.TIMEOUT, f"deadline while waiting for {late.phase}")
    if any(isinstance(link, UnicodeEncodeError) for link in links):
        return Failure(Kind.INPUT_INVALID, "UnicodeEncodeError")
    return None


def _configuration(links: list[BaseException], **_: bool) -> Failure | None:
    if any(isinstance(link, httpx.LocalProtocolError) for link in links):
        return Failure(Kind.CONFIG_CREDENTIAL, "LocalProtocolError")
    wrong = _first(links, *_CONFIGURATION)
    if wrong is not None:
        return Failure(Kind.CONFIG_URL, type(wrong).__name__)
    missing = _first(links, ImportError, FileNotFoundError)
    return None if missing is None else Failure(Kind.CONFIG_CLIENT, type(missing).__name__)


def _secure(links: list[BaseException], **_: bool) -> Failure | None:
    refused = _first(links, ssl.SSLError)
    if refused is None or isinstance(refused, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return None if refused is None else Failure(Kind.TLS, type(refused).__name__)
    verdict = getattr(refused, "verify_message", "") or refused.reason or type(refused).__name__
    return Failure(Kind.TLS, str(verdict))


def _names(links: list[BaseException], *, proxied: bool, **_: bool) -> Failure | None:
    unknown = _first(links, socket.gaierror)
    if unknown is None:
        return None
    return Failure(Kind.PROXY if proxied else Kind.DNS, f"gaierror {unknown.errno}")


def _timeouts(links: list[BaseException], *, proxied: bool, **_: bool) -> Failure | None:
    if any(isinstance(link, httpx.ConnectTimeout) for link in links):
        return Failure(Kind.PROXY if proxied else Kind.CONNECT_TIMEOUT, "ConnectTimeout")
    late = _first(links, httpx.TimeoutException, TimeoutError)
    if late is None:
        return None
    if isinstance(late, OSError) and late.errno == errno.ETIMEDOUT:
        return Failure(Kind.CONNECT_TIMEOUT, "ETIMEDOUT")
    return Failure(Kind.TIMEOUT, type(late).__name__)


def _connection(links: list[BaseException], *, proxied: bool, head_seen: bool) -> Failure | None:
    if any(isinstance(link, httpx.ProxyError) for link in links):
        return Failure(Kind.PROXY, "ProxyError")
    numbers = [link.errno for link in links if isinstance(link, OSError) and link.errno is not None]
    if any(isinstance(link, httpx.ConnectError) for link in links):
        return _connect(numbers, proxied=proxied)
    if any(isinstance(link, httpx.DecodingError) for link in links):
        return Failure(Kind.NOT_HTTP, "DecodingError")
    if any(isinstance(link, httpx.RemoteProtocolError) for link in links):
        return _protocol(links, head_seen=head_seen)
    broken = _first(links, httpx.NetworkError, ConnectionError)
    if broken is not None:
        name = errno.errorcode.get(numbers[0], "") if numbers else ""
        return Failure(Kind.DISCONNECTED, name or type(broken).__name__)
    return None


def _connect(numbers: list[int], *, proxied: bool) -> Failure:
    name = errno.errorcode.get(numbers[0], str(numbers[0])) if numbers else "ConnectError"
    if proxied:
        return Failure(Kind.PROXY, name)
    if errno.ECONNREFUSED in numbers:
        return Failure(Kind.REFUSED, "ECONNREFUSED")
    if _UNROUTABLE.intersection(numbers):
        return Failure(Kind.UNROUTABLE, name)
    if errno.ETIMEDOUT in numbers:
        return Failure(Kind.CONNECT_TIMEOUT, name)
    if errno.ECONNRESET in numbers:
        return Failure(Kind.DISCONNECTED, name)
    # anyio reports several failed addresses of one name as one OSError without a number; all of them refused or
    # unreachable comes to the same for the reader
    return Failure(Kind.REFUSED if not numbers else Kind.UNROUTABLE, name)


def _protocol(links: list[BaseException], *, head_seen: bool) -> Failure:
    # h11 stands in the chain when bytes arrived that break the protocol, or when they ended too early; a server that
    # closes without any byte is httpcore's own remark
    framing = any(type(link).__module__.startswith("h11") for link in links)
    if head_seen or not framing:
        return Failure(Kind.DISCONNECTED, "RemoteProtocolError")
    return Failure(Kind.NOT_HTTP, "RemoteProtocolError")


def _first(links: list[BaseException], *classes: type[T]) -> T | None:
    return next((link for link in links if isinstance(link, classes)), None)


def words(error: BaseException) -> str:
    """``str(error)``, or nothing where even that fails."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception's own text may be broken
        return ""
