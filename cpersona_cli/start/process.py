"""A child process in a session of its own, its streams read beside it, and an end that leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from cpersona_cli.record import record

#: Bytes of one line, lines not yet looked at, bytes of stderr that are kept.
LINE, LINES, ERRORS = 8 << 20, 256, 16 << 10
#: Seconds between one way to end a process and the next harder one.
HARDER = 1.0

_WINDOWS = sys.platform == "win32"


class ClosedError(Exception):
    """No process is started any more: the run is over."""


@record(kw_only=True)
class Ending:
    """How a process ended: seconds from the end of its stdin (None: it was killed), what it left, its exit code."""

    seconds: float | None
    left: tuple[int, ...]
    code: int | None


class Family:
    """All children of one run, so that an interrupted run can end them. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._children: list[Child] = []
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the run is over: no child is started any more."""
        return self._closed

    def start(self, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> Child:
        """Start ``command``. Raises ``OSError`` or ``ValueError`` if it cannot be, ``ClosedError`` after ``close``."""
        with self._lock:
            if self._closed:
                raise ClosedError
            child = Child(command, env, cwd)
            self._children.append(child)
            return child

    def close(self) -> None:
        """Kill whatever still runs; nothing is started after this."""
        with self._lock:
            self._closed = True
            for child in self._children:
                child.kill()
            for child in self._children:
                child.collect()


class Child:
    """A started command. ``lines`` gives what it writes to stdout line by line, None at the end of the stream."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self.started = time.monotonic()
        # A session of its own: a Ctrl-C at the terminal ends us first, and then we end it with all its descendants.
        self._process = subprocess.Popen(
            list(command),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=not _WINDOWS,
        )
        self.pid = self._process.pid
        self.lines: queue.Queue[bytes | None] = queue.Queue(LINES)
        self._errors = bytearray()
        self._over = threading.Event()
        self._ending: Ending | None = None
        self._readers = [
            threading.Thread(target=work, args=(stream,), daemon=True)
            for work, stream in ((self._read, self._process.stdout), (self._listen, self._process.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def send(self, message: bytes) -> bool:
        """Write to its stdin; False when it does not read any more."""
        stream = self._process.stdin
        assert stream is not None  # noqa: S101 - a pipe was asked for
        try:
            stream.write(message)
            stream.flush()
        except (OSError, ValueError):
            return False
        return True

    @property
    def errors(self) -> str:
        """The end of what it wrote to stderr so far."""
        return bytes(self._errors).decode("utf-8", "replace")

    def kill(self) -> None:
        """End it and everything in its session at once."""
        self._over.set()
        if self._ending is None:
            _signal(self.pid, hard=True)

    def collect(self) -> None:
        """Have the system forget it, after ``kill``."""
        self._wait(HARDER)

    def end(self, grace: float) -> Ending:
        """Close its stdin, as a client does, and wait ``grace`` seconds; then end whatever of its session is left."""
        if self._ending is not None:
            return self._ending
        self._over.set()  # what comes on stdout from now on is read and thrown away
        closed = time.monotonic()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        code = self._wait(grace)
        seconds = None if code is None else time.monotonic() - closed
        left = tuple(pid for pid in _session(self.pid) if pid != self.pid)
        if code is None:
            _signal(self.pid, hard=False)
            code = self._wait(HARDER)
        if code is None or left:
            _signal(self.pid, hard=True)
            code = self._wait(HARDER) if code is None else code
        for reader, stream in zip(self._readers, (self._process.stdout, self._process.stderr), strict=True):
            reader.join(HARDER)
            if not reader.is_alive() and stream is not None:
                stream.close()
        self._ending = Ending(seconds=seconds, left=left, code=code)
        return self._ending

    def _wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return None

    def _read(self, stream: IO[bytes]) -> None:
        while line := _line(stream):
            while not self._over.is_set():
                with contextlib.suppress(queue.Full):
                    self.lines.put(line, timeout=0.1)
                    break
        while not self._over.is_set():
            with contextlib.suppress(queue.Full):
                self.lines.put(None, timeout=0.1)
                break

    def _listen(self, stream: IO[bytes]) -> None:
        while line := _line(stream):
            self._errors += line
            del self._errors[:-ERRORS]


def _line(stream: IO[bytes]) -> bytes:
    try:
        return stream.readline(LINE)
    except (OSError, ValueError):  # closed under our hands
        return b""


def _session(leader: int) -> list[int]:
    """The living processes of the session that ``leader`` opened; of its group, where the system tells no more."""
    if _WINDOWS:
        return []
    if not Path("/proc/self/stat").exists():
        return _group(leader)
    found = []
    with contextlib.suppress(OSError):
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    state, _, _, session, *_ = (Path(entry.path) / "stat").read_text().rpartition(")")[2].split()
                    if int(session) == leader and state not in {"Z", "X"}:
                        found.append(int(entry.name))
    return found


def _group(leader: int) -> list[int]:
    """The living processes of a group, as ``ps`` lists them."""
    found = []
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(
            ["ps", "-axo", "pid=,pgid=,stat="], capture_output=True, text=True, timeout=5, check=False
        ).stdout
        for line in listed.splitlines():
            with contextlib.suppress(ValueError):
                pid, group, state = line.split()
                if int(group) == leader and not state.startswith("Z"):
                    found.append(int(pid))
    return found


def _signal(leader: int, *, hard: bool) -> None:
    """End the process group of ``leader``, and what left the group but not the session."""
    if _WINDOWS:
        tree = ["taskkill", "/T", "/PID", str(leader), *(["/F"] if hard else [])]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(tree, capture_output=True, stdin=subprocess.DEVNULL, timeout=5, check=False)
        return
    number = signal.SIGKILL if hard else signal.SIGTERM
    members = _session(leader)
    with contextlib.suppress(OSError):
        os.killpg(leader, number)
    for pid in members:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
