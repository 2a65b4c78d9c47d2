"""The renderers for CI systems: read back by the readers that those systems use."""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped
from markdown_it import MarkdownIt
from support.reports import ALL, FAILING, HOME, NOTHING, PASSING, SECRET, URL_MISSING, USAGE

from cpersona_cli.install.model import Place
from cpersona_cli.record import replace
from cpersona_cli.report import github, junit, markdown, sarif
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.figures import Bars, Copied, Table
from cpersona_cli.report.layout import Style
from cpersona_cli.report.model import FailOn, Report, Section
from cpersona_cli.report.output import FORMATS, Output, emit
from cpersona_cli.text import safe
from cpersona_cli.traps.model import Finding, Severity

GOLDEN = Path(__file__).parent / "golden"
SUFFIXES = {"agent": "agent", "junit": "xml", "github": "github", "markdown": "md", "sarif": "sarif"}
ROOT = Style(root="/home/aya/クラウド")


@pytest.mark.parametrize("form", SUFFIXES)
@pytest.mark.parametrize("name", ALL)
def test_golden(name: str, form: str) -> None:
    """``UPDATE_GOLDEN=1 pytest tests/report`` writes the files anew; read the difference before committing it."""
    file = GOLDEN / f"{name}.{SUFFIXES[form]}"
    text = FORMATS[form](ALL[name], ROOT)
    if os.environ.get("UPDATE_GOLDEN") == "1":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_no_golden_file_is_forgotten() -> None:
    found = {file.name for suffix in SUFFIXES.values() for file in GOLDEN.glob(f"*.{suffix}")}
    assert found == {f"{name}.{suffix}" for name in ALL for suffix in SUFFIXES.values()}


@pytest.mark.parametrize("form", SUFFIXES)
@pytest.mark.parametrize("name", ALL)
def test_no_secret_and_no_control_character_leaves(name: str, form: str) -> None:
    text = FORMATS[form](ALL[name], Style())
    assert SECRET not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


# Numbers of the verdict, in every format, are those of the report.


@pytest.mark.parametrize("name", ["failing", "passing", "nothing", "usage"])
def test_junit_says_what_the_exit_code_says(name: str) -> None:
    report = ALL[name]
    suites = JUnitXml.fromstring(junit.render(report, Style()).encode())
    assert suites.tests == sum(suite.tests for suite in suites)
    results = [result for suite in suites for case in suite for result in case.result]
    failed = any(isinstance(result, Failure) for result in results)
    unknown = any(isinstance(result, Error) for result in results)
    assert failed is (report.exit_code == 1)
    assert unknown or report.exit_code in {0, 1}


WHY = "the disk is full"
REFUSED = Report(
    command="reembed",
    error_code=Exit.NEGATIVE,
    summary="refused; nothing was changed",
    sections=(Section(title="refused", rows=[("", WHY, "")], verbosity=0),),
)
#: Runs that end badly without a finding: what each renderer has to tell, and as what.
BAD_ENDS = {
    "refused": (REFUSED, Failure, "error"),
    "broken": (
        Report(command="reembed", error_code=Exit.NEGATIVE, unsettled=[WHY], summary="stopped"),
        Failure,
        "error",
    ),
    "interrupted": (replace(REFUSED, error_code=Exit.INTERRUPTED), Error, "warning"),
    "no verdict": (replace(REFUSED, error_code=Exit.NO_VERDICT), Error, "warning"),
}


@pytest.mark.parametrize("name", BAD_ENDS)
def test_a_run_that_ends_badly_without_a_finding_says_why_in_every_format(name: str) -> None:
    report, result, level = BAD_ENDS[name]
    suites = JUnitXml.fromstring(junit.render(report, Style()).encode())
    (case,) = [case for suite in suites for case in suite]
    (told,) = case.result
    assert isinstance(told, result)
    assert (told.message, WHY in (told.text or "")) == (report.summary, True)
    line = github.render(report, Style()).splitlines()[1]
    assert line == f"::{level} title=cpersona-cli reembed::{report.summary}%0A{WHY}"
    (invocation,) = json.loads(sarif.render(report, Style()))["runs"][0]["invocations"]
    notes = [(note["level"], note["message"]["text"]) for note in invocation["toolExecutionNotifications"]]
    assert notes == [(level, report.summary), (level, WHY)]


def test_junit_gives_a_check_one_outcome_for_all_its_findings() -> None:
    """Readers of the format take the first of several."""
    check = replace(FAILING.checks[0], findings=many(Severity.FAULT, 3))
    report = Report(command="doctor", checks=(check,), findings=check.findings)
    suites = JUnitXml.fromstring(junit.render(report, Style()).encode())
    (told,) = next(case for suite in suites for case in suite).result
    assert told.message == "finding 0 (and 2 more)"
    assert [f"measured: finding {number}" in (told.text or "") for number in range(3)] == [True] * 3


