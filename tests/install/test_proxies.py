"""The proxy rule against httpx itself, in an environment that holds nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_cli.install.proxies import Proxy, ProxyError, exceptions, is_loopback, proxy_for, variables

PROXY = "http://proxy.example:3128"

URLS = (
    "http://127.0.0.1:8401/embed",
    "http://127.0.0.2:8401/embed",
    "http://localhost:8401/embed",
    "http://LOCALHOST/embed",
    "http://[::1]:8401/embed",
    "http://embed.lan:8401/embed",
    "http://embed.lan/embed",
    "https://api.openai.com/v1/embeddings",
    "https://api.openai.com:443/v1/embeddings",
    "http://192.168.1.20:8401/embed",
    "http://user:word@embed.lan:80/embed",
    "http://bücher.example/embed",
)

NO_PROXY = (
    "",
    "*",
    "localhost",
    "127.0.0.1",
    "127.0.0.0/8",
    "127.0.0.1/32",
    "192.168.0.0/16",
    "::1",
    "::1/128",
    "[::1]",
    "lan",
    ".lan",
    "embed.lan",
    "EMBED.LAN",
    "*.lan",
    "embed.lan:8401",
    "embed.lan:80",
    "localhost:8401",
    "127.0.0.1:8401",
    "http://embed.lan",
    "https://embed.lan",
    "all://embed.lan:8401",
    " localhost , 127.0.0.1 ",
    "localhost,127.0.0.1,::1",
    "localhost,*",
    "openai.com",
    "pi.openai.com",
    "api.openai.com:443",
    "embed.lan:port",
    "a b",
    "bücher.example",
    "999.1.1.1",
    "x/y",
    "<local>",
    ",,",
)

ENVIRONMENTS: tuple[Mapping[str, str], ...] = (
    {},
    {"HTTP_PROXY": PROXY},
    {"http_proxy": "proxy.example:3128"},
    {"HTTPS_PROXY": PROXY},
    {"ALL_PROXY": PROXY},
    {"Http_Proxy": PROXY, "all_proxy": "http://other.example"},
    {"HTTP_PROXY": PROXY, "http_proxy": ""},
    {"HTTP_PROXY": PROXY, "http_proxy": "http://small.example"},
    {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"},
    {"HTTP_PROXY": "ftp://proxy.example"},
    {"HTTP_PROXY": "http://proxy.example:port"},
    {"HTTP_PROXY": "http://[::1"},
    {"NPM_PROXY": "nonsense://"},
)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name == "REQUEST_METHOD":
            monkeypatch.delenv(name)
    return monkeypatch


def theirs() -> Callable[[str], str]:
    """What httpx does in the present environment: for a URL ``refuses``, ``direct``, or the proxy's URL."""
    try:
        # Without verification no certificates are loaded, which is all the time this takes.
        client = httpx.Client(verify=False)
    except (ValueError, httpx.InvalidURL):
        return lambda _: "refuses"
    client.close()

    def choice(url: str) -> str:
        for pattern, transport in client._mounts.items():
            if pattern.matches(httpx.URL(url)):
                pool = getattr(transport, "_pool", None)
                return "direct" if pool is None else str(httpx.URL(bytes(pool._proxy_url).decode()))
        return "direct"

    return choice


def ours(url: str, environment: Mapping[str, str]) -> str:
    try:
        proxy = proxy_for(url, environment)
    except ProxyError:
        return "refuses"
    return "direct" if proxy is None else str(httpx.URL(proxy.url).copy_with(path="/"))


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=str)
def test_the_same_choice_as_httpx(environment: Mapping[str, str], bare: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        bare.setenv(name, value)
    for hosts in NO_PROXY:
        bare.setenv("NO_PROXY", hosts)
        choice = theirs()
        for url in URLS:
            assert ours(url, {**environment, "NO_PROXY": hosts}) == choice(url), (hosts, url)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text("al.*:/[]1 0-localhost", max_size=12), max_size=3))
def test_the_same_choice_for_any_no_proxy(parts: list[str]) -> None:
    hosts = ",".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.lower().endswith("_proxy"):
                patch.delenv(name)
        patch.setenv("HTTP_PROXY", PROXY)
        patch.setenv("NO_PROXY", hosts)
        choice = theirs()
        for url in ("http://127.0.0.1:8401/embed", "http://localhost/", "http://a.local:1/"):
            assert ours(url, {"HTTP_PROXY": PROXY, "NO_PROXY": hosts}) == choice(url), (hosts, url)


def test_a_socks_proxy_keeps_the_client_from_being_created_without_its_package(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("ALL_PROXY", "socks5://proxy.example:1080")
    bare.setenv("NO_PROXY", "127.0.0.1")
    try:
        import socksio  # type: ignore[import-not-found, unused-ignore]  # noqa: F401, PLC0415
    except ImportError:
        with pytest.raises(ImportError, match="socksio"):
            httpx.Client()
    assert variables(os.environ)["all"] == Proxy("ALL_PROXY", "socks5://proxy.example:1080")


def test_a_url_that_cannot_be_parsed_has_no_proxy() -> None:
    assert proxy_for("http://h:84O1/embed", {"HTTP_PROXY": PROXY}) is None
    assert proxy_for("http://h/em\nbed", {"HTTP_PROXY": PROXY}) is None


def test_the_error_names_the_variable_and_the_piece() -> None:
    with pytest.raises(ProxyError) as caught:
        proxy_for("http://h/", {"no_proxy": "localhost,[::1]"})
    assert (caught.value.name, caught.value.part) == ("no_proxy", "[::1]")


def test_exceptions_are_the_hosts_as_written() -> None:
    assert exceptions({"NO_PROXY": " a ,, B "}) == ("a", "B")
    assert exceptions({}) == ()
    assert Proxy("ALL_PROXY", "SOCKS5://h").scheme == "socks5"


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("http://localhost:8401/embed", True),
        ("http://embed.localhost/", True),
        ("http://127.8.9.1/", True),
        ("http://[::1]:8401/", True),
        ("http://0.0.0.0:8401/", True),
        ("http://localhost./", True),
        (" http://127.0.0.1/ ", True),
        ("http://10.0.0.1/", False),
        ("http://localhost.example/", False),
        ("http://[::1", False),
        ("", False),
    ],
)
def test_loopback(url: str, near: bool) -> None:
    assert is_loopback(url) is near
