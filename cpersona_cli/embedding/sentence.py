"""The readable sentence inside a failed reply, and the structured codes beside it.

Servers and gateways wrap each other's errors: an object in a string in an object. This module unwraps them level by
level and keeps the deepest text that a person can read. What it returns came from outside: it is data to be quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from cpersona_cli.record import record
from cpersona_cli.text import FOREIGN_LIMIT, redact, safe

#: Bytes of an error reply that are looked at; no server's sentence stands further back.
ERROR_BYTES = 1 << 20

#: What stands for a part that is not shown. A repeated text is told by so many characters, or by so many of its middle.
_HIDDEN, _SHORT, _RUN = "[…]", 8, 24

_DEPTH = 8
_LONGEST = 1000
_TEXT_KEYS = ("message", "error", "detail", "msg", "error_description", "title", "reason", "raw", "metadata", "errors")
_CODE_KEYS = ("code", "type", "error_type", "status", "error_code")
# Things that look like somebody's account, key or request: masked even where they are not our own secrets.
_PRIVATE = re.compile(
    r"\b(?:sk|pk|rk|gsk|hf|xai|key|org|proj|user|acct|req|chatcmpl)[-_][A-Za-z0-9*._-]{4,}|\bBearer\s+\S+"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[A-Za-z0-9+/_=-]{40,}"
    r"|\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+|[^\s'\"`(]*\*{3,}[^\s'\"`),]*",
    re.IGNORECASE,
)
# The value of a message key in something like JSON that no parser takes: cut off, or a Python dictionary's text.
_NEAR_JSON = re.compile(r"""['"](?:message|error|detail|msg)['"]\s*:\s*(?P<quote>['"])(?P<text>.*?)(?<!\\)(?P=quote)""")
_STRUCTURE = re.compile(
    r"""['"]\s*:\s*(?:["'{\[\d-]|[Nn](?:ull|one)\b|[Tt]rue\b|[Ff]alse\b)|\bTraceback\b|\bat 0x[0-9a-f]+|\\["']"""
)
# One word alone, such as `unauthorized`, where there is no sentence.
_WORD = re.compile(r"(?!(?:null|none|true|false|undefined)\b)[A-Za-z][a-z]{3,}[.!]?", re.IGNORECASE)
_PRINTED_MARKS = "{}[]\\|=<>"
# Scripts that put no spaces between words.
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@record(kw_only=True)
class ErrorInfo:
    """What a reply says of its own failure.

    ``message`` is the deepest readable sentence, empty where there is none; ``raw`` is the text for recognising kinds,
    which may be no sentence and is never shown; ``codes`` are all structured codes and types found on the way, lower
    case, outermost first; ``form`` is the shape of the envelope: ``object`` (``{"error": {…}}``), ``string``
    (``{"error": "…"}``), ``flat`` (``{"message": …, "code": …}``), ``detail``, ``json`` (none of these), ``html``,
    ``text`` or ``empty``.
    """

    message: str
    codes: tuple[str, ...]
    form: str
    raw: str = ""


def read_error(body: bytes, content_type: str = "") -> ErrorInfo:
    """What ``body`` says of the failure. Total: any bytes give an answer, in bounded time."""
    text = _decoded(body[:ERROR_BYTES]).strip()
    if not text:
        return ErrorInfo(message="", codes=(), form="empty")
    document = _json(text)
    if document is None and _is_page(text, content_type):
        title = _title(text)
        return ErrorInfo(message=title if _is_plain(title) else "", codes=(), form="html", raw=title)
    candidates = list(_candidates(text if document is None else document, 0))
    readable = [pair for pair in candidates if _is_sentence(pair[1])]
    readable = readable or [pair for pair in candidates if _WORD.fullmatch(pair[1])]
    # the deepest level wins; on one level the first
    message = max(readable, key=lambda pair: pair[0])[1] if readable else ""
    raw = message or " ".join(candidate for _, candidate in candidates)[:2000]
    if document is None:
        codes = tuple(_codes(text, 0))
        return ErrorInfo(message=message, codes=codes, form="text", raw=raw)
    return ErrorInfo(message=message, codes=tuple(_codes(document, 0)), form=_form(document), raw=raw)


def quotable(message: str, secrets: Iterable[str] = ()) -> str:
    """``message`` as it may be shown: one line, no secrets, no account names, at most 300 characters."""
    hidden = tuple(secrets)
    masked = _PRIVATE.sub(_HIDDEN, _without_pieces(redact(message, hidden), hidden))
    return safe(re.sub(r"\s+", " ", masked).strip(), FOREIGN_LIMIT)


def unquoted(message: str, texts: Sequence[str]) -> str:
    """``message`` without what it repeats of the ``texts`` that were sent: whole ones, and runs of ``_RUN`` characters.

    Memories are told to nobody who did not ask for them. Quotes as JSON escapes them are known, too.
    """
    if not message:
        return ""
    forms = [
        form for text in texts for form in {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    ]
    for form in sorted(forms, key=len, reverse=True):
        if len(form) >= _SHORT:
            message = message.replace(form, _HIDDEN)
    sent = "\n".join(forms)
    shown, at = [], 0
    while at < len(message):
        end = at + _RUN
        if end > len(message) or message[at:end] not in sent:
            shown.append(message[at])
            at += 1
            continue
        while end < len(message) and message[at : end + 1] in sent:
            end += 1
        shown.append(_HIDDEN)
        at = end
    return "".join(shown)


def _without_pieces(text: str, secrets: tuple[str, ...], piece: int = 8) -> str:
    """``text`` with the words masked that hold ``piece`` characters of a secret in a row."""
    pieces = {secret[at : at + piece] for secret in secrets for at in range(len(secret) - piece + 1)}
    starts = [at for at in range(len(text) - piece + 1) if text[at : at + piece] in pieces] if pieces else []
    shown, end = [], 0
    for at in starts:
        if at + piece <= end:
            continue
        begin = max(end, text.rfind(" ", 0, at) + 1)
        shown.append(text[end:begin])
        if begin > end or not end:
            shown.append(_HIDDEN)
        end = at + piece
        while end < len(text) and not text[end].isspace():
            end += 1
    return "".join([*shown, text[end:]])


def _decoded(body: bytes) -> str:
    encoding = json.detect_encoding(body)
    # a text in UTF-8 may hold NULs where the guess by NULs goes astray
    try:
        return body.decode(encoding)
    except UnicodeDecodeError:
        return body.decode("utf-8", "replace")


def _json(text: str) -> object:
    if text[:1] not in set('{["'):
        return None
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def _is_page(text: str, content_type: str) -> bool:
    start = text[:200].lower()
    return "html" in content_type.lower() or start.startswith(("<!doctype", "<html", "<head", "<body", "<title"))


def _form(document: object) -> str:
    if not isinstance(document, dict):
        return "json"
    error = document.get("error")
    if isinstance(error, dict):
        return "object"
    if isinstance(error, str):
        return "string"
    if "message" in document:
        return "flat"
    return "detail" if "detail" in document else "json"


def _candidates(node: object, depth: int) -> Iterator[tuple[int, str]]:
    """Texts that may be the message, with how deep they stand."""
    if depth > _DEPTH:
        return
    if isinstance(node, str):
        inner = _unwrapped(node)
        if inner is not None:
            yield from _candidates(inner, depth + 1)
        else:
            for match in _NEAR_JSON.finditer(node[: 4 * _LONGEST]):
                yield depth + 1, match["text"].replace("\\", "").strip()
        yield depth, node[: 2 * _LONGEST].strip()
    elif isinstance(node, dict):
        for key in _TEXT_KEYS:
            if key in node:
                yield from _candidates(node[key], depth + 1)
    elif isinstance(node, list):
        for item in node[:4]:
            # FastAPI's list of complaints: the place belongs to the sentence
            if isinstance(item, dict) and isinstance(item.get("msg"), str) and isinstance(item.get("loc"), list):
                place = ".".join(str(part) for part in item["loc"][:6] if isinstance(part, str | int))
                yield depth + 1, f"{place}: {item['msg']}"
            else:
                yield from _candidates(item, depth + 1)


def _unwrapped(text: str) -> object:
    """A JSON document inside a text: the whole of it, or what follows a prefix such as ``HTTP 400:``."""
    whole = _json(text.strip())
    if whole is not None:
        return whole
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    inner = text[start : end + 1]
    found = _json(inner)
    if found is None and '\\"' in inner:
        found = _json(inner.replace('\\"', '"'))
    return found


def _codes(node: object, depth: int) -> Iterator[str]:
    if depth > _DEPTH:
        return
    if isinstance(node, dict):
        for key in _CODE_KEYS:
            value = node.get(key)
            if isinstance(value, str | int) and not isinstance(value, bool) and _is_code(value):
                yield str(value).lower()
        for key in _TEXT_KEYS:
            if key in node:
                yield from _codes(node[key], depth + 1)
    elif isinstance(node, list):
        for item in node[:4]:
            yield from _codes(item, depth + 1)
    elif isinstance(node, str):
        yield from _codes(_unwrapped(node), depth + 1)


def _is_code(value: str | int) -> bool:
    # LiteLLM writes the word None; a number without end has no text at all
    return abs(value) < 10**9 if isinstance(value, int) else value.lower() not in {"", "none"} and len(value) < 100


def _is_plain(text: str) -> bool:
    """No structure, no dump."""
    if len(text) > _LONGEST or text[:1] in set("{[<") or _STRUCTURE.search(text):
        return False
    return sum(character in _PRINTED_MARKS for character in text) <= len(text) / 15


def _is_sentence(text: str) -> bool:
    """Plain words for a person, not a bare identifier."""
    if not _is_plain(text):
        return False
    if len(_SPACELESS.findall(text)) >= 4:
        return True
    return len([word for word in text.split() if re.search(r"[^\W\d_]{2}", word)]) >= 2


def _title(html: str) -> str:
    match = re.search(r"<title[^>]{0,200}>([^<]*)", html[:20000], re.IGNORECASE)
    if match and match.group(1).strip():
        return " ".join(match.group(1).split())[:_LONGEST]
    visible = re.sub(r"<(script|style)\b.*?(?:</\1>|$)|<[^>]*>", " ", html[:5000], flags=re.IGNORECASE | re.DOTALL)
    return " ".join(visible.split())[:200]