def test_junit_has_a_case_for_each_check() -> None:
    suites = JUnitXml.fromstring(junit.render(FAILING, Style()).encode())
    cases = {case.name: case for suite in suites for case in suite}
    assert set(cases) == {check.trap.id for check in FAILING.checks} | {"verdict"}
    failure = cases["names.url-missing"].result[0]
    assert isinstance(failure, Failure)
    assert failure.message == URL_MISSING.measured
    assert "place: ~/.claude.json:14" in (failure.text or "")
    assert isinstance(cases["vectors.norm"].result[0], Skipped)
    assert isinstance(cases["database.locked"].result[0], Error)
    assert cases["names.key-in-url"].result == [], "a warning does not fail the run"
    assert "the key [24 characters removed]" in cases["names.key-in-url"].system_out
    assert "waived until 2027-01-31" in cases["recall.gate-off"].result[0].message


def test_junit_fails_where_the_run_fails() -> None:
    strict = replace(FAILING, fail_on=FailOn.WARNING)
    suites = JUnitXml.fromstring(junit.render(strict, Style()).encode())
    failed = {case.name for suite in suites for case in suite for r in case.result if isinstance(r, Failure)}
    assert failed == {"names.url-missing", "names.key-in-url"}


def test_junit_shows_findings_of_commands_that_have_no_checks() -> None:
    report = Report(command="probe", findings=(URL_MISSING,), measured=3)
    suites = JUnitXml.fromstring(junit.render(report, Style()).encode())
    assert [(case.name, len(case.result)) for suite in suites for case in suite] == [
        ("names.url-missing", 1),
        ("verdict", 0),
    ]


@pytest.mark.parametrize("character", ["\x00", "\x0b", "\ufffe", "\ud83d", "\x1b"])
def test_junit_holds_no_character_that_xml_forbids(character: str) -> None:
    finding = replace(URL_MISSING, measured=f"a{character}b", costs=character)
    text = junit.render(Report(command="doctor", findings=(finding,), measured=1), Style())
    assert JUnitXml.fromstring(text.encode("utf-8"))
    assert character not in text


def many(severity: Severity, count: int) -> tuple[Finding, ...]:
    return tuple(replace(URL_MISSING, severity=severity, measured=f"finding {number}") for number in range(count))


@pytest.mark.parametrize("count", [1, 9, 10, 11, 40])
def test_github_shows_at_most_ten_of_a_kind(count: int) -> None:
    report = Report(command="doctor", findings=many(Severity.FAULT, count) + many(Severity.HINT, 3), measured=1)
    lines = github.render(report, Style()).splitlines()
    errors = [line for line in lines if line.startswith("::error")]
    assert len(errors) == min(count, 10)
    assert sum(line.startswith("::notice") for line in lines) == 3
    if count > 10:
        assert f"{count - 9} more of this kind" in errors[-1]


def test_github_counts_what_has_no_verdict_among_the_warnings() -> None:
    report = Report(command="doctor", findings=many(Severity.WARNING, 8), unsettled=[f"r{n}" for n in range(5)])
    lines = [line for line in github.render(report, Style()).splitlines() if line.startswith("::warning")]
    assert len(lines) == 10
    assert "4 more of this kind" in lines[-1]


def test_github_escapes_what_would_end_a_command_or_a_property() -> None:
    place = Place(file=Path("/w/a,b:c%d.json"), line=3, column=7)
    finding = replace(URL_MISSING, measured="50% of a::b", place=place)
    text = github.render(Report(command="doctor", findings=(finding,), measured=1), Style(root="/w"))
    (line,) = [line for line in text.splitlines() if line.startswith("::error")]
    assert line.startswith("::error file=a%2Cb%3Ac%25d.json,line=3,col=7,title=")
    assert "50%25 of a::b%0Acosts: " in line


