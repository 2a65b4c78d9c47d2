"""The one result every command returns. Renderers turn it into text; the exit code comes from here alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Literal

from cpersona_cli.record import field, record
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.figures import Figure
from cpersona_cli.traps.model import Finding, Severity
from cpersona_cli.traps.run import Check, State


class Verdict(StrEnum):
    """The same three answers for people and machines."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    UNKNOWN = "unknown"


class FailOn(StrEnum):
    """The mildest severity that makes a run fail."""

    FAULT = "fault"
    WARNING = "warning"
    HINT = "hint"
    NEVER = "never"

    def fails(self, severity: Severity) -> bool:
        return self is not FailOn.NEVER and severity.rank <= Severity(self.value).rank


@record(kw_only=True)
class Waived:
    """A finding that a waiver covers: it is counted and shown, and does not fail the run."""

    finding: Finding
    reason: str
    expires: str


@record(kw_only=True)
class Section:
    """A block of plain facts: a title, rows of (name, value, where it came from), and figures below them.

    ``verbosity`` is how many ``-v`` it takes to see it in text; other renderers have the facts in the payload.
    """

    title: str
    rows: Sequence[tuple[str, str, str]]
    verbosity: int = 1
    figures: Sequence[Figure] = ()


@record(kw_only=True)
class Report:
    """What a command found out.

    ``headline`` is the first line's right part (``2 registrations, 1 database``). ``checks`` is every trap in order.
    ``findings`` are those that count; ``waived`` those that do not. ``payload`` is the command's own JSON fields.
    ``error`` is set when there is no result: a usage error or a crash, as one sentence. ``unmet`` are ids that
    ``--require`` named and that did not run; ``unsettled`` are further sentences why there is no verdict. ``looked``
    are the places searched when nothing was found. A command that judges nothing has ``gate`` false and says what it
    has to say in ``sections``. ``rerun`` is the command line that examines the same things again. A command that does
    something sums it up in ``summary``, which stands in the last line in place of the counts of checks; with no
    ``error``, ``error_code`` is what became of it. ``language`` is that of its sentences, and of the renderers' words.
    """

    command: str
    headline: str = ""
    checks: Sequence[Check] = ()
    findings: Sequence[Finding] = ()
    waived: Sequence[Waived] = ()
    fail_on: FailOn = FailOn.FAULT
    unmet: Sequence[str] = ()
    unsettled: Sequence[str] = ()
    sections: Sequence[Section] = ()
    notes: Sequence[str] = ()
    looked: Sequence[str] = ()
    payload: Mapping[str, object] = field(default_factory=dict)
    next_command: str = ""
    rerun: str = ""
    elapsed: float = 0.0
    error: str = ""
    error_code: Exit | None = None
    summary: str = ""
    home: str = ""
    secrets: Sequence[str] = ()
    gate: bool = True
    language: Literal["en", "ja"] = "en"
    measured: int = 0  # checks that are no traps: the measurements of a probe
    unmeasured: int = 0  # those that were not made

    @property
    def ran(self) -> int:
        """How many checks came to an answer of their own or tried to."""
        return self.measured + sum(check.state is not State.SKIPPED for check in self.checks)

    @property
    def skipped(self) -> int:
        return self.unmeasured + sum(check.state is State.SKIPPED for check in self.checks)

    @property
    def unknown(self) -> Sequence[Check]:
        return [check for check in self.checks if check.state is State.UNKNOWN]

    @property
    def worst_first(self) -> Sequence[Finding]:
        """The findings by severity, those of one severity in the order of the checks."""
        return sorted(self.findings, key=lambda finding: (finding.severity or Severity.FAULT).rank)

    @property
    def counts(self) -> Mapping[str, int]:
        """Findings by severity, plus ``waived``, ``unknown`` and ``skipped``."""
        by = Counter(str(finding.severity) for finding in self.findings)
        counts = {str(severity): by[str(severity)] for severity in Severity}
        return {**counts, "waived": len(self.waived), "unknown": len(self.unknown), "skipped": self.skipped}

    @property
    def exit_code(self) -> Exit:
        """0 pass, 1 negative, 2 usage, 3 no verdict; a fault outranks what could not be found out."""
        if self.error_code is not None:
            return self.error_code
        if not self.gate:
            return Exit.OK
        if any(self.fail_on.fails(finding.severity or Severity.FAULT) for finding in self.findings):
            return Exit.NEGATIVE
        if self.ran == 0 or self.unmet or self.unsettled:
            return Exit.NO_VERDICT
        return Exit.NO_VERDICT if self.unknown else Exit.OK

    @property
    def verdict(self) -> Verdict:
        return {Exit.OK: Verdict.PASS, Exit.NEGATIVE: Verdict.FAIL}.get(self.exit_code, Verdict.UNKNOWN)
