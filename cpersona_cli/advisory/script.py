"""The child program: it asks the server's own health module what a row of recalls would be told.

Its text is run by the server's own interpreter (``python -I -c``) with the registration's own environment, so nothing
of this package can be imported here. One JSON line comes in on stdin; JSON lines go out on what was stdout, one for
each event as it happens. The database is not touched: only ``config``, ``health`` and the embedding client are loaded;
of releases before 2.5.9 also ``vector``, whose probe finds their evidence.

What it asks is read from the server's own signatures, never from its release number.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import json
import os
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# What the server records of a call that gave no vector and no reason.
NOTHING = "the embedding call produced no usable vector"
_CLIENT = "cpersona._vendored_mcp_common.embedding_client"
# Seconds that the start of a server waits for what its backend says of itself.
_STARTING = 3.0

Tell = Callable[[Mapping[str, Any]], None]
Load = Callable[[str], Any]


class Server:
    """The modules of the server, and what they can be asked."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.config = load("cpersona.config")
        self.health = load("cpersona.health")
        check = getattr(self.config, "assert_embedding_mode_supported", None)
        if check is not None:
            check()
        self.mode = str(self.config.EMBEDDING_MODE)
        try:
            self.resolve = load("cpersona.session").resolve_session_key
        except (ImportError, AttributeError):
            self.resolve = None
        told = inspect.signature(self.health.maybe_advisory).parameters
        self.keyed = "session_key" in told
        self.declaring = "declared" in told
        self.attempting = "attempted" in inspect.signature(self.health.observe_failure).parameters
        self.embedding = load(_CLIENT).EmbeddingClient
        self.probing = not hasattr(self.embedding, "embed_with_outcome")
        self.client: Any = None
        self.probe: Any = None

    def described(self) -> dict[str, Any]:
        """What is told of the server before anything happens."""
        shared = getattr(self.config, "shared_transport", None)
        names = ("FAULT", "CONFIG", "HINT")
        texts = {f"{name}_{size}": f"{name}_RUNBOOK_{size}" for name in names for size in ("FULL", "SHORT")}
        return {
            "mode": self.mode,
            "enabled": bool(getattr(self.config, "DEGRADED_ADVISORY_ENABLED", True)),
            "shared": bool(shared()) if shared is not None else False,
            "keyed": self.keyed,
            "probing": self.probing,
            "remote": str(getattr(self.config, "VECTOR_SEARCH_MODE", "local")) == "remote",
            "cap": getattr(self.health, "ADVISORY_SESSION_CAP", None),
            "threshold": getattr(self.health, "FAULT_PROMOTE_THRESHOLD", None),
            "texts": {name: getattr(self.health, text) for name, text in texts.items() if hasattr(self.health, text)},
        }

    async def open(self, *, calling: bool) -> None:
        """Build the embedding client as the server's start does. Raises what would end that start.

        With ``calling`` the backend is asked what it is, as newer releases do then: what that raises ends them too.
        """
        if self.mode == "none":
            return
        config = self.config
        self.client = self.embedding(
            mode=config.EMBEDDING_MODE,
            http_url=config.EMBEDDING_URL,
            api_key=config.EMBEDDING_API_KEY,
            api_url=config.EMBEDDING_API_URL,
            model=config.EMBEDDING_MODEL,
            cache_size=config.EMBEDDING_CACHE_SIZE,
            cache_ttl=config.EMBEDDING_CACHE_TTL,
            timeout=self._timeout(),
        )
        await self.client.initialize()
        identify = getattr(self.client, "capabilities_with_outcome", None)
        if calling and identify is not None:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(identify(), _STARTING)
        if self.probing:
            vector = self.load("cpersona.vector")
            vector._embedding_client = self.client  # noqa: SLF001 - where the server’s own start puts it
            self.probe = vector._probe_embedding_health  # noqa: SLF001 - what its recall asks

    def _timeout(self) -> int:
        read = getattr(self.config, "embedding_timeout_secs", None)
        if read is not None:
            return read()  # type: ignore[no-any-return]
        name, parse = "CPERSONA_EMBEDDING_TIMEOUT_SECS", getattr(self.config, "parse_int", None)
        return int(os.environ.get(name, "30")) if parse is None else parse(name, 30)

    async def close(self) -> None:
        if self.client is not None:
            await self.client.close()

    def faulted(self) -> bool:
        return bool(self.health.is_faulted())

    def state(self) -> str:
        observed = getattr(self.health, "observed_state", None)
        return str(observed()["state"] if observed is not None else self.health._state)  # noqa: SLF001 - old releases

    def failed(self, error: str | None, *, attempted: bool) -> None:
        if self.attempting:
            self.health.observe_failure(error, attempted=attempted)
        else:
            self.health.observe_failure(error)

    async def measured(self) -> dict[str, Any]:
        """One real call with a text that no cache can hold, observed as a recall observes it."""
        text = f"advisory preview {uuid.uuid4()}"
        if self.client is None:
            return {"attempted": False, "ok": False, "error": None}
        if not self.probing:
            vectors, outcome = await self.client.embed_with_outcome([text])
            if vectors and vectors[0]:
                if outcome.attempted:
                    self.health.observe_ok()
                return {"attempted": outcome.attempted, "ok": True, "error": None}
            self.failed(outcome.error or NOTHING, attempted=outcome.attempted)
            return {"attempted": outcome.attempted, "ok": False, "error": outcome.error or NOTHING}
        vectors = await self.client.embed([text])
        if vectors and vectors[0]:
            self.health.observe_ok()
            return {"attempted": True, "ok": True, "error": None}
        if self.faulted():
            return {"attempted": True, "ok": False, "error": None}
        # these releases send a second request to learn why the first one failed, and believe that one
        ok, evidence = await self.probe()
        if ok:
            self.health.observe_ok()
        else:
            self.failed(evidence, attempted=True)
        return {"attempted": True, "ok": False, "error": evidence, "overlooked": ok}

    def replayed(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """A call as it was made up, observed as a recall observes it."""
        error, attempted = event.get("error"), bool(event.get("attempted", True))
        if event["ok"]:
            if attempted:
                self.health.observe_ok()
            return {"attempted": attempted, "ok": True, "error": None}
        if not self.probing:
            self.failed(error or NOTHING, attempted=attempted)
            return {"attempted": attempted, "ok": False, "error": error or NOTHING}
        if self.faulted():
            return {"attempted": True, "ok": False, "error": None}
        if event.get("probe") is None:
            self.health.observe_ok()
            return {"attempted": True, "ok": False, "error": None, "overlooked": True}
        self.failed(event["probe"], attempted=True)
        return {"attempted": True, "ok": False, "error": event["probe"]}

    def advised(self, key: str) -> Mapping[str, Any] | None:
        """The advisory that the answer to a recall of the caller ``key`` would carry, or None."""
        arguments: tuple[object, ...] = ()
        if self.keyed:
            effective, declared = self.resolve(key) if self.resolve is not None else (key.strip(), bool(key.strip()))
            arguments = (effective, declared) if self.declaring else (effective if declared else "",)
        advisory: Mapping[str, Any] | None = self.health.maybe_advisory(*arguments)
        return advisory


async def recalls(server: Server, events: Sequence[Mapping[str, Any]], tell: Tell) -> None:
    """Each event in turn, told as soon as it is over."""
    for number, event in enumerate(events, 1):
        began = time.monotonic()
        word, key = event["word"], event.get("key", "")
        call: dict[str, Any] | None = None
        advisory, escaped = None, None
        if word == "check":
            if not server.probing and server.mode != "none":  # before, check_health kept its failures to itself
                server.failed(event.get("error"), attempted=bool(event.get("attempted", True)))
        else:
            server.health.observe_config()
            try:
                if word == "measure":
                    call = await server.measured()
                elif word == "call" and server.mode != "none":
                    call = server.replayed(event)
                advisory = server.advised(key)
            except Exception as error:  # noqa: BLE001 - what the server does not catch ends its recall
                escaped = f"{type(error).__name__}: {error}"
        tell(
            {
                "event": "recall",
                "number": number,
                "word": word,
                "key": key,
                "call": call,
                "escaped": escaped,
                "state": server.state(),
                # as the server writes the whole answer, so that not a byte differs
                "advisory": None if advisory is None else json.dumps(advisory, ensure_ascii=False),
                "seconds": round(time.monotonic() - began, 3),
            }
        )


def _version() -> str:
    try:
        return importlib.import_module("importlib.metadata").version("cpersona")  # type: ignore[no-any-return]
    except Exception:  # noqa: BLE001 - a source tree has none
        return ""


def _absent(error: BaseException) -> str:
    """Which of the server's modules is missing, empty when something else is."""
    name = getattr(error, "name", "") or ""
    return name if isinstance(error, ImportError) and name.split(".")[0] == "cpersona" else ""


async def answer(ask: Mapping[str, Any], tell: Tell, load: Load) -> None:
    """Everything from the import to the last event."""
    try:
        server = Server(load)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever ends its start is the answer
        missing = _absent(error)
        tell({"event": "absent" if missing else "refused", "module": missing, "error": _named(error)})
        return
    tell({"event": "server", "version": _version(), **server.described()})
    try:
        await server.open(calling=any(event["word"] == "measure" for event in ask["events"]))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - likewise
        tell({"event": "refused", "module": "", "error": _named(error)})
        return
    try:
        await recalls(server, ask["events"], tell)
    finally:
        await server.close()
    tell({"event": "end"})


def _named(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip()


def main() -> None:
    """Stdout is kept for the answer: what the server's modules print goes to stderr."""
    out = os.fdopen(os.dup(1), "w", encoding="ascii", newline="\n")
    os.dup2(2, 1)

    def tell(fields: Mapping[str, Any]) -> None:
        out.write(json.dumps(fields) + "\n")
        out.flush()

    asyncio.run(answer(json.loads(sys.stdin.readline()), tell, importlib.import_module))
    out.close()


if __name__ == "__main__":
    main()
