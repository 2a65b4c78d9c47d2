"""The application: the command line in, one report out, and an exit code that comes from the report.

Imports stand where they are needed: ``--version`` and a completion must not pay for what a result is made of.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from cpersona_cli import __version__
from cpersona_cli.commands.errors import CommandError, UsageError
from cpersona_cli.commands.process import NAME, TerminatedError, crash, prepare
from cpersona_cli.report.exits import Exit
from cpersona_cli.text import nearest, safe
from cpersona_cli.words import COMMANDS, PLANNED

if TYPE_CHECKING:
    import typer

    from cpersona_cli.commands.options import Job
    from cpersona_cli.report.model import Report

HELP = """Operator toolkit for CPersona, the MCP memory server.

\b
  cpersona-cli doctor                  is memory configured so that it works?
  cpersona-cli probe                   what answers at the embedding endpoint?
  cpersona-cli traps explain ID        what does a finding mean?
  cpersona-cli --version               which release is this?
"""


def main(argv: Sequence[str]) -> int:
    """Run one command line; it ends in one report, also when it goes wrong. Reads no stdin, raises nothing."""
    prepare()
    if argv and argv[0] == "--version":
        with suppress(AttributeError, OSError, ValueError):  # nobody is there to read it
            sys.stdout.write(f"{NAME} {__version__}\n")
            sys.stdout.flush()
        return Exit.OK
    try:
        job = _parse(argv)
        if isinstance(job, int):
            return job
        from cpersona_cli.report.output import emit  # noqa: PLC0415

        return int(emit(_run(job, argv), job.output))
    except SystemExit as ended:  # the parser has answered: a completion, or help to a reader that went away
        reader_left = bool({"-h", "--help"} & set(argv))
        return ended.code if isinstance(ended.code, int) and not reader_left else Exit.OK
    except BaseException as error:  # noqa: BLE001 - the last place where a failure can become a sentence
        from cpersona_cli.report.output import emit, wanted  # noqa: PLC0415

        return int(emit(_failure(error, argv), wanted(argv, os.environ)))


def _run(job: Job, argv: Sequence[str]) -> Report:
    try:
        return job.run()
    except BaseException as error:  # noqa: BLE001 - as above, and now it is known where the report should go
        return _failure(error, argv)


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
    import typer  # noqa: PLC0415

    # Base of all that the option parser complains with; typer does not export it, and brings its own click since 0.26.
    parser_error: type[Exception] = typer.BadParameter.mro()[2]
    try:
        result: Job | int | None = typer.main.get_command(_application())(
            args=list(argv), prog_name=NAME, standalone_mode=False
        )
    except parser_error as error:
        sentence = safe(str(getattr(error, "format_message", error.__str__)())).rstrip(".")
        raise UsageError(sentence[:1].lower() + sentence[1:]) from error
    return Exit.OK if result is None else result


def _application() -> typer.Typer:
    import typer  # noqa: PLC0415

    from cpersona_cli.commands import doctor, probe, traps  # noqa: PLC0415

    names = {"help_option_names": ["-h", "--help"]}
    app = typer.Typer(name=NAME, help=HELP, rich_markup_mode=None, context_settings=names)

    app.command("doctor", help=doctor.HELP)(doctor.doctor)
    app.command("probe", help=probe.HELP)(probe.probe)
    book = typer.Typer(help=traps.HELP, rich_markup_mode=None)
    book.command("list", help=traps.LIST_HELP)(traps.listing)
    book.command("explain", help=traps.EXPLAIN_HELP)(traps.explain)
    app.add_typer(book, name="traps")
    return app


def _failure(error: BaseException, argv: Sequence[str]) -> Report:
    """The report of a run that has no result."""
    from cpersona_cli.report.model import Report  # noqa: PLC0415
    from cpersona_cli.traps.toolfile import ToolFileError  # noqa: PLC0415

    command = next((word for word in argv if word in COMMANDS), "")
    match error:
        case CommandError():
            sentence, code = str(error), error.code
        case ToolFileError():
            sentence, code = str(error), Exit.USAGE
        case KeyboardInterrupt():
            sentence, code = "interrupted; nothing was changed", Exit.INTERRUPTED
        case TerminatedError():
            sentence, code = "terminated; nothing was changed", Exit.TERMINATED
        case _:
            sentence, code = crash(error), Exit.NO_VERDICT
    hint = " ".join(word for word in (NAME, command, "--help") if word) if code is Exit.USAGE else ""
    return Report(command=command, error=sentence, error_code=code, next_command=hint)
