"""``server_view`` against the server's own client: both get the same replies on real sockets, and must agree."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.own_client import TEXTS, comparable, ours, own
from support.replies import Hold, Reset, Script, Trickle, closed_port, forward_proxy, full_backlog, head, reply, serve

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Endpoint, Outcome

GOOD = [[0.6, 0.8], [1.0, 0.0]]
HTTP_GOOD = {"embeddings": GOOD, "dimensions": 2}
API_GOOD = {"data": [{"index": 0, "embedding": GOOD[0]}, {"index": 1, "embedding": GOOD[1]}], "model": "m"}
RAW = json.dumps(HTTP_GOOD).encode()
DEEP = b"[" * 100_000 + b"]" * 100_000
LONG = b'{"embeddings": [[' + b"9" * 5000 + b"], [1]]}"


def agree(endpoint: Endpoint, texts: Sequence[str] = TEXTS, *, deadline: float | None = None) -> Outcome:
    theirs = own(endpoint, texts, patience=1.0 if deadline else 30.0)
    outcome = ours(endpoint, texts, deadline=deadline)
    assert comparable(outcome.server_view) == comparable(theirs.view, endpoint.secrets)
    return outcome


def http(url: str, **more: object) -> Endpoint:
    return Endpoint(mode="http", url=url, **{"timeout": 10.0, **more})  # type: ignore[arg-type]


def api(url: str, **more: object) -> Endpoint:
    return Endpoint(mode="api", url=url, **{"timeout": 10.0, "key": "sk-test-1234567890", "model": "m", **more})  # type: ignore[arg-type]


# Bodies of a success, in both modes.
BODIES: Mapping[str, object] = {
    "good": HTTP_GOOD,
    "good for api": API_GOOD,
    "out of order": {"data": [{"index": 1, "embedding": GOOD[1]}, {"index": 0, "embedding": GOOD[0]}]},
    "empty": b"",
    "null": None,
    "list": GOOD,
    "number": 7,
    "text": "not json at all",
    "page": "<!doctype html><title>Sign in</title>",
    "cut off": b'{"embeddings": [[0.5, 0.',
    "deep": DEEP,
    "long number": LONG,
    "huge number": {"embeddings": [[10**400], [1]]},
    "utf-16": json.dumps(HTTP_GOOD).encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + RAW,
    "no text": b'{"embeddings": "\xff\xfe"}',
    "empty object": {},
    "embeddings null": {"embeddings": None},
    "embeddings empty": {"embeddings": []},
    "embeddings object": {"embeddings": {}},
    "embeddings text": {"embeddings": "x"},
    "embeddings false": {"embeddings": False},
    "error": {"error": "no"},
    "one vector": {"embeddings": [[1.0]]},
    "three vectors": {"embeddings": [[1.0]] * 3},
    "600 vectors": {"embeddings": [[1.0]] * 600},
    "null vector": {"embeddings": [None, [1.0]]},
    "empty vector": {"embeddings": [[], [1.0]]},
    "wide vector": {"embeddings": [[0] * 16385, [0] * 16385]},
    "ragged": {"embeddings": [[1, 0], [1, 0, 0]]},
    "strings": {"embeddings": [["1"], [1]]},
    "booleans": {"embeddings": [[True], [1]]},
    "null element": {"embeddings": [[None], [1]]},
    "not a number": {"embeddings": [[float("nan")], [1]]},
    "infinite": {"embeddings": [[1.0], [float("-inf")]]},
    "too large for float32": {"embeddings": [[1e300], [1]]},
    "largest float32": {"embeddings": [[3.4028234663852886e38], [1]]},
    "rounded into float32": {"embeddings": [[3.4028235677973362e38], [1]]},
    "tokens": {"embeddings": [[[1.0]], [[1.0]]]},
    "zeros": {"embeddings": [[0.0, 0.0], [0.0, 0.0]]},
    "not of length one": {"embeddings": [[3.0, 4.0], [0.0, 5.0]]},
    "base64": {"data": [{"index": 0, "embedding": "AACAPw=="}, {"index": 1, "embedding": "AAAAAA=="}]},
    "data null": {"data": None},
    "data object": {"data": {}},
    "data empty": {"data": []},
    "item text": {"data": ["x", "y"]},
    "item without vector": {"data": [{"index": 0}, {"index": 1}]},
    "no index": {"data": [{"embedding": GOOD[0]}, {"embedding": GOOD[1]}]},
    "same index": {"data": [{"index": 0, "embedding": GOOD[0]}, {"index": 0, "embedding": GOOD[1]}]},
    "index true": {"data": [{"index": True, "embedding": GOOD[0]}, {"index": 0, "embedding": GOOD[1]}]},
    "index text": {"data": [{"index": "0", "embedding": GOOD[0]}, {"index": "1", "embedding": GOOD[1]}]},
    "index beyond": {"data": [{"index": 0, "embedding": GOOD[0]}, {"index": 2, "embedding": GOOD[1]}]},
    "one item": {"data": [{"index": 0, "embedding": GOOD[0]}]},
}


@pytest.mark.parametrize("mode", ["http", "api"])
@pytest.mark.parametrize("name", BODIES)
def test_bodies_of_a_success(name: str, mode: str) -> None:
    with serve([reply(BODIES[name])]) as server:
        outcome = agree(http(server.url) if mode == "http" else api(server.url))
        assert outcome.kind is not Kind.INTERNAL
        # contract-valid for us is exactly what the server takes
        assert outcome.ok == outcome.server_view.ok


@pytest.mark.parametrize("mode", ["http", "api"])
@pytest.mark.parametrize(
    "status", [101, 199, 204, 206, 300, 301, 304, 307, 400, 401, 404, 407, 418, 429, 499, 500, 503, 511, 600, 999]
)
def test_statuses(status: int, mode: str) -> None:
    with serve([reply({"error": "no"}, status)]) as server:
        outcome = agree(http(server.url) if mode == "http" else api(server.url))
        assert not outcome.ok


HEADS: Mapping[str, Script] = {
    "no reason": [reply(b"x", 404, reason="")],
    "odd reason": [reply(b"x", 500, reason=b"\x1b[31m b\xc3\xb6se \xff")],
    "redirect": [reply(b"", 302, headers={"location": "http://user:pw@elsewhere.invalid/embed?key=abc"})],
    "redirect beside": [reply(b"", 308, headers={"location": "/v1/embed?key=abcdefgh"})],
    "redirect with letters": [reply(b"", 301, headers={"location": "http://elsewhere.invalid/größer"})],
    "redirect to no address": [reply(b"", 302, headers={"location": "http://["})],
    "status 204": [reply(b"", 204)],
    "two lengths": [head(200, headers=[("content-length", "2"), ("content-length", "2")]) + b"{}"],
    "unequal lengths": [head(200, headers=[("content-length", "2"), ("content-length", "3")]) + b"{}"],
    "no length": [head(200) + b'{"embeddings": [[1.0], [0.5]]}'],
    "early answers": [b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n", reply(HTTP_GOOD)],
    "continue": [b"HTTP/1.1 100 Continue\r\n\r\n", reply(HTTP_GOOD)],
    "gzip": [reply(gzip.compress(RAW), headers={"content-encoding": "gzip"})],
    "deflate": [reply(zlib.compress(RAW), headers={"content-encoding": "deflate"})],
    "bare deflate": [reply(zlib.compress(RAW)[2:-4], headers={"content-encoding": "deflate"})],
    "twice packed": [
        reply(gzip.compress(zlib.compress(RAW)), headers={"content-encoding": "deflate, gzip"})
    ],
    "bad gzip": [reply(b"not packed at all", headers={"content-encoding": "gzip"})],
    "bad deflate": [reply(b"not packed at all", headers={"content-encoding": "deflate"})],
    "cut gzip": [reply(gzip.compress(RAW)[:20], headers={"content-encoding": "gzip"})],
    "gzip and more": [reply(gzip.compress(RAW) + b"more", headers={"content-encoding": "gzip"})],
    "unknown encoding": [reply(HTTP_GOOD, headers={"content-encoding": "zstd"})],
    "chunks": [head(200, headers={"transfer-encoding": "chunked"}) + b"2\r\n{}\r\n0\r\n\r\n"],
    "bad chunks": [head(200, headers={"transfer-encoding": "chunked"}) + b"zz\r\n{}\r\n0\r\n\r\n"],
    "cut chunks": [head(200, headers={"transfer-encoding": "chunked"}) + b"50\r\n{}"],
    "short body": [head(200, length=500) + b'{"embeddings":'],
    "no reply": [],
    "half a head": [b"HTTP/1.1 200 OK\r\ncontent-ty"],
    "another protocol": [b"SSH-2.0-OpenSSH_9.6\r\n\r\n"],
    "reset": [Reset()],
    "reset in the head": [b"HTTP/1.1 200 OK\r\n", Reset()],
    "declared too large in chunks": [
        head(200, headers={"transfer-encoding": "chunked", "content-length": "99999999"})
        + b"%x\r\n%s\r\n0\r\n\r\n" % (len(RAW), RAW)
    ],
    "declared too large": [head(200, length=(64 << 20) + 1) + b"{}"],
}  # fmt: skip


@pytest.mark.parametrize("mode", ["http", "api"])
@pytest.mark.parametrize("name", HEADS)
def test_heads_and_framing(name: str, mode: str) -> None:
    with serve(HEADS[name]) as server:
        endpoint = http(server.url) if mode == "http" else api(server.url)
        assert agree(endpoint).kind is not Kind.INTERNAL


URLS = [
    "", " ", "http://", "http:///embed", "http:/127.0.0.1:1/x", "http:127.0.0.1/x", "//127.0.0.1/x",
    "127.0.0.1:8401/embed", "localhost:8401/embed", " http://127.0.0.1:1/", '"http://127.0.0.1:1/"', "ftp://127.0.0.1/",
    "ftp:///x", "http://127.0.0.1:0/", "http://127.0.0.1:-1/", "http://127.0.0.1:65536/", "http://127.0.0.1:84o1/",
    "http://127.0.0.1:1/\n", "http://[::1/", "http://[zz]/", "http://256.1.1.1:1/", "http://xn--.invalid/",
    "http://\ud800.invalid/", "http://127.0.0.1:1/\ud800", "http://" + "ä" * 70 + ".invalid/",
    "http://user:pass-word@127.0.0.1:84o1/embed?key=abcdefgh", "http://user:pa/ss-word@127.0.0.1/embed",
]  # fmt: skip


@pytest.mark.parametrize("mode", ["http", "api"])
@pytest.mark.parametrize("url", URLS)
def test_urls_that_cannot_be_called(url: str, mode: str) -> None:
    outcome = agree(Endpoint(mode=mode, url=url, key="sk-test-1234567890", model="m", timeout=10.0))
    assert outcome.kind is Kind.CONFIG_URL
    assert not outcome.attempted


@pytest.mark.parametrize("url", ["http://nowhere.invalid/embed", "http://a..b.invalid/", f"http://{'a' * 70}.invalid/"])
def test_names_that_are_unknown(url: str) -> None:
    assert agree(http(url)).kind in {Kind.DNS, Kind.RESOLVER}


@pytest.mark.parametrize(
    "form",
    [
        "http://127.0.0.1:{}/embed",
        "http://[::1]:{}/embed",
        "HTTP://user:pass-word@127.0.0.1:{}/embed?k=abcdefgh",
        "ws://127.0.0.1:{}/",
    ],
)
def test_refused(form: str) -> None:
    outcome = agree(http(form.format(closed_port())))
    assert outcome.kind in {Kind.REFUSED, Kind.UNROUTABLE}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a full queue neither accept nor refuse")
def test_connect_timeout() -> None:
    with full_backlog() as url:
        assert agree(http(url, timeout=0.3)).kind is Kind.CONNECT_TIMEOUT


def test_read_timeout() -> None:
    with serve([Hold()]) as server:
        assert agree(http(server.url, timeout=0.5)).kind is Kind.TIMEOUT


def test_read_timeout_in_the_body() -> None:
    with serve([head(200, length=50) + b"{", Hold()]) as server:
        assert agree(http(server.url, timeout=0.5)).kind is Kind.TIMEOUT


def test_a_trickling_body_keeps_the_server_waiting() -> None:
    with serve([head(200, length=10**6), Trickle()]) as server:
        outcome = agree(http(server.url), deadline=1.0)
        assert outcome.kind is Kind.TIMEOUT
        assert outcome.server_view.pending


def test_certificate_that_nobody_signed() -> None:
    with serve([reply(HTTP_GOOD)], tls=True) as server:
        assert agree(http(server.url)).kind is Kind.TLS


def test_certificate_that_a_variable_trusts() -> None:
    bundle = str(Path(__file__).parents[1] / "data" / "self_signed.pem")
    with serve([reply(HTTP_GOOD)], tls=True) as server:
        assert agree(http(server.url, environment={"SSL_CERT_FILE": bundle})).ok


def test_plain_port_called_as_secure() -> None:
    with serve([reply(b"", 400)], whole=False) as server:
        assert agree(http(server.url.replace("http", "https"))).kind is Kind.TLS


def test_plain_port_called_as_secure_that_waits_for_more() -> None:
    with serve([reply(HTTP_GOOD)]) as server:
        assert agree(http(server.url.replace("http", "https"), timeout=0.5)).kind is Kind.TLS


def test_secure_port_called_as_plain() -> None:
    with serve([reply(HTTP_GOOD)], tls=True) as server:
        outcome = agree(http(server.url.replace("https", "http")))
        assert outcome.kind in {Kind.DISCONNECTED, Kind.NOT_HTTP}


KEYS = [
    "sk-line-end-123\n", "sk-inner\r\nX: y", "sk-space-end ", " sk-space-start", "sk inner space", "", " ", "\n",
    "schlüssel-123456", "sk-\x00-nul-1234", "sk-\x01-control", "sk-\ttab-123456", "sk-\x0b-tab-1234",
    "sk-delete-\x7f", "sk-\x1c-1234567\x1c",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_keys(key: str) -> None:
    with serve([reply(API_GOOD)]) as server:
        outcome = agree(api(server.url, key=key))
        if key == "":
            # a local server needs no key; CPersona cannot call it without one
            assert outcome.kind is Kind.OK
            assert not outcome.server_view.ok
        else:
            assert outcome.kind is (Kind.OK if outcome.server_view.ok else Kind.CONFIG_CREDENTIAL)


@pytest.mark.parametrize("script", [[Reset()], [reply(b"x", 404)], [reply(HTTP_GOOD)]])
def test_no_key_and_a_failing_server(script: Script) -> None:
    with serve(script) as server:
        agree(api(server.url, key=""))


def test_no_key_and_no_server() -> None:
    assert agree(api(f"http://127.0.0.1:{closed_port()}/", key="")).kind is Kind.REFUSED


@pytest.mark.parametrize("mode", ["http", "api"])
@pytest.mark.parametrize("timeout", [0.0, -1.0])
def test_timeouts_that_end_at_once(mode: str, timeout: float) -> None:
    with serve([reply(HTTP_GOOD)]) as server:
        endpoint = Endpoint(mode=mode, url=server.url, key="sk-test-123456\n", timeout=timeout)
        assert agree(endpoint).kind in {Kind.CONFIG_CLIENT, Kind.CONFIG_CREDENTIAL}


def test_no_key_and_no_texts() -> None:
    with serve([reply(API_GOOD)]) as server:
        assert agree(api(server.url, key=""), []).kind is Kind.INPUT_INVALID


@pytest.mark.parametrize("mode", ["http", "api"])
@pytest.mark.parametrize("texts", [["\udcff"], ["a", "\ud800 b"], []])
def test_texts_that_cannot_be_sent(texts: list[str], mode: str) -> None:
    with serve([reply({"embeddings": [], "data": []})]) as server:
        endpoint = http(server.url) if mode == "http" else api(server.url)
        outcome = agree(endpoint, texts)
        assert outcome.kind is Kind.INPUT_INVALID
        assert not outcome.attempted


def test_a_model_name_that_is_no_text() -> None:
    with serve([reply(API_GOOD)]) as server:
        assert agree(api(server.url, model="m\udcff")).kind is Kind.CONFIG_CLIENT


@pytest.mark.parametrize("mode", ["none", "HTTP", "openai", "http ", ""])
def test_modes_that_call_nothing(mode: str) -> None:
    outcome = agree(Endpoint(mode=mode, url="http://127.0.0.1:1/"))
    assert outcome.kind is (Kind.DISABLED if mode == "none" else Kind.CONFIG_MODE)


@pytest.mark.parametrize(
    "environment",
    [
        {"HTTP_PROXY": "gopher://127.0.0.1:1"},
        {"ALL_PROXY": "socks5://127.0.0.1:1"},
        {"http_proxy": "http://user:pass-word@127.0.0.1:port"},
        {"HTTP_PROXY": "http://127.0.0.1:1", "NO_PROXY": "ö.invalid"},
        {"SSL_CERT_FILE": "/nonexistent/bundle.pem"},
        {"SSL_CERT_DIR": "/nonexistent"},
        {"SSL_CERT_FILE": __file__},
    ],
)
def test_settings_of_the_http_client(environment: dict[str, str]) -> None:
    with serve([reply(HTTP_GOOD)]) as server:
        outcome = agree(http(server.url, environment=environment))
        assert outcome.kind is (Kind.CONFIG_CLIENT if outcome.server_view.crash else Kind.OK)


def test_a_dead_proxy() -> None:
    with serve([reply(HTTP_GOOD)]) as server:
        outcome = agree(http(server.url, environment={"HTTP_PROXY": f"http://127.0.0.1:{closed_port()}"}))
        assert outcome.kind is Kind.PROXY
        assert outcome.via_proxy.startswith("HTTP_PROXY=")
        assert not server.requests


@pytest.mark.parametrize("status", [200, 403, 503])
def test_a_proxy_that_answers_with_a_page(status: int) -> None:
    with serve([reply("<html><title>Sign in</title>", status, content_type="text/html")]) as proxy:
        outcome = agree(
            http("http://127.0.0.1:8401/embed", environment={"HTTP_PROXY": f"http://127.0.0.1:{proxy.port}"})
        )
        assert outcome.kind is Kind.PROXY
        assert outcome.server_message == "Sign in"


def test_a_proxy_that_works() -> None:
    with serve([reply(HTTP_GOOD)]) as server, forward_proxy() as proxy:
        outcome = agree(http(server.url, environment={"HTTP_PROXY": proxy}))
        assert outcome.kind is Kind.OK
        assert all(b"Via: 1.1 tiny" in request for request in server.requests)


def test_a_proxy_that_tunnels() -> None:
    bundle = str(Path(__file__).parents[1] / "data" / "self_signed.pem")
    with serve([reply(HTTP_GOOD)], tls=True) as server, forward_proxy() as proxy:
        outcome = agree(http(server.url, environment={"HTTPS_PROXY": proxy, "SSL_CERT_FILE": bundle}))
        assert outcome.kind is Kind.OK


def test_a_host_outside_of_the_proxy() -> None:
    with serve([reply(HTTP_GOOD)]) as server:
        environment = {"HTTP_PROXY": f"http://127.0.0.1:{closed_port()}", "NO_PROXY": "localhost,127.0.0.1"}
        assert agree(http(server.url, environment=environment)).kind is Kind.OK


@pytest.mark.parametrize("mode", ["http", "api"])
@pytest.mark.parametrize("texts", [("one",), TEXTS, ('quotes " and \\ and \u2028',)])
def test_the_request_is_the_servers_own(mode: str, texts: Sequence[str]) -> None:
    with serve([reply(API_GOOD)]) as server:
        url = server.url.replace("http://", "http://us%65r:pass-word@") + "?token=abc def"
        endpoint = Endpoint(mode=mode, url=url, key="sk-test-1234567890", model="größe", timeout=10.0)
        own(endpoint, texts)
        ours(endpoint, texts)
        theirs, mine = server.requests
        assert _lines(mine) == _lines(theirs)
        assert mine.partition(b"\r\n\r\n")[2] == theirs.partition(b"\r\n\r\n")[2]


def _lines(request: bytes) -> tuple[bytes, list[bytes]]:
    line, *headers = request.partition(b"\r\n\r\n")[0].split(b"\r\n")
    return line, sorted(header.partition(b":")[0].lower() + header.partition(b":")[2] for header in headers)
