"""``cpersona-cli doctor``: is memory configured so that it works, and if not, which one thing to change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cpersona_cli.commands import options, starting
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.options import LONGEST_WAIT, Job
from cpersona_cli.record import replace

if TYPE_CHECKING:
    from cpersona_cli.report.model import Report


HELP = """Find out whether memory is configured so that it works; if not, name the one thing to change.

\b
  cpersona-cli doctor                              every registration on this machine
  cpersona-cli doctor --client claude-code -v      one client, with every setting and its source
  cpersona-cli doctor --env --json                 in CI: this environment, for machines
  cpersona-cli doctor .mcp.json                    the registrations in one file
  cpersona-cli doctor --only names,database.locked
  cpersona-cli doctor --start                      also start each server, on a scratch database

Nothing is changed anywhere. Exit codes: 0 pass, 1 fault, 2 usage, 3 no verdict (something could not be found out).
"""

Named = Annotated[
    list[str] | None,
    typer.Argument(
        parser=options.word, metavar="[FILE[:NAME]]...", show_default=False, help="The same as --registration."
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", parser=options.word, metavar="ID|GROUP", help="Make only these checks; commas are fine."),
]
Skip = Annotated[
    list[str] | None,
    typer.Option("--skip", parser=options.word, metavar="ID|GROUP", help="Leave these checks out; commas are fine."),
]
Require = Annotated[
    list[str] | None,
    typer.Option("--require", parser=options.word, metavar="ID", help="Exit 3 if this check did not run."),
]
FailOn = Annotated[
    str | None,
    typer.Option("--fail-on", metavar="fault|warning|hint|never", help="The mildest finding that gives exit 1."),
]
Offline = Annotated[bool | None, typer.Option("--offline/--online", help="Contact nothing over the network.")]
Start = Annotated[
    bool,
    typer.Option(
        "--start", help="Start each registered server twice, on a scratch database: store, recall, end. May download."
    ),
]
Pre = Annotated[bool, typer.Option("--pre", help="Before the first start: no database yet is fine.")]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", help="Seconds for the whole run (20; --start: 120 more)."),
]
Wait = Annotated[
    float, typer.Option("--wait", metavar="SECONDS", help="Retry so long while an endpoint is loading or down.")
]
Waivers = Annotated[
    Path | None, typer.Option("--waivers", parser=options.file, metavar="FILE", help="Findings to live with, and why.")
]
WriteWaivers = Annotated[
    Path | None,
    typer.Option(
        "--write-waivers", parser=options.file, metavar="FILE", help="Write what was found as a new waivers file."
    ),
]


def doctor(
    named: Named = None,
    *,
    client: options.Clients = None,
    registration: options.Registrations = None,
    env: options.Env = False,
    db: options.Db = None,
    only: Only = None,
    skip: Skip = None,
    require: Require = None,
    fail_on: FailOn = None,
    offline: Offline = None,
    start: Start = False,
    pre: Pre = False,
    timeout: Timeout = None,
    wait: Wait = 0.0,
    waivers: Waivers = None,
    write_waivers: WriteWaivers = None,
    config: options.Config = None,
    form: options.Format = None,
    json: options.Json = False,
    output: options.Files = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
    color: options.Colors = None,
) -> Job:
    """Understand the command line; the look at the machine comes later."""
    flags = {
        **options.output_flags(chosen=form, json=json, color=color),
        "fail-on": fail_on,
        "timeout": timeout,
        "offline": offline,
        "waivers": None if waivers is None else str(waivers),
        "client": client,
        "skip": skip,
    }
    preferences = options.settle(flags, config)
    if write_waivers is not None and os.path.lexists(write_waivers):
        raise UsageError(f"{write_waivers} exists; --write-waivers never overwrites a file")
    if not 0 <= wait <= LONGEST_WAIT:
        raise UsageError(f"--wait takes a number from 0 to {LONGEST_WAIT:g}, not {wait:g}")
    if start:
        starting.check(preferences)

    def run() -> Report:
        # The traps and all that they look at: not imported where only help or an error is shown.
        from cpersona_cli.commands.examination import Request, examine  # noqa: PLC0415

        selection = replace(
            options.selection(
                preferences,
                client=client,
                registration=[*(named or ()), *(registration or ())],
                env=env,
                db=db,
                before_first_start=pre,
            ),
            online=not preferences.flag("offline"),
            wait=wait,
            start=starting.chosen(preferences, quiet=quiet) if start else None,
        )
        return examine(
            Request(
                selection=selection,
                preferences=preferences,
                only=_words(only),
                require=_words(require),
                write_waivers=write_waivers,
            )
        )

    return Job(options.output(preferences, output, quiet=quiet, verbose=verbose), run)


def _words(values: list[str] | None) -> tuple[str, ...]:
    return tuple(word for value in values or () for part in value.split(",") if (word := part.strip()))
