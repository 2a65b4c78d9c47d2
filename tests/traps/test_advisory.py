"""What was previewed, as findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from support.traps import MACHINE, everything, registration, targets

from cpersona_cli.install.model import Discovery
from cpersona_cli.record import replace
from cpersona_cli.traps.advisory import TRAPS
from cpersona_cli.traps.model import Facts, Finding, Previewed, Repair, SkipError
from cpersona_cli.traps.run import State, check

URL = "http://127.0.0.1:8401/embed"
HTTP = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": URL}


def previewed(env: Mapping[str, str] = HTTP, **fields: Any) -> Facts:
    (target,) = targets(registration(env))
    made = Previewed(label="Claude Code (user)", target=target, repair=Repair(prose="start it"))
    return Facts(
        machine=MACHINE,
        discovery=Discovery((target.registration,), ()),
        targets=(target,),
        previews=(replace(made, **fields),),
    )


def found(facts: Facts) -> dict[str, Finding]:
    checks = [check(trap, facts) for trap in TRAPS]
    assert not [one.reason for one in checks if one.state in {State.UNKNOWN, State.SKIPPED}]
    return {one.trap.id.partition(".")[2]: finding for one in checks for finding in one.findings}


FAULT: dict[str, Any] = {
    "state": "fault",
    "evidence": "mode=http / POST x failed",
    "means": "nothing listens at this address",
}

CASES = [
    ("healthy", {"state": "healthy"}, {}),
    ("not measured", {"state": "unknown"}, {}),
    ("fault", FAULT, {"fault": "fault"}),
    ("fault, replayed", {**FAULT, "live": False}, {}),
    ("fault, switched off", {**FAULT, "enabled": False}, {"switched-off": "fault"}),
    ("switched off, healthy", {"state": "healthy", "enabled": False}, {}),
    ("silent", {"state": "healthy", "silent": ("another width",)}, {"silent": "fault"}),
    ("silent, replayed", {"state": "healthy", "silent": ("another width",), "live": False}, {}),
    (
        "silent and switched off",
        {"state": "healthy", "silent": ("another width",), "enabled": False},
        {"silent": "fault", "switched-off": "fault"},
    ),
    ("leak", {**FAULT, "hidden": 12}, {"fault": "fault", "leaks-secret": "fault"}),
    ("leak, replayed", {**FAULT, "hidden": 12, "live": False}, {"leaks-secret": "fault"}),
    ("no start", {"refused": "ValueError: no such mode\nand more"}, {"no-start": "fault"}),
    ("hint", {"state": "hint"}, {"hint": "hint"}),
    ("hint, chosen", {"state": "hint", "chosen": True}, {}),
    ("hint, replayed", {"state": "hint", "live": False}, {}),
]


@pytest.mark.parametrize(("fields", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_each_preview_is_the_findings_it_deserves(fields: dict[str, Any], expected: dict[str, str]) -> None:
    made = found(previewed(**fields))
    assert {name: str(finding.severity) for name, finding in made.items()} == expected


def test_the_evidence_and_what_it_means_stand_together() -> None:
    finding = found(previewed(**FAULT))["fault"]
    assert finding.measured == "mode=http / POST x failed; that is: nothing listens at this address"
    assert finding.repair.prose == "start it"
    assert finding.subject == "Claude Code (user)"
    assert found(previewed(state="fault"))["fault"].measured == "no reason was recorded"


def test_only_the_first_line_of_an_exception() -> None:
    finding = found(previewed(refused="ValueError: no such\x1bmode\nand more"))["no-start"]
    assert finding.measured == "it refuses to start: ValueError: no such\\x1bmode"


def test_the_switch_is_removed_where_it_stands() -> None:
    env = {**HTTP, "CPERSONA_DEGRADED_ADVISORY": "false"}
    off = "CPERSONA_DEGRADED_ADVISORY=false"
    finding = found(previewed(env, **FAULT, enabled=False, switch=off))["switched-off"]
    assert finding.measured == f"{off}, and nothing listens at this address"
    assert finding.place is not None
    assert finding.place.file is not None
    assert "CPERSONA_DEGRADED_ADVISORY" in everything(finding)
    silent = found(previewed(env, silent=("x",), enabled=False))["switched-off"]
    assert silent.measured == "CPERSONA_DEGRADED_ADVISORY, and recall by meaning does not work"


@pytest.mark.parametrize("fields", [FAULT, {"state": "healthy"}])
def test_a_leak_has_a_repair_of_its_own(fields: dict[str, Any]) -> None:
    finding = found(previewed(**fields, hidden=12))["leaks-secret"]
    assert finding.measured.startswith("12 characters of the server’s words")
    assert "change the secret" in finding.repair.prose


def test_a_hint_points_at_the_mode_where_it_stands() -> None:
    written = found(previewed({"CPERSONA_EMBEDDING_MODE": "none"}, state="hint"))["hint"]
    unwritten = found(previewed({}, state="hint"))["hint"]
    assert written.place != unwritten.place


def test_without_a_preview_there_is_nothing_to_check() -> None:
    known = replace(previewed(), previews=())
    assert {check(trap, known).state for trap in TRAPS} == {State.SKIPPED}
    assert "advisory-preview" in check(TRAPS[0], known).reason
    with pytest.raises(SkipError):
        _ = known.previewed
