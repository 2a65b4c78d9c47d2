"""The application: the command line in, one report out, and an exit code that comes from the report."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from cpersona_cli import __version__
from cpersona_cli.commands import doctor, traps
from cpersona_cli.commands.errors import CommandError, UsageError
from cpersona_cli.commands.options import Job
from cpersona_cli.report.model import Exit, Report
from cpersona_cli.report.output import emit, prepare_streams, say, wanted
from cpersona_cli.text import nearest, safe
from cpersona_cli.traps.toolfile import ToolFileError
from cpersona_cli.words import COMMANDS, PLANNED

NAME = "cpersona-cli"

# Base of all that the option parser complains with; typer does not export it, and brings its own click since 0.26.
_ParserError: type[Exception] = typer.BadParameter.mro()[2]

HELP = """Operator toolkit for CPersona, the MCP memory server.

\b
  cpersona-cli doctor                  is memory configured so that it works?
  cpersona-cli traps explain ID        what does a finding mean?
"""

_SETTINGS = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name=NAME, help=HELP, rich_markup_mode=None, pretty_exceptions_enable=False, context_settings=_SETTINGS
)
app.command("doctor", help=doctor.HELP)(doctor.doctor)
book = typer.Typer(help=traps.HELP, rich_markup_mode=None)
book.command("list", help=traps.LIST_HELP)(traps.listing)
book.command("explain", help=traps.EXPLAIN_HELP)(traps.explain)
app.add_typer(book, name="traps")


class _TerminatedError(BaseException):
    """SIGTERM arrived."""


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"{NAME} {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main(argv: Sequence[str]) -> int:
    """Run one command line; it ends in one report, also when it goes wrong. Reads no stdin, raises nothing."""
    _fill_closed_descriptors()
    prepare_streams((sys.stdout, sys.stderr))
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, _terminate)
    output = wanted(argv, os.environ)
    command = next((word for word in argv if word in COMMANDS), "")
    try:
        job = _parse(argv)
        if not isinstance(job, Job):
            return job
        output = job.output
        report = job.run()
    except CommandError as error:
        report = _failed(command, str(error), error.code)
    except ToolFileError as error:
        report = _failed(command, str(error), Exit.USAGE)
    except _ParserError as error:
        report = _failed(command, _complaint(error), Exit.USAGE)
    except (KeyboardInterrupt, typer.Abort):
        report = _failed(command, "interrupted; nothing was changed", Exit.INTERRUPTED)
    except _TerminatedError:
        report = _failed(command, "terminated; nothing was changed", Exit.TERMINATED)
    except SystemExit as ended:  # the parser has answered: a completion, or help to a reader that went away
        return ended.code if isinstance(ended.code, int) else Exit.OK
    except Exception as error:  # noqa: BLE001 - the last place where a crash can become a sentence
        report = _failed(command, _crash(error), Exit.NO_VERDICT)
    return int(emit(report, output))


def _parse(argv: Sequence[str]) -> Job | int:
    """The job of a command line, or the exit code when the parser has answered by itself (``--help``)."""
    word = argv[0] if argv else ""
    if word in PLANNED:
        raise UsageError(f"this release has no `{word}` yet")
    if not word:
        raise UsageError(f"say what to do: {' or '.join(COMMANDS)}")
    if not word.startswith("-") and word not in COMMANDS:
        near = nearest(word, (*COMMANDS, *PLANNED))
        hint = f"did you mean {near}?" if near else f"there are {', '.join(COMMANDS)}"
        raise UsageError(f"no such command: {safe(word, 60)}; {hint}")
    result: object = typer.main.get_command(app)(args=list(argv), prog_name=NAME, standalone_mode=False)
    return result if isinstance(result, Job) else int(result) if isinstance(result, int) else Exit.OK


def _failed(command: str, sentence: str, code: Exit) -> Report:
    hint = f"{NAME} {command} --help".replace("  ", " ") if code is Exit.USAGE else ""
    return Report(command=command, error=sentence, error_code=code, next_command=hint)


def _complaint(error: Exception) -> str:
    """The option parser's sentence in our style: no capital, no full stop."""
    sentence = safe(str(getattr(error, "format_message", error.__str__)())).rstrip(".")
    return sentence[:1].lower() + sentence[1:]


def _crash(error: Exception) -> str:
    """Name the place and the class of a crash. Its message stays unsaid: it may quote what must not leave."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    where = f" at {Path(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno}" if traceback else ""
    if os.environ.get("CPERSONA_CLI_DEBUG") == "1":
        from traceback import format_tb  # noqa: PLC0415 - for developers only

        say("".join(format_tb(error.__traceback__)))
    return (
        f"this is a bug in {NAME} {__version__}: {type(error).__name__}{where}. Nothing was changed. "
        "Please report this line; CPERSONA_CLI_DEBUG=1 shows where it came from"
    )


def _fill_closed_descriptors() -> None:
    """Open nothing in the place of a closed stdin, stdout or stderr, so that no database gets their numbers."""
    with suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise _TerminatedError
