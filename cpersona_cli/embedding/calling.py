"""Calls in a row: counted, repeated once after a drop, and with patience where the user has some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from cpersona_cli.embedding.client import Client
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Clock
from cpersona_cli.embedding.model import Endpoint, Outcome
from cpersona_cli.record import record, replace

#: Makes a client for an endpoint; the second argument is the deadline of each call in seconds, None for its own.
Factory = Callable[[Endpoint, float | None], Client]

#: Ends of a call that one repeat may turn: the server lost this call, not the next one.
DROPS = frozenset({Kind.DISCONNECTED, Kind.SERVER_ERROR, Kind.EMPTY, Kind.UPSTREAM_FAILED})
#: Ends that pass by themselves while a server starts.
STARTING = frozenset({
    Kind.LOADING, Kind.REFUSED, Kind.TIMEOUT, Kind.CONNECT_TIMEOUT, Kind.UNROUTABLE, Kind.THROTTLED, Kind.DISCONNECTED,
    Kind.UPSTREAM_FAILED,
})  # fmt: skip
#: Seconds that are waited without being asked to, when a server says how long.
COURTESY = 5.0
#: Pauses between attempts, in seconds: doubled from the first to the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0


def connect(endpoint: Endpoint, deadline: float | None) -> Client:
    """The real client."""
    return Client(endpoint, deadline=deadline)


@dataclass(slots=True, kw_only=True)
class Caller:
    """One open connection to one endpoint. Use as an async context manager.

    ``calls`` counts requests, ``dropped`` those that failed and went through when repeated.
    """

    endpoint: Endpoint
    factory: Factory = connect
    deadline: float | None = None
    clock: Clock = field(default_factory=Clock)
    calls: int = 0
    dropped: int = 0
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _client: Client | None = None

    async def __aenter__(self) -> Self:
        self._client = await self._stack.enter_async_context(self.factory(self.endpoint, self.deadline))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def once(self, texts: Sequence[str]) -> Outcome:
        """One request."""
        assert self._client is not None  # noqa: S101 - for the type checker
        self.calls += 1
        return await self._client.embed(texts)

    async def embed(self, texts: Sequence[str]) -> Outcome:
        """One request, and a second one where the first was dropped or told to wait a moment."""
        outcome = await self.once(texts)
        if outcome.kind in DROPS:
            again = await self.once(texts)
            self.dropped += again.ok
            return again
        told = outcome.retry_after
        if outcome.kind is Kind.THROTTLED and told is not None and told <= COURTESY:
            await self.clock.sleep(told)
            return await self.once(texts)
        return outcome

    async def patiently(self, texts: Sequence[str], seconds: float) -> Outcome:
        """One request that may take all of ``seconds``, where that is longer than the endpoint's own timeout."""
        patient = replace(self.endpoint, timeout=max(self.endpoint.timeout, seconds))
        async with self.factory(patient, max(self.endpoint.timeout, seconds)) as client:
            self.calls += 1
            return await client.embed(texts)


@record(kw_only=True)
class Contact:
    """The first call that decides. ``waited`` are the seconds until it was answered, None when it never was."""

    outcome: Outcome
    waited: float | None
    attempts: int = 1


async def contact(caller: Caller, texts: Sequence[str], wait: float) -> Contact:
    """Call until the endpoint answers or ``wait`` seconds are over; with none, once (and once more after a drop)."""
    clock = caller.clock
    start = clock.now()
    if wait <= 0 or caller.endpoint.timeout <= 0:
        outcome = await caller.embed(texts)
        return Contact(outcome=outcome, waited=clock.now() - start if outcome.ok else None)
    kinds: list[Kind] = []
    pause = FIRST_PAUSE
    while True:
        outcome = await caller.patiently(texts, wait - (clock.now() - start))
        elapsed = clock.now() - start
        if outcome.ok or not _passes(outcome.kind, kinds):
            break
        rest = wait - elapsed
        told = outcome.retry_after
        if rest <= 0 or (told is not None and told > rest):
            break
        kinds.append(outcome.kind)
        await clock.sleep(min(rest, pause if told is None else max(told, FIRST_PAUSE)))
        pause = min(LONGEST_PAUSE, pause * 2)
    waited = elapsed if outcome.ok else None
    return Contact(outcome=outcome, waited=waited, attempts=len(kinds) + 1)


def _passes(kind: Kind, earlier: Sequence[Kind]) -> bool:
    """Whether it may pass by itself; what is only a drop is repeated once."""
    return kind in STARTING or (kind in DROPS and kind not in earlier)
