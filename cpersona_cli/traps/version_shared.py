"""What a release means for a database that another release, or an older process, also works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from cpersona_cli.install.release.version import NEWEST_KNOWN, key, older
from cpersona_cli.install.settings.model import Kind
from cpersona_cli.record import replace
from cpersona_cli.traps.database_schema import schema_of
from cpersona_cli.traps.model import CannotTellError, Facts, Finding, Needs, Repair, Severity, SkipError, Target, Trap
from cpersona_cli.traps.recall import number
from cpersona_cli.traps.shell import word
from cpersona_cli.traps.subject import measured, readable
from cpersona_cli.traps.version import fetches_newest, upgrade

_CAP, _PENALTY = "CPERSONA_MAX_CONTENT_LENGTH", "CPERSONA_EPISODE_PENALTY_ENABLED"
_LENIENT = {"1", "yes", "on"}


def _mixed(facts: Facts) -> Iterator[Finding]:
    database = facts.database
    if len({id(t.registration) for t in database.targets}) < 2:
        raise SkipError("one registration opens the database")
    untold = [t for t in database.targets if t.version.version is None]
    versions = {t.version.version: t for t in database.targets if t.version.version is not None}
    if len(versions) < 2:
        # releases that are not here yet will all be the newest one
        if untold and (versions or not all(fetches_newest(t) for t in untold)):
            raise CannotTellError(f"{untold[0].registration.label}: {untold[0].version.evidence}")
        return
    ordered = sorted(versions, key=lambda version: key(version) or ((0,), (0, 0), 0, 0))
    low = ordered[0]
    schemas = {schema_of(version) for version in ordered} - {None}
    consequences = _consequences(versions)
    labels = {v: sorted({t.registration.label for t in database.targets if t.version.version == v}) for v in ordered}
    yield Finding(
        about="version",
        place=versions[low].registration.place,
        severity=Severity.FAULT if len(schemas) > 1 else None,
        measured="; ".join(f"{', '.join(labels[v])} would start {v}" for v in ordered),
        costs="; ".join(consequences),
        repair=replace(upgrade(versions[low]), prose=f"start one release everywhere: {upgrade(versions[low]).prose}"),
    )


def _consequences(versions: Mapping[str, Target]) -> list[str]:
    """What a pair of releases on one database does, as far as these registrations are touched by it."""
    found: dict[str, None] = {}
    for one, other in combinations(versions, 2):
        low, high = (one, other) if older(one, other) else (other, one)
        if None not in {schema_of(low), schema_of(high)} and schema_of(low) != schema_of(high):
            found[
                f"{high} turns the database into schema {schema_of(high)}; {low} knows {schema_of(low)} and goes on "
                "with only a warning in its log, and a backup is the only way back"
            ] = None
        mine, theirs = versions[low].settings, versions[high].settings
        lenient = [
            f"{setting.name}={setting.text}"
            for name, setting in mine.values.items()
            if setting.setting.kind is Kind.TRUE_ONLY
            and (setting.text or "").strip().lower() in _LENIENT
            and name in theirs
            and theirs[name].setting.kind is Kind.BOOL
        ]
        if lenient:
            found[f"{low} takes {', '.join(lenient)} for off, {high} takes it for on"] = None
        if mine[_PENALTY].value is True and theirs[_PENALTY].value is False:
            found[f"{low} halves the score of memories older than the newest episode, {high} does not"] = None
        cap, wider = number(mine[_CAP]), number(theirs[_CAP])
        if 0 < cap < wider:
            found[
                f"{low} keeps {cap} characters of a memory, and its repairs cut the longer ones of {high} for good"
            ] = None
    return list(found) or ["two releases work on one database and may disagree on its rows"]


def _not_restarted(facts: Facts) -> Iterator[Finding]:
    database = facts.database
    if not database.reading.holders_known:
        raise SkipError("this system does not tell which processes have the database open")
    installed = [t.version.installed for t in database.targets]
    times = [time for time in installed if time is not None]
    if not times or len(times) < len(installed):
        raise SkipError("when the release was installed is not known")
    old = [p for p in database.reading.holders if p.started is not None and p.started < min(times)]
    if old:
        target = database.targets[0]
        yield Finding(
            about="process",
            place=target.registration.place,
            measured=f"process {', '.join(str(p.pid) for p in old)} was started before {target.version.version} "
            "was installed",
            repair=Repair(prose="restart every client that uses this database"),
        )


def _migration(facts: Facts) -> Iterator[Finding]:
    database = facts.database
    measured(readable(facts), "schema", "counts")
    schema = database.reading.schema
    if schema is None or schema > 13 or not database.reading.counts.get("memories", 1):
        return
    new = [t for t in database.targets if t.version.version and not older(t.version.version, "2.6.0")]
    old = [t for t in database.targets if t.version.version and older(t.version.version, "2.6.0")]
    if new and not old:
        copy = f'.backup "{database.path}.before-2.6"'
        yield Finding(
            about="schema",
            place=new[0].registration.place,
            measured=f"schema {schema}, written by a 2.4 or 2.5 release; {new[0].version.version} would turn it into "
            f"schema {schema_of(new[0].version.version or NEWEST_KNOWN)} at its next start",
            repair=Repair(
                prose="stop the clients and back the database up before the first start",
                commands=(f"sqlite3 {word(database.path, facts.machine)} {word(copy, facts.machine)}",),
            ),
        )


TRAPS = (
    Trap(
        id="version.mixed",
        title="Several releases work on one database",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_mixed,
        expected="one release for all clients of a database",
        costs="two releases work on one database and may disagree on its rows",
        repair="start one release everywhere",
        source="the upgrade notes of 2.6: no downgrade; measured differences between releases",
        rows=("H3",),
    ),
    Trap(
        id="version.not-restarted",
        title="A live server runs code from before the update",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_not_restarted,
        expected="servers that were started after the release was installed",
        costs="old code keeps running, and may meet a database that a newer release has changed",
        repair="restart every client",
        source="a running process keeps the code it was started with",
        rows=("H9",),
    ),
    Trap(
        id="version.migration",
        title="The next start changes the database for good",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_migration,
        expected="a backup before the first start of 2.6",
        costs="there is no way back to 2.5",
        repair="back the database up first",
        source="the upgrade notes of 2.6",
        rows=("H10",),
    ),
)
