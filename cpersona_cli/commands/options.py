"""Options that commands share: what to work on, and where the report goes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from cpersona_cli.commands.errors import UsageError
from cpersona_cli.record import record

if TYPE_CHECKING:
    from cpersona_cli.commands.preferences import Preferences
    from cpersona_cli.report.model import Report
    from cpersona_cli.report.output import Color, Output
    from cpersona_cli.traps.gather import Selection


#: The most seconds that a user may ask to wait.
LONGEST_WAIT = 86_400.0


def word(text: str) -> str:
    """A value that says something. An empty one is a variable that was not set, and must not choose everything."""
    if not text.strip(" ,"):
        raise typer.BadParameter("it is empty; is a variable not set?")
    return text


def file(text: str) -> Path:
    """A path as it was written; whether it can be read is for those who read it to say."""
    return Path(word(text))


Clients = Annotated[
    list[str] | None,
    typer.Option(
        "--client",
        parser=word,
        metavar="NAME",
        help="Registrations of this client, such as claude-code; a wrong name lists them all.",
    ),
]
Registrations = Annotated[
    list[str] | None,
    typer.Option("--registration", parser=word, metavar="FILE[:NAME]", help="Registrations in this file."),
]
Env = Annotated[bool, typer.Option("--env", help="This process's environment, for CI and containers.")]
Db = Annotated[Path | None, typer.Option("--db", parser=file, metavar="PATH", help="This database file.")]
Config = Annotated[Path | None, typer.Option("--config", parser=file, metavar="FILE", help="Settings of this tool.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", "-f", metavar="text|json|agent|sarif|junit|github|markdown|html", help="Form of the result."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
Files = Annotated[
    list[str] | None,
    typer.Option("--output", "-o", parser=word, metavar="[FORMAT:]FILE", help="Write the result here too; repeatable."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the last line.")]
Verbose = Annotated[
    int, typer.Option("--verbose", "-v", count=True, show_default=False, help="Also settings and sources.")
]
Colors = Annotated[
    str | None,
    typer.Option("--color", metavar="auto|always|never", help="Colours in text."),
]


@record
class Job:
    """A command line understood: how to present what ``run`` finds out. Nothing was looked at yet."""

    output: Output
    run: Callable[[], Report]


def output_flags(*, chosen: str | None, json: bool, color: str | None) -> Mapping[str, object]:
    """The flags of ``preferences.resolve`` that concern output."""
    if json and chosen not in {None, "json"}:
        raise UsageError(f"--json and --format {chosen} contradict each other")
    return {"format": "json" if json else chosen, "color": color}


def settle(flags: Mapping[str, object], config: Path | None) -> Preferences:
    """The tool's own settings, with this process's environment. Raises ``UsageError``."""
    from cpersona_cli.commands.preferences import resolve  # noqa: PLC0415 - not for help

    return resolve(flags, os.environ, config)


def selection(
    preferences: Preferences,
    *,
    client: list[str] | None,
    registration: list[str] | None,
    env: bool,
    db: Path | None,
    elsewhere: bool = False,
    before_first_start: bool = False,
) -> Selection:
    """What to work on. A client of the preferences gives way to whatever is pointed at, here or ``elsewhere``."""
    from cpersona_cli.traps.gather import Selection  # noqa: PLC0415 - not for help

    pointed_at = bool(registration or env or db or elsewhere)
    return Selection(
        clients=preferences.words("client") if client or not pointed_at else (),
        registrations=tuple(registration or ()),
        env=env,
        db=db,
        before_first_start=before_first_start,
    )


def output(preferences: Preferences, files: Sequence[str] | None, *, quiet: bool = False, verbose: int = 0) -> Output:
    """Where the report goes. Raises ``UsageError`` for an output that cannot be written."""
    from cpersona_cli.report.output import Output, OutputError, parse_outputs  # noqa: PLC0415 - not for help

    chosen = preferences.text("format")
    try:
        targets = parse_outputs(files or (), chosen)
    except OutputError as error:
        raise UsageError(str(error)) from error
    color = cast("Color", preferences.text("color"))
    return Output(format=chosen, files=targets, quiet=quiet, verbose=verbose, color=color)
