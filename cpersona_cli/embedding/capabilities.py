"""What the server would learn of its backend, asked and judged as 2.6.14 asks and judges it.

The fingerprint that ``GET /capabilities`` answers with is what the server writes beside every vector from schema 18
on, so nothing is taken for one that the server would refuse. (``identify`` asks many kinds of servers for what may be
shown, and is laxer.) Of a backend that answers ``POST /count_tokens``, servers from 2.6.0 on build the nodes of long
memories.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit, urlunsplit

from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.transport import open_http
from cpersona_cli.record import record

#: Bytes past which an answer is not read, and the longest time for it in seconds.
_CAP, _SECONDS = 1 << 20, 10.0


@record(kw_only=True)
class Stated:
    """What a backend says of itself; ``fingerprint`` and ``model`` are raw text, to be made safe before it is shown.

    ``why`` says why there is no fingerprint, where there is none.
    """

    fingerprint: str = ""
    model: str = ""
    dimensions: int | None = None
    why: str = ""


async def capabilities(endpoint: Endpoint) -> Stated:
    """Ask the backend of ``endpoint`` what it is. Never raises but for cancellation."""
    url = beside(endpoint, "capabilities")
    if url is None:
        why = "mode api has no such question" if endpoint.mode == Mode.API else "the URL does not end in /embed"
        return Stated(why=why)
    try:
        return _judged(await _answer(endpoint, "GET /capabilities", url))
    except _UnusableError as error:
        return Stated(why=str(error))
    except Exception as error:  # noqa: BLE001 - no answer is an answer here
        return Stated(why=f"GET /capabilities failed: {type(error).__name__}")


async def counts_tokens(endpoint: Endpoint) -> bool:
    """Whether the backend of ``endpoint`` counts tokens: of one made-up word. Never raises but for cancellation."""
    url = beside(endpoint, "count_tokens")
    if url is None:
        return False
    try:
        return _counted(await _answer(endpoint, "POST /count_tokens", url, {"texts": ["word"]}))
    except Exception:  # noqa: BLE001 - one that fails counts nothing
        return False


def _counted(document: object) -> bool:
    """Whether an answer is one count for the one text."""
    found = document.get("token_info") if isinstance(document, dict) else None
    if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], dict):
        return False
    count = found[0].get("count")
    return isinstance(count, int) and not isinstance(count, bool) and count > 0


class _UnusableError(Exception):
    """The answer is none the server would take; the message says why."""


def beside(endpoint: Endpoint, name: str) -> str | None:
    """The address of another route of the same server, its query kept; None where CPersona asks for none."""
    if endpoint.mode != Mode.HTTP:
        return None
    try:
        parts = urlsplit(endpoint.url)
    except ValueError:
        return None
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path.removesuffix("embed") + name)) if path.endswith("/embed") else None


async def _answer(endpoint: Endpoint, question: str, url: str, sent: object = None) -> object:
    """The JSON that ``url`` answers with; ``question`` is the method and the route, in the words of people."""
    received = bytearray()
    # packed answers could outgrow the cap within one piece
    headers = {"Accept-Encoding": "identity"}
    async with (
        open_http(endpoint, min(_SECONDS, max(endpoint.timeout, 0.1))) as client,
        client.stream(question.split(maxsplit=1)[0], url, json=sent, headers=headers) as response,
    ):
        if not response.is_success:
            raise _UnusableError(f"{question} is answered with status {response.status_code}")
        async for chunk in response.aiter_bytes():
            received += chunk
            if len(received) > _CAP:
                raise _UnusableError(f"the answer to {question} is too long")
    try:
        document: object = json.loads(bytes(received))
    except (ValueError, RecursionError):
        raise _UnusableError(f"the answer to {question} is not JSON") from None
    return document


def _judged(document: object) -> Stated:
    """The server's own rules: a fingerprint or a list of what could not be established, and never both."""
    identity = document.get("identity") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(identity, dict):
        raise _UnusableError("the answer to GET /capabilities holds no identity")
    missing = document.get("incomplete", [])
    if not isinstance(missing, list) or not all(isinstance(name, str) for name in missing):
        raise _UnusableError("the answer to GET /capabilities does not list what it could not establish")
    fingerprint = document.get("fingerprint")
    if fingerprint is not None and (not isinstance(fingerprint, str) or not fingerprint):
        raise _UnusableError("the fingerprint in the answer to GET /capabilities is no text")
    if (fingerprint is None) != bool(missing):
        raise _UnusableError("the answer to GET /capabilities contradicts itself about its fingerprint")
    model = identity.get("model")
    return Stated(
        fingerprint=fingerprint or "",
        model=model if isinstance(model, str) else "",
        dimensions=_number(identity.get("dimensions")),
        why="" if fingerprint else "the backend could not establish all of its identity",
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
