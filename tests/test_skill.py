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
from support.documents import document

from cpersona_cli.app import _parse
from cpersona_cli.commands.import_request import ACTIONS as BACKFILL
from cpersona_cli.commands.options import Job
from cpersona_cli.commands.reembed import ACTIONS as REEMBED
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.fit.model import State
from cpersona_cli.report.json import document as fields_of
from cpersona_cli.report.model import Report, Verdict
from cpersona_cli.traps.model import Group, Severity
from cpersona_cli.traps.registry import ALL
from cpersona_cli.words import COMMANDS

FOLDER = docs.ROOT / "skill" / "cpersona-setup"
FILES = {file.relative_to(FOLDER).as_posix(): file for file in sorted(FOLDER.rglob("*.md"))}
TEXTS: Mapping[str, str] = {name: file.read_text("utf-8") for name, file in FILES.items()}
ALL_TEXT = "\n".join(TEXTS.values())

#: What stands for anything.
_PLACEHOLDERS = {"NAME": "names.url-missing", "URL": "http://127.0.0.1:8401/embed", "...": "missing", "PATH": "a.zip"}
_IDS = {trap.id for trap in ALL}
#: Options after which a command writes, starts, shows or sends something.
_DOES_MORE = {
    "--output",
    "-o",
    "--write-waivers",
    "--start",
    "--live",
    "--yes",
    "--raw",
    "--show-text",
    "--sample-from-db",
}


def _lines() -> Iterator[str]:
    for text in TEXTS.values():
        yield from re.findall(r"^\s*(cpersona-cli .*)$", text, re.MULTILINE)
        yield from re.findall(r"`(cpersona-cli [^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
        yield from (f"cpersona-cli {line}" for line in re.findall(r"`((?:reembed|backfill) [^`|]+)`", text))


LINES = sorted({line.partition(" | ")[0].strip() for line in _lines()})


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
        tool, command, *more = line.split()
        assert tool == "cpersona-cli"
        assert command in {"doctor", "probe", "dimension", "advisory-preview"} or (command, *more[:1]) == (
            "reembed",
            "status",
        )
        assert not set(more) & _DOES_MORE
        assert "*" not in line, "an option could follow"
        assert line in LINES, "it is used"


def test_whatever_writes_stands_under_consent() -> None:
    consent = TEXTS["SKILL.md"].partition("## Never without consent")[2].partition("\n## ")[0]
    for action in {*REEMBED, *BACKFILL} - {"status"}:
        assert re.search(rf"\b{action}\b", consent), action
    known = {name for _, command in commands() for name in options(command)}
    assert known >= _DOES_MORE
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
    states = re.search(r"`status` \(([^)]*)\)", TEXTS["references/json.md"])
    assert states
    assert set(re.findall(r"`(\w+)`", states[1])) == set(State)
    for values in (Severity, Verdict):
        assert {f"`{value}`" in TEXTS["references/json.md"] for value in values} == {True}


def test_every_field_exists() -> None:
    text = TEXTS["references/json.md"]
    common = fields_of(Report(command="doctor"))
    rows = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)[2:]
    known = {*common, "state", "unknown"}
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} <= known
    explained = docs.ROOT.joinpath("docs", "json.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z]+_[a-z_]+|holders|refusals|warnings|complete|targets|detail)`", text))
    assert {name for name in named if f"`{name}`" not in explained} == set()


def test_the_short_form_of_a_document_works(tmp_path: Path) -> None:
    (line,) = re.findall(r"^cpersona-cli doctor --json \| (python3 -c .*)$", TEXTS["SKILL.md"], re.MULTILINE)
    _, flag, program = shlex.split(line)
    script = Path(sys.executable).with_name("cpersona-cli")
    env = {"HOME": str(tmp_path), "CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_DB_PATH": str(tmp_path / "memory.db")}
    whole = subprocess.run([script, "doctor", "--env", "--json"], env=env, capture_output=True, text=True, check=False)
    short = subprocess.run(
        [sys.executable, flag, program], input=whole.stdout, capture_output=True, text=True, check=True
    ).stdout
    found, kept = document(whole.stdout), json.loads(short)
    assert kept["findings"] == found["findings"] != []
    assert kept["unknown"] == [check for check in found["checks"] if check["state"] == "unknown"]
    assert (kept["verdict"], kept["schema"]) == ("fail", "cpersona-cli/doctor/1")
    assert len(short) * 4 < len(whole.stdout)
