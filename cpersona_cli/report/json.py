"""A report for machines: one JSON document. Fields may be added to it, never changed or dropped."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache

from cpersona_cli import __version__
from cpersona_cli.install.model import Place
from cpersona_cli.report.layout import Style
from cpersona_cli.report.model import Report, Waived
from cpersona_cli.text import redact
from cpersona_cli.traps.model import Finding, Repair
from cpersona_cli.traps.run import Check


def render(report: Report, _style: Style) -> str:
    """The document, in ASCII so that no encoding of stdout can harm it; secrets are removed from every text in it.

    Paths stay absolute, for programs to open.
    """

    @cache
    def clean(text: str) -> str:
        # Most texts of a document come again and again: every setting's name for every registration.
        return redact(text, report.secrets).encode("utf-8", "backslashreplace").decode()

    return json.dumps(_plain(document(report), clean), indent=2, allow_nan=False) + "\n"


def document(report: Report) -> Mapping[str, object]:
    """The fields of the document: those of every command, which the command's own never replace."""
    common = {
        "schema": f"cpersona-cli/{report.command or 'none'}/1",
        "tool_version": __version__,
        "verdict": report.verdict,
        "exit_code": int(report.exit_code),
        "error": report.error or None,
        "fail_on": report.fail_on,
        "checks_run": report.ran,
        "checks_skipped": report.skipped,
        "counts": report.counts,
        "elapsed_seconds": round(report.elapsed, 3),
        "headline": report.headline,
        "findings": [_finding(finding) for finding in report.worst_first],
        "waived": [_waived(waived) for waived in report.waived],
        "checks": [_check(check) for check in report.checks],
        "unmet": report.unmet,
        "unsettled": report.unsettled,
        "notes": report.notes,
        "looked": report.looked,
        "next_command": report.next_command or None,
    }
    return {**common, **{name: value for name, value in report.payload.items() if name not in common}}


def place(where: Place | None) -> Mapping[str, object] | None:
    """A place as an object; ``words`` are set where it is no file."""
    if where is None:
        return None
    return {"file": where.file, "line": where.line, "column": where.column, "words": where.words}


def _finding(finding: Finding) -> Mapping[str, object]:
    return {
        "trap": finding.trap,
        "severity": finding.severity,
        "subject": finding.subject,
        "place": place(finding.place),
        "about": finding.about,
        "measured": finding.measured,
        "expected": finding.expected,
        "costs": finding.costs,
        "repair": _repair(finding.repair),
        "fingerprint": finding.fingerprint,
        "depends": finding.depends,
        "evidence": [{"name": name, "value": value} for name, value in finding.evidence],
    }


def _repair(repair: Repair) -> Mapping[str, object]:
    return {
        "prose": repair.prose,
        "commands": repair.commands,
        "edit": repair.edit,
        "place": place(repair.place),
    }


def _waived(waived: Waived) -> Mapping[str, object]:
    return {**_finding(waived.finding), "reason": waived.reason, "expires": waived.expires}


def _check(check: Check) -> Mapping[str, object]:
    return {
        "id": check.trap.id,
        "title": check.trap.title,
        "group": check.trap.group,
        "severity": check.trap.severity,
        "state": check.state,
        "reason": check.reason,
        "subjects": check.subjects,
    }


def _plain(value: object, clean: Callable[[str], str]) -> object:
    """``value`` as JSON can hold it; ``clean`` takes unpaired surrogates and secrets out of each text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): _plain(item, clean) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, clean) for item in value]
    return clean(str(value))
