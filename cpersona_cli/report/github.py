"""A report as annotations of a GitHub workflow run.

GitHub shows ten annotations of each kind for one step, so the worst ten are given and the rest is counted; all of them
stand in the step summary (the markdown of the same report), which the output writes where GitHub asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from cpersona_cli.report.layout import Style
from cpersona_cli.report.model import Report, Verdict
from cpersona_cli.report.wording import (
    cleaner,
    copied,
    counted,
    ending,
    lines_to_copy,
    reasons,
    seen_from,
    severity,
    title,
)
from cpersona_cli.traps.model import Finding, Severity

#: What GitHub shows of one kind for one step.
SHOWN = 10

_KINDS = {Severity.FAULT: "error", Severity.WARNING: "warning", Severity.HINT: "notice"}


def render(report: Report, style: Style) -> str:
    """The verdict in the first line, then the annotations, then the next command."""
    return "\n".join(_lines(report, style)) + "\n"


def _lines(report: Report, style: Style) -> Iterator[str]:
    clean = cleaner(report)
    if report.error:
        yield _command("error", report.error, {"title": f"cpersona-cli {report.command}".rstrip()}, clean)
        return
    yield f"cpersona-cli {report.command}: {str(report.verdict).upper()}, {clean(counted(report))}"
    annotations: dict[str, list[str]] = {kind: [] for kind in _KINDS.values()}
    for finding in report.worst_first:
        kind = _KINDS[severity(finding)]
        annotations[kind].append(_of(finding, kind, report, style))
    if said := ending(report):
        kind = "error" if report.verdict is Verdict.FAIL else "warning"
        name = f"cpersona-cli {report.command}".rstrip()
        annotations[kind].append(_written(kind, "\n".join(map(clean, said)), {"title": name}))
    for reason in () if said else reasons(report):
        annotations["warning"].append(_command("warning", reason, {"title": "no verdict"}, clean))
    for kind, lines in annotations.items():
        room = SHOWN if len(lines) <= SHOWN else SHOWN - 1
        yield from lines[:room]
        if lines[room:]:
            rest = f"{len(lines) - room} more of this kind: see the step summary, or --format text"
            yield _command(kind, rest, {}, clean)
    if report.next_command:
        yield f"Next: {copied(report)(report.next_command)}"


def _of(finding: Finding, kind: str, report: Report, style: Style) -> str:
    clean, literal = cleaner(report), copied(report)
    properties: dict[str, str] = {}
    place = finding.place
    if place is not None and place.file is not None:
        properties["file"] = literal(seen_from(style.root, place.file) or os.fspath(place.file))
        properties |= {"line": str(place.line)} if place.line else {}
        properties |= {"col": str(place.column)} if place.line and place.column else {}
    properties["title"] = clean(f"{title(finding.trap)} ({finding.trap})")
    lines = [
        clean(f"{finding.subject}: {finding.measured}" if finding.subject else finding.measured),
        f"costs: {clean(finding.costs)}" if finding.costs else "",
        f"fix: {clean(finding.repair.prose)}" if finding.repair.prose else "",
        *map(literal, lines_to_copy(finding)),
    ]
    return _written(kind, "\n".join(line for line in lines if line), properties)


def _command(kind: str, message: str, properties: dict[str, str], clean: Callable[[str], str]) -> str:
    return _written(kind, clean(message), {name: clean(value) for name, value in properties.items()})


def _written(kind: str, message: str, properties: dict[str, str]) -> str:
    """``::error file=a,line=3::message`` with what GitHub asks to be escaped."""
    shown = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind}{f' {shown}' if shown else ''}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
