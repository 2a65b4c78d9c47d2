"""Variables that are set and that the server never sees or never reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cpersona_cli.install.model import LaunchKind, Variable
from cpersona_cli.install.settings.effective import UnknownName
from cpersona_cli.install.settings.model import Kind, Reader, Setting
from cpersona_cli.install.settings.table import BY_ALIAS, BY_NAME, is_secret
from cpersona_cli.install.settings.table_storage import TRANSPORT
from cpersona_cli.text import plural, safe
from cpersona_cli.traps.model import CannotTellError, Facts, Finding, Needs, Severity, Target, Trap
from cpersona_cli.traps.names import API_URL, EMBEDDING, KEY, URL, shares_block
from cpersona_cli.traps.repairs import remove_variable, rename_variable, set_variable, set_variables
from cpersona_cli.traps.subject import own, server
from cpersona_cli.traps.version import upgrade

_GAP = re.compile(r"\{\{.*\}\}|^<[^<>]+>$")
_REFERENCE = re.compile(r"\$\{[^}]*\}|^\$[A-Za-z_]\w*$|^%[A-Za-z_]\w*%$")
#: Losing one of these loses memories, vectors or the connection; losing another loses a preference.
_VITAL = {*EMBEDDING, "CPERSONA_DB_PATH", "CPERSONA_TRANSPORT", "CPERSONA_AUTH_TOKEN", "CPERSONA_ACL_FILE"}
_TRANSPORT_ROWS = frozenset(TRANSPORT)
_HTTP_ONLY = {"CPERSONA_AUTH_TOKEN", "CPERSONA_HTTP_HOST", "CPERSONA_HTTP_PORT"}


def _unknown(target: Target) -> Iterator[UnknownName]:
    """The names nobody reads that were meant for this server; those of other programs in the shell are left out."""
    for unknown in target.settings.unknown:
        mine = unknown.name.upper().startswith("CPERSONA_") or own(target, unknown.name)
        if mine and unknown.name not in BY_ALIAS and not _used_by_another(target, unknown.name):
            yield unknown


def _used_by_another(target: Target, name: str) -> bool:
    """Whether ``name`` only helps to write another variable, as in ``${CPERSONA_HOME}/memory.db``."""
    pattern = re.compile(rf"\$\{{?(env:)?{re.escape(name)}\b")
    return any(pattern.search(value.raw) for value in target.environment.values.values())


def _misspelt(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    for unknown in _unknown(target):
        setting = BY_NAME.get(unknown.meant)
        if setting is None or setting.reader is not Reader.SERVER or unknown.name == "OPENAI_API_KEY":
            continue
        real = target.settings[unknown.meant]
        if real.given:
            severity, repair = Severity.HINT, remove_variable(target.registration, unknown.name, at=unknown.place)
            also = f"; {real.name} is set as well and is in force"
        else:
            stdio = str(target.settings["CPERSONA_TRANSPORT"].value) == "stdio"
            vital = unknown.meant in _VITAL and not (stdio and unknown.meant in _HTTP_ONLY)
            severity = Severity.FAULT if vital else Severity.WARNING
            repair = rename_variable(target.registration, unknown.name, unknown.meant, at=unknown.place)
            also = f"; {unknown.meant} is meant"
        yield Finding(
            about=unknown.name,
            place=unknown.place,
            measured=f"{safe(unknown.name)} is set, and nobody reads that name{also}",
            repair=repair,
            severity=severity,
        )


def _unread(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    for unknown in _unknown(target):
        setting = BY_NAME.get(unknown.meant)
        if setting is not None and setting.reader is Reader.SERVER:
            continue
        why = f": {unknown.why}" if unknown.why else ""
        yield Finding(
            about=unknown.name,
            place=unknown.place,
            measured=f"{safe(unknown.name)} is set, and the server does not read that name{why}",
            repair=remove_variable(target.registration, unknown.name, at=unknown.place),
        )
    if not shares_block(target):
        yield from _embedding_server_names(target)


def _embedding_server_names(target: Target) -> Iterator[Finding]:
    """Names of the embedding server in a block that holds nothing else of it, so they were meant for this one."""
    for name in ("EMBEDDING_TIMEOUT_SECS", "EMBEDDING_DIMENSIONS"):
        found = target.settings[name]
        if found.given and own(target, found.name):
            prefixed = f"CPERSONA_{name}"
            at = found.place
            yield Finding(
                about=name,
                place=at,
                measured=f"{name} is set, which only the embedding server reads",
                repair=rename_variable(target.registration, name, prefixed, at=at)
                if prefixed in target.settings and not target.settings[prefixed].given
                else remove_variable(target.registration, name, at=at),
            )


def _removed(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    for name, found in target.settings.values.items():
        if found.given and found.ignored and found.setting.removed and own(target, found.name):
            yield Finding(
                about=name,
                place=found.place,
                measured=f"{found.ignored}",
                repair=remove_variable(target.registration, found.name, at=found.place),
            )


def _too_new(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    version = target.version
    for name, found in target.settings.values.items():
        row = BY_NAME[name]
        if not found.given or row.reader is not Reader.SERVER or row.since in {"", "2.4"}:
            continue
        if version.version is None and not version.floating:
            raise CannotTellError(f"{name} is read from {row.since} on; {version.evidence}")
        if found.ignored and not found.setting.removed:
            yield Finding(
                about=name,
                place=found.place,
                measured=found.ignored,
                expected=f"the server is {row.since} or newer, or {name} is not set",
                repair=upgrade(target),
            )


def _stray(facts: Facts) -> Iterator[Finding]:
    """One finding for each place that holds settings the server does not receive."""
    target = server(facts)
    for place, found in _by_place(target, facts.stray).items():
        names = [variable.name for variable in found]
        count = plural(len(names), "setting")
        yield Finding(
            about=", ".join(names),
            place=found[0].place,
            measured=f"{count} in {safe(place)} and not in the registration: {', '.join(names)}",
            repair=set_variables(target.registration, {variable.name: _copied(variable) for variable in found}),
            severity=None if any(_row(name).name in _VITAL for name in names) else Severity.WARNING,
        )


def _row(name: str) -> Setting:
    return BY_NAME[name] if name in BY_NAME and name not in BY_ALIAS else BY_ALIAS[name]


def _by_place(target: Target, stray: Iterable[Variable]) -> Mapping[str, Sequence[Variable]]:
    """The settings of the server that were meant for it and do not arrive, by where they stand.

    A place that makes a server speak HTTP configures one that somebody starts by hand; one that holds second names
    alone, such as EMBEDDING_MODEL, may belong to any program.
    """
    places: dict[str, list[Variable]] = {}
    by_hand: set[str] = set()
    seen: set[str] = set()
    for variable in stray:
        place = str(variable.place.file or variable.place)
        if variable.name == "CPERSONA_TRANSPORT" and variable.text != "stdio":
            by_hand.add(place)
        if _missing(target, variable) and _row(variable.name).name not in seen:
            seen.add(_row(variable.name).name)
            places.setdefault(place, []).append(variable)
    return {
        place: found
        for place, found in places.items()
        if place not in by_hand and any(variable.name not in BY_ALIAS for variable in found)
    }


def _missing(target: Target, variable: Variable) -> bool:
    """Whether the variable is a setting of the server that this registration does not hand on."""
    if variable.name not in BY_NAME and variable.name not in BY_ALIAS:
        return False
    row = _row(variable.name)
    mine = row.reader is Reader.SERVER and row not in _TRANSPORT_ROWS and bool(variable.text)
    return mine and not any(n in target.environment.values for n in row.names) and not _read_elsewhere(target, variable)


def _read_elsewhere(target: Target, variable: Variable) -> bool:
    """Whether something of this launch reads the file after all."""
    file, entry = variable.place.file, target.registration
    if file is None:
        return False
    if file.name == ".env" and (entry.launch.kind is LaunchKind.COMPOSE or entry.client == "gemini-cli"):
        return True
    return any(
        file.name == other.replace("\\", "/").rpartition("/")[2] for other in (entry.env_file, *entry.launch.env_files)
    )


def _copied(variable: Variable) -> str:
    """The value to copy; what a shell would first have to expand, and secrets, are only pointed at."""
    hidden = is_secret(variable.name) or any(sign in variable.text for sign in "$`%") or variable.text[0] == "~"
    return f"<the value from {variable.place}>" if hidden else variable.text


def _unexpanded(facts: Facts) -> Iterator[Finding]:
    """Literals that look like a variable or a gap to fill in, where no client syntax explains them.

    Addresses, the key and the database path are left to their own traps, and references in env blocks, which the
    client expands or not, to the registration group.
    """
    target = server(facts)
    for name, found in target.settings.values.items():
        if found.setting.kind is not Kind.TEXT or name in {URL, API_URL, KEY, "CPERSONA_DB_PATH"}:
            continue
        if found.setting.reader not in {Reader.SERVER, Reader.PLUGIN} or not found.given or found.unresolved:
            continue
        text = str(found.text)
        match = _GAP.search(text)
        if match is None and found.origin != "env block":
            match = _REFERENCE.search(text)
        if match:
            yield Finding(
                about=name,
                place=found.place,
                measured=f"{found.name} holds the literal text “{safe(match.group(), 60)}”",
                repair=set_variable(target.registration, found.name, "<the value itself>", at=found.place),
            )


TRAPS = (
    Trap(
        id="names.misspelt",
        title="Misspelt setting",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_misspelt,
        expected="names exactly as the server knows them",
        costs="the setting is ignored without a word and its default is in force",
        repair="rename the variable",
        source="measured on 2.6.14: unknown names are never reported; the server's issue registry, bug-001",
        rows=("A2",),
    ),
    Trap(
        id="names.unread",
        title="Setting that nobody reads",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_unread,
        expected="only names that the server knows",
        costs="nothing happens: what you wanted from it is not in force",
        repair="remove the variable, or find its right name in the server's configuration page",
        source="measured on 2.6.14: unknown names are never reported",
        rows=("A2",),
    ),
    Trap(
        id="names.removed",
        title="Setting of former times",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_removed,
        expected="only names that the server still knows",
        costs="nothing happens: the variable has no reader any more",
        repair="remove the variable",
        source="the names read by the released packages, compared",
        rows=("A35",),
    ),
    Trap(
        id="names.too-new",
        title="Setting newer than the server",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_too_new,
        expected="the server is new enough for every setting",
        costs="the setting is ignored without a word",
        repair="upgrade the server, or remove the variable",
        source="the names read by the released packages, compared",
        rows=("A36",),
    ),
    Trap(
        id="names.stray",
        title="Settings where the server does not see them",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_stray,
        expected="every setting stands in the registration's own environment",
        costs="the server runs without these settings: it does not read .env files, and clients do not hand on"
        " everything a shell exports",
        repair="copy the variables into the registration's environment block",
        source="the server's embedding-backend-repair guide, section 3; the MCP library hands on a fixed list of names",
        rows=("A33",),
    ),
    Trap(
        id="names.unexpanded",
        title="Placeholder left in a value",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_unexpanded,
        expected="the value itself; the server expands nothing",
        costs="the server takes the placeholder as the value",
        repair="write the value itself",
        source="config.py of 2.6.14 uses values as they stand",
        rows=("A8", "A16"),
    ),
)
