"""Exceptions to kinds, along causes, contexts, arguments and groups, whatever their words say."""

from __future__ import annotations

import errno
import socket
import ssl

import h11
import httpx
import pytest

from cpersona_cli.embedding.failures import DeadlineError, Phase, chain, judge_exception, words
from cpersona_cli.embedding.kinds import Kind


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class ReadTimeoutOfSomebody(httpx.ReadTimeout):
    pass


def caused(outer: BaseException, inner: BaseException) -> BaseException:
    outer.__cause__ = inner
    return outer


def within(outer: BaseException, inner: BaseException) -> BaseException:
    outer.__context__ = inner
    return outer


def connect(number: int) -> BaseException:
    """As anyio and httpcore hand it on: an attempt that failed inside a group inside an error without a number."""
    attempts = caused(OSError("All connection attempts failed"), ExceptionGroup("several", [OSError(number, "x")]))
    return caused(httpx.ConnectError("All connection attempts failed"), RuntimeError(attempts))


def verdict() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


RESET = within(httpx.ReadError(""), ConnectionResetError(errno.ECONNRESET, "?"))
CUT = caused(httpx.RemoteProtocolError("?"), h11.RemoteProtocolError("peer closed connection"))
ILLEGAL = caused(httpx.RemoteProtocolError("?"), h11.RemoteProtocolError("illegal status line"))
FIRST, SHAKE, ANSWER, BODY = Phase.CONNECTION, Phase.HANDSHAKE, Phase.ANSWER, Phase.BODY


