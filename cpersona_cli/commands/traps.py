"""``cpersona-cli traps``: the trap list as a book to look things up in. Nothing on the machine is looked at."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

import typer

from cpersona_cli.commands import options
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.options import Job
from cpersona_cli.commands.preferences import Preferences, resolve
from cpersona_cli.report.model import Report, Section
from cpersona_cli.text import nearest, safe
from cpersona_cli.traps.model import Group, Severity, Trap
from cpersona_cli.words import COMMANDS, PLANNED

HELP = """Every known way for a CPersona installation to be wrong.

\b
  cpersona-cli traps list --group names
  cpersona-cli traps explain names.url-missing
"""

LIST_HELP = """List the traps: id, severity, title.

\b
  cpersona-cli traps list
  cpersona-cli traps list --group names --severity fault
"""

EXPLAIN_HELP = """Explain one trap: what it costs, how to mend it, where the rule comes from.

\b
  cpersona-cli traps explain names.url-missing
  cpersona-cli traps explain names
"""

Groups = Annotated[str | None, typer.Option("--group", metavar="GROUP", help="Only this group.")]
Severities = Annotated[str | None, typer.Option("--severity", metavar="fault|warning|hint", help="Only this severity.")]
Commands = Annotated[str | None, typer.Option("--command", metavar="NAME", help="Only what this command checks.")]
Name = Annotated[str, typer.Argument(metavar="ID|GROUP", show_default=False)]


def listing(
    *,
    group: Groups = None,
    severity: Severities = None,
    command: Commands = None,
    config: options.Config = None,
    form: options.Format = None,
    json: options.Json = False,
    output: options.Files = None,
    color: options.Colors = None,
) -> Job:
    """Understand ``traps list``."""
    preferences = resolve(options.output_flags(chosen=form, json=json, color=color), os.environ, config)
    return _job(preferences, output, partial(_list, group, severity, command))


def explain(
    name: Name,
    *,
    config: options.Config = None,
    form: options.Format = None,
    json: options.Json = False,
    output: options.Files = None,
    color: options.Colors = None,
) -> Job:
    """Understand ``traps explain``."""
    preferences = resolve(options.output_flags(chosen=form, json=json, color=color), os.environ, config)
    return _job(preferences, output, partial(_explain, name))


def _job(preferences: Preferences, files: list[str] | None, run: partial[Report]) -> Job:
    return Job(options.output(preferences, files, quiet=False, verbose=0), run)


def _list(group: str | None, severity: str | None, command: str | None) -> Report:
    from cpersona_cli.commands.catalogue import TRAPS  # noqa: PLC0415 - every trap module: not for help and errors

    groups = _one_of("group", group, list(Group))
    severities = _one_of("severity", severity, list(Severity))
    if command in PLANNED:
        raise UsageError(f"this release has no `{command}` yet")
    checked = _one_of("command", command, COMMANDS) != ["traps"]
    traps = [trap for trap in TRAPS if trap.group in groups and trap.severity in severities and checked]
    rows = [(trap.id, trap.title, str(trap.severity)) for trap in traps]
    return _report([Section(title="", rows=rows, verbosity=0)], traps)


def _one_of(option: str, value: str | None, choices: Sequence[str]) -> Sequence[str]:
    """The one chosen, or all."""
    if value is None:
        return choices
    if value in choices:
        return [value]
    near = nearest(value, choices)
    hint = f"did you mean {near}? " if near else ""
    raise UsageError(f"there is no {option} {safe(value, 60)!r}; {hint}Known are {', '.join(choices)}.")


def _explain(name: str) -> Report:
    from cpersona_cli.commands.catalogue import BY_ID, select  # noqa: PLC0415 - as above
    from cpersona_cli.traps import RETIRED  # noqa: PLC0415

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
        ("check", f"cpersona-cli doctor --only {trap.id}"),
    )
    return Section(title=trap.id, rows=[(label, text, "") for label, text in rows], verbosity=0)


_NEEDS = {
    "machine": "all registrations and files together",
    "registration": "each registration that a client would start",
    "database": "each database",
    "endpoint": "each embedding endpoint, over the network",
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
