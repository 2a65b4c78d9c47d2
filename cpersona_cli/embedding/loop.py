"""Running calls: an event loop whose end waits for nothing that a deadline gave up.

Names are looked up in threads, and a name service that is silent holds a thread for up to half a minute.
``asyncio.run`` waits for such threads before it returns; here they are left behind.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
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
    """What ``main`` returns, as from ``asyncio.run``."""

    async def inside() -> T:
        asyncio.get_running_loop().set_default_executor(_Unawaited())
        return await main

    return asyncio.run(inside())
