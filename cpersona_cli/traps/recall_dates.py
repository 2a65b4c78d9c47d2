"""How the memories of a store are dated: what cannot be read, what is not UTC, what has no date at all."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.text import plural
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Trap
from cpersona_cli.traps.subject import measured, readable


def _timestamps(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "future_timestamps", "invalid_timestamps", "dates")
    dates = reading.audit.dates
    spelled = reading.invalid_timestamps - dates.unread  # SQLite cannot read them, and the server can
    for count, what, checks in (
        (reading.future_timestamps, "in the future", "future_timestamp"),
        (dates.unread, "that cannot be read", "invalid_timestamp"),
        (dates.sql_only, "that SQLite can read and the server cannot", "invalid_timestamp"),
        (spelled, "that the server can read and SQLite cannot", "invalid_timestamp"),
    ):
        if count > 0:
            yield Finding(
                about=f"memories.timestamp {what}",
                measured=f"{plural(count, 'memory has', 'memories have')} a date {what}",
                repair=_check(
                    "check the clock and the time zone of the client that wrote them, then ask the agent for a "
                    "health check; it repairs what it can",
                    checks,
                ),
            )
    if dates.episodes_ahead:
        yield Finding(
            about="episodes.end_time in the future",
            measured=f"{plural(dates.episodes_ahead, 'episode begins or ends', 'episodes begin or end')} in the future",
            repair=_check(
                "check the clock of the client that wrote them, then ask the agent for a health check (2.6 can)",
                "future_episode_timestamp",
            ),
        )


def _check(prose: str, *checks: str) -> Repair:
    return Repair(prose=prose, commands=(f"check_health(checks={list(checks)!r})",))


def _mixed(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "dates")
    dates = reading.audit.dates
    if not dates.offset and not (dates.naive and dates.utc):
        return
    kinds = ((dates.utc, "in UTC"), (dates.offset, "in another zone"), (dates.naive, "without a zone"))
    yield Finding(
        about="memories.timestamp",
        severity=None if dates.naive and (dates.utc or dates.offset) else Severity.HINT,
        measured="dates are written " + ", ".join(f"{how} ({rows})" for rows, how in kinds if rows),
        repair=_check(
            "have clients write UTC (…+00:00); the health check rewrites other zones, and leaves alone what has none, "
            "since nobody can know which was meant",
            "timestamp_format_drift",
        ),
    )


def _undated(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "dates")
    dates = reading.audit.dates
    if dates.undated:
        yield Finding(
            about="memories.timestamp empty",
            measured=f"{dates.undated} of {plural(dates.rows, 'memory has', 'memories have')} no date",
            repair=Repair(prose="have the client that stores them send a timestamp; created_at tells when they came"),
        )


TRAPS = (
    Trap(
        id="recall.timestamps",
        title="Memories with impossible dates",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_timestamps,
        expected="dates that SQLite and the server can read, none of them in the future",
        costs="they are ranked as the newest, or as of unknown age",
        repair="repair the dates with check_health",
        source="checks.invalid_timestamp, future_timestamp and future_episode_timestamp",
        rows=("F14",),
    ),
    Trap(
        id="recall.mixed-dates",
        title="Dates are not all written in UTC",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_mixed,
        expected="every memories.timestamp in UTC, such as 2025-03-05T12:00:00+00:00",
        costs="the oldest and newest memory are found by comparing letters, so the span of time that weighs their age "
        "is wrong; a date without a zone is taken for UTC, and by 2.4 for the zone of the server",
        repair="have clients write UTC, and have check_health rewrite what is in another zone",
        source="checks.timestamp_format_drift; utils._parse_timestamp_utc",
        rows=("F14",),
    ),
    Trap(
        id="recall.undated",
        title="Memories without a date",
        severity=Severity.HINT,
        needs=Needs.DATABASE,
        detect=_undated,
        expected="a timestamp with every memory",
        costs="a recall with context puts them before all dated ones, and no window of time ever finds them",
        repair="send a timestamp with every memory",
        source="the server's behaviour contracts: undated rows come ahead of dated ones, in the order of merging",
        rows=("F14",),
    ),
)
