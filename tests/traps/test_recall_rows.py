"""What an audit of the rows says about recall: windows, copies, small pools, and how memories are dated."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from support.trap_facts import Graded
from support.traps import facts, reading, registration

from cpersona_cli.store.audit_model import Audit, Beyond, Copies, Dates
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.traps.model import Facts

DB = "/home/u/cpersona.db"
ENV = {"CPERSONA_DB_PATH": DB}
INDEXED = {"files": {"cpersona.db.memories.coarseindex": 9}}

WINDOW = "recall.beyond-window"
COPIES = "recall.copies"
POOL = "recall.profile-pool"
TIMES = "recall.timestamps"
MIXED = "recall.mixed-dates"
UNDATED = "recall.undated"


def store(*, fields: Mapping[str, object] | None = None, **audit: object) -> Reading:
    return reading(DB, audit=Audit(**audit), **(fields or {}))  # type: ignore[arg-type]


def recall(of: Reading, env: dict[str, str] | None = None, version: str | None = "2.6.14", **fields: object) -> Facts:
    named = {f"CPERSONA_{name}": value for name, value in (env or {}).items()}
    return facts({**ENV, **named}, version=version, reading=of, **fields)  # type: ignore[arg-type]


def beyond(rows: int = 12_345, table: str = "memories", window: int = 10_000, agent: str = "atlas") -> Beyond:
    return Beyond(agent=agent, table=table, window=window, rows=rows, edge="2025-04-01 00:00:00")


def pool(memories: int, episodes: int = 0, project: str = "", others: int = 0, *, more: bool = False) -> Reading:
    rows = {("atlas", project, ""): memories, ("atlas", "", "desk"): others, ("borealis", "", ""): 500}
    return store(memories=rows, episodes={("atlas", "", ""): episodes}, profiles=("atlas",), more_places=more)


def dated(**fields: int) -> Reading:
    return store(dates=Dates(rows=9, **fields))


CASES = (
    Graded(
        WINDOW,
        "more than the window",
        recall(store(beyond=(beyond(),))),
        says=(
            "agent 'atlas' has 12345 memories with a vector",
            "the newest 10000",
            "2345, stored before 2025-04-01 00:00:00, are not",
            "no coarse index",
            "coarse_index",
        ),
        severity="hint",
        count=1,
    ),
    Graded(
        WINDOW,
        "of several agents the one with most",
        recall(store(beyond=(beyond(10_001, agent="borealis"), beyond()))),
        says=("agent 'atlas'", "1 other agent", "borealis: 1 of 10001"),
    ),
    Graded(WINDOW, "indexed", recall(store(fields=INDEXED, beyond=(beyond(),))), "pass"),
    Graded(
        WINDOW,
        "an index of memories does not help episodes",
        recall(store(fields=INDEXED, beyond=(beyond(), beyond(table="episodes")))),
        says=("12345 episodes", '"CPERSONA_VECTOR_REACH": "12345"'),
        count=1,
    ),
    Graded(WINDOW, "both tables", recall(store(beyond=(beyond(), beyond(table="episodes")))), count=2),
    Graded(WINDOW, "none", recall(store()), "pass"),
    Graded(
        WINDOW,
        "a small window is another trap's",
        recall(store(beyond=(beyond(window=500),)), {"MAX_MEMORIES": "500"}),
        "pass",
    ),
    Graded(
        WINDOW,
        "the reach goes further",
        recall(store(beyond=(beyond(),)), {"VECTOR_REACH": "50000"}),
        "pass",
    ),
    Graded(
        WINDOW,
        "beyond the reach, too",
        recall(store(beyond=(beyond(), beyond(window=11_000))), {"VECTOR_REACH": "11000"}),
        says="the newest 11000",
        count=1,
    ),
    Graded(
        WINDOW,
        "cascade has no reach",
        recall(store(beyond=(beyond(),)), {"VECTOR_REACH": "50000", "RECALL_MODE": "cascade"}),
        says="the newest 10000",
    ),
    Graded(WINDOW, "searched elsewhere", recall(store(beyond=(beyond(),)), {"VECTOR_SEARCH_MODE": "remote"}), "pass"),
    Graded(
        WINDOW,
        "the widest client counts",
        recall(
            store(beyond=(beyond(),)), others=[registration({**ENV, "CPERSONA_MAX_MEMORIES": "20000"}, client="codex")]
        ),
        "pass",
    ),
    Graded(WINDOW, "a release without the index", recall(store(beyond=(beyond(),)), version="2.5.12"), says="REACH"),
    Graded(
        WINDOW, "one without the reach", recall(store(beyond=(beyond(),)), version="2.5.11"), says="cpersona@latest"
    ),
    Graded(
        WINDOW,
        "a database nobody opens",
        facts(reading=reading("/o.db", audit=Audit(beyond=(beyond(table="episodes"),)))),
        says="CPERSONA_VECTOR_REACH=12345",
    ),
    Graded(WINDOW, "no time", recall(store(fields={"unmeasured": ("beyond",)})), "unknown"),
    Graded(
        COPIES,
        "some",
        recall(store(copies=Copies(rows=9, pairs=tuple((n, n + 100) for n in range(1, 9))))),
        says=("9 of a project’s", "1 and 101", "…", "delete_memory(memory_id=6)"),
        severity="hint",
        count=1,
    ),
    Graded(COPIES, "one", recall(store(copies=Copies(rows=1, pairs=((7, 3),)))), says="has the same text"),
    Graded(COPIES, "none", recall(store()), "pass"),
    Graded(COPIES, "no time", recall(store(fields={"unmeasured": ("copies",)})), "unknown"),
    Graded(
        POOL,
        "few",
        recall(pool(40, 9)),
        says=("49 in all", "memories and episodes", "get_profile(agent_id='atlas')"),
        severity="hint",
        count=1,
    ),
    Graded(POOL, "enough", recall(pool(40, 10)), "pass"),
    Graded(POOL, "enough but within a project", recall(pool(60, 1, "orion")), "pass"),
    Graded(
        POOL,
        "few within a project",
        recall(pool(20, 9, "orion", 20)),
        says="49 in all",
    ),
    Graded(
        POOL,
        "enough in all, few in view of one project",
        recall(store(memories={("atlas", "a", ""): 45, ("atlas", "b", ""): 20}, profiles=("atlas",))),
        says=("45 within 'a'", "likewise in 1 other project"),
    ),
    Graded(
        POOL, "only memories count before 2.5.11", recall(pool(49, 9), version="2.5.10"), says="fewer than 50 memories:"
    ),
    Graded(POOL, "and of the whole agent", recall(pool(45, 0, "orion", 5), version="2.5.10"), "pass"),
    Graded(POOL, "no profile", recall(store(memories={("atlas", "", ""): 3})), "pass"),
    Graded(POOL, "not all places are known", recall(pool(1, more=True)), "pass"),
    Graded(
        POOL,
        "of two agents",
        recall(store(memories={}, profiles=("atlas", "borealis"))),
        says=("0 in all", "1 other agent"),
    ),
    Graded(POOL, "no time", recall(store(fields={"unmeasured": ("memories",)})), "unknown"),
    Graded(
        TIMES,
        "of every kind",
        recall(
            store(
                fields={"future_timestamps": 1, "invalid_timestamps": 5},
                dates=Dates(rows=9, unread=2, sql_only=1, episodes_ahead=4),
            )
        ),
        says=(
            "1 memory has a date in the future",
            "2 memories have a date that cannot be read",
            "1 memory has a date that SQLite can read and the server cannot",
            "3 memories have a date that the server can read and SQLite cannot",
            "4 episodes begin or end in the future",
        ),
        count=5,
        severity="warning",
    ),
    Graded(TIMES, "no time to look", recall(store(fields={"unmeasured": ("future_timestamps",)})), "unknown"),
    Graded(TIMES, "no time for the pass", recall(store(fields={"unmeasured": ("dates",)})), "unknown"),
    Graded(TIMES, "no database yet", recall(reading(DB, State.MISSING)), "skipped"),
    Graded(TIMES, "none", recall(dated(utc=9)), "pass"),
    Graded(
        MIXED,
        "zones and none",
        recall(dated(utc=5, offset=1, naive=3)),
        says=("in UTC (5)", "in another zone (1)", "without a zone (3)", "timestamp_format_drift"),
        severity="warning",
        count=1,
    ),
    Graded(MIXED, "another zone alone", recall(dated(utc=5, offset=4)), severity="hint"),
    Graded(MIXED, "UTC and none", recall(dated(utc=8, naive=1)), severity="warning"),
    Graded(MIXED, "all without a zone", recall(dated(naive=9)), "pass"),
    Graded(MIXED, "all in UTC", recall(dated(utc=9)), "pass"),
    Graded(MIXED, "no time", recall(store(fields={"unmeasured": ("dates",)})), "unknown"),
    Graded(UNDATED, "some", recall(dated(utc=7, undated=2)), says="2 of 9 memories have no date", severity="hint"),
    Graded(UNDATED, "none", recall(dated(utc=9)), "pass"),
    Graded(UNDATED, "no time", recall(store(fields={"unmeasured": ("dates",)})), "unknown"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows(case: Graded) -> None:
    case.check()
