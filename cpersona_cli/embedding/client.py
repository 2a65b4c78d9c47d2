"""The client: one request as the server would send it, bounded in time and size, and never an exception.

Differences from the server's own client are all in what may go wrong: a total deadline beside the timeout of each
phase, a body that is streamed and capped after decompression, and no texts answered from a cache.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpx

from cpersona_cli.embedding import server_view
from cpersona_cli.embedding.body import MAX_BODY, Body, judge_body
from cpersona_cli.embedding.configuration import Objection, objection, proxy_of
from cpersona_cli.embedding.failures import DeadlineError, Phase, judge_exception
from cpersona_cli.embedding.inflate import ACCEPTED, decoder
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.meaning import judge_vectors, norms
from cpersona_cli.embedding.model import Endpoint, Mode, Outcome, Reply, ServerView
from cpersona_cli.embedding.reply import Head, Sent, judge_failure
from cpersona_cli.embedding.sentence import ERROR_BYTES, quotable, unquoted
from cpersona_cli.embedding.transport import open_http
from cpersona_cli.record import replace
from cpersona_cli.text import bare_url

#: Bytes of a reply body, after decompression, past which reading stops: the server refuses more.
BODY_CAP = MAX_BODY

#: Awaited between the beginning of a reply's body and the rest of it.
Arrived = Callable[[], Awaitable[None]]

# The HTTP library's steps, by the last part of their names, and what is waited for once one has begun.
_STEPS: Mapping[str, Phase] = {
    "connect_tcp": Phase.CONNECTION,
    "start_tls": Phase.HANDSHAKE,
    "send_request_headers": Phase.ANSWER,
}
_CONNECTING = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.PoolTimeout)


@dataclass(slots=True)
class _Progress:
    """How far a call got, for the exception that ends it."""

    phase: Phase = Phase.CONNECTION
    body: bytearray = field(default_factory=bytearray, repr=False)
    bare: object = None

    async def trace(self, event: str, info: Mapping[str, object]) -> None:
        step, state = event.split(".")[1:3]
        if state == "started" and self.phase is not Phase.BODY:
            self.phase = _STEPS.get(step, self.phase)
        elif step == "connect_tcp" and state == "complete":
            self.bare = info["return_value"]

    async def close_bare(self) -> None:
        """Close a connection that was given up during its handshake, which the library leaves open."""
        close = getattr(self.bare, "aclose", None)
        if self.phase is Phase.HANDSHAKE and close is not None:
            with contextlib.suppress(Exception):
                await close()


class Client:
    """A connection pool to one endpoint. Use as an async context manager.

    ``deadline`` bounds each call as a whole in seconds (None: four times the endpoint's own timeout); ``cap`` is the
    largest body in bytes.
    """

    def __init__(self, endpoint: Endpoint, *, deadline: float | None = None, cap: int = BODY_CAP) -> None:
        self.endpoint = endpoint
        self.deadline = 4 * max(endpoint.timeout, 1.0) if deadline is None else deadline
        self.cap = cap
        self._objection: Objection | None = objection(endpoint)
        self._http: httpx.AsyncClient | None = None
        self._proxy = ""

    async def __aenter__(self) -> Self:
        if self._objection is None:
            try:
                proxy = proxy_of(self.endpoint)
                self._proxy = "" if proxy is None else f"{proxy.name}={bare_url(proxy.url)}"
                self._http = open_http(self.endpoint, self.endpoint.timeout)
            except Exception as error:  # noqa: BLE001 - any failure to build a client is a configuration outcome
                name = type(error).__name__
                self._objection = Objection(Kind.CONFIG_CLIENT, name, crash=name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def embed(self, texts: Sequence[str], *, arrived: Arrived | None = None) -> Outcome:
        """Embed ``texts`` in one request. Never raises but for cancellation; the outcome says everything.

        ``arrived`` is awaited once the body of a reply begins to come, before the rest of it is taken in.
        """
        started = time.monotonic()
        outcome = await self._embed(list(texts), arrived)
        return replace(outcome, elapsed=time.monotonic() - started, via_proxy=self._proxy)

    async def _embed(self, texts: list[str], arrived: Arrived | None) -> Outcome:
        if self._objection is not None:
            return self._unsendable(self._objection)
        if not texts:
            return _without_call(Kind.INPUT_INVALID, "no texts", server_view.of_no_texts(self.endpoint))
        if not all(isinstance(text, str) for text in texts):
            view = ServerView(attempted=True, ok=False, crash="AttributeError" if len(texts) == 1 else "")
            return _without_call(Kind.INPUT_INVALID, "a text is not a string", view)
        try:
            content = self._content(texts)
        except UnicodeEncodeError as error:
            # one text alone the server looks up in its cache first, outside of what it catches
            lost = server_view.of_crash("UnicodeEncodeError") if len(texts) == 1 else None
            view = lost or server_view.of_exception(self.endpoint, error)
            return _without_call(Kind.INPUT_INVALID, "a text holds half a character", view)
        progress = _Progress()
        try:
            async with asyncio.timeout(self.deadline) as limit:
                reply = await self._exchange(content, progress, arrived)
        except Exception as error:  # noqa: BLE001 - the partition is total
            return self._failed(DeadlineError() if limit.expired() else error, progress)
        try:
            return self._judged(reply, texts, len(content))
        except Exception as error:  # noqa: BLE001 - a reply that breaks the judges is a fault of ours, not of the caller's
            return self._failed(error, progress)

    def _content(self, texts: list[str]) -> bytes:
        """The request body, byte for byte the server's: compact JSON, UTF-8 unescaped, no NaN."""
        document: dict[str, object] = {"texts": texts}
        if self.endpoint.mode == Mode.API:
            document = {"model": self.endpoint.model, "input": texts}
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept-Encoding": ACCEPTED}
        # CPersona sends `Bearer ` and nothing, which no HTTP library lets through; a keyless server needs no header
        if self.endpoint.mode == Mode.API and self.endpoint.key:
            headers["Authorization"] = f"Bearer {self.endpoint.key}"
        return headers

    async def _exchange(self, content: bytes, progress: _Progress, arrived: Arrived | None) -> Reply:
        assert self._http is not None  # noqa: S101 - for the type checker; __aenter__ made it
        request = self._http.build_request(
            "POST",
            self.endpoint.url,
            content=content,
            headers=self._headers(),
            extensions={"trace": progress.trace},
        )
        try:
            response = await self._http.send(request, stream=True)
        except BaseException:
            await progress.close_bare()
            raise
        try:
            progress.phase = Phase.BODY
            # of an error reply only the sentence is wanted
            cap = self.cap if response.is_success else min(self.cap, ERROR_BYTES)
            overflow = await _read(response, progress.body, cap, arrived)
        finally:
            await response.aclose()
        return Reply(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=bytes(progress.body),
            reason=response.reason_phrase,
            overflow=overflow,
            cap=cap,
        )

    def _unsendable(self, wrong: Objection) -> Outcome:
        shown = bare_url(wrong.suggestion)
        evidence = (("objection", wrong.detail), *((("suggestion", shown),) if shown else ()))
        return Outcome(
            kind=wrong.kind, attempted=False, server_view=self._view_of(wrong), evidence=self._shown(evidence)
        )

    def _view_of(self, wrong: Objection) -> ServerView:
        """What the server records where we send nothing: it tries, and reports an outage."""
        if wrong.kind in {Kind.DISABLED, Kind.CONFIG_MODE}:
            return server_view.not_called(self.endpoint.mode)
        return server_view.of_crash(wrong.crash) if wrong.crash else server_view.of_unsendable(self.endpoint)

    def _failed(self, error: Exception, progress: _Progress) -> Outcome:
        failure = judge_exception(error, phase=progress.phase, proxied=bool(self._proxy))
        evidence: tuple[tuple[str, str], ...] = (("cause", failure.detail), ("while", f"waiting for {progress.phase}"))
        if progress.phase is Phase.BODY:
            evidence = (*evidence, ("received", f"{len(progress.body)} bytes of the body"))
        if isinstance(error, DeadlineError):
            view = server_view.pending()
        elif self._keyless and not isinstance(error, _CONNECTING):
            view = server_view.of_unsendable(self.endpoint)
        else:
            view = server_view.of_exception(self.endpoint, error)
        return Outcome(kind=failure.kind, attempted=True, server_view=view, evidence=self._shown(evidence))

    @property
    def _keyless(self) -> bool:
        """A call that we make without a key, and CPersona cannot make."""
        return self.endpoint.mode == Mode.API and not self.endpoint.key

    def _judged(self, reply: Reply, texts: list[str], size: int) -> Outcome:
        sent = Sent(mode=self.endpoint.mode, count=len(texts), size=size, proxied=bool(self._proxy))
        if not 200 <= reply.status < 300:
            return self._of_head(judge_failure(reply, sent), reply, texts, self._view_of_reply(reply, len(texts)))
        body = judge_body(reply, sent)
        if body.kind is Kind.OK and not self._keyless:
            # what passes here passes there, and a large reply takes long to be read a second time
            view = ServerView(attempted=True, ok=True)
        else:
            view = self._view_of_reply(reply, len(texts))
        return self._of_body(body, reply, texts, view)

    def _view_of_reply(self, reply: Reply, count: int) -> ServerView:
        if self._keyless:
            return server_view.of_unsendable(self.endpoint)
        return server_view.of_reply(self.endpoint, reply, count)

    def _of_head(self, head: Head, reply: Reply, texts: list[str], view: ServerView) -> Outcome:
        location = reply.headers.get("location", "") if head.kind is Kind.REDIRECTED else ""
        evidence = [("form", head.info.form)]
        if location:
            evidence.append(("location", bare_url(location)))
        if head.info.form == "html":
            evidence.append(("content type", reply.headers.get("content-type", "")))
        return Outcome(
            kind=head.kind,
            attempted=True,
            server_view=view,
            status=reply.status,
            server_message=quotable(unquoted(head.info.message, texts), self.endpoint.secrets),
            retry_after=head.retry_after,
            limit=head.limit,
            evidence=self._shown(tuple(evidence)),
        )

    def _of_body(self, body: Body, reply: Reply, texts: list[str], view: ServerView) -> Outcome:
        evidence: tuple[tuple[str, str], ...] = (
            ("detail", body.detail),
            ("looks like", body.seen_as),
            ("content type", reply.headers.get("content-type", "") if body.kind is not Kind.OK else ""),
            ("order", "the server answers out of order" if body.out_of_order else ""),
        )
        kind, lengths = body.kind, norms(body.vectors)
        if kind is Kind.OK:
            verdict = judge_vectors(self.endpoint.mode, texts, body.vectors, lengths)
            kind, evidence = verdict.kind, (*evidence, *verdict.evidence)
        return Outcome(
            kind=kind,
            attempted=True,
            server_view=view,
            status=reply.status,
            server_message=quotable(unquoted(body.info.message, texts), self.endpoint.secrets) if body.info else "",
            retry_after=body.retry_after,
            limit=body.limit,
            vectors=body.vectors,
            dim=len(body.vectors[0]) if body.vectors else None,
            norms=lengths,
            model=quotable(body.model[:100], self.endpoint.secrets),
            stated_dim=body.stated_dim,
            evidence=self._shown(evidence),
        )

    def _shown(self, evidence: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        """What stands beside the kind, with nothing in it that must not leave; empty values are left out."""
        secrets = self.endpoint.secrets
        return tuple((name, quotable(value, secrets)) for name, value in evidence if value)


async def _read(response: httpx.Response, body: bytearray, cap: int, arrived: Arrived | None) -> bool:
    """Fill ``body`` with at most ``cap`` decompressed bytes; whether there were more."""
    layers = decoder(response.headers.get("content-encoding", ""))
    async for received in response.aiter_raw():
        if arrived is not None:
            await arrived()
            arrived = None
        for piece in layers.decode(received):
            body += piece
            if len(body) > cap:
                # nothing reads a body that is too large but for its beginning
                del body[min(cap, ERROR_BYTES) :]
                return True
    return False


def _without_call(kind: Kind, detail: str, view: ServerView) -> Outcome:
    return Outcome(kind=kind, attempted=False, server_view=view, evidence=(("detail", detail),))
