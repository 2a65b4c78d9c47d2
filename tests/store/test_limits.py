"""How late an episode may be dated, held against every factor that every release would compute."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cpersona_cli.store.audit_model import Lens
from cpersona_cli.store.boundary import Newest, Penalty, Rule, Scope, boundary, factor, instant, newest_episodes
from cpersona_cli.store.effects import changes
from cpersona_cli.store.limits import Limits, oldest_memories, rules_for, stamp_of

PROJECTS, CHANNELS = ("", "orion", "vega"), ("", "desk")
#: Where 2.4 may run: it reads a boundary in the zone of its machine.
ZONES = [ZoneInfo(name) for name in ("UTC", "Pacific/Kiritimati", "Etc/GMT+12")]
SCOPES = [
    Scope("atlas", project, channel) for project in (None, *PROJECTS, "nowhere") for channel in (*CHANNELS, "elsewhere")
]
COLUMNS = frozenset({"agent_id", "project_id", "channel", "created_at"})
#: A floor that is never reached, so that any move of a boundary shows.
PENALTY = Penalty(rate=0.001, floor=0.0001)

_TIMES = st.datetimes(datetime(2025, 3, 4), datetime(2025, 3, 8))  # noqa: DTZ001 - the zone is spelled below
_SPELLINGS = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S.%f+00:00",
    "%Y-%m-%dT%H:%M:%S+09:00",
    "%Y-%m-%d %H:%M:%S-05:00",
)
_ODD = ("", "now", "yesterday", "2025-03-05", "2025-02-30 10:00:00", "20250305T100000Z", "0001-01-01 00:00:00", "zzz")
_STAMPS = st.one_of(
    st.builds(lambda at, spelling: at.strftime(spelling), _TIMES, st.sampled_from(_SPELLINGS)), st.sampled_from(_ODD)
)
_PLACES = st.tuples(st.sampled_from(PROJECTS), st.sampled_from(CHANNELS))
_ROWS = st.lists(st.tuples(_PLACES, _STAMPS), max_size=5)
_NEW = st.lists(st.tuples(_PLACES, _TIMES), min_size=1, max_size=4)

Rows = list[tuple[tuple[str, str], str]]


def opened(memories: Rows, episodes: Rows) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE memories (id INTEGER PRIMARY KEY, agent_id, project_id, channel, timestamp)")
    connection.execute("CREATE TABLE episodes (id INTEGER PRIMARY KEY, agent_id, project_id, channel, created_at)")
    for table, column, rows in (("memories", "timestamp", memories), ("episodes", "created_at", episodes)):
        connection.executemany(
            f"INSERT INTO {table}(agent_id, project_id, channel, {column}) VALUES ('atlas', ?, ?, ?)",
            ((*place, stamp) for place, stamp in rows),
        )
    return connection


def limits(connection: sqlite3.Connection, schema: int = 13) -> Limits:
    newest = newest_episodes(connection, COLUMNS, "atlas")
    return Limits("atlas", newest, oldest_memories(connection, "atlas"), rules_for(schema))


def factors(connection: sqlite3.Connection, memories: Rows, schema: int = 13) -> list[float]:
    """What every memory counts for, in every recall that sees it, by every release, in every zone."""
    newest = newest_episodes(connection, COLUMNS, "atlas")
    found = []
    for rule, zone in itertools.product(rules_for(schema), ZONES):
        if zone is not ZONES[0] and not rule.local:
            continue
        for scope in SCOPES:
            at = boundary(newest, scope, rule, zone=zone).at
            found += [
                factor(instant(stamp, local=rule.local, zone=zone), at, PENALTY)
                for place, stamp in memories
                if scope.covers(*place)
            ]
    return found


@settings(max_examples=200, deadline=None)
@given(_ROWS, _ROWS, _NEW, st.sampled_from((13, 17, 21)))
@example([(("", ""), "2025-03-05T10:00:00+00:00")], [], [(("", ""), datetime(2025, 3, 5, 10))], 13)  # noqa: DTZ001
@example(
    [(("", ""), "2025-03-04T10:00:00+00:00")],
    [(("orion", ""), "2025-03-05T05:00:00Z")],
    [(("vega", ""), datetime(2025, 3, 5, 23))],  # noqa: DTZ001
    13,
)
def test_no_memory_counts_differently_after_any_episodes_that_are_dated_so(
    memories: Rows, episodes: Rows, new: list[tuple[tuple[str, str], datetime]], schema: int
) -> None:
    with contextlib.closing(opened(memories, episodes)) as connection:
        before = factors(connection, memories, schema)
        for place, ended in new:
            created = limits(connection, schema).latest(*place, ended.strftime("%Y-%m-%d %H:%M:%S"))
            if created is None:
                continue
            assert created <= ended.strftime("%Y-%m-%d %H:%M:%S")
            connection.execute(
                "INSERT INTO episodes(agent_id, project_id, channel, created_at) VALUES ('atlas', ?, ?, ?)",
                (*place, created),
            )
            assert factors(connection, memories, schema) == before


@settings(max_examples=50, deadline=None)
@given(_ROWS, _ROWS, _PLACES, _TIMES)
def test_the_latest_harmless_time_is_harmless_and_no_later_one_tried_is(
    memories: Rows, episodes: Rows, place: tuple[str, str], ended: datetime
) -> None:
    with contextlib.closing(opened(memories, episodes)) as connection:
        found = limits(connection)
        created = ended.strftime("%Y-%m-%d %H:%M:%S")
        latest = found.latest(*place, created)
        assert (latest == created) == found.allows(*place, created)
        if latest is not None and latest < created:
            assert found.allows(*place, latest)
            at = instant(latest)
            assert at is not None
            assert not found.allows(*place, stamp_of(at + timedelta(seconds=1)))


def late(at: str) -> Rows:
    return [(("", ""), at)]


@pytest.mark.parametrize(
    ("memories", "episodes", "schema", "latest"),
    [
        # a boundary is there: as late as it, never later
        ("2025-03-06T00:00:00+00:00", "2025-03-05 09:00:00", 21, "2025-03-05 09:00:00"),
        ("2025-03-04T00:00:00+00:00", "2025-03-05 09:00:00", 13, "2025-03-05 09:00:00"),
        # its letters compare as later than every time with a space on that day, but its instant does not
        ("2025-03-04T00:00:00+00:00", "2025-03-05T09:00:00Z", 13, "2025-03-05 09:00:00"),
        # none is there: as late as the oldest memory, a day earlier where 2.4 may read it in another zone
        ("2025-03-05T09:00:00.5+00:00", None, 21, "2025-03-05 09:00:00"),
        ("2025-03-05T09:00:00+00:00", None, 13, "2025-03-04 09:00:00"),
        # a boundary that nobody can read is none; one that SQLite cannot read gives way to any other episode
        ("2025-03-05T09:00:00+00:00", "", 21, "2025-03-05 09:00:00"),
        ("2025-03-05T09:00:00+00:00", "20250306T100000Z", 21, None),
        # a memory without a date never counts for less
        ("", None, 13, "2025-03-07 12:00:00"),
    ],
)
def test_the_latest_time(memories: str, episodes: str | None, schema: int, latest: str | None) -> None:
    with contextlib.closing(opened(late(memories), [] if episodes is None else late(episodes))) as connection:
        assert limits(connection, schema).latest("", "", "2025-03-07 12:00:00") == latest


def test_without_memories_everything_is_allowed() -> None:
    with contextlib.closing(opened([], late("2025-03-05 09:00:00"))) as connection:
        assert limits(connection).allows("", "", "2026-01-01 00:00:00")


def test_an_episode_of_the_global_pool_is_held_against_every_project() -> None:
    memories = [(("orion", ""), "2025-03-04T00:00:00+00:00"), (("vega", ""), "2025-03-01T00:00:00+00:00")]
    with contextlib.closing(opened(memories, [(("orion", ""), "2025-03-06 00:00:00")])) as connection:
        found = limits(connection, 21)
        # a recall in vega sees no episode yet, and a memory of the first of March
        assert found.latest("", "", "2025-03-05 00:00:00") == "2025-03-01 00:00:00"
        assert found.latest("orion", "", "2025-03-05 00:00:00") == "2025-03-05 00:00:00"


def test_a_time_at_the_edge_of_the_calendar_leaves_no_room() -> None:
    with contextlib.closing(opened(late("0001-01-01T00:00:00+00:00"), [])) as connection:
        assert limits(connection).latest("", "", "2025-03-05 00:00:00") is None


def test_changes_count_the_memories_whose_factor_differs() -> None:
    memories = [
        (("", ""), "2025-03-04T00:00:00+00:00"),
        (("", ""), "2025-03-05T00:00:00+00:00"),
        (("", ""), "2025-03-06T00:00:00+00:00"),
        (("orion", ""), "2025-03-04T12:00:00+00:00"),
        (("", ""), "not a date"),
    ]
    lens = Lens(Rule(), Penalty())
    with contextlib.closing(opened(memories, late("2025-03-04 00:00:00"))) as connection:
        before = newest_episodes(connection, COLUMNS, "atlas")
        after = [Newest("atlas", "", "", *["2025-03-05 12:00:00"] * 3)]
        found = {one.scope: one for one in changes(connection, "atlas", before, after, lens=lens)}
        whole = found[Scope("atlas")]
        assert (whole.rows, whole.changed, whole.moved) == (5, 3, True)
        # the oldest lies 36 hours before it now
        assert whole.most == pytest.approx(0.6977 - 1, abs=1e-4)
        assert whole.after.at == datetime(2025, 3, 5, 12, tzinfo=UTC)
        assert (found[Scope("atlas", "")].rows, found[Scope("atlas", "")].changed) == (4, 2)
        assert found[Scope("atlas", "orion")].changed == 3
        # only those that were there before
        (first, *_) = changes(connection, "atlas", before, after, lens=lens, upto=1)
        assert (first.rows, first.changed) == (1, 1)
        assert all(not one.moved and not one.changed for one in changes(connection, "atlas", after, after, lens=lens))


def test_agent_wide_releases_have_one_recall() -> None:
    with contextlib.closing(opened([(("orion", "desk"), "2025-03-04T00:00:00+00:00")], [])) as connection:
        after = [Newest("atlas", "vega", "", *["2025-03-05 12:00:00"] * 3)]
        lens = Lens(Rule(scoped=False, by_instant=False), Penalty())
        (one,) = changes(connection, "atlas", [], after, lens=lens, places=[("vega", "")])
        assert (one.scope, one.rows, one.changed) == (Scope("atlas"), 1, 1)
