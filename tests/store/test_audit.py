"""What an audit measures of the rows of a store, and what it says where there was no time for it."""

from __future__ import annotations

import json
import sqlite3
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.server_boundary import OwnBoundary
from support.stores import Server, run_sql, schema_13, untouched

from cpersona_cli.store import audit_dates, inspect
from cpersona_cli.store.audit_model import Audit, Beyond, Burst, Copies, Dates, Lens, Moved, Wants
from cpersona_cli.store.boundary import Newest, Penalty, Scope, rule_of
from cpersona_cli.store.reading import Reading, State

NEWEST = Lens(rule_of(None), Penalty())
OLDEST = Lens(rule_of("2.4.41"), Penalty())


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A store of the first schema without any row."""
    database = schema_13(tmp_path / "c.db", rows=0)
    run_sql(database, "DELETE FROM episodes")
    return database


def reading(path: Path, wants: Wants | None = None, timeout: float = 10.0) -> Reading:
    with untouched(path.parent):
        return inspect.read(
            path, timeout=timeout, mountinfo="", system="linux", holders=lambda _: (), wants=wants or Wants()
        )


def audited(path: Path, *lenses: Lens, windows: tuple[int, ...] = (10_000,)) -> Audit:
    found = reading(path, Wants(windows=windows, lenses=lenses))
    assert (found.state, found.unmeasured) == (State.OK, ())
    return found.audit


def row(table: str, **values: Any) -> str:
    """An INSERT."""
    quoted = ("NULL" if value is None else "'" + str(value).replace("'", "''") + "'" for value in values.values())
    return f"INSERT INTO {table}({', '.join(values)}) VALUES ({', '.join(quoted)})"


def memory(content: str, agent: str = "atlas", project: str = "", channel: str = "", **values: Any) -> str:
    values = {"timestamp": "2025-03-05T10:00:00+00:00", **values}
    return row("memories", agent_id=agent, project_id=project, channel=channel, content=content, **values)


def episode(created: str, ended: str | None = None, agent: str = "atlas", project: str = "", **values: Any) -> str:
    return row(
        "episodes", agent_id=agent, project_id=project, summary=created, created_at=created, end_time=ended, **values
    )


def test_nothing_is_audited_unless_asked(empty: Path) -> None:
    run_sql(empty, memory("a"))
    found = inspect.read(empty, mountinfo="", system="linux", holders=lambda _: ())
    assert (found.audit, found.unmeasured) == (Audit(), ())


def test_an_empty_store(empty: Path) -> None:
    assert audited(empty, NEWEST) == Audit()


def test_dates_by_how_they_are_written(empty: Path) -> None:
    stamps = {
        "utc": ("2025-03-05T10:00:00+00:00", "2025-03-05T10:00:00.123456+00:00", "2025-03-05 10:00:00Z"),
        "offset": ("2025-03-05T10:00:00+09:00", "2025-03-05T10:00:00-0500"),
        "naive": ("2025-03-05T10:00:00", "2025-03-05"),
        "undated": ("",),
        "unread": ("yesterday", "1698402600000"),
        "sql_only": ("now", "2025-02-30T10:00:00Z", "2460000.5", "2025-03-05T10:00:00z"),
    }
    run_sql(
        empty,
        *(memory(stamp or "none", timestamp=stamp) for kind in stamps.values() for stamp in kind),
        episode("2025-03-05 10:00:00", "2999-01-01T00:00:00Z"),
        episode("2025-03-06 10:00:00", None, start_time="2999-01-01T00:00:00Z"),
        episode("2025-03-07 10:00:00", "2025-03-07T09:00:00Z"),
    )
    expected = Dates(rows=14, episodes_ahead=2, **{kind: len(values) for kind, values in stamps.items()})
    assert audited(empty).dates == expected


def test_places(empty: Path) -> None:
    run_sql(
        empty,
        memory("a"),
        memory("b", project="orion", channel="desk"),
        memory("c", project="orion", channel="desk"),
        memory("d", agent="borealis"),
        episode("2025-03-05 10:00:00"),
        row("profiles", agent_id="atlas", content="likes short answers"),
        row("profiles", agent_id="borealis", content=" "),
        row("profiles", agent_id="cirrus", content="of one user", user_id="u-1"),
    )
    found = audited(empty)
    assert dict(found.memories) == {("atlas", "", ""): 1, ("atlas", "orion", "desk"): 2, ("borealis", "", ""): 1}
    assert next(iter(found.memories)) == ("atlas", "orion", "desk")
    assert dict(found.episodes) == {("atlas", "", ""): 1}
    assert (found.more_places, found.profiles) == (False, ("atlas",))


def test_more_places_than_are_kept(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_dates, "PLACES", 2)
    run_sql(
        empty,
        episode("2025-03-05 12:00:00"),
        *(memory(f"{n}", project=f"p{n % 4}", timestamp="2024-01-01T00:00:00Z") for n in range(8)),
    )
    found = audited(empty, NEWEST)
    assert (len(found.memories), found.more_places, found.dates.rows) == (2, True, 8)
    whole = next(effect for effect in found.effects if effect.scope == Scope("atlas"))
    assert (whole.rows, whole.at_floor) == (8, 8)
    assert len(found.effects) <= 3


def test_effects_are_the_sum_of_the_servers_own_factors(empty: Path) -> None:
    """Every memory within the agent as a whole, and within its own project."""
    places = [("", "2025-03-05 12:00:00"), ("orion", "2025-03-06 12:00:00"), ("vega", "")]
    stamps = ["2025-03-06T11:00:00Z", "2025-03-05T00:00:00+00:00", "2025-01-01", "", "soon", "2025-03-07T00:00:00Z"]
    run_sql(
        empty,
        *(episode(created, project=project) for project, created in places if created),
        *(memory(f"{project} {s}", project=project, timestamp=s) for project, _ in places for s in stamps),
    )
    scopes = [("atlas", None, ""), *(("atlas", project, "") for project, _ in places)]
    with OwnBoundary(sys.executable, empty.parent.parent) as own:
        answers = own.ask(empty, scopes, stamps)
    found = {effect.scope: effect for effect in audited(empty, NEWEST).effects}
    assert len(found) == len(scopes)
    for (agent, project, _), (at, factors) in zip(scopes, answers, strict=True):
        effect = found[Scope(agent, project)]
        times = len(places) if project is None else 1
        assert effect.boundary.at is not None
        assert effect.boundary.at.isoformat() == at
        assert effect.rows == len(stamps) * times
        assert effect.mean == pytest.approx(sum(factors) / len(stamps))
        assert effect.earlier == sum(one < 1 for one in factors) * times
        assert effect.at_floor == sum(one == 0.5 for one in factors) * times


@pytest.mark.parametrize(("rate", "floor"), [(0.002, 0.3), (0.0, 0.5), (0.5, 0.0), (0.01, 1.0), (1e-12, 0.5)])
def test_effects_under_other_settings(empty: Path, rate: float, floor: float) -> None:
    """Far from the boundary, where no exponential is computed, as well as near it."""
    created = "2025-03-05 12:00:00"
    at = datetime(2025, 3, 5, 13, tzinfo=UTC)
    stamps = [(at - timedelta(hours=hours)).isoformat() for hours in (0, 1, 2, 60, 600, 602, 6_000, 60_000)]
    run_sql(empty, episode(created), *(memory(stamp, timestamp=stamp) for stamp in stamps))
    env = {"CPERSONA_EPISODE_DECAY_RATE": str(rate), "CPERSONA_EPISODE_DECAY_FLOOR": str(floor)}
    with OwnBoundary(sys.executable, empty.parent.parent, env=env) as own:
        ((_, factors),) = own.ask(empty, [("atlas", None, "")], stamps)
    effect = audited(empty, Lens(rule_of(None), Penalty(rate, floor))).effects[0]
    assert (effect.rows, effect.earlier) == (len(stamps), sum(one < 1 for one in factors))
    assert effect.at_floor == sum(one < 1 and one == floor for one in factors)
    assert effect.mean == pytest.approx(sum(factors) / len(factors))


def test_effects_of_an_older_release_know_only_agents(empty: Path) -> None:
    run_sql(
        empty,
        episode("2025-03-05 12:00:00", project="orion"),
        memory("a", timestamp="2024-01-01T00:00:00"),
        memory("b", agent="borealis"),
    )
    (effect,) = audited(empty, OLDEST).effects
    assert (effect.scope, effect.rows, effect.at_floor) == (Scope("atlas"), 1, 1)


def test_rows_beyond_the_window(empty: Path) -> None:
    run_sql(
        empty,
        *(memory(f"{n}", created_at=f"2025-03-{n + 1:02d} 10:00:00", embedding="x" if n else None) for n in range(6)),
        *(memory(f"other {n}", agent="borealis", embedding="x") for n in range(3)),
        *(episode(f"2025-04-{n + 1:02d} 10:00:00", embedding="x") for n in range(4)),
    )
    found = audited(empty, windows=(3, 4, 0))
    assert found.beyond == (
        Beyond(agent="atlas", table="memories", window=3, rows=5, edge="2025-03-04 10:00:00"),
        Beyond(agent="atlas", table="memories", window=4, rows=5, edge="2025-03-03 10:00:00"),
        Beyond(agent="atlas", table="episodes", window=3, rows=4, edge="2025-04-02 10:00:00"),
    )
    assert [one.outside for one in found.beyond] == [2, 1, 1]
    assert audited(empty, windows=(5,)).beyond == ()
    assert audited(empty, windows=(0,)).beyond == ()


def test_copies_in_wider_places(empty: Path) -> None:
    run_sql(
        empty,
        memory("global"),  # 1
        memory("global", project="orion"),  # 2: seen together with 1
        memory("global", project="orion", channel="desk"),  # 3: with 1 and 2
        memory("global", agent="borealis", project="orion"),  # 4: another agent's
        memory("apart", project="orion"),  # 5
        memory("apart", project="vega"),  # 6: never seen with 5
        memory("apart", channel="desk"),  # 7: nor with either
        memory("whose", source='{"id": "one"}'),  # 8
        memory("whose", project="orion", source='{"id": "two"}'),  # 9: another person's
        memory("broken", source="{"),  # 10
        memory("broken", channel="desk", source="["),  # 11
    )
    assert audited(empty).copies == Copies(rows=3, pairs=((2, 1), (3, 1), (11, 10)))


def test_copies_are_not_looked_for_without_their_index(empty: Path) -> None:
    run_sql(empty, "DROP INDEX idx_memories_dedup_content", memory("a"))
    assert reading(empty).unmeasured == ("copies",)


def test_an_import_and_what_it_moves(empty: Path) -> None:
    run_sql(
        empty,
        episode("2025-07-01 00:00:00", "2025-06-30T23:00:00+00:00"),
        episode("2025-07-02 00:00:00", "2025-06-20T23:00:00+00:00"),  # late, and alone
        episode("2025-08-01 00:00:00", "2025-07-31T23:00:00+00:00", project="vega"),
        episode("2025-09-01 12:00:00", "2023-01-01T00:00:00+00:00"),
        episode("2025-09-01 12:00:05", "2024-03-01T11:00:00+00:00", project="orion"),
        episode("2025-09-01 12:00:05", "2025-09-01T12:00:00+00:00", agent="borealis"),  # meanwhile, and not late
        episode("2025-09-01 12:00:15", None, agent="cirrus", start_time="2024-01-01T00:00:00+00:00"),
    )
    found = audited(empty)
    assert found.bursts == (
        Burst(
            episodes=3,
            first="2025-09-01 12:00:00",
            last="2025-09-01 12:00:15",
            oldest="2023-01-01 00:00:00",
            newest="2024-03-01 11:00:00",
        ),
    )
    assert set(found.moved) == {
        Moved("atlas", None, "2025-09-01 12:00:05", "2025-08-01 00:00:00"),
        Moved("atlas", "", "2025-09-01 12:00:00", "2025-07-02 00:00:00"),
        Moved("atlas", "vega", "2025-09-01 12:00:00", "2025-08-01 00:00:00"),
        Moved("atlas", "orion", "2025-09-01 12:00:05", "2025-07-02 00:00:00"),
        Moved("cirrus", None, "2025-09-01 12:00:15", "2024-01-01 00:00:00"),
        Moved("cirrus", "", "2025-09-01 12:00:15", "2024-01-01 00:00:00"),
    }


def test_two_imports_and_a_session_since(empty: Path) -> None:
    run_sql(
        empty,
        *(episode(f"2025-09-01 12:00:{n:02d}", f"2024-01-{n + 1:02d}") for n in range(3)),
        *(episode(f"2025-09-02 12:00:{n:02d}", f"2023-01-{n + 1:02d}") for n in range(2)),
        episode("2025-09-03 12:00:00", "2025-09-03T11:00:00Z"),
    )
    found = audited(empty)
    assert [(burst.episodes, burst.first) for burst in found.bursts] == [
        (2, "2025-09-02 12:00:00"),
        (3, "2025-09-01 12:00:00"),
    ]
    assert found.moved == ()


def test_episodes_archived_as_sessions_end_are_no_import(empty: Path) -> None:
    run_sql(
        empty,
        episode("2025-09-01 12:00:00", "2025-09-01T11:59:00+00:00"),
        episode("2025-09-01 12:00:01", "2025-08-31T12:00:02+00:00"),
        episode("2025-09-01 12:00:02"),
        episode("soon", "2024-01-01"),
    )
    assert (audited(empty).bursts, audited(empty).moved) == ((), ())


def test_an_import_by_the_oldest_server(tmp_path: Path, oldest: str) -> None:
    """It drops the dates of the file and stamps the present."""
    database = tmp_path / "store" / "memory.db"
    database.parent.mkdir()
    exported = tmp_path / "old.jsonl"
    days = [f"2023-0{month}-01" for month in range(1, 5)]
    lines = [
        {
            "_type": "episode",
            "summary": f"Talk of {day}",
            "start_time": f"{day}T10:00:00+00:00",
            "end_time": f"{day}T11:00:00+00:00",
            "created_at": f"{day} 11:00:00",
        }
        for day in days
    ]
    exported.write_text("\n".join(json.dumps(line) for line in lines))
    with Server(database, python=oldest) as server:
        server.store("atlas", "Backups run at four.", id="1", timestamp="2025-03-01T09:30:00+00:00")
        server.call("import_memories", input_path=str(exported), target_agent_id="atlas")
    found = audited(database, OLDEST)
    (burst,) = found.bursts
    assert (burst.episodes, burst.oldest, burst.newest) == (4, "2023-01-01 11:00:00", "2023-04-01 11:00:00")
    (moved, *_) = found.moved
    assert (moved.agent, moved.project, moved.healed) == ("atlas", None, "2023-04-01 11:00:00")
    (effect,) = found.effects
    assert (effect.rows, effect.at_floor, effect.mean) == (1, 1, 0.5)


def test_a_store_of_the_present_server(tmp_path: Path) -> None:
    database = tmp_path / "store" / "memory.db"
    database.parent.mkdir()
    with Server(database) as server:
        server.store("atlas", "Backups run at four.", id="1", timestamp="2025-03-01T09:30:00+00:00")
        server.call("archive_episode", agent_id="atlas", history=[], summary="A plan.", keywords="plan")
        server.call("update_profile", agent_id="atlas", profile="Works from Lisbon.")
    found = audited(database, NEWEST)
    assert dict(found.memories) == {("atlas", "", ""): 1}
    assert (found.dates, found.profiles) == (Dates(rows=1, utc=1), ("atlas",))
    assert {effect.scope for effect in found.effects} == {Scope("atlas"), Scope("atlas", "")}


def test_what_there_was_no_time_for_is_named(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_sql(empty, memory("a"), episode("2025-03-05 12:00:00"))
    monkeypatch.setattr("cpersona_cli.store.inspect._BEFORE_AUDIT", 1.0)
    monkeypatch.setattr("cpersona_cli.store.sql._STEPS", 1)
    monkeypatch.setattr("cpersona_cli.store.inspect._audited", _late)
    found = reading(empty)
    assert found.state is State.OK
    assert set(found.unmeasured) == {
        "newest", "episodes", "bursts", "moved", "profiles", "beyond", "copies", "dates", "memories", "effects",
    }  # fmt: skip
    assert found.audit == Audit()


def _late(connection: sqlite3.Connection, until: float, wants: Wants, census: Any) -> Audit:
    from cpersona_cli.store.audit import audit  # noqa: PLC0415

    return audit(connection, until - 1000, wants, census)


def test_a_store_with_few_columns(tmp_path: Path) -> None:
    """As much as its columns allow; nothing of the rest is told apart from a store without such rows."""
    database = tmp_path / "c.db"
    run_sql(
        database,
        "CREATE TABLE memories(id INTEGER PRIMARY KEY, agent_id, content, timestamp)",
        "INSERT INTO memories VALUES (1, 'a', 'x', '2025-01-01')",
    )
    assert audited(database, NEWEST) == Audit()
    run_sql(
        database,
        "CREATE TABLE episodes(agent_id, project_id, channel, created_at)",
        "INSERT INTO episodes VALUES ('a', '', '', '2025-01-01')",
    )
    assert audited(database, NEWEST) == Audit(
        episodes={("a", "", ""): 1}, newest=(Newest("a", "", "", "2025-01-01", "2025-01-01 00:00:00", "2025-01-01"),)
    )


def test_rows_that_are_no_text(empty: Path) -> None:
    run_sql(empty, memory("a"), "UPDATE memories SET agent_id = CAST(x'ff41' AS TEXT), timestamp = x'32303235'")
    found = audited(empty, NEWEST)
    assert list(found.memories) == [("\\xffA", "", "")]
    assert (found.dates.rows, found.dates.unread + found.dates.sql_only) == (1, 1)
