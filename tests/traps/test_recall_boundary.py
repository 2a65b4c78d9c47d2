"""The episode penalty against what an audit found in a store."""

from __future__ import annotations

import pytest
from support.trap_facts import Graded
from support.traps import facts, reading, registration

from cpersona_cli.store.audit_model import Audit, Burst, Effect, Lens, Moved
from cpersona_cli.store.boundary import Boundary, Newest, Penalty, Scope, instant, rule_of
from cpersona_cli.store.reading import Reading
from cpersona_cli.traps.model import Facts

DB = "/home/u/cpersona.db"
ENV = {"CPERSONA_DB_PATH": DB}
ON = {"EPISODE_PENALTY_ENABLED": "true"}
STAMP = "2026-05-01 12:00:00"
AT = Boundary(STAMP, instant(STAMP))

PENALTY = "recall.episode-penalty"
IMPORTED = "recall.imported-episodes"
SPELLING = "recall.boundary-spelling"


def effect(
    at_floor: int,
    agent: str = "atlas",
    project: str | None = None,
    *,
    version: str | None = "2.6.14",
    penalty: Penalty | None = None,
) -> Effect:
    return Effect(
        lens=Lens(rule_of(version), penalty or Penalty()),
        scope=Scope(agent, project),
        boundary=AT,
        rows=100,
        earlier=at_floor,
        at_floor=at_floor,
        mean=1 - at_floor / 200,
    )


def store(*effects: Effect, **fields: object) -> Reading:
    counts = {"memories": 100, "episodes": 2}
    return reading(DB, **{"counts": counts, "audit": Audit(effects=effects), **fields})  # type: ignore[arg-type]


def recall(env: dict[str, str], of: Reading, version: str | None = "2.6.14", **fields: object) -> Facts:
    return facts({**ENV, **{f"CPERSONA_{n}": v for n, v in env.items()}}, version=version, reading=of, **fields)  # type: ignore[arg-type]


BURST = Burst(
    episodes=2,
    first="2026-05-01 11:59:58",
    last=STAMP,
    oldest="2023-01-01 00:00:00",
    newest="2024-03-01 11:00:00",
)
HARM = (Moved("atlas", None, STAMP, "2025-07-01 00:00:00"), Moved("atlas", "orion", STAMP, ""))


def imported(*moved: Moved, bursts: tuple[Burst, ...] = (BURST,), **fields: object) -> Reading:
    return store(audit=Audit(bursts=bursts, moved=moved), **fields)


def spelled(text: str, stamp: str, when: str) -> Reading:
    return store(audit=Audit(newest=(Newest("atlas", "", "", text, when, stamp),)))


