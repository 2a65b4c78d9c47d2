"""The skill for coding agents is true: its form, its command lines, and every name in it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from skills_ref import read_properties, validate
from support import docs
from support.commands_page import commands, options

from cpersona_cli.app import _parse
from cpersona_cli.commands.import_request import ACTIONS as BACKFILL
from cpersona_cli.commands.options import Job
from cpersona_cli.commands.reembed import ACTIONS as REEMBED
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.fit.model import State
from cpersona_cli.report.agent import DOES_MORE, looks_only
from cpersona_cli.report.model import Verdict
from cpersona_cli.traps.model import Group, Severity
from cpersona_cli.traps.registry import ALL
from cpersona_cli.words import COMMANDS

FOLDER = docs.ROOT / "skill" / "cpersona-setup"
FILES = {file.relative_to(FOLDER).as_posix(): file for file in sorted(FOLDER.rglob("*.md"))}
TEXTS: Mapping[str, str] = {name: file.read_text("utf-8") for name, file in FILES.items()}
ALL_TEXT = "\n".join(TEXTS.values())

#: What stands for anything.
_PLACEHOLDERS = {
    "NAME": "names.url-missing",
    "URL": "http://127.0.0.1:8401/embed",
    "...": "missing",
    "PATH": "a.zip",
    "FILE": "a.json",
}
_IDS = {trap.id for trap in ALL}


def _lines() -> Iterator[str]:
    for text in TEXTS.values():
        yield from re.findall(r"^\s*(cpersona-cli .*)$", text, re.MULTILINE)
        yield from re.findall(r"`(cpersona-cli [^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
        yield from (f"cpersona-cli {line}" for line in re.findall(r"`((?:reembed|backfill) [^`|]+)`", text))


LINES = sorted({line.strip() for line in _lines()})


def _allowed() -> list[str]:
    """The commands that need no question, without the tool's name around them."""
    found = read_properties(FOLDER).allowed_tools or ""
    rest = re.sub(r"Bash\([^)]*\)", "", found).split()
    assert rest == ["Read"]
    return re.findall(r"Bash\(([^)]*)\)", found)


def test_the_form_is_that_of_a_skill() -> None:
    assert validate(FOLDER) == []
    assert read_properties(FOLDER).name == FOLDER.name


def test_it_can_be_read_at_one_go() -> None:
    assert TEXTS["SKILL.md"].count("\n") < 130
    for name, text in TEXTS.items():
        for target in re.findall(r"\]\(([^)]+)\)", text):
            assert (FILES[name].parent / target).is_file(), target
    assert {name for name in TEXTS if name != "SKILL.md"} == set(re.findall(r"\]\((references/[^)]+)\)", ALL_TEXT))


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_is_understood(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _, *words = (_PLACEHOLDERS.get(word, word) for word in shlex.split(line))
    if words[0] in {"reembed", "backfill"} and words[1:2] and "|" in words[1]:
        pytest.fail("alternatives are no command line")
    assert isinstance(_parse(words), Job), capsys.readouterr()


def test_every_command_is_there() -> None:
    assert {line.split()[1] for line in LINES} >= set(COMMANDS) - {"demo"}


def test_what_needs_no_question_changes_nothing() -> None:
    allowed = _allowed()
    assert allowed
    for line in allowed:
        assert looks_only(line)
        assert line.endswith(" --format agent"), "an agent pays for every character"
        assert "*" not in line, "an option could follow"
        assert line in LINES, "it is used"


def test_whatever_writes_stands_under_consent() -> None:
    consent = TEXTS["SKILL.md"].partition("## Never without consent")[2].partition("\n## ")[0]
    for action in {*REEMBED, *BACKFILL} - {"status"}:
        assert re.search(rf"\b{action}\b", consent), action
    known = {name for _, command in commands() for name in options(command)}
    assert known >= DOES_MORE - {"-o"}
    assert set(re.findall(r"`(--[a-z-]+)`", ALL_TEXT)) <= known


def test_every_name_exists() -> None:
    named = set(re.findall(rf"`((?:{'|'.join(Group)})\.[a-z0-9*-]+)`", ALL_TEXT))
    assert named
    for name in named:
        assert name in _IDS or (name.endswith(".*") and name[:-2] in set(Group)), name
    cases = TEXTS["references/repairs.md"].partition("## ")[0]
    first = re.findall(r"^\| (.*?) \|", cases, re.MULTILINE)[2:]
    words = {word for cell in first for word in re.findall(r"`([^`]+)`", cell)} - named - set(COMMANDS)
    assert words <= {*State, *Kind}, words
    report = TEXTS["references/report.md"]
    (states,) = re.findall(r"^`dimension` gives a `status`: (.*)\.$", report, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", states)) == set(State)
    assert all(f"`{verdict}`" in report for verdict in Verdict)
    assert all(f"`## {severity.upper()}`" in report for severity in Severity)


def test_every_word_of_a_report_exists() -> None:
    page = docs.ROOT.joinpath("docs", "json.md").read_text("utf-8")
    explained = set(re.findall(r"`([a-z-]+)`", page.partition("## For agents: ")[2].partition("\n## ")[0]))
    rows = re.findall(r"^\| (.*?) \|", TEXTS["references/report.md"], re.MULTILINE)[2:]
    assert {name for row in rows for name in re.findall(r"`([a-z-]{2,})`", row)} <= explained
    shown = set(docs.ROOT.joinpath("cpersona_cli", "report", "reembed.py").read_text("utf-8").split('"'))
    named = TEXTS["references/report.md"].partition("A plan of ")[2]
    assert set(re.findall(r"`([a-z ]+)`", named)) - {"summary"} <= shown


def test_the_first_command_of_the_skill_is_small(tmp_path: Path) -> None:
    (line,) = re.findall(r"^```bash\n(cpersona-cli .*)\n```$", TEXTS["SKILL.md"], re.MULTILINE)
    _, *words = shlex.split(line)
    script = Path(sys.executable).with_name("cpersona-cli")
    entry = {"command": "cpersona", "env": {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_DB_PATH": "~/memory.db"}}
    for client in (".claude.json", ".cursor/mcp.json"):
        file = tmp_path / client
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"mcpServers": {"cpersona": entry}}), encoding="utf-8")
    said = subprocess.run(
        [script, *words], env={"HOME": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert said.returncode == 1
    assert "## FAULT names.url-missing" in said.stdout
    assert 1000 < len(said.stdout.encode()) < 7000, "two broken clients; the document has 140 KB"
