"""A small embedding server on a real socket: words hashed into a vector, with every fault on demand.

The same text always gets the same vector, related texts share words and so lie near each other, and nothing but the
standard library is needed.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Document = dict[str, Any]

# Python calls it otherwise since 3.13, and the phrase is part of what CPersona records.
_PHRASES = {422: "Unprocessable Entity"}


@dataclass(frozen=True)
class Answer:
    """One reply: status, body (a document or text), and further headers. ``drop`` closes the connection unanswered."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False


@dataclass(frozen=True)
class Request:
    """One request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    document: Document
    size: int

    @property
    def texts(self) -> Sequence[str]:
        found: list[str] | str = next((self.document[key] for key in _FIELDS.values() if key in self.document), [])
        return [found] if isinstance(found, str) else found


@dataclass(kw_only=True)
class Behaviour:
    """How a server answers. ``routes`` maps a path to the contract spoken there: http, api, tei or ollama.

    ``window``: words that count, the rest is cut; ``refuses_over``: words from which a text is refused;
    ``batch_limit``: texts; ``body_limit``: bytes; ``loading``: so many calls are answered 503 first; ``before`` may
    answer in the place of the rest; ``after`` may change the vectors of a reply; ``gets`` are documents by path.
    """

    width: int = 64
    routes: Mapping[str, str] = field(default_factory=lambda: {"/embed": "http", "/v1/embeddings": "api"})
    window: int | None = None
    refuses_over: int | None = None
    batch_limit: int | None = None
    body_limit: int | None = None
    models: Sequence[str] | None = None
    answers_as: str = ""
    key: str = ""
    loading: int = 0
    scale: float = 1.0
    backwards: bool = False
    gets: Mapping[str, Document] = field(default_factory=dict)
    before: Callable[[Request, int], Answer | None] = lambda _request, _number: None
    after: Callable[[Request, list[list[float]]], list[Any]] = lambda _request, vectors: vectors


class _Server(ThreadingHTTPServer):
    """Says nothing of a caller that is gone: some tests kill it."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class SmallEndpoint:
    """A running server; ``requests`` is everything it was sent. Use as a context manager."""

    def __init__(self, behaviour: Behaviour, host: str = "127.0.0.1") -> None:
        self.behaviour = behaviour
        self.requests: list[Request] = []
        self._server = _Server((host, 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def url(self, path: str = "/embed") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    @property
    def calls(self) -> list[Request]:
        """The requests that carried texts."""
        return [request for request in self.requests if request.method == "POST" and "/api/show" not in request.path]

    def answer(self, request: Request) -> Answer:
        known = self.behaviour
        if request.method == "GET" or request.path.endswith("/api/show"):
            document = known.gets.get(request.path)
            return Answer(404, "404 page not found") if document is None else Answer(200, document)
        number = len(self.calls)
        chosen = known.before(request, number)
        if chosen is not None:
            return chosen
        if number <= known.loading:
            return Answer(503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}})
        contract = known.routes.get(request.path)
        if contract is None:
            return Answer(404, "404 page not found")
        if known.key and request.headers.get("authorization") != f"Bearer {known.key}":
            return Answer(401, "")
        return self._refusal(request, contract) or self._reply(request, contract)

    def _refusal(self, request: Request, contract: str) -> Answer | None:
        known, field_name = self.behaviour, _FIELDS[contract]
        if not isinstance(request.document.get(field_name), list) or not request.texts:
            return Answer(422 if contract == "tei" else 400, _MISSING[contract])
        if known.batch_limit is not None and len(request.texts) > known.batch_limit:
            return Answer(400, {"error": f"Batch size exceeds limit (max {known.batch_limit})"})
        if known.body_limit is not None and request.size > known.body_limit:
            return Answer(400, {"error": "Invalid JSON body"})
        model = request.document.get("model", "")
        if contract in {"api", "ollama"} and known.models is not None and model not in known.models:
            return Answer(404, {"error": {"message": f'model "{model}" not found, try pulling it first'}})
        longest = max(len(words(text)) for text in request.texts)
        if known.refuses_over is not None and longest > known.refuses_over:
            limit = f"(current batch size: {known.refuses_over})"
            message = f"input ({longest} tokens) is too large to process. increase the physical batch size {limit}"
            return Answer(500, {"error": {"code": 500, "message": message, "type": "server_error"}})
        return None

    def _reply(self, request: Request, contract: str) -> Answer:
        known = self.behaviour
        vectors = [[value * known.scale for value in embed(text, known.width, known.window)] for text in request.texts]
        shown = known.after(request, vectors)
        if contract == "http":
            return Answer(200, {"embeddings": shown, "dimensions": known.width})
        if contract == "tei":
            return Answer(200, shown)
        model = known.answers_as or request.document.get("model", "")
        if contract == "ollama":
            return Answer(200, {"model": model, "embeddings": shown, "total_duration": 1})
        items = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(shown)]
        return Answer(200, {"object": "list", "data": items[::-1] if known.backwards else items, "model": model})


_FIELDS = {"http": "texts", "api": "input", "tei": "inputs", "ollama": "input"}
_MISSING: Mapping[str, object] = {
    "http": {"error": "'texts' must be a non-empty array of strings"},
    "api": {"error": {"message": "invalid input", "type": "invalid_request_error", "param": None, "code": None}},
    "tei": "Failed to deserialize the JSON body into the target type: missing field `inputs` at line 1 column 22",
    "ollama": {"error": "model '' not found"},
}


def words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text.lower())


def embed(text: str, width: int, window: int | None = None) -> list[float]:
    """The vector of ``text``: each of its first ``window`` words adds to one dimension."""
    vector = [0.0] * width
    for word in words(text)[:window]:
        digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        vector[int.from_bytes(digest[:4], "big") % width] += 1.0 if digest[4] & 1 else -1.0
    length = math.sqrt(math.fsum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


@contextmanager
def serving(**options: Any) -> Iterator[SmallEndpoint]:
    """A server that behaves as ``Behaviour(**options)``."""
    with SmallEndpoint(Behaviour(**options)) as server:
        yield server


def _handler(owner: SmallEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536  # head and body in one packet: two would wait for each other

        def do_GET(self) -> None:
            self._serve("GET", b"")

        def do_POST(self) -> None:
            self._serve("POST", self.rfile.read(int(self.headers.get("content-length", "0"))))

        def _serve(self, method: str, body: bytes) -> None:
            try:
                found = json.loads(body or b"{}")
            except ValueError:
                found = {}
            headers = {name.lower(): value for name, value in self.headers.items()}
            document = found if isinstance(found, dict) else {}
            request = Request(method, self.path.partition("?")[0], headers, document, len(body))
            owner.requests.append(request)
            answer = owner.answer(request)
            if answer.drop:
                self.close_connection = True
                self.connection.close()
                return
            plain = isinstance(answer.body, str)
            content = str(answer.body).encode() if plain else json.dumps(answer.body).encode()
            self.send_response(answer.status, _PHRASES.get(answer.status))
            kind = {"content-type": "text/plain" if plain else "application/json"}
            for name, value in {**kind, **answer.headers, "content-length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
