"""What the rows of a store say about recall: more of them than is searched, longer or later than they may be."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.install.release.version import older
from cpersona_cli.store.audit_model import Audit
from cpersona_cli.text import plural, safe
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Target, Trap
from cpersona_cli.traps.recall import number
from cpersona_cli.traps.recall_settings import USUAL_WINDOW, reach, starting
from cpersona_cli.traps.repairs import set_variable
from cpersona_cli.traps.subject import measured, readable
from cpersona_cli.traps.version import upgrade

_LISTED = 6
#: Memories and episodes from which a recall shows the profile (memory_handlers._apply_quality_gate).
_POOL = 50


def _beyond_window(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "beyond")
    known = list(starting(facts.database.targets))
    windows = [reach(target) for target in known] or [USUAL_WINDOW]
    window = max(windows)
    if window < USUAL_WINDOW:  # told by recall.scan-window
        return
    indexed = any(name.endswith(".memories.coarseindex") for name in reading.files)
    # The coarse index stands in for old memories, not for old episodes.
    for table in ("episodes",) if indexed else ("memories", "episodes"):
        beyond = [one for one in reading.audit.beyond if one.table == table and one.window == window]
        if not beyond:
            continue
        worst = max(beyond, key=lambda one: one.outside)
        yield Finding(
            about="coarse index" if table == "memories" else table,
            measured=f"agent {safe(repr(worst.agent), 80)} has {worst.rows} {table} with a vector, and the newest "
            f"{window} are searched by meaning: {worst.outside}, stored before {safe(worst.edge, 40)}, are not"
            + (f"; likewise of {plural(len(beyond) - 1, 'other agent')}" if len(beyond) > 1 else "")
            + (", and no coarse index exists" if table == "memories" else ""),
            repair=_further(known, worst.rows, table),
            evidence=tuple((one.agent, f"{one.outside} of {one.rows}") for one in beyond[:_LISTED]),
        )


def _further(known: list[Target], rows: int, table: str) -> Repair:
    """The coarse index where a release has it and it helps, else a longer reach, else a newer release."""
    releases = [target.version.version for target in known]
    if table == "memories" and not any(release and older(release, "2.6.2") for release in releases):
        return Repair(
            prose="ask the agent to build the index with the tool call below; it stands beside the database",
            commands=("check_health(checks=['coarse_index'], fix=true)",),
        )
    if not known:
        return Repair(prose=f"set CPERSONA_VECTOR_REACH={rows} where the server is started")
    target = known[0]
    if releases[0] and older(releases[0], "2.5.12"):
        return upgrade(target)
    setting = target.settings["CPERSONA_VECTOR_REACH"]
    return set_variable(
        target.registration, setting.setting.name, str(rows), at=setting.place if setting.given else None
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


def _copies(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "copies")
    copies = reading.audit.copies
    if copies.rows:
        shown = copies.pairs[:_LISTED]
        listed = ", ".join([*(f"{one} and {wider}" for one, wider in shown), *["…"][: copies.rows - len(shown)]])
        yield Finding(
            about="memories.content",
            measured=f"{copies.rows} of a project’s or channel’s memories {'has' if copies.rows == 1 else 'have'} "
            f"the same text in a wider place too (ids {listed})",
            repair=Repair(
                prose="ask the agent to delete the narrower copies; the wider ones are seen in every project",
                commands=tuple(f"delete_memory(memory_id={one})" for one, _ in shown),
            ),
        )


def _profile_pool(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "profiles", "memories", "episodes")
    audit = reading.audit
    releases = [target.version.version for target in starting(facts.database.targets)]
    # Before 2.5.11 only memories counted, and always those of the whole agent.
    scoped = not releases or not all(release and older(release, "2.5.11") for release in releases)
    found = []
    for agent in () if audit.more_places else audit.profiles:
        views = dict(_views(audit, agent, scoped=scoped))
        if views[None] < _POOL:
            found.append((agent, f"{views[None]} in all"))
        elif small := {project: rows for project, rows in views.items() if rows < _POOL}:
            project, rows = min(small.items(), key=lambda item: -item[1])
            more = f", likewise in {plural(len(small) - 1, 'other project')}" if len(small) > 1 else ""
            found.append((agent, f"{rows} within {safe(repr(project), 80)}{more}"))
    if found:
        agent, rows_text = found[0]
        others = f"; likewise of {plural(len(found) - 1, 'other agent')}" if len(found) > 1 else ""
        yield Finding(
            about="profiles",
            measured=f"the profile of {safe(repr(agent), 80)} is left out of recalls that search fewer than {_POOL} "
            f"{'memories and episodes' if scoped else 'memories'}: {rows_text}{others}",
            repair=Repair(
                prose="nothing has to be done: it comes with more memories; until then the agent can ask for it",
                commands=tuple(f"get_profile(agent_id={one!r})" for one, _ in found[:_LISTED]),
            ),
            evidence=tuple(found[:_LISTED]),
        )


def _views(audit: Audit, agent: str, *, scoped: bool) -> Iterator[tuple[str | None, int]]:
    """How many rows a recall of the agent searches: without a project, and within each."""
    tables = (audit.memories, audit.episodes) if scoped else (audit.memories,)
    projects: dict[str, int] = {}
    for table in tables:
        for (owner, project, _), rows in table.items():
            if owner == agent:
                projects[project] = projects.get(project, 0) + rows
    yield None, sum(projects.values())
    if scoped:
        yield from ((one, rows + projects.get("", 0)) for one, rows in projects.items() if one)


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
        id="recall.copies",
        title="The same memory in a project and in a wider place",
        severity=Severity.HINT,
        needs=Needs.DATABASE,
        detect=_copies,
        expected="one copy of a text that a recall can see: in the project or channel, or in the wider place",
        costs="one recall returns both, and a correction of one leaves the other as it was",
        repair="delete the narrower copy",
        source="memory_handlers._store_dedup_answer: a store looks into wider places first; imports, merges and two "
        "stores at once do not",
    ),
    Trap(
        id="recall.profile-pool",
        title="A profile is left out of small recalls",
        severity=Severity.HINT,
        needs=Needs.DATABASE,
        detect=_profile_pool,
        expected=f"{_POOL} or more memories and episodes in view of a recall that is to show the profile",
        costs="the agent answers without knowing whom it talks to; above that, too, the profile comes last and is cut "
        "by the limit like any row",
        repair="wait for more memories, or ask for the profile with get_profile",
        source="memory_handlers._apply_quality_gate; episodes count since 2.5.11",
        rows=("F11",),
    ),
)
