"""What the rows of a store say about recall: more of them than is searched, longer or later than they may be."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.text import plural
from cpersona_cli.traps.database_file import measured, readable
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Trap
from cpersona_cli.traps.recall import memories, number
from cpersona_cli.traps.repairs import set_variable


def _beyond_window(facts: Facts) -> Iterator[Finding]:
    database = facts.database
    measured(readable(facts), "counts")
    rows = memories(database)
    windows = [number(t.settings["CPERSONA_MAX_MEMORIES"]) for t in database.targets]
    indexed = any(name.endswith(".memories.coarseindex") for name in database.reading.files)
    if rows is not None and windows and not indexed and rows > max(windows) >= 10_000:
        yield Finding(
            about="coarse index",
            measured=f"{rows} memories, the newest {max(windows)} are searched by meaning, and no coarse index exists",
            repair=Repair(
                prose="ask the agent to build the index with the tool call below; it stands beside the database",
                commands=("check_health(checks=['coarse_index'], fix=true)",),
            ),
        )


def _content_cap(facts: Facts) -> Iterator[Finding]:
    database, reading = facts.database, readable(facts)
    measured(reading, "longest_content")
    longest = reading.longest_content
    caps = {t.registration.label: (t.settings["CPERSONA_MAX_CONTENT_LENGTH"], t) for t in database.targets}
    values = {number(setting) for setting, _ in caps.values() if not setting.invalid}
    if not values:
        return
    for label, (setting, target) in caps.items():
        cap = number(setting)
        if cap < 1 or (cap >= longest and (cap == max(values) or longest == 0)):
            continue
        others = ", ".join(f"{other} keeps {number(s)}" for other, (s, _) in caps.items() if other != label)
        cut = cap < longest
        yield Finding(
            subject=label,
            about=setting.setting.name,
            place=setting.place if setting.given else target.registration.place,
            severity=None if cut else Severity.WARNING,
            measured=f"{label} keeps {cap} characters of a memory ({setting.origin}), the longest here has {longest}"
            + (f"; {others}" if others and len(values) > 1 else ""),
            repair=set_variable(
                target.registration,
                setting.setting.name,
                str(max(*values, longest, 16_000)),
                at=setting.place if setting.given else None,
            ),
        )


def _timestamps(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "future_timestamps", "invalid_timestamps")
    for count, what in (
        (reading.future_timestamps, "in the future"),
        (reading.invalid_timestamps, "that cannot be read"),
    ):
        if count:
            yield Finding(
                about=f"memories.timestamp {what}",
                measured=f"{plural(count, 'memory has', 'memories have')} a date {what}",
                repair=Repair(
                    prose="check the clock and the time zone of the client that wrote them, then ask the agent for a "
                    "health check; it repairs what it can",
                    commands=("check_health(checks=['invalid_timestamp', 'future_timestamp'])",),
                ),
            )


TRAPS = (
    Trap(
        id="recall.beyond-window",
        title="More memories than the scan window, and no coarse index",
        severity=Severity.HINT,
        needs=Needs.DATABASE,
        detect=_beyond_window,
        expected="a coarse index beside the database once it holds more rows than the window",
        costs="older memories are found only by shared words",
        repair="build the coarse index",
        source="the cpersona-memory skill; check_health calls it coarse_index",
        rows=("F3",),
    ),
    Trap(
        id="recall.content-cap",
        title="One client keeps less of a memory than the store holds",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_content_cap,
        expected="one CPERSONA_MAX_CONTENT_LENGTH for all clients of a database, above its longest memory",
        costs="check_health(fix=true) from that client cuts longer memories for good",
        repair="set the same length everywhere, and never let the client with the lower one repair anything",
        source="checks.oversized_content; the default was 2000 through 2.5.4a1 and is 16000 since",
        rows=("F9",),
    ),
    Trap(
        id="recall.timestamps",
        title="Memories with impossible dates",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_timestamps,
        expected="dates that SQLite can read, none of them in the future",
        costs="they are ranked as the newest, or as of unknown age",
        repair="repair the dates with check_health",
        source="checks.invalid_timestamp and future_timestamp",
        rows=("F14",),
    ),
)
