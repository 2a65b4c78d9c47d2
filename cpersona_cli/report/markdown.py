"""A report as Markdown, for a pull request or the summary of a workflow run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import dropwhile

from cpersona_cli.report.figures import Copied, Table
from cpersona_cli.report.layout import Style
from cpersona_cli.report.model import Report, Section
from cpersona_cli.report.wording import (
    account,
    cleaner,
    copied,
    counted,
    lines_to_copy,
    reasons,
    severity,
    tallies,
    title,
    waived,
    words,
)
from cpersona_cli.traps.model import Finding, Severity

_MARKS = {Severity.FAULT: "❌", Severity.WARNING: "⚠️", Severity.HINT: "💡"}
_VERDICTS = {"pass": "✅ pass", "fail": "❌ fail", "unknown": "❔ no verdict"}

# What has a meaning in Markdown, in the tables of GitHub, or begins HTML, a mention or a reference to a thread.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~@&])")
# Mentions and references are looked for once the escapes are gone: only something in between keeps them off.
_MENTION = re.compile(r"\\([@#])(?=\w)")

_WIDTH = 72  # columns of a plot in characters


def render(report: Report, _style: Style) -> str:
    """The verdict as a heading, then what was found, worst first; what passed is folded away."""
    return "\n".join(_Markdown(report).lines()).rstrip("\n") + "\n"


class _Markdown:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.clean, self.literal, self.say = cleaner(report), copied(report), words(report)

    def lines(self) -> Iterator[str]:
        report = self.report
        yield f"## cpersona-cli {report.command}: {self.say(_VERDICTS[report.verdict])}".replace(" :", ":")
        yield ""
        if report.error:
            yield self._text(report.error)
            yield from self._next()
            return
        summary = self.say(". ").join(part for part in (report.headline, counted(report)) if part)
        yield f"{self._text(summary)}{'' if summary.endswith(self.say('.')) else self.say('.')}"
        yield ""
        for finding in report.worst_first:
            yield from self._finding(finding)
        yield from self._list("No verdict", reasons(report))
        yield from self._list("Waived", waived(report))
        yield from self._list("Looked at", report.looked)
        for section in report.sections:
            yield from self._section(section)
        yield from self._groups()
        yield from self._list("Notes", report.notes)
        yield from self._next()

    def _finding(self, finding: Finding) -> Iterator[str]:
        name = self._text(self.say(title(finding.trap)))
        yield f"### {_MARKS[severity(finding)]} {name} ({self._code(finding.trap)})"
        yield ""
        yield from (f"- **{self.say(name)}**: {self._text(self.say(value))}" for name, value in account(finding))
        block = lines_to_copy(finding)
        if block:
            yield ""
            yield from self._block(block)
        yield ""

    def _section(self, section: Section) -> Iterator[str]:
        """Tables, and plots in characters; folded away where it takes ``-v`` to see it in text."""
        if not section.rows and not section.figures:
            return
        if section.verbosity:
            yield from self._folded(section.title)
        elif section.title:
            yield f"**{self._text(section.title)}**"
            yield ""
        if section.rows:
            with_where = any(where for _, _, where in section.rows)
            yield from self._table(("", "", "") if with_where else ("", ""), section.rows)
        for figure in section.figures:
            match figure:
                case Table():
                    yield from self._table(figure.header, figure.rows, figure.numbers)
                case Copied():
                    yield from self._block([line for text in figure.text for line in text.splitlines()])
                    yield ""
                case _:
                    yield from self._block(list(dropwhile(lambda line: not line, figure.lines(_WIDTH))))
                    yield ""
        if section.verbosity:
            yield "</details>"
            yield ""

    def _groups(self) -> Iterator[str]:
        groups = [tuple(map(str, group)) for group in tallies(self.report)]
        if groups:
            header = [self.say(name) for name in ("group", "passed", "ran", "not made")]
            yield from self._folded(self.say("Checks"))
            yield from self._table(header, groups, frozenset({1, 2, 3}))
            yield "</details>"
            yield ""

    def _folded(self, title: str) -> Iterator[str]:
        """The beginning of a fold, which is HTML: no backslash escapes anything in it."""
        yield f"<details><summary>{escape(self.clean(title))}</summary>"
        yield ""

    def _table(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], numbers: frozenset[int] = frozenset()
    ) -> Iterator[str]:
        """As many columns as the header has; those in ``numbers`` stand to the right."""
        yield f"| {' | '.join(map(self._text, header))} |"
        yield f"|{'|'.join('--:' if number in numbers else '---' for number in range(len(header)))}|"
        for row in rows:
            yield f"| {' | '.join(self._text(cell) for cell in row[: len(header)])} |"
        yield ""

    def _list(self, heading: str, sentences: Sequence[str]) -> Iterator[str]:
        if sentences:
            yield f"**{self.say(heading)}**"
            yield ""
            yield from (f"- {self._text(sentence)}" for sentence in sentences)
            yield ""

    def _next(self) -> Iterator[str]:
        if self.report.next_command:
            yield f"{self.say('Next')}: {self._code(self.report.next_command)}"

    def _text(self, text: str) -> str:
        return _MENTION.sub(r"\1<!-- -->", _SPECIAL.sub(r"\\\1", self.clean(text)))

    def _code(self, text: str) -> str:
        """Inline code, between more backticks than it holds in a row."""
        shown = self.literal(text)
        ticks = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
        space = " " if shown.startswith("`") or shown.endswith("`") else ""
        return f"{ticks}{space}{shown}{space}{ticks}"

    def _block(self, lines: Sequence[str]) -> Iterator[str]:
        shown = [self.literal(line) for line in lines]
        fence = "`" * max(3, 1 + max((len(run) for line in shown for run in re.findall("`+", line)), default=0))
        yield fence
        yield from shown
        yield fence
