"""What the facts are gathered from, and how the time is shared."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.stores import run_sql, schema_13
from support.traps import registration, targets

from cpersona_cli.install.machine import Machine
from cpersona_cli.record import replace
from cpersona_cli.store.audit_model import Wants
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.traps import gather as gathering
from cpersona_cli.traps.gather import Selection, gather
from cpersona_cli.traps.recall_settings import lens_of, wants
from cpersona_cli.traps.registry import ALL
from cpersona_cli.traps.run import check


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(system="linux", home=tmp_path, cwd=tmp_path, env={})


def test_a_database_is_given_the_time_there_is(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise no ``--timeout`` would ever suffice for a large one."""
    given: list[float] = []

    def read(path: Path, *, timeout: float, wants: Wants | None = None) -> Reading:
        given.append(timeout)
        return Reading(path=path, state=State.MISSING)

    monkeypatch.setattr(gathering, "read", read)
    for deadline in (10.0, 1000.0):
        gather(Selection(db=tmp_path / "c.db"), machine, deadline)
    short, long = given
    assert 8 < short < 10
    assert 800 < long < 1000


def test_a_database_that_takes_longer_is_named(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path, *, timeout: float, wants: Wants | None = None) -> Reading:
        raise OSError(path, timeout)

    monkeypatch.setattr(gathering, "read", read)
    facts = gather(Selection(db=tmp_path / "c.db"), machine)
    assert facts.unfinished == (f"{tmp_path / 'c.db'}: could not be examined (OSError)",)


def test_a_database_alone(machine: Machine, tmp_path: Path) -> None:
    facts = gather(Selection(db=schema_13(tmp_path / "c.db")), machine)
    assert [d.reading.counts["memories"] for d in facts.databases] == [12]
    assert (facts.registrations, facts.targets, facts.unfinished) == ((), (), ())


def test_a_database_is_audited_for_the_clients_that_open_it(machine: Machine, tmp_path: Path) -> None:
    """From a client's settings to what they do to its memories."""
    database = schema_13(tmp_path / "c.db")
    run_sql(database, "UPDATE episodes SET created_at = '2025-06-01 12:00:00'")
    env = {
        "CPERSONA_DB_PATH": str(database),
        "CPERSONA_EPISODE_PENALTY_ENABLED": "true",
        "CPERSONA_EPISODE_DECAY_FLOOR": "0.25",
        "CPERSONA_MAX_MEMORIES": "5",
    }
    facts = gather(Selection(env=True), replace(machine, env=env))
    ((database_of_it,), (target,)) = facts.databases, facts.targets
    audit = database_of_it.reading.audit
    assert wants(facts.targets) == Wants(windows=(5,), lenses=(lens_of(target),))  # type: ignore[arg-type]
    assert [(one.agent, one.window, one.outside) for one in audit.beyond] == [("atlas", 5, 3)]
    assert {effect.lens for effect in audit.effects} == {lens_of(target)}
    assert {(effect.scope.agent, effect.mean) for effect in audit.effects} == {("atlas", 0.25)}
    (penalty,) = (trap for trap in ALL if trap.id == "recall.episode-penalty")
    (finding,) = check(penalty, facts).findings
    assert "8 of 8 memories of 'atlas' count 0.25 of their score" in finding.measured


def test_what_is_measured_for_a_server_started_elsewhere() -> None:
    """Its settings do not stand with the client, so those of a server told nothing are assumed."""
    (target,) = targets(registration({"CPERSONA_MAX_MEMORIES": "5"}, transport="http"))
    assert wants([target]) == Wants()
