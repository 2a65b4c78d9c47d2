"""The trap list: the ids and groups by which a user names traps, and what ``traps list`` and ``traps explain`` say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.gate import IDS as GATED
from cpersona_cli.report.model import Report, Section
from cpersona_cli.text import nearest, safe
from cpersona_cli.traps.model import Group, Needs, Severity, Trap
from cpersona_cli.traps.registry import ALL, RETIRED
from cpersona_cli.traps.vectors_fit import JUDGES
from cpersona_cli.words import COMMANDS

BY_ID: Mapping[str, Trap] = {trap.id: trap for trap in ALL}

#: The traps that each command decides or refuses to work for; what is not named checks none.
_CHECKED: Mapping[str, frozenset[str]] = {
    "doctor": frozenset(BY_ID),
    "probe": frozenset(trap.id for trap in ALL if trap.needs is Needs.ENDPOINT),
    "dimension": frozenset(trap.id for trap in JUDGES),
    "reembed": GATED,
    "advisory-preview": frozenset(trap.id for trap in ALL if trap.needs is Needs.ADVISORY),
    "backfill": GATED | {"recall.imported-episodes"},
}


def select(names: Iterable[str]) -> Mapping[str, Trap]:
    """The traps that ids and groups name. Raises ``UsageError`` for a name that is neither, with the nearest one."""
    found: dict[str, Trap] = {}
    for name in names:
        chosen = [trap for trap in ALL if name in {trap.id, str(trap.group)}]
        if not chosen:
            raise UsageError(unknown(name))
        found.update((trap.id, trap) for trap in chosen)
    return found


def unknown(name: str) -> str:
    """The sentence for a name that is no trap and no group."""
    if name in RETIRED:
        return f"{name} is retired: {RETIRED[name]}"
    near = nearest(name, [*BY_ID, *Group], 3) or _by_ending(name)
    hint = f"did you mean {near}?" if near else "see: cpersona-cli traps list"
    return f"there is no check or group {safe(name, 60)!r}; {hint}"


def _by_ending(name: str) -> str | None:
    """The id of which only the part after the group was given, or that is under another group."""
    ending = name.rpartition(".")[2]
    return next((known for known in BY_ID if ending and known.partition(".")[2] == ending), None)


def listed(*, group: str | None = None, severity: str | None = None, command: str | None = None) -> Report:
    """The traps of a group, of a severity, of a command. Raises ``UsageError`` for one that does not exist."""
    groups = _one_of("group", group, list(Group))
    severities = _one_of("severity", severity, list(Severity))
    commands = _one_of("command", command, COMMANDS)
    checked = frozenset().union(*(_CHECKED.get(name, frozenset()) for name in commands))
    traps = [trap for trap in ALL if trap.id in checked and trap.group in groups and trap.severity in severities]
    rows = [(f"{trap.severity:<8} {trap.id}", trap.title, "") for trap in traps]
    if not rows:
        rows = [("", "no trap is of all that" if checked else f"{commands[0]} checks none of the traps", "")]
    return _report([Section(title="", rows=rows, verbosity=0)], traps)


def _one_of(option: str, value: str | None, choices: Sequence[str]) -> Sequence[str]:
    """The one chosen, or all."""
    if value is None:
        return choices
    if value in choices:
        return [value]
    near = nearest(value, choices)
    hint = f"; did you mean {near}?" if near else ""
    raise UsageError(f"there is no {option} {safe(value, 60)!r}{hint} (known: {', '.join(choices)})")


def explained(name: str) -> Report:
    """All that is known of one trap, living or retired, or of each of a group. Raises ``UsageError`` for others."""
    if name in RETIRED:
        section = Section(title=name, rows=[("retired", RETIRED[name], "")], verbosity=0)
        return _report([section], (), {"retired": {"id": name, "why": RETIRED[name]}})
    traps = [BY_ID[name]] if name in BY_ID else list(select([name]).values())
    return _report([_explained(trap) for trap in traps], traps)


def _explained(trap: Trap) -> Section:
    versions = [f"from {trap.since} on" if trap.since else "", f"before {trap.until}" if trap.until else ""]
    rows = (
        ("what", trap.title),
        ("severity", f"{trap.severity}"),
        ("expected", trap.expected),
        ("costs", trap.costs),
        ("fix", trap.repair),
        ("servers", " and ".join(version for version in versions if version) or "every release"),
        ("looks at", _NEEDS[str(trap.needs)]),
        ("source", trap.source),
        ("check", _CHECKS.get(trap.needs, "cpersona-cli doctor --only {}").format(trap.id)),
    )
    return Section(title=trap.id, rows=[(label, text, "") for label, text in rows], verbosity=0)


_CHECKS = {Needs.START: "cpersona-cli doctor --start --only {}", Needs.FIT: "cpersona-cli dimension",
           Needs.ADVISORY: "cpersona-cli advisory-preview"}  # fmt: skip

_NEEDS = {
    "machine": "all registrations and files together",
    "registration": "each registration that a client would start",
    "database": "each database",
    "endpoint": "each embedding endpoint, over the network",
    "start": "each registered server that is started, with --start",
    "fit": "each database against the endpoint its vectors are searched with, by cpersona-cli dimension",
    "advisory": "each registration whose server is asked for its words, by cpersona-cli advisory-preview",
}


def _report(sections: Sequence[Section], traps: Sequence[Trap], more: Mapping[str, object] | None = None) -> Report:
    payload = {"traps": [_document(trap) for trap in traps], **(more or {})}
    return Report(command="traps", sections=sections, payload=payload, gate=False)


def _document(trap: Trap) -> Mapping[str, object]:
    return {
        "id": trap.id,
        "group": trap.group,
        "title": trap.title,
        "severity": trap.severity,
        "needs": trap.needs,
        "expected": trap.expected,
        "costs": trap.costs,
        "repair": trap.repair,
        "since": trap.since,
        "until": trap.until,
        "source": trap.source,
    }
