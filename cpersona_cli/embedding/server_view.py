"""What CPersona 2.6.14 itself records for the same reply, worked out from the reply or the exception we saw.

The server keeps one line of evidence for each failed call: mode, address, exception class and its text. The address
loses user info and query, the path stays. Everything below was measured on the server's own client; a test runs both
side by side.
"""

from __future__ import annotations

import math
import re
import struct
from urllib.parse import urlsplit, urlunsplit

import httpx

from cpersona_cli.embedding.body import MAX_BODY, MAX_DIMENSION, MAX_VECTORS, declared
from cpersona_cli.embedding.configuration import SCHEMES, sendable
from cpersona_cli.embedding.failures import words
from cpersona_cli.embedding.model import Endpoint, Mode, Reply, ServerView
from cpersona_cli.text import redact

_SIGNS = 0xF0000  # a plane for private use
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
# What the server turns into a failed outcome; anything else escapes to its caller.
_CAUGHT = (httpx.RequestError, httpx.HTTPStatusError, httpx.InvalidURL, ValueError, KeyError)


class EmbeddingResponseError(ValueError):
    """The server's own class for a refused answer: its name is part of the recorded line."""


def not_called(mode: str) -> ServerView:
    """No request leaves the server: no backend, or a mode it does not know."""
    if mode == Mode.NONE:
        return ServerView(attempted=False, ok=False)
    return ServerView(attempted=False, ok=False, error=f"mode={mode} is not a supported embedding mode")


def of_unsendable(endpoint: Endpoint) -> ServerView:
    """The view of a call for which we send nothing: the server tries all the same and calls the result an outage.

    A key that cannot be sent is noticed only once a connection stands; this view supposes that one does.
    """
    error = before_sending(endpoint)
    if isinstance(error, str):
        return ServerView(attempted=True, ok=False, crash=error)
    return ServerView(attempted=True, ok=False) if error is None else of_exception(endpoint, error)


def of_crash(name: str) -> ServerView:
    """The view of settings with which the server does not even start: exception ``name`` ends it."""
    return ServerView(attempted=False, ok=False, crash=name)


def of_no_texts(endpoint: Endpoint) -> ServerView:
    """The view of an empty list, which the server does send, supposing the backend answers with an empty list."""
    if endpoint.mode == Mode.API and not sendable(endpoint.key):
        return of_unsendable(endpoint)
    return _without_vectors(endpoint)


def pending() -> ServerView:
    """The view of a call that passed our deadline: the server has none and has recorded nothing yet."""
    return ServerView(attempted=True, ok=False, pending=True)


def before_sending(endpoint: Endpoint) -> Exception | str | None:
    """What the server's client raises before a request is on its way, as an exception or the name of one it loses."""
    value = f"Bearer {endpoint.key}"
    if endpoint.mode == Mode.API:
        # headers are encoded first, then the body, then the address
        try:
            value.encode("ascii")
            endpoint.model.encode("utf-8")
        except UnicodeEncodeError as error:
            return _moved(error)
    try:
        parsed = httpx.URL(endpoint.url)
        host = parsed.host
    except (httpx.InvalidURL, ValueError) as error:
        return error
    if not host or not parsed.scheme:
        return httpx.UnsupportedProtocol("Request URL is missing an 'http://' or 'https://' protocol.")
    if parsed.scheme not in SCHEMES:
        return httpx.UnsupportedProtocol(f"Request URL has an unsupported protocol '{parsed.scheme}://'.")
    if endpoint.timeout <= 0:
        return httpx.ConnectTimeout("")
    if parsed.port is not None and not 0 <= parsed.port <= 65535:
        return "ExceptionGroup"
    if parsed.port == 0:
        return httpx.ConnectError("All connection attempts failed")
    if endpoint.mode == Mode.API and not sendable(endpoint.key):
        return httpx.LocalProtocolError(f"Illegal header value {value.encode()!r}")
    return None


def _moved(error: UnicodeEncodeError) -> UnicodeEncodeError:
    """The model's name stands in the body after ``{"model":"``."""
    if error.encoding == "ascii":
        return error
    before = '{"model":"'
    text = before + error.object
    return UnicodeEncodeError(error.encoding, text, error.start + len(before), error.end + len(before), error.reason)


