"""Where a report goes: which format, which files, which colours. The only place of this tool that prints."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Literal, TextIO

from cpersona_cli.record import record, replace
from cpersona_cli.report import json, text
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.layout import Style, spelled
from cpersona_cli.report.model import Report, Section
from cpersona_cli.text import nearest, safe

Renderer = Callable[[Report, Style], str]
Color = Literal["auto", "always", "never"]


def _later(name: str) -> Renderer:
    """The renderer of the module ``name``, imported when it is asked for."""

    def render(report: Report, style: Style) -> str:
        module = import_module(f"cpersona_cli.report.{name}")
        return str(module.render(report, style))

    return render


#: Every format, by the name that ``--format`` takes. A renderer is a pure function.
FORMATS: Mapping[str, Renderer] = {
    "text": text.render,
    "json": json.render,
    **{name: _later(name) for name in ("agent", "sarif", "junit", "github", "markdown", "html")},
}

#: What a file's name says about its format when ``--output`` names none.
_SUFFIXES = {".json": "json", ".txt": "text", ".sarif": "sarif", ".xml": "junit", ".md": "markdown", ".html": "html"}

#: ``-f json``, ``-fjson``, ``-qvfjson``.
_SHORT_FORMAT = re.compile("-[qv]*f(.*)")

_WIDTH = 80  # columns where there is no terminal


class OutputError(ValueError):
    """An output that was asked for and cannot be: the sentence for the user."""


@record(kw_only=True)
class Output:
    """How one run presents its report: always once on stdout, and in each of ``files`` (format, path)."""

    format: str = "text"
    files: tuple[tuple[str, Path], ...] = ()
    quiet: bool = False
    verbose: int = 0
    color: Color = "auto"


def check_format(name: str) -> str:
    """``name`` when it is a format; raises ``OutputError`` that lists them."""
    if name in FORMATS:
        return name
    near = nearest(name, FORMATS)
    hint = f"; did you mean {near}?" if near else ""
    raise OutputError(f"unknown format {safe(name, 60)!r}{hint} (formats: {', '.join(FORMATS)})")


def parse_outputs(specs: Sequence[str], default: str) -> tuple[tuple[str, Path], ...]:
    """``FILE`` or ``FORMAT:FILE`` each, as (format, path); without a format the suffix tells it, or ``default``.

    A single letter before the colon is a Windows drive. Any other plain word there is meant as a format. Raises
    ``OutputError`` for an unknown format, a file given twice, and a place that cannot be written.
    """
    files: dict[Path, str] = {}
    for spec in specs:
        word, colon, rest = spec.partition(":")
        if colon and len(word) > 1 and word.isalnum():
            path, name = Path(rest), check_format(word)
        else:
            path, name = Path(spec), _SUFFIXES.get(Path(spec).suffix.lower(), default)
        if path in files:
            raise OutputError(f"--output names {safe(str(path))} twice")
        _check_writable(path, spec)
        files[path] = name
    return tuple((name, path) for path, name in files.items())


def _check_writable(path: Path, spec: str) -> None:
    """Say before the work what would go wrong after it."""
    reason = ""
    try:
        if not path.name or "\0" in str(path):
            reason = "that is no file name"
        elif path.is_dir():
            reason = "that is a folder"
        elif not path.parent.is_dir():
            reason = f"there is no folder {path.parent}"
        elif not os.access(path if path.exists() else path.parent, os.W_OK):
            reason = "permission denied"
        elif path.is_file() and _is_database(path):
            reason = "that is a database"
    except (OSError, ValueError) as error:
        reason = _why(error)
    if reason:
        raise OutputError(f"cannot write --output {safe(spec)}: {safe(reason)}")


def _is_database(path: Path) -> bool:
    """Whether a report would overwrite what somebody meant to have examined."""
    from cpersona_cli.store.header import MAGIC, head_of  # noqa: PLC0415 - only where a file is in the way

    return head_of(path, len(MAGIC)) == MAGIC


def wanted(argv: Sequence[str], env: Mapping[str, str], configured: str = "") -> Output:
    """What the command line seems to ask for, told without parsing it: for errors met before or while parsing.

    ``configured`` is the format of the configuration file, which counts where nothing else is said.
    """
    name = env.get("CPERSONA_CLI_FORMAT") or configured
    words = argv[: argv.index("--") if "--" in argv else len(argv)]
    for word, following in zip(words, [*words[1:], ""], strict=False):
        option, equals, value = word.partition("=")
        if option == "--json":
            return Output(format="json")
        if option == "--format":
            name = value if equals else following
        elif short := _SHORT_FORMAT.fullmatch(word):
            name = short[1] or following
    return Output(format=name if name in FORMATS else "text")


def emit(report: Report, output: Output, *, env: Mapping[str, str] | None = None) -> Exit:
    """Write the report to its files and to stdout, and return the exit code of what was delivered.

    A report that is an error goes to stderr in text. A reader that went away is no error; a file or a stdout that
    cannot be written is named on stderr, and a run that would have passed has no verdict then.
    """
    environment = os.environ if env is None else env
    root = environment.get("GITHUB_WORKSPACE", "")
    failures = [failure for name, path in output.files if (failure := _save(report, output, root, name, path))]
    if failures:
        report = replace(report, unsettled=(*report.unsettled, *failures))
        for failure in failures:
            say(f"cpersona-cli: {failure}")
    stream = sys.stderr if report.error and output.format == "text" else sys.stdout
    rendered = FORMATS[output.format](report, style(output, stream, environment))
    if output.format in {"text", "agent"}:
        rendered = spelled(rendered, getattr(stream, "encoding", None))
    problem = _write(stream, rendered)
    if output.format == "github":
        _summarize(report, environment.get("GITHUB_STEP_SUMMARY", ""))
    if problem:
        say(f"cpersona-cli: cannot write the result: {problem}")
        return Exit.NO_VERDICT if report.exit_code is Exit.OK else report.exit_code
    return report.exit_code


def style(output: Output, stream: TextIO | None, env: Mapping[str, str]) -> Style:
    """Width and colours for ``stream``: none where nobody looks, or where the environment says so."""
    terminal = _is_terminal(stream)
    plain = bool(env.get("NO_COLOR")) or env.get("TERM") == "dumb"
    color = output.color == "always" or (output.color == "auto" and terminal and not plain)
    width = shutil.get_terminal_size((_WIDTH, 24)).columns if terminal else _columns(env)
    root = env.get("GITHUB_WORKSPACE", "")
    return Style(width=width, color=color, verbose=output.verbose, quiet=output.quiet, root=root)


def _columns(env: Mapping[str, str]) -> int:
    given = env.get("COLUMNS", "")
    return int(given) if given.isascii() and given.isdigit() and 0 < int(given) < 10_000 else _WIDTH


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def say(line: str) -> None:
    """One line on stderr, if there is one; never fails."""
    _write(sys.stderr, f"{line}\n")


def aloud(text: str) -> None:
    """Text on stdout ahead of the report: what happens, while it happens. Never fails; ``emit`` does, if it must."""
    _write(sys.stdout, spelled(text, getattr(sys.stdout, "encoding", None)))


def _summarize(report: Report, path: str) -> None:
    """Add the whole report to the step summary, where a workflow run has one; that it fails is no fault of the run."""
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(FORMATS["markdown"](report, Style()))
    except (OSError, ValueError) as error:
        say(f"cpersona-cli: cannot write the step summary {safe(path)}: {_why(error)}")


def show(sections: Sequence[Section], home: str) -> None:
    """Parts of a report on stderr, before there is one: what somebody is to decide on."""
    report = Report(command="", sections=sections, home=home, gate=False)
    _write(sys.stderr, text.render(report, style(Output(), sys.stderr, os.environ)))


def _save(report: Report, output: Output, root: str, name: str, path: Path) -> str:
    """Write one file; the sentence why it could not be, or an empty string."""
    rendered = FORMATS[name](report, Style(verbose=output.verbose, quiet=output.quiet, root=root))
    try:
        path.write_text(rendered, encoding="utf-8", errors="backslashreplace", newline="\n")
    except (OSError, ValueError) as error:
        return f"cannot write --output {safe(str(path))}: {_why(error)}"
    return ""


def _write(stream: TextIO | None, rendered: str) -> str:
    """Write and flush; the reason why it could not be, unless nobody is there to read."""
    if stream is None:
        return ""
    try:
        stream.write(rendered)
        stream.flush()
    except BrokenPipeError:
        silence(stream)
    except OSError as error:
        silence(stream)
        return _why(error)
    except ValueError:  # closed
        return ""
    except BaseException:  # interrupted while somebody reads slowly: half a document must not be followed by another
        silence(stream)
        raise
    return ""


def silence(stream: TextIO) -> None:
    """Send what is left in the stream's buffer nowhere, so that the interpreter's last flush cannot fail."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
