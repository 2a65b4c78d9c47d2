"""The readable sentence inside a failed reply, and the structured codes beside it.

Servers and gateways wrap each other's errors: an object in a string in an object. This module unwraps them level by
level and keeps the deepest text that a person can read. What it returns came from outside: it is data to be quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from cpersona_cli.text import FOREIGN_LIMIT, redact, safe

_DEPTH = 8
_TEXT_KEYS = ("message", "error", "detail", "msg", "error_description", "title", "reason", "raw", "metadata", "errors")
_CODE_KEYS = ("code", "type", "error_type", "status", "error_code")
# Things that look like somebody's account, key or request: masked even where they are not our own secrets.
_PRIVATE = re.compile(
    r"\b(?:sk|pk|rk|gsk|hf|xai|key|org|proj|user|acct|req|chatcmpl)[-_][A-Za-z0-9*._-]{4,}|\bBearer\s+\S+"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[A-Za-z0-9+/_=-]{40,}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """What a reply says of its own failure.

    ``message`` is the deepest readable sentence, raw (for recognising); ``codes`` are all structured codes and types
    found on the way, lower case, outermost first; ``form`` is the shape of the envelope: ``object``
    (``{"error": {…}}``), ``string`` (``{"error": "…"}``), ``flat`` (``{"message": …, "code": …}``), ``detail``,
    ``json`` (none of these), ``html``, ``text`` or ``empty``.
    """

    message: str
    codes: tuple[str, ...]
    form: str
    document: object = None


def read_error(body: bytes, content_type: str = "") -> ErrorInfo:
    """What ``body`` says of the failure. Total: any bytes give an answer."""
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return ErrorInfo(message="", codes=(), form="empty")
    document = _json(text)
    if document is None:
        if "html" in content_type.lower() or text[:200].lower().lstrip().startswith(("<!doctype", "<html", "<head")):
            return ErrorInfo(message=_title(text), codes=(), form="html")
        return ErrorInfo(message=text[:2000], codes=(), form="text")
    candidates = list(_candidates(document, 0))
    readable = [pair for pair in candidates if _is_sentence(pair[1])]
    readable = readable or [pair for pair in candidates if re.fullmatch(r"[A-Za-z][a-z]{3,}[.!]?", pair[1])]
    # the deepest level wins; on one level the first
    message = max(readable, key=lambda pair: pair[0])[1] if readable else ""
    return ErrorInfo(message=message, codes=tuple(_codes(document, 0)), form=_form(document), document=document)


def quotable(message: str, secrets: tuple[str, ...] = ()) -> str:
    """``message`` as it may be shown: one line, no secrets, no account names, at most 300 characters."""
    masked = _PRIVATE.sub("[…]", redact(message, secrets))
    return safe(re.sub(r"\s+", " ", masked).strip(), FOREIGN_LIMIT)


def _json(text: str) -> object:
    if text[:1] not in '{["':
        return None
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


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
        yield depth, node.strip()
    elif isinstance(node, dict):
        for key in _TEXT_KEYS:
            if key in node:
                yield from _candidates(node[key], depth + 1)
    elif isinstance(node, list):
        for item in node[:4]:
            # FastAPI's list of complaints: the place belongs to the sentence
            if isinstance(item, dict) and isinstance(item.get("msg"), str) and isinstance(item.get("loc"), list):
                yield depth + 1, f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}"
            else:
                yield from _candidates(item, depth + 1)


def _unwrapped(text: str) -> object:
    """A JSON document inside a text: the whole of it, or what follows a prefix such as ``HTTP 400:``."""
    whole = _json(text.strip())
    if whole is not None:
        return whole
    start = text.find("{")
    if start < 0:
        return None
    end = text.rfind("}")
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
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value).lower() not in {"", "none"}:
                yield str(value).lower()
        for key in _TEXT_KEYS:
            if key in node:
                yield from _codes(node[key], depth + 1)
    elif isinstance(node, list):
        for item in node[:4]:
            yield from _codes(item, depth + 1)
    elif isinstance(node, str):
        yield from _codes(_unwrapped(node), depth + 1)


def _is_sentence(text: str) -> bool:
    """Plain words for a person: no structure, no dump, not a bare identifier."""
    words = re.findall(r"[^\W\d_]{2,}", text)
    if len(words) < 2 or len(text) > 1000:
        return False
    if text[:1] in "{[<" or re.search(r'":\s*["{\[\d]|\bTraceback\b|\bat 0x[0-9a-f]+', text):
        return False
    return sum(character in "{}[]\\|=" for character in text) <= len(text) / 15


def _title(html: str) -> str:
    match = re.search(r"<title[^>]*>(.*?)</title>", html[:20000], re.IGNORECASE | re.DOTALL)
    if match:
        return " ".join(match.group(1).split())
    visible = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", html[:5000], flags=re.IGNORECASE | re.DOTALL)
    return " ".join(visible.split())[:200]
