"""``cpersona-cli traps``: the trap list as a book to look things up in. Nothing on the machine is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cpersona_cli.commands import options
from cpersona_cli.commands.options import Job

if TYPE_CHECKING:
    from cpersona_cli.report.model import Report

HELP = """Every known way for a CPersona installation to be wrong.

\b
  cpersona-cli traps                              all of them
  cpersona-cli traps list --group names
  cpersona-cli traps explain names.url-missing    what it costs, and how it is mended
"""

LIST_HELP = """List the traps: id, severity, title.

\b
  cpersona-cli traps list
  cpersona-cli traps list --group names --severity fault
"""

EXPLAIN_HELP = """Explain one trap: what it costs, how to mend it, where the rule comes from.

\b
  cpersona-cli traps explain names.url-missing
  cpersona-cli traps explain names
"""

Groups = Annotated[str | None, typer.Option("--group", metavar="GROUP", help="Only this group.")]
Severities = Annotated[str | None, typer.Option("--severity", metavar="fault|warning|hint", help="Only this severity.")]
Commands = Annotated[str | None, typer.Option("--command", metavar="NAME", help="Only what this command checks.")]
Name = Annotated[str, typer.Argument(metavar="ID|GROUP", show_default=False)]


def listing(
    *,
    group: Groups = None,
    severity: Severities = None,
    command: Commands = None,
    config: options.Config = None,
    form: options.Format = None,
    json: options.Json = False,
    output: options.Files = None,
    color: options.Colors = None,
) -> Job:
    """Understand ``traps list``."""
    preferences = options.settle(options.output_flags(chosen=form, json=json, color=color), config)

    def run() -> Report:
        from cpersona_cli.commands.trap_list import listed  # noqa: PLC0415 - every trap module: not for help and errors

        return listed(group=group, severity=severity, command=command)

    return Job(options.output(preferences, output), run)


def explain(
    name: Name,
    *,
    config: options.Config = None,
    form: options.Format = None,
    json: options.Json = False,
    output: options.Files = None,
    color: options.Colors = None,
) -> Job:
    """Understand ``traps explain``."""
    preferences = options.settle(options.output_flags(chosen=form, json=json, color=color), config)

    def run() -> Report:
        from cpersona_cli.commands.trap_list import explained  # noqa: PLC0415 - as above

        return explained(name)

    return Job(options.output(preferences, output), run)
