"""``--start``: what it needs, how long it may take, and how its progress is told."""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import TYPE_CHECKING

from cpersona_cli.commands.errors import UsageError

if TYPE_CHECKING:
    from cpersona_cli.commands.preferences import Preferences
    from cpersona_cli.traps.gather import Starting

#: Seconds for all starts, after the rest of the run, unless ``--timeout`` bounds both: a release may be downloaded.
SECONDS = 120.0
#: Seconds between two lines of progress where nobody sits at a terminal.
EVERY = 10.0


def check(preferences: Preferences) -> None:
    """Raise ``UsageError`` where servers cannot be started."""
    if preferences.flag("offline"):
        raise UsageError("--start has servers call their endpoints, so it does not go with --offline")
    if importlib.util.find_spec("mcp") is None:
        raise UsageError(
            "--start needs the MCP client library, which is not installed; install cpersona-cli[live],"
            " for example: pip install 'cpersona-cli[live]'"
        )


def chosen(preferences: Preferences, *, quiet: bool = False) -> Starting:
    """How servers are to be started."""
    from cpersona_cli.traps.gather import Starting  # noqa: PLC0415 - not for help

    bounded = preferences.chosen["timeout"].source != "default"
    return Starting(seconds=None if bounded else SECONDS, tell=None if quiet else Progress().tell)


class Progress:
    """What goes on, on stderr: at a terminal each thing as it begins, elsewhere a line every ten seconds."""

    def __init__(self) -> None:
        self._terminal = _terminal()
        self._last, self._when = "", time.monotonic()

    def tell(self, sentence: str) -> None:
        """Hear what goes on now; empty for nothing."""
        from cpersona_cli.report.output import say  # noqa: PLC0415 - not for help

        now = time.monotonic()
        due = sentence != self._last if self._terminal else now - self._when >= EVERY
        if sentence and due:
            self._last, self._when = sentence, now
            say(f"cpersona-cli: {sentence}")


def _terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False
