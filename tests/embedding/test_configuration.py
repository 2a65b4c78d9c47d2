"""What is said of an endpoint before anything is sent."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping
from types import ModuleType

import pytest

from cpersona_cli.embedding.configuration import (
    Objection,
    _proxy_crash,
    better_url,
    key_objection,
    objection,
    proxy_of,
    sendable,
)
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.install.proxies import ProxyError

KEY = "sk-test-1234567890"


def judged(url: str = "http://127.0.0.1:8401/embed", **more: object) -> Objection | None:
    return objection(Endpoint(**{"mode": "http", "url": url, **more}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8401/embed", "https://host.invalid/v1/embeddings", "HTTP://h/", "http://[::1]:1/", "ws://h/",
        "http://user:word@h/embed?key=x", "http://127.0.0.1:8401/embed ", "http://0.0.0.0:1/", "http://h:65535/",
        "http://h/a b", "http://ex\u00e4mple.invalid/",
    ],
)  # fmt: skip
def test_what_can_be_sent_is_sent(url: str) -> None:
    assert judged(url) is None
    assert judged(url, mode="api", key=KEY) is None
    assert judged(url, mode="api") is None


@pytest.mark.parametrize(
    ("url", "says", "better"),
    [
        ("", "no URL", ""),
        ("127.0.0.1:8401/embed", "scheme", "http://127.0.0.1:8401/embed"),
        ("localhost:8401/embed", "scheme", "http://localhost:8401/embed"),
        ("embed.invalid", "scheme", "http://embed.invalid"),
        ("[::1]:8401/embed", "scheme", "http://[::1]:8401/embed"),
        ("http:/127.0.0.1:8401/embed", "host", "http://127.0.0.1:8401/embed"),
        ("http:127.0.0.1:8401/embed", "host", "http://127.0.0.1:8401/embed"),
        ("HTTPS:///h/embed", "host", "HTTPS://h/embed"),
        (" http://127.0.0.1:1/", "space", "http://127.0.0.1:1/"),
        ('"http://127.0.0.1:1/"', "quotation mark", "http://127.0.0.1:1/"),
        ("'http://127.0.0.1:1/'\n", "cannot be read", "http://127.0.0.1:1/"),
        ("http://127.0.0.1:1/\r\n", "cannot be read", "http://127.0.0.1:1/"),
        ("http://127.0.0.1:84o1/embed", "port", ""),
        ("http://127.0.0.1:65536/", "port", ""),
        ("http://127.0.0.1:0/", "port", ""),
        ("ftp://h/", "scheme", ""),
        ("http://", "host", ""),
        ("http://xn--.invalid/", "host", ""),
        ("h\u00e4?", "scheme", ""),
    ],
)
def test_addresses(url: str, says: str, better: str) -> None:
    wrong = judged(url)
    assert wrong is not None
    assert wrong.kind is Kind.CONFIG_URL
    assert says in wrong.detail
    assert wrong.suggestion == better
    # nothing of the address itself
    assert "127.0.0.1" not in repr(wrong)


def test_a_good_address_needs_no_better_one() -> None:
    assert better_url("http://127.0.0.1:1/") == ""


@pytest.mark.parametrize("mode", ["HTTP", "Api", "", "openai", " http", "http\n"])
def test_modes(mode: str) -> None:
    wrong = judged(mode=mode)
    assert wrong is not None
    assert wrong.kind is Kind.CONFIG_MODE


def test_no_mode_comes_before_everything() -> None:
    wrong = judged("", mode=Mode.NONE, timeout=-1)
    assert wrong is not None
    assert wrong.kind is Kind.DISABLED


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("", ""), ("k", ""), ("two words", ""), (" k", ""), ("k\tk", ""), ("k\x01", ""), ("k\x7f", ""),
        ("ключ", "not ASCII"), ("k\ud800", "not ASCII"), ("k ", "space"), (" ", "space"), ("k\t", "space"),
        ("k\n", "line end"), ("k\r\nX: y", "line end"), ("k\0", "line end"), ("k\vk", "line end"), ("\f", "line end"),
    ],
)  # fmt: skip
def test_keys(key: str, says: str) -> None:
    assert says in key_objection(key)
    assert bool(says) == bool(key_objection(key))
    if key.isascii() and key:
        assert sendable(key) == (not says)
    wrong = judged(mode="api", key=key)
    assert (wrong.kind if wrong else None) is (Kind.CONFIG_CREDENTIAL if says else None)
    # mode http sends no key
    assert judged(key=key) is None


@pytest.mark.parametrize("timeout", [0, 0.0, -1, -0.5, float("nan")])
def test_timeouts(timeout: float) -> None:
    wrong = judged(timeout=timeout)
    assert wrong is not None
    assert wrong.kind is Kind.CONFIG_CLIENT
    assert "timeout" in wrong.detail


def test_a_model_that_is_no_text() -> None:
    wrong = judged(mode="api", key=KEY, model="\udcff")
    assert wrong is not None
    assert wrong.kind is Kind.CONFIG_CLIENT
    assert judged(model="\udcff") is None


@pytest.mark.parametrize(
    ("environment", "says", "crash"),
    [
        ({"HTTP_PROXY": "gopher://user:password@h"}, "HTTP_PROXY", "ValueError"),
        ({"http_proxy": "http://h:port"}, "http_proxy", "InvalidURL"),
        ({"ALL_PROXY": "socks5://h:1"}, "socksio", "ImportError"),
        ({"HTTP_PROXY": "http://h:1", "NO_PROXY": "\u00f6"}, "NO_PROXY", "InvalidURL"),
    ],
)
def test_proxies(environment: Mapping[str, str], says: str, crash: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    wrong = judged(environment=environment)
    assert wrong is not None
    assert wrong.kind is Kind.CONFIG_CLIENT
    assert says in wrong.detail
    assert wrong.crash == crash
    assert "password" not in repr(wrong)


def test_a_proxy_that_only_we_cannot_read() -> None:
    assert _proxy_crash(ProxyError("HTTP_PROXY", "http://h:1", "?")) == "InvalidURL"


def test_socks_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", ModuleType("socksio"))
    assert judged(environment={"ALL_PROXY": "socks5://h:1"}) is None


def test_the_proxy_of_an_endpoint_comes_from_its_own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://elsewhere.invalid:1")
    assert proxy_of(Endpoint(mode="http", url="http://h/")) is None
    found = proxy_of(Endpoint(mode="http", url="http://h/", environment={"HTTP_PROXY": "h2:3128"}))
    assert found is not None
    assert (found.name, found.url) == ("HTTP_PROXY", "http://h2:3128")


def test_nothing_but_socksio_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = builtins.__import__

    def spy(name: str, *rest: object, **more: object) -> ModuleType:
        asked.append(name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", spy)
    judged(environment={"HTTP_PROXY": "http://h:1"})
    assert "socksio" not in asked
