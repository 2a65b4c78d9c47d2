"""A client that answers from a script, and a clock that only moves when somebody waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from cpersona_cli.embedding.client import Arrived, Client
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Clock
from cpersona_cli.embedding.model import Endpoint, Mode, Outcome, ServerView
from cpersona_cli.record import replace

HTTP = Endpoint(mode=Mode.HTTP, url="http://127.0.0.1:8401/embed")


def ended(kind: Kind, **fields: object) -> Outcome:
    """An outcome of ``kind``, as the server would see one of its kind."""
    ok = kind in {Kind.OK, Kind.ZERO_VECTOR, Kind.CONSTANT_VECTOR, Kind.NOT_NORMALIZED}
    outcome = Outcome(kind=kind, attempted=True, server_view=ServerView(attempted=True, ok=ok))
    return replace(outcome, **fields)


class Time:
    """Seconds that pass only by ``sleep`` and by calls that take some; ``slept`` are all the pauses."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.seconds, sleep=self.sleep)


class Script:
    """A client factory. Each call takes the next (seconds, outcome); the last one goes on for ever.

    An outcome that takes longer than the endpoint's timeout is one of time. ``called`` are the endpoints that calls
    went to, with their texts.
    """

    def __init__(self, time: Time, *steps: tuple[float, Outcome]) -> None:
        self.time, self.steps = time, list(steps)
        self.called: list[tuple[Endpoint, Sequence[str]]] = []

    def __call__(self, endpoint: Endpoint, _deadline: float | None) -> Client:
        return _Client(endpoint, self.answer)

    def answer(self, endpoint: Endpoint, texts: Sequence[str]) -> Outcome:
        self.called.append((endpoint, texts))
        seconds, outcome = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        self.time.seconds += min(seconds, endpoint.timeout)
        if seconds > endpoint.timeout:
            return ended(Kind.TIMEOUT, elapsed=endpoint.timeout)
        vectors = [_vector(text) for text in texts] if outcome.ok else ()
        return replace(
            outcome,
            elapsed=seconds,
            vectors=vectors,
            dim=len(vectors[0]) if vectors else None,
            norms=[1.0] * len(vectors),
        )


def _vector(text: str) -> list[float]:
    from support.endpoints_small import embed  # noqa: PLC0415

    return embed(text, 64)


class _Client(Client):
    def __init__(self, endpoint: Endpoint, answer: Callable[[Endpoint, Sequence[str]], Outcome]) -> None:
        super().__init__(endpoint)
        self._answer = answer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def embed(self, texts: Sequence[str], *, arrived: Arrived | None = None) -> Outcome:
        return self._answer(self.endpoint, list(texts))
