"""An endpoint that takes a known time for its work and writes down how long it was busy.

Usage: python -m benchmarks.timed_endpoint SLOTS MICROSECONDS_PER_TOKEN MILLISECONDS_PER_REQUEST WIDTH

A request takes its milliseconds, and the microseconds for each of its padded tokens: the longest text as often as there
are texts, as an engine pads them; words and signs are tokens. SLOTS requests are worked on at a time, the others wait.
The port is printed when it is ready; GET /figures answers with what was measured.
"""

from __future__ import annotations

import heapq
import json
import random
import re
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_WORDS = re.compile(r"\w+|[^\w\s]")
_POOL = 1024


class Endpoint(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, slots: int, per_token: float, per_request: float, width: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.per_token, self.per_request = per_token, per_request
        self.free_at = [0.0] * slots
        self.lock = threading.Lock()
        self.figures = {"requests": 0, "texts": 0, "busy": 0.0, "tokens": 0, "padded": 0, "largest": 0}
        chance = random.Random(1)
        self.pool = [_unit([chance.gauss(0, 1) for _ in range(width)]) for _ in range(_POOL)]

    def work(self, texts: list[str]) -> None:
        lengths = [len(_WORDS.findall(text)) + 2 for text in texts]
        padded = max(lengths) * len(lengths)
        with self.lock:
            busy = self.per_request + self.per_token * padded
            done = max(time.perf_counter(), self.free_at[0]) + busy
            heapq.heapreplace(self.free_at, done)
        time.sleep(max(0.0, done - time.perf_counter()))
        with self.lock:
            self.figures["requests"] += 1
            self.figures["texts"] += len(texts)
            self.figures["busy"] += busy
            self.figures["tokens"] += sum(lengths)
            self.figures["padded"] += padded
            self.figures["largest"] = max(self.figures["largest"], len(texts))

    def reply(self, texts: list[str]) -> bytes:
        vectors = (self.pool[zlib.crc32(text.encode()) % _POOL] for text in texts)
        return b'{"embeddings":[' + b",".join(vectors) + b"]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 20

    def do_POST(self) -> None:
        assert isinstance(self.server, Endpoint)
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["texts"]
        content = self.server.reply(texts)
        self.server.work(texts)
        self._send(content)

    def do_GET(self) -> None:
        assert isinstance(self.server, Endpoint)
        with self.server.lock:
            self._send(json.dumps(self.server.figures).encode())

    def _send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _unit(vector: list[float]) -> bytes:
    length = sum(value * value for value in vector) ** 0.5
    return json.dumps([value / length for value in vector]).encode()


if __name__ == "__main__":
    slots, per_token, per_request, width = sys.argv[1:]
    server = Endpoint(int(slots), float(per_token) / 1e6, float(per_request) / 1e3, int(width))
    print(server.server_address[1], flush=True)
    server.serve_forever()
