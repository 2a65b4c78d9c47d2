"""The end of the loop waits for no thread."""

from __future__ import annotations

import asyncio
import inspect
import signal
import socket
import threading
from concurrent.futures import Future

import pytest

from cpersona_cli.embedding.client import Client
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.loop import _do, run
from cpersona_cli.embedding.model import Endpoint, Outcome


async def embed(url: str, deadline: float) -> Outcome:
    async with Client(Endpoint(mode="http", url=url, timeout=20.0), deadline=deadline) as client:
        return await client.embed(["a falcon"])


def test_a_name_service_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, gone = threading.Event(), threading.Event()

    def silent(*_: object, **__: object) -> list[object]:
        answer.wait(60)
        gone.set()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    try:
        outcome = run(embed("http://slow.invalid/embed", 0.3))
        # nobody answered yet, and the loop is over all the same
        assert not answer.is_set()
    finally:
        answer.set()
        gone.wait(60)
    assert outcome.kind is Kind.CONNECT_TIMEOUT
    assert outcome.server_view.pending


def test_results_and_exceptions_come_back() -> None:
    async def both() -> tuple[str, str]:
        loop = asyncio.get_running_loop()
        good = await loop.run_in_executor(None, "falcon".upper)
        try:
            await loop.run_in_executor(None, int, "falcon")
        except ValueError as error:
            return good, type(error).__name__
        return good, ""

    assert run(both()) == ("FALCON", "ValueError")


def test_what_the_caller_raises_is_raised() -> None:
    async def fails() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        run(fails())


def test_work_that_was_given_up_before_it_began() -> None:
    future: Future[None] = Future()
    future.cancel()
    _do(future, lambda: pytest.fail("not to be done"))
    assert future.cancelled()


class StoppedError(KeyboardInterrupt):
    """What a handler of this tool raises."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("patience", [0, 1])
def test_what_a_signal_handler_raises_comes_out_as_it_is(
    number: int, patience: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raised in a callback it would be the loop's to tell; here it ends the work in an orderly way first."""
    monkeypatch.setattr(asyncio, "run", inspect.unwrap(asyncio.run))
    heard, ended = [], []

    def handler(number: int, _frame: object) -> None:
        heard.append(number)
        if len(heard) > patience:
            raise StoppedError

    async def work() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(patience + 1):
            loop.call_soon(signal.raise_signal, number)  # within a callback, as most of a loop's time is spent
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
        await asyncio.sleep(60)

    before = signal.signal(number, handler)
    try:
        with pytest.raises(StoppedError) as raised:
            run(work())
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)
    assert raised.value.__cause__ is None
    assert heard == [number] * (patience + 1)
    assert ended == ["cancelled"]


def test_a_loop_in_another_thread_hears_no_signal() -> None:
    before = signal.getsignal(signal.SIGTERM)
    found: list[object] = []

    async def work() -> None:
        found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=lambda: run(work()))
    thread.start()
    thread.join()
    assert found == [before]
