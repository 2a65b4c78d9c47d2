"""Advisories as live servers send them, over both transports, and the same asked for in a child."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from support import forked
from support.replies import closed_port
from support.stores import Server

from cpersona_cli.advisory.child import Command, ask
from cpersona_cli.advisory.model import Event, Preview
from cpersona_cli.start.process import Family

#: Servers of several release lines by their release, where the tests have them.
PYTHONS = {
    "2.6.14": sys.executable,
    "2.5.12": os.environ.get("CPERSONA_CLI_TEST_OLD_SERVER", ""),
    "2.4.41": os.environ.get("CPERSONA_CLI_TEST_OLDEST_SERVER", ""),
}
TOKEN = "only-for-this-test"

#: What the server writes before the advisory in its answer.
_FIELD = '"advisory": '


def cut(answer: str) -> str | None:
    """The advisory in the text of an answer to ``recall``, byte for byte."""
    document = json.loads(answer)
    assert "error" not in document, answer
    start = answer.find(_FIELD)
    if start < 0:
        assert "advisory" not in document
        return None
    begin = start + len(_FIELD)
    _, end = json.JSONDecoder().raw_decode(answer, begin)
    return answer[begin:end]


class Stdio(Server):
    """A server over its standard streams, its answers as they come."""

    def recall(self, query: str, key: str = "") -> str | None:
        """The advisory in the answer; fails where the recall does."""
        result = self._ask("tools/call", {"name": "recall", "arguments": _arguments(query, key)})
        text = "".join(part.get("text", "") for part in result["content"])
        assert not result.get("isError"), text
        return cut(text)


def _arguments(query: str, key: str) -> Mapping[str, str]:
    return {"agent_id": "atlas", "query": query, **({"session_key": key} if key else {})}


class Http:
    """A server that listens on a port of its own."""

    def __init__(self, folder: Path, env: Mapping[str, str], python: str) -> None:
        self.port = closed_port()
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("CPERSONA_", "EMBEDDING_", "COV"))}
        given = {
            "CPERSONA_DB_PATH": str(folder / "memory.db"),
            "CPERSONA_UPDATE_CHECK": "false",
            "CPERSONA_TRANSPORT": "streamable-http",
            "CPERSONA_HTTP_PORT": str(self.port),
            "CPERSONA_AUTH_TOKEN": TOKEN,
        }
        self._log = (folder / "http.log").open("ab")
        self.process = forked.start(python, "cpersona", env={**clean, **given, **env}, cwd=folder, log=self._log)
        self._number = 0
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            assert self.process.poll() is None, Path(self._log.name).read_text("utf-8")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        raise AssertionError("the server does not listen")

    def recall(self, query: str, key: str = "") -> str | None:
        """The advisory in the answer to one request; fails where the recall does."""
        self._number += 1
        params = {"name": "recall", "arguments": _arguments(query, key)}
        message = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/mcp/",
            data=json.dumps(message).encode(),
            headers={
                "authorization": f"Bearer {TOKEN}",
                "accept": "application/json, text/event-stream",
                "content-type": "application/json",
            },
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as reply:
            body = reply.read().decode()
        data = [line.removeprefix("data:").strip() for line in body.splitlines() if line.startswith("data:")]
        result = json.loads(data[0] if data else body)["result"]
        text = "".join(part.get("text", "") for part in result["content"])
        assert not result.get("isError"), text
        return cut(text)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)
        for stream in (self.process.stdin, self.process.stdout, self._log):
            assert stream is not None
            stream.close()


@contextmanager
def serving(folder: Path, env: Mapping[str, str], python: str, transport: str = "stdio") -> Iterator[Stdio | Http]:
    """A live server on a new store in ``folder``."""
    folder.mkdir(parents=True)
    if transport == "stdio":
        with Stdio(folder / "memory.db", env, python) as server:
            yield server
        return
    listening = Http(folder, env, python)
    try:
        yield listening
    finally:
        listening.stop()


def asked(env: Mapping[str, str], events: Sequence[Event], python: str, folder: Path, seconds: float = 60.0) -> Preview:
    """The preview of a server with exactly this environment (and what a process needs to run at all)."""
    needed = {name: text for name, text in os.environ.items() if name in {"PATH", "HOME", "SYSTEMROOT", "TMPDIR"}}
    command = Command(python=Path(python), env={**needed, **env}, cwd=folder)
    family = Family()
    try:
        return ask(command, events, "live", family, time.monotonic() + seconds)
    finally:
        family.close()
