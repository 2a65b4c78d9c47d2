"""What was examined, told for people and machines: registrations, databases, settings; and the secrets among them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, urlsplit

from cpersona_cli.install.model import LaunchKind, Registration, Status, Variable
from cpersona_cli.install.settings.effective import Effective
from cpersona_cli.install.settings.table import BY_NAME, is_secret
from cpersona_cli.report.figures import Spans
from cpersona_cli.report.json import place
from cpersona_cli.report.model import Section
from cpersona_cli.start.model import Run, Start
from cpersona_cli.store.audit_model import Effect
from cpersona_cli.store.reading import State
from cpersona_cli.text import bare_url, plural, safe, secret
from cpersona_cli.traps.model import Database, Facts, Target

_BEARER = re.compile(r"(?:Bearer|Basic)\s+(\S+)", re.IGNORECASE)
_DATES = ("utc", "offset", "naive", "undated", "unread", "sql_only")
_RECALLS = 8  # of which the boundary is drawn
_SHORTEST = 8  # characters from which the value of a variable that only sounds secret counts as one


def headline(facts: Facts) -> str:
    """``2 registrations, 1 database``: what a client would start, and what it would open."""
    registrations = {id(target.registration) for target in facts.targets}
    return f"{plural(len(registrations), 'registration')}, {plural(len(facts.databases), 'database')}"


def payload(facts: Facts) -> Mapping[str, object]:
    """The fields ``registrations``, ``databases`` and ``searched`` of a document."""
    return {
        "registrations": [_registration(entry, _targets(facts, entry)) for entry in facts.registrations],
        "databases": [_database(database) for database in facts.databases],
        "starts": [_start(start) for start in facts.starts],
        "searched": [
            {"client": looked.client, "path": looked.path, "state": looked.state} for looked in facts.discovery.looked
        ],
    }


def sections(facts: Facts) -> Iterator[Section]:
    """The same for people: one line each, the settings in force with ``-v``, the defaults with ``-vv``."""
    if facts.registrations:
        yield Section(title="registrations", rows=[_row(facts, entry) for entry in facts.registrations], verbosity=0)
    if facts.databases:
        yield Section(title="databases", rows=[_database_row(database) for database in facts.databases], verbosity=0)
    for database in facts.databases:
        yield from _boundaries(database)
    if facts.starts:
        yield Section(title="started servers", rows=[_start_row(start) for start in facts.starts], verbosity=0)
    for entry in facts.registrations:
        targets = _targets(facts, entry)
        known: set[tuple[str, str, str]] = set()
        for target in targets:
            title = f"settings of {entry.label}{_assumption(target) if len(targets) > 1 else ''}"
            evidence = ("server version", target.version.version or "unknown", target.version.evidence)
            given = [_setting_row(value) for value in target.settings.values.values() if value.text is not None]
            # Of a second assumption about the environment, only what it changes.
            rows = [row for row in (evidence, *given) if row not in known]
            known.update(rows)
            if rows:
                yield Section(title=title, rows=rows)
        values = targets[0].settings.values.values() if targets else ()
        rest = [value for value in values if value.text is None and not _empty(value)]
        if rest:
            rows = [_setting_row(value) for value in rest]
            yield Section(title=f"settings of {entry.label}: defaults", rows=rows, verbosity=2)


def _targets(facts: Facts, entry: Registration) -> Sequence[Target]:
    return [target for target in facts.targets if target.registration is entry]


def _registration(entry: Registration, targets: Sequence[Target]) -> Mapping[str, object]:
    first = targets[0] if targets else None
    return {
        "label": entry.label,
        "client": entry.client,
        "scope": entry.scope,
        "name": entry.name,
        "place": place(entry.place),
        "status": entry.status,
        "why": entry.why,
        "transport": entry.transport,
        "launch": entry.launch.kind,
        "version": first.version.version if first else None,
        "version_evidence": first.version.evidence if first else "",
        "environments": [_environment(target) for target in targets],
    }


def _environment(target: Target) -> Mapping[str, object]:
    database = target.database
    return {
        "base": target.environment.base,
        "database": {"configured": database.text, "path": database.path, "why": database.why},
        "settings": [_setting(value) for value in target.settings.values.values()],
    }


def _setting(value: Effective) -> Mapping[str, object]:
    return {
        "name": value.setting.name,
        "value": _shown(value),
        "given": value.given,
        "read_from": value.name,
        "origin": value.origin,
        "place": place(value.place) if value.text is not None else None,
        "invalid": value.invalid,
        "unresolved": value.unresolved,
        "shadowed": value.shadowed,
    }


def _shown(value: Effective) -> object:
    if value.setting.secret:
        return secret(str(value))
    return bare_url(value.value) if isinstance(value.value, str) and "://" in value.value else value.value


def _database(database: Database) -> Mapping[str, object]:
    reading = database.reading
    return {
        "path": database.path,
        "state": reading.state,
        "detail": reading.detail,
        "bytes": reading.size,
        "schema": reading.schema,
        "counts": reading.counts,
        "labels": reading.labels,
        "widths": reading.widths,
        "unembedded": reading.unembedded,
        "journal": reading.journal,
        "filesystem": reading.filesystem,
        "holders": [{"pid": h.pid, "command": h.command, "started": h.started} for h in reading.holders],
        "holders_known": reading.holders_known,
        "opened_by": _openers(database),
        "dates": {name: getattr(reading.audit.dates, name) for name in _DATES},
        "penalty": [_weakened(effect) for effect in reading.audit.effects],
        "unmeasured": reading.unmeasured,
    }


def _boundaries(database: Database) -> Iterator[Section]:
    """How far an import moved the episode boundary of each recall, as a picture beside when its episodes ended."""
    audit = database.reading.audit
    rows = [("episodes imported", burst.oldest, burst.newest) for burst in audit.bursts[:1]]
    known = {(one.agent, one.healed, one.now) for one in audit.moved if one.project is None}
    for one in audit.moved:
        if one.project is None:
            rows.append((safe(one.agent, 40), one.healed, one.now))
        elif (one.agent, one.healed, one.now) not in known:  # as the agent as a whole
            rows.append((f"{safe(one.agent, 40)}, {safe(one.project, 40) or 'global pool'}", one.healed, one.now))
    if audit.moved:
        title = f"episode boundary: from where it belongs to where it lies ({database.path})"
        yield Section(title=title, rows=(), figures=(Spans(rows=rows[: 1 + _RECALLS]),))


def _weakened(effect: Effect) -> Mapping[str, object]:
    penalty, at = effect.lens.penalty, effect.boundary.at
    return {
        "agent": effect.scope.agent,
        "project": effect.scope.project,
        "boundary": None if at is None else at.isoformat(),
        "rate": penalty.rate,
        "floor": penalty.floor,
        "memories": effect.rows,
        "weakened": effect.earlier,
        "at_floor": effect.at_floor,
        "mean_factor": effect.mean,
    }


def _start(start: Start) -> Mapping[str, object]:
    stored, recalled = start.stored, start.recalled
    return {
        "registration": start.registration.label,
        "place": place(start.registration.place),
        "command": start.command,
        "refusal": start.refusal,
        "unfinished": start.late or start.astray,
        "replaced": start.replaced,
        "limit": {"seconds": start.limit.seconds, "origin": start.limit.origin},
        "tools": start.first.tools if start.first is not None else None,
        "mode": start.mode,
        "stored": None if stored is None else not stored.problem,
        "embedded": None if stored is None else stored.embedded,
        "recalled": None if recalled is None else recalled.found,
        "advisory": None if recalled is None else recalled.advisory,
        "processes": [_run(run) for run in start.runs],
    }


def _run(run: Run) -> Mapping[str, object]:
    return {
        "ready_seconds": run.ready,
        "failure": run.failure,
        "detail": run.detail,
        "protocol": run.protocol,
        "stray_lines": run.lines,
        "stdout": [noise.text for noise in run.noise],
        "stderr": run.said,
        "end_seconds": run.ended,
        "left": run.left,
        "exit_code": run.code,
    }


def _start_row(start: Start) -> tuple[str, str, str]:
    label, first = start.registration.label, start.first
    if first is None:
        return label, f"not started: {start.refusal}", str(start.registration.place)
    if first.ready is None:
        return label, f"no answer ({first.failure})", start.command
    parts = [f"ready after {' and '.join(f'{run.ready:.1f} s' for run in start.runs if run.ready is not None)}"]
    parts.append(f"the client waits {start.limit.seconds:g} s")
    if start.stored is not None and not start.stored.problem:
        kept = "with a vector" if start.stored.embedded else "without a vector"
        parts.append(f"stored {kept}" if start.embeds else f"stored {kept}, as configured (mode none)")
    if start.recalled is not None and start.recalled.found:
        parts.append("found by a second process")
    return label, ", ".join(parts), start.command


def _openers(database: Database) -> Sequence[str]:
    return list(dict.fromkeys(target.registration.label for target in database.targets))


def _row(facts: Facts, entry: Registration) -> tuple[str, str, str]:
    targets = _targets(facts, entry)
    if not targets:
        state = "not examined" if entry.status is Status.ACTIVE else str(entry.status)
        return entry.label, f"{state}: {entry.why}" if entry.why else state, str(entry.place)
    version = targets[0].version.version
    if entry.transport == "http" or entry.launch.kind is LaunchKind.REMOTE:
        return entry.label, f"calls {bare_url(entry.url or entry.launch.url)}", str(entry.place)
    server = f"cpersona {version}" if version else "cpersona, version unknown"
    if entry.launch.kind is LaunchKind.PROXY:
        return entry.label, f"{server}, as a proxy of a server elsewhere", str(entry.place)
    opened = dict.fromkeys(str(target.database.path or target.database.text) for target in targets)
    return entry.label, f"{server}, {' or '.join(opened)}", str(entry.place)


def _database_row(database: Database) -> tuple[str, str, str]:
    reading = database.reading
    parts = [str(reading.state)]
    if reading.state is State.OK:
        parts = [plural(reading.counts.get("memories", 0), "memory", "memories"), f"schema {reading.schema}"]
    if reading.holders:
        parts.append(f"open in {', '.join(f'process {holder.pid}' for holder in reading.holders)}")
    openers = _openers(database)
    return str(database.path), ", ".join(parts), f"opened by {', '.join(openers)}" if openers else "--db"


def _setting_row(value: Effective) -> tuple[str, str, str]:
    shown = _shown(value)
    where = "default" if value.text is None else f"{value.place} ({value.origin})"
    via = f", read from {value.name}" if value.name not in {"", value.setting.name} else ""
    note = value.invalid or value.unresolved
    return value.setting.name, "" if shown is None else str(shown), f"{where}{via}{f'; {note}' if note else ''}"


def _empty(value: Effective) -> bool:
    return value.value in {None, ""}


def _assumption(target: Target) -> str:
    return {"none": " (started by the desktop)", "shell": " (started from this shell)"}.get(target.environment.base, "")


def secrets(facts: Facts) -> tuple[str, ...]:
    """Every secret value that the facts hold, to be removed by value from whatever leaves the process."""
    found: set[str] = set()
    found.update(_of_variables(facts.stray))
    for database in facts.databases:
        for holder in database.reading.holders:
            found.update(value for name, value in (holder.environment or {}).items() if _is_secret(name, value))
    for entry in (*facts.registrations, *facts.discovery.embedding_servers):
        found.update(_of_variables((*entry.variables, *entry.inherited, *entry.launch.variables)))
        found.update(_of_words((*entry.args, *entry.launch.words)))
        for name, value in entry.headers.items():
            bearer = _BEARER.match(value)
            found.update([bearer[1]] if bearer else [value] if _is_secret(name, value) else [])
        found.update(_of_url(entry.url))
    for target in facts.targets:
        for setting in target.settings.values.values():
            if setting.setting.secret and setting.text:
                found.update((setting.text, str(setting)))
            found.update(_of_url(str(setting)))
        found.update(value.text for name, value in target.environment.values.items() if _is_secret(name, value.text))
    return tuple(sorted(value for value in found if value))


def _of_variables(variables: Iterable[Variable]) -> Iterator[str]:
    for variable in variables:
        if _is_secret(variable.name, variable.text):
            yield variable.text
        yield from _of_url(variable.text)


def _of_words(words: Sequence[str]) -> Iterator[str]:
    """Secrets on a command line: ``--api-key VALUE``, ``NAME_KEY=VALUE``, ``Bearer VALUE``, and those in URLs."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, equals, value = word.partition("=")
        if equals and _is_secret(name, value):
            yield value
        elif name.startswith("-") and _is_secret(name, following):
            yield following
        yield from _BEARER.findall(word)
        yield from _of_url(value if "://" in value else word)


def _is_secret(name: str, value: str) -> bool:
    """Whether ``value`` must not be shown: by the table of settings, or by what an unknown name and the value say."""
    if name in BY_NAME:
        return BY_NAME[name].secret
    return is_secret(name) and len(value) >= _SHORTEST and not value.isdecimal() and value[0] not in "/~$%"


def _of_url(text: str) -> Iterator[str]:
    """User name with password, password, and the values of the query of a URL."""
    if "://" not in text:
        return
    try:
        parts = urlsplit(text)
        password = parts.password
    except ValueError:
        return
    if password:
        yield password
        yield parts.netloc.rpartition("@")[0]
    for _, value in parse_qsl(parts.query):
        if len(value) >= _SHORTEST:
            yield value
