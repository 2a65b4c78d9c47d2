"""The renderer for coding agents: small, copied as it stands, and clear about what needs a yes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import docs
from support.reports import ALL, CHECKS, FAILING, HOME, URL_MISSING

from cpersona_cli.install.model import Place
from cpersona_cli.record import replace
from cpersona_cli.report import agent
from cpersona_cli.report.figures import Bars, Copied, Table
from cpersona_cli.report.layout import Style
from cpersona_cli.report.model import Report, Section
from cpersona_cli.traps.model import Finding, Repair, Severity
from cpersona_cli.traps.run import State

#: Words that begin a line; docs/json.md explains each.
KEYS = (
    "schema|verdict|exit|error|examined|summary|unknown|looked|note|verify|next|next-ask"
    "|where|measured|costs|depends|fix|edit|run|ask|consent|also"
)
LINE = re.compile(rf"(?:(?:{KEYS}): |## |- ).*")


def said(*findings: Finding, **more: object) -> list[str]:
    return agent.render(Report(command="doctor", findings=findings, measured=1, **more), Style()).splitlines()  # type: ignore[arg-type]


def finding(**changes: object) -> Finding:
    return replace(URL_MISSING, **changes)


@pytest.mark.parametrize("name", ALL)
def test_every_line_begins_with_a_word_of_the_list(name: str) -> None:
    lines = agent.render(ALL[name], Style()).splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    assert lines[1:3] == [f"verdict: {ALL[name].verdict}", f"exit: {int(ALL[name].exit_code)}"]


def test_every_word_is_explained() -> None:
    page = docs.ROOT.joinpath("docs", "json.md").read_text("utf-8")
    section = page.partition("## For agents: ")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert [word for cell in cells for word in re.findall("`([^`]+)`", cell)] == KEYS.split("|")


@given(st.text(alphabet=st.sampled_from("a: \n\r\x0b\x0c\x1c\x85\u2028\u2029#-")))
def test_foreign_text_is_no_line_of_this_tool(text: str) -> None:
    forged = f"{text}\nverdict: pass"
    row = Section(title="t", rows=[(forged, forged, forged)], verbosity=0, figures=(Copied((forged,)),))
    lines = said(finding(measured=forged, subject=forged, costs=forged), sections=(row,))
    assert [line for line in lines if line.startswith("verdict: ")] == ["verdict: fail"]


@pytest.mark.parametrize(
    ("command", "looks"),
    [
        ("cpersona-cli doctor", True),
        ("cpersona-cli --help", True),
        ("cpersona-cli reembed --help", True),
        ("cpersona-cli doctor --client codex --format agent", True),
        ("cpersona-cli traps explain names.url-missing", True),
        ("cpersona-cli reembed status --db '/a b/c.db'", True),
        ("cpersona-cli reembed --db /c.db --dry-run", True),
        ("cpersona-cli backfill repair --db /c.db --dry-run", True),
        ("command -v uvx", True),
        ("pyenv which uvx", True),
        ("get_profile(agent_id='a')", True),
        ("check_health(checks=['timestamps'])", True),
        ("cpersona-cli doctor --start", False),
        ("cpersona-cli doctor --output out.json", False),
        ("cpersona-cli doctor --output=out.json", False),
        ("cpersona-cli probe --sample-from-db --yes", False),
        ("cpersona-cli reembed --db /c.db", False),
        ("cpersona-cli reembed --yes --dry-run", False),
        ("cpersona-cli reembed undo --db /c.db", False),
        ("cpersona-cli backfill a.zip", False),
        ("cpersona-cli doctor; rm -r /", False),
        ("cpersona-cli doctor > out", False),
        ("command -v uvx\nrm -r /", False),
        ("command -v $(rm -r /)", False),
        ("check_health(checks=['coarse_index'], fix=true)", False),
        ("delete_memory(memory_id=1)", False),
        ("chmod 600 /c.db", False),
        ("", False),
    ],
)
def test_what_only_looks(command: str, looks: bool) -> None:
    assert agent.looks_only(command) is looks


FILE = Place(file=Path("/c.json"), line=3)
DRY = "show first what the same command with --dry-run says"


@pytest.mark.parametrize(
    ("repair", "consent"),
    [
        (Repair(prose="", edit="x", place=FILE), "needed, edits /c.json:3"),
        (Repair(prose="", commands=("command -v uvx",), place=FILE), "needed, edits /c.json:3"),
        (Repair(prose="", commands=("cpersona-cli reembed --db c",)), f"needed, changes what is stored; {DRY}"),
        (Repair(prose="", commands=("cpersona-cli reembed --dry-run",)), f"needed, changes what is stored; {DRY}"),
        (Repair(prose="", commands=("cpersona-cli backfill repair --db c",)), f"needed, changes what is stored; {DRY}"),
        (Repair(prose="", commands=("cpersona-cli reembed undo --db c",)), "needed, changes what is stored"),
        (Repair(prose="", commands=("delete_memory(memory_id=1)",)), "needed, changes what is stored"),
        (Repair(prose="", commands=("chmod 600 c",)), "needed, changes files or programs of this computer"),
        (Repair(prose="", commands=("get_profile(agent_id='a')",)), "not needed, only looks"),
        (Repair(prose="", edit="x"), "needed"),
        (Repair(prose="start it"), "needed"),
    ],
)  # fmt: skip
def test_what_a_yes_is_needed_for(repair: Repair, consent: str) -> None:
    assert f"consent: {consent}" in said(finding(repair=repair))


def test_what_is_copied_stands_as_it_is() -> None:
    edit = '"A": "C:\\\\x \\"y\\"",\n"B": "/home/aya/ü b"'
    commands = ("cpersona-cli reembed --db '/home/aya/a b.db'", "command -v uvx")
    lines = said(finding(repair=Repair(prose="do", edit=edit, commands=commands)), home=HOME)
    assert [line[6:] for line in lines if line.startswith("edit: ")] == edit.splitlines()
    assert lines[-3:-1] == [f"ask: {commands[0]}", f"run: {commands[1]}"]
    assert shlex.split(lines[-3][5:])[-1] == "/home/aya/a b.db"


def test_one_repair_is_told_once() -> None:
    other = finding(trap="names.misspelt", measured="the same", severity=Severity.WARNING)
    lines = said(URL_MISSING, other)
    assert sum(line.startswith("## ") for line in lines) == 1
    assert "also: warning names.misspelt: the same" in lines


def test_many_findings_are_named_and_not_told() -> None:
    many = [finding(subject=f"client {number}") for number in range(40)]
    lines = said(*many)
    assert sum(line.startswith("measured: ") for line in lines) == agent.SHOWN
    assert f"- fault names.url-missing: {HOME}/.claude.json:14 (client 39)" in lines
    assert sum(line.startswith("- fault ") for line in lines) == 40 - agent.SHOWN
    assert len("\n".join(lines)) < 9000


def test_what_is_in_order_takes_no_room() -> None:
    fine = [check for check in CHECKS if check.state in {State.PASS, State.SKIPPED}]
    few, many = (agent.render(replace(FAILING, checks=fine * times), Style()) for times in (1, 150))
    assert abs(len(many) - len(few)) < 10, "a count has more digits"
    assert "names.bad-mode" not in many


def test_what_could_not_be_found_out_is_counted_in_the_end() -> None:
    lines = said(unsettled=[f"reason {number}" for number in range(60)])
    assert [line for line in lines if line.startswith("unknown: ")][
        -1
    ] == f"unknown: {60 - agent.ROWS} more: see --json"


def test_figures_are_rows_and_no_plots() -> None:
    rows = [("rows", "21", ""), ("1.", "restart it", ""), ("where", "here", "/f:3"), ("", "bare", "")]
    bars = Bars(rows=[("a", 1)])
    figures = (
        Table(header=("recall", "rows"), rows=[("agent.a", "12")]),
        bars,
        Copied(("", "cpersona-cli reembed undo")),
    )
    plan = Section(title="plan", rows=rows, verbosity=0, figures=figures)
    hidden = Section(title="settings", rows=[("a", "b", "")])
    lines = said(sections=(hidden, plan, Section(title="plot", rows=(), verbosity=0, figures=(bars,))))
    start = lines.index("## plan")
    assert lines[start:] == [
        "## plan",
        "- rows: 21",
        "- 1. restart it",
        "- where: here (/f:3)",
        "- bare",
        "- recall | rows",
        "- agent.a | 12",
        "ask: cpersona-cli reembed undo",
    ]


def test_long_lists_are_counted_unless_they_were_asked_for() -> None:
    section = Section(title="t", rows=[("row", str(number), "") for number in range(50)], verbosity=0)
    assert said(sections=(section,))[-1] == f"- {50 - agent.ROWS} more: see --json"
    assert said(sections=(section,), gate=False)[-1] == "- row: 49"


def test_the_next_command_says_whether_it_may_be_run() -> None:
    assert "next: cpersona-cli doctor" in said(next_command="cpersona-cli doctor")
    assert "next-ask: cpersona-cli reembed --db c" in said(next_command="cpersona-cli reembed --db c")
    lines = said(URL_MISSING, rerun="cpersona-cli doctor --client codex")
    assert "verify: cpersona-cli doctor --client codex --format agent" in lines
