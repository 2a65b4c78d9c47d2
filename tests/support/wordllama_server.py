"""WordLlama’s real model (256 dimensions) behind CEmbedding's contract; the package has no server of its own.

Run by the interpreter of the embedding servers: ``python wordllama_server.py PORT``. Ends with its standard input.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import wordllama


def load() -> Any:
    """The model out of the package itself: the loader looks for the tokenizer elsewhere, and would download it."""
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536
    model: Any

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        if self.path != "/embed":
            self._answer(404, {"error": "not found"})
            return
        vectors = self.model.embed(json.loads(body)["texts"], norm=True)
        self._answer(200, {"embeddings": vectors.tolist(), "dimensions": vectors.shape[1]})

    def _answer(self, status: int, document: object) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


if __name__ == "__main__":
    Handler.model = load()
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print("listening", flush=True)  # noqa: T201 - what its starter waits for
        sys.stdin.read()
        server.shutdown()