CASES = (
    Graded(
        PENALTY,
        "switched on",
        recall(ON, store(effect(80))),
        says=("80 of 100", "0.5 of their score", STAMP, "69 hours", '"false"', "DECAY_RATE=0.002", "mean factor 0.60"),
        severity="warning",
        count=1,
    ),
    Graded(
        PENALTY,
        "by default in 2.5",
        recall({}, store(effect(80, version="2.5.12")), "2.5.12"),
        says="default",
        severity="warning",
    ),
    Graded(PENALTY, "by default in 2.6.0a6", recall({}, store(effect(80, version="2.6.0a6")), "2.6.0a6")),
    Graded(PENALTY, "off since 2.6.0a7", recall({}, store(effect(80, version="2.6.0a7")), "2.6.0a7"), "pass"),
    Graded(
        PENALTY,
        "under settings of its own",
        recall(
            {**ON, "EPISODE_DECAY_RATE": "0.1", "EPISODE_DECAY_FLOOR": "0.25"},
            store(effect(80, penalty=Penalty(0.1, 0.25))),
        ),
        says=("0.25 of their score", "14 hours"),
    ),
    Graded(
        PENALTY,
        "a floor that is never reached",
        recall({**ON, "EPISODE_DECAY_RATE": "0"}, store(effect(80, penalty=Penalty(0.0)))),
    ),
    Graded(PENALTY, "measured for other settings", recall(ON, store(effect(80, penalty=Penalty(0.1)))), "pass"),
    Graded(
        PENALTY,
        "of several agents",
        recall(ON, store(effect(90), effect(60, "borealis"))),
        says="1 other agent",
        count=1,
    ),
    Graded(PENALTY, "half are", recall(ON, store(effect(50))), "pass"),
    Graded(PENALTY, "only within a project", recall(ON, store(effect(20), effect(90, project="orion"))), "pass"),
    Graded(PENALTY, "no episodes", recall(ON, store(effect(80), counts={"memories": 100})), "pass"),
    Graded(PENALTY, "no database", facts({**ENV, "CPERSONA_EPISODE_PENALTY_ENABLED": "true"}), "pass"),
    Graded(PENALTY, "no time", recall(ON, store(unmeasured=("effects",))), "unknown"),
    Graded(
        IMPORTED,
        "weakening",
        recall(ON, imported(*HARM)),
        says=(
            "2 episodes that ended between 2023-01-01 00:00:00 and 2024-03-01 11:00:00",
            f"from 2026-05-01 11:59:58 to {STAMP}",
            "instead of 2025-07-01 00:00:00 UTC",
            "1 other recall",
            f"cpersona-cli backfill repair --db {DB}",
            f"'atlas', project 'orion': {STAMP} instead of none",
        ),
        severity="warning",
        count=1,
    ),
    Graded(IMPORTED, "the penalty is off", recall({}, imported(*HARM)), severity="hint"),
    Graded(
        IMPORTED,
        "twice, nothing else tells",
        recall({}, imported(HARM[1], bursts=(BURST, BURST))),
        says=("4 episodes", "the last of 2 times", "would have none without it"),
    ),
    Graded(
        IMPORTED,
        "an old store nobody opens",
        facts(reading=reading("/other.db", schema=13, audit=Audit(bursts=(BURST,), moved=HARM))),
        severity="warning",
    ),
    Graded(
        IMPORTED,
        "a newer one nobody opens",
        facts(reading=reading("/other.db", schema=21, audit=Audit(bursts=(BURST,), moved=HARM))),
        severity="hint",
    ),
    Graded(IMPORTED, "newer episodes came since", recall(ON, imported()), "pass"),
    Graded(IMPORTED, "none", recall(ON, store()), "pass"),
    Graded(IMPORTED, "no time", recall(ON, store(unmeasured=("bursts", "moved"))), "unknown"),
    Graded(
        SPELLING,
        "T after the space",
        recall({}, spelled("2026-05-01T01:00:00Z", STAMP, STAMP), "2.5.11"),
        says=(
            "'2026-05-01T01:00:00Z'",
            "2026-05-01 01:00:00 UTC instead of 2026-05-01 12:00:00 UTC",
            "cpersona@latest",
        ),
        severity="warning",
        count=1,
    ),
    Graded(
        SPELLING, "by time since 2.5.12", recall(ON, spelled("2026-05-01T01:00:00Z", STAMP, STAMP), "2.5.12"), "pass"
    ),
    Graded(
        SPELLING,
        "switched off",
        recall({"EPISODE_PENALTY_ENABLED": "false"}, spelled("2026-05-01T01:00:00Z", STAMP, STAMP), "2.5.11"),
        "pass",
    ),
    Graded(SPELLING, "both orders agree", recall({}, spelled(STAMP, STAMP, STAMP), "2.5.11"), "pass"),
    Graded(SPELLING, "no date at all", recall({}, spelled("soon", STAMP, STAMP), "2.5.11"), "pass"),
    Graded(SPELLING, "no time", recall({}, store(unmeasured=("newest",)), "2.5.11"), "unknown"),
    Graded(
        SPELLING,
        "another client has it",
        recall(
            {},
            spelled("2026-05-01T01:00:00Z", STAMP, STAMP),
            others=[registration(ENV, client="codex")],
            versions={0: "2.4.41"},
        ),
        says="2.4.41",
        count=1,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_boundary(case: Graded) -> None:
    case.check()
