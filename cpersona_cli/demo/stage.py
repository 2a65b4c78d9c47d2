"""The stage: a scratch home, an embedding model and the real server as children, and commands run as a person would.

Nothing outside the scratch home is read or written, and nothing but 127.0.0.1 is contacted: the children get the home
and no setting of the user's.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cpersona_cli.demo.model import DemoError
from cpersona_cli.record import record
from cpersona_cli.start.process import Child, Family
from cpersona_cli.start.session import CallError, Session
from cpersona_cli.text import safe

#: What the client's file of the scratch home is called; commands are pointed at it, so that they see nothing else.
REGISTRATION = ".claude.json"
DATABASE = "memory.db"
#: Seconds for a model to load, for one command, for one answer of the server, and for a child to end by itself.
LOADING, COMMAND, ANSWER, GRACE = 60.0, 120.0, 60.0, 10.0

#: What a process needs of the user's environment to run at all.
_KEPT = ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "NO_COLOR")


@record(kw_only=True)
class Done:
    """A command that ended: its exit code, what it printed, its JSON document (empty where there is none)."""

    code: int
    said: str
    document: Mapping[str, Any]


@dataclass(slots=True)
class Stage:
    """What the acts play on. ``shown`` are variables for the commands, such as how wide their output may be."""

    home: Path
    family: Family
    shown: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    _model: Child | None = None
    _runs: int = 0

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of every child."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        homes = dict.fromkeys(("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"), str(self.home))
        return {**kept, **homes, "PYTHONIOENCODING": "utf-8"}

    # The embedding model.

    def start_model(self, name: str) -> None:
        """Serve a model in the place of the one before, at the same address. Raises ``DemoError``."""
        self.stop_model()
        command = [sys.executable, "-m", "cpersona_cli.demo.serve", name, str(self.port)]
        child = self._start(command, self.environment, f"the embedding model {name}")
        with suppress(queue.Empty, ValueError, TypeError):
            self.port = int(child.lines.get(timeout=LOADING) or b"")
            self._model = child
            return
        child.end(0.0)
        raise DemoError(f"the embedding model {name} did not start{_last_line(child)}")

    def stop_model(self) -> None:
        """End it, as an embedding server that crashed; nothing listens at its address any more."""
        if self._model is not None:
            self._model.end(GRACE)
            self._model = None

    # The server.

    @property
    def database(self) -> Path:
        return self.home / DATABASE

    def register(self, **more: str) -> None:
        """Write the registration of the client, with ``more`` settings."""
        entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": {**self._settings(), **more}}
        text = json.dumps({"mcpServers": {"cpersona": entry}}, indent=2) + "\n"
        (self.home / REGISTRATION).write_text(text, encoding="utf-8")

    def _settings(self) -> dict[str, str]:
        return {
            "CPERSONA_DB_PATH": str(self.database),
            "CPERSONA_EMBEDDING_MODE": "http",
            "CPERSONA_EMBEDDING_URL": f"http://127.0.0.1:{self.port}/embed",
            "CPERSONA_UPDATE_CHECK": "false",
        }

    @contextmanager
    def server(self) -> Iterator[Server]:
        """The server of the registration, started as its client would start it, and ended after the block."""
        entry = json.loads((self.home / REGISTRATION).read_text("utf-8"))["mcpServers"]["cpersona"]
        environment = {**self.environment, **entry["env"]}
        child = self._start([entry["command"], *entry["args"]], environment, "the server")
        try:
            session = Session(child, safe)
            try:
                session.initialize(ANSWER)
            except CallError as error:
                raise DemoError(f"the server did not start: {error.sentence}{_last_line(child)}") from error
            yield Server(session)
        finally:
            child.end(GRACE)

    # Commands of this tool.

    def run(self, words: Sequence[str]) -> Done:
        """Run one command on the scratch home, without a terminal. Raises ``DemoError`` when it does not end.

        Beside what it prints it writes its JSON document to a file of the home.
        """
        self._runs += 1
        document = self.home / f"step-{self._runs:02}-{words[0]}.json"
        command = [sys.executable, "-m", "cpersona_cli", *words, "--output", f"json:{document.name}"]
        child = self._start(command, {**self.environment, **self.shown}, f"cpersona-cli {words[0]}")
        lines: list[bytes] = []
        end, over = time.monotonic() + COMMAND, False
        try:
            while (line := child.lines.get(timeout=max(0.0, end - time.monotonic()))) is not None:
                lines.append(line)
            over = True
        except queue.Empty:
            raise DemoError(f"cpersona-cli {words[0]} did not end within {COMMAND:.0f} seconds") from None
        finally:
            code = child.end(GRACE if over else 0.0).code
        # What goes on is told on stderr while it does, so it comes first.
        said = child.errors + b"".join(lines).decode("utf-8", "replace")
        found: Any = {}
        with suppress(OSError, ValueError):
            found = json.loads(document.read_text("utf-8"))
        return Done(code=-1 if code is None else code, said=said, document=found if isinstance(found, dict) else {})

    def _start(self, command: Sequence[str], environment: Mapping[str, str], what: str) -> Child:
        try:
            return self.family.start(command, environment, self.home)
        except OSError as error:
            raise DemoError(f"{what} could not be started: {error.strerror}") from error


@record
class Server:
    """The tools of a running server. Each raises ``DemoError`` when it refuses or does not answer."""

    session: Session

    def call(self, tool: str, **arguments: object) -> Mapping[str, Any]:
        """The document that ``tool`` answers with."""
        try:
            answer = self.session.call(tool, arguments, ANSWER)
        except CallError as error:
            raise DemoError(f"the server gave no answer: {error.sentence}") from error
        if answer.get("ok") is False or "error" in answer:
            reason = answer.get("error") or answer.get("reason") or "it gives no reason"
            raise DemoError(f"the server refused {tool}: {safe(str(reason), 200)}")
        return answer


def _last_line(child: Child) -> str:
    lines = [line.strip() for line in child.errors.splitlines() if line.strip()]
    return f": {safe(lines[-1], 200)}" if lines else ""


Guard = Callable[[], AbstractContextManager[object]]


@contextmanager
def stage(*, keep: bool = False, shown: Mapping[str, str] | None = None, guard: Guard = nullcontext) -> Iterator[Stage]:
    """A stage in a scratch home. However the block ends, no child is left, and no home unless it is to be kept.

    ``guard`` keeps what would interrupt the tidying away. Raises ``DemoError``.
    """
    home = _home()
    scratch = Stage(home, Family(), shown or {})
    try:
        yield scratch
    finally:
        with guard():
            scratch.stop_model()
            scratch.family.close()
            if not keep:
                shutil.rmtree(home, ignore_errors=True)


def _home() -> Path:
    """A folder of this user alone; on a disk where there is one: a database in memory is itself a finding."""
    disk = "/var/tmp" if os.access("/var/tmp", os.W_OK | os.X_OK) else None  # noqa: S108 - a folder of its own in there
    parent = next((os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)), disk)
    try:
        return Path(tempfile.mkdtemp(prefix="cpersona-demo-", dir=parent)).resolve()
    except OSError as error:
        where = safe(parent or tempfile.gettempdir(), 200)
        raise DemoError(f"no scratch home can be made in {where}: {error.strerror}") from error
