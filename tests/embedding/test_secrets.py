"""Keys, passwords and tokens: searched for in all that a call leaves behind, however a server echoes them."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import Callable, Mapping

import pytest
from support.own_client import ours
from support.replies import Hold, Reset, Step, Trickle, closed_port, head, reply, serve

from cpersona_cli.embedding.client import Client
from cpersona_cli.embedding.configuration import objection
from cpersona_cli.embedding.model import Endpoint, Outcome

#: Stands inside of every secret below; no part of it may be seen.
NEEDLE = "Quagga4711Zebra"

KEYS = [
    f"sk-{NEEDLE}", f"{NEEDLE}\n", f"{NEEDLE}\r\nX-More: {NEEDLE}", f" {NEEDLE} ", f"{NEEDLE} {NEEDLE}", f'"{NEEDLE}"',
    f"'{NEEDLE}' \\ &<>", f"ключ-{NEEDLE}", f"{NEEDLE}\x00", f"{NEEDLE}\x01\x1b[31m", f"{NEEDLE}\ud800",
    f"{NEEDLE}\t{NEEDLE}",
]  # fmt: skip

URLS = [
    "{url}",
    f"http://name:{NEEDLE}@127.0.0.1:{{port}}/embed",
    f"http://{NEEDLE}@127.0.0.1:{{port}}/embed?token={NEEDLE}#{NEEDLE}",
    f"http://name:p%20%22{NEEDLE}@127.0.0.1:{{port}}/embed?a=b&key=x%20{NEEDLE}",
    f'http://name:ü"{NEEDLE}@127.0.0.1:{{port}}/embed?{NEEDLE} {NEEDLE}',
]

#: Addresses that cannot be called, with a secret in each.
BROKEN_URLS = [
    f"http://name:{NEEDLE}@127.0.0.1:84o1/embed", f"name:{NEEDLE}@127.0.0.1/embed", f"http:/n:{NEEDLE}@127.0.0.1/embed",
    f"http://name:{NEEDLE}/x@127.0.0.1/embed", f"http://name:{NEEDLE}?x@127.0.0.1/embed", f"http://name:{NEEDLE}#x@h:1/",
    f' "http://name:{NEEDLE}@127.0.0.1:1/?k={NEEDLE}"', f"ftp://name:{NEEDLE}@127.0.0.1/", f"http://name:{NEEDLE}@[zz]/",
    f"127.0.0.1:8401/embed?token={NEEDLE}", f"http://127.0.0.1:99999/embed?token={NEEDLE}", f"http://h/\n?token={NEEDLE}",
    f"http://name:{NEEDLE}@/embed", f"name:{NEEDLE}@127.0.0.1:8401", f"//name:{NEEDLE}@127.0.0.1",
]  # fmt: skip


def pairs(turn: int) -> list[tuple[str, str]]:
    """Every key with one of the addresses; with another one in the next turn."""
    return [(key, URLS[(number + turn) % len(URLS)]) for number, key in enumerate(KEYS)]


def echo(request: bytes) -> str:
    return request.decode("latin-1")


#: What servers may make of a request in their answers.
ANSWERS: Mapping[str, Callable[[bytes], list[Step]]] = {
    "message": lambda r: [reply({"error": {"message": f"refused: {echo(r)}"}}, 401)],
    "message in a message": lambda r: [reply({"error": {"message": json.dumps({"error": f"no: {echo(r)}"})}}, 400)],
    "escaped": lambda r: [reply({"error": f"I do not take {r!r} here"}, 400)],
    "parts": lambda r: [reply({"error": " ".join(f"bad {line}" for line in echo(r).split("\r\n"))}, 400)],
    "text": lambda r: [reply(f"I do not like {echo(r)}", 500)],
    "broken": lambda r: [reply(b'{"error": "I saw ' + r, 500)],
    "page": lambda r: [reply(f"<title>{echo(r)}</title>", 200, content_type="text/html")],
    "reason": lambda r: [reply(b"", 404, reason=b"no " + b" ".join(r.split()))],
    "place": lambda r: [reply(b"", 302, headers={"location": f"http://h.invalid/{' '.join(echo(r).split())}"})],
    "own place": lambda r: [reply(b"", 302, headers={"location": echo(r).split()[1]})],
    "type": lambda r: [reply(b"x", 200, content_type=" ".join(echo(r).split()))],
    "model": lambda r: [reply({"embeddings": [[1.0]], "data": [{"index": 0, "embedding": [1.0]}], "model": echo(r)})],
    "code": lambda r: [reply({"error": {"message": "It is not here.", "code": echo(r)}}, 404)],
    "success": lambda r: [reply({"error": {"message": f"refused {echo(r)}"}})],
    "refuses to speak": lambda _: [Reset()],
    "short": lambda r: [head(length=5000) + r],
    "no protocol": lambda r: [r],
}


def leftovers(endpoint: Endpoint, outcome: Outcome, caplog: pytest.LogCaptureFixture) -> str:
    everything = [repr(outcome), str(outcome), repr(endpoint), repr(objection(endpoint)), endpoint.address, caplog.text]
    everything += [str(getattr(outcome, name)) for name in vars(outcome)]
    everything += [str(value) for value in (outcome.server_view.error, *dict(outcome.evidence).values())]
    everything += [str(record.__dict__) for record in caplog.records]
    return "\n".join(everything)


@pytest.fixture(autouse=True)
def _all_logs(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("", "httpx", "httpcore", "asyncio"):
        caplog.set_level(logging.DEBUG, name)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("mode", ["http", "api"])
def test_answers(name: str, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    with serve(ANSWERS[name]) as server:
        for key, form in pairs([*ANSWERS].index(name)):
            url = form.format(url=server.url, port=server.port)
            endpoint = Endpoint(mode=mode, url=url, key=key, model="m", timeout=10.0)
            outcome = ours(endpoint, ["a falcon"])
            # nor most of it
            assert NEEDLE[:10] not in leftovers(endpoint, outcome, caplog)
            caplog.clear()
        assert server.requests


@pytest.mark.parametrize("url", BROKEN_URLS)
def test_addresses_that_cannot_be_called(url: str, caplog: pytest.LogCaptureFixture) -> None:
    for mode in ("http", "api", "HTTP"):
        endpoint = Endpoint(mode=mode, url=url, key=KEYS[0], model="m", timeout=10.0)
        outcome = ours(endpoint, ["a falcon"])
        assert not outcome.attempted
        assert NEEDLE not in leftovers(endpoint, outcome, caplog)


@pytest.mark.parametrize("mode", ["http", "api"])
def test_nobody_there_and_nothing_to_send(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    for turn, (texts, timeout) in enumerate(((["a"], 10.0), ([], 10.0), (["\ud800"], 10.0), (["a"], 0.0))):
        for key, form in pairs(turn):
            url = form.format(url=f"http://127.0.0.1:{closed_port()}/embed", port=closed_port())
            endpoint = Endpoint(mode=mode, url=url, key=key, model="m", timeout=timeout)
            assert NEEDLE not in leftovers(endpoint, ours(endpoint, texts), caplog)
            caplog.clear()


@pytest.mark.parametrize("script", [[Hold()], [head(length=999), Trickle()]])
def test_time_that_runs_out(script: list[Step], caplog: pytest.LogCaptureFixture) -> None:
    with serve(script) as server:
        url = URLS[2].format(port=server.port)
        endpoint = Endpoint(mode="api", url=url, key=KEYS[0], model="m", timeout=10.0)
        assert NEEDLE not in leftovers(endpoint, ours(endpoint, ["a"], deadline=0.3), caplog)


@pytest.mark.parametrize(
    "proxy",
    [
        f"http://name:{NEEDLE}@127.0.0.1:{{port}}", f"http://name:{NEEDLE}@127.0.0.1:84o1", f"name:{NEEDLE}",
        f"http://name:{NEEDLE}", f"gopher://name:{NEEDLE}@h", f"socks5://name:{NEEDLE}@127.0.0.1:1", f"{NEEDLE}@@:x",
    ],
)  # fmt: skip
def test_passwords_of_proxies(proxy: str, caplog: pytest.LogCaptureFixture) -> None:
    with serve(ANSWERS["message"]) as server:
        environment = {"HTTP_PROXY": proxy.format(port=server.port)}
        endpoint = Endpoint(mode="http", url="http://127.0.0.1:1/embed", timeout=10.0, environment=environment)
        assert NEEDLE not in leftovers(endpoint, ours(endpoint, ["a"]), caplog)


def test_the_traceback_of_a_cancelled_call() -> None:
    async def run(url: str) -> str:
        endpoint = Endpoint(mode="api", url=url, key=KEYS[0], model="m", timeout=10.0)
        async with Client(endpoint) as client:
            try:
                async with asyncio.timeout(0.2):
                    await client.embed(["a"])
            except TimeoutError as error:
                shown = traceback.TracebackException.from_exception(error, capture_locals=False)
                return "".join(shown.format()) + repr(client)
        return ""

    with serve([Hold()]) as server:
        found = asyncio.run(run(URLS[2].format(port=server.port)))
    assert "CancelledError" in found
    assert NEEDLE not in found


def test_short_words_are_not_torn_out() -> None:
    endpoint = Endpoint(mode="api", url="http://127.0.0.1:1/", key="ollama", model="m")
    with serve([reply({"error": "try ollama pull first"}, 404)]) as server:
        outcome = ours(Endpoint(mode="api", url=server.url, key=endpoint.key, model="m", timeout=10.0), ["a"])
    assert outcome.server_message == "try ollama pull first"
