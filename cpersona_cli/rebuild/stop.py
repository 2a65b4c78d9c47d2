"""A wish to stop, which a signal may express at any moment and long work honours at the next good one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
