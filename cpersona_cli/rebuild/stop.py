"""A wish to stop, which a signal may express at any moment and long work honours at the next good one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class Stop:
    """Whether to stop. ``ask`` may be called from a signal handler, at any time and again and again."""

    def __init__(self) -> None:
        self.asked = False
        self._wakes: list[Callable[[], object]] = []

    def ask(self) -> None:
        """Wish to stop."""
        self.asked = True
        for wake in tuple(self._wakes):
            wake()

    @contextmanager
    def event(self) -> Iterator[asyncio.Event]:
        """The same wish as an event of the running loop."""
        event = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(event.set)

        self._wakes.append(wake)
        try:
            if self.asked:
                event.set()
            yield event
        finally:
            self._wakes.remove(wake)

    async def unless(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What ``work`` returns; None once the wish is there: ``work`` is broken off, and must leave nothing behind."""
        with self.event() as event:
            working, wish = asyncio.ensure_future(work), asyncio.ensure_future(event.wait())
            try:
                await asyncio.wait([working, wish], return_when=asyncio.FIRST_COMPLETED)
                return working.result() if working.done() else None
            finally:
                for task in (working, wish):
                    task.cancel()
                await asyncio.gather(working, wish, return_exceptions=True)
