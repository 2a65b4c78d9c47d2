"""The episode boundary as this tool computes it, against the functions of three real servers."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.server_boundary import OwnBoundary

from cpersona_cli.record import replace
from cpersona_cli.store import boundary as b

#: release -> the interpreter that has it; ``make test`` sets the last two.
SERVERS = {
    "2.6.14": sys.executable,
    "2.5.12": os.environ.get("CPERSONA_CLI_TEST_OLD_SERVER", ""),
    "2.4.41": os.environ.get("CPERSONA_CLI_TEST_OLDEST_SERVER", ""),
}
#: An eastern zone without daylight saving, so that a time without a zone tells the rules apart.
ZONE = "Asia/Tokyo"

AGENTS, PROJECTS, CHANNELS = ("atlas", "borealis"), ("", "orion", "vega"), ("", "desk")
COLUMNS = frozenset({"agent_id", "project_id", "channel", "created_at"})
SCOPES = [
    (agent, project, channel)
    for agent in (*AGENTS, "nobody")
    for project in (None, *PROJECTS, "nowhere")
    for channel in (*CHANNELS, "elsewhere")
]
ODD = (
    "",
    "now",
    "yesterday",
    "2460000.5",
    "2025-02-30 10:00:00",
    "2025-03-04T24:00:00Z",
    "2025-03-05T10:00:00z",
    "2025-03-05T10:00:00+0900",
    "20250305T100000Z",
    "2025-W10-3",
    "2025-03-05",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-01:00",
)
_TIMES = st.datetimes(datetime(2025, 3, 4), datetime(2025, 3, 8))  # noqa: DTZ001 - the zone is spelled below
_SPELLED = st.builds(
    lambda at, spelling: at.strftime(spelling),
    _TIMES,
    st.sampled_from(
        (
            "%Y-%m-%d %H:%M:%S",
            "%Y-%m-%dT%H:%M:%S",
            "%Y-%m-%dT%H:%M:%SZ",
            "%Y-%m-%dT%H:%M:%S+00:00",
            "%Y-%m-%dT%H:%M:%S.%f+00:00",
            "%Y-%m-%dT%H:%M:%S+09:00",
            "%Y-%m-%d %H:%M:%S-05:00",
        )
    ),
)
_STAMPS = st.one_of(_SPELLED, _SPELLED, _SPELLED, st.sampled_from(ODD))
_EPISODES = st.lists(
    st.tuples(st.sampled_from(AGENTS), st.sampled_from(PROJECTS), st.sampled_from(CHANNELS), _STAMPS), max_size=12
)


def written(path: Path, episodes: list[tuple[str, str, str, str]]) -> Path:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("DROP TABLE IF EXISTS episodes")
        connection.execute(
            "CREATE TABLE episodes(id INTEGER PRIMARY KEY, agent_id, project_id, channel, created_at TEXT)"
        )
        connection.executemany(
            "INSERT INTO episodes(agent_id, project_id, channel, created_at) VALUES (?, ?, ?, ?)", episodes
        )
    return path


def newest(path: Path, agent: str | None = None) -> list[b.Newest]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return b.newest_episodes(connection, COLUMNS, agent)


@pytest.fixture(scope="module", params=sorted(SERVERS))
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, OwnBoundary]]:
    release = str(request.param)
    if not SERVERS[release]:
        pytest.skip(f"no interpreter with {release} is named; `make test` names it")
    with OwnBoundary(SERVERS[release], tmp_path_factory.mktemp("own"), ZONE) as own:
        yield release, own


@given(episodes=_EPISODES, stamps=st.lists(_STAMPS, min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_boundaries_and_factors_are_those_of_the_server(
    server: tuple[str, OwnBoundary],
    tmp_path_factory: pytest.TempPathFactory,
    episodes: list[tuple[str, str, str, str]],
    stamps: list[str],
) -> None:
    release, own = server
    path = written(tmp_path_factory.getbasetemp() / f"boundary-{release}.db", episodes)
    rule, zone = b.rule_of(release), ZoneInfo(ZONE)
    buckets = newest(path)
    for scope, (at, factors) in zip(SCOPES, own.ask(path, SCOPES, stamps), strict=True):
        found = b.boundary(buckets, b.Scope(*scope), rule, zone=zone)
        assert (None if found.at is None else found.at.isoformat()) == at, (scope, found)
        ours = [b.factor(b.instant(stamp, local=rule.local, zone=zone), found.at, b.Penalty()) for stamp in stamps]
        assert ours == factors, scope


@pytest.mark.parametrize(("rate", "floor"), [(0.002, 0.3), (0.0, 0.5), (0.5, 0.0), (0.01, 1.0)])
def test_factors_under_other_settings(tmp_path: Path, rate: float, floor: float) -> None:
    path = written(tmp_path / "b.db", [("atlas", "", "", "2025-03-05 12:00:00")])
    stamps = [(datetime(2025, 3, 5, 13, tzinfo=UTC) - timedelta(hours=3 * n)).isoformat() for n in range(40)]
    env = {"CPERSONA_EPISODE_DECAY_RATE": str(rate), "CPERSONA_EPISODE_DECAY_FLOOR": str(floor)}
    with OwnBoundary(sys.executable, tmp_path, env=env) as own:
        ((_, theirs),) = own.ask(path, [("atlas", None, "")], stamps)
    at = b.boundary(newest(path), b.Scope("atlas"), b.rule_of(None)).at
    assert [b.factor(b.instant(stamp), at, b.Penalty(rate, floor)) for stamp in stamps] == theirs


def settled(found: list[b.Newest]) -> list[b.Newest]:
    """In one order, without the moment that SQLite read the word ``now`` as."""
    return sorted((replace(one, instant="") if one.text == "now" else one for one in found), key=repr)


@given(
    episodes=_EPISODES,
    added=st.tuples(st.sampled_from(AGENTS), st.sampled_from(PROJECTS), st.sampled_from(CHANNELS), _TIMES),
)
@settings(max_examples=60, deadline=None)
def test_an_episode_told_beforehand_is_as_if_stored(
    tmp_path_factory: pytest.TempPathFactory,
    episodes: list[tuple[str, str, str, str]],
    added: tuple[str, str, str, datetime],
) -> None:
    path = tmp_path_factory.getbasetemp() / "boundary-added.db"
    created = added[3].strftime("%Y-%m-%d %H:%M:%S")
    told = b.with_episode(newest(written(path, episodes)), *added[:3], created)
    stored = newest(written(path, [*episodes, (*added[:3], created)]))
    assert settled(told) == settled(stored)


@pytest.mark.parametrize("created", ["2025-03-05T12:00:00", "2025-03-05 12:00", "2025-13-05 12:00:00", ""])
def test_only_the_servers_own_spelling_is_told_beforehand(created: str) -> None:
    with pytest.raises(ValueError, match="is not spelled"):
        b.with_episode([], "atlas", "", "", created)


def test_one_agent_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "b.db", [(agent, "", "", "2025-03-05 12:00:00") for agent in AGENTS])
    assert [one.agent for one in newest(path, "atlas")] == ["atlas"]


def test_a_table_of_another_shape(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "b.db")) as connection:
        connection.execute("CREATE TABLE episodes(agent_id, created_at)")
        connection.execute("INSERT INTO episodes VALUES ('atlas', '2025-03-05 12:00:00')")
        assert b.newest_episodes(connection, frozenset({"created_at"})) == []
        (one,) = b.newest_episodes(connection, frozenset({"agent_id", "created_at"}))
    assert (one.agent, one.project, one.channel, one.stamp) == ("atlas", "", "", "2025-03-05 12:00:00")


@pytest.mark.parametrize(
    ("release", "scoped", "by_instant", "local"),
    [
        ("2.4.41", False, False, True),
        ("2.5.0", False, False, False),
        ("2.5.2", True, False, False),
        ("2.5.11", True, False, False),
        ("2.5.12", True, True, False),
        (None, True, True, False),
    ],
)
def test_rules(release: str | None, *, scoped: bool, by_instant: bool, local: bool) -> None:
    rule = b.rule_of(release)
    assert (rule.scoped, rule.by_instant, rule.local) == (scoped, by_instant, local)


def test_scopes_that_matter() -> None:
    found = list(b.scopes("atlas", [("", ""), ("orion", "desk"), ("orion", "")]))
    assert found == [
        b.Scope("atlas"),
        b.Scope("atlas", ""),
        b.Scope("atlas", "orion"),
        b.Scope("atlas", None, "desk"),
        b.Scope("atlas", "orion", "desk"),
    ]


@pytest.mark.parametrize(
    ("rate", "floor", "hours"),
    [(0.01, 0.5, 69.3), (0.002, 0.5, 346.6), (0.01, 1.0, 0.0), (0.01, 0.0, math.inf), (0.0, 0.5, math.inf)],
)
def test_hours_to_the_floor(rate: float, floor: float, hours: float) -> None:
    assert b.hours_to_floor(b.Penalty(rate, floor)) == pytest.approx(hours, abs=0.05)


def test_a_factor_that_cannot_be_computed() -> None:
    far = datetime(9999, 1, 1, tzinfo=UTC)
    assert b.factor(datetime(1, 1, 1, tzinfo=UTC), far, b.Penalty(-0.01)) == 1.0
