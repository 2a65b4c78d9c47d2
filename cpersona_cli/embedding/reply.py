"""From one HTTP reply to a kind: first the status with the body's structured codes, then the body's shape.

Pure functions. The tables are ordered; the first row that fits decides. Rows by wording only choose between kinds of
failure: a reply with an error status can never become a success here, and one without can never become a failure.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Mode, Reply
from cpersona_cli.embedding.sentence import ErrorInfo, read_error
from cpersona_cli.record import record

MEBIBYTE = 1 << 20


@record(kw_only=True)
class Sent:
    """What the reply answers: the mode, how many texts, how many bytes of body, whether a proxy stood between."""

    mode: str
    count: int
    size: int = 0
    proxied: bool = False


@record(kw_only=True)
class Head:
    """The verdict on an error reply. ``limit`` is a number the server stated with it."""

    kind: Kind
    info: ErrorInfo
    retry_after: float | None = None
    limit: int | None = None


# Structured codes and types (lower case) that name the kind whatever the status.
_CODES: dict[str, Kind] = {
    "insufficient_quota": Kind.QUOTA,
    "invalid_api_key": Kind.AUTH,
    "authentication_error": Kind.AUTH,
    "auth_error": Kind.AUTH,
    "no_db_connection": Kind.AUTH,
    "context_length_exceeded": Kind.INPUT_TOO_LARGE,
    "exceed_context_size_error": Kind.INPUT_TOO_LARGE,
    "array_above_max_length": Kind.BATCH_TOO_LARGE,
    "max_tokens_per_request": Kind.BATCH_TOO_LARGE,
    "unavailable_error": Kind.LOADING,
    "rate_limit_exceeded": Kind.THROTTLED,
}

# Wordings, tried in this order on replies that failed already.
_WORDINGS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (Kind.TLS, r"plain http request was sent to|http request to an https server"),
        (Kind.POOLING_NONE, r"pooling type .?none"),
        (
            Kind.NOT_AN_EMBEDDING_MODEL,
            (
                r"not (?:an? )?embedding|does not support (?:the )?.?embed|no embedding support"
                r"|not allowed to generate embeddings"
            ),
        ),
        (Kind.NO_MODEL_LOADED, r"\bno models? (?:is |are )?(?:currently )?loaded"),
        (Kind.SERVER_ERROR, r"failed to load model|error loading model"),
        (Kind.NAN_FOR_INPUT, r"\bNaN\b|\bInf values\b"),
        (
            Kind.BATCH_TOO_LARGE,
            (
                r"batch size\b.*(?:maximum|larger|exceed|limit)|array too long|too many (?:inputs|texts)"
                r"|length limit exceeded|max(?:imum)? batch|tokens per request"
            ),
        ),
        (
            Kind.INPUT_TOO_LARGE,
            (
                r"too large to process|context length|context size|maximum .{0,30}\btokens\b|must have less than \d+"
                r"|exceeds? .{0,30}(?:context|token)|exceed n_ctx|too long"
            ),
        ),
        (
            Kind.NO_BATCHING,
            (
                r"expected (?:a )?string .{0,40}(?:got|but) .{0,20}(?:array|list)|must be a string"
                r"|string at field .?input|\binput\b.{0,12}: input should be a valid string"
            ),
        ),
        (
            Kind.WRONG_CONTRACT,
            (
                r"missing field .?inputs|'texts' must be|\btexts\b.{0,20}required|model ''"
                r"|(?:parameter:|missing) 'input'"
                r"|\"input\" or \"content\" must be|field required|missing request body"
                r"|input should be a valid (?:list|string)"
            ),
        ),
        (
            Kind.MODEL_NOT_FOUND,
            (
                r"\bmodel\b.{0,80}(?:not found|does not exist|not exist|is not (?:a )?valid|\bis unknown)"
                r"|(?:invalid|unknown|no such) model|not a valid model|provide a model|model is required|missing model"
            ),
        ),
        (Kind.QUOTA, r"insufficient (?:quota|credit|balance|funds)"),
        (Kind.AUTH, r"api[ _-]?key|unauthori[sz]ed|authentication|no cookie auth"),
        (
            Kind.LOADING,
            (
                r"^loading\b|\b(?:is|are|still|currently) (?:being )?load(?:ing|ed)\b|not (?:yet )?initiali[sz]ed"
                r"|not (?:yet )?ready|starting up|warming"
            ),
        ),
        (Kind.THROTTLED, r"overloaded|rate limit|too many requests|try again in|server busy"),
        (Kind.ROUTE_NOT_FOUND, r"unexpected endpoint|no such (?:route|endpoint)|method not allowed"),
        (Kind.UPSTREAM_FAILED, r"\bprovider\b|\bupstream\b|bad gateway"),
    )
)

# Statuses that name no kind by themselves, so that wording may; 200 stands for an error inside a success.
_VAGUE = frozenset({400, 404, 413, 422, 424, 500, 501, 503})
# What a proxy answers on its own behalf, and not for the server behind it.
_PROXY_PAGES = frozenset({400, 403, 502, 503, 504, 511})


def judge_failure(reply: Reply, sent: Sent) -> Head:
    """The kind of a reply whose status is not a success (or whose success body is nothing but an error)."""
    info = read_error(reply.body, reply.headers.get("content-type", ""))
    kind = _kind(reply, sent, info)
    wait = retry_after(reply.headers, info.raw, time.time)
    return Head(kind=kind, info=info, retry_after=wait, limit=stated_limit(kind, info))


def _kind(reply: Reply, sent: Sent, info: ErrorInfo) -> Kind:
    status = reply.status
    if not 200 <= status < 600:
        return Kind.NOT_HTTP
    if 300 <= status < 400:
        return Kind.REDIRECTED
    if status == 407:
        return Kind.PROXY
    for code in info.codes:
        if code in _CODES:
            return _CODES[code]
    if info.form == "html" and sent.proxied and (status < 300 or status in _PROXY_PAGES):
        return Kind.PROXY
    if status in {401, 403}:
        return Kind.NOT_AN_EMBEDDING_MODEL if _worded(info) is Kind.NOT_AN_EMBEDDING_MODEL else Kind.AUTH
    if status == 402:
        return Kind.QUOTA
    if status in {429, 529}:
        return Kind.THROTTLED
    return _by_structure(status, sent, info) or _by_wording(status, sent, info) or _by_status(reply, sent, info)


def _by_structure(status: int, sent: Sent, info: ErrorInfo) -> Kind | None:
    # llama-server marks its own missing flag with a code and a type; the same words from Ollama mean a chat model
    if info.form == "object" and "not_supported_error" in info.codes:
        return Kind.EMBEDDINGS_DISABLED
    if status == 400 and sent.size > MEBIBYTE and info.form in {"string", "text"}:
        return Kind.BATCH_TOO_LARGE if sent.count > 1 else Kind.INPUT_TOO_LARGE
    return None


def _worded(info: ErrorInfo) -> Kind | None:
    return next((kind for kind, pattern in _WORDINGS if pattern.search(info.raw)), None)


def _by_wording(status: int, sent: Sent, info: ErrorInfo) -> Kind | None:
    if status not in _VAGUE and status >= 300:
        return None
    kind = _worded(info)
    if kind is not None:
        return kind
    if sent.mode == Mode.HTTP and status == 400 and re.match(r"invalid input(?: type)?\b", info.raw, re.IGNORECASE):
        # an OpenAI-compatible server misses `input`; the same words in its own mode speak of the texts
        return Kind.WRONG_CONTRACT
    if "model_not_found" in info.codes or "notfounderror" in info.codes:
        return Kind.MODEL_NOT_FOUND
    return None


def _by_status(reply: Reply, sent: Sent, info: ErrorInfo) -> Kind:
    status = reply.status
    if status < 300:
        return Kind.ERROR_IN_SUCCESS
    if status in {404, 405, 410, 415, 501}:
        return Kind.ROUTE_NOT_FOUND
    if status == 413:
        return Kind.BATCH_TOO_LARGE if sent.count > 1 else Kind.INPUT_TOO_LARGE
    if status == 503:
        told = "retry-after" in reply.headers
        return Kind.THROTTLED if told else Kind.LOADING if info.form != "html" else Kind.SERVER_ERROR
    if status in {502, 504}:
        return Kind.PROXY if sent.proxied else Kind.UPSTREAM_FAILED
    return Kind.REJECTED if status < 500 and status not in {408, 424, 425, 499} else Kind.SERVER_ERROR


_SPAN = re.compile(
    r"(?:try again|retry|wait)\D{0,20}((?:\d{1,9}(?:\.\d{1,9})?\s{0,3}(?:ms|milliseconds?|s(?:ec(?:ond)?s?)?"
    r"|m(?:in(?:ute)?s?)?|h(?:ours?)?)(?![a-z])\s{0,3}|\d{1,9}[hm](?=\d))+)",
    re.IGNORECASE | re.ASCII,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(mil|ms|[smh])", re.IGNORECASE | re.ASCII)
_UNITS: Mapping[str, float] = {"ms": 0.001, "mil": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
#: A wait longer than this (seconds; a year) is no statement about time.
_LONGEST_WAIT = 366 * 86400.0


def retry_after(headers: Mapping[str, str], message: str = "", now: Callable[[], float] | None = None) -> float | None:
    """Seconds to wait as the server told, by header (seconds, milliseconds or a date) or in its sentence.

    ``now`` is the clock for dates, in Unix seconds; without it a date says nothing.
    """
    told = _told(headers, now)
    if told is None:
        match = _SPAN.search(message)
        parts = _PART.findall(match.group(1)) if match else []
        told = sum(float(number) * _UNITS[unit.lower()] for number, unit in parts) if parts else None
    return told if told is not None and 0 <= told <= _LONGEST_WAIT else None


def _told(headers: Mapping[str, str], now: Callable[[], float] | None) -> float | None:
    milliseconds, plain = headers.get("retry-after-ms", "").strip(), headers.get("retry-after", "").strip()
    number = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
    if number.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    if number.fullmatch(plain):
        return float(plain)
    if not plain or now is None:
        return None
    try:
        return max(0.0, parsedate_to_datetime(plain).timestamp() - now())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


_LIMITS: Mapping[Kind, re.Pattern[str]] = {
    Kind.BATCH_TOO_LARGE: re.compile(
        r"(?:maximum allowed batch size|max(?:imum length)?|larger than|limit of)\D{0,12}(\d+)\b(?! tokens)",
        re.IGNORECASE,
    ),
    Kind.INPUT_TOO_LARGE: re.compile(
        r"(?:current batch size:|maximum context length is|less than|n_ctx\D{0,20}|limit of|maximum of)\s*(\d+)",
        re.IGNORECASE,
    ),
}


def stated_limit(kind: Kind, info: ErrorInfo) -> int | None:
    """The number a refusal names: texts for a batch, tokens for a text."""
    pattern = _LIMITS.get(kind)
    match = pattern.search(info.raw) if pattern else None
    return int(match.group(1)[:9]) if match else None
