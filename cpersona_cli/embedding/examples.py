"""A typical end of a call for each kind, and the line that the server would record of it: for showing, not judging.

What a real call brings differs in its details (an errno, a server's sentence). The line is made by the server's own
rules from an exception or a reply like those that were measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx

from cpersona_cli.embedding import server_view
from cpersona_cli.embedding.configuration import sendable
from cpersona_cli.embedding.kinds import MEANINGS, Kind, Stage
from cpersona_cli.embedding.model import Endpoint, Mode, Reply
from cpersona_cli.record import record, replace

#: Kinds of which no typical call can be made up.
_UNTYPICAL = frozenset({Kind.INPUT_INVALID, Kind.INTERNAL, Kind.CONFIG_MODE, Kind.CONFIG_CLIENT, Kind.NO_BATCHING})

#: Kinds that can be replayed.
REPLAYABLE = tuple(kind for kind in Kind if kind not in _UNTYPICAL)


@record(kw_only=True)
class Example:
    """What the server makes of a typical call.

    ``recorded`` is its line with nothing removed, secrets included: it is for the server's own process alone, and must
    be masked before anybody sees it. ``probe`` is the line of releases before 2.5.9, None where they notice nothing.
    """

    ok: bool
    recorded: str | None = None
    probe: str | None = None
    attempted: bool = True


def example(kind: Kind, endpoint: Endpoint) -> Example:
    """The typical end ``kind`` of a call to ``endpoint``. Raises ``ValueError`` for one that cannot be made up."""
    if kind not in REPLAYABLE:
        raise ValueError(f"a call that ends as {kind} cannot be made up")
    if kind is Kind.DISABLED:
        return Example(ok=False, attempted=False)
    if MEANINGS[kind].stage in {Stage.DONE, Stage.MEANING}:
        return Example(ok=True)
    if kind is Kind.CONFIG_URL:
        return _of_url(endpoint)
    if kind is Kind.CONFIG_CREDENTIAL:
        return _of_key(endpoint)
    end = _EXCEPTIONS.get(kind) or _reply(kind, endpoint.mode)
    if isinstance(end, Exception):
        return _of_error(endpoint, end)
    line, error = server_view.recorded_of_reply(endpoint, end, 1)
    refused = error if isinstance(error, httpx.HTTPStatusError) else None
    probe = _probe(endpoint, refused) if refused is not None or endpoint.mode == Mode.API else None
    return Example(ok=False, recorded=line, probe=probe)


def _of_error(endpoint: Endpoint, error: Exception) -> Example:
    recorded = server_view.recorded(endpoint, error)
    return Example(ok=False, recorded=recorded, probe=_probe(endpoint, error))


def _of_url(endpoint: Endpoint) -> Example:
    """The address as it is, if no call can be made to it; else none at all."""
    error = server_view.before_sending(endpoint)
    if not isinstance(error, Exception):
        endpoint = replace(endpoint, url="")
        error = httpx.UnsupportedProtocol("Request URL is missing an 'http://' or 'https://' protocol.")
    return _of_error(endpoint, error)


def _of_key(endpoint: Endpoint) -> Example:
    """The key as it is, if it cannot be sent; else none at all."""
    called = replace(endpoint, mode=Mode.API)
    try:
        raw = f"Bearer {called.key}".encode("ascii")
    except UnicodeEncodeError as error:
        return _of_error(called, error)
    if sendable(called.key):
        called, raw = replace(called, key=""), b"Bearer "
    return _of_error(called, httpx.LocalProtocolError(f"Illegal header value {raw!r}"))


def _probe(endpoint: Endpoint, error: Exception | None) -> str:
    """What the second request of old releases finds: they send it in mode http only, and remove nothing from it."""
    if endpoint.mode != Mode.HTTP or not endpoint.url:
        return "embedding client unavailable"
    return f"mode={endpoint.mode} / POST {endpoint.url} failed: {error}"


_EXCEPTIONS: Mapping[Kind, Exception] = {
    Kind.DNS: httpx.ConnectError("[Errno -2] Name or service not known"),
    Kind.RESOLVER: httpx.ConnectError("[Errno -3] Temporary failure in name resolution"),
    Kind.REFUSED: httpx.ConnectError("All connection attempts failed"),
    Kind.UNROUTABLE: httpx.ConnectError("All connection attempts failed"),
    Kind.CONNECT_TIMEOUT: httpx.ConnectTimeout(""),
    Kind.TLS: httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1016)"),
    Kind.PROXY: httpx.ProxyError("502 Bad Gateway"),
    Kind.TIMEOUT: httpx.ReadTimeout(""),
    Kind.DISCONNECTED: httpx.RemoteProtocolError("Server disconnected without sending a response."),
    Kind.NOT_HTTP: httpx.RemoteProtocolError("illegal status line: bytearray(b'SSH-2.0-OpenSSH_9.6')"),
}

_STATUS: Mapping[Kind, tuple[int, str]] = {
    Kind.REDIRECTED: (307, "Temporary Redirect"),
    Kind.AUTH: (401, "Unauthorized"),
    Kind.ROUTE_NOT_FOUND: (404, "Not Found"),
    Kind.MODEL_NOT_FOUND: (404, "Not Found"),
    Kind.NOT_AN_EMBEDDING_MODEL: (400, "Bad Request"),
    Kind.NO_MODEL_LOADED: (400, "Bad Request"),
    Kind.EMBEDDINGS_DISABLED: (501, "Not Implemented"),
    Kind.POOLING_NONE: (400, "Bad Request"),
    Kind.WRONG_CONTRACT: (422, "Unprocessable Entity"),
    Kind.BATCH_TOO_LARGE: (413, "Request Entity Too Large"),
    Kind.INPUT_TOO_LARGE: (413, "Request Entity Too Large"),
    Kind.NAN_FOR_INPUT: (500, "Internal Server Error"),
    Kind.THROTTLED: (429, "Too Many Requests"),
    Kind.QUOTA: (429, "Too Many Requests"),
    Kind.LOADING: (503, "Service Unavailable"),
    Kind.UPSTREAM_FAILED: (502, "Bad Gateway"),
    Kind.REJECTED: (400, "Bad Request"),
    Kind.SERVER_ERROR: (500, "Internal Server Error"),
}


def _reply(kind: Kind, mode: str) -> Reply:
    status, reason = _STATUS.get(kind, (200, "OK"))
    headers = {"location": "/v1/embeddings"} if kind is Kind.REDIRECTED else {}
    return Reply(status=status, headers=headers, reason=reason, body=_body(kind, mode), overflow=kind is Kind.TOO_LARGE)


def _body(kind: Kind, mode: str) -> bytes:
    if kind in _STATUS or kind is Kind.TOO_LARGE:
        return b""
    if kind is Kind.NOT_JSON:
        return b"<!doctype html><title>Not an embedding server</title>"
    if kind is Kind.ERROR_IN_SUCCESS:
        return json.dumps({"error": "Unexpected endpoint or method."}).encode()
    if kind is Kind.WRONG_SHAPE:
        # the shape of the other mode
        return json.dumps({"data": [_item(0, [1.0])]} if mode == Mode.HTTP else {"embeddings": [[1.0]]}).encode()
    vectors = _VECTORS[kind]
    if mode == Mode.HTTP:
        return json.dumps({"embeddings": vectors}).encode()
    first = 1 if kind is Kind.BAD_INDEX else 0
    return json.dumps({"data": [_item(first + number, vector) for number, vector in enumerate(vectors)]}).encode()


def _item(index: int, vector: object) -> Mapping[str, object]:
    return {"object": "embedding", "index": index, "embedding": vector}


#: What stands in the place of one vector.
_VECTORS: Mapping[Kind, list[object]] = {
    Kind.BASE64: ["AACAPwAAAAA="],
    Kind.EMPTY: [],
    Kind.NULL_VECTOR: [None],
    Kind.COUNT_MISMATCH: [[1.0, 0.0], [0.0, 1.0]],
    Kind.BAD_INDEX: [[1.0, 0.0], [0.0, 1.0]],
    Kind.RAGGED: [[1.0, 0.0], [1.0]],
    Kind.BAD_VALUES: [[float("nan"), 0.0]],
}
