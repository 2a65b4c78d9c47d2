"""A report as SARIF 2.1.0, for code scanning: results stand at the line that set the bad value.

Checks are rules, findings are results, waived findings are suppressed results; what could not be told is a
notification of the run. The whole of the report stays in the properties that a reader of the format may ignore.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from urllib.parse import quote

from cpersona_cli import __version__
from cpersona_cli.install.model import Place
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.layout import Style
from cpersona_cli.report.model import Report, Verdict
from cpersona_cli.report.wording import (
    account,
    cleaner,
    copied,
    counted,
    ending,
    lines_to_copy,
    reasons,
    seen_from,
    severity,
    title,
    traps,
)
from cpersona_cli.traps.model import Finding, Severity

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_LEVELS = {Severity.FAULT: "error", Severity.WARNING: "warning", Severity.HINT: "note"}

Object = Mapping[str, object]


def render(report: Report, style: Style) -> str:
    """The log with its one run, in ASCII."""
    return json.dumps(_Sarif(report, style).log(), indent=2) + "\n"


class _Sarif:
    def __init__(self, report: Report, style: Style) -> None:
        self.report, self.root = report, style.root
        self.clean, self.literal = cleaner(report), copied(report)
        used = [finding.trap for finding in report.worst_first]
        used += [waived.finding.trap for waived in report.waived]
        self.rules = list(dict.fromkeys([*(check.trap.id for check in report.checks), *used]))
        self.traps = {**traps(), **{check.trap.id: check.trap for check in report.checks}}

    def log(self) -> Object:
        report = self.report
        driver = {
            "name": "cpersona-cli",
            "version": __version__,
            "rules": [self._rule(name) for name in self.rules],
        }
        run = {
            "tool": {"driver": driver},
            "invocations": [self._invocation()],
            "results": [*(self._result(f) for f in report.worst_first), *self._suppressed()],
            "columnKind": "unicodeCodePoints",
            "properties": {
                "command": report.command,
                "verdict": str(report.verdict),
                "summary": self.clean(counted(report)),
                "checksRun": report.ran,
                "checksSkipped": report.skipped,
            },
        }
        return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}

    def _rule(self, name: str) -> Object:
        trap = self.traps.get(name)
        described: dict[str, object] = {
            "id": name,
            "name": "".join(part.title() for part in name.replace(".", "-").split("-")),
            "shortDescription": {"text": title(name) if trap is None else trap.title},
        }
        if trap is not None:
            described["fullDescription"] = {"text": f"Costs: {trap.costs}"}
            described["help"] = {"text": f"Expected: {trap.expected}\nRepair: {trap.repair}\nSource: {trap.source}"}
            described["defaultConfiguration"] = {"level": _LEVELS[trap.severity]}
            described["properties"] = {"tags": [str(trap.group)]}
        return described

    def _result(self, finding: Finding) -> dict[str, object]:
        return {
            "ruleId": finding.trap,
            "ruleIndex": self.rules.index(finding.trap),
            "level": _LEVELS[severity(finding)],
            "message": {"text": "\n".join(self._message(finding))},
            "locations": [self._location(finding)],
            "partialFingerprints": {"cpersonaCli/v1": finding.fingerprint},
        }

    def _message(self, finding: Finding) -> Iterator[str]:
        for name, value in account(finding):
            if name not in {"subject", "place"}:  # a location of their own
                yield self.clean(value if name == "measured" else f"{name}: {value}")
        yield from map(self.literal, lines_to_copy(finding))

    def _location(self, finding: Finding) -> Object:
        return {
            "physicalLocation": {
                "artifactLocation": {"uri": self._artifact(finding)},
                "region": self._region(finding.place),
            },
            "logicalLocations": [{"fullyQualifiedName": self.clean(finding.subject or "cpersona")}],
        }

    def _artifact(self, finding: Finding) -> str:
        """What the finding is in. Code scanning refuses a whole log for one result that names nothing.

        The file that set the value, else the database, else in words (``this process's environment``).
        """
        place, subject = finding.place, PurePath(finding.subject)
        if place is not None and place.file is not None:
            return self._uri(place.file)
        if subject.is_absolute():
            return self._uri(subject)
        words = place.words if place is not None else ""
        return quote(self.clean(words or finding.subject or "cpersona"), safe="")

    def _region(self, place: Place | None) -> Object:
        """Line 1 where no line is known: code scanning asks for one."""
        if place is None or not place.line:
            return {"startLine": 1}
        return {"startLine": place.line, **({"startColumn": place.column} if place.column else {})}

    def _uri(self, file: PurePath) -> str:
        """Relative to the checkout where the file lies in it, as code scanning wants it; else absolute."""
        inside = seen_from(self.root, file)
        if inside is not None:
            return quote(self.literal(inside))
        shown = self.literal(file.as_posix())
        if not file.is_absolute():
            return quote(shown)
        return f"file://{'' if shown.startswith('/') else '/'}{quote(shown, safe='/:')}"

    def _suppressed(self) -> Iterator[Object]:
        for one in self.report.waived:
            why = self.clean(f"{one.reason} (until {one.expires})")
            yield {
                **self._result(one.finding),
                "suppressions": [{"kind": "external", "status": "accepted", "justification": why}],
            }

    def _invocation(self) -> Object:
        report = self.report
        code = report.exit_code
        said = [report.error] if report.error else ending(report)
        negative = report.error or report.verdict is Verdict.FAIL
        return {
            "executionSuccessful": not report.error and code in {Exit.OK, Exit.NEGATIVE, Exit.NO_VERDICT},
            "exitCode": int(code),
            "toolExecutionNotifications": [
                {"level": "error" if said and negative else "warning", "message": {"text": self.clean(text)}}
                for text in said or reasons(report)
            ],
        }
