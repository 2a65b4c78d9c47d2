"""Any reply at all: one kind, no exception, no secret, nothing unbounded, and the server's own verdict beside it.

``pytest --hypothesis-profile=nightly`` runs many more examples.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.own_client import comparable, own
from support.replies import Server, head, serve

from cpersona_cli.embedding.body import judge_body
from cpersona_cli.embedding.client import Client
from cpersona_cli.embedding.kinds import MEANINGS, Kind, Stage
from cpersona_cli.embedding.model import Endpoint, Mode, Outcome, Reply
from cpersona_cli.embedding.reply import Sent, judge_failure
from cpersona_cli.record import replace

EXAMPLES = max(200, settings.default.max_examples if settings.default else 0)
KEY = 'sk-Quagga4711"Zebra'
NEEDLE = re.compile("Quagga|Zebra")
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
TEXTS = ["a falcon", "größer"]

NUMBERS: st.SearchStrategy[object] = (
    st.floats(width=32) | st.integers(-2, 2) | st.sampled_from([10**400, 1e300, float("nan"), True, None, "1", [], {}])
)
VECTORS = (
    st.lists(NUMBERS, max_size=4)
    | st.just([0.6, 0.8])
    | st.just([1.0, 0.0])
    | st.sampled_from([None, "AACAPw==", "x", 7])
)
SAYINGS = st.sampled_from([
    f"Incorrect API key {KEY} provided", 'model "x" not found', "batch size 33 > maximum allowed batch size 32",
    "loading", "\x1b[31mred\u202e", "try again in 5s", "does not support embeddings", '{"a": 1}', "", "NaN", KEY,
])  # fmt: skip
WORDS = SAYINGS | st.text(max_size=30)
KEYS = st.sampled_from(
    ["error", "message", "detail", "errors", "msg", "loc", "code", "type", "raw", "model", "index", "x"]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner | inner.map(json.dumps), max_size=4),
    max_leaves=12,
)
INDEX = st.integers(-1, 3) | st.sampled_from([True, None, "0", 1.0])
ITEMS = st.fixed_dictionaries({}, optional={"index": INDEX, "embedding": VECTORS, "object": WORDS}) | ANYTHING
DOCUMENTS = (
    ANYTHING
    | st.fixed_dictionaries(
        {"embeddings": st.lists(VECTORS, max_size=4) | ANYTHING}, optional={"model": WORDS, "error": ANYTHING}
    )
    | st.fixed_dictionaries(
        {"data": st.lists(ITEMS, max_size=4) | ANYTHING}, optional={"model": ANYTHING, "error": ANYTHING}
    )
    | st.lists(st.integers(0, 1), min_size=2, max_size=2).map(
        lambda order: {"data": [{"index": at, "embedding": [0.6, 0.8 - at]} for at in order]}
    )
)
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"])


def written(document: object, encoding: str) -> bytes:
    return json.dumps(document, ensure_ascii=encoding == "latin-1").encode(
        encoding, "surrogatepass" if "utf" in encoding else "strict"
    )


BODIES = (
    st.builds(written, DOCUMENTS, ENCODINGS)
    | st.builds(
        lambda raw, cut: raw[: len(raw) - cut], st.builds(written, DOCUMENTS, st.just("utf-8")), st.integers(1, 30)
    )
    | st.binary(max_size=200)
    | WORDS.map(lambda text: text.encode("utf-8", "replace"))
    | WORDS.map(lambda text: f"<!doctype html><title>{text}</title>".encode("utf-8", "replace"))
    | st.builds(
        lambda mark, times: mark * times, st.sampled_from([b"[", b'{"error":', b'"\\"', b'["']), st.integers(1, 1100)
    )
    | st.builds(lambda digits: b'{"embeddings": ' + b"7" * digits + b"}", st.integers(1, 6000))
)
STATUSES = st.sampled_from(
    [200] * 12 + [201, 204, 301, 307, 400, 401, 403, 404, 413, 422, 424, 429, 500, 501, 502, 503, 529]
) | st.integers(200, 999)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "content-type": st.sampled_from(
            ["application/json", "text/html", "text/plain; charset=utf-16", f"x/{KEY}", "\x1b[31m"]
        ),
        "retry-after": st.sampled_from(["7", "-1", "nan", "1e999", "Wed, 21 Oct 2026 07:28:00 GMT", "9" * 50, "x"]),
        "retry-after-ms": st.sampled_from(["7", "inf", ""]),
        "location": st.sampled_from(["/x", f"http://h.invalid/?k={KEY}", "http://ü.invalid/", "http://["]),
        "content-length": st.sampled_from(["7", "99999999999", "x", "²", "9" * 5000]),
    },
)


@dataclass(frozen=True, slots=True)
class Case:
    mode: Mode
    reply: Reply
    proxied: bool = False


CASES = st.builds(
    Case,
    st.sampled_from([Mode.HTTP, Mode.API]),
    st.builds(
        Reply,
        status=STATUSES,
        headers=HEADERS,
        body=BODIES,
        reason=st.sampled_from(["OK", "", "\x1b[31m", f"no {KEY}"]),
        overflow=st.sampled_from([False] * 9 + [True]),
    ),
    st.booleans(),
)


def endpoint(mode: str, url: str = "http://user:Quagga4711@127.0.0.1:1/embed?k=Zebra4711") -> Endpoint:
    return Endpoint(mode=mode, url=url, key=KEY, model="m", timeout=20.0)


def check(outcome: Outcome) -> None:
    """What holds for every outcome."""
    assert outcome.kind in MEANINGS
    assert outcome.kind is not Kind.INTERNAL
    assert outcome.attempted
    shown = [outcome.server_message, outcome.model, *dict(outcome.evidence).values()]
    for text in shown:
        assert not UNSAFE.search(text)
        assert not NEEDLE.search(text)
        assert len(text) <= 300
    assert not NEEDLE.search(repr(outcome))
    assert outcome.retry_after is None or 0 <= outcome.retry_after <= 366 * 86400
    if outcome.ok:
        assert outcome.status is not None
        assert 200 <= outcome.status < 300
        assert len(outcome.vectors) == len(outcome.norms) == len(TEXTS)
        assert {len(vector) for vector in outcome.vectors} == {outcome.dim}
        assert all(isinstance(value, float) for vector in outcome.vectors for value in vector)
    else:
        assert not outcome.vectors
        assert outcome.stage in {Stage.NETWORK, Stage.HEAD, Stage.BODY}
    # we take what the server takes, and nothing else
    assert outcome.ok == outcome.server_view.ok
    assert not outcome.server_view.pending


@settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(CASES)
def test_replies(case: Case) -> None:
    client = Client(endpoint(case.mode))
    client._proxy = "HTTP_PROXY=http://127.0.0.1:1" if case.proxied else ""
    check(client._judged(case.reply, TEXTS, 50))
    # no error status ever carries vectors
    sent = Sent(mode=case.mode, count=2, size=1 << 21, proxied=case.proxied)
    failed = judge_failure(replace(case.reply, status=case.reply.status % 700 + 300), sent)
    assert MEANINGS[failed.kind].stage not in {Stage.DONE, Stage.MEANING}
    assert MEANINGS[judge_body(case.reply, sent).kind].stage is not Stage.CONFIGURATION


class Line:
    """One server for all examples: it says what ``script`` holds at the moment."""

    script: bytes = b""

    def __call__(self, _: bytes) -> list[bytes]:
        return [self.script]


@pytest.fixture(scope="module")
def line() -> Iterator[tuple[Server, Line]]:
    said = Line()
    with serve(said) as server:
        yield server, said


WIRE = (
    st.builds(
        lambda status, headers, body, reason, packed: (
            head(
                status,
                reason=reason,
                headers={
                    **{name: value for name, value in headers.items() if name != "content-length"},
                    **({"content-encoding": "gzip"} if packed else {}),
                },
            )
            + (gzip.compress(body) if packed else body)
        ),
        STATUSES,
        HEADERS,
        BODIES,
        st.sampled_from(["OK", "", "\x1b[31m", f"no {KEY}"]),
        st.booleans(),
    )
    | st.binary(max_size=300)
    | st.builds(lambda raw: b"HTTP/1.1 200 OK\r\n" + raw, st.binary(max_size=100))
)


@settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(raw=WIRE, mode=st.sampled_from([Mode.HTTP, Mode.API]))
def test_bytes_on_the_wire(line: tuple[Server, Line], raw: bytes, mode: Mode) -> None:
    server, said = line
    said.script = raw
    target = endpoint(mode, server.url.replace("://", "://user:Quagga4711@") + "?k=Zebra4711")

    async def run() -> Outcome:
        async with Client(target, deadline=20.0) as client:
            return await client.embed(TEXTS)

    check(asyncio.run(run()))
    server.requests.clear()


@settings(deadline=None, max_examples=max(40, EXAMPLES // 20), suppress_health_check=list(HealthCheck))
@given(raw=WIRE, mode=st.sampled_from([Mode.HTTP, Mode.API]))
def test_the_server_records_what_we_say_it_does(line: tuple[Server, Line], raw: bytes, mode: Mode) -> None:
    server, said = line
    said.script = raw
    # with a key that no answer holds, so that nothing is hidden from the comparison
    target = replace(endpoint(mode, server.url), key="sk-another-key-0815")
    theirs = own(target, TEXTS)

    async def run() -> Outcome:
        async with Client(target, deadline=20.0) as client:
            return await client.embed(TEXTS)

    outcome = asyncio.run(run())
    assert comparable(outcome.server_view) == comparable(theirs.view, target.secrets)
    server.requests.clear()
