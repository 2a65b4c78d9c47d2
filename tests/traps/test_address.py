"""The judgement of addresses, against the HTTP client the server uses."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_cli.traps.address import loopback, port_too_large, private, unusable

PIECES = st.lists(
    st.sampled_from(
        [
            *("http", "https", ":", "/", "//", "://", "h", "127.0.0.1", "256.1.1.1", "[::1]", "[", "]", "@", "u:p@"),
            *(":8401", ":99999", ":x", "?a=b", "#f", "/embed", " ", "\n", "\t", '"', "'", "é", "$", "{x}", "%41"),
            "\ud800",
        ]
    ),
    max_size=8,
).map("".join)


class Nowhere(httpx.BaseTransport):
    """What the connection pool checks, and then no network."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.scheme not in {"http", "https"} or not request.url.host:
            raise httpx.UnsupportedProtocol("")
        return httpx.Response(200, json={})


CLIENT = httpx.Client(transport=Nowhere(), trust_env=False)


def refused(url: str) -> bool:
    """Whether the client refuses ``url`` before it looks for the host."""
    try:
        CLIENT.post(url, json={})
    except (httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeEncodeError):
        return True
    return False


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8401/embed",
        "https://bücher.example/embed",
        "HTTP://h/embed",
        "http://[::1]:8401/embed",
        "http://[fe80::1%25eth0]/embed",
        "http://u:p@ss@h:1/embed",
        "http://h:/embed?a b",
    ],
)
def test_what_the_client_takes_is_not_called_unusable(url: str) -> None:
    assert not refused(url)
    assert unusable(url) == ""


@settings(deadline=None, max_examples=300)
@given(PIECES.filter(bool))
def test_what_the_client_refuses_is_never_called_usable(url: str) -> None:
    if refused(url):
        assert unusable(url) or port_too_large(url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h:65535/embed", False),
        ("http://h:65536/embed", True),
        ("http://h:-1/embed", True),
        ("http://h/embed", False),
        ("h:99999", False),
    ],
)
def test_ports(url: str, expected: bool) -> None:
    assert port_too_large(url) is expected


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.3.2.1", "::1", "host.docker.internal"])
def test_this_machine_is_private(host: str) -> None:
    assert loopback(host)
    assert private(host)


@pytest.mark.parametrize("host", ["10.0.0.7", "192.168.1.2", "gpu-box", "gpu.local", "gpu.lan", "fd00::1"])
def test_other_machines_of_a_private_network(host: str) -> None:
    assert not loopback(host)
    assert private(host)


@pytest.mark.parametrize("host", ["api.openai.com", "8.8.8.8", "2606:4700::1111"])
def test_public_hosts(host: str) -> None:
    assert not private(host)
