"""Entries in wrong files, under wrong keys, in wrong shapes; scopes, approval, trust, switches, doubles."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.trap_facts import Graded, listed
from support.traps import MACHINE, Case, facts, registration

from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Place, Registration, Status
from cpersona_cli.record import replace
from cpersona_cli.traps.model import Facts
from cpersona_cli.traps.registration import add_commands

DB = "/home/u/cpersona.db"
ENV = {"CPERSONA_DB_PATH": DB}
WINDOWS = replace(MACHINE, system="windows")
SETTINGS = Place(file=Path("/home/u/.claude/settings.json"), line=3)


def entry(
    status: Status, cause: str, why: str = "", env: dict[str, str] | None = None, **fields: object
) -> Registration:
    return registration(env or ENV, status=status, cause=cause, why=why, **fields)  # type: ignore[arg-type]


def alone(*entries: Registration, machine: Machine = MACHINE) -> Facts:
    """Facts in which a client of another name is started, and ``entries`` are not."""
    return listed(facts(ENV, client="windsurf", machine=machine), *entries)


def beside(*entries: Registration, env: dict[str, str] | None = None, **fields: object) -> Facts:
    """Facts in which Claude Code starts an entry, and ``entries`` stand beside it."""
    return listed(facts(env or ENV, **fields), *entries)  # type: ignore[arg-type]


IGNORED = entry(Status.IGNORED, "file", "Claude Code does not read ~/.claude/settings.json for servers", place=SETTINGS)
ROAMING = entry(Status.IGNORED, "file", "installed as a Windows package", client="claude-desktop")
CODEX_MOVED = entry(Status.IGNORED, "file", "CODEX_HOME is set", client="codex")
MOVED = replace(MACHINE, env={**MACHINE.env, "CODEX_HOME": "/elsewhere"})
OTHER = {"CPERSONA_DB_PATH": "/home/u/other.db"}

FILE = (
    Graded(
        "registration.wrong-file",
        "read by nobody",
        alone(IGNORED),
        says=(
            "does not read",
            "claude mcp add -e CPERSONA_DB_PATH=/home/u/cpersona.db -s user cpersona -- uvx cpersona",
            "restart Claude Code",
        ),
        severity="fault",
        count=1,
    ),
    Graded(
        "registration.wrong-file", "a leftover that agrees", beside(IGNORED), says="remove this entry", severity="hint"
    ),
    Graded("registration.wrong-file", "a leftover that does not", beside(IGNORED, env=OTHER), severity="warning"),
    Graded("registration.wrong-file", "none", beside(), "pass"),
    Graded("registration.wrong-file", "a wrong key is another trap's", alone(entry(Status.IGNORED, "key")), "pass"),
    Graded("registration.wrong-file", "a moved file is another trap's", alone(CODEX_MOVED, machine=MOVED), "pass"),
    Graded(
        "registration.packaged-desktop",
        "the file under AppData",
        alone(ROAMING, machine=WINDOWS),
        says="Edit Config",
        severity="fault",
    ),
    Graded("registration.packaged-desktop", "not on Windows", alone(ROAMING), "pass"),
    Graded(
        "registration.moved-file",
        "CODEX_HOME",
        alone(CODEX_MOVED, machine=MOVED),
        says=("CODEX_HOME=/elsewhere", "codex mcp add cpersona --env", "with CODEX_HOME set"),
        severity="warning",
    ),
    Graded("registration.moved-file", "nothing is moved", alone(CODEX_MOVED), "pass"),
    Graded(
        "registration.moved-file",
        "both places hold it",
        listed(facts(ENV, client="codex", machine=MOVED), CODEX_MOVED),
        "pass",
    ),
    Graded(
        "registration.wrong-key",
        "mcpServers in VS Code",
        alone(
            entry(
                Status.IGNORED, "key", "VS Code reads “servers”; this entry stands under “mcpServers”", client="vscode"
            )
        ),
        says=("stands under “mcpServers”", 'VS Code reads the servers under "servers"', '"servers": {'),
        severity="fault",
    ),
    Graded(
        "registration.wrong-key",
        "mcpServers in Codex",
        alone(entry(Status.IGNORED, "key", client="codex")),
        says=("[mcp_servers.cpersona]", "a key that the client does not read"),
        severity="fault",
    ),
    Graded(
        "registration.wrong-key",
        "a file of no known client",
        alone(entry(Status.IGNORED, "key", client="env")),
        says='"mcpServers"',
    ),
    Graded("registration.wrong-key", "none", beside(), "pass"),
    Graded(
        "registration.shape",
        "an array for env",
        alone(entry(Status.IGNORED, "shape", "“env” is one array")),
        says=("“env” is one array", '"env": {'),
        severity="fault",
    ),
    Graded(
        "registration.shape",
        "an active entry with an odd env",
        facts(ENV, client="codex", env_shape="array"),
        says=("is array, not an object", "[mcp_servers.cpersona.env]"),
        severity="fault",
    ),
    Graded(
        "registration.shape",
        "an array for the command",
        alone(
            replace(
                entry(Status.IGNORED, "shape", "“command” is one array; it must be the program as text"),
                command="uvx",
                args=("cpersona",),
            )
        ),
        says=('"cpersona": {"command": "uvx", "args": ["cpersona"]}', "an object with a command"),
    ),
    Graded(
        "registration.shape",
        "a line in place of an object",
        alone(
            replace(
                entry(Status.IGNORED, "shape", "“cpersona” is one string; an object belongs here", client="codex"),
                command="uvx cpersona",
                args=(),
            )
        ),
        says='[mcp_servers.cpersona]\ncommand = "uvx"\nargs = ["cpersona"]',
    ),
    Graded("registration.shape", "null is no environment", facts(ENV, env_shape="null"), "pass"),
    Graded("registration.shape", "an object", beside(), "pass"),
)

LOCAL = registration(ENV, scope="local", project=Path("/proj/x"))
SHARED = registration(OTHER, scope="project", project=Path("/proj/x"))


def hidden(path: str, **fields: object) -> Registration:
    return entry(Status.HIDDEN, "scope", "the local scope goes before it", {"CPERSONA_DB_PATH": path}, **fields)


SCOPE = (
    Graded(
        "registration.local-scope",
        "one project only",
        listed(facts(ENV, client="windsurf"), LOCAL),
        says=("registered for /proj/x alone", "-s user"),
        severity="warning",
        count=1,
    ),
    Graded("registration.local-scope", "also for the user", beside(LOCAL), "pass"),
    Graded(
        "registration.local-scope", "a project file is on purpose", listed(facts(client="windsurf"), SHARED), "pass"
    ),
    Graded(
        "registration.local-scope",
        "switched off",
        alone(replace(LOCAL, status=Status.DISABLED, cause="switch")),
        "pass",
    ),
    Graded(
        "registration.scopes",
        "three databases under one name",
        listed(
            facts({"CPERSONA_DB_PATH": "/home/u/b.db"}, scope="local", project=Path("/proj/x")),
            hidden("./c.db", scope="project", project=Path("/proj/x")),
            hidden("/home/u/a.db"),
        ),
        says=(
            "registered 3 times with 3 databases",
            "opens /home/u/b.db and wins",
            "opens ./c.db",
            "opens /home/u/a.db",
            "claude mcp remove cpersona -s project",
            "claude mcp remove cpersona -s user",
        ),
        severity="warning",
        count=1,
    ),
    Graded(
        "registration.scopes",
        "one database twice",
        listed(facts(ENV, scope="local", project=Path("/proj/x")), hidden(DB)),
        severity="hint",
    ),
    Graded(
        "registration.scopes",
        "hidden by an administrator",
        alone(entry(Status.HIDDEN, "scope", "managed by an administrator")),
        says="managed by an administrator; hidden",
    ),
    Graded("registration.scopes", "no entry is hidden", beside(LOCAL), "pass"),
    Graded(
        "registration.empty-record",
        "for this folder",
        replace(
            facts(ENV),
            discovery=replace(
                facts(ENV).discovery, empty_projects=(Place(Path("/home/u/.claude.json"), 9, words="/home/u/work"),)
            ),
        ),
        says='"mcpServers": {}',
        severity="hint",
    ),
    Graded(
        "registration.empty-record",
        "for another folder",
        replace(
            facts(ENV),
            discovery=replace(
                facts(ENV).discovery, empty_projects=(Place(Path("/home/u/.claude.json"), 9, words="/elsewhere"),)
            ),
        ),
        "pass",
    ),
    Graded(
        "registration.not-approved",
        "waiting",
        alone(entry(Status.PENDING, "approval", "waits", scope="project", project=Path("/proj/x"))),
        says=("waits", "claude mcp reset-project-choices", "in /proj/x"),
        severity="fault",
    ),
    Graded(
        "registration.not-approved",
        "the user's own is started",
        beside(entry(Status.PENDING, "approval", scope="project")),
        severity="hint",
    ),
    Graded("registration.not-approved", "none", beside(), "pass"),
    Graded(
        "registration.untrusted",
        "Codex",
        alone(entry(Status.PENDING, "untrusted", client="codex", scope="project", project=Path("/proj/x"))),
        says=("/proj/x is not a trusted folder", "[projects.'/proj/x']\ntrust_level = \"trusted\""),
        severity="fault",
    ),
    Graded("registration.untrusted", "waits for approval instead", alone(entry(Status.PENDING, "approval")), "pass"),
    Graded(
        "registration.disabled",
        "switched off",
        alone(entry(Status.DISABLED, "switch", "“disabled” in the file")),
        says="“disabled” in the file",
        severity="fault",
    ),
    Graded("registration.disabled", "another one is on", beside(entry(Status.DISABLED, "switch")), severity="hint"),
    Graded("registration.disabled", "none", beside(), "pass"),
    Graded(
        "registration.doubled",
        "two names",
        facts(ENV, others=[registration(ENV, name="memory", scope="plugin")]),
        says=("2 entries start CPersona", "'memory'"),
        severity="warning",
        count=1,
    ),
    Graded(
        "registration.doubled",
        "the command that removes one",
        facts(ENV, others=[registration(ENV, name="me mory")]),
        says="claude mcp remove 'me mory' -s user",
    ),
    Graded(
        "registration.doubled",
        "one of them is a server elsewhere",
        facts(ENV, others=[registration(ENV, name="remote", transport="http", url="http://h:8402/mcp")]),
        "pass",
    ),
    Graded("registration.doubled", "two databases", facts(ENV, others=[registration(OTHER, name="memory")]), "pass"),
    Graded("registration.doubled", "two clients", facts(ENV, others=[registration(ENV, client="codex")]), "pass"),
    Graded(
        "registration.doubled",
        "two projects",
        facts(
            ENV,
            scope="local",
            project=Path("/proj/x"),
            others=[registration(ENV, scope="local", project=Path("/proj/y"))],
        ),
        "pass",
    ),
    Graded(
        "registration.doubled",
        "two profiles",
        facts(
            ENV,
            client="vscode",
            scope="user, profile one",
            others=[registration(ENV, client="vscode", scope="user, profile two")],
        ),
        "pass",
    ),
)


@pytest.mark.parametrize("case", [*FILE, *SCOPE], ids=str)
def test_registration(case: Case) -> None:
    case.check()


@pytest.mark.parametrize(
    ("found", "commands"),
    [
        (
            registration({"CPERSONA_DB_PATH": "/a b", "API_KEY": "sk-live-0123"}),
            ("claude mcp add -e 'CPERSONA_DB_PATH=/a b' -e API_KEY=\"$API_KEY\" -s user cpersona -- uvx cpersona"),
        ),
        (registration(ENV, client="codex"), f"codex mcp add cpersona --env CPERSONA_DB_PATH={DB} -- uvx cpersona"),
        (
            replace(registration(ENV), client="gemini-cli"),
            f"gemini mcp add -s user cpersona -e CPERSONA_DB_PATH={DB} uvx cpersona",
        ),
        (
            registration(command="", args=(), url="http://h:8402/mcp"),
            "claude mcp add --transport http -s user cpersona http://h:8402/mcp",
        ),
        (registration(ENV, client="zed"), ""),
        (registration(ENV, command=""), ""),
    ],
)
def test_the_command_that_registers(found: Registration, commands: str) -> None:
    assert "\n".join(add_commands(found)) == commands
