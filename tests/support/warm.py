"""Runs of the tool as children of one process that has everything imported already: for tests that start it often.

A child is forked, does what the installed script does, and can be killed like any other process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Result:
    """How a child ended: its exit code (minus the signal that ended it), and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


class Child:
    """One run."""

    def __init__(self, warm: Warm, pid: int, folder: Path) -> None:
        self._warm, self.pid, self._folder = warm, pid, folder

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when the run is over already."""
        os.kill(self.pid, number)

    def wait(self) -> Result:
        """Wait until it has ended. Its process id is given back only now."""
        code = int(self._warm.ask({"wait": self.pid}))
        return Result(code, self._said("out"), self._said("err"))

    def _said(self, name: str) -> str:
        try:
            return (self._folder / f"{self.pid}.{name}").read_text("utf-8", "backslashreplace")
        except FileNotFoundError:  # killed before it had said anything
            return ""


class Warm:
    """The process that has everything imported. Use as a context manager, from one thread."""

    def __init__(self, folder: Path, env: Mapping[str, str], cwd: Path | None = None) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.warm", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**env, "PYTHONPATH": str(Path(__file__).parents[1])},
            cwd=cwd or folder,
            text=True,
        )

    def start(self, *argv: str) -> Child:
        """Begin a run of ``cpersona-cli`` with these arguments."""
        return Child(self, int(self.ask({"argv": argv})), self._folder)

    def run(self, *argv: str) -> Result:
        """A run from its beginning to its end."""
        return self.start(*argv).wait()

    def ask(self, request: Mapping[str, Any]) -> str:
        """One question and its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process.wait(30)


def _serve(folder: Path) -> None:
    import cpersona_cli.commands.examination  # noqa: PLC0415 - all that a run imports
    import cpersona_cli.commands.rebuilding  # noqa: F401, PLC0415
    from cpersona_cli.entry import tool  # noqa: PLC0415

    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if not answer:
                _become(folder, request["argv"])
                tool()
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _become(folder: Path, argv: Sequence[str]) -> None:
    """Turn this fork into a run: its own streams, the signals as a shell gives them, nothing of its parent's."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(folder / f"{os.getpid()}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["cpersona-cli", *argv]


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
