"""What every test may use."""

from __future__ import annotations

import asyncio
import functools
import signal
import sys
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.real_endpoints import e5, embed_python, minilm, supercat
from support.stores import copy_store, write_store

# The same examples in every run, and no limit on their time: the verdict depends neither on luck nor on other load.
settings.register_profile("gate", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gate")
# pytest --hypothesis-profile=nightly
settings.register_profile("nightly", max_examples=10_000, derandomize=False, deadline=None)

__all__ = ["e5", "embed_python", "minilm", "server_store", "store", "supercat"]


@functools.wraps(asyncio.run)
def _run_in_a_thread(main: Coroutine[Any, Any, Any], **options: Any) -> Any:
    """What ``asyncio.run`` does, in a thread of its own.

    Python 3.11 tells a tracer of the end of a coroutine that an exception was thrown into, and not of its beginning:
    coverage then takes the caller for ended, and does not see what it does next. A thread keeps that to itself.
    Signals are heard in the main thread alone: what is about them takes ``inspect.unwrap(asyncio.run)``.
    """
    done: list[Any] = []

    def work() -> None:
        try:
            done.append((_run(main, **options), None))
        except BaseException as error:  # noqa: BLE001 - handed on below
            done.append((None, error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    result, error = done[0]
    if error is not None:
        raise error
    return result


if sys.gettrace() is not None and sys.version_info < (3, 12):
    _run, asyncio.run = asyncio.run, _run_in_a_thread

# Where the tests run in the background, an ignored SIGINT would be handed on to every program that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """A command that runs in the process of the tests leaves its signals ignored, and every child would inherit it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def server_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store written by the installed server; not to be changed."""
    return write_store(tmp_path_factory.mktemp("written"))


@pytest.fixture
def store(server_store: Path, tmp_path: Path) -> Path:
    """A copy of ``server_store`` to do anything with."""
    return copy_store(server_store, tmp_path / "store")
