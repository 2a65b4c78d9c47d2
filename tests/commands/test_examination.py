from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
from support.stores import run_sql, schema_13

from cpersona_cli.commands import examination
from cpersona_cli.commands.errors import CommandError, UsageError
from cpersona_cli.commands.examination import Request, examine
from cpersona_cli.commands.preferences import resolve
from cpersona_cli.install.machine import Machine
from cpersona_cli.record import replace
from cpersona_cli.report.exits import Exit
from cpersona_cli.traps.gather import Selection, gather
from cpersona_cli.traps.model import Facts, Needs
from cpersona_cli.traps.registry import ALL
from cpersona_cli.traps.run import State

TODAY = dt.date(2026, 5, 1)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with one registration that has a mode and no URL."""
    home = tmp_path / "home"
    home.mkdir()
    entry = {"command": "cpersona", "env": {"CPERSONA_EMBEDDING_MODE": "http"}}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"cpersona": entry}}))
    return Machine(system="linux", home=home, cwd=home, root=tmp_path, env={"HOME": str(home)})


def request_for(tmp_path: Path, *only: str, **flags: object) -> Request:
    config = tmp_path / "config.toml"
    config.touch()
    return Request(selection=Selection(), preferences=resolve(flags, {}, config), only=only)


def test_today_decides_about_a_waiver(tmp_path: Path, machine: Machine) -> None:
    file = tmp_path / "w.toml"
    file.write_text('[[waiver]]\nid = "names.url-missing"\nreason = "known"\nexpires = 2026-05-01\n')
    request = request_for(tmp_path, "names.url-missing", waivers=str(file))
    assert examine(request, machine, TODAY).exit_code is Exit.OK
    late = examine(request, machine, TODAY + dt.timedelta(days=1))
    assert late.exit_code is Exit.NEGATIVE
    assert [finding.trap for finding in late.findings] == ["names.url-missing", "tool.waiver-expired"]
    assert examine(request_for(tmp_path, "names.url-missing"), machine, TODAY).counts["waived"] == 0


def test_every_trap_is_accounted_for_with_and_without_waivers(tmp_path: Path, machine: Machine) -> None:
    file = tmp_path / "w.toml"
    file.write_text("")
    for waivers in (None, str(file)):
        report = examine(request_for(tmp_path, waivers=waivers), machine, TODAY)
        assert sorted(check.trap.id for check in report.checks) == sorted(trap.id for trap in ALL)
        own = {check.state for check in report.checks if check.trap.group == "tool"}
        assert own == {State.SKIPPED if waivers is None else State.PASS}


def test_what_was_not_done_in_time_is_no_pass(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:

    def late(selection: Selection, of: Machine, deadline: float) -> Facts:
        assert deadline == 3.0
        return replace(gather(selection, of, deadline), unfinished=("Codex (user): not done in time",))

    monkeypatch.setattr(examination, "gather", late)
    report = examine(request_for(tmp_path, "names.mode-unsupported", timeout=3), machine, TODAY)
    assert report.exit_code is Exit.NO_VERDICT
    assert report.unsettled == ["Codex (user): not done in time"]
    assert report.next_command == "cpersona-cli doctor --timeout 60"


def test_offline_skips_what_needs_the_endpoint(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    contact = replace(ALL[0], id="network.contact", needs=Needs.ENDPOINT)
    monkeypatch.setattr(examination, "ALL", (contact,))
    (check,) = examine(request_for(tmp_path, offline=True), machine, TODAY).checks
    assert (check.state, check.reason) == (State.SKIPPED, "not contacted (--offline)")
    (check,) = examine(request_for(tmp_path), machine, TODAY).checks
    assert (check.state, check.reason) == (State.SKIPPED, "no embedding endpoint that can be called")


@pytest.mark.parametrize(
    ("selection", "command"),
    [
        (Selection(), "cpersona-cli doctor"),
        (Selection(clients=("codex", "zed")), "cpersona-cli doctor --client codex --client zed"),
        (Selection(registrations=("a b.json:x",)), "cpersona-cli doctor --registration 'a b.json:x'"),
        (Selection(env=True, before_first_start=True), "cpersona-cli doctor --env --pre"),
        (Selection(db=Path("my db")), "cpersona-cli doctor --db 'my db'"),
    ],
)
def test_the_run_can_be_repeated(selection: Selection, command: str) -> None:
    assert examination._rerun(selection) == command


def test_the_next_command_for_what_could_not_be_told(tmp_path: Path, machine: Machine) -> None:
    request = replace(request_for(tmp_path, "names.mode-none"), require=("names.url-missing",))
    report = examine(request, machine, TODAY)
    assert report.unmet == ["names.url-missing"]
    assert report.next_command == "cpersona-cli traps explain names.url-missing"


def test_the_command_that_mends_the_worst_comes_next(tmp_path: Path, machine: Machine) -> None:
    database = schema_13(tmp_path / "old.db", dim=8)
    run_sql(database, "UPDATE memories SET embedding = zeroblob(32)")
    selection = Selection(db=database)
    report = examine(replace(request_for(tmp_path, "vectors.zero"), selection=selection), machine, TODAY)
    assert report.next_command == f"cpersona-cli reembed --db {database} --only damaged"


def test_a_pass_needs_no_next_command(tmp_path: Path, machine: Machine) -> None:
    report = examine(request_for(tmp_path, "names.mode-unsupported"), machine, TODAY)
    assert (report.exit_code, report.next_command) == (Exit.OK, "")


def test_a_client_without_a_registration(tmp_path: Path, machine: Machine) -> None:
    report = examine(replace(request_for(tmp_path), selection=Selection(clients=("codex",))), machine, TODAY)
    assert report.exit_code is Exit.NO_VERDICT
    assert report.unsettled == ["no registration of CPersona was found for codex"]
    assert all("(codex)" in place for place in report.looked)


def test_a_broken_file_is_named_among_the_places(tmp_path: Path, machine: Machine) -> None:
    (machine.home / ".claude.json").write_text("{")
    report = examine(request_for(tmp_path), machine, TODAY)
    (line,) = [place for place in report.looked if ".claude.json (claude-code)" in place]
    assert ": broken; " in line


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(), "the working directory does not exist"),
        (RuntimeError(), "the home directory cannot be told"),
    ],
)
def test_a_machine_that_cannot_be_told(
    tmp_path: Path, error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Machine:
        raise error

    monkeypatch.setattr(examination, "this_machine", fail)
    with pytest.raises(CommandError, match=said):
        examine(request_for(tmp_path), today=TODAY)


def test_what_does_not_exist_is_a_usage_error(tmp_path: Path, machine: Machine) -> None:
    selection = Selection(registrations=(str(tmp_path / "gone.json"),))
    with pytest.raises(UsageError, match="there is no file"):
        examine(replace(request_for(tmp_path), selection=selection), machine, TODAY)


def test_what_there_was_no_time_for_asks_for_more_time(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = schema_13(tmp_path / "c.db")

    def hurried(selection: Selection, machine: Machine, deadline: float) -> Facts:
        facts = gather(selection, machine, deadline)
        (one,) = facts.databases
        reading = replace(one.reading, integrity="partial", unchecked=("memories",))
        return replace(facts, databases=(replace(one, reading=reading),))

    monkeypatch.setattr(examination, "gather", hurried)
    request = replace(request_for(tmp_path, "database.integrity-unknown"), selection=Selection(db=database))
    report = examine(replace(request, preferences=resolve({"timeout": 100}, {}, tmp_path / "config.toml")), machine)
    assert report.exit_code is Exit.NO_VERDICT
    assert report.next_command == f"cpersona-cli doctor --db {database} --timeout 300"
