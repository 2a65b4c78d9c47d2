"""Whether the client would start the entry, and only once: scopes, approval, trust, switches, doubles."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from cpersona_cli.install.model import Registration, Status
from cpersona_cli.text import plural
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Target, Trap
from cpersona_cli.traps.registration import add_commands, database, started, with_status
from cpersona_cli.traps.repairs import restart


def _local_only(facts: Facts) -> Iterator[Finding]:
    mine = [r for r in facts.registrations if r.client == "claude-code"]
    if any(r.scope != "local" and r.status is Status.ACTIVE for r in mine):
        return
    for registration in mine:
        if registration.scope == "local" and registration.status is not Status.DISABLED:
            yield Finding(
                subject=registration.label,
                about=registration.name,
                place=registration.place,
                measured=f"registered for {registration.project or 'one folder'} alone",
                repair=Repair(
                    prose="register it once for every project, unless one project is what you want",
                    commands=add_commands(registration),
                    place=registration.place,
                ),
            )
            return


def _scopes(facts: Facts) -> Iterator[Finding]:
    groups: dict[tuple[str, str, str], list[Registration]] = {}
    for registration in facts.registrations:
        if with_status(registration, Status.HIDDEN):
            winner = _winner(facts, registration)
            key = (registration.client, registration.name, "" if winner is None else str(winner.place))
            groups.setdefault(key, []).append(registration)
    for (client, name, _), losers in groups.items():
        winner = _winner(facts, losers[0])
        everyone = [*([winner] if winner else []), *losers]
        databases = {database(r) for r in everyone}
        told = [f"{r.scope} ({r.place}) opens {database(r) or 'the default database'}" for r in everyone]
        yield Finding(
            subject=losers[0].client_title,
            about=name,
            place=everyone[0].place,
            severity=None if len(databases) > 1 else Severity.HINT,
            measured=f"{name!r} is registered {len(everyone)} times with {plural(len(databases), 'database')}: "
            f"{told[0]} and wins; hidden: {'; '.join(told[1:])}"
            if winner
            else f"{losers[0].why}; hidden: {'; '.join(told)}",
            repair=Repair(
                prose=f"keep one of them{restart(losers[0])}",
                commands=tuple(
                    f"claude mcp remove {shlex.quote(name)} -s {r.scope}"
                    for r in losers
                    if client == "claude-code" and r.scope in {"local", "project", "user"}
                ),
                place=losers[0].place,
            ),
        )


def _winner(facts: Facts, hidden: Registration) -> Registration | None:
    """The started entry of the same name in the same folder; None where an administrator's file hides all others."""
    same = [r for r in facts.active if (r.client, r.name) == (hidden.client, hidden.name)]
    here = [r for r in same if r.project == hidden.project or hidden.project is None or r.project is None]
    return here[0] if here else None


def _empty_record(facts: Facts) -> Iterator[Finding]:
    """Claude Code writes an empty object for every project; only the one for this folder is worth a word."""
    users = [r for r in facts.active if r.client == "claude-code" and r.scope == "user"]
    here = {str(facts.machine.cwd), *map(str, facts.machine.cwd.parents)}
    for place in facts.discovery.empty_projects:
        if users and place.words in here:
            yield Finding(
                subject=users[0].label,
                about=place.words,
                place=place,
                measured=f'the record of {place.words} holds "mcpServers": {{}}',
                repair=Repair(
                    prose="if claude mcp list does not show the server in this folder, update Claude Code, or remove "
                    f"the empty object in {place}",
                    commands=("claude mcp list",),
                    place=place,
                ),
            )


def _not_approved(facts: Facts) -> Iterator[Finding]:
    for registration in facts.registrations:
        if with_status(registration, Status.PENDING, "approval", ""):
            yield Finding(
                subject=registration.label,
                about=registration.name,
                place=registration.place,
                severity=Severity.HINT if started(facts, registration) else None,
                measured=registration.why or "waits for your approval",
                repair=Repair(
                    prose=f"start {registration.client_title} in {registration.project or 'the project'} and approve "
                    "the server when it asks; the command makes it ask again",
                    commands=("claude mcp reset-project-choices",) if registration.client == "claude-code" else (),
                    place=registration.place,
                ),
            )


def _untrusted(facts: Facts) -> Iterator[Finding]:
    for registration in facts.registrations:
        if with_status(registration, Status.PENDING, "untrusted"):
            codex = registration.client == "codex"
            project = str(registration.project or facts.machine.cwd)
            yield Finding(
                subject=registration.label,
                about=registration.name,
                place=registration.place,
                severity=Severity.HINT if started(facts, registration) else None,
                measured=registration.why or f"{project} is not a trusted folder",
                repair=Repair(
                    prose=f"trust the folder{' in ~/.codex/config.toml' if codex else ''}, or register the server for "
                    f"the user{restart(registration)}",
                    edit=f"[projects.'{project}']\ntrust_level = \"trusted\"" if codex else "",
                    commands=add_commands(registration),
                    place=registration.place,
                ),
            )


