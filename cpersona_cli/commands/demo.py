"""``cpersona-cli demo``: real faults on a scratch memory, found and mended by the installed commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cpersona_cli.commands import options
from cpersona_cli.commands.options import Job

if TYPE_CHECKING:
    from cpersona_cli.report.model import Report

HELP = """Watch real faults being found and mended, on a scratch memory that is removed afterwards.

\b
  cpersona-cli demo                 each fault, and what the commands print about it; under a minute
  cpersona-cli demo --keep          leave the scratch home, to look around in it
  cpersona-cli demo --json          each step with its exit code, expected and seen

Needs cpersona-cli[demo]: the real server and two small embedding models, which bring their weights along. It contacts
nothing but this computer, and touches nothing outside its scratch home. Every command is run as you would run it, and
what it comes to is compared with what is expected. Exit codes: 0 all as expected, 1 something was not, 2 usage, 3 it
could not be played, 130 and 143 interrupted.
"""

Keep = Annotated[bool, typer.Option("--keep", help="Leave the scratch home, and say where it is.")]


def demo(
    *,
    keep: Keep = False,
    config: options.Config = None,
    form: options.Format = None,
    json: options.Json = False,
    output: options.Files = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
    color: options.Colors = None,
) -> Job:
    """Understand the command line; nothing is started yet."""
    preferences = options.settle(options.output_flags(chosen=form, json=json, color=color), config)
    presented = options.output(preferences, output, quiet=quiet, verbose=verbose)

    def run() -> Report:
        # What the MCP session brings: not imported where only help or an error is shown.
        from cpersona_cli.commands.playing import perform  # noqa: PLC0415

        return perform(presented, keep=keep)

    return Job(presented, run)
