"""A report as JUnit XML, for the test panels of CI systems.

A suite for each group of checks, a case for each check. A finding that fails the run is a failure, a check that could
not tell is an error, one that was not made is skipped; milder findings stand in the output of a case that passes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from cpersona_cli.report.layout import Style
from cpersona_cli.report.model import Report, Verdict
from cpersona_cli.report.wording import (
    cleaner,
    copied,
    counted,
    ending,
    lines_to_copy,
    reasons,
    severity,
    title,
    unlisted,
)
from cpersona_cli.traps.model import Finding
from cpersona_cli.traps.run import Check, State

# What XML 1.0 cannot hold in any spelling.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, _style: Style) -> str:
    """The document, with an XML declaration and a line feed at its end."""
    return _Suites(report).document()


class _Suites:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.clean, self.copied = cleaner(report), copied(report)
        self.root = ET.Element("testsuites", name=self._name("cpersona-cli"))

    def document(self) -> str:
        by_group: dict[str, list[Check]] = {}
        for check in self.report.checks:
            by_group.setdefault(str(check.trap.group), []).append(check)
        for group, checks in by_group.items():
            suite = self._suite(group)
            for check in checks:
                self._check(suite, check)
        self._findings()
        self._verdict()
        self._total()
        ET.indent(self.root)
        body = ET.tostring(self.root, encoding="unicode", short_empty_elements=True)
        return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'

    def _name(self, text: str) -> str:
        return f"{text} {self.report.command}".rstrip()

    def _suite(self, name: str) -> ET.Element:
        return ET.SubElement(self.root, "testsuite", name=_legal(f"{self._name('cpersona-cli')}: {name}"))

    def _case(self, suite: ET.Element, name: str, group: str) -> ET.Element:
        classname = ".".join(part for part in ("cpersona-cli", self.report.command, group) if part)
        return ET.SubElement(suite, "testcase", name=_legal(name), classname=_legal(classname))

    def _check(self, suite: ET.Element, check: Check) -> None:
        case = self._case(suite, check.trap.id, str(check.trap.group))
        waived = [w for w in self.report.waived if w.finding.trap == check.trap.id]
        findings = [finding for finding in self.report.worst_first if finding.trap == check.trap.id]
        if check.state is State.SKIPPED:
            ET.SubElement(case, "skipped", message=self._line(check.reason))
        elif check.state is State.UNKNOWN:
            ET.SubElement(case, "error", message=self._line(check.reason), type="unknown")
        elif waived and not findings:
            until = "; ".join(f"waived until {w.expires}: {w.reason}" for w in waived)
            ET.SubElement(case, "skipped", message=self._line(until))
        self._into(case, findings)

    def _findings(self) -> None:
        """Findings of no check, one case for each id."""
        left = unlisted(self.report)
        if not left:
            return
        suite = self._suite("findings")
        for name in dict.fromkeys(finding.trap for finding in left):
            case = self._case(suite, name, "findings")
            self._into(case, [finding for finding in left if finding.trap == name])

    def _into(self, case: ET.Element, findings: Sequence[Finding]) -> None:
        failed = [finding for finding in findings if self.report.fail_on.fails(severity(finding))]
        if failed:
            first, *others = failed
            more = f" (and {len(others)} more)" if others else ""
            failure = ET.SubElement(
                case, "failure", message=self._line(first.measured) + more, type=str(severity(first))
            )
            failure.text = "\n\n".join(map(self._account, failed))
        milder = [self._account(finding) for finding in findings if finding not in failed]
        if milder:
            ET.SubElement(case, "system-out").text = "\n\n".join(milder)

    def _account(self, finding: Finding) -> str:
        place = "" if finding.place is None else str(finding.place)
        rows = [
            ("", f"{severity(finding)}: {title(finding.trap)}"),
            ("subject", finding.subject),
            ("place", place),
            ("measured", finding.measured),
            ("expected", finding.expected),
            ("costs", finding.costs),
            ("fix", finding.repair.prose),
        ]
        lines = [f"{name}: {self.clean(value)}" if name else self.clean(value) for name, value in rows if value]
        lines += map(self.copied, lines_to_copy(finding))
        return _legal("\n".join(lines))

    def _verdict(self) -> None:
        """Why there is no verdict, and what the run came to: a document without a single case would read as passed."""
        report = self.report
        suite = self._suite("verdict")
        case = self._case(suite, "verdict", "verdict")
        if report.error:
            ET.SubElement(case, "error", message=self._line(report.error), type="error")
            return
        said = ending(report)
        if said and report.verdict is Verdict.FAIL:
            self._outcome(case, "failure", "fail", said)
        elif why := said or reasons(report)[: len(report.unmet) + len(report.unsettled)]:
            self._outcome(case, "error", "unknown", why)
        ET.SubElement(case, "system-out").text = self._line(f"{report.verdict}: {counted(report)}")

    def _outcome(self, case: ET.Element, name: str, kind: str, said: Sequence[str]) -> None:
        """The one outcome of a case, as readers of the format take no second: the first line, and all in its text."""
        told = ET.SubElement(case, name, message=self._line(said[0]), type=kind)
        if said[1:]:
            told.text = "\n".join(map(self._line, said))

    def _total(self) -> None:
        """The counts that readers of the format look for, of each suite and of all."""
        totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
        for suite in self.root:
            cases = list(suite)
            found = {
                "tests": len(cases),
                "failures": sum(case.find("failure") is not None for case in cases),
                "errors": sum(case.find("error") is not None for case in cases),
                "skipped": sum(case.find("skipped") is not None for case in cases),
            }
            for name, number in found.items():
                suite.set(name, str(number))
                totals[name] += number
        for name, number in totals.items():
            self.root.set(name, str(number))
        self.root.set("time", f"{self.report.elapsed:.3f}")

    def _line(self, text: str) -> str:
        return _legal(self.clean(text))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("�", text)
