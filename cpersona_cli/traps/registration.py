"""Whether the entry stands where its client looks, under the key and in the shape it looks for."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator

from cpersona_cli.install.clients.table import CLIENTS
from cpersona_cli.install.model import Place, Registration, Status
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Trap
from cpersona_cli.traps.repairs import restart

# The variable that moves a client's settings, and the clients it moves.
_MOVED = {"CLAUDE_CONFIG_DIR": "claude-code", "CODEX_HOME": "codex", "COPILOT_HOME": "copilot-cli"}

_SECRET = ("KEY", "TOKEN")


def add_commands(registration: Registration) -> tuple[str, ...]:
    """The client's own command that registers the same server for every project, or nothing where it has none.

    Secrets are not written out: the command takes them from the shell's variable of the same name.
    """
    heads = {
        "claude-code": ("claude mcp add", "-e", "-s user", "--"),
        "codex": ("codex mcp add", "--env", "", "--"),
        "gemini-cli": ("gemini mcp add -s user", "-e", "", ""),
    }
    head = heads.get(registration.client)
    if head is None or not (registration.command or registration.url):
        return ()
    start, flag, scope, separator = head
    if registration.client == "claude-code" and registration.url:
        return (f"claude mcp add --transport http -s user {registration.name} {shlex.quote(registration.url)}",)
    env = [
        f'{flag} {v.name}="${v.name}"' if v.name.endswith(_SECRET) else f"{flag} {shlex.quote(f'{v.name}={v.text}')}"
        for v in registration.variables
    ]
    command = shlex.join((registration.command, *registration.args))
    parts = (start, registration.name, *env, separator, command)
    if registration.client == "claude-code":
        # -e takes every following word, so another option has to stand between it and the name
        parts = (start, *env, scope, registration.name, separator, command)
    return (" ".join(part for part in parts if part),)


def started(facts: Facts, registration: Registration) -> Registration | None:
    """An entry of the same client that is started; then the other one is a leftover, not the reason for silence."""
    return next((r for r in facts.active if r.client == registration.client), None)


def database(registration: Registration) -> str:
    """The database text as the entry spells it; entries that no client starts have no effective environment."""
    found = [v.text for v in (*registration.variables, *registration.launch.variables) if v.name == "CPERSONA_DB_PATH"]
    return found[-1] if found else ""


def with_status(registration: Registration, status: Status, *causes: str) -> bool:
    return registration.status is status and (not causes or registration.cause in causes)


def _ignored_severity(facts: Facts, registration: Registration) -> Severity | None:
    """A fault where the client starts no CPersona at all; else a leftover that misleads whoever edits it."""
    used = started(facts, registration)
    if used is None:
        return None
    return Severity.HINT if database(used) == database(registration) else Severity.WARNING


def _moved_by(facts: Facts, registration: Registration) -> str:
    return next((n for n, client in _MOVED.items() if client == registration.client and facts.machine.env.get(n)), "")


def _is_packaged(facts: Facts, registration: Registration) -> bool:
    return registration.client == "claude-desktop" and facts.machine.system == "windows"


def _wrong_file(facts: Facts) -> Iterator[Finding]:
    for registration in facts.registrations:
        if not with_status(registration, Status.IGNORED) or registration.cause in {"key", "shape"}:
            continue
        if _is_packaged(facts, registration) or _moved_by(facts, registration):
            continue
        used = started(facts, registration)
        prose = f"remove this entry; {used.place} is in use" if used else "register it where the client looks"
        yield Finding(
            subject=registration.label,
            about=registration.name,
            place=registration.place,
            severity=_ignored_severity(facts, registration),
            measured=registration.why or f"{registration.place.file} is not read by {registration.client_title}",
            repair=Repair(
                prose=f"{prose}{restart(registration)}",
                commands=() if used else add_commands(registration),
                place=registration.place,
            ),
        )


def _packaged(facts: Facts) -> Iterator[Finding]:
    for registration in facts.registrations:
        if with_status(registration, Status.IGNORED, "file") and _is_packaged(facts, registration):
            yield Finding(
                subject=registration.label,
                about=registration.name,
                place=registration.place,
                severity=_ignored_severity(facts, registration),
                measured=registration.why,
                repair=Repair(
                    prose="in Claude Desktop, open Settings, Developer, Edit Config: that opens the file it reads; "
                    f"put the entry there{restart(registration)}",
                    place=registration.place,
                ),
            )


def _moved(facts: Facts) -> Iterator[Finding]:
    for registration in facts.registrations:
        variable = _moved_by(facts, registration)
        if variable and with_status(registration, Status.IGNORED, "file") and not started(facts, registration):
            yield Finding(
                subject=registration.label,
                about=variable,
                place=registration.place,
                measured=f"{variable}={facts.machine.env[variable]}, and the entry stands in {registration.place.file}",
                depends=f"true when {registration.client_title} is started with {variable} set, as in this shell",
                repair=Repair(
                    prose=f"register it again in this shell, or unset {variable}{restart(registration)}",
                    commands=add_commands(registration),
                    place=registration.place,
                ),
            )


def _wrong_key(facts: Facts) -> Iterator[Finding]:
    for registration in facts.registrations:
        if with_status(registration, Status.IGNORED, "key"):
            client = CLIENTS.get(registration.client)
            key = (client.key if client else "") or "mcpServers"
            edit = f"[mcp_servers.{registration.name}]" if registration.client == "codex" else f'"{key}": {{'
            yield Finding(
                subject=registration.label,
                about=registration.name,
                place=registration.place,
                severity=_ignored_severity(facts, registration),
                measured=registration.why or "the entry stands under a key that the client does not read",
                expected=f"{registration.client_title} reads the servers under {edit.rstrip(' {:')}",
                repair=Repair(
                    prose=f"in {registration.place}, put the entry under this key{restart(registration)}",
                    edit=edit,
                    place=registration.place,
                ),
            )


def _shape(facts: Facts) -> Iterator[Finding]:
    for registration in facts.registrations:
        ignored = with_status(registration, Status.IGNORED, "shape")
        odd = registration.status is Status.ACTIVE and registration.env_shape not in {"object", "null", ""}
        if not ignored and not odd:
            continue
        of_env = odd or "env" in registration.why.split("”")[0]
        place = (registration.env_place if of_env else None) or registration.place
        said = f"the environment of {registration.name!r} is {registration.env_shape}, not an object of names and texts"
        yield Finding(
            subject=registration.label,
            about=f"{registration.name} env" if of_env else registration.name,
            place=place,
            measured=registration.why if ignored and registration.why else said,
            expected="" if of_env else "an object with a command and its arguments, or with an address",
            repair=_reshaped(registration, place, of_env=of_env),
        )


def _reshaped(registration: Registration, place: Place, *, of_env: bool) -> Repair:
    """The entry, or its environment, as the client reads it."""
    toml = place.file is not None and place.file.suffix == ".toml"
    after = restart(registration)
    if of_env:
        table = "[servers.env]" if registration.client == "clotocore" else f"[mcp_servers.{registration.name}.env]"
        edit = f"{table}\nCPERSONA_DB_PATH = '...'" if toml else '"env": {"CPERSONA_DB_PATH": "..."}'
        return Repair(prose=f"in {place}, write the environment inside the entry{after}", edit=edit, place=place)
    name, words = registration.name, (registration.command, *registration.args)
    if len(words) == 1:
        words = tuple(words[0].split()) or ("uvx", "cpersona")
    if not words[0]:
        words = ("uvx", "cpersona")
    command, args = json.dumps(words[0], ensure_ascii=False), json.dumps(list(words[1:]), ensure_ascii=False)
    if toml and registration.client == "clotocore":
        edit = f"[[servers]]\nid = {json.dumps(name, ensure_ascii=False)}\ncommand = {command}\nargs = {args}"
    elif toml:
        table = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
        edit = f"[mcp_servers.{table}]\ncommand = {command}\nargs = {args}"
    else:
        edit = f'{json.dumps(name, ensure_ascii=False)}: {{"command": {command}, "args": {args}}}'
    return Repair(prose=f"in {place}, write the entry in this shape{after}", edit=edit, place=place)


TRAPS = (
    Trap(
        id="registration.wrong-file",
        title="The entry stands in a file the client does not read",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_wrong_file,
        expected="the entry stands in one of the files that this client reads",
        costs="the client never starts the server, and says nothing",
        repair="register the server with the client's own command",
        source="Claude Code reads ~/.claude.json and .mcp.json, not ~/.claude/settings.json or ~/.claude/mcp.json",
        rows=("G1",),
    ),
    Trap(
        id="registration.packaged-desktop",
        title="Claude Desktop was installed as a Windows package and reads another file",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_packaged,
        expected="the entry stands in the file under %LOCALAPPDATA%\\Packages",
        costs="edits of the file under %APPDATA% have no effect",
        repair="use Settings, Developer, Edit Config in Claude Desktop",
        source="reports in Claude Code's tracker on packaged installs of Claude Desktop",
        rows=("G8",),
    ),
    Trap(
        id="registration.moved-file",
        title="A variable moves the client's settings, and the entry stands at the usual place",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_moved,
        expected="the entry stands where CLAUDE_CONFIG_DIR, CODEX_HOME or COPILOT_HOME point",
        costs="the client started here has no memory, the one started elsewhere has",
        repair="register it where the variable points, or unset the variable",
        source="the clients' documentation of these variables",
        rows=("G9",),
    ),
    Trap(
        id="registration.wrong-key",
        title="The entry stands under a key the client does not read",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_wrong_key,
        expected="the entry stands under the key that this client reads",
        costs="the client never starts the server, and says nothing",
        repair="VS Code reads “servers”, Zed “context_servers”, Codex [mcp_servers.NAME], the others “mcpServers”",
        source="the clients' documentation",
        rows=("G5",),
    ),
    Trap(
        id="registration.shape",
        title="The entry or its environment has the wrong shape",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_shape,
        expected="inside the entry, an object of names and texts",
        costs="the server starts without these settings, or not at all",
        repair="move the environment into the entry",
        source="the clients' documentation",
        rows=("G15",),
    ),
)
