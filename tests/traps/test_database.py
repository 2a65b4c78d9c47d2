"""Registrations held against each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.traps import MACHINE, Case, docker, facts, outcome, reading, registration
from support.variations import severities

from cpersona_cli.install.model import Registration
from cpersona_cli.record import replace
from cpersona_cli.store.reading import Reading
from cpersona_cli.traps.model import Database, Facts

DB = "/home/u/cpersona.db"
OTHER = "/home/u/other.db"
URL = "http://127.0.0.1:8401/embed"
HTTP = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": URL}
API = {"CPERSONA_EMBEDDING_MODE": "api", "CPERSONA_EMBEDDING_API_KEY": "k"}


def pair(
    first: dict[str, str], second: dict[str, str], *, shell: dict[str, str] | None = None, client: str = "codex"
) -> Facts:
    """Claude Code and another client on one database."""
    other = registration({"CPERSONA_DB_PATH": DB, **second}, client=client)
    machine = replace(MACHINE, env={**MACHINE.env, **(shell or {})})
    return facts({"CPERSONA_DB_PATH": DB, **first}, others=[other], reading=reading(DB), machine=machine)


def apart(*others: Registration, readings: tuple[Reading, ...] = (), **fields: object) -> Facts:
    return facts({"CPERSONA_DB_PATH": DB}, others=others, reading=readings, **fields)  # type: ignore[arg-type]


def at(path: str, **fields: object) -> Registration:
    return registration({"CPERSONA_DB_PATH": path}, client="codex", **fields)  # type: ignore[arg-type]


def spelled(second: str) -> Facts:
    """Two registrations of one file, the second by ``second``."""
    known = apart(at(second))
    return replace(known, databases=(Database(path=Path(DB), reading=reading(DB), targets=known.targets),))


SEVERAL, SPELLED = "database.several", "database.spellings-differ"
MODES, URLS = "database.modes-differ", "database.urls-differ"
MODELS, LABELS = "database.models-differ", "database.labels-differ"
FTS, SHELL = "database.text-search-differs", "database.shell-differs"

READINGS = (reading(DB, counts={"memories": 9}), reading(OTHER, counts={"memories": 200}))

CASES = (
    Case(
        SEVERAL,
        "two databases",
        apart(at(OTHER), readings=READINGS),
        says=(
            f"{DB} (9 memories: Claude Code (user) (/home/u/.claude.json:6))",
            f"{OTHER} (200 memories: Codex (user)",
            f'"CPERSONA_DB_PATH": "{OTHER}"',
            "export_memories",
        ),
    ),
    Case(SEVERAL, "not looked at", apart(at(OTHER)), says="not looked at"),
    Case(SEVERAL, "one", apart(at(DB)), "pass"),
    Case(SEVERAL, "one file by two names", spelled("/home/u/link.db"), "pass"),
    Case(SEVERAL, "one registration", facts({"CPERSONA_DB_PATH": DB}), "pass"),
    Case(
        SEVERAL,
        "the variable comes from the shell",
        facts({}, others=[at(OTHER)], machine=replace(MACHINE, env={**MACHINE.env, "CPERSONA_DB_PATH": DB})),
        says="depends on how the clients were started",
    ),
    Case(SPELLED, "a link", spelled("/home/u/link.db"), says=("/home/u/link.db: Codex", f'CPERSONA_DB_PATH = "{DB}"')),
    Case(SPELLED, "one spelling", spelled(DB), "pass"),
    Case(
        SPELLED,
        "a container's name for it",
        replace(
            known := apart(
                registration(launch=docker({"CPERSONA_DB_PATH": "/data/cpersona.db"}, mounts=(("/home/u", "/data"),)))
            ),
            databases=(Database(path=Path(DB), reading=reading(DB), targets=known.targets),),
        ),
        "pass",
    ),
    Case(
        MODES,
        "none and http",
        pair({}, HTTP),
        says=("none: Claude Code", "http: Codex", '"CPERSONA_EMBEDDING_MODE": "http"'),
    ),
    Case(MODES, "http and api", pair(HTTP, API)),
    Case(MODES, "the same", pair(HTTP, HTTP), "pass"),
    Case(MODES, "one cannot start", pair({"CPERSONA_EMBEDDING_MODE": "HTTP"}, HTTP), "pass"),
    Case(MODES, "under two names", pair({"EMBEDDING_MODE": "http", "EMBEDDING_HTTP_URL": URL}, HTTP), "pass"),
    Case(MODES, "only with the shell", pair({}, {}, shell=HTTP), says="when they start from a shell"),
    Case(MODES, "only without the shell", pair({}, HTTP, shell=HTTP), says="without this shell's variables"),
    Case(MODES, "with and without", pair({}, HTTP, shell={"X": "1"}), count=1),
    Case(
        URLS,
        "another host",
        pair(HTTP, {**HTTP, "CPERSONA_EMBEDDING_URL": "http://nas:8401/embed?k=secret"}),
        says="nas",
    ),
    Case(URLS, "another port", pair(HTTP, {**HTTP, "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8500/embed"})),
    Case(
        URLS,
        "two names of this computer",
        pair(HTTP, {**HTTP, "CPERSONA_EMBEDDING_URL": "http://localhost:8401/embed/"}),
        "pass",
    ),
    Case(URLS, "another key", pair(HTTP, {**HTTP, "CPERSONA_EMBEDDING_URL": f"{URL}?k=abcd"}), "pass"),
    Case(URLS, "no URL", pair(HTTP, {"CPERSONA_EMBEDDING_MODE": "http"}), "pass"),
    Case(URLS, "a broken URL", pair(HTTP, {**HTTP, "CPERSONA_EMBEDDING_URL": "http://h:84O1/embed"}), says="84O1"),
    Case(
        URLS,
        "two APIs",
        pair(API, {**API, "CPERSONA_EMBEDDING_API_URL": "http://h/v1/embeddings"}),
        says="api.openai.com",
    ),
    Case(MODELS, "two", pair(API, {**API, "CPERSONA_EMBEDDING_MODEL": "bge-m3"}), says="text-embedding-3-small"),
    Case(
        MODELS, "the default by name", pair(API, {**API, "CPERSONA_EMBEDDING_MODEL": "text-embedding-3-small"}), "pass"
    ),
    Case(MODELS, "http", pair(HTTP, {**HTTP, "CPERSONA_EMBEDDING_MODEL": "bge-m3"}), "pass"),
    Case(LABELS, "one and none", pair(HTTP, {**HTTP, "CPERSONA_EMBEDDING_MODEL": "bge-m3"}), says="not set"),
    Case(LABELS, "the same", pair(HTTP, HTTP), "pass"),
    Case(LABELS, "api", pair(API, {**API, "CPERSONA_EMBEDDING_MODEL": "bge-m3"}), "pass"),
    Case(FTS, "one off", pair({"CPERSONA_FTS_ENABLED": "false"}, {}), says='"CPERSONA_FTS_ENABLED": "true"'),
    Case(FTS, "both off", pair({"CPERSONA_FTS_ENABLED": "off"}, {"CPERSONA_FTS_ENABLED": "0"}), "pass"),
    Case(
        SHELL,
        "another",
        pair({}, {}, shell={"CPERSONA_DB_PATH": "c.db"}),
        says=("/home/u/work/c.db in this shell", f"{DB} (0 memories)", "unset CPERSONA_DB_PATH"),
    ),
    Case(SHELL, "the same", pair({}, {}, shell={"CPERSONA_DB_PATH": DB}), "pass"),
    Case(SHELL, "none", pair({}, {}), "pass"),
    Case(
        SHELL, "no clients", facts({}, client="env", machine=replace(MACHINE, env={"CPERSONA_DB_PATH": OTHER})), "pass"
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_comparisons(case: Case) -> None:
    for finding in case.check():
        assert "secret" not in repr(finding)


def test_separate_projects_may_want_separate_memories() -> None:
    known = apart(at(OTHER, project=Path("/proj/y")), project=Path("/proj/x"))
    assert severities(outcome(SEVERAL, known)[1]) == ["hint"]
    assert severities(outcome(SEVERAL, apart(at(OTHER)))[1]) == ["warning"]


def test_every_registration_and_value_is_evidence() -> None:
    _, (finding,) = outcome(MODES, pair({}, HTTP))
    assert [value for _, value in finding.evidence] == ["none", "http"]
    assert finding.place == registration(client="claude-code").place
