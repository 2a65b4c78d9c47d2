"""One of two small real embedding models behind CEmbedding's contract, on a free port of this computer.

Run as a child: ``python -m cpersona_cli.demo.serve MODEL PORT`` (0: any free port). It says its port on stdout when it
answers, and ends with its standard input, so it outlives nobody. Both models come whole with their packages: nothing is
downloaded.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]


def wordllama(width: int) -> Embed:
    """WordLlama, whose vectors can be cut to 64, 128 or 256 numbers."""
    package = import_module("wordllama")
    # The loader looks for the tokenizer in a cache otherwise, and would download it.
    own = Path(package.__file__ or "").parent
    model = package.WordLlama.load(cache_dir=own, disable_download=True, trunc_dim=width)
    return lambda texts: model.embed(list(texts), norm=True).tolist()


def static() -> Embed:
    """A static model of 64 numbers, trained apart from WordLlama: the same width, other numbers."""
    embed: Embed = import_module("static_model").get_embeddings
    embed(["it loads its weights at the first call"])
    return embed


#: Every model by the name that the demo gives it.
MODELS: dict[str, Callable[[], Embed]] = {
    "wordllama-256": lambda: wordllama(256),
    "wordllama-64": lambda: wordllama(64),
    "static-64": static,
}


def handler(embed: Embed) -> type[BaseHTTPRequestHandler]:
    """What answers ``POST /embed {"texts": [...]}``, and nothing else."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536  # head and body in one packet: two would wait for each other

        def do_GET(self) -> None:
            self._answer(404, {"error": "not found"})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            if self.path != "/embed":
                self._answer(404, {"error": "not found"})
                return
            try:
                texts = [str(text) for text in json.loads(body)["texts"]]
            except (ValueError, TypeError, KeyError):
                self._answer(400, {"error": "'texts' must be an array of strings"})
                return
            vectors = embed(texts) if texts else []
            self._answer(200, {"embeddings": vectors, "dimensions": len(vectors[0]) if texts else 0})

        def _answer(self, status: int, document: object) -> None:
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Be quiet."""

    return Handler


def main(model: str, port: int) -> None:
    """Serve ``model`` until standard input ends."""
    with ThreadingHTTPServer(("127.0.0.1", port), handler(MODELS[model]())) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()
        server.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
