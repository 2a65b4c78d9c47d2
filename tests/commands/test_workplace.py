"""The one database that a writing command works on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.stores import schema_13

from cpersona_cli.commands import workplace
from cpersona_cli.commands.errors import CommandError, UsageError
from cpersona_cli.commands.gate import IDS, gate
from cpersona_cli.commands.workplace import asking, find
from cpersona_cli.install.machine import Machine
from cpersona_cli.traps.gather import Selection
from cpersona_cli.traps.registry import ALL

HTTP = {"CPERSONA_EMBEDDING_MODE": "http"}
COMMAND = "cpersona-cli reembed"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    home = tmp_path / "home"
    home.mkdir()
    return Machine(system="linux", home=home, cwd=home, env={})


Register = Callable[..., Path]


@pytest.fixture
def register(machine: Machine) -> Register:
    def write(file: str, database: Path, url: str = "http://127.0.0.1:9/embed") -> Path:
        path = machine.home / file
        path.parent.mkdir(parents=True, exist_ok=True)
        env = {**HTTP, "CPERSONA_DB_PATH": str(database), "CPERSONA_EMBEDDING_URL": url}
        path.write_text(json.dumps({"mcpServers": {"cpersona": {"command": "cpersona", "env": env}}}))
        return path

    return write


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return schema_13(tmp_path / "one" / "m.db")


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return schema_13(tmp_path / "two" / "m.db", rows=3)


def test_the_one_that_all_registrations_open(machine: Machine, register: Register, one: Path) -> None:
    register(".claude.json", one)
    register(".cursor/mcp.json", one)
    place = find(Selection(), machine, COMMAND)
    assert place.database.path == one
    assert [target.registration.label for target in place.everyone] == ["Claude Code (user)", "Cursor (user)"]
    assert [goal.endpoint.url for goal in place.goals()] == ["http://127.0.0.1:9/embed"]


def test_a_file_is_looked_up_among_the_registrations(
    machine: Machine, register: Register, one: Path, two: Path, tmp_path: Path
) -> None:
    register(".claude.json", one)
    register(".cursor/mcp.json", two)
    link = tmp_path / "link.db"
    link.symlink_to(two)
    place = find(Selection(db=link), machine, COMMAND)
    assert [target.registration.label for target in place.targets] == ["Cursor (user)"]


def test_a_file_that_nobody_opens(machine: Machine, register: Register, one: Path, two: Path) -> None:
    register(".claude.json", one)
    place = find(Selection(db=two), machine, COMMAND)
    assert (place.database.path, place.targets, place.goals()) == (two, (), [])


def test_others_that_open_it_are_known(machine: Machine, register: Register, one: Path) -> None:
    register(".claude.json", one)
    register(".cursor/mcp.json", one, "http://127.0.0.1:10/embed")
    place = find(Selection(clients=("cursor",)), machine, COMMAND)
    assert [target.registration.label for target in place.targets] == ["Cursor (user)"]
    assert [target.registration.label for target in place.others] == ["Claude Code (user)"] * len(place.others)
    assert [target.registration.label for target in place.everyone] == ["Cursor (user)", "Claude Code (user)"]


def test_several_are_refused_and_listed(machine: Machine, register: Register, one: Path, two: Path) -> None:
    register(".claude.json", one)
    register(".cursor/mcp.json", two)
    with pytest.raises(UsageError) as error:
        find(Selection(), machine, COMMAND)
    sentence = str(error.value)
    assert sentence.startswith("2 databases are in question: ")
    assert f"{one} (12 memories; Claude Code (user))" in sentence
    assert f"{two} (3 memories; Cursor (user))" in sentence
    assert sentence.endswith(f"name one: cpersona-cli reembed --db {one}")


@pytest.mark.parametrize("answer", ["2", "", "0", "3", "two", None])
def test_several_are_asked_for_where_somebody_is_there(
    machine: Machine, register: Register, one: Path, two: Path, answer: str | None
) -> None:
    register(".claude.json", one)
    register(".cursor/mcp.json", two)
    asked: list[str] = []

    def ask(question: str) -> str | None:
        asked.append(question)
        return answer

    if answer == "2":
        assert find(Selection(), machine, COMMAND, ask).database.path == two
    else:
        with pytest.raises(UsageError):
            find(Selection(), machine, COMMAND, ask)
    (question,) = asked
    assert f"  1  {one} (12 memories; Claude Code (user))" in question
    assert question.endswith("Type its number:")


def test_nothing_to_work_on(machine: Machine, register: Register, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no registration of CPersona was found; name the database with --db"):
        find(Selection(), machine, COMMAND)
    with pytest.raises(CommandError, match=r"m\.db: there is no such database"):
        find(Selection(db=tmp_path / "m.db"), machine, COMMAND)
    register(".claude.json", tmp_path / "m.db")
    with pytest.raises(CommandError, match=r"m\.db: there is no such database"):
        find(Selection(), machine, COMMAND)
    with pytest.raises(UsageError):
        find(Selection(registrations=("absent.json",)), machine, COMMAND)


def test_a_database_in_memory_is_none(machine: Machine, register: Register) -> None:
    register(".claude.json", Path(":memory:"))
    with pytest.raises(CommandError):
        find(Selection(), machine, COMMAND)


def test_who_cannot_be_asked_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workplace, "terminal", lambda _stream: False)
    assert asking() is None
    monkeypatch.setattr(workplace, "terminal", lambda _stream: True)
    assert asking() is not None


# --- the gate


def test_every_trap_of_the_gate_exists() -> None:
    assert {trap.id for trap in ALL} >= IDS


def test_clients_of_one_database_with_two_endpoints_stop_a_rebuild(
    machine: Machine, register: Register, one: Path
) -> None:
    register(".claude.json", one)
    register(".cursor/mcp.json", one, "http://127.0.0.1:10/embed")
    place = find(Selection(), machine, COMMAND)
    _, findings = gate(place, named=False)
    assert [finding.trap for finding in findings] == ["database.urls-differ"]
    checks, findings = gate(place, named=True)
    assert findings == []
    assert {check.reason for check in checks} >= {"the endpoint was named (--url)"}


def test_a_healthy_store_passes(machine: Machine, register: Register, one: Path) -> None:
    register(".claude.json", one)
    checks, findings = gate(find(Selection(), machine, COMMAND), named=False)
    assert (len(checks), findings) == (len(IDS), [])


def test_a_damaged_file_does_not(machine: Machine, one: Path) -> None:
    one.write_bytes(one.read_bytes()[:5000] + b"\xff" * 4000)
    _, findings = gate(find(Selection(db=one), machine, COMMAND), named=True)
    assert [finding.trap for finding in findings] == ["database.corrupt"]
