from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from support.reports import ALL, BOOK, DESKTOP, FAILING, HOME, KEY_SHOWN, SECRET, URL_MISSING, USAGE

from cpersona_cli.record import replace
from cpersona_cli.report.layout import Style, columns
from cpersona_cli.report.model import FailOn
from cpersona_cli.report.text import render

GOLDEN = Path(__file__).parent / "golden"

STYLES = {
    "80": Style(width=80),
    "120": Style(width=120),
    "80-color": Style(width=80, color=True),
    "120-color": Style(width=120, color=True),
    "80-verbose": Style(width=80, verbose=1),
    "80-quiet": Style(width=80, quiet=True),
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", ALL)
def test_golden(name: str, style: str) -> None:
    """``UPDATE_GOLDEN=1 pytest tests/report`` writes the files anew; read the difference before committing it."""
    file = GOLDEN / f"{name}-{style}.txt"
    text = render(ALL[name], STYLES[style])
    if os.environ.get("UPDATE_GOLDEN") == "1":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_no_golden_file_is_forgotten() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {f"{name}-{style}" for name in ALL for style in STYLES}


@pytest.mark.parametrize("width", [0, 40, 60, 80, 120, 200])
def test_what_is_copied_is_never_broken(width: int) -> None:
    lines = render(FAILING, Style(width=width)).splitlines()
    for finding in FAILING.findings:
        for whole in (*finding.repair.edit.splitlines(), *finding.repair.commands):
            assert any(whole in line for line in lines), whole
        assert any(f"--only {finding.trap}" in line for line in lines)
    path = DESKTOP.replace(HOME, "~")
    assert sum(path in line for line in lines) == 3, "the header, the sentence, the section"


@pytest.mark.parametrize("width", [80, 120])
def test_only_unbreakable_lines_are_too_long(width: int) -> None:
    for line in render(FAILING, Style(width=width)).splitlines():
        assert columns(line) <= width or any(mark in line for mark in ("~/", '": "', "cpersona-cli")), line


def test_the_worst_comes_first_and_the_verdict_last() -> None:
    text = render(FAILING, Style())
    positions = [text.index(word) for word in ("FAULT", "WARNING", "HINT", "waived", "UNKNOWN  database", "names 1/3")]
    assert positions == sorted(positions)
    verdict = "FAIL   6 checks, 1 fault, 1 warning, 1 hint, 1 waived, 1 unknown, 3 not made."
    following = "Next: cpersona-cli traps explain names.url-missing"
    assert text.splitlines()[-2:] == [verdict, following], "too wide for one line"
    assert render(FAILING, Style(width=140)).splitlines()[-1] == f"{verdict}   {following}"


def test_no_secret_no_home_no_control_character() -> None:
    for verbose in (0, 2):
        text = render(FAILING, Style(verbose=verbose))
        assert SECRET not in text
        assert HOME not in text
        assert re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text) is None
    assert "[24 characters removed]" in text


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (f"{HOME}/a.db", "~/a.db"),
        (f"'{HOME}/a b.db'", f"'{HOME}/a b.db'"),  # in quotes no shell expands the tilde
    ],
)
def test_a_command_to_copy_works_as_it_is_shown(path: str, shown: str) -> None:
    command = f"cpersona-cli doctor --db {path}"
    text = render(replace(FAILING, next_command=command, rerun=command), Style(width=200))
    assert text.endswith(f"   Next: cpersona-cli doctor --db {shown}\n")
    assert f"  verify     cpersona-cli doctor --db {shown} --only names.url-missing\n" in text


def test_color_changes_nothing_but_color() -> None:
    plain, colored = (render(FAILING, Style(color=color)) for color in (False, True))
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain
    assert colored != plain


@pytest.mark.parametrize("name", ["failing", "passing", "nothing"])
def test_quiet_is_the_last_line_alone(name: str) -> None:
    assert render(ALL[name], Style(quiet=True)) == render(ALL[name], Style(width=200)).splitlines()[-1] + "\n"


def test_verbose_tells_the_fingerprint_and_the_evidence() -> None:
    text = render(FAILING, Style(verbose=1))
    assert URL_MISSING.fingerprint in text
    assert "length: 24" in text
    assert "settings of Claude Code (user)" in text
    assert "settings of Claude Code (user)" not in render(FAILING, Style())
    assert "vectors.dimension, vectors.norm" in text


def test_what_holds_only_sometimes_says_so() -> None:
    assert "depends    on how the client was started" in render(FAILING, Style(width=120))


def test_a_finding_of_this_tool_is_verified_by_the_whole_run() -> None:
    finding = replace(KEY_SHOWN, trap="tool.waiver-expired")
    text = render(replace(FAILING, findings=(finding,)), Style())
    assert "verify     cpersona-cli doctor --client claude-code\n" in text


def test_without_a_way_to_run_again_nothing_is_verified() -> None:
    assert "verify" not in render(replace(FAILING, rerun=""), Style())


@pytest.mark.parametrize(
    ("fail_on", "verdict"),
    [(FailOn.FAULT, "FAIL"), (FailOn.HINT, "FAIL"), (FailOn.NEVER, "UNKNOWN")],
)
def test_the_verdict_is_that_of_the_report(fail_on: FailOn, verdict: str) -> None:
    assert render(replace(FAILING, fail_on=fail_on), Style(quiet=True)).startswith(f"{verdict}   ")


def test_errors_and_books_have_no_verdict() -> None:
    for report in (USAGE, BOOK):
        assert not re.search("PASS|FAIL|UNKNOWN", render(report, Style()))


def test_a_home_inside_a_word_of_a_command_stays_whole() -> None:
    """Not every shell expands ``~`` after an equals sign, so a copied command would make a folder of that name."""
    finding = FAILING.findings[0]
    command = f"claude mcp add -e CPERSONA_DB_PATH={HOME}/m.db --copy {HOME}/other '{HOME}/x y'"
    repair = replace(finding.repair, commands=(command,))
    text = render(replace(FAILING, findings=(replace(finding, repair=repair),)), Style())
    assert f"-e CPERSONA_DB_PATH={HOME}/m.db --copy ~/other '{HOME}/x y'" in text
