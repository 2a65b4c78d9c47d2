"""A small forward proxy: absolute-form requests and CONNECT. Prints its port, and ends with its standard input."""

from __future__ import annotations

import contextlib
import select
import socket
import socketserver
import sys
import threading
from urllib.parse import urlsplit


class Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = self.request.recv(65536)
            if not piece:
                return
            data += piece
        line, _, rest = data.partition(b"\r\n")
        method, target, version = line.decode("latin-1").split(" ")
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        try:
            upstream = socket.create_connection((parts.hostname, parts.port or 80), timeout=30)
        except OSError:
            self.request.sendall(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            return
        with upstream:
            if method == "CONNECT":
                self.request.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                path = parts.path or "/"
                path += f"?{parts.query}" if parts.query else ""
                upstream.sendall(f"{method} {path} {version}\r\nVia: 1.1 tiny\r\n".encode("latin-1") + rest)
            self.pump(upstream)

    def pump(self, upstream: socket.socket) -> None:
        ends = {self.request: upstream, upstream: self.request}
        while True:
            for ready in select.select(list(ends), [], [])[0]:
                with contextlib.suppress(OSError):
                    data = ready.recv(65536)
                    if data:
                        ends[ready].sendall(data)
                        continue
                return


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


if __name__ == "__main__":
    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        sys.stdin.read()
        server.shutdown()
