"""The access table, the operating context and the alias ledger, each read as the server would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cpersona_cli.install.files.bounded import LIMIT, line_of, read_bounded
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import DatabasePath, Environment, Launch, LaunchKind, Place, Registration, Value
from cpersona_cli.install.settings.effective import effective
from cpersona_cli.install.sidefiles import SideFiles, side_files
from cpersona_cli.record import replace

PLACE = Place(words="a test")
ENTRY = Registration(client="env", client_title="This process", scope="process", name="env", place=PLACE)


def read(root: Path, env: dict[str, str], entry: Registration = ENTRY, database: str = "c.db") -> SideFiles:
    """The side files of a server started with ``env``, its home and its database below ``root``."""
    values = {name: Value(text, PLACE, "env block", text) for name, text in env.items()}
    environment = Environment(base="process", values=values)
    path = root / database if database else None
    return side_files(
        entry,
        environment,
        effective(environment, "2.6.14"),
        DatabasePath(text=database, place=PLACE, path=path, why="" if path else "inside a container"),
        Machine(system="linux", home=root, cwd=root, env=env),
    )


def acl(root: Path, table: object, **env: str) -> SideFiles:
    path = root / "acl.json"
    path.write_text(table if isinstance(table, str) else json.dumps(table, indent=1))
    return read(root, {"CPERSONA_ACL_FILE": str(path), **env})


def client(**fields: object) -> dict[str, object]:
    return {"clients": [{"client_id": "laptop", "token": "secret-of-the-laptop", "grants": {"*": "read"}, **fields}]}


def test_a_sound_access_table(tmp_path: Path) -> None:
    table = {
        "clients": [
            {"client_id": "local", "grants": {"claude-code": "read-write"}},
            {"client_id": "laptop", "token": "${LAPTOP_TOKEN}", "grants": {"*": "read"}},
            {"client_id": "people", "token": None, "grants": {"@me": "read-write"}, "per_subject": True},
        ]
    }
    found = acl(tmp_path, table, LAPTOP_TOKEN="x").acl
    assert found is not None
    assert (found.state, found.problem) == ("read", "")
    local, laptop, people = found.clients
    assert local.agents == {"claude-code": "read-write"}
    assert (laptop.variable, laptop.missing) == ("LAPTOP_TOKEN", False)
    assert people.per_subject


REFUSED_TABLES: list[tuple[object, str, int | None]] = [
    ("{\n  nonsense", "not valid JSON", 2),
    ("[" * 100_000, "too deeply", None),
    (f'{{"clients": {"1" * 5000}}}', "too long", None),
    ([], "top level", None),
    ({"clients": [], "more": 1}, "top level", None),
    ({"clients": []}, "at least one client", 2),
    ({"clients": ["x"]}, "not an object", None),
    (client(extra=1), "unknown key 'extra'", 9),
    (client(client_id=""), "needs a client_id", None),
    (client(grants=None), "needs grants", 4),
    (client(grants={"a": "write"}), "permission of 'a'", 4),
    (client(grants={"": "read"}), "permission of ''", 4),
    (client(grants={"a": ["read"]}), "permission of 'a'", 4),
    (client(per_subject="yes"), "true or false", 4),
    (client(per_subject=True), "per_subject needs", 4),
    (client(token=""), "string that is not empty", 4),
    (client(token="a${B}"), "whole reference", 4),
    (client(token="line\n"), "no HTTP header", 4),
    (client(client_id="local"), "must not carry a token", 4),
    ({"clients": [{"client_id": "a", "grants": {}}]}, "needs a token", 4),
    ({"clients": [{"client_id": "local", "grants": {}}] * 2}, "stands twice", 4),
]


@pytest.mark.parametrize(("table", "problem", "line"), REFUSED_TABLES)
def test_what_the_server_refuses_in_an_access_table(
    tmp_path: Path, table: object, problem: str, line: int | None
) -> None:
    found = acl(tmp_path, table).acl
    assert found is not None
    assert found.state == "broken"
    assert problem in found.problem
    assert "secret-of-the-laptop" not in repr(found)
    assert (found.line, found.at.line) == (line, line)


def test_a_token_variable_that_is_not_set(tmp_path: Path) -> None:
    found = acl(tmp_path, client(token="${NOT_HERE}")).acl
    assert found is not None
    assert found.clients[0].missing


@pytest.mark.parametrize(
    ("text", "entry", "state", "problem"),
    [
        ("/nowhere/acl.json", ENTRY, "absent", ""),
        ("acl.json", ENTRY, "unknown", "relative"),
        (
            "/acl.json",
            replace(ENTRY, launch=Launch(kind=LaunchKind.DOCKER, inside="container")),
            "unknown",
            "container",
        ),
        ("/", ENTRY, "unreadable", "not a regular file"),
        ("/nul\0name", ENTRY, "unreadable", ""),
    ],
)
def test_where_an_access_table_cannot_be_read(
    tmp_path: Path, text: str, entry: Registration, state: str, problem: str
) -> None:
    found = read(tmp_path, {"CPERSONA_ACL_FILE": text}, entry).acl
    assert found is not None
    assert found.state == state
    assert problem in found.problem
    assert state == "unreadable" or found.at == PLACE


def test_a_path_that_was_not_expanded_is_unknown(tmp_path: Path) -> None:
    value = Value("${NOT_SET}/acl.json", PLACE, "env block", "${NOT_SET}/acl.json", "NOT_SET is not set")
    environment = Environment(base="process", values={"CPERSONA_ACL_FILE": value})
    settings = effective(environment, "2.6.14")
    database = DatabasePath(text="", place=PLACE, path=None)
    here = Machine(system="linux", home=tmp_path, cwd=tmp_path)
    found = side_files(ENTRY, environment, settings, database, here).acl
    assert found is not None
    assert (found.state, found.problem) == ("unknown", "NOT_SET is not set")


def test_a_relative_path_counts_from_the_folder_of_the_entry(tmp_path: Path) -> None:
    (tmp_path / "acl.json").write_text(json.dumps(client()))
    found = read(tmp_path, {"CPERSONA_ACL_FILE": "acl.json"}, replace(ENTRY, cwd=str(tmp_path))).acl
    assert found is not None
    assert found.path == tmp_path / "acl.json"
    assert found.state == "read"


def test_nothing_set_is_nothing_read(tmp_path: Path) -> None:
    assert read(tmp_path, {}) == SideFiles()


def context(root: Path, text: str | None, **env: str) -> SideFiles:
    if text is not None:
        (root / ".cpersona").mkdir()
        (root / ".cpersona" / "operating-context.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    return read(root, env)


SOUND = """version = 1
context_revision = "7"
[instructions]
summary = "Be kind."
[registry]
project_ids = ["work"]
enforce = "reject"
[defaults]
"claude-code" = "work"
[[doctrine]]
name = "one"
body = "text"
"""


def test_a_sound_operating_context(tmp_path: Path) -> None:
    found = context(tmp_path, SOUND).context
    assert found is not None
    assert (found.state, found.problem, found.summary) == ("read", "", 8)
    assert found.mtime is not None


REFUSED_CONTEXTS: list[tuple[str, str, int | None]] = [
    ("version = 1\nnonsense\n", "not valid TOML", 2),
    ("version = 2", "version must be 1", 1),
    ("", "version must be 1", None),
    ("version = 1\ninstructions = 5", "[instructions] must be a table", 2),
    ("version = 1\ncontext_revision = 5", "context_revision", 2),
    ("version = 1\n[instructions]\nsummary = 5", "summary must be a string", 3),
    ("version = 1\n[registry]\nproject_ids = [1]", "list of strings", 3),
    ("version = 1\n[registry]\nenforce = 'maybe'", "registry.enforce", 3),
    ("version = 1\n[registry]\nenforce = ['warn']", "registry.enforce", 3),
    ("version = 1\n[defaults]\na = 1", "one project id", 2),
    ("version = 1\ndoctrine = 5", "array of tables", 2),
    ("version = 1\n[[doctrine]]\nname = 'a'", "a name and a body", 2),
    ("version = 1\n[[doctrine]]\nname='a'\nbody=''\n[[doctrine]]\nname='a'\nbody=''", "are named 'a'", 2),
    ("version = 1 # \udcff", "not UTF-8", None),
]


@pytest.mark.parametrize(("text", "problem", "line"), REFUSED_CONTEXTS)
def test_what_the_server_refuses_in_an_operating_context(
    tmp_path: Path, text: str, problem: str, line: int | None
) -> None:
    found = context(tmp_path, text).context
    assert found is not None
    assert found.state == "broken"
    assert problem in found.problem
    assert found.line == line


@pytest.mark.parametrize(
    ("env", "state"),
    [
        ({}, None),
        ({"CPERSONA_OPERATING_CONTEXT": "OFF", "CPERSONA_OPERATING_CONTEXT_PATH": "/x.toml"}, None),
        ({"CPERSONA_OPERATING_CONTEXT_PATH": "~/missing.toml"}, "absent"),
        ({"CPERSONA_OPERATING_CONTEXT_PATH": "relative.toml"}, "unknown"),
    ],
)
def test_an_operating_context_that_is_not_there(tmp_path: Path, env: dict[str, str], state: str | None) -> None:
    found = context(tmp_path, None, **env).context
    assert (None if found is None else found.state) == state


def test_a_container_has_no_operating_context_of_this_machine(tmp_path: Path) -> None:
    context(tmp_path, SOUND)
    entry = replace(ENTRY, launch=Launch(kind=LaunchKind.DOCKER, inside="container"))
    assert read(tmp_path, {}, entry).context is None


SHARED: dict[str, object] = {"clients": [{"client_id": "people", "token": None, "grants": {}, "per_subject": True}]}


LEDGERS: list[tuple[str | None, str, str]] = [
    (None, "absent", ""),
    ('{"version": 1, "aliases": {"https://id": {"sub": "u-12ab"}}}', "read", ""),
    ("{\n,", "broken", "not valid JSON"),
    ("[" * 100_000, "broken", "too deeply"),
    ("[]", "broken", "expected"),
    ('{"version": 2, "aliases": {}}', "broken", "expected"),
    ('{"version": 1, "aliases": {"": {}}}', "broken", "each issuer"),
    ('{"version": 1, "aliases": {"i": []}}', "broken", "each issuer"),
    ('{"version": 1, "aliases": {"i": {"s": "claude"}}}', "broken", "hexadecimal"),
    ('{"version": 1, "aliases": {"i": {"s": 5}}}', "broken", "hexadecimal"),
]


@pytest.mark.parametrize(("text", "state", "problem"), LEDGERS)
def test_the_ledger_stands_beside_the_database(tmp_path: Path, text: str | None, state: str, problem: str) -> None:
    if text is not None:
        (tmp_path / "alias_ledger.json").write_text(text)
    ledger = acl(tmp_path, SHARED).ledger
    assert ledger is not None
    assert (ledger.path, ledger.state) == (tmp_path / "alias_ledger.json", state)
    assert problem in ledger.problem


def test_the_ledger_may_stand_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "l.json").write_text('{"version": 1, "aliases": {}}')
    ledger = acl(tmp_path, SHARED, CPERSONA_ALIAS_LEDGER_FILE=str(tmp_path / "l.json")).ledger
    assert ledger is not None
    assert (ledger.path, ledger.state) == (tmp_path / "l.json", "read")


def test_the_ledger_of_an_unknown_database_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "acl.json").write_text(json.dumps(SHARED))
    ledger = read(tmp_path, {"CPERSONA_ACL_FILE": str(tmp_path / "acl.json")}, database="").ledger
    assert ledger is not None
    assert (ledger.state, ledger.problem) == ("unknown", "inside a container")


def test_reading_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.write_bytes(b"a" * (LIMIT + 10))
    content = read_bounded(path)
    assert len(content.text) == LIMIT
    assert "the rest was not read" in content.problem
    assert content.size == LIMIT + 10


def test_lines_are_counted_from_one() -> None:
    assert [line_of("a\nb\nc", part) for part in ("a", "c", "d", "")] == [1, 3, None, None]


ASK = """
import sys
from pathlib import Path
from cpersona import acl, aliases, operating_context
readers = {
    "acl": acl.load_config,
    "toml": lambda path: operating_context._parse(Path(path).read_bytes()),
    "ledger": aliases.AliasLedger,
}
for path in sys.argv[1:]:
    try:
        readers[Path(path).suffix[1:]](path)
        print("accepted")
    except Exception:
        print("refused")
"""


@pytest.mark.server
def test_the_real_server_refuses_the_same(tmp_path: Path) -> None:
    files: list[tuple[Path, str]] = []
    rows = [("acl", t if isinstance(t, str) else json.dumps(t), "refused") for t, _, _ in REFUSED_TABLES]
    rows += [("toml", text, "refused") for text, _, _ in REFUSED_CONTEXTS]
    rows += [("ledger", t, "accepted" if state == "read" else "refused") for t, state, _ in LEDGERS if t is not None]
    rows += [("toml", SOUND, "accepted"), ("acl", json.dumps(client()), "accepted")]
    for number, (kind, text, verdict) in enumerate(rows):
        path = tmp_path / f"{number}.{kind}"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        files.append((path, verdict))
    command = [sys.executable, "-c", ASK, *(str(path) for path, _ in files)]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    answer = subprocess.run(command, env=env, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)
    verdicts = answer.stdout.split()
    assert [(rows[i][1][:80], said) for i, said in enumerate(verdicts) if said != files[i][1]] == []
    assert len(verdicts) == len(files)
