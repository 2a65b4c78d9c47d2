"""This process: what it must survive, and what it says of its own bugs."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from cpersona_cli import __version__
from cpersona_cli.commands.errors import CommandError
from cpersona_cli.report.exits import Exit

if TYPE_CHECKING:
    from types import FrameType

NAME = "cpersona-cli"


class TerminatedError(KeyboardInterrupt):
    """SIGTERM arrived. An event loop lets an interrupt through; of other errors in a callback it makes a log line."""

    arrived = False


def prepare() -> None:
    """Survive closed descriptors, any encoding of stdout, and SIGTERM."""
    with suppress(OSError):
        # Nothing may be opened in the place of a closed stdin, stdout or stderr: no database must get its number.
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    import signal  # noqa: PLC0415

    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, _terminate)


def impatient() -> None:
    """Let a second SIGINT or SIGTERM end the process at once: the first is being answered."""
    _on_signals("SIG_DFL")


def delivered() -> None:
    """The result is out. A signal that comes while the interpreter ends must not change the exit code it states."""
    _on_signals("SIG_IGN")


def _on_signals(handler: str) -> None:
    import signal  # noqa: PLC0415

    with suppress(ValueError):  # not the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.Handlers[handler])


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    TerminatedError.arrived = True
    raise TerminatedError


def interruption() -> KeyboardInterrupt:
    """What stopped this process, where only that something did is left of it."""
    return TerminatedError() if TerminatedError.arrived else KeyboardInterrupt()


def exit_code(error: BaseException) -> Exit:
    """What the application will make of an exception that ends a run."""
    if isinstance(error, TerminatedError):
        return Exit.TERMINATED
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    return error.code if isinstance(error, CommandError) else Exit.NO_VERDICT


def crash(error: BaseException, state: str = "Nothing was changed.") -> str:
    """Name the class and the place of a crash, and in what ``state`` it leaves things.

    Its message stays unsaid: it may quote what must not leave.
    """
    from traceback import extract_tb, format_list  # noqa: PLC0415

    frames = extract_tb(error.__traceback__)
    where = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""  # noqa: PTH119
    if os.environ.get("CPERSONA_CLI_DEBUG") == "1":
        from cpersona_cli.report.output import say  # noqa: PLC0415

        say("".join(format_list(frames)))
    return (
        f"this is a bug in {NAME} {__version__}: {type(error).__name__}{where}. {state} "
        "Please report this line; CPERSONA_CLI_DEBUG=1 shows where it came from"
    )
