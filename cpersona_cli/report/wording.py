"""Words that several renderers share: what may leave the process, and how a run is summed up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import PurePath

from cpersona_cli.report.exits import Exit
from cpersona_cli.report.model import Report, Verdict
from cpersona_cli.text import plural, redact, safe, tilde
from cpersona_cli.traps.model import Finding, Severity, Trap
from cpersona_cli.traps.run import Check, State

#: Characters of one field; foreign parts were cut far earlier.
LIMIT = 4000

#: Facts that stand for a finding where there is none.
_FACTS = 20


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


def words(report: Report) -> Callable[[str], str]:
    """Puts a word of this tool, or a sentence without gaps, into the language of the report."""
    if report.language == "en":
        return str
    from cpersona_cli.advisory.phrases import word  # noqa: PLC0415 - only where English is not wanted

    return lambda text: word(report.language, text)


def many(report: Report) -> Callable[..., str]:
    """Puts a count of things (``2 checks``) into the language of the report."""
    if report.language == "en":
        return plural
    from cpersona_cli.advisory.phrases import counted as told  # noqa: PLC0415 - as above

    return lambda count, noun, _many="": told(report.language, count, noun)


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
    counts, number = report.counts, many(report)
    parts = [number(report.ran, "check"), number(counts["fault"], "fault"), number(counts["warning"], "warning")]
    if counts["hint"]:
        parts.append(number(counts["hint"], "hint"))
    parts += [
        number(counts[key], word, word)
        for key, word in (("waived", "waived"), ("unknown", "unknown"), ("skipped", "not made"))
        if counts[key]
    ]
    return words(report)(", ").join(parts)


def reasons(report: Report) -> list[str]:
    """Why there is no verdict, one sentence each: what was required, what could not be found out, what failed."""
    why = {check.trap.id: check.reason for check in report.checks}
    required = [
        f"{name} is required and did not run" + (f": {why[name]}" if why.get(name) else "") for name in report.unmet
    ]
    return [*required, *report.unsettled, *(f"{check.trap.id}: {check.reason}" for check in report.unknown)]


def failing(report: Report) -> bool:
    """Whether a finding makes the run fail."""
    return any(report.fail_on.fails(severity(finding)) for finding in report.findings)


def ending(report: Report) -> list[str]:
    """What a run that did not pass says of itself where no finding, error or lack of a verdict does.

    Its last word, then why, then the facts that text shows without ``-v``: a refusal, or work of which not all is done.
    """
    missing = report.verdict is Verdict.UNKNOWN and reasons(report)
    if report.error or report.exit_code is Exit.OK or failing(report) or missing:
        return []
    unchecked = report.error_code is None and not report.ran
    facts = [
        f"{name}: {value}" if name else value
        for section in report.sections
        if not section.verbosity
        for name, value, _ in section.rows
    ]
    return ["nothing was checked" if unchecked else counted(report), *reasons(report), *facts[:_FACTS]]


def unlisted(report: Report) -> list[Finding]:
    """Findings of no check of the report: those of commands that measure rather than check."""
    checked = {check.trap.id for check in report.checks}
    return [finding for finding in report.worst_first if finding.trap not in checked]


def account(finding: Finding) -> list[tuple[str, str]]:
    """What a finding says, as (name, text), without what is empty; not cleaned yet."""
    place = "" if finding.place is None else str(finding.place)
    rows = [
        ("subject", finding.subject if finding.subject != place else ""),
        ("place", place),
        ("measured", finding.measured),
        ("expected", finding.expected),
        ("costs", finding.costs),
        ("depends", finding.depends),
        ("fix", finding.repair.prose),
    ]
    return [(name, text) for name, text in rows if text]


def lines_to_copy(finding: Finding) -> list[str]:
    """The lines of the edit and of the commands of a repair; not cleaned yet."""
    texts = (finding.repair.edit, *finding.repair.commands)
    return [line for text in texts for line in text.splitlines()]


def by_repair(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings that one and the same change to one place mends stand together, the worst of them first."""
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        edit = finding.repair.edit, finding.repair.prose, finding.repair.place
        groups.setdefault((finding.subject, *edit) if finding.repair.place else number, []).append(finding)
    return list(groups.values())


def waived(report: Report) -> list[str]:
    """One sentence for each finding that is lived with."""
    return [f"{w.finding.trap} ({w.finding.subject}), until {w.expires}: {w.reason}" for w in report.waived]


def tallies(report: Report) -> list[tuple[str, int, int, int]]:
    """For each group of checks how many passed, ran, and were not made."""
    by_group: dict[str, list[Check]] = {}
    for check in report.checks:
        by_group.setdefault(str(check.trap.group), []).append(check)
    found = []
    for group, checks in by_group.items():
        ran = [check for check in checks if check.state is not State.SKIPPED]
        passed = sum(check.state is State.PASS for check in ran)
        found.append((group, passed, len(ran), len(checks) - len(ran)))
    return found


def seen_from(root: str, file: PurePath) -> str | None:
    """``file`` as named inside the checkout at ``root``, None where it does not lie there."""
    try:
        return file.relative_to(root).as_posix() if root else None
    except ValueError:
        return None
