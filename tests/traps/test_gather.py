"""What the facts are gathered from, and how the time is shared."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.stores import schema_13

from cpersona_cli.install.machine import Machine
from cpersona_cli.store.audit_model import Wants
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.traps import gather as gathering
from cpersona_cli.traps.gather import Selection, gather


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
