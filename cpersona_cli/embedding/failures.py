"""From an exception to a kind: by classes, error numbers and TLS reasons along the whole chain, never by its words.

httpcore raises its own exceptions ``from None`` and httpx wraps them again, so the fact that matters (an errno, a
certificate's verdict) stands several links down: in the first argument, the cause, the context or a group's members.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from enum import StrEnum
from typing import TypeVar

import httpx

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.record import record

T = TypeVar("T", bound=BaseException)

_CONFIGURATION = (httpx.UnsupportedProtocol, httpx.InvalidURL, OverflowError, UnicodeError)


class Phase(StrEnum):
    """What a call waits for."""

    CONNECTION = "a connection"
    HANDSHAKE = "a secure connection"
    ANSWER = "an answer"
    BODY = "the rest of the body"


class DeadlineError(Exception):
    """Our own total deadline passed."""


@record
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


@record
class _Where:
    """What is known beside the exception itself."""

    phase: Phase
    proxied: bool


def judge_exception(error: BaseException, *, phase: Phase = Phase.CONNECTION, proxied: bool = False) -> Failure:
    """The kind of ``error`` that ended a call in ``phase``. Total."""
    links = list(chain(error))
    where = _Where(phase, proxied)
    for judge in (_configuration, _late, _secure, _names, _timeouts, _connection):
        failure = judge(links, where)
        if failure is not None:
            return failure
    return Failure(Kind.INTERNAL, type(error).__name__)


def _late(links: list[BaseException], where: _Where) -> Failure | None:
    return _overdue(where, "deadline") if _first(links, DeadlineError) else None


def _overdue(where: _Where, detail: str) -> Failure:
    """Time ran out: what that means depends on how far the call had come."""
    if where.phase is Phase.CONNECTION:
        return Failure(Kind.PROXY if where.proxied else Kind.CONNECT_TIMEOUT, detail)
    return Failure(Kind.TLS if where.phase is Phase.HANDSHAKE else Kind.TIMEOUT, detail)


def _configuration(links: list[BaseException], where: _Where) -> Failure | None:
    if any(isinstance(link, httpx.LocalProtocolError) for link in links):
        return Failure(Kind.CONFIG_CREDENTIAL, "LocalProtocolError")
    if where.phase is Phase.BODY:
        return None
    wrong = _first(links, *_CONFIGURATION)
    if wrong is not None and where.phase is Phase.ANSWER:
        # our own address was good enough to be called: the reply names another one, which is none
        return Failure(Kind.NOT_HTTP, type(wrong).__name__)
    if wrong is not None:
        return Failure(Kind.CONFIG_URL, type(wrong).__name__)
    missing = _first(links, ImportError, FileNotFoundError)
    return None if missing is None else Failure(Kind.CONFIG_CLIENT, type(missing).__name__)


def _secure(links: list[BaseException], where: _Where) -> Failure | None:
    refused = _first(links, ssl.SSLError)
    if refused is None:
        return None
    if where.phase in {Phase.ANSWER, Phase.BODY} and not isinstance(refused, ssl.SSLCertVerificationError):
        # the secure connection stood already, and broke
        return Failure(Kind.DISCONNECTED, type(refused).__name__)
    verdict = getattr(refused, "verify_message", "") or getattr(refused, "reason", "") or type(refused).__name__
    return Failure(Kind.TLS, str(verdict))


def _names(links: list[BaseException], where: _Where) -> Failure | None:
    unknown = _first(links, socket.gaierror)
    if unknown is None:
        return None
    detail = f"gaierror {unknown.errno}"
    if where.proxied:
        return Failure(Kind.PROXY, detail)
    return Failure(Kind.RESOLVER if unknown.errno == socket.EAI_AGAIN else Kind.DNS, detail)


def _timeouts(links: list[BaseException], where: _Where) -> Failure | None:
    late = _first(links, httpx.TimeoutException, TimeoutError)
    if late is None:
        return None
    if isinstance(late, httpx.PoolTimeout):
        return Failure(Kind.TIMEOUT, "PoolTimeout")
    if isinstance(late, httpx.ConnectTimeout) and where.phase is not Phase.HANDSHAKE:
        return Failure(Kind.PROXY if where.proxied else Kind.CONNECT_TIMEOUT, "ConnectTimeout")
    return _overdue(where, "ETIMEDOUT" if getattr(late, "errno", None) == errno.ETIMEDOUT else type(late).__name__)


def _connection(links: list[BaseException], where: _Where) -> Failure | None:
    if any(isinstance(link, httpx.ProxyError) for link in links):
        return Failure(Kind.PROXY, "ProxyError")
    numbers = [link.errno for link in links if isinstance(link, OSError) and link.errno is not None]
    if any(isinstance(link, httpx.ConnectError) for link in links):
        return _connect(numbers, where)
    if any(isinstance(link, httpx.DecodingError) for link in links):
        return Failure(Kind.NOT_HTTP, "DecodingError")
    if any(isinstance(link, httpx.RemoteProtocolError) for link in links):
        return _protocol(links)
    broken = _first(links, httpx.NetworkError, ConnectionError)
    if broken is not None:
        name = errno.errorcode.get(numbers[0], "") if numbers else ""
        return Failure(Kind.DISCONNECTED, name or type(broken).__name__)
    return None


def _connect(numbers: list[int], where: _Where) -> Failure:
    name = errno.errorcode.get(numbers[0], str(numbers[0])) if numbers else "ConnectError"
    if where.phase is Phase.HANDSHAKE:
        return Failure(Kind.TLS, name)
    if where.proxied:
        return Failure(Kind.PROXY, name)
    if errno.ECONNREFUSED in numbers:
        return Failure(Kind.REFUSED, "ECONNREFUSED")
    return Failure(Kind.UNROUTABLE, name)


def _protocol(links: list[BaseException]) -> Failure:
    # h11 stands in the chain when bytes broke the protocol, or when a body ended too early, which only its text tells
    # apart; a server that closes without any byte is httpcore's own remark
    framing = [link for link in links if type(link).__module__.startswith("h11")]
    if not framing or any("closed connection" in words(link) for link in framing):
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
