"""The readable sentence of a reply, and everything that must not be taken for one."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.embedding.sentence import ERROR_BYTES, quotable, read_error, unquoted

SAID = "The falcon model is not here."


def body(document: object) -> bytes:
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("raw", "form"),
    [
        (body({"error": {"message": SAID, "type": "x", "code": 400}}), "object"),
        (body({"error": SAID}), "string"),
        (body({"object": "error", "message": SAID, "type": "BadRequestError", "code": 400}), "flat"),
        (body({"code": 20015, "message": SAID, "data": None}), "flat"),
        (body({"detail": SAID}), "detail"),
        (body({"detail": {"error": SAID}}), "detail"),
        (body({"detail": [{"msg": SAID}]}), "detail"),
        (body({"errors": [{"message": SAID}]}), "json"),
        (body([{"error": {"message": SAID}}]), "json"),
        (body(SAID), "json"),
        (SAID.encode(), "text"),
        (f"  {SAID}\n".encode(), "text"),
        (b"\xef\xbb\xbf" + body({"error": SAID}), "string"),
        (json.dumps({"error": SAID}).encode("utf-16"), "string"),
        # wrapped: an object in a string in an object, to any depth
        (body({"error": {"message": json.dumps({"error": {"message": SAID}})}}), "object"),
        (body({"error": json.dumps({"error": json.dumps({"detail": SAID})})}), "string"),
        (body({"error": {"message": f'HTTP 400: {{"code":20015,"message":"{SAID}","data":null}}'}}), "object"),
        (body({"error": {"message": f"litellm.BadRequestError: x - {json.dumps({'error': SAID})}"}}), "object"),
        (body({"error": {"message": "Provider error", "metadata": {"raw": json.dumps({"message": SAID})}}}), "object"),
        (body({"error": {"message": f"Error code: 4 - {{'error': {{'message': '{SAID}', 'code': None}}}}"}}), "object"),
        (body({"error": {"message": 'x {\\"error\\": {\\"message\\": \\"' + SAID + '\\"}}'}}), "object"),
        (f'data: {{"error": {{"message": "{SAID}"}}}}\n\n'.encode(), "text"),
        # cut off in the middle
        (body({"error": {"message": SAID, "log": "x" * 100}})[:-30], "text"),
        (body({"error": SAID, "log": "x" * 3 * ERROR_BYTES}), "text"),
        (f"<html><head><title>{SAID}</title></head><body>x</body></html>".encode(), "html"),
        (f"<html><script>var x = 1;</script><body><h1>{SAID}</h1></body></html>".encode(), "html"),
    ],
)  # fmt: skip
def test_found(raw: bytes, form: str) -> None:
    info = read_error(raw)
    assert info.message == SAID
    assert info.form == form


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"   ", b"null", b"[]", b"{}", b"7", b'"x"', b"\x00\x01\x02", b"\xff\xfe\xfd",
        body({"error": {"message": "", "code": 1}}),
        body({"error": {"message": "invalid_request_error"}}),
        body({"error": {"message": "err_4711"}}),
        body({"error": None, "detail": 7}),
        body({"embeddings": [[0.1, 0.2]]}),
        b'{"embeddings": [[0.1, 0.2',
        b'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: no luck at all',
        b"<object at 0x7f00deadbeef> is wrong here",
        b"a=1|b=2|c=3|d=4 {x}",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"one two " * 1000,
    ],
)  # fmt: skip
def test_not_found(raw: bytes) -> None:
    assert read_error(raw).message == ""


def test_words_of_scripts_without_spaces() -> None:
    assert read_error(body({"error": {"message": "模型不存在或未加载"}})).message == "模型不存在或未加载"


def test_not_deeper_than_anybody_wraps() -> None:
    document: object = SAID
    for _ in range(40):
        document = {"error": {"code": "deep", "message": document}}
    info = read_error(body(document))
    assert info.message == ""
    assert len(info.codes) < 9


def test_one_plain_word() -> None:
    assert read_error(body({"error": "unauthorized"})).message == "unauthorized"


def test_the_place_of_a_complaint_belongs_to_it() -> None:
    raw = body({"detail": [{"loc": ["body", "input", 0], "msg": "Field required", "input": {"texts": ["secret"]}}]})
    assert read_error(raw).message == "body.input.0: Field required"


def test_codes_come_from_outside_in() -> None:
    inner = json.dumps({"error": {"code": "context_length_exceeded", "type": "None"}})
    info = read_error(body({"error": {"code": 400, "type": "Invalid_Request", "message": inner, "status": True}}))
    assert info.codes == ("400", "invalid_request", "context_length_exceeded")
    assert read_error(body({"code": 10**20, "message": SAID})).codes == ()


def test_a_page_without_a_title_shows_no_code() -> None:
    assert read_error(b"<html><style>a{b:c}</style><p>{{ template }} [x] |</p>", "text/html").message == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Incorrect API key provided: sk-abcdefgh. Retry", "Incorrect API key provided: […] Retry"),
        ("key abcd****wxyz refused", "key […] refused"),
        ("for organization org-Ab12Cd34 on tokens", "for organization […] on tokens"),
        ("request req_0123456789 failed", "request […] failed"),
        ("id 123e4567-e89b-12d3-a456-426614174000 failed", "id […] failed"),
        ("mail someone@example.org for more", "mail […] for more"),
        ("sent Bearer abcdef", "sent […]"),
        (f"token {'a1' * 25} is bad", "token […] is bad"),
        ("line one\r\n\tline two", "line one line two"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("left\u202eright\u2066\u061c", "left\\u202eright\\u2066\\u061c"),
        ("x" * 10 + " word" * 100, None),
    ],
)
def test_quotation(text: str, shown: str | None) -> None:
    quoted = quotable(text)
    assert len(quoted) <= 300
    assert shown is None or quoted == shown


SECRET = 'K3y with "quotes", ünï\n\\ and & more=%20'


@pytest.mark.parametrize(
    "form",
    [
        SECRET, repr(SECRET), repr(SECRET.encode()), json.dumps(SECRET), json.dumps(SECRET, ensure_ascii=False),
        SECRET[:12], SECRET[-9:], f"x{SECRET[4:16]}y",
    ],
)  # fmt: skip
def test_secrets_in_any_form(form: str) -> None:
    secrets = Endpoint(mode="api", url="http://h/", key=SECRET).secrets
    shown = quotable(f"the server says {form} is wrong", secrets)
    assert "quotes" not in shown
    assert "more=" not in shown


UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def _is_raw_json(text: str) -> bool:
    return re.search(r"""["']\s*:\s*["'{\[\d]""", text) is not None or text.startswith(("{", "[{", '["', "[["))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.just(SAID),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "message", "detail", "code", "type", "msg", "loc", "metadata", "raw", "x"]),
            inner | inner.map(json.dumps),
            max_size=4,
        )
    ),
    max_leaves=15,
)


@settings(deadline=None, max_examples=300)
@given(document=JSON, prefix=st.sampled_from(["", "HTTP 400: ", "Error code: 1 - "]))
def test_never_raw_json(document: object, prefix: str) -> None:
    info = read_error((prefix + json.dumps(document)).encode())
    shown = quotable(info.message)
    assert not _is_raw_json(shown)
    assert (
        shown == ""
        or shown.isprintable()
        or not re.search("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", shown)
    )
    assert len(shown) <= 300


@settings(deadline=None, max_examples=300)
@given(raw=st.binary(max_size=300), content_type=st.sampled_from(["", "text/html", "application/json"]))
def test_total(raw: bytes, content_type: str) -> None:
    shown = quotable(read_error(raw, content_type).message)
    assert not UNSAFE.search(shown)
    assert not _is_raw_json(shown)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("cannot embed 'Jonas is allergic to hazelnuts.'", "cannot embed '[…]'"),
        ("bad input: nas is allergic to hazelnuts, and so on", "bad input: […], and so on"),
        ('input: {"texts": ["say \\"hello\\" to Mira\\nand Bo"]}', 'input: {"texts": ["[…]"]}'),
        ('["\\u30ed\\u30b0\\u306f\\u4e09\\u5341\\u65e5"] is no text', '["[…]"] is no text'),
        ("PIN 4711: too many tokens", "[…]: too many tokens"),
        ("input is too large to process", "input is too large to process"),
        ("", ""),
    ],
)
def test_a_text_that_was_sent_is_not_repeated(message: str, shown: str) -> None:
    texts = ["Jonas is allergic to hazelnuts.", 'say "hello" to Mira\nand Bo', "ログは三十日", "PIN 4711", "to"]
    assert unquoted(message, texts) == shown
