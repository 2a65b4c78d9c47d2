"""The documents are true: what is generated is up to date, every command line works, every link leads somewhere."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from support import docs
from support.commands_page import commands, options
from support.documents import document
from support.uncheckable import UNCHECKABLE
from support.warm import Warm

from cpersona_cli.commands.preferences import PREFERENCES, resolve
from cpersona_cli.demo.model import Act, Doing, Played, Step
from cpersona_cli.fit.model import Basis
from cpersona_cli.fit.model import State as Fit
from cpersona_cli.fit.stored import SAMPLE
from cpersona_cli.install.model import Environment, Registration, Status
from cpersona_cli.report import demo
from cpersona_cli.report.json import document as fields_of
from cpersona_cli.report.model import FailOn, Report, Verdict
from cpersona_cli.start.model import Failure
from cpersona_cli.traps import waivers
from cpersona_cli.traps.live import SAMPLES
from cpersona_cli.traps.model import Needs, Severity
from cpersona_cli.traps.registry import ALL, RETIRED
from cpersona_cli.traps.run import State
from cpersona_cli.words import COMMANDS
from examples.endpoint import endpoint

README = docs.ROOT / "README.md"
PAGES = (README, docs.ROOT / "CONTRIBUTING.md", docs.ROOT / "CHANGELOG.md", *sorted((docs.ROOT / "docs").glob("*.md")))
TEXTS = {page.relative_to(docs.ROOT).as_posix(): page.read_text("utf-8") for page in PAGES}
BIN = Path(sys.executable).parent

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# For the words in capitals that stand for anything.
_PLACEHOLDERS = {"COMMAND": "doctor", "ID": "names.url-missing", "FILE": ".claude.json", "json:FILE": "json:out.json"}

# What these find depends on what listens on this machine; the demo is played elsewhere.
_ELSEWHERE = {"probe", "dimension", "reembed", "advisory-preview", "backfill", "demo"}


def _expected(line: str) -> int:
    """``doctor`` finds the fault of the broken home, but in its database; ``traps`` and the rest judge nothing."""
    return 1 if line.startswith("cpersona-cli doctor") and not {"--db", "--help"} & set(line.split()) else 0


# --- what is generated


@pytest.fixture(scope="session")
def made() -> Mapping[Path, str]:
    return docs.documents()


@pytest.mark.server
@pytest.mark.parametrize("name", [name for name in TEXTS if name.startswith("docs/") or name == "README.md"])
def test_the_generated_parts_are_up_to_date(name: str, made: Mapping[Path, str]) -> None:
    assert TEXTS[name] == made[docs.ROOT / name], f"{name} is out of date: run make docs"


def test_every_block_is_used_and_every_marker_is_closed() -> None:
    text = "\n".join(TEXTS[name] for name in TEXTS if name not in docs.PAGES)
    opened = re.findall(r"^<!-- make docs: ([a-z-]+) -->$", text, re.MULTILINE)
    assert sorted(opened) == sorted(docs.BLOCKS)
    assert text.count("<!-- make docs:") == text.count("<!-- end -->") == len(opened)


# --- command lines


def _command_lines(text: str) -> Iterator[str]:
    """Every command line of this tool: in consoles, in shell blocks, in indented blocks, between backticks."""
    prose = _FENCE.sub("", text)
    for _, block in _FENCE.findall(text):
        yield from re.findall(r"^(?:\$ )?(cpersona-cli(?: \S+)*)", block, re.MULTILINE)
    yield from re.findall(r"^ {4,}(cpersona-cli(?: \S+)*)", prose, re.MULTILINE)
    yield from re.findall(r"`(cpersona-cli [^`\\]+)\\?`", prose)


LINES = sorted(
    {
        line
        for name, text in TEXTS.items()
        for line in _command_lines(text)
        # not the first line of a report; nor what depends on the shell that the tests are started from
        if not re.match(r"cpersona-cli [a-z]+    ", line) and not line.startswith("cpersona-cli --install-completion")
    }
)


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """The home of the documents, and the files that they speak of."""
    with docs.broken_home() as folder:
        (folder / ".mcp.json").write_bytes((folder / ".claude.json").read_bytes())
        for name in ("waivers.toml", "config.toml"):
            (folder / name).write_text(_example(name), "utf-8")
        yield folder


def _sh(home: Path, script: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A script as a reader's shell would run it."""
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return subprocess.run(
        ["sh", "-c", script],
        cwd=home,
        env={"HOME": str(home), "PATH": path, **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.fixture(scope="module")
def warm(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    with Warm(tmp_path_factory.mktemp("said"), {"HOME": str(home), "PATH": os.environ["PATH"]}, home) as found:
        yield found


@pytest.mark.server
@pytest.mark.parametrize("line", LINES)
def test_a_command_line_works(line: str, home: Path, warm: Warm) -> None:
    typed = " ".join(_PLACEHOLDERS.get(word, word) for word in line.split())
    if _ELSEWHERE & set(line.split()[1:2]):
        typed += " --help"
        code = 0
    else:
        code = _expected(line)
    done = warm.run(*shlex.split(typed.replace("~", str(home)), comments=True)[1:])
    # a start that takes long says so
    said = "" if "--start" in line and done.err.startswith("cpersona-cli: starting ") else done.err
    assert (done.code, said) == (code, ""), done.out + done.err


def test_there_are_command_lines_of_every_command() -> None:
    named = {word for line in LINES for word in line.split()[1:2]}
    assert set(COMMANDS) <= named


# --- help


@pytest.mark.parametrize(
    ("words", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_help_is_a_sentence_and_then_examples(words: str, command: Any) -> None:
    sentence, _, rest = command.help.partition("\n\n\b\n")
    assert sentence.endswith("."), "no summary"
    examples = rest.partition("\n\n")[0].splitlines()
    assert examples, "no examples"
    for example in examples:
        assert example.startswith(f"  {words}"), example


def test_every_option_is_explained() -> None:
    text = "\n".join(TEXTS.values())
    for words, command in commands():
        for param in command.params:
            assert param.param_type_name == "argument" or param.name == "help" or param.help, f"{words} {param.name}"
        for name in options(command) - {"-h", "--help"}:
            assert re.search(rf"`[^`\n]*(?<![\w-]){name}(?![\w-])[^`\n]*`", text), f"{words} {name}"


def test_preferences_are_options() -> None:
    known = {name for _, command in commands() for name in options(command)}
    assert {f"--{preference.name}" for preference in PREFERENCES} <= known


# --- examples


def _example(name: str) -> str:
    (found,) = (block for _, block in _FENCE.findall(TEXTS["docs/preferences.md"]) if block.startswith(f"# {name}\n"))
    return str(found)


def test_the_waivers_example_loads(tmp_path: Path) -> None:
    file = tmp_path / "waivers.toml"
    file.write_text(_example("waivers.toml"), "utf-8")
    read = waivers.read(file)
    assert len(read) == 2
    assert {waiver.id for waiver in read} <= {trap.id for trap in ALL}
    assert [len(waiver.fingerprint) for waiver in read] == [0, 12]


def test_the_configuration_example_loads(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(_example("config.toml"), "utf-8")
    found = resolve({}, {}, file)
    assert found.text("fail-on") == "warning"
    assert found.words("client") == ("claude-code", "codex")
    assert found.words("skip") == ("identity.policy-missing",)
    assert found.text("waivers") == str(tmp_path / "waivers.toml")
    assert set(found.words("skip")) <= {trap.id for trap in ALL}


HEALTHY = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": "{url}"}


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """An embedding endpoint that works."""
    with endpoint() as address:
        yield address


@pytest.mark.parametrize(
    ("env", "fake", "code"),
    [
        (HEALTHY, "", 0),
        ({"CPERSONA_EMBEDDING_MODE": "http"}, "", 1),
        ({**HEALTHY, "CPERSONA_CLI_TIMEOUT": "soon"}, "", 3),  # a usage error: no document
        (HEALTHY, "exit 0", 3),  # a script that only seems to be ours
        (HEALTHY, "exit 127", 3),
    ],
    ids=["healthy", "broken", "unusable", "imposter", "absent"],
)
def test_the_gate_for_ci(env: Mapping[str, str], fake: str, code: int, tmp_path: Path, url: str) -> None:
    env = {name: value.format(url=url) for name, value in env.items()}
    (script,) = (block for form, block in _FENCE.findall(TEXTS["docs/ci.md"]) if form == "sh")
    (tmp_path / "doctor.json").write_text('{"schema": "cpersona-cli/doctor/1"}')  # of an earlier run
    if fake:
        other = tmp_path / "cpersona-cli"
        other.write_text(f"#!/bin/sh\n{fake}\n")
        other.chmod(0o755)
        script = f'PATH="$PWD:$PATH"\n{script}'
    done = _sh(tmp_path, script, CPERSONA_DB_PATH=str(tmp_path / "memory.db"), **env)
    assert done.returncode == code, done.stdout + done.stderr
    assert (tmp_path / "doctor.json").exists() == (code != 3)
    assert ("no examination took place" in done.stderr) == (code == 3)


# --- the JSON document


def _tables(text: str) -> Mapping[str, list[list[str]]]:
    """The first table below each heading, as rows of cells."""
    found: dict[str, list[list[str]]] = {}
    for part in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
        rows = re.findall(r"^\| `(.*) \|$", part, re.MULTILINE)
        found[part.partition("\n")[0]] = [f"`{row}".split(" | ") for row in rows]
    return found


@pytest.fixture(scope="module")
def objects(home: Path) -> Mapping[str, Iterable[str]]:
    """Under each heading of docs/json.md, the fields that really are there."""
    found = document(_sh(home, "cpersona-cli doctor --start --json").stdout)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
    probed = document(_sh(home, f"cpersona-cli probe --url http://127.0.0.1:{port}/embed --json").stdout)
    fitted = document(_sh(home, f"cpersona-cli dimension --url http://127.0.0.1:{port}/embed --json").stdout)
    rebuilt = document(_sh(home, "cpersona-cli reembed status --json").stdout)
    line = '{"conversation": "c", "role": "user", "text": "The lake is cold.", "time": "2024-05-01"}\n'
    (home / "talk.jsonl").write_text(line, "utf-8")
    brought = document(_sh(home, "cpersona-cli backfill talk.jsonl --no-embed --as both --dry-run --json").stdout)
    told = document(_sh(home, "cpersona-cli advisory-preview --replay refused --json").stdout)
    act = Act(title="All is well", steps=(Step(doing=Doing.CHANGE, title="the real server stores 12 memories"),))
    played: Any = fields_of(demo.report(Played(acts=(act,), home="/home/you"), kept=False, home="/home/you"))
    book = document(_sh(home, "cpersona-cli traps explain names.url-missing --json").stdout)
    common = list(fields_of(Report(command="none")))
    finding = found["findings"][0]
    registration = next(entry for entry in found["registrations"] if entry["environments"])
    environment = registration["environments"][0]
    return {
        "Every command": common,
        "A finding": finding,
        "A repair": finding["repair"],
        "A place": finding["place"],
        "A check": found["checks"][0],
        "doctor": [name for name in found if name not in common],
        "A registration": registration,
        "An environment": environment,
        "A setting": environment["settings"][0],
        "A database": found["databases"][0],
        "A start": found["starts"][0],
        "A process": found["starts"][0]["processes"][0],
        "probe": [name for name in probed if name not in common],
        "advisory-preview": [name for name in told if name not in common],
        "demo": [name for name in played if name not in common],
        "An act": played["acts"][0],
        "A step": played["acts"][0]["steps"][0],
        "dimension": [name for name in fitted if name not in common],
        "reembed": [name for name in rebuilt if name not in common],
        "backfill": [name for name in brought if name not in common],
        "A tally": brought["memories"],
        "What was read": brought["read"],
        "A plan of an import": brought["plan"],
        "A recall": brought["plan"]["scopes"][0],
        "traps": [*(name for name in book if name not in common), "retired"],
        "A trap": book["traps"][0],
    }


@pytest.mark.server
def test_every_field_of_the_document_is_explained(objects: Mapping[str, Iterable[str]]) -> None:
    tables = _tables(TEXTS["docs/json.md"])
    for heading, fields in objects.items():
        assert [row[0].strip("`") for row in tables[heading]] == list(fields), heading


@pytest.mark.server
def test_the_readme_names_fields_that_are_there(objects: Mapping[str, Iterable[str]]) -> None:
    rows = _tables(TEXTS["README.md"])["JSON"]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert named <= {*objects["Every command"], *objects["doctor"]}
    cells = {row[0].strip("`"): row[1] for row in rows}
    assert set(re.findall(r"`(\w+)`", cells["findings"])) <= set(objects["A finding"])


def _literals(owner: type, name: str) -> tuple[str, ...]:
    return get_args(get_type_hints(owner)[name])


@pytest.mark.parametrize(
    ("heading", "field", "values"),
    [
        ("Every command", "verdict", Verdict),
        ("Every command", "fail_on", FailOn),
        ("Every command", "counts", [*Severity, "waived", "unknown", "skipped"]),
        ("A finding", "severity", Severity),
        ("A check", "severity", Severity),
        ("A check", "state", State),
        ("A registration", "status", Status),
        ("A registration", "transport", _literals(Registration, "transport")),
        ("An environment", "base", _literals(Environment, "base")),
        ("A process", "failure", Failure),
        ("A step", "kind", Doing),
        ("dimension", "status", Fit),
        ("dimension", "basis", Basis),
        ("A trap", "severity", Severity),
        ("A trap", "needs", Needs),
    ],
)
def test_closed_lists_of_values_are_complete(heading: str, field: str, values: Iterable[str]) -> None:
    (meaning,) = (row[2] for row in _tables(TEXTS["docs/json.md"])[heading] if row[0] == f"`{field}`")
    assert sorted(re.findall(r"`([a-z-]+)`", meaning)) == sorted(str(value) for value in values)


def test_the_example_obeys_the_schema() -> None:
    (text,) = (block for form, block in _FENCE.findall(TEXTS["docs/json.md"]) if form == "json")
    assert json.dumps(document(text), indent=2, ensure_ascii=False) == text.rstrip()


# --- traps, places


def test_every_trap_has_its_place() -> None:
    page = TEXTS["docs/traps.md"]
    ids = re.findall(r'<a id="([a-z]+\.[a-z0-9-]+)"></a>', page)
    assert ids == [*(trap.id for trap in ALL), *RETIRED]
    for line in UNCHECKABLE:
        assert f"| {line.row} |" in page


def test_variables_that_move_files_are_named() -> None:
    source = "".join(
        (docs.ROOT / "cpersona_cli" / "install" / name).read_text("utf-8")
        for name in ("clients/table.py", "machine.py")
    )
    moving = set(re.findall(r'env\.get\("(\w+)"', source))
    assert moving
    assert [name for name in moving if f"`{name}`" not in TEXTS["docs/clients.md"]] == []


# --- links and words


def _anchors(text: str) -> set[str]:
    """The anchors of a page: those written out, and those made of headings."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE)
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)
    return {*re.findall(r'<a id="([^"]+)"></a>', text), *slugs}


@pytest.mark.parametrize("name", list(TEXTS))
def test_every_link_leads_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", _FENCE.sub("", TEXTS[name])):
        file, _, anchor = target.partition("#")
        path = (docs.ROOT / name).parent / file if file else docs.ROOT / name
        assert path.is_file(), f"{name}: {target}"
        if anchor:
            assert anchor in _anchors(path.read_text("utf-8")), f"{name}: {target}"


# Hosts that may be named: this machine, reserved names, endpoints that users really configure, where a copy of this
# repository may lie, and what the server itself records of a reply.
_HOSTS = {
    "api.openai.com", "code.claude.com", "developer.mozilla.org", "example.com", "github.com", "host.docker.internal",
}  # fmt: skip


@pytest.mark.parametrize("name", list(TEXTS))
def test_nothing_of_the_workshop_is_left_in(name: str) -> None:
    text = TEXTS[name]
    hosts = set(re.findall(r"\b(?:[\w-]+\.)+(?:com|org|net|io|dev|internal)\b", text))
    assert hosts <= _HOSTS
    assert not re.findall(r"(?<![\w&])#\d+\b|\b(?:[Ii]ssue|[Ss]ession) \d\d?\b", text)
    for folder in (str(docs.ROOT), "/tmp/", "/var/tmp", "/root/", "/work/"):
        assert folder not in text


@pytest.mark.parametrize("name", [name for name in TEXTS if name not in docs.PAGES])
def test_lines_written_by_hand_are_short(name: str) -> None:
    text = re.sub(r"^```jsonl\n.*?^```$", "", docs._BLOCK.sub("", TEXTS[name]), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in text.splitlines() if len(line) > 120 and not line.startswith("|")] == []


def test_the_limits_name_the_samples_that_are_taken() -> None:
    said = " ".join(TEXTS["README.md"].split())
    assert f"{SAMPLE} stored texts in `dimension` (`--sample` takes more), {SAMPLES} in `doctor`" in said


def test_the_readme_can_be_read_in_one_sitting() -> None:
    assert TEXTS["README.md"].count("\n") < 300
