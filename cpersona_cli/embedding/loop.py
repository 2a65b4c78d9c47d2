"""Running calls: an event loop whose end waits for nothing that a deadline gave up.

Names are looked up in threads, and a name service that is silent holds a thread for up to half a minute.
``asyncio.run`` waits for such threads before it returns; here they are left behind.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Unawaited(ThreadPoolExecutor):
    """One thread for each piece of work, which neither the loop nor the interpreter waits for."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        threading.Thread(target=_do, args=(future, lambda: work(*args, **kwargs)), daemon=True).start()
        return future


def _do(future: Future[T], work: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - it belongs to the one who waits
        future.set_exception(error)
    else:
        future.set_result(result)


def run(main: Coroutine[Any, Any, T]) -> T:
    """What ``main`` returns, as from ``asyncio.run``.

    What a signal handler raises meanwhile ends ``main`` by cancelling it, and is raised when it has ended. Raised in
    whatever callback it happened to meet, it could come out as another error, or as a line in the loop's log.
    """
    raised: list[BaseException] = []

    async def inside() -> T:
        asyncio.get_running_loop().set_default_executor(_Unawaited())
        with _cancelling(raised):
            return await main

    try:
        return asyncio.run(inside())
    finally:
        if raised:
            raise raised[0] from None


@contextmanager
def _cancelling(raised: list[BaseException]) -> Iterator[None]:
    """Let the handlers of SIGINT and SIGTERM cancel the running task where they would raise, for the block."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    before: dict[int, Any] = {}

    def hear(number: int, frame: FrameType | None) -> None:
        try:
            before[number](number, frame)
        except BaseException as error:  # noqa: BLE001 - raised by ``run``
            raised.append(error)
            assert task is not None  # noqa: S101 - for the type checker; a coroutine runs
            loop.call_soon_threadsafe(task.cancel)

    try:
        with suppress(ValueError):  # not the main thread: no signal is heard here
            for heard in (signal.SIGINT, signal.SIGTERM):
                if callable(handler := signal.getsignal(heard)):
                    before[heard] = handler
                    signal.signal(heard, hear)
        yield
    finally:
        with suppress(ValueError):
            for number, handler in before.items():
                signal.signal(number, handler)
