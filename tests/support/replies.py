"""A server that says on a real socket exactly what a test wants said, however wrong.

Each connection follows one script: a sequence of steps, or a function of the bytes received. The server lives in
threads of this process; what can take long waits for an event, never for a time.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import secrets
import select
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
CERTIFICATE = DATA / "self_signed.pem"


@dataclass(frozen=True, slots=True)
class Reset:
    """Ends the connection with RST."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Says nothing more until the server is closed."""


@dataclass(frozen=True, slots=True)
class Trickle:
    """Sends ``data`` over and over, a piece whenever the last one was taken, until the server is closed."""

    data: bytes = b" "


Step = bytes | Reset | Hold | Trickle
Script = Sequence[Step] | Callable[[bytes], Sequence[Step]]


@dataclass(slots=True)
class Server:
    """A listening server. ``requests`` holds the bytes of each request; ``url`` is ``http(s)://127.0.0.1:port/embed``."""

    port: int
    scheme: str = "http"
    requests: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/embed"


def head(
    status: int = 200,
    *,
    reason: str | bytes = "Told",
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    length: int | None = None,
) -> bytes:
    """The bytes of a response head. ``length``: the declared length of the body, None for none declared."""
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    if length is not None:
        pairs.append(("content-length", str(length)))
    text = reason if isinstance(reason, bytes) else reason.encode("latin-1")
    lines = [b"HTTP/1.1 %d %s" % (status, text)]
    lines += [f"{name}: {value}".encode() for name, value in pairs]
    return b"\r\n".join([*lines, b"connection: close", b"", b""])


def reply(
    body: object = b"",
    status: int = 200,
    *,
    reason: str | bytes = "Told",
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    content_type: str = "",
) -> bytes:
    """The bytes of a whole reply; what is neither bytes nor text is written as JSON."""
    if isinstance(body, str):
        raw, kind = body.encode("utf-8"), content_type or "text/plain"
    elif isinstance(body, bytes):
        raw, kind = body, content_type or "application/json"
    else:
        raw, kind = json.dumps(body).encode("utf-8"), content_type or "application/json"
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    return head(status, reason=reason, headers=[("content-type", kind), *pairs], length=len(raw)) + raw


def bomb(size: int, *, filler: bytes = b" ") -> bytes:
    """A whole reply of ``size`` bytes of ``filler`` packed by gzip into about a thousandth."""
    return reply(gzip.compress(filler * size, 9), headers={"content-encoding": "gzip"})


@contextlib.contextmanager
def serve(script: Script, *, tls: bool = False, whole: bool = True) -> Iterator[Server]:
    """A server for the time of the block; every connection gets ``script``, after a whole request or any bytes."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(listener.getsockname()[1], "https" if tls else "http")
    over = threading.Event()
    context: ssl.SSLContext | None = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
    threads: list[threading.Thread] = []

    def accept() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            thread = threading.Thread(
                target=_talk,
                args=(connection, script, server),
                kwargs={"over": over, "tls": context, "whole": whole},
                daemon=True,
            )
            threads.append(thread)
            thread.start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield server
    finally:
        over.set()
        # wakes the accept on every system
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", server.port)).close()
        listener.close()
        acceptor.join(10)
        for thread in threads:
            thread.join(10)


def _talk(
    connection: socket.socket,
    script: Script,
    server: Server,
    *,
    over: threading.Event,
    tls: ssl.SSLContext | None,
    whole: bool,
) -> None:
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        stack.callback(connection.close)
        if tls is not None:
            connection = tls.wrap_socket(connection, server_side=True)
            stack.callback(connection.close)
        request = _request(connection, over) if whole else connection.recv(65536)
        if not request:
            return
        server.requests.append(request)
        for step in script(request) if callable(script) else script:
            _do(step, connection, over)
        if not over.is_set():
            # what the client still sends must not turn our close into a reset
            connection.shutdown(socket.SHUT_WR)
            _until_closed(connection, over)


def _do(step: Step, connection: socket.socket, over: threading.Event) -> None:
    if isinstance(step, bytes):
        connection.sendall(step)
    elif isinstance(step, Reset):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        raise OSError("done")
    elif isinstance(step, Hold):
        over.wait(60)
    else:
        while not over.wait(0.02):
            connection.sendall(step.data)


def _until_closed(connection: socket.socket, over: threading.Event) -> None:
    while not over.is_set():
        ready, _, _ = select.select([connection], [], [], 0.05)
        if ready and not connection.recv(65536):
            return


def _request(connection: socket.socket, over: threading.Event) -> bytes:
    """One whole request, or what came of it."""
    connection.settimeout(30)
    data = b""
    while not over.is_set():
        before, found, rest = data.partition(b"\r\n\r\n")
        if found:
            lengths = [
                int(line.split(b":", 1)[1])
                for line in before.split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            ]
            if len(rest) >= (lengths[0] if lengths else 0):
                return data
        piece = connection.recv(65536)
        if not piece:
            return data
        data += piece
    return data


@contextlib.contextmanager
def full_backlog() -> Iterator[str]:
    """The URL of a port whose queue is full, so that a connection is neither made nor refused (Linux)."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    waiting: list[socket.socket] = []
    try:
        for _ in range(4):
            client = socket.socket()
            client.settimeout(0)
            client.connect_ex(listener.getsockname())
            waiting.append(client)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/embed"
    finally:
        for client in waiting:
            client.close()
        listener.close()


def closed_port() -> int:
    """A port of 127.0.0.1 where nothing listens, below those that systems hand out by themselves: nobody takes it."""
    while True:
        port = 20000 + secrets.randbelow(12000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@contextlib.contextmanager
def forward_proxy() -> Iterator[str]:
    """A real forward proxy as a process of its own; its URL."""
    script = Path(__file__).with_name("forward_proxy.py")
    process = subprocess.Popen(
        [sys.executable, "-I", str(script)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        # it ends with its standard input
        process.stdin.close()
        process.wait(30)
        process.stdout.close()
