"""A report for people: problems first, worst first; the last line is the verdict and the one next command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cpersona_cli.install.model import Place
from cpersona_cli.report.layout import Style, columns, flow, pad, wrap
from cpersona_cli.report.model import Report, Section, Verdict
from cpersona_cli.report.wording import by_repair, counted, many, words
from cpersona_cli.text import plural, redact, safe, tilde
from cpersona_cli.traps.model import Finding, Group, Severity
from cpersona_cli.traps.run import Check, State

_TEXT_LIMIT = 4000  # characters of one field; foreign parts were cut far earlier
_LEFT = 9  # columns of the word a block starts with
_LABEL = 13  # where the text of a labelled line starts
_NARROWEST = 40
_REASONS = 3  # for checks that were not made, without -v

_COLORS = {Severity.FAULT: "red", Severity.WARNING: "yellow", Severity.HINT: "blue"}
_VERDICTS = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.UNKNOWN: "yellow"}


def render(report: Report, style: Style) -> str:
    """The whole report as text that ends in a line feed; at ``quiet`` only its last line."""
    return "\n".join(_Text(report, style).lines()) + "\n"


class _Text:
    def __init__(self, report: Report, style: Style) -> None:
        self.report, self.style = report, style
        self.width = max(style.width, _NARROWEST)
        self.whole = tuple(self._paths())
        self.say, self.many = words(report), many(report)

    def lines(self) -> Iterator[str]:
        report = self.report
        if report.error:
            yield from self._error()
            return
        if not report.gate:
            yield from self._told()
            return
        if not self.style.quiet:
            yield self._header()
            for block in self._blocks():
                lines = list(block)
                if lines:
                    yield ""
                    yield from lines
            yield ""
        yield from self._last()

    def _blocks(self) -> Iterator[Iterable[str]]:
        report = self.report
        for finding, *others in by_repair(report.worst_first):
            yield self._finding(finding, others)
        yield self._unsettled()
        yield self._waived()
        yield self._unknown()
        yield self._looked()
        for section in report.sections:
            if self.style.verbose >= section.verbosity:
                yield self._section(section)
        yield self._skipped()
        yield self._groups()
        yield self._notes()

    # One piece after the other, in the order in which they appear.

    def _error(self) -> Iterator[str]:
        start = f"{self._name()}: "
        yield from self._hanging(self.style.paint(start, "bold"), len(start), self._clean(self.report.error), 2)
        if self.report.next_command:
            yield self._following()

    def _told(self) -> Iterator[str]:
        for number, section in enumerate(self.report.sections):
            if number:
                yield ""
            yield from self._section(section)
        if self.report.next_command:
            yield ""
            yield self._following()

    def _following(self) -> str:
        return f"{self.say('Next')}: {self._literal(self._shell(self.report.next_command))}"

    def _name(self) -> str:
        return f"cpersona-cli {self.report.command}".rstrip()

    def _header(self) -> str:
        elapsed = f"{self.report.elapsed:.{1 if self.report.elapsed >= 1 else 2}f} {self.say('s')}"
        parts = (self.style.paint(self._name(), "bold"), self._clean(self.report.headline), elapsed)
        return "    ".join(part for part in parts if part)

    def _finding(self, finding: Finding, others: Sequence[Finding] = ()) -> Iterator[str]:
        severity = finding.severity or Severity.FAULT
        yield from self._titled(str(severity).upper(), _COLORS[severity], finding.trap, self._whereabouts(finding))
        yield from self._labelled("measured", finding.measured)
        yield from self._labelled("expected", finding.expected)
        yield from self._labelled("costs", finding.costs)
        for other in others:
            yield from self._labelled("also", f"{self.say(str(other.severity))} {other.trap}: {other.measured}")
        yield from self._fix(finding)
        if self.report.rerun:
            names = ",".join(dict.fromkeys(one.trap for one in (finding, *others)))
            one_check = self.report.command == "doctor" and not finding.trap.startswith(f"{Group.TOOL}.")
            only = f" --only {names}" if one_check else ""
            yield self._line("verify", self._shell(f"{self.report.rerun}{only}"), literal=True)
        yield from self._labelled("depends", finding.depends.removeprefix("depends "))
        if self.style.verbose:
            yield from self._labelled("about", finding.about)
            for name, value in finding.evidence:
                yield from self._labelled("evidence", f"{name}: {value}")
            yield self._line("waive by", finding.fingerprint)

    def _fix(self, finding: Finding) -> Iterator[str]:
        repair = finding.repair
        yield from self._labelled("fix", repair.prose)
        for line in repair.edit.splitlines():
            yield self._line("", line, literal=True)
        for command in repair.commands:
            for line in command.splitlines():
                yield self._line("", self._shell(line), literal=True)

    def _whereabouts(self, finding: Finding) -> tuple[str, str]:
        place = finding.place or Place()
        subject = "" if str(place.file) == finding.subject else finding.subject
        return self._clean(self.say(subject)), self._clean(self.say(str(place)) if finding.place else "")

    def _unsettled(self) -> Iterator[str]:
        reasons = {check.trap.id: check.reason for check in self.report.checks}
        for name in self.report.unmet:
            reason = f": {reasons[name]}" if reasons.get(name) else ""
            yield from self._titled("UNKNOWN", "yellow", f"{name} is required and did not run{reason}")
        for sentence in self.report.unsettled:
            yield from self._titled("UNKNOWN", "yellow", sentence)

    def _waived(self) -> Iterator[str]:
        for waived in self.report.waived:
            subject, place = self._whereabouts(waived.finding)
            yield from self._titled("waived", "dim", waived.finding.trap, (subject, place))
            yield from self._labelled("until", f"{waived.expires}, {waived.reason}")

    def _unknown(self) -> Iterator[str]:
        for check in self.report.unknown:
            yield from self._titled("UNKNOWN", "yellow", check.trap.id)
            yield from self._labelled("because", check.reason)

    def _looked(self) -> Iterator[str]:
        if self.report.looked:
            yield "looked at"
        for place in self.report.looked:
            yield f"  {self._clean(place)}"

    def _section(self, section: Section) -> Iterator[str]:
        """Rows in columns. A row that says where its value comes from is a fact and never broken, others are prose.

        Nor is a command on a row of its own.
        """
        if section.title:
            yield self.style.paint(self._clean(section.title), "bold")
        rows = [(self._clean(name), self._clean(value), self._clean(where)) for name, value, where in section.rows]
        first = max((columns(name) for name, _, _ in rows), default=0) + 4
        second = max((columns(value) for _, value, where in rows if where), default=0) + 2
        for name, value, where in rows:
            start = pad(f"  {name}", first)
            if not name and value.startswith("cpersona-cli "):
                yield f"{start}{value}"  # to be copied
            elif not where:
                yield from self._hanging(start, first, value, first)
            elif first + second + columns(where) <= self.width:
                yield f"{start}{pad(value, second)}{self.style.paint(where, 'dim')}"
            else:
                yield f"{start}{value}".rstrip()
                yield " " * first + self.style.paint(where, "dim")
        for figure in section.figures:
            yield from (f"  {self._clean(line)}".rstrip() for line in figure.lines(self.width - 2))

    def _skipped(self) -> Iterator[str]:
        """The checks that were not made, by reason; the frequent reasons alone unless all are asked for."""
        by_reason: dict[str, list[Check]] = {}
        for check in self.report.checks:
            if check.state is State.SKIPPED:
                by_reason.setdefault(check.reason, []).append(check)
        reasons = sorted(by_reason.items(), key=lambda item: -len(item[1]))
        shown = reasons if self.style.verbose else reasons[:_REASONS]
        for reason, checks in shown:
            text = f"{self.many(len(checks), 'check')}: {reason}"
            if self.style.verbose:
                text += f" ({', '.join(check.trap.id for check in checks)})"
            yield from self._titled("not made", "dim", text)
        rest = sum(len(checks) for _, checks in reasons[len(shown) :])
        if rest:
            count = plural(len(reasons) - len(shown), "other reason")
            yield from self._titled("not made", "dim", f"{plural(rest, 'check')} for {count} (-v tells)")

    def _groups(self) -> Iterable[str]:
        by_group: dict[Group, list[Check]] = {}
        for check in self.report.checks:
            by_group.setdefault(check.trap.group, []).append(check)
        if all(check.state is State.SKIPPED for check in by_group.get(Group.TOOL, ())):
            by_group.pop(Group.TOOL, None)  # without a waivers file there is nothing of the tool's own to check
        return flow((self._tally(group, checks) for group, checks in by_group.items()), self.width)

    def _tally(self, group: Group, checks: Sequence[Check]) -> str:
        """``names 35/36``: how many of the checks that ran found nothing."""
        ran = [check for check in checks if check.state is not State.SKIPPED]
        if ran:
            return f"{group} {sum(check.state is State.PASS for check in ran)}/{len(ran)}"
        return f"{group} {self.say('not checked')}"

    def _notes(self) -> Iterator[str]:
        for note in self.report.notes:
            yield from self._titled("note", "dim", note)

    def _last(self) -> Iterator[str]:
        """The verdict and the one next command, on two lines where one would be broken by the terminal."""
        report = self.report
        word = self.say(str(report.verdict).upper())
        start, size = f"{self.style.paint(word, _VERDICTS[report.verdict])}   ", columns(word) + 3
        said = self._clean(report.summary) or f"{counted(report)}{self.say('.')}"
        following = self._following() if report.next_command else ""
        fits = size + columns(said) + (3 + columns(following) if following else 0) <= self.width
        if fits or self.style.quiet:
            yield f"{start}{said}" + (f"   {following}" if following else "")
            return
        if report.summary:
            yield from self._hanging(start, size, said, size)
        else:
            yield f"{start}{said}"
        yield from [following] if following else []

    # The words on a line.

    def _titled(self, word: str, color: str, text: str, right: tuple[str, ...] = ()) -> Iterator[str]:
        """``FAULT    id      subject   place``; what does not fit beside the id stands below it."""
        start = self.style.paint(pad(self.say(word), _LEFT), color)
        tail = "   ".join(part for part in right if part)
        if not tail:
            yield from self._hanging(start, _LEFT, self._clean(text), _LEFT)
            return
        name = pad(self._clean(text), 30) + "   "
        if _LEFT + columns(name) + columns(tail) <= self.width:
            yield f"{start}{name}{tail}"
            return
        yield f"{start}{name}".rstrip()
        yield from (" " * _LEFT + line for line in self._side_by_side(right))

    def _side_by_side(self, parts: Sequence[str]) -> list[str]:
        return flow((part for part in parts if part), self.width - _LEFT, gap=3)

    def _labelled(self, label: str, text: str) -> Iterator[str]:
        if text:
            start = f"  {self.style.paint(pad(self.say(label), _LABEL - 2), 'dim')}"
            yield from self._hanging(start, _LABEL, self._clean(text), _LABEL)

    def _line(self, label: str, text: str, *, literal: bool = False) -> str:
        """A line to be copied, never broken; a ``literal`` one keeps its home directory: files expand no ``~``."""
        shown = self._literal(text) if literal else self._clean(text)
        return f"  {self.style.paint(pad(self.say(label), _LABEL - 2), 'dim')}{shown}"

    def _shell(self, command: str) -> str:
        """A command in which words that begin with the home directory begin with ``~``: all shells expand it there.

        Inside a word, as in ``NAME=~/file``, and in quotes not every shell does.
        """
        home = self.report.home
        begins = self.report.home.rstrip("/\\")
        return " ".join(
            tilde(word, home) if word.startswith(begins) and not set(word) & set("'\"") else word
            for word in command.split(" ")
        )

    def _hanging(self, start: str, size: int, text: str, indent: int) -> Iterator[str]:
        lines = wrap(text, self.width - max(size, indent), self.whole)
        yield f"{start}{lines[0]}".rstrip()
        yield from (" " * indent + line for line in lines[1:])

    def _literal(self, text: str) -> str:
        return safe(redact(text, self.report.secrets), _TEXT_LIMIT)

    def _clean(self, text: str) -> str:
        """No secret, no home directory, no control character."""
        shown = tilde(redact(text, self.report.secrets), self.report.home)
        return safe(shown, _TEXT_LIMIT)

    def _paths(self) -> Iterator[str]:
        """Every path the report names, longest first, so that wrapping leaves it whole."""
        found: set[str] = set()
        for finding in (*self.report.findings, *(waived.finding for waived in self.report.waived)):
            places: tuple[Place | None, ...] = (finding.place, finding.repair.place)
            found.update(str(place.file) for place in places if place is not None and place.file is not None)
            found.add(finding.subject)
        return iter(sorted((self._clean(path) for path in found if " " in path), key=len, reverse=True))
