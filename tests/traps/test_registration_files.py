"""Damaged client files, laid out on disk and read by the real discovery; and servers older than their file."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.trap_facts import Graded
from support.traps import everything, facts, reading, registration

from cpersona_cli.install.clients.discover import discover
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Looked, Place, Problem, ProblemKind, Process
from cpersona_cli.record import replace
from cpersona_cli.traps.model import Facts
from cpersona_cli.traps.registration_files import TRAPS
from cpersona_cli.traps.run import run

ENTRY = '{"command": "uvx", "args": ["cpersona"], "env": {"CPERSONA_DB_PATH": "/home/u/c.db"}}'
JSON = f'{{"mcpServers": {{"cpersona": {ENTRY}}}}}'
COMMENTED = (
    '{ "mcpServers": {\n  // memory\n  "cpersona": {"command": "uvx", "args": ["cpersona"],\n'
    '    "env": {"CPERSONA_DB_PATH": "/home/u/c.db",}}\n} }\n'
)
WINDOWS_PATH = JSON.replace("/home/u/c.db", "C:\\Users\\me\\cpersona.db")
TOML = "[mcp_servers.cpersona]\ncommand = 'uvx'\nargs = ['cpersona']\n[mcp_servers.cpersona.env]\n"
CLAUDE, DESKTOP = ".claude.json", ".config/Claude/claude_desktop_config.json"
CODEX, VSCODE = ".codex/config.toml", ".config/Code/User/mcp.json"


def machine(root: Path, files: dict[str, str | bytes]) -> Facts:
    home = root / "home"
    (home / "work").mkdir(parents=True)
    for name, content in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    here = Machine(system="linux", home=home, cwd=home / "work", root=root, env={"HOME": str(home)})
    return Facts(machine=here, discovery=discover(here))


@pytest.mark.parametrize(
    ("name", "content", "trap", "severity", "says"),
    [
        pytest.param(DESKTOP, b"\xef\xbb\xbf" + JSON.encode(), "file-encoding", None, "without", id="byte order mark"),
        pytest.param(
            DESKTOP,
            b"\xff\xfe" + JSON.encode("utf-16-le"),
            "file-encoding",
            "fault",
            "Claude Desktop ignores this whole file",
            id="UTF-16",
        ),
        pytest.param(CODEX, b"\xef\xbb\xbf" + TOML.encode(), "file-encoding", "fault", "Codex itself", id="mark, TOML"),
        pytest.param(DESKTOP, COMMENTED, "file-syntax", "fault", "line 2, column 3", id="comment"),
        pytest.param(DESKTOP, COMMENTED, "file-syntax", "fault", "line 4", id="trailing comma"),
        pytest.param(CLAUDE, WINDOWS_PATH, "file-syntax", "fault", "\\\\", id="single backslash in JSON"),
        pytest.param(
            CODEX,
            f'{TOML}CPERSONA_DB_PATH = "C:\\Users\\me\\c.db"\n',
            "file-syntax",
            "fault",
            "Codex itself will not start",
            id="single backslash in TOML",
        ),
        pytest.param(CODEX, TOML + TOML, None, "fault", "Codex itself will not start", id="a table twice"),
        pytest.param(CLAUDE, b"", "file-empty", "fault", "0 bytes", id="no bytes"),
        pytest.param(VSCODE, b"", None, None, "", id="an empty file that VS Code accepts"),
        pytest.param(CLAUDE, JSON[:40], "file-syntax", "fault", "ignores this whole file", id="cut in the middle"),
        pytest.param(
            ".cursor/mcp.json",
            '{"mcpServers": {"other": }',
            "file-syntax",
            "warning",
            "Cursor",
            id="not ours, and broken",
        ),
        pytest.param(
            CLAUDE,
            f'{{"mcpServers": {{"cpersona": {ENTRY}, "cpersona": {ENTRY}}}}}',
            "file-duplicate",
            "warning",
            "cpersona",
            id="a key twice",
        ),
    ],
)
def test_damaged_files(
    tmp_path: Path, *, name: str, content: str | bytes, trap: str | None, severity: str | None, says: str
) -> None:
    checks = run(TRAPS, machine(tmp_path, {name: content}))
    findings = [finding for check in checks for finding in check.findings]
    if not says:
        assert not findings
        return
    named = [finding for finding in findings if trap is None or finding.trap == f"registration.{trap}"]
    text = "\n".join(everything(finding) for finding in named)
    assert says in text
    assert severity is None or severity in {str(finding.severity) for finding in named}
    assert all(finding.subject == str(tmp_path / "home" / name) for finding in named)
    assert not [check.reason for check in checks if check.state == "unknown"]


@pytest.mark.parametrize(
    "files",
    [
        {CLAUDE: JSON, DESKTOP: JSON, CODEX: f"{TOML}CPERSONA_DB_PATH = '/home/u/c.db'\n", ".cursor/mcp.json": JSON},
        {VSCODE: COMMENTED.replace("mcpServers", "servers")},
        {".config/zed/settings.json": f'// mine\n{{"context_servers": {{"cpersona": {ENTRY},}},}}'},
        {".claude/settings.json": "{broken", CLAUDE: JSON},
    ],
    ids=["strict files", "VS Code allows comments", "Zed does too", "a file for other things"],
)
def test_sound_files(tmp_path: Path, files: dict[str, str | bytes]) -> None:
    checks = run(TRAPS, machine(tmp_path, files))
    worse = [f for check in checks for f in check.findings if str(f.severity) != "hint"]
    assert not [everything(finding) for finding in worse]


def test_the_readable_entry_of_a_broken_file_is_still_shown(tmp_path: Path) -> None:
    (found,) = machine(tmp_path, {DESKTOP: COMMENTED}).registrations
    assert found.variables[0].text == "/home/u/c.db"


FILE = Path("/home/u/.cursor/mcp.json")
DB = "/home/u/cpersona.db"
ENV = {"CPERSONA_DB_PATH": DB, "EMBEDDING_API_KEY": "sk-live-0123456789abcdef"}


def looked(client: str, *problems: Problem, mentions: bool = False, mtime: float | None = None) -> Looked:
    return Looked(client, FILE, "broken" if problems else "read", problems, mentions, mtime)


def problem(kind: ProblemKind, line: int | None = 3, *, fatal: bool = True) -> Problem:
    return Problem(kind, Place(FILE, line, 5 if line else None), "something", fatal)


def live(process: Process, mtime: float | None = None, *, known: bool = True, client: str = "cursor") -> Facts:
    return facts(
        ENV,
        client=client,
        reading=reading(DB, holders=(process,), holders_known=known),
        looked=[looked(client, mtime=mtime)],
    )


def started(**environment: str) -> Process:
    return Process(pid=7, command="python cpersona", environment=environment)


CASES = (
    Graded(
        "registration.file-unreadable",
        "no permission",
        facts(looked=[looked("cursor", problem(ProblemKind.UNREADABLE, None))]),
        says=("whether Cursor reads it", f"put a regular file at {FILE}"),
        severity="warning",
    ),
    Graded("registration.file-unreadable", "nothing wrong", facts(looked=[looked("cursor")]), "pass"),
    Graded(
        "registration.file-syntax",
        "two of one kind are one finding",
        facts(
            looked=[
                looked(
                    "cursor", problem(ProblemKind.COMMENT), problem(ProblemKind.COMMENT, 9), problem(ProblemKind.SYNTAX)
                )
            ]
        ),
        says=("and 1 place more", f"{FILE}:9"),
        count=2,
    ),
    Graded(
        "registration.file-syntax",
        "a slip that the client forgives, in a file that is not ours",
        facts(looked=[looked("vscode", problem(ProblemKind.COMMENT, fatal=False))]),
        "pass",
    ),
    Graded(
        "registration.file-empty",
        "another client's",
        facts(looked=[looked("cursor", problem(ProblemKind.EMPTY, None))]),
        severity="warning",
    ),
    Graded(
        "registration.file-duplicate",
        "fatal in TOML",
        facts(looked=[looked("codex", problem(ProblemKind.DUPLICATE), mentions=True)]),
        severity="fault",
    ),
    Graded(
        "registration.file-syntax",
        "a client nobody knows",
        facts(looked=[looked("mine", problem(ProblemKind.SYNTAX), mentions=True)]),
        says="restart mine",
    ),
    Graded("registration.not-restarted", "the same settings", live(started(**ENV)), "pass"),
    Graded(
        "registration.not-restarted",
        "other settings",
        live(started(**{**ENV, "CPERSONA_EMBEDDING_MODE": "http"})),
        says=("process 7", "CPERSONA_EMBEDDING_MODE is http, the file says nothing", "restart Cursor"),
        severity="warning",
        count=1,
    ),
    Graded(
        "registration.not-restarted",
        "a secret that differs",
        live(started(**{**ENV, "EMBEDDING_API_KEY": "other-secret"})),
        says="EMBEDDING_API_KEY differs",
    ),
    Graded(
        "registration.not-restarted",
        "another program that reads the database",
        live(Process(pid=7, command="sqlite3", environment={})),
        "pass",
    ),
    Graded(
        "registration.not-restarted",
        "only the clock speaks",
        live(Process(pid=7, started=99.0), 100.0),
        says="before",
        severity="hint",
    ),
    Graded("registration.not-restarted", "started after the edit", live(Process(pid=7, started=101.0), 100.0), "pass"),
    Graded("registration.not-restarted", "time not told", live(Process(pid=7), 100.0), "pass"),
    Graded("registration.not-restarted", "file time not told", live(Process(pid=7, started=99.0)), "pass"),
    Graded(
        "registration.not-restarted",
        "a file the client writes all the time",
        live(Process(pid=7, started=99.0), 100.0, client="claude-code"),
        "pass",
    ),
    Graded("registration.not-restarted", "processes not told", live(started(), known=False), "skipped"),
    Graded(
        "registration.not-restarted",
        "a database nobody opens",
        facts(reading=reading("/other.db", holders=(started(), Process(pid=8, started=1.0)))),
        "pass",
    ),
    Graded(
        "registration.not-restarted",
        "the settings of another client",
        replace(
            facts(
                ENV,
                client="cursor",
                reading=reading(DB, holders=(started(CPERSONA_DB_PATH=DB),)),
                others=[registration({"CPERSONA_DB_PATH": DB}, client="codex")],
            )
        ),
        "pass",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_registration_files(case: Graded) -> None:
    for finding in case.check():
        assert "sk-live-0123456789abcdef" not in everything(finding)
        assert "other-secret" not in everything(finding)
