"""One MCP session over the standard streams of a child.

The transport is our own: the MCP library's client hides what is no message, which is one of the things looked for here,
and ends only the process it started. What is a message, a handshake or a list of tools is decided by the library's
types, as in the clients that are built on it; ``mcp`` is therefore needed, and imported only here.
"""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mcp import types
from mcp.shared.version import SUPPORTED_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from cpersona_cli import __version__
from cpersona_cli.start.model import Failure, Noise
from cpersona_cli.start.process import LINE, Child

#: Characters of a stray line that are shown, how many of them are kept, and how many are too many.
SHOWN, KEPT, TOO_MANY = 80, 5, 2000
_PAGES = 20

Quote = Callable[[str, int], str]
M = TypeVar("M", bound=BaseModel)


class CallError(Exception):
    """A request had no usable answer: which way it failed, and a sentence."""

    def __init__(self, failure: Failure, sentence: str) -> None:
        super().__init__(sentence)
        self.failure, self.sentence = failure, sentence


class Session:
    """Requests and answers. ``quote`` makes foreign text harmless and cuts it: the text, the most characters."""

    def __init__(self, child: Child, quote: Quote) -> None:
        self._child, self._quote = child, quote
        self._id = 0
        self._met = False
        self.noise: list[Noise] = []
        self.lines = 0

    def initialize(self, seconds: float) -> str:
        """The handshake; returns the protocol version agreed on. Raises ``CallError``."""
        hello = {
            "protocolVersion": types.LATEST_PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "cpersona-cli", "version": __version__},
        }
        result = self._validated(types.InitializeResult, self._ask("initialize", hello, seconds), "the handshake")
        version = str(result.protocolVersion)
        if version not in SUPPORTED_PROTOCOL_VERSIONS:
            raise CallError(Failure.UNUSABLE, f"it speaks MCP {self._quote(version, 40)}, which clients do not know")
        self._met = True
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return version

    def tools(self, seconds: float) -> tuple[str, ...]:
        """The names of its tools. Raises ``CallError``."""
        names: list[str] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            params = {} if cursor is None else {"cursor": cursor}
            page = self._validated(types.ListToolsResult, self._ask("tools/list", params, seconds), "the list of tools")
            names += [tool.name for tool in page.tools]
            cursor = page.nextCursor
            if not cursor:
                break
        return tuple(names)

    def call(self, tool: str, arguments: Mapping[str, object], seconds: float) -> Mapping[str, Any]:
        """The document a tool answers with. Raises ``CallError``."""
        params = {"name": tool, "arguments": arguments}
        result = self._validated(types.CallToolResult, self._ask("tools/call", params, seconds), f"{tool}'s answer")
        text = "".join(part.text for part in result.content if isinstance(part, types.TextContent))
        if result.isError:
            raise CallError(Failure.REFUSED, f"{tool} failed: {self._quote(text, 200)}")
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise CallError(Failure.UNUSABLE, f"{tool} answered {self._quote(text, SHOWN)}")
        return document

    def drain(self) -> None:
        """Look at what has come unasked."""
        while True:
            try:
                line = self._child.lines.get_nowait()
            except queue.Empty:
                return
            if line is None:
                return
            self._message(line)

    def _validated(self, kind: type[M], result: object, what: str) -> M:
        try:
            return kind.model_validate(result)
        except ValidationError:
            said = self._quote(json.dumps(result), SHOWN)
            raise CallError(Failure.UNUSABLE, f"{what} is nothing that a client understands: {said}") from None

    def _send(self, message: Mapping[str, object]) -> None:
        self._child.send(json.dumps(message).encode() + b"\n")

    def _ask(self, method: str, params: Mapping[str, object], seconds: float) -> object:
        """The result of one request. Raises ``CallError`` when none comes within ``seconds``."""
        end = time.monotonic() + seconds
        self._id += 1
        self._send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        while True:
            try:
                line = self._child.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise CallError(Failure.SILENT, f"no answer to {method} within {seconds:.3g} seconds") from None
            if line is None:
                raise CallError(Failure.DIED, f"it ended before it answered {method}")
            message = self._message(line)
            if self.lines > TOO_MANY or len(line) >= LINE:
                raise CallError(Failure.FLOODED, f"{self.lines} lines on stdout were no messages, and no end came")
            if isinstance(message, types.JSONRPCError) and message.id == self._id:
                said = self._quote(message.error.message, 200)
                raise CallError(Failure.REFUSED, f"it answered {method} with an error: {said}")
            if isinstance(message, types.JSONRPCResponse) and message.id == self._id:
                return message.result

    def _message(self, line: bytes) -> BaseModel | None:
        """A line as a message; a request of the server is answered, what is no message is noted."""
        try:
            message = types.JSONRPCMessage.model_validate_json(line).root
        except ValidationError:
            self.lines += 1
            if len(self.noise) < KEPT:
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                self.noise.append(Noise(text=self._quote(text, SHOWN), before=not self._met))
            return None
        if isinstance(message, types.JSONRPCRequest):
            refusal = {"error": {"code": types.METHOD_NOT_FOUND, "message": "not offered by this client"}}
            answer = {"result": {}} if message.method == "ping" else refusal
            self._send({"jsonrpc": "2.0", "id": message.id, **answer})
        return message