@pytest.mark.parametrize(
    ("error", "phase", "kind", "proxied"),
    [
        (connect(errno.ECONNREFUSED), FIRST, Kind.REFUSED, Kind.PROXY),
        (connect(errno.EHOSTUNREACH), FIRST, Kind.UNROUTABLE, Kind.PROXY),
        (connect(errno.ENETUNREACH), FIRST, Kind.UNROUTABLE, Kind.PROXY),
        (connect(errno.ETIMEDOUT), FIRST, Kind.CONNECT_TIMEOUT, Kind.PROXY),
        (httpx.ConnectError("?"), FIRST, Kind.UNROUTABLE, Kind.PROXY),
        (httpx.ConnectError("?"), SHAKE, Kind.TLS, Kind.TLS),
        (caused(httpx.ConnectError("?"), socket.gaierror(socket.EAI_NONAME, "?")), FIRST, Kind.DNS, Kind.PROXY),
        (caused(httpx.ConnectError("?"), socket.gaierror(socket.EAI_AGAIN, "?")), FIRST, Kind.RESOLVER, Kind.PROXY),
        (httpx.ConnectTimeout(""), FIRST, Kind.CONNECT_TIMEOUT, Kind.PROXY),
        (httpx.ConnectTimeout(""), SHAKE, Kind.TLS, Kind.TLS),
        (httpx.PoolTimeout(""), FIRST, Kind.TIMEOUT, Kind.TIMEOUT),
        (httpx.ReadTimeout(""), ANSWER, Kind.TIMEOUT, Kind.TIMEOUT),
        (httpx.WriteTimeout(""), ANSWER, Kind.TIMEOUT, Kind.TIMEOUT),
        (ReadTimeoutOfSomebody(""), BODY, Kind.TIMEOUT, Kind.TIMEOUT),
        (within(httpx.ReadError(""), TimeoutError(errno.ETIMEDOUT, "?")), BODY, Kind.TIMEOUT, Kind.TIMEOUT),
        (DeadlineError(), FIRST, Kind.CONNECT_TIMEOUT, Kind.PROXY),
        (DeadlineError(), SHAKE, Kind.TLS, Kind.TLS),
        (DeadlineError(), BODY, Kind.TIMEOUT, Kind.TIMEOUT),
        (caused(httpx.ConnectError("?"), verdict()), SHAKE, Kind.TLS, Kind.TLS),
        (caused(httpx.ConnectError("?"), ssl.SSLError(1, "?")), SHAKE, Kind.TLS, Kind.TLS),
        (caused(httpx.ConnectError("?"), ssl.SSLEOFError(8, "?")), SHAKE, Kind.TLS, Kind.TLS),
        (caused(httpx.ReadError("?"), ssl.SSLError(1, "?")), BODY, Kind.DISCONNECTED, Kind.DISCONNECTED),
        (httpx.ProxyError("?"), FIRST, Kind.PROXY, Kind.PROXY),
        (httpx.ReadError(""), ANSWER, Kind.DISCONNECTED, Kind.DISCONNECTED),
        (RESET, BODY, Kind.DISCONNECTED, Kind.DISCONNECTED),
        (BrokenPipeError(errno.EPIPE, "?"), ANSWER, Kind.DISCONNECTED, Kind.DISCONNECTED),
        (httpx.RemoteProtocolError("left"), ANSWER, Kind.DISCONNECTED, Kind.DISCONNECTED),
        (CUT, BODY, Kind.DISCONNECTED, Kind.DISCONNECTED),
        (ILLEGAL, ANSWER, Kind.NOT_HTTP, Kind.NOT_HTTP),
        (httpx.DecodingError("?"), BODY, Kind.NOT_HTTP, Kind.NOT_HTTP),
        (httpx.UnsupportedProtocol("?"), FIRST, Kind.CONFIG_URL, Kind.CONFIG_URL),
        (httpx.InvalidURL("?"), FIRST, Kind.CONFIG_URL, Kind.CONFIG_URL),
        (ExceptionGroup("one", [ExceptionGroup("two", [OverflowError()])]), FIRST, Kind.CONFIG_URL, Kind.CONFIG_URL),
        (UnicodeError("label too long"), FIRST, Kind.CONFIG_URL, Kind.CONFIG_URL),
        (caused(httpx.RemoteProtocolError("?"), httpx.InvalidURL("?")), ANSWER, Kind.NOT_HTTP, Kind.NOT_HTTP),
        (within(httpx.ReadError(""), OverflowError()), BODY, Kind.DISCONNECTED, Kind.DISCONNECTED),
        (httpx.LocalProtocolError("?"), ANSWER, Kind.CONFIG_CREDENTIAL, Kind.CONFIG_CREDENTIAL),
        (ImportError("?"), FIRST, Kind.CONFIG_CLIENT, Kind.CONFIG_CLIENT),
        (FileNotFoundError(errno.ENOENT, "?"), FIRST, Kind.CONFIG_CLIENT, Kind.CONFIG_CLIENT),
        (ZeroDivisionError(), FIRST, Kind.INTERNAL, Kind.INTERNAL),
        (UnspeakableError(), BODY, Kind.INTERNAL, Kind.INTERNAL),
        (RuntimeError(RuntimeError(RuntimeError(httpx.ReadTimeout("")))), ANSWER, Kind.TIMEOUT, Kind.TIMEOUT),
        (within(UnspeakableError(), httpx.ReadTimeout("")), ANSWER, Kind.TIMEOUT, Kind.TIMEOUT),
    ],
)  # fmt: skip
def test_kind(error: BaseException, phase: Phase, kind: Kind, proxied: Kind) -> None:
    failure = judge_exception(error, phase=phase)
    assert failure.kind is kind
    assert failure.detail
    assert judge_exception(error, phase=phase, proxied=True).kind is proxied


def test_the_detail_is_the_fact_that_decided() -> None:
    assert judge_exception(connect(errno.EHOSTUNREACH)).detail == "EHOSTUNREACH"
    assert judge_exception(caused(httpx.ConnectError("?"), verdict())).detail == "self-signed certificate"
    assert judge_exception(ConnectionResetError(errno.ECONNRESET, "?")).detail == "ECONNRESET"
    assert judge_exception(OSError(99999, "?")).kind is Kind.INTERNAL
    assert judge_exception(caused(httpx.ConnectError("?"), OSError(99999, "?"))).detail == "99999"


def test_a_chain_that_bites_its_tail() -> None:
    first, second = ValueError(), ValueError()
    first.__context__, second.__context__ = second, first
    assert list(chain(first)) == [first, second]


def test_words_that_cannot_be_said() -> None:
    assert words(UnspeakableError()) == ""
    assert words(ValueError("said")) == "said"