def _disabled(facts: Facts) -> Iterator[Finding]:
    for registration in facts.registrations:
        if with_status(registration, Status.DISABLED):
            yield Finding(
                subject=registration.label,
                about=registration.name,
                place=registration.place,
                severity=Severity.HINT if started(facts, registration) else None,
                measured=registration.why or "switched off in the client",
                repair=Repair(
                    prose=f"switch it on in {registration.client_title}'s list of MCP servers, or remove the entry",
                    place=registration.place,
                ),
            )


def _doubled(facts: Facts) -> Iterator[Finding]:
    groups: dict[tuple[str, str], dict[int, Target]] = {}
    for target in facts.targets:
        if target.database.path is not None and target.registration.transport == "stdio":
            key = (target.registration.client, str(target.database.path))
            groups.setdefault(key, {}).setdefault(id(target.registration), target)
    for (_, path), targets in groups.items():
        entries = [target.registration for target in targets.values()]
        together = [r for r in entries if _side_by_side(r, entries[0])]
        if len(together) > 1:
            yield Finding(
                subject=together[0].client_title,
                about=path,
                place=together[1].place,
                measured=f"{plural(len(together), 'entry', 'entries')} start CPersona on {path}: "
                + ", ".join(f"{r.name!r} in {r.place}" for r in together),
                repair=Repair(
                    prose=f"remove all but one{restart(together[0])}",
                    commands=tuple(
                        f"claude mcp remove {shlex.quote(r.name)} -s {r.scope}"
                        for r in together[1:]
                        if r.client == "claude-code" and r.scope in {"local", "project", "user"}
                    ),
                    place=together[1].place,
                ),
            )


def _side_by_side(one: Registration, other: Registration) -> bool:
    """Whether one start of the client starts both: not two projects, not two profiles or editions."""
    if one.project and other.project and one.project != other.project:
        return False
    apart = ("profile", "Insiders")
    return all((word in one.scope) == (word in other.scope) for word in apart) and (
        "profile" not in one.scope or one.scope == other.scope
    )


TRAPS = (
    Trap(
        id="registration.local-scope",
        title="Registered for one project only",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_local_only,
        expected="claude mcp add … -s user; without -s it is this folder alone",
        costs="in every other folder Claude Code has no memory",
        repair="register it with -s user",
        source="Claude Code's documentation: the default scope of claude mcp add is local",
        rows=("G2",),
    ),
    Trap(
        id="registration.scopes",
        title="One name in several scopes",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_scopes,
        expected="one entry for one name",
        costs="which memory is used depends on the folder the client is started in",
        repair="keep one entry and remove the others",
        source="Claude Code's documentation: local before project before user before plugin",
        rows=("G3",),
    ),
    Trap(
        id="registration.empty-record",
        title="An empty list of servers in the project's record",
        severity=Severity.HINT,
        needs=Needs.MACHINE,
        detect=_empty_record,
        expected="no mcpServers in the record, or the server in it",
        costs="some releases of Claude Code took the empty list for all of the servers and hid the user's own",
        repair="update Claude Code",
        source="a report in Claude Code's tracker",
        rows=("G3",),
    ),
    Trap(
        id="registration.not-approved",
        title="A project's server waits for approval",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_not_approved,
        expected="a server that the user approved",
        costs="the client never starts it",
        repair="approve it when the client asks",
        source="Claude Code's documentation of .mcp.json",
        rows=("G4",),
    ),
    Trap(
        id="registration.untrusted",
        title="The project's settings are not trusted",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_untrusted,
        expected="a trusted project, or an entry in the user's own file",
        costs="the client leaves the project's servers out",
        repair="trust the project, or register the server for the user",
        source="Codex reads a project's .codex/config.toml only in trusted projects",
        rows=("G10",),
    ),
    Trap(
        id="registration.disabled",
        title="The server is switched off in the client",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_disabled,
        expected="a server that is switched on",
        costs="the client does not start it",
        repair="switch it on",
        source="the clients' documentation",
        rows=("G10", "G17"),
    ),
    Trap(
        id="registration.doubled",
        title="One client starts CPersona twice on one database",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_doubled,
        expected="one entry for one database in one client",
        costs="every tool is offered twice, and two servers write the calibration file of one database",
        repair="remove all but one",
        source="each entry is a process of its own; the sidecar is written by each",
        rows=("G18",),
    ),
)
