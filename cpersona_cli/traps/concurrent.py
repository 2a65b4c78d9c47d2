"""Many readings at once, under one deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def concurrently(
    work: Callable[[T], R], items: Sequence[T], end: float, *, late: str = "not done in time"
) -> tuple[list[R], list[tuple[T, str]]]:
    """Results in the order of ``items``, then the items without one and the reason: ``late``, or what went wrong.

    ``end`` is a monotonic time. Threads are daemons: a file system that never answers must not keep the tool alive.
    """
    results: list[R | None] = [None] * len(items)
    reasons = [late] * len(items)

    def job(index: int) -> None:
        try:
            results[index] = work(items[index])
        except Exception as error:  # noqa: BLE001 - one item that cannot be read must not hide the others
            reasons[index] = f"could not be examined ({type(error).__name__})"

    threads = [threading.Thread(target=job, args=(index,), daemon=True) for index in range(len(items))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    done = [result for result in results if result is not None]
    return done, [(item, reasons[i]) for i, item in enumerate(items) if results[i] is None]
