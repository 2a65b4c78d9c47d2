"""How a command says that it has no result."""

from __future__ import annotations

from cpersona_cli.report.exits import Exit


class CommandError(Exception):
    """There is no result, and this sentence says why and what to do."""

    code = Exit.NO_VERDICT


class UsageError(CommandError):
    """The command line, the environment or a file of this tool asks for something that cannot be."""

    code = Exit.USAGE
