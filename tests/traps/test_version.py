"""Releases: cached, installed, mixed on one database, withdrawn, or about to change a database for good."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.trap_facts import Graded, release, retarget
from support.traps import UVX, facts, reading, registration

from cpersona_cli.install.model import Interpreter, Launch, LaunchKind, Process, Registration
from cpersona_cli.record import replace
from cpersona_cli.store.reading import Reading
from cpersona_cli.traps.model import Facts

DB = "/home/u/cpersona.db"
ENV = {"CPERSONA_DB_PATH": DB}
CODEX = registration(ENV, client="codex")
SCRIPT = Launch(kind=LaunchKind.SCRIPT, program="/venv/bin/cpersona", words=("/venv/bin/cpersona",))
DOCKER = Launch(
    kind=LaunchKind.DOCKER, program="docker", image="ghcr.io/x/cpersona:2.6.0", words=("docker",), inside="container"
)
PIPX = Launch(kind=LaunchKind.PIPX, package="cpersona", program="pipx", words=("pipx", "run", "cpersona"))
TOOLS = Path("/home/u/.local/share/uv/tools/cpersona/lib/python3.12/site-packages")
VENV = Path("/venv/lib/python3.12/site-packages")


def one(version: str | None = "2.6.14", launch: Launch = UVX, **fields: object) -> Facts:
    return retarget(facts(ENV, launch=launch), version=release(version, **fields))


def two(
    first: str | None,
    second: str | None,
    env: dict[str, str] | None = None,
    other: Registration = CODEX,
    **fields: object,
) -> Facts:
    known = facts({**ENV, **(env or {})}, version=first, others=[other], versions={0: second}, reading=reading(DB))
    if not fields:
        return known
    return retarget(known, version=release(first, **fields))


def database(
    schema: int | None, version: str | None = "2.6.14", others: dict[int, str] | None = None, **fields: object
) -> Facts:
    of: Reading = reading(DB, schema=schema, **fields)  # type: ignore[arg-type]
    more = [CODEX] if others else []
    return facts(ENV, version=version, reading=of, others=more, versions=others)


def live(started: float | None, installed: float | None, known: bool = True) -> Facts:
    holders = (Process(pid=7, started=started),)
    of = reading(DB, holders=holders, holders_known=known)
    return retarget(facts(ENV, reading=of), version=release(installed=installed))


def python(release_: str) -> Facts:
    return one(interpreter=Interpreter(python=Path("/venv/bin/python"), release=release_))


CACHED = "version.cached"
MIXED = "version.mixed"
BROKEN = "version.broken-release"

CASES = (
    Graded(
        CACHED,
        "an old release in the cache",
        one("2.6.10", floating=True),
        says=("would start 2.6.10", "2.6.14 is known", '"cpersona@latest"', "python -c pass"),
        severity="warning",
    ),
    Graded(CACHED, "the newest known", one(floating=True), "pass"),
    Graded(CACHED, "newer than known", one("2.7.0", floating=True), "pass"),
    Graded(CACHED, "pinned", one("2.6.10"), "pass"),
    Graded(CACHED, "asks at every start", one("2.6.10", replace(UVX, fresh=True), floating=True), "pass"),
    Graded(CACHED, "nothing cached yet", one(None, floating=True), "skipped"),
    Graded(CACHED, "cannot be told", one(None), "unknown"),
    Graded(BROKEN, "an address", one(None, Launch(kind=LaunchKind.REMOTE, url="http://h:8402/mcp")), "skipped"),
    Graded(BROKEN, "pipx takes the newest", one(None, PIPX, floating=True), "skipped"),
    Graded(BROKEN, "pipx holds several", one(None, PIPX), "unknown"),
    Graded(CACHED, "not uvx", one("2.6.10", SCRIPT), "skipped"),
    Graded(CACHED, "an installed tool is another trap's", one("2.6.10", floating=True, site=TOOLS), "pass"),
    Graded("version.tool-wins", "old", one("2.6.10", site=TOOLS), says="uv tool upgrade cpersona", severity="hint"),
    Graded("version.tool-wins", "new", one(site=TOOLS), "pass"),
    Graded("version.tool-wins", "no tool", one("2.6.10", site=VENV), "skipped"),
    Graded(
        MIXED,
        "across schemas",
        two("2.5.12", "2.6.14"),
        says=(
            "Claude Code (user) would start 2.5.12; Codex (user) would start 2.6.14",
            "schema 21",
            "knows 13",
            "halves the score",
            "cpersona@latest",
        ),
        severity="fault",
        count=1,
    ),
    Graded(MIXED, "of one schema", two("2.6.11", "2.6.13"), says="may disagree", severity="warning"),
    Graded(MIXED, "one step across the boundary", two("2.6.13", "2.6.14"), says="schema 21", severity="fault"),
    Graded(
        MIXED,
        "yes is off through 2.6.10",
        two("2.6.10", "2.6.11", {"CPERSONA_AUTO_CALIBRATE": "yes"}),
        says="takes CPERSONA_AUTO_CALIBRATE=yes for off",
    ),
    Graded(MIXED, "the shorter cap", two("2.5.3", "2.5.12"), says="keeps 2000 characters", severity="warning"),
    Graded(MIXED, "the same everywhere", two("2.6.14", "2.6.14"), "pass"),
    Graded(MIXED, "one of them untold", two("2.6.14", None), "unknown"),
    Graded(MIXED, "both will fetch the newest", two(None, None, floating=True), "pass"),
    Graded(MIXED, "both untold", two(None, None), "unknown"),
    Graded(MIXED, "on two databases", two("2.5.12", "2.6.14", other=registration({}, client="codex")), "skipped"),
    Graded(MIXED, "one registration", database(21), "skipped"),
    Graded("version.python", "3.10", python("3.10.14"), says="Python 3.10.14", severity="fault"),
    Graded("version.python", "3.9", python("3.9.1"), severity="fault"),
    Graded("version.python", "3.11", python("3.11.0"), "pass"),
    Graded("version.python", "no number", python("unknown"), "pass"),
    Graded("version.python", "not known", one(), "skipped"),
    Graded(BROKEN, "withdrawn", one("2.4.39"), says="withdrawn", severity="fault"),
    Graded(BROKEN, "the one after", one("2.4.40", packages={"mcp": "1.26.0"}), "pass"),
    Graded(BROKEN, "mcp 2 beside 2.4.40", one("2.4.40", packages={"mcp": "2.0.1"}), says="mcp 2.0.1", severity="fault"),
    Graded(BROKEN, "mcp 2 beside 2.4.41", one("2.4.41", packages={"mcp": "2.0.1"}), "pass"),
    Graded(
        BROKEN,
        "how a venv is upgraded",
        one("2.4.38", SCRIPT, interpreter=Interpreter(python=Path("/my venv/bin/python"))),
        says="'/my venv/bin/python' -m pip install --upgrade cpersona",
    ),
    Graded(BROKEN, "how an image is", one("2.4.38", DOCKER), says="docker pull ghcr.io/x/cpersona:2.6.14"),
    Graded(BROKEN, "a place nobody knows", one("2.4.38", SCRIPT), says="upgrade cpersona in its environment"),
    Graded(
        "version.beside-cembedding",
        "holds it back",
        one("2.6.10", SCRIPT, packages={"cembedding": "0.9.1", "mcp": "1.26.0"}),
        says=("cembedding 0.9.1", "mcp 1.26.0"),
        severity="warning",
    ),
    Graded("version.beside-cembedding", "without harm", one(packages={"cembedding": "0.9.1"}), "pass"),
    Graded("version.beside-cembedding", "apart", one("2.6.10"), "pass"),
    Graded("version.not-restarted", "old process", live(99.0, 100.0), says="process 7", severity="warning"),
    Graded("version.not-restarted", "new process", live(101.0, 100.0), "pass"),
    Graded("version.not-restarted", "start not told", live(None, 100.0), "pass"),
    Graded("version.not-restarted", "install not told", live(99.0, None), "skipped"),
    Graded("version.not-restarted", "processes not told", live(99.0, 100.0, known=False), "skipped"),
    Graded(
        "version.migration",
        "2.5 data, 2.6 server",
        database(13),
        says=("schema 13", "schema 21", f"sqlite3 {DB} '.backup \"{DB}.before-2.6\"'"),
        severity="warning",
    ),
    Graded("version.migration", "2.5 server", database(13, "2.5.12"), "pass"),
    Graded("version.migration", "the first 2.6", database(13, "2.6.0")),
    Graded("version.migration", "already 2.6", database(17), "pass"),
    Graded("version.migration", "no rows to lose", database(13, counts={"memories": 0}), "pass"),
    Graded("version.migration", "not told", database(13, None), "pass"),
    Graded("version.migration", "no schema", database(None), "pass"),
    Graded("version.migration", "a mix is another trap's", database(13, "2.5.12", {0: "2.6.14"}), "pass"),
    Graded(
        "version.script-owner",
        "another distribution",
        one(launch=SCRIPT, script_owner="other", site=VENV),
        says="'other'",
        severity="fault",
    ),
    Graded("version.script-owner", "the server", one(launch=SCRIPT, script_owner="cpersona"), "pass"),
    Graded("version.script-owner", "this tool hands on", one(launch=SCRIPT, script_owner="cpersona-cli"), "pass"),
    Graded("version.script-owner", "uvx", one(script_owner="other"), "pass"),
    Graded(
        "version.update-check",
        "garbage",
        facts({**ENV, "CPERSONA_UPDATE_CHECK": "sometimes"}),
        says="counts as off",
        severity="hint",
    ),
    Graded("version.update-check", "off on purpose", facts({**ENV, "CPERSONA_UPDATE_CHECK": "false"}), "pass"),
    Graded("version.update-check", "unset", facts(ENV), "pass"),
    Graded(
        "version.update-check",
        "a release without it",
        facts({**ENV, "CPERSONA_UPDATE_CHECK": "x"}, version="2.4.41"),
        "pass",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_version(case: Graded) -> None:
    case.check()
