"""The server's own files about who may do what: the operating context, the access table, the alias ledger."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.install.model import Registration
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, SkipError, Trap


def _context_unusable(facts: Facts) -> Iterator[Finding]:
    context = facts.target.files.context
    if context is None:
        raise SkipError("no operating context")
    if context.state == "unknown":
        raise SkipError(f"{context.text}: {context.problem}")
    if context.state == "absent":
        said = f"{context.text} does not exist"
    elif context.state in {"broken", "unreadable"}:
        said = f"{context.path}: {context.problem}"
    else:
        return
    yield Finding(
        about="CPERSONA_OPERATING_CONTEXT_PATH",
        place=context.at,
        measured=said,
        repair=Repair(prose=f"repair {context.at}, then restart {facts.target.registration.client_title}"),
    )


#: Characters of the summary above which the server itself complains: every session pays for it.
_SUMMARY = 3000


def _context_long(facts: Facts) -> Iterator[Finding]:
    context = facts.target.files.context
    if context is not None and context.summary > _SUMMARY:
        yield Finding(
            about="instructions.summary",
            place=context.at,
            measured=f"the summary has {context.summary} characters",
            repair=Repair(prose="move details into [[doctrine]] sections, which are read only when asked for"),
        )


def _context_edited(facts: Facts) -> Iterator[Finding]:
    for target in facts.database.targets:
        context = target.files.context
        started = [p.started for p in facts.database.reading.holders if p.started is not None]
        if context is not None and context.mtime is not None and started and min(started) < context.mtime:
            yield Finding(
                about="operating context",
                place=context.at,
                measured=f"{context.path} was changed after a server that is still running had read it",
                repair=Repair(prose="restart the clients: its summary is given to an agent only when it connects"),
            )
            return


def _acl_broken(facts: Facts) -> Iterator[Finding]:
    acl = facts.target.files.acl
    if acl is None:
        raise SkipError("CPERSONA_ACL_FILE is not set")
    if acl.state == "unknown":
        raise SkipError(f"{acl.text}: {acl.problem}")
    if acl.state != "read":
        said = f"{acl.text} does not exist" if acl.state == "absent" else f"{acl.path}: {acl.problem}"
        yield Finding(about="CPERSONA_ACL_FILE", place=acl.at, measured=said, repair=Repair(prose=f"repair {acl.at}"))
    for grant in acl.clients:
        if grant.missing:
            yield Finding(
                about=grant.variable,
                place=acl.at,
                measured=f"the token of client {grant.client!r} is to be read from {grant.variable}, which is not set",
                repair=Repair(prose=f"add {grant.variable} to the environment of {_entry(facts.target.registration)}"),
            )


def _entry(registration: Registration) -> str:
    return f"{registration.name!r} in {registration.place}"


def _acl_grant(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    acl = target.files.acl
    if acl is None or acl.state != "read":
        raise SkipError("no access table that could be read")
    if target.settings["CPERSONA_TRANSPORT"].value != "stdio":
        raise SkipError("which client of the access table an HTTP caller is shows only in its token")
    local = next((grant for grant in acl.clients if grant.client == "local"), None)
    if local is None:
        yield Finding(
            about="local",
            place=acl.at,
            measured=f"{acl.path} has no client 'local', which a stdio connection is",
            repair=Repair(
                prose=f"add the client to {acl.path}", edit='{"client_id": "local", "grants": {"*": "read-write"}}'
            ),
        )
        return
    files = facts.instructions.of(target.registration.client)
    for agent in dict.fromkeys(a for file in files for block in file.blocks for a in block.agents):
        permission = local.agents.get(agent, local.agents.get("*", "none"))
        if permission != "read-write":
            yield Finding(
                about=agent,
                place=acl.at,
                measured=f"client 'local' has permission {permission!r} for {agent!r}, the id in its policy block",
                repair=Repair(prose=f"in {acl.path}, grant it", edit=f'"{agent}": "read-write"', place=acl.at),
            )


def _ledger(facts: Facts) -> Iterator[Finding]:
    ledger = facts.target.files.ledger
    if ledger is not None and ledger.state in {"broken", "unreadable"}:
        yield Finding(
            about="CPERSONA_ALIAS_LEDGER_FILE",
            place=ledger.at,
            measured=f"{ledger.path}: {ledger.problem}",
            repair=Repair(
                prose=f"restore {ledger.path} from a backup; do not start without it, new names would be given"
            ),
        )


TRAPS = (
    Trap(
        id="identity.context-unusable",
        title="The operating context cannot be used",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_context_unusable,
        expected="a TOML file with version = 1 that the server can read",
        costs="the server runs without it: no rules are given to agents, and “@auto” is stored literally",
        repair="repair the file, or take the path out",
        source="operating_context.get_context: any defect leaves the feature dormant",
        rows=("E7",),
        since="2.5.1",
    ),
    Trap(
        id="identity.context-long",
        title="The operating context's summary is long",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_context_long,
        expected=f"at most {_SUMMARY} characters",
        costs="every session of every client pays for it",
        repair="move details into [[doctrine]] sections",
        source="operating_context.SUMMARY_WARN_CHARS",
        rows=("E7",),
        since="2.5.1",
    ),
    Trap(
        id="identity.context-edited",
        title="The operating context was changed while servers were running",
        severity=Severity.HINT,
        needs=Needs.DATABASE,
        detect=_context_edited,
        expected="servers that started after the last change",
        costs="projects follow the new text, the summary that agents read is still the old one",
        repair="restart the clients",
        source="the instructions are sent once, when a client connects",
        rows=("E8",),
    ),
    Trap(
        id="identity.acl-broken",
        title="The access table cannot be used",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_acl_broken,
        expected='a JSON file {"clients": [...]} in which every token can be found',
        costs="the server refuses to start",
        repair="repair the file",
        source="acl.load_config raises on every defect",
        rows=("E12",),
        since="2.5",
    ),
    Trap(
        id="identity.acl-grant",
        title="The access table grants nothing for the agent id in use",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_acl_grant,
        expected="client 'local' with read-write for the agent id, or for *",
        costs="every call is refused or comes back empty",
        repair="add the grant",
        source="acl: a stdio connection is client 'local', and what is not granted is denied",
        rows=("E12",),
        since="2.5",
    ),
    Trap(
        id="identity.alias-ledger",
        title="The alias ledger cannot be read",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_ledger,
        expected='a JSON file {"version": 1, "aliases": {...}}',
        costs="the server refuses to start; without the ledger, people lose the way to their memories",
        repair="restore it from a backup",
        source="aliases.AliasLedger raises on every defect",
        rows=("E12",),
        since="2.6",
    ),
)
