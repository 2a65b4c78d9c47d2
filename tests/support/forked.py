"""Real servers as forks of one process that has their libraries imported: a start costs a tenth of the time.

Each interpreter that has a server gets one such process for each worker of the tests. A fork imports the server itself,
with the environment, the folder and the streams that it was given; only the libraries are there already. What it cannot
have is a command line and an environment of its own in the tables of the system: with ``fresh`` it is no fork.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

#: What takes most of a start, in all releases; what a release does not have is left out.
_LIBRARIES = ("mcp.server.fastmcp", "mcp.server.stdio", "mcp.server.streamable_http_manager", "mcp.client.session",
              "aiosqlite", "httpx", "numpy", "sse_starlette", "uvicorn", "jwt")  # fmt: skip


def start(
    python: str, module: str, *, env: Mapping[str, str], cwd: Path, log: IO[bytes], fresh: bool = False
) -> subprocess.Popen[bytes] | Forked:
    """``python -m module`` with its standard input and output as pipes, and its errors in ``log``."""
    if not fresh and hasattr(os, "pidfd_open") and _of_python(env) == _of_python(os.environ):
        return _parent(python).fork(module, env, cwd, log)
    return subprocess.Popen(
        [python, "-m", module], env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
    )


def unmeasured() -> dict[str, str]:
    """This process's environment for a child in which nothing of ours runs: it need not be slowed down by coverage."""
    return {name: text for name, text in os.environ.items() if not name.startswith("COV")}


def _of_python(env: Mapping[str, str]) -> Mapping[str, str]:
    """What the interpreter itself reads when it starts, which a fork does not do again."""
    return {name: text for name, text in env.items() if name.startswith("PYTHON")}


class Forked:
    """What ``subprocess.Popen`` is for a process that somebody else started."""

    def __init__(self, ask: Callable[[Mapping[str, Any]], int], pid: int, stdin: int, stdout: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin, self.stdout = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        self._ask = ask
        self._end = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """Its exit code (minus the signal that ended it); None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float) -> int:
        """Its exit code. Raises ``subprocess.TimeoutExpired``."""
        if self.returncode is None:
            if not select.select([self._end], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"fork {self.pid}", timeout)
            self.returncode = self._ask({"wait": self.pid})
            os.close(self._end)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Nothing, when it is over."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Parent:
    """The process whose forks the servers are; it ends with this one."""

    def __init__(self, python: str) -> None:
        self._lock = threading.Lock()
        self._line, theirs = socket.socketpair()
        env = {
            name: text for name, text in os.environ.items() if not name.startswith(("CPERSONA_", "EMBEDDING_", "COV"))
        }
        with theirs:
            self._process = subprocess.Popen(
                [python, __file__, str(theirs.fileno())],
                env=env,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._answers = self._line.makefile("r")
        atexit.register(self._close)

    def fork(self, module: str, env: Mapping[str, str], cwd: Path, log: IO[bytes]) -> Forked:
        their_in, stdin = os.pipe()
        stdout, their_out = os.pipe()
        given = [their_in, their_out, log.fileno()]
        pid = self._ask({"module": module, "env": dict(env), "cwd": str(cwd)}, given)
        os.close(their_in)
        os.close(their_out)
        return Forked(self._ask, pid, stdin, stdout)

    def _ask(self, request: Mapping[str, Any], files: Sequence[int] = ()) -> int:
        with self._lock:
            data = json.dumps(request).encode()
            socket.send_fds(self._line, [len(data).to_bytes(4, "big")], list(files))
            self._line.sendall(data)
            return int(self._answers.readline())

    def _close(self) -> None:
        self._answers.close()
        self._line.close()
        self._process.wait(30)


_parent = cache(_Parent)


def _serve(line: socket.socket) -> None:
    import gc  # noqa: PLC0415 - only the parent of the forks needs these
    import importlib  # noqa: PLC0415
    import warnings  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _LIBRARIES:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    gc.freeze()
    running: set[int] = set()
    while True:
        size, files, _, _ = socket.recv_fds(line, 4, 3)
        if not size:
            break
        request = json.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
        if pid := request.get("wait"):
            answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            running.discard(pid)
        else:
            answer = os.fork()
            if not answer:
                line.close()
                _become(request, files)
            running.add(answer)
            for file in files:
                os.close(file)
        line.sendall(b"%d\n" % answer)
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def _become(request: Mapping[str, Any], files: Sequence[int]) -> None:
    """Turn this fork into ``python -m``; ends it."""
    import random  # noqa: PLC0415
    import runpy  # noqa: PLC0415

    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    random.seed()
    sys.argv = [request["module"]]
    sys.path[0] = request["cwd"]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
