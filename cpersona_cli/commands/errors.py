"""How a command says that it has no result."""

from __future__ import annotations

from typing import Literal

from cpersona_cli.report.exits import Exit


class CommandError(Exception):
    """There is no result, and this sentence, in its language, says why and what to do."""

    code = Exit.NO_VERDICT

    def __init__(self, sentence: str, language: Literal["en", "ja"] = "en") -> None:
        super().__init__(sentence)
        self.language = language


class UsageError(CommandError):
    """The command line, the environment or a file of this tool asks for something that cannot be."""

    code = Exit.USAGE
