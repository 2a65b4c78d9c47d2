from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.reports import CHECKS, KEY_SHOWN, URL_MISSING, check

from cpersona_cli.record import replace
from cpersona_cli.traps.model import Severity
from cpersona_cli.traps.run import Check, State
from cpersona_cli.traps.toolfile import ToolFileError
from cpersona_cli.traps.waivers import DAYS, TRAPS, Applied, Waiver, apply, read, write

TODAY = dt.date(2026, 5, 1)
IDS = [*(check.trap.id for check in CHECKS), "names.never-fires"]


def load(folder: Path, text: str) -> tuple[Waiver, ...]:
    file = folder / "waivers.toml"
    file.write_text(text, encoding="utf-8")
    return read(file)


def entry(trap: str, *, expires: str = "2026-05-01", more: str = "") -> str:
    return f'[[waiver]]\nid = "{trap}"\nreason = "known"\nexpires = {expires}\n{more}\n'


def applied(folder: Path, text: str, checks: Sequence[Check] = CHECKS) -> Applied:
    return apply(load(folder, text), checks, IDS, TODAY)


def complaints(result: Applied) -> list[tuple[str, int | None]]:
    """(name of the check, line) of what is wrong with the file."""
    return [
        (check.trap.id.removeprefix("tool.waiver-"), finding.place.line if finding.place else None)
        for check in result.checks
        for finding in check.findings
    ]


def test_a_waiver_is_read_with_its_line(tmp_path: Path) -> None:
    later = entry("names.b", expires="2027-01-31T10:00:00Z", more="fingerprint = 'ab'")
    text = f"# why\n{entry('names.a')}{later}"
    first, second = load(tmp_path, text)
    assert (first.id, first.reason, first.expires, first.fingerprint) == ("names.a", "known", TODAY, "")
    assert (second.expires, second.fingerprint) == (dt.date(2027, 1, 31), "ab")
    assert (first.place.line, second.place.line) == (2, 7)


@pytest.mark.parametrize("text", ["", "waiver = []", "# nothing\n"])
def test_an_empty_file_waives_nothing(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) == ()


def test_inline_tables_are_read_without_a_line(tmp_path: Path) -> None:
    (waiver,) = load(tmp_path, 'waiver = [{id = "names.a", reason = "known", expires = "2027-01-31"}]')
    assert waiver.place.line is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[waiver]\n", "waivers.toml:1: this is not valid TOML"),
        ("a = 1\n\nb = ", "waivers.toml:3: this is not valid TOML"),
        ("x = " + "[" * 2000, "not valid TOML: nested too deep"),
        ("waivers = []", "waivers.toml:1: unknown key 'waivers'; did you mean waiver?"),
        ("something = 1", "waivers.toml:1: unknown key 'something'; known are waiver"),
        ("waiver = 3", "waivers.toml:1: waivers are written as [[waiver]] tables"),
        ("[waiver]\nid = 'a'", "waivers.toml:1: waivers are written as [[waiver]] tables"),
        ("waiver = [1]", "waivers are written as [[waiver]] tables"),
        (entry("names.a") + "[[waiver]]\nid = 'b'\n", "waivers.toml:6: waiver 2 has no reason"),
        ("[[waiver]]\nreason = 'b'\n", "waivers.toml:1: waiver 1 has no id"),
        ("[[waiver]]\nid = 'a'\nreason = '  '\n", "waivers.toml:1: waiver 1 has no reason"),
        ("[[waiver]]\nid = 3\n", "waivers.toml:2: id must be a text"),
        (entry("a", more="fingerprint = 3"), "waivers.toml:5: fingerprint must be a text"),
        ("[[waiver]]\nid = 'a'\nreason = 'b'\n", "waivers.toml:1: waiver 1 has no expires"),
        (entry("a", expires="'soon'"), "waivers.toml:4: expires must be a day such as 2027-01-31"),
        (entry("a", expires="3"), "waivers.toml:4: expires must be a day such as 2027-01-31"),
        (entry("a") + entry("b", more="expire = 2"), "waivers.toml:10: unknown key 'expire'; did you mean expires?"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ToolFileError) as raised:
        load(tmp_path, text)
    assert said in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b'a = "\xff"')
    for name, said in (("gone", "no such file"), ("", "not a regular file"), ("bytes", "not UTF-8"), ("a\0", "name")):
        with pytest.raises(ToolFileError, match=said):
            read(tmp_path / name)