@pytest.mark.parametrize(
    ("root", "shown"),
    [("/home/aya", ".claude.json"), ("/home/ay", "/home/aya/.claude.json"), ("", "/home/aya/.claude.json")],
)
def test_files_are_named_as_seen_from_the_checkout(root: str, shown: str) -> None:
    report = Report(command="doctor", findings=(URL_MISSING,), measured=1)
    assert f"::error file={shown},line=14" in github.render(report, Style(root=root))
    (result,) = json.loads(sarif.render(report, Style(root=root)))["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == (f"file://{shown}" if shown.startswith("/") else shown)


def test_the_step_summary_gets_the_whole_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    code = emit(FAILING, Output(format="github"), env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert code == 1
    assert summary.read_text(encoding="utf-8") == "before\n" + markdown.render(FAILING, Style())
    assert capsys.readouterr().out.startswith("cpersona-cli doctor: FAIL")


def test_a_summary_that_cannot_be_written_changes_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert emit(PASSING, Output(format="github"), env={"GITHUB_STEP_SUMMARY": str(tmp_path)}) == 0
    assert "cannot write the step summary" in capsys.readouterr().err


def test_markdown_takes_foreign_text_as_text() -> None:
    finding = replace(URL_MISSING, measured="<img src=x> @team #12 [a](b) | c `d`")
    text = markdown.render(Report(command="doctor", findings=(finding,), measured=1), Style())
    assert r"\<img src=x\> @<!-- -->team #<!-- -->12 \[a\]\(b\) \| c \`d\`" in text


class Shown(HTMLParser):
    """The words of a page, those in ``pre`` apart, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words, self.copied, self._in = "", "", False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._in |= tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        self._in &= tag != "pre"

    def handle_data(self, data: str) -> None:
        if self._in:
            self.copied += data
        else:
            self.words += data


@given(st.text("a1 .:@#<>&|`*_~[]()!\\-+=\"'\n\u202e", min_size=1).filter(lambda text: text.strip()))
@example("<!-- x")
@example("http://h/a|b_c_d")
def test_markdown_shows_foreign_text_as_it_is(text: str) -> None:
    """Read by a parser of the format: in a list, in a cell, in a title, in the title of a fold, and in a block."""
    text = " ".join(f"x{text}x".split())
    rows = [("", text, "")]
    finding = replace(URL_MISSING, measured=text, repair=replace(URL_MISSING.repair, edit=text))
    sections = (Section(title=text, rows=rows, verbosity=0), Section(title=text, rows=rows))
    report = Report(command="doctor", findings=(finding,), measured=1, sections=sections)
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    shown = Shown(reader.render(markdown.render(report, Style())))
    clean = safe(text, 4000)
    assert " ".join(shown.words.split()).count(clean) == 5
    assert clean in shown.copied
    assert set(shown.tags) <= {
        *("h2", "h3", "p", "ul", "li", "strong", "code", "pre", "table", "thead", "tbody", "tr", "th", "td"),
        *("details", "summary"),
    }


def test_markdown_has_the_tables_and_what_is_to_be_copied() -> None:
    table = Table(header=("width", "label"), rows=[("768", "a|b")], numbers=frozenset({0}))
    figures = (table, Copied(["one\n  two"]), Bars(rows=[("first", 2)]))
    report = Report(command="doctor", measured=1, sections=(Section(title="", rows=(), verbosity=0, figures=figures),))
    text = markdown.render(report, Style())
    assert "| width | label |\n|--:|---|\n| 768 | a\\|b |\n" in text
    assert "```\none\n  two\n```\n" in text
    assert f"```\nfirst  2  {'█' * 62}\n```\n" in text


def test_markdown_fences_are_longer_than_what_they_hold() -> None:
    repair = replace(URL_MISSING.repair, edit="```\nrm -rf\n```")
    text = markdown.render(Report(command="doctor", findings=(replace(URL_MISSING, repair=repair),)), Style())
    assert "````\n```\nrm -rf\n```\n````" in text


# SARIF.


def test_sarif_places_a_result_where_the_bad_value_stands() -> None:
    results = json.loads(sarif.render(FAILING, Style()))["runs"][0]["results"]
    first = results[0]
    assert first["ruleId"] == "names.url-missing"
    assert first["level"] == "error"
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": f"file://{HOME}/.claude.json"},
        "region": {"startLine": 14, "startColumn": 9},
    }
    assert first["partialFingerprints"] == {"cpersonaCli/v1": URL_MISSING.fingerprint}
    assert [result["level"] for result in results] == ["error", "warning", "note", "warning"]


def test_sarif_rule_index_and_uri_are_right() -> None:
    run = json.loads(sarif.render(FAILING, Style()))["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]]
    assert f"file://{HOME}/Library/Application%20Support/Claude/claude_desktop_config.json" in uris
    assert all(uri.isascii() for uri in uris)


@pytest.mark.parametrize(
    ("place", "subject", "uri"),
    [
        (Place(file=Path("/w/a b%.json")), "x", "a%20b%25.json"),
        (None, "/home/aya/記憶.db", "file:///home/aya/%E8%A8%98%E6%86%B6.db"),
        (Place(words="this process's environment"), "This process", "this%20process%27s%20environment"),
        (None, "all registrations", "all%20registrations"),
        (None, "", "cpersona"),
    ],
)
def test_sarif_gives_every_result_a_place_that_code_scanning_takes(place: Place | None, subject: str, uri: str) -> None:
    """One result without a file and a line, and the upload of all is refused."""
    finding = replace(URL_MISSING, place=place, subject=subject)
    log = json.loads(sarif.render(Report(command="doctor", findings=(finding,), measured=1), Style(root="/w")))
    jsonschema.validate(log, SARIF_PART, jsonschema.Draft202012Validator)
    (location,) = log["runs"][0]["results"][0]["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}


def test_sarif_suppresses_what_is_waived() -> None:
    *others, waived = json.loads(sarif.render(FAILING, Style()))["runs"][0]["results"]
    assert waived["suppressions"] == [
        {
            "kind": "external",
            "status": "accepted",
            "justification": "the gate is on in production (until 2027-01-31)",
        }
    ]
    assert not any("suppressions" in result for result in others)


@pytest.mark.parametrize(("report", "ran"), [(FAILING, True), (PASSING, True), (NOTHING, True), (USAGE, False)])
def test_sarif_tells_how_the_run_ended(report: Report, ran: bool) -> None:
    (invocation,) = json.loads(sarif.render(report, Style()))["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is ran
    assert invocation["exitCode"] == int(report.exit_code)
    told = " ".join(note["message"]["text"] for note in invocation["toolExecutionNotifications"])
    for reason in (*report.unsettled, report.error):
        assert reason.replace(HOME, "~") in told


def text_of(extra: dict[str, object] | None = None) -> dict[str, object]:
    return {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}, **(extra or {})}}


def closed(properties: dict[str, object], *required: str) -> dict[str, object]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_URI = r"^(?:file:///)?(?:[A-Za-z0-9._~:/!$&'()*+,;=@-]|%[0-9A-F]{2})+$"
_LOCATION = closed(
    {
        "logicalLocations": {"type": "array", "items": closed({"fullyQualifiedName": {"type": "string"}})},
        "physicalLocation": closed(
            {
                "artifactLocation": closed({"uri": {"type": "string", "pattern": _URI}}, "uri"),
                "region": closed({"startLine": {"minimum": 1}, "startColumn": {"minimum": 1}}, "startLine"),
            },
            # both are more than the standard asks for: code scanning refuses a log without the one
            "artifactLocation",
            "region",
        ),
    },
    "physicalLocation",
)
#: The part of the standard (sections 3.13 to 3.58) that is used, closed: a field beyond it has to be looked up first.
SARIF_PART = closed(
    {
        "$schema": {"const": sarif.SCHEMA},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": closed(
                {
                    "tool": closed(
                        {
                            "driver": closed(
                                {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": closed(
                                            {
                                                "id": {"type": "string"},
                                                "name": {"type": "string"},
                                                "shortDescription": text_of(),
                                                "fullDescription": text_of(),
                                                "help": text_of(),
                                                "defaultConfiguration": closed({"level": _LEVEL}),
                                                "properties": {"type": "object"},
                                            },
                                            "id",
                                        ),
                                    },
                                },
                                "name",
                            )
                        },
                        "driver",
                    ),
                    "invocations": {
                        "type": "array",
                        "items": closed(
                            {
                                "executionSuccessful": {"type": "boolean"},
                                "exitCode": {"type": "integer"},
                                "toolExecutionNotifications": {
                                    "type": "array",
                                    "items": closed({"level": _LEVEL, "message": text_of()}, "message"),
                                },
                            },
                            "executionSuccessful",
                        ),
                    },
                    "results": {
                        "type": "array",
                        "items": closed(
                            {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": _LEVEL,
                                "message": text_of(),
                                "locations": {"type": "array", "items": _LOCATION},
                                "partialFingerprints": {"additionalProperties": {"type": "string"}},
                                "suppressions": {
                                    "type": "array",
                                    "items": closed(
                                        {
                                            "kind": {"enum": ["inSource", "external"]},
                                            "status": {"enum": ["accepted", "underReview", "rejected"]},
                                            "justification": {"type": "string"},
                                        },
                                        "kind",
                                    ),
                                },
                            },
                            "message",
                        ),
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "properties": {"type": "object"},
                },
                "tool",
            ),
        },
    },
    "version",
    "runs",
)


@pytest.mark.parametrize("name", ALL)
def test_sarif_keeps_to_the_standard(name: str) -> None:
    jsonschema.validate(json.loads(sarif.render(ALL[name], ROOT)), SARIF_PART, jsonschema.Draft202012Validator)
