"""How long to wait and how much is allowed, as servers say it."""

from __future__ import annotations

import pytest

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Reply
from cpersona_cli.embedding.reply import Sent, judge_failure, retry_after, stated_limit
from cpersona_cli.embedding.sentence import ErrorInfo

NOW = 1_792_567_680.0  # Wed, 21 Oct 2026 07:28:00 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:29:00 GMT"}, 60.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:00:00 GMT"}, 0.0),
        ({"retry-after": "-7"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "99999999999"}, None),
        ({"retry-after": "٧"}, None),
        ({"retry-after": "Wed, 21 Oct 99999 07:28:00 GMT"}, None),
    ],
)
def test_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, "", lambda: NOW) == seconds


def test_a_date_needs_a_clock() -> None:
    assert retry_after({"retry-after": "Wed, 21 Oct 2026 07:29:00 GMT"}) is None


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Please try again in 522ms.", 0.522),
        ("Please try again in 2.768s.", 2.768),
        ("Try again in 60 seconds. Passed model=x", 60),
        ("try again in 6m0s.", 360),
        ("try again in 1m12.5s", 72.5),
        ("retry in 2 minutes", 120),
        ("retry after 1h", 3600),
        ("wait for 3 sec please", 3),
        ("wait 250 milliseconds", 0.25),
        ("try again in 5 sausages", None),
        ("try again in " + "9" * 400 + "s", None),
        ("try again later, error 500", None),
        ("in 7s", None),
    ],
)
def test_sentences(message: str, seconds: float | None) -> None:
    found = retry_after({}, message)
    assert found == (None if seconds is None else pytest.approx(seconds))


def test_a_header_comes_before_a_sentence() -> None:
    assert retry_after({"retry-after": "7"}, "try again in 9s") == 7


@pytest.mark.parametrize(
    ("kind", "text", "limit"),
    [
        (Kind.BATCH_TOO_LARGE, "batch size 33 > maximum allowed batch size 32", 32),
        (Kind.BATCH_TOO_LARGE, "Batch size exceeds limit (max 100)", 100),
        (Kind.BATCH_TOO_LARGE, "max 300000 tokens per request", None),
        (Kind.BATCH_TOO_LARGE, "too many", None),
        (Kind.INPUT_TOO_LARGE, "must have less than 512 tokens. Given: 1451", 512),
        (Kind.INPUT_TOO_LARGE, "prefill 744 tokens exceed n_ctx_per_seq, n_ctx_per_seq = 512", 512),
        (Kind.INPUT_TOO_LARGE, "(current batch size: " + "9" * 5000 + ")", 999999999),
        (Kind.REJECTED, "limit of 7", None),
    ],
)
def test_limits(kind: Kind, text: str, limit: int | None) -> None:
    assert stated_limit(kind, ErrorInfo(message=text, codes=(), form="text", raw=text)) == limit


@pytest.mark.parametrize("status", [400, 403, 502, 503, 504, 511])
def test_a_page_through_a_proxy_is_the_proxys(status: int) -> None:
    reply = Reply(status=status, headers={"content-type": "text/html"}, body=b"<html>Blocked here</html>")
    assert judge_failure(reply, Sent(mode="http", count=1, proxied=True)).kind is Kind.PROXY
    assert judge_failure(reply, Sent(mode="http", count=1)).kind is not Kind.PROXY


def test_a_page_that_misses_is_the_servers_also_through_a_proxy() -> None:
    reply = Reply(status=404, headers={"content-type": "text/html"}, body=b"<html>Nothing here</html>")
    assert judge_failure(reply, Sent(mode="http", count=1, proxied=True)).kind is Kind.ROUTE_NOT_FOUND


def test_an_empty_gateway_error_through_a_proxy() -> None:
    assert (
        judge_failure(Reply(status=502, headers={}, body=b""), Sent(mode="http", count=1, proxied=True)).kind
        is Kind.PROXY
    )
