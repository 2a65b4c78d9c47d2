"""Words that several renderers share: what may leave the process, and how a run is summed up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from cpersona_cli.report.model import Report
from cpersona_cli.text import plural, redact, safe, tilde
from cpersona_cli.traps.model import Finding, Severity, Trap
from cpersona_cli.traps.run import Check, State

#: Characters of one field; foreign parts were cut far earlier.
LIMIT = 4000


def cleaner(report: Report) -> Callable[[str], str]:
    """Takes secrets, the home directory and control characters out of a text, which becomes one line."""

    def clean(text: str) -> str:
        return safe(tilde(redact(text, report.secrets), report.home), LIMIT)

    return clean


def copied(report: Report) -> Callable[[str], str]:
    """As ``cleaner``, for what people copy into a file: the home directory stays, as no file expands ``~``."""

    def clean(text: str) -> str:
        return safe(redact(text, report.secrets), LIMIT)

    return clean


@cache
def traps() -> Mapping[str, Trap]:
    """Every trap by its id; imported when a renderer asks, as the list is long."""
    from cpersona_cli.traps.registry import ALL  # noqa: PLC0415

    return {trap.id: trap for trap in ALL}


def title(trap_id: str) -> str:
    """The title of a trap, or its id where it has none."""
    trap = traps().get(trap_id)
    return trap_id if trap is None else trap.title


def severity(finding: Finding) -> Severity:
    return finding.severity or Severity.FAULT


def counted(report: Report) -> str:
    """``12 checks, 1 fault, 0 warnings, 3 not made``, or the command's own summary."""
    if report.summary:
        return report.summary
    counts = report.counts
    parts = [plural(report.ran, "check"), plural(counts["fault"], "fault"), plural(counts["warning"], "warning")]
    if counts["hint"]:
        parts.append(plural(counts["hint"], "hint"))
    parts += [
        f"{counts[key]} {word}"
        for key, word in (("waived", "waived"), ("unknown", "unknown"), ("skipped", "not made"))
        if counts[key]
    ]
    return ", ".join(parts)


def reasons(report: Report) -> list[str]:
    """Why there is no verdict, one sentence each: what was required, what could not be found out, what failed."""
    why = {check.trap.id: check.reason for check in report.checks}
    required = [
        f"{name} is required and did not run" + (f": {why[name]}" if why.get(name) else "") for name in report.unmet
    ]
    return [*required, *report.unsettled, *(f"{check.trap.id}: {check.reason}" for check in report.unknown)]


def unlisted(report: Report) -> list[Finding]:
    """Findings of no check of the report: those of commands that measure rather than check."""
    checked = {check.trap.id for check in report.checks}
    return [finding for finding in report.worst_first if finding.trap not in checked]


def ran(check: Check) -> bool:
    return check.state is not State.SKIPPED
