"""The application: the command line in, one report out, and an exit code that comes from the report.

Imports stand where they are needed: ``--version`` and a completion must not pay for what a result is made of.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from cpersona_cli import __version__
from cpersona_cli.commands.errors import CommandError, UsageError
from cpersona_cli.commands.process import NAME, TerminatedError, crash, impatient, interruption, prepare
from cpersona_cli.report.exits import Exit
from cpersona_cli.text import nearest, safe
from cpersona_cli.words import COMMANDS

if TYPE_CHECKING:
    import typer

    from cpersona_cli.commands.options import Job
    from cpersona_cli.report.model import Report

HELP = """Operator toolkit for CPersona, the MCP memory server.

\b
  cpersona-cli                   what stands on this machine
  cpersona-cli doctor            the command to begin with; it changes nothing
  cpersona-cli COMMAND --help    examples, options and exit codes
  cpersona-cli --version         which release is this?
"""

#: Options with one value, and a value that must not be lost.
_ONCE = ("--db", "--url", "--config", "--waivers", "--write-waivers")

_ASKED_FOR_HELP = {"-h", "--help"}


def main(argv: Sequence[str]) -> int:
    """Run one command line; it ends in one report, also when it goes wrong. Reads no stdin, raises nothing."""
    try:
        prepare()
        if argv and argv[0] == "--version":
            return _version()
        job = _parse(argv)
        if isinstance(job, int):
            return job
        from cpersona_cli.report.output import emit  # noqa: PLC0415

        return int(emit(_run(job, argv), job.output))
    except SystemExit as ended:  # the parser has answered: a completion, or help to a reader that went away
        reader_left = bool(_ASKED_FOR_HELP & set(argv))
        return ended.code if isinstance(ended.code, int) and not reader_left else Exit.OK
    except BaseException as error:  # noqa: BLE001 - the last place where a failure can become a sentence
        from cpersona_cli.report.output import emit, wanted  # noqa: PLC0415

        return int(emit(_failure(error, argv), wanted(argv, os.environ, _configured_format(argv))))


def _version() -> Exit:
    try:
        sys.stdout.write(f"{NAME} {__version__}\n")
        sys.stdout.flush()
    except (AttributeError, BrokenPipeError, ValueError):  # nobody is there to read it
        pass
    except OSError as error:
        raise _unwritable(error) from error
    return Exit.OK


def _unwritable(error: OSError) -> CommandError:
    """What to say of an answer that could not be written. Nothing of it stays behind to fail once more at the end."""
    from cpersona_cli.report.output import silence  # noqa: PLC0415

    silence(sys.stdout)
    return CommandError(f"cannot write the answer: {error.strerror}")


def _configured_format(argv: Sequence[str]) -> str:
    """The format that a configuration file asks for, as far as that can be told on the way out."""
    with suppress(Exception):
        from cpersona_cli.commands.preferences import format_in_file  # noqa: PLC0415

        return format_in_file(argv, os.environ)
    return ""


def _run(job: Job, argv: Sequence[str]) -> Report:
    try:
        return job.run()
    except BaseException as error:  # noqa: BLE001 - as above, and now it is known where the report should go
        return _failure(error, argv)


def _parse(argv: Sequence[str]) -> Job | int:
    """The job of a command line, or the exit code when the parser has answered by itself (``--help``)."""
    if not argv:
        from cpersona_cli.commands.overview import overview  # noqa: PLC0415

        return overview()
    word = argv[0]
    if not word:
        raise UsageError(f"say what to do: {' or '.join(COMMANDS)}")
    if not word.startswith("-") and word not in COMMANDS:
        near = nearest(word, COMMANDS)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(COMMANDS)}"
        raise UsageError(f"no such command: {safe(word, 60)}; {hint}")
    if word == "traps" and (not argv[1:] or argv[1].startswith("-")) and not _ASKED_FOR_HELP & set(argv):
        argv = [word, "list", *argv[1:]]
    _refuse_repeated(argv)
    import typer  # noqa: PLC0415

    # Base of all that the option parser complains with; typer does not export it, and brings its own click since 0.26.
    parser_error: type[Exception] = typer.BadParameter.mro()[2]
    try:
        result: Job | int | None = typer.main.get_command(_application(word if word in COMMANDS else ""))(
            args=list(argv), prog_name=NAME, standalone_mode=False
        )
    except parser_error as error:
        sentence = safe(str(getattr(error, "format_message", error.__str__)())).rstrip(".")
        raise UsageError(sentence[:1].lower() + sentence[1:]) from error
    except OSError as error:
        if not _ASKED_FOR_HELP & set(argv):
            raise
        raise _unwritable(error) from error
    if result == Exit.INTERRUPTED:  # the parser makes a number of it
        raise interruption()
    return Exit.OK if result is None else result


def _refuse_repeated(argv: Sequence[str]) -> None:
    """The parser keeps the last of several values; what the others name would silently not be looked at."""
    words = [word.partition("=")[0] for word in argv[: argv.index("--") if "--" in argv else len(argv)]]
    for option in _ONCE:
        if words.count(option) > 1:
            raise UsageError(f"{option} is given {words.count(option)} times, and one run takes one")


def _only_commands() -> None:
    """Keeps the parser from taking a single command for the whole application."""


def _application(word: str = "") -> typer.Typer:
    """The parser of every command, or of ``word`` alone: describing the others takes longer than the parsing."""
    import typer  # noqa: PLC0415

    from cpersona_cli.commands.overview import QUESTIONS  # noqa: PLC0415

    names = {"help_option_names": ["-h", "--help"]}
    app = typer.Typer(name=NAME, help=HELP, rich_markup_mode=None, context_settings=names)
    app.callback()(_only_commands)
    questions = dict(QUESTIONS)
    for name in (word,) if word else COMMANDS:
        known = name.replace("-", "_")
        module = import_module(f"cpersona_cli.commands.{known}")
        if name == "traps":
            book = typer.Typer(help=module.HELP, rich_markup_mode=None)
            book.command("list", help=module.LIST_HELP)(module.listing)
            book.command("explain", help=module.EXPLAIN_HELP)(module.explain)
            app.add_typer(book, name=name, short_help=questions[name])
        else:
            app.command(name, help=module.HELP, short_help=questions[name])(getattr(module, known))
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
        case TerminatedError():
            impatient()
            sentence, code = "terminated; nothing was changed", Exit.TERMINATED
        case KeyboardInterrupt():
            impatient()
            sentence, code = "interrupted; nothing was changed", Exit.INTERRUPTED
        case _:
            sentence, code = crash(error), Exit.NO_VERDICT
    hint = " ".join(word for word in (NAME, command, "--help") if word) if code is Exit.USAGE else ""
    language = error.language if isinstance(error, CommandError) else "en"
    return Report(command=command, error=sentence, error_code=code, next_command=hint, language=language)
