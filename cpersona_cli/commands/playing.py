"""One run of the demo: whether it can be played, who watches, and the tidying away."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Mapping

from cpersona_cli.commands.errors import CommandError, UsageError
from cpersona_cli.commands.process import exit_code
from cpersona_cli.commands.signals import undisturbed
from cpersona_cli.record import replace
from cpersona_cli.report import output as channel
from cpersona_cli.report.demo import INDENT, Aside, Transcript, report
from cpersona_cli.report.layout import Style
from cpersona_cli.report.model import Report
from cpersona_cli.report.output import Output
from cpersona_cli.report.progress import Form, telling

#: What the demo is played with, by module and by the name of its package.
NEEDED = {
    "mcp": "mcp", "cpersona": "cpersona", "wordllama": "wordllama", "static_model": "tokenlearn-static-model",
}  # fmt: skip
#: Columns of text, where nobody's terminal says.
_NARROWEST = 60


def perform(presented: Output, *, keep: bool) -> Report:
    """Play it; what people read while it plays goes to stdout. Raises ``CommandError`` when it cannot be played."""
    check()
    # The session of the MCP library is only there with the extra.
    from cpersona_cli.demo.acts import SCENES  # noqa: PLC0415
    from cpersona_cli.demo.model import Audience, DemoError  # noqa: PLC0415
    from cpersona_cli.demo.play import play  # noqa: PLC0415
    from cpersona_cli.demo.stage import stage  # noqa: PLC0415

    begun = time.monotonic()
    style = channel.style(presented, sys.stdout, os.environ)
    told = presented.format == "text" and not presented.quiet
    with telling(Form.NONE if told or presented.quiet else Form.TEXT, code=exit_code) as teller:
        audience: Audience = Transcript(style, channel.aloud) if told else Aside(teller)
        try:
            with stage(keep=keep, shown=_shown(style), guard=undisturbed) as scratch:
                try:
                    played = play(SCENES, scratch, audience)
                except BaseException:
                    if keep:
                        channel.say(f"cpersona-cli: the scratch home is kept: {scratch.home}")
                    raise
        except DemoError as error:
            raise CommandError(f"{error}; the demo ends here, and nothing of yours was touched") from error
        finally:
            teller.clear()
        channel.aloud("\n" if told else "")
    home = os.path.expanduser("~")  # noqa: PTH111 - unlike Path.home it never fails
    return replace(report(played, kept=keep, home=home), elapsed=time.monotonic() - begun)


def check() -> None:
    """Raise ``UsageError`` where a package is missing."""
    missing = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise UsageError(
            f"the demo needs {', '.join(missing)}, not installed here; install cpersona-cli[demo],"
            " for example: pip install 'cpersona-cli[demo]'; in a clone, type `make demo`"
        )


def _shown(style: Style) -> Mapping[str, str]:
    """Variables by which commands print as wide and as colourful as they may."""
    width = max(_NARROWEST, style.width - INDENT)
    return {"COLUMNS": str(width), "CPERSONA_CLI_COLOR": "always" if style.color else "never"}
