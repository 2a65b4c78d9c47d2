"""The two scripts. ``cpersona-cli`` is always this tool; ``cpersona`` gives way to the server.

The server's own distribution installs a script ``cpersona`` that ignores its arguments and speaks MCP on stdout. An
MCP client that starts ours must notice no difference, so this module imports nothing heavy and prints nothing on
stdout, and whatever is not meant for this tool goes to the server untouched. It is read in less than a millisecond:
an interrupt that comes before ``tool`` is at work would be answered with a traceback.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # what typing says of it, without the time that typing takes
if TYPE_CHECKING:
    from typing import NoReturn

_OPTIONS = ("-h", "--help", "--version")


def tool() -> NoReturn:
    """Script ``cpersona-cli``: run this tool with the process's arguments and exit with the report's code."""
    try:
        import os  # noqa: PLC0415 - as said above
        import signal  # noqa: PLC0415

        hears = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is to be ignored
        if hears:
            # an exception in the middle of an import may end up in a callback, which prints it and goes on
            signal.signal(signal.SIGINT, lambda *_: os._exit(130))
        from cpersona_cli.app import main  # noqa: PLC0415 - the server's path must not pay for the application
        from cpersona_cli.commands.process import delivered  # noqa: PLC0415

        if hears:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = main(sys.argv[1:])
        delivered()
    except KeyboardInterrupt:  # before there was anything to report with
        code = 130
    sys.exit(code)


def dispatch() -> NoReturn:
    """Script ``cpersona``: this tool for its own words, else the installed server, unchanged.

    A word that a person mistyped (at a terminal, or within two edits of one of ours anywhere) must not start a
    server: in a CI step that would end with exit 0 and prove nothing. It is answered on stderr with exit 2.
    """
    from cpersona_cli.words import COMMANDS  # noqa: PLC0415 - as said above

    word = sys.argv[1] if len(sys.argv) > 1 else ""
    if word in COMMANDS or word in _OPTIONS:
        tool()
    from cpersona_cli.text import nearest, safe  # noqa: PLC0415

    meant = nearest(word, (*COMMANDS, "--help", "--version")) if len(word) > 2 else None
    if meant or (word and _at_terminal()):
        _refuse(f"no such command: {safe(word, 60)}", f"did you mean: cpersona {meant}" if meant else _usage())
    server = _server()
    if server is None:
        _refuse("the CPersona server is not installed in this environment", f"pip install cpersona, or {_usage()}")
    sys.exit(server())  # type: ignore[operator]


def _usage() -> str:
    from cpersona_cli.words import COMMANDS  # noqa: PLC0415

    return f"this tool: cpersona-cli {{{','.join(COMMANDS)}}} (--help tells more)"


def _at_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # closed
        return False


def _server() -> object | None:
    """What the server's own script would call, as its distribution declares it."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 - as above

    try:
        points = distribution("cpersona").entry_points
    except PackageNotFoundError:
        return None
    for point in points:
        if point.group == "console_scripts" and point.name == "cpersona":
            loaded: object = point.load()
            return loaded
    return None


def _refuse(problem: str, hint: str) -> NoReturn:
    if sys.stderr is not None:
        sys.stderr.write(f"cpersona: {problem}\n{hint}\n")
    sys.exit(2)
