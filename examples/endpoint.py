"""A small embedding endpoint: words and their pieces hashed into a vector of length one. Real, if simple, embeddings.

It speaks the server's own contract, `POST /embed {"texts": [...]}` -> `{"embeddings": [[...]]}`, on a free port of
127.0.0.1. Texts that share words lie near each other; that is all it knows of meaning.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WIDTH = 128


def embed(text: str) -> list[float]:
    """The vector of ``text``: each piece of three letters adds one to a place that its hash chooses."""
    vector = [0.0] * WIDTH
    padded = f"  {text.lower()} "
    for start in range(len(padded) - 2):
        digest = hashlib.blake2b(padded[start : start + 3].encode(), digest_size=3).digest()
        vector[digest[0] % WIDTH] += 1.0 if digest[1] & 1 else -1.0
        vector[digest[2] % WIDTH] += 0.5
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = self.path == "/embed"
        answer = {"embeddings": [embed(text) for text in document["texts"]]} if found else {"error": "no such path"}
        body = json.dumps(answer).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Be quiet."""


@contextmanager
def endpoint() -> Iterator[str]:
    """Serve in the background; yields the URL to configure."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/embed"
        finally:
            server.shutdown()
