"""A report for a coding agent: all it needs to explain, to ask and to repair, in a few thousand characters.

The JSON document is over 100 KB after an examination, most of it what is in order; an agent pays for every character
with its context. Here nothing is said that is in order. Lines, not JSON: what is to be copied into a file or a shell
stands there as it is, without escapes. Every line starts with one of the words below, with ``## `` or with ``- ``, so
no foreign text can pass for a line of this tool. Paths are whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cpersona_cli.report.figures import Copied, Table
from cpersona_cli.report.layout import Style
from cpersona_cli.report.model import Report, Section
from cpersona_cli.report.wording import account, by_repair, copied, counted, reasons, severity
from cpersona_cli.traps.model import Finding, Repair

#: Findings that are told whole, and lines of any other list; the rest is named, or counted.
SHOWN = 8
ROWS = 25

#: Options with which a command that otherwise only looks writes, starts, shows or sends something.
DOES_MORE = frozenset(
    ("--output", "-o", "--write-waivers", "--start", "--live", "--yes", "--raw", "--show-text", "--sample-from-db")
)
_LOOKING = re.compile(
    r"cpersona-cli (?:doctor|probe|dimension|advisory-preview|traps (?:list|explain)|reembed status)(?: |$)"
    r"|cpersona-cli (?:reembed|backfill) .*--dry-run(?: |$)"
    r"|cpersona-cli (?:[a-z-]+ )*--help$|get_\w+\(|check_health\((?!.*fix=true)"
    r"|command -v |where\.exe |\w+ which "
)
#: Commands of this tool, and calls of the server's tools: what they change is stored.
_STORED = re.compile(r"cpersona-cli |\w+\(")
_PLANNED = re.compile(r"cpersona-cli (?:reembed(?! [a-z])|backfill(?! undo)) ")


def looks_only(command: str) -> bool:
    """Whether running ``command`` is known to change, send and start nothing: it needs no consent."""
    known = _LOOKING.match(command) is not None and not re.search(r"[;&|<>`$\n]", command)
    return known and DOES_MORE.isdisjoint(word.partition("=")[0] for word in command.split(" "))


def render(report: Report, _style: Style) -> str:
    """The verdict and what to do next, then what is not in order, worst first, then the figures."""
    return "\n".join(_Agent(report).lines()) + "\n"


class _Agent:
    def __init__(self, report: Report) -> None:
        self.report, self.clean = report, copied(report)

    def lines(self) -> Iterator[str]:
        report = self.report
        yield f"schema: cpersona-cli/{report.command or 'none'}/agent/1"
        yield f"verdict: {report.verdict}"
        yield f"exit: {int(report.exit_code)}"
        if report.error:
            yield from self._said("error", report.error)
        elif report.gate:
            yield from self._said("examined", report.headline)
            yield from self._said("summary", counted(report))
        for name, sentences in (("unknown", reasons(report)), ("looked", report.looked), ("note", report.notes)):
            for sentence in sentences[:ROWS]:
                yield from self._said(name, sentence)
            if sentences[ROWS:]:
                yield f"{name}: {len(sentences) - ROWS} more: see --json"
        if report.rerun and report.findings:
            yield from self._said("verify", f"{report.rerun} --format agent")
        if report.next_command:
            yield from self._said("next" if looks_only(report.next_command) else "next-ask", report.next_command)
        groups = by_repair(report.worst_first)
        for finding, *others in groups[:SHOWN]:
            yield from self._finding(finding, others)
        if groups[SHOWN:]:
            yield "## more findings, told whole by --json"
            for finding in (one for group in groups[SHOWN:] for one in group):
                yield f"- {severity(finding)} {finding.trap}: {self.clean(_where(finding))}"
        for section in report.sections:
            if not section.verbosity:
                yield from self._section(section)

    def _finding(self, finding: Finding, others: Sequence[Finding]) -> Iterator[str]:
        yield f"## {str(severity(finding)).upper()} {finding.trap}"
        yield from self._said("where", _where(finding))
        for name, text in account(finding):
            if name not in {"subject", "place", "expected"}:
                yield from self._said(name, text.removeprefix("depends "))
        for line in finding.repair.edit.splitlines():
            yield from self._said("edit", line)
        for command in finding.repair.commands:
            yield from self._command(command)
        yield from self._said("consent", _consent(finding.repair))
        for other in others:
            yield from self._said("also", f"{severity(other)} {other.trap}: {other.measured}")

    def _section(self, section: Section) -> Iterator[str]:
        """Its rows and tables; plots are for eyes."""
        rows = [_row(*row) for row in section.rows]
        for table in section.figures:
            if isinstance(table, Table):
                rows += [" | ".join(cells) for cells in (table.header, *table.rows)]
        shown = rows[:ROWS] if self.report.gate else rows
        copies = [text for figure in section.figures if isinstance(figure, Copied) for text in figure.text if text]
        if (shown or copies) and section.title:
            yield f"## {self.clean(section.title)}"
        yield from (f"- {self.clean(row)}" for row in shown)
        if rows[len(shown) :]:
            yield f"- {len(rows) - len(shown)} more: see --json"
        for text in copies:
            yield from self._command(text)

    def _command(self, text: str) -> Iterator[str]:
        for line in text.splitlines():
            yield from self._said("run" if looks_only(text) else "ask", line)

    def _said(self, name: str, text: str) -> Iterator[str]:
        if text:
            yield f"{name}: {self.clean(text)}"


def _row(name: str, value: str, where: str) -> str:
    named = f"{name}: " if name.strip("0123456789.·") else f"{name} "  # a number or a mark is no name
    return f"{named.lstrip()}{value}{f' ({where})' if where else ''}"


def _where(finding: Finding) -> str:
    known = dict(account(finding))
    place, subject = known.get("place"), known.get("subject")
    return f"{place} ({subject})" if place and subject else place or subject or ""


def _consent(repair: Repair) -> str:
    """Whether somebody has to say yes before the repair is made, and to what. A dry run is not the repair."""
    asking = [command for command in repair.commands if not looks_only(command)]
    if any(map(_PLANNED.match, repair.commands)):
        return "needed, changes what is stored; show first what the same command with --dry-run says"
    if any(map(_STORED.match, asking)):
        return "needed, changes what is stored"
    if repair.place is not None and repair.place.file is not None:
        return f"needed, edits {repair.place}"
    if repair.commands and not asking and not repair.edit:
        return "not needed, only looks"
    return "needed, changes files or programs of this computer" if asking else "needed"
