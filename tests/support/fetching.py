"""What the tests of the pipeline share: rows, a sink that is a list, and a clock that nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.endpoints_small import SmallEndpoint, embed

from cpersona_cli.embedding.client import Client
from cpersona_cli.embedding.loop import run
from cpersona_cli.embedding.measured import Clock
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.embedding.stored import pack
from cpersona_cli.rebuild.model import Fetched, Options
from cpersona_cli.rebuild.pipeline import fetch
from cpersona_cli.store.job import Refused, Staged, Target, digest
from cpersona_cli.store.model import Kind, Row


def rows(*texts: str, first: int = 1) -> list[Row]:
    """Memories of these texts, with ids from ``first``."""
    return [Row(kind=Kind.MEMORY, id=number, text=text) for number, text in enumerate(texts, first)]


def many(count: int, words: int = 6) -> list[Row]:
    """Different texts of one to twice ``words`` words."""
    texts = []
    for number in range(count):
        length = 1 + number % (2 * words)
        texts.append(" ".join([f"n{number}", *(f"word{number * 7 % 31 + place}" for place in range(length))]))
    return rows(*texts)


@dataclass
class ListSink:
    """Keeps what it is given; ``adds`` is one entry for each commit."""

    staged: dict[tuple[Kind, int], Staged] = field(default_factory=dict)
    refused: dict[tuple[Kind, int], Refused] = field(default_factory=dict)
    adds: list[tuple[int, int]] = field(default_factory=list)
    discarded: list[tuple[Kind, int]] = field(default_factory=list)
    before: Callable[[], None] = lambda: None
    _known: dict[bytes, bytes] = field(default_factory=dict)

    def known(self, digest: bytes) -> bytes | None:
        return self._known.get(digest)

    def add(self, staged: Sequence[Staged], refused: Sequence[Refused] = ()) -> None:
        self.before()
        self.adds.append((len(staged), len(refused)))
        for row in staged:
            self.staged[row.kind, row.id] = row
            self.refused.pop((row.kind, row.id), None)
            self._known[row.digest] = row.vector
        for gone in refused:
            self.refused[gone.kind, gone.id] = gone

    def discard(self, rows: Sequence[tuple[Kind, int]]) -> None:
        self.discarded.extend(rows)
        for key in rows:
            self._known.pop(self.staged.pop(key).digest, None)

    @property
    def reasons(self) -> dict[int, str]:
        return {identifier: refused.reason for (_, identifier), refused in self.refused.items()}


class FakeClock:
    """A clock that only sleeping moves; ``slept`` are the seconds that were waited, in their order."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)

    @property
    def clock(self) -> Clock:
        return Clock(now=self.now, sleep=self.sleep)


def target(width: int = 64, mode: str = "http", **options: Any) -> Target:
    return Target(**{"mode": mode, "url": "http://127.0.0.1/embed", "model": "m", "dim": width, **options})


def fetched(
    server: SmallEndpoint,
    some: Iterable[Row],
    sink: ListSink,
    *,
    path: str = "/embed",
    timeout: float = 30.0,
    clock: FakeClock | None = None,
    tell: Any = None,
    stop: asyncio.Event | None = None,
    aim: Target | None = None,
    deadline: float | None = None,
    **options: Any,
) -> Fetched:
    """Run the pipeline against ``server``."""
    mode = "api" if path.startswith("/v1") else "http"
    endpoint = Endpoint(mode=mode, url=server.url(path), key="key" if mode == "api" else "", model="m", timeout=timeout)
    chosen = Options(target=aim or target(server.behaviour.width, mode), **options)
    return run(
        fetch(
            some,
            sink,
            endpoint,
            chosen,
            tell=tell,
            stop=stop,
            factory=lambda where, _: Client(where, deadline=deadline),
            clock=clock.clock if clock else None,
        )
    )


def right(sink: ListSink, some: Iterable[Row], width: int = 64, mode: str = "http") -> bool:
    """Whether every one of ``some`` has the vector of its own text."""
    for row in some:
        staged = sink.staged[row.kind, row.id]
        if staged.digest != digest(row.text) or staged.vector != pack(mode, embed(row.text, width)):
            return False
    return True