def of_exception(endpoint: Endpoint, error: BaseException) -> ServerView:
    """The view of a call that ended in ``error`` (an exception of the same HTTP client the server uses)."""
    if not isinstance(error, _CAUGHT):
        return ServerView(attempted=True, ok=False, crash=type(error).__name__)
    return _failed(endpoint, error)


def of_reply(endpoint: Endpoint, reply: Reply, count: int) -> ServerView:
    """The view of a complete reply to ``count`` texts."""
    try:
        vectors = _accept(endpoint, reply, count)
    except _CAUGHT as error:
        return _failed(endpoint, error)
    except Exception as error:  # noqa: BLE001 - whatever escapes here escapes there
        return ServerView(attempted=True, ok=False, crash=type(error).__name__)
    if vectors:
        return ServerView(attempted=True, ok=True)
    return _without_vectors(endpoint)


def _without_vectors(endpoint: Endpoint) -> ServerView:
    line = _no_vectors(endpoint)
    safe = redact(line, endpoint.secrets)
    return ServerView(attempted=True, ok=False, error=safe, leaks=safe != line)


def _no_vectors(endpoint: Endpoint) -> str:
    return f"mode={endpoint.mode} / POST {address(endpoint.url)} returned no embeddings"


def address(url: str) -> str:
    """``url`` as the server reports it: without user info and query, with its path, IPv6 brackets lost."""
    if not url:
        return "<unset>"
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return "<unparsable>"
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        host, port = parts.netloc.rpartition("@")[2], ""
    return urlunsplit((parts.scheme, host + port, parts.path, "", "")) or "<unset>"


def _failed(endpoint: Endpoint, error: BaseException) -> ServerView:
    line, text = _line(endpoint), _text(endpoint, error)
    # A secret with a quotation mark in it would be cut in two by the server's own cleaning of URLs, and the rest would
    # stay: single characters stand for secrets meanwhile.
    hidden = [
        secret for secret in sorted(endpoint.secrets, key=len, reverse=True) if redact(secret, [secret]) != secret
    ]
    signs = {chr(_SIGNS + place): secret for place, secret in enumerate(hidden)}
    masked = text
    for sign, secret in signs.items():
        masked = masked.replace(secret, sign)
    masked = _URL.sub(_clean, masked)
    for sign, secret in signs.items():
        masked = masked.replace(sign, f"[{len(secret)} characters removed]")
    line += f"{type(error).__name__}: "
    shown = redact(line + masked, endpoint.secrets)
    return ServerView(attempted=True, ok=False, error=shown, leaks=shown != line + _URL.sub(_clean, text))


def recorded(endpoint: Endpoint, error: BaseException) -> str:
    """The server's line about ``error`` with nothing removed: secrets may be in it, so nobody may see it unmasked."""
    return f"{_line(endpoint)}{type(error).__name__}: {_URL.sub(_clean, _text(endpoint, error))}"


def recorded_of_reply(endpoint: Endpoint, reply: Reply, count: int) -> tuple[str | None, Exception | None]:
    """As ``recorded``, of a complete reply, with the exception behind it; None for a reply that gives vectors."""
    try:
        vectors = _accept(endpoint, reply, count)
    except _CAUGHT as error:
        return recorded(endpoint, error), error
    return (None if vectors else _no_vectors(endpoint)), None


def _line(endpoint: Endpoint) -> str:
    return f"mode={endpoint.mode} / POST {address(endpoint.url)} failed: "


def _text(endpoint: Endpoint, error: BaseException) -> str:
    text = words(error)
    return text.replace(endpoint.url, address(endpoint.url)) if endpoint.url else text


def _clean(match: re.Match[str]) -> str:
    url = match.group(0)
    try:
        parts = urlsplit(url)
        private = parts.username is not None or parts.password is not None or parts.query or parts.fragment
    except ValueError:
        return "<unparsable>"
    return address(url) if private else url


