from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable

import pytest

from cpersona_cli.commands.process import TerminatedError
from cpersona_cli.commands.signals import Patience, patient
from cpersona_cli.report.exits import Exit


@pytest.mark.parametrize(
    ("number", "code", "error"),
    [
        (signal.SIGINT, Exit.INTERRUPTED, KeyboardInterrupt),
        (signal.SIGTERM, Exit.TERMINATED, TerminatedError),
    ],
)
def test_the_first_signal_is_a_wish_and_the_second_an_order(
    number: signal.Signals, code: Exit, error: type[BaseException]
) -> None:
    heard: list[bool] = []
    before = signal.getsignal(number)
    with patient(lambda: heard.append(True)) as patience:
        assert not patience.stop.asked
        signal.raise_signal(number)
        assert (patience.stop.asked, patience.code, heard) == (True, code, [True])
        with pytest.raises(error):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before
    assert heard == [True]


def test_two_signals_at_once_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second may be heard before the first has been: Python begins with it at the first line of its handler."""
    patience = Patience()
    hear = Patience.hear

    def interrupted(own: Patience, number: int, tell: Callable[[], object]) -> None:
        if number == signal.SIGINT:
            own.hear(signal.SIGTERM, tell)
        hear(own, number, tell)

    monkeypatch.setattr(Patience, "hear", interrupted)
    with pytest.raises(TerminatedError):
        patience.hear(signal.SIGINT, lambda: None)
    assert (patience.stop.asked, patience.code) == (True, Exit.TERMINATED)


def test_elsewhere_than_in_the_main_thread_signals_are_left_alone() -> None:
    asked: list[bool] = []

    def run() -> None:
        with patient(lambda: None) as patience:
            asked.append(patience.stop.asked)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    assert asked == [False]


def test_an_event_loop_lets_a_termination_through() -> None:
    """In a callback, where a loop would make a log line of another exception and go on."""

    async def work() -> None:
        asyncio.get_running_loop().call_soon(raising)
        await asyncio.sleep(60)

    def raising() -> None:
        raise TerminatedError

    with pytest.raises(TerminatedError):
        asyncio.run(work())
