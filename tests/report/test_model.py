from __future__ import annotations

import pytest
from support.reports import FAILING, KEY_SHOWN, PASSING, URL_MISSING, USAGE, WIDE, check, skipped

from cpersona_cli.record import replace
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.model import FailOn, Report, Verdict
from cpersona_cli.traps.run import State

UNKNOWN = (check("names.a"), check("names.b", State.UNKNOWN, "why"))


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (PASSING, Exit.OK),
        (replace(PASSING, findings=(KEY_SHOWN, WIDE)), Exit.OK),
        (replace(PASSING, findings=(KEY_SHOWN,), fail_on=FailOn.WARNING), Exit.NEGATIVE),
        (replace(PASSING, findings=(WIDE,), fail_on=FailOn.WARNING), Exit.OK),
        (replace(PASSING, findings=(WIDE,), fail_on=FailOn.HINT), Exit.NEGATIVE),
        (replace(PASSING, findings=(URL_MISSING,)), Exit.NEGATIVE),
        (replace(PASSING, findings=(URL_MISSING,), fail_on=FailOn.NEVER), Exit.OK),
        (replace(PASSING, checks=UNKNOWN), Exit.NO_VERDICT),
        (replace(PASSING, checks=UNKNOWN, fail_on=FailOn.NEVER), Exit.NO_VERDICT),
        (replace(PASSING, checks=UNKNOWN, findings=(URL_MISSING,)), Exit.NEGATIVE),
        (replace(PASSING, unmet=("names.a",)), Exit.NO_VERDICT),
        (replace(PASSING, unsettled=("why",)), Exit.NO_VERDICT),
        (replace(PASSING, unsettled=("why",), findings=(URL_MISSING,)), Exit.NEGATIVE),
        (replace(PASSING, checks=()), Exit.NO_VERDICT),
        (replace(PASSING, checks=(skipped("names.a", "why"),)), Exit.NO_VERDICT),
        (USAGE, Exit.USAGE),
        (replace(USAGE, error_code=Exit.INTERRUPTED), Exit.INTERRUPTED),
        (Report(command="traps", gate=False), Exit.OK),
    ],
)
def test_the_exit_code(report: Report, code: Exit) -> None:
    assert report.exit_code is code
    expected = {Exit.OK: Verdict.PASS, Exit.NEGATIVE: Verdict.FAIL}.get(code, Verdict.UNKNOWN)
    assert report.verdict is expected


def test_counts() -> None:
    expected = {"fault": 1, "warning": 1, "hint": 1, "waived": 1, "unknown": 1, "skipped": 3}
    assert FAILING.counts == expected
    assert [finding.trap for finding in FAILING.worst_first] == [
        "names.url-missing",
        "names.key-in-url",
        "database.synced-folder",
    ]
