"""The episode penalty: which memories it weakens in this store, and what an import did to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from cpersona_cli.record import replace
from cpersona_cli.store.audit_model import Burst, Effect, Moved
from cpersona_cli.store.boundary import Boundary, Penalty, Scope, boundary, hours_to_floor
from cpersona_cli.text import plural, safe
from cpersona_cli.traps.database_schema import FIRST_LINE
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Trap
from cpersona_cli.traps.recall import database_of
from cpersona_cli.traps.recall_settings import lens_of, starting
from cpersona_cli.traps.repairs import set_variable
from cpersona_cli.traps.shell import tool
from cpersona_cli.traps.subject import measured, readable, server
from cpersona_cli.traps.version import upgrade

_ON = "CPERSONA_EPISODE_PENALTY_ENABLED"
_LISTED = 6


def _when(at: datetime | None) -> str:
    return "a time that cannot be read" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _of(scope: Scope) -> str:
    return safe(repr(scope.agent), 80) + ("" if scope.project is None else f", project {safe(repr(scope.project), 80)}")


def _weakened(effect: Effect) -> str:
    return (
        f"boundary {_when(effect.boundary.at)}, {effect.at_floor} of {effect.rows} at the floor "
        f"{effect.lens.penalty.floor:g}, mean factor {effect.mean:.2f}"
    )


def _steepness(penalty: Penalty) -> str:
    hours = hours_to_floor(penalty)
    return "" if hours in {0.0, float("inf")} else f", {hours:.0f} hours and more before it"


def _episode_penalty(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    setting, lens, database = target.settings[_ON], lens_of(target), database_of(facts, target)
    if lens is None or database is None or not database.reading.counts.get("episodes"):
        return
    measured(database.reading, "effects")
    effects = [effect for effect in database.reading.audit.effects if effect.lens == lens]
    sunk = [effect for effect in effects if effect.scope.project is None and effect.at_floor * 2 > effect.rows]
    if not sunk:
        return
    worst = sunk[0]
    others = f"; likewise of {plural(len(sunk) - 1, 'other agent')}" if len(sunk) > 1 else ""
    off = set_variable(target.registration, setting.setting.name, "false", at=setting.place if setting.given else None)
    yield Finding(
        about=setting.setting.name,
        place=setting.place if setting.given else target.registration.place,
        measured=f"the episode penalty is on ({setting.origin}): {worst.at_floor} of {worst.rows} memories of "
        f"{_of(worst.scope)} count {lens.penalty.floor:g} of their score, as they are older than its newest episode "
        f"({_when(worst.boundary.at)}{_steepness(lens.penalty)}){others}",
        repair=replace(off, prose=f"{off.prose}; or keep it and weaken it: CPERSONA_EPISODE_DECAY_RATE=0.002"),
        evidence=tuple((_of(effect.scope), _weakened(effect)) for effect in effects[:_LISTED]),
    )


def _imported(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "bursts")
    bursts, moved = reading.audit.bursts, reading.audit.moved
    if not bursts or not moved:
        return
    targets = facts.database.targets
    # Of a schema that only the older releases write, and whose clients are not known, their default is assumed.
    weakens = any(lens_of(target) is not None for target in starting(targets)) or (
        not targets and reading.schema == FIRST_LINE
    )
    yield Finding(
        about="episodes.created_at",
        severity=Severity.WARNING if weakens else Severity.HINT,
        measured=f"{_burst(bursts)}: an import. {_moved(moved[0])}"
        + (f"; and so on for {plural(len(moved) - 1, 'other recall')}" if len(moved) > 1 else ""),
        repair=Repair(
            prose="give these episodes back the time they ended, as their created_at",
            commands=tool("backfill repair", facts.database.path, facts.machine),
        ),
        evidence=tuple((_recall(one), f"{one.now} instead of {one.healed or 'none'}") for one in moved[:_LISTED]),
    )


def _burst(bursts: Sequence[Burst]) -> str:
    newest, rows = bursts[0], sum(burst.episodes for burst in bursts)
    stored = f"at {newest.last} UTC" if newest.first == newest.last else f"from {newest.first} to {newest.last} UTC"
    times = "" if len(bursts) == 1 else f" (the last of {len(bursts)} times)"
    return (
        f"{plural(rows, 'episode')} that ended between {min(b.oldest for b in bursts)} and "
        f"{max(b.newest for b in bursts)} UTC {'was' if rows == 1 else 'were'} stored together {stored}{times}"
    )


def _recall(one: Moved) -> str:
    return _of(Scope(one.agent, one.project))


def _moved(one: Moved) -> str:
    instead = f"instead of {one.healed} UTC" if one.healed else "and would have none without it"
    return f"The boundary of {_recall(one)} lies at {one.now} UTC {instead}"


def _spelling(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    for target in starting(facts.database.targets):
        lens = lens_of(target)
        if lens is None or lens.rule.by_instant:
            continue
        measured(reading, "newest")
        newest = reading.audit.newest
        wrong: list[tuple[Scope, Boundary, Boundary]] = []
        for agent in dict.fromkeys(one.agent for one in newest):
            scope = Scope(agent)
            taken = boundary(newest, scope, lens.rule)
            latest = boundary(newest, scope, replace(lens.rule, by_instant=True))
            if taken.at is not None and latest.at is not None and taken.at < latest.at:
                wrong.append((scope, taken, latest))
        if wrong:
            scope, taken, latest = wrong[0]
            yield Finding(
                subject=target.registration.label,
                about="episodes.created_at",
                place=target.registration.place,
                measured=f"CPersona {target.version.version} takes {safe(taken.stamp, 40)!r} for later than "
                f"{safe(latest.stamp, 40)!r}, as it compares letters: the boundary of {_of(scope)} lies at "
                f"{_when(taken.at)} instead of {_when(latest.at)}",
                repair=upgrade(target),
                evidence=tuple((_of(one), f"{a.stamp} before {b.stamp}") for one, a, b in wrong[:_LISTED]),
            )
            return


TRAPS = (
    Trap(
        id="recall.episode-penalty",
        title="The episode penalty halves most memories",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_episode_penalty,
        expected="CPERSONA_EPISODE_PENALTY_ENABLED=false, the default since 2.6.0",
        costs="everything older than the newest episode sinks to half its score within three days; after an import "
        "that is everything, since episodes count from when they were stored",
        repair="set CPERSONA_EPISODE_PENALTY_ENABLED=false; or CPERSONA_EPISODE_DECAY_RATE=0.002, with which the "
        "floor is reached after two weeks instead of three days",
        source="config.EPISODE_PENALTY_ENABLED: on by default through 2.6.0a6; the boundary and the factors are "
        "computed as memory_handlers does in 2.4.41, 2.5.12 and 2.6.14",
        rows=("F5",),
    ),
    Trap(
        id="recall.imported-episodes",
        title="Imported episodes count as the newest",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_imported,
        expected="episodes.created_at close to the time the episode ended, also after an import",
        costs="the episode boundary jumps to the moment of the import: where the episode penalty is on (the default "
        "before 2.6.0), every memory that was there sinks to half its score, and recall loses the order of time",
        repair="give the imported episodes back the time they ended; imports by 2.5.0 and newer keep it when the "
        "file has it",
        source="memory_handlers._get_episode_boundary_ts; measured: import_memories of 2.4.41 and archive_episode "
        "of every release stamp the present",
        rows=("F5",),
    ),
    Trap(
        id="recall.boundary-spelling",
        title="An episode's date is spelled so that an older release takes the wrong one for the newest",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_spelling,
        expected="every episodes.created_at spelled YYYY-MM-DD HH:MM:SS, or release 2.5.12 or newer",
        costs="memories of the present session count as old ones, or old ones as present",
        repair="start a newer release",
        source="memory_handlers._get_episode_boundary_ts: ordered by text before 2.5.12, by time since",
    ),
)