def _accept(endpoint: Endpoint, reply: Reply, count: int) -> list[object] | None:
    """The vectors the server would accept; raises what its client raises."""
    request = httpx.Request("POST", endpoint.url)
    location = reply.headers.get("location", "")
    response = httpx.Response(
        reply.status,
        # only the place of a redirect enters a message; the body is decompressed already
        headers=[(b"location", location.encode("utf-8"))] if location else [],
        content=reply.body,
        request=request,
        extensions={"reason_phrase": reply.reason.encode("ascii", "ignore")},
    )
    response.raise_for_status()
    size = declared(reply)
    if size is not None and size > MAX_BODY:
        raise EmbeddingResponseError(f"embedding response declares {size} bytes, over the {MAX_BODY}-byte budget")
    if reply.overflow:
        # the server receives all of it before it refuses; we stopped, so the figure stays open
        raise EmbeddingResponseError(f"embedding response is over the {MAX_BODY}-byte budget")
    try:
        document = response.json()
    except RecursionError:
        raise EmbeddingResponseError("embedding response is nested deeper than the parser can follow") from None
    if not isinstance(document, dict):
        raise EmbeddingResponseError(f"embedding response is {_described(document)}, expected an object")
    if endpoint.mode == Mode.API:
        return _placed(document, count)
    return _checked(document.get("embeddings"), count)


def _placed(document: dict[str, object], count: int) -> list[object] | None:
    items = document["data"]
    if not isinstance(items, list):
        raise EmbeddingResponseError(f"embedding response `data` is {_described(items)}, expected a list")
    placed: list[object] = [None] * len(items)
    taken: set[int] = set()
    for position, item in enumerate(items):
        if not isinstance(item, dict):
            raise EmbeddingResponseError(f"embedding {position} is {_described(item)}, expected an object")
        index = item.get("index")
        if isinstance(index, bool) or not isinstance(index, int):
            raise EmbeddingResponseError(f"embedding {position} has index {_described(index)}, expected an integer")
        if not 0 <= index < len(items) or index in taken:
            span = f"embedding indices are not exactly 0..{len(items) - 1}"
            raise EmbeddingResponseError(f"{span}: item at position {position} carries index {index}")
        taken.add(index)
        placed[index] = item["embedding"]
    return _checked(placed, count)


def _checked(raw: object, count: int) -> list[object] | None:
    if raw is None or raw == []:
        return None
    if not isinstance(raw, list):
        raise EmbeddingResponseError(f"embedding response is {_described(raw)}, expected a list of vectors")
    if len(raw) > MAX_VECTORS:
        raise EmbeddingResponseError(
            f"embedding response carries {len(raw)} vectors, over the {MAX_VECTORS}-vector cap"
        )
    if count and len(raw) != count:
        raise EmbeddingResponseError(f"embedding response carries {len(raw)} vectors for {count} texts")
    width = 0  # the first vector teaches the width to the rest
    for position, vector in enumerate(raw):
        _vector(vector, position, width)
        width = width or len(vector)
    return raw


def _vector(vector: object, position: int, expected: int) -> None:
    if not isinstance(vector, list):
        raise EmbeddingResponseError(f"embedding {position} is {_described(vector)}, expected a list of numbers")
    width = len(vector)
    if width == 0:
        raise EmbeddingResponseError(f"embedding {position} is empty")
    if width > MAX_DIMENSION:
        raise EmbeddingResponseError(
            f"embedding {position} has {width} dimensions, over the {MAX_DIMENSION}-dimension cap"
        )
    if expected and width != expected:
        raise EmbeddingResponseError(f"embedding {position} has {width} dimensions, expected {expected}")
    for index, value in enumerate(vector):
        where = f"embedding {position}[{index}]"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise EmbeddingResponseError(f"{where} is {_described(value)}, expected a number")
        try:
            number = float(value)
        except OverflowError:
            raise EmbeddingResponseError(f"{where} does not fit in float64") from None
        if not math.isfinite(number):
            raise EmbeddingResponseError(f"{where} is not finite")
        try:
            struct.pack("<f", number)
        except OverflowError:
            raise EmbeddingResponseError(f"{where} does not fit in float32") from None


def _described(value: object) -> str:
    return type(value).__name__