def test_a_finding_is_waived_until_its_last_day(tmp_path: Path) -> None:
    result = applied(tmp_path, entry("names.url-missing"))
    assert URL_MISSING not in result.findings
    assert [(finding, waiver.reason) for finding, waiver in result.waived] == [(URL_MISSING, "known")]
    assert complaints(result) == []
    assert {check.state for check in result.checks} == {State.PASS}


def test_an_expired_waiver_covers_nothing_and_is_a_warning(tmp_path: Path) -> None:
    result = applied(tmp_path, entry("names.url-missing", expires="2026-04-30"))
    assert URL_MISSING in result.findings
    assert result.waived == ()
    assert complaints(result) == [("expired", 1)]
    assert result.checks[0].findings[0].severity is Severity.WARNING
    assert "2026-04-30" in result.checks[0].findings[0].measured


def test_an_expired_waiver_does_not_hide_one_in_force(tmp_path: Path) -> None:
    text = entry("names.url-missing", expires="2020-01-01") + entry("names.url-missing", expires="2030-01-01")
    assert len(applied(tmp_path, text).waived) == 1


@pytest.mark.parametrize(("fingerprint", "waived"), [(URL_MISSING.fingerprint, 1), ("0" * 12, 0)])
def test_a_fingerprint_covers_one_finding(tmp_path: Path, fingerprint: str, waived: int) -> None:
    other = replace(URL_MISSING, subject="Codex (user)")
    checks = [check("names.url-missing", State.FINDINGS, findings=(URL_MISSING, other))]
    result = applied(tmp_path, entry("names.url-missing", more=f'fingerprint = "{fingerprint}"'), checks)
    assert len(result.waived) == waived
    assert len(result.findings) == 2 - waived
    assert complaints(result) == ([] if waived else [("unused", 1)])


def test_a_waiver_of_no_trap_is_a_warning_with_the_nearest_id(tmp_path: Path) -> None:
    result = applied(tmp_path, entry("names.url-mising") + entry("who.knows-what"))
    assert complaints(result) == [("unknown", 1), ("unknown", 6)]
    near, far = result.checks[1].findings
    assert near.repair.prose == "write names.url-missing"
    assert "traps list" in far.repair.prose


@pytest.mark.parametrize(
    ("trap", "said"),
    [
        ("names.bad-mode", [("unused", 1)]),
        ("vectors.norm", []),
        ("database.locked", []),
        ("names.never-fires", []),
    ],
    ids=["passed", "skipped", "unknown", "not run"],
)
def test_a_waiver_is_unused_only_if_its_check_came_to_an_answer(
    tmp_path: Path, trap: str, said: list[tuple[str, int]]
) -> None:
    assert complaints(applied(tmp_path, entry(trap))) == said


def test_what_is_written_can_be_read_and_covers_everything(tmp_path: Path) -> None:
    file = tmp_path / "new.toml"
    write(file, [(URL_MISSING, "no\nURL"), (KEY_SHOWN, "記憶 \udcff")], TODAY)
    written = read(file)
    assert [(waiver.id, waiver.fingerprint) for waiver in written] == [
        (URL_MISSING.trap, URL_MISSING.fingerprint),
        (KEY_SHOWN.trap, KEY_SHOWN.fingerprint),
    ]
    assert {waiver.expires for waiver in written} == {TODAY + dt.timedelta(days=DAYS)}
    result = apply(written, CHECKS, IDS, TODAY)
    assert {finding.trap for finding, _ in result.waived} == {URL_MISSING.trap, KEY_SHOWN.trap}
    assert complaints(result) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "new.toml"
    file.write_text("mine")
    with pytest.raises(ToolFileError, match="the file exists"):
        write(file, [(URL_MISSING, "")], TODAY)
    assert file.read_text() == "mine"
    with pytest.raises(ToolFileError, match="cannot be written: No such file or directory"):
        write(tmp_path / "gone" / "new.toml", [], TODAY)
    with pytest.raises(ToolFileError, match="cannot be written"):
        write(Path("a\0b"), [], TODAY)


def test_without_a_file_there_is_nothing_to_check() -> None:
    from support.traps import facts  # noqa: PLC0415 - only this test needs facts

    from cpersona_cli.traps.run import check as run_one  # noqa: PLC0415

    assert [run_one(trap, facts()).state for trap in TRAPS] == [State.SKIPPED] * len(TRAPS)
