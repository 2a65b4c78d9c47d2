from __future__ import annotations

import pytest
from support import cases_names, cases_names_url, cases_names_values
from support.repairs import repaired
from support.traps import Case, all_traps, outcome

from cpersona_cli.traps.model import Finding

TABLES = (*cases_names.CASES, *cases_names_url.CASES, *cases_names_values.CASES)
#: Repaired by another release of the server, which no edit of the registration brings.
UPGRADES = {"names.too-new"}


def positives() -> list[Case]:
    return [case for case in TABLES if case.state == "findings" and case.trap not in UPGRADES]


@pytest.mark.parametrize("case", positives(), ids=str)
def test_a_repair_makes_its_finding_go_away(case: Case) -> None:
    _, findings = outcome(case.trap, case.facts)
    for finding in findings:
        _, left = outcome(case.trap, repaired(case.facts, finding.repair))
        assert _key(finding) not in {_key(other) for other in left}, finding.repair


def _key(finding: Finding) -> tuple[str, str]:
    return finding.about, finding.measured


def test_every_trap_of_the_group_fires_somewhere_and_passes_somewhere() -> None:
    ours = {trap for trap in all_traps() if trap.startswith("names.")}
    assert {case.trap for case in TABLES if case.state == "findings"} == ours
    assert {case.trap for case in TABLES if case.state == "pass"} == ours


def test_every_trap_bounded_by_a_release_is_tried_on_both_sides() -> None:
    bounded = {trap.id for trap in all_traps().values() if trap.id.startswith("names.") and (trap.since or trap.until)}
    for trap in bounded:
        versions = {(c.facts.targets[0].version.version, c.state) for c in TABLES if c.trap == trap}
        assert {state for _, state in versions} >= {"findings", "pass", "unknown"}


def test_the_whole_first_part_of_the_catalogue_is_covered() -> None:
    rows = {row for trap in all_traps().values() for row in trap.rows}
    assert {f"A{number}" for number in range(1, 37)} <= rows
