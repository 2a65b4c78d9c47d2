"""The client: one request as the server would send it, bounded in time and size, and never an exception.

Differences from the server's own client are all in what may go wrong: a total deadline beside the timeout of each
phase, a body that is streamed and capped after decompression, and no texts answered from a cache.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

import httpx

from cpersona_cli.embedding import server_view
from cpersona_cli.embedding.body import judge_body
from cpersona_cli.embedding.configuration import Objection, objection, proxy_of
from cpersona_cli.embedding.failures import DeadlineError, judge_exception
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.meaning import judge_vectors, norms
from cpersona_cli.embedding.model import Endpoint, Mode, Outcome, Reply, ServerView
from cpersona_cli.embedding.reply import Sent, judge_failure, retry_after
from cpersona_cli.embedding.sentence import quotable
from cpersona_cli.text import bare_url, safe

#: Bytes of a reply body, after decompression, past which reading stops.
BODY_CAP = 64 << 20


@dataclass(slots=True)
class _Progress:
    """How far a call got, for the exception that ends it."""

    phase: str = "a connection"
    head: bool = False
    body: bytearray = field(default_factory=bytearray)


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
        # a keyless local server answers without a key, although CPersona cannot call it so: see `sendable`
        if self._objection is None:
            try:
                proxy = proxy_of(self.endpoint)
                self._proxy = "" if proxy is None else f"{proxy.name}={bare_url(proxy.url)}"
                self._http = httpx.AsyncClient(
                    timeout=self.endpoint.timeout,
                    trust_env=False,
                    proxy=None if proxy is None else proxy.url,
                    verify=_trust(self.endpoint.environment),
                )
            except Exception as error:  # noqa: BLE001 - any failure to build a client is a configuration outcome
                self._objection = Objection(Kind.CONFIG_CLIENT, type(error).__name__)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def embed(self, texts: Sequence[str]) -> Outcome:
        """Embed ``texts`` in one request. Never raises but for cancellation; the outcome says everything."""
        started = time.monotonic()
        outcome = await self._embed(list(texts))
        return replace(outcome, elapsed=time.monotonic() - started, via_proxy=self._proxy)

    async def _embed(self, texts: list[str]) -> Outcome:
        if self._objection is not None:
            return self._unsendable(self._objection)
        if not texts or not all(isinstance(text, str) for text in texts):
            return _without_call(Kind.INPUT_INVALID, "no texts" if not texts else "a text is not a string")
        try:
            content = self._content(texts)
        except (UnicodeEncodeError, ValueError) as error:
            view = server_view.of_exception(self.endpoint, error)
            return Outcome(kind=Kind.INPUT_INVALID, attempted=False, server_view=view, evidence=_because(error))
        progress = _Progress()
        try:
            async with asyncio.timeout(self.deadline):
                reply = await self._exchange(content, progress)
        except asyncio.CancelledError:
            raise
        except TimeoutError:
            return self._failed(DeadlineError(progress.phase), progress, httpx.ReadTimeout(""))
        except Exception as error:  # noqa: BLE001 - the partition is total
            return self._failed(error, progress, error)
        return self._judged(reply, texts, len(content))

    def _content(self, texts: list[str]) -> bytes:
        """The request body, byte for byte the server's: compact JSON, UTF-8 unescaped, no NaN."""
        document: dict[str, object] = {"texts": texts}
        if self.endpoint.mode == Mode.API:
            document = {"model": self.endpoint.model, "input": texts}
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        # CPersona sends `Bearer ` and nothing, which no HTTP library lets through; a keyless server needs no header
        if self.endpoint.mode == Mode.API and self.endpoint.key:
            headers["Authorization"] = f"Bearer {self.endpoint.key}"
        return headers

    async def _exchange(self, content: bytes, progress: _Progress) -> Reply:
        assert self._http is not None  # noqa: S101 - for the type checker; __aenter__ made it
        async with self._http.stream("POST", self.endpoint.url, content=content, headers=self._headers()) as response:
            progress.head, progress.phase = True, "the rest of the body"
            overflow = False
            async for chunk in response.aiter_bytes():
                progress.body += chunk
                if len(progress.body) > self.cap:
                    overflow = True
                    del progress.body[self.cap :]
                    break
            return Reply(
                status=response.status_code,
                headers={name.lower(): value for name, value in response.headers.items()},
                body=bytes(progress.body),
                reason=response.reason_phrase,
                overflow=overflow,
            )

    def _unsendable(self, wrong: Objection) -> Outcome:
        evidence = (("objection", wrong.detail), *((("suggestion", wrong.suggestion),) if wrong.suggestion else ()))
        return Outcome(kind=wrong.kind, attempted=False, server_view=self._view_of(wrong), evidence=evidence)

    def _view_of(self, wrong: Objection) -> ServerView:
        """What the server records where we send nothing: it tries, and reports an outage."""
        if wrong.kind in {Kind.DISABLED, Kind.CONFIG_MODE}:
            return server_view.not_called(self.endpoint.mode)
        return server_view.of_unsendable(self.endpoint)

    def _failed(self, error: BaseException, progress: _Progress, seen: BaseException) -> Outcome:
        failure = judge_exception(error, proxied=bool(self._proxy), head_seen=progress.head)
        evidence: tuple[tuple[str, str], ...] = (("cause", failure.detail), ("while", progress.phase))
        if progress.head:
            evidence = (*evidence, ("received", f"{len(progress.body)} bytes of the body"))
        return Outcome(
            kind=failure.kind,
            attempted=True,
            server_view=server_view.of_exception(self.endpoint, seen),
            evidence=evidence,
        )

    def _judged(self, reply: Reply, texts: list[str], size: int) -> Outcome:
        sent = Sent(mode=self.endpoint.mode, count=len(texts), size=size, proxied=bool(self._proxy))
        view = server_view.of_reply(self.endpoint, reply, len(texts))
        if self.endpoint.mode == Mode.API and not self.endpoint.key:
            view = server_view.of_unsendable(self.endpoint)
        if not 200 <= reply.status < 300:
            head = judge_failure(reply, sent)
            said = quotable(head.info.message, self.endpoint.secrets)
            evidence: tuple[tuple[str, str], ...] = (("form", head.info.form),)
            location = reply.headers.get("location", "")
            if head.kind is Kind.REDIRECTED and location:
                evidence = (*evidence, ("location", quotable(bare_url(location), self.endpoint.secrets)))
            return Outcome(
                kind=head.kind,
                attempted=True,
                server_view=view,
                status=reply.status,
                server_message=said,
                retry_after=retry_after(reply.headers, head.info.message, time.time),
                limit=head.limit,
                evidence=evidence,
            )
        body = judge_body(reply, sent)
        said = quotable(body.info.message, self.endpoint.secrets) if body.info else ""
        evidence = tuple(
            (name, safe(value))
            for name, value in (
                ("detail", body.detail),
                ("looks like", body.seen_as),
                ("content type", reply.headers.get("content-type", "") if body.kind is not Kind.OK else ""),
                ("order", "the server answers out of order" if body.out_of_order else ""),
            )
            if value
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
            server_message=said,
            vectors=body.vectors,
            dim=len(body.vectors[0]) if body.vectors else None,
            norms=lengths,
            model=safe(body.model, 100),
            evidence=evidence,
        )


def _trust(environment: Mapping[str, str]) -> ssl.SSLContext | bool:
    """The certificates the server's client would trust: its own bundle, unless a variable names another."""
    file, folder = environment.get("SSL_CERT_FILE"), environment.get("SSL_CERT_DIR")
    if file:
        return ssl.create_default_context(cafile=file)
    return ssl.create_default_context(capath=folder) if folder else True


def _without_call(kind: Kind, detail: str) -> Outcome:
    view = ServerView(attempted=True, ok=False)
    return Outcome(kind=kind, attempted=False, server_view=view, evidence=(("detail", detail),))


def _because(error: BaseException) -> tuple[tuple[str, str], ...]:
    return (("cause", type(error).__name__),)
