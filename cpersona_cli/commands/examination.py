"""One run of the doctor: from a request over the facts and the checks to the report."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cpersona_cli.commands import starting
from cpersona_cli.commands.errors import CommandError, UsageError
from cpersona_cli.commands.preferences import Preferences
from cpersona_cli.commands.trap_list import BY_ID, select
from cpersona_cli.install.clients.discover import BadSpecError
from cpersona_cli.install.machine import Machine, this_machine
from cpersona_cli.record import record, replace
from cpersona_cli.report import inventory
from cpersona_cli.report.model import FailOn, Report, Section, Waived
from cpersona_cli.store.reading import State as StoreState
from cpersona_cli.text import plural, quoted, redact, tilde
from cpersona_cli.traps import waivers
from cpersona_cli.traps.gather import Selection, gather
from cpersona_cli.traps.model import Facts, Finding, Group, Needs, Trap
from cpersona_cli.traps.registry import ALL
from cpersona_cli.traps.run import Check, State, run

_NAME = "cpersona-cli doctor"


@record(kw_only=True)
class Request:
    """What the user asked of one run; ``only`` and ``require`` as they were typed."""

    selection: Selection
    preferences: Preferences
    only: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    write_waivers: Path | None = None


def examine(request: Request, machine: Machine | None = None, today: dt.date | None = None) -> Report:
    """Look, check, and judge. Raises ``CommandError`` or ``ToolFileError`` when there can be no result."""
    start = time.monotonic()
    skip = _skip(request)
    required = _required(request.require)
    day = today or dt.datetime.now().astimezone().date()
    waived_by = _waivers(request.preferences)
    facts = _gather(_without_idle_starts(request, skip), machine or _machine())
    made = run([trap for trap in ALL if trap.group is not Group.TOOL or waived_by is None], facts, skip=skip)
    applied = waivers.apply(waived_by or (), made, BY_ID, day)
    own = [] if waived_by is None else [_unless_skipped(check, skip) for check in applied.checks]
    checks = (*made, *own)
    findings = (*applied.findings, *(finding for check in own for finding in check.findings))
    report = Report(
        command="doctor",
        headline=inventory.headline(facts),
        checks=checks,
        findings=findings,
        waived=[
            Waived(finding=finding, reason=waiver.reason, expires=waiver.expires.isoformat())
            for finding, waiver in applied.waived
        ],
        fail_on=FailOn(request.preferences.text("fail-on")),
        unmet=_unmet(required, checks),
        unsettled=_unsettled(request, facts),
        sections=[*inventory.sections(facts), _tool(request.preferences)],
        notes=request.preferences.notes,
        looked=[] if facts.registrations else _looked(facts),
        payload={**inventory.payload(facts), "preferences": _payload(request.preferences)},
        rerun=_rerun(request.selection),
        elapsed=time.monotonic() - start,
        home=str(facts.machine.home),
        secrets=inventory.secrets(facts),
    )
    report = replace(report, next_command=_next(report, facts, request.preferences.seconds("timeout")))
    return _write_waivers(report, request.write_waivers, day)


def _machine() -> Machine:
    try:
        return this_machine()
    except FileNotFoundError:
        raise CommandError("the working directory does not exist any more; change to another one") from None
    except RuntimeError:
        raise CommandError("the home directory cannot be told; set HOME") from None


def _gather(request: Request, machine: Machine) -> Facts:
    try:
        return gather(replace(request.selection, census=True), machine, request.preferences.seconds("timeout"))
    except BadSpecError as error:
        raise UsageError(str(error)) from error


def _waivers(preferences: Preferences) -> tuple[waivers.Waiver, ...] | None:
    path = preferences.text("waivers")
    return waivers.read(Path(path)) if path else None


def _skip(request: Request) -> Callable[[Trap], str]:
    """The reason not to make a check. ``--only`` leaves the checks of the waivers file alone."""
    only, left_out = select(request.only), select(request.preferences.words("skip"))
    offline = request.preferences.flag("offline")

    def reason(trap: Trap) -> str:
        if request.only and trap.id not in only and trap.group is not Group.TOOL:
            return "not chosen (--only)"
        if trap.id in left_out:
            return "left out (--skip)"
        return "not contacted (--offline)" if offline and trap.needs is Needs.ENDPOINT else ""

    return reason


def _without_idle_starts(request: Request, skip: Callable[[Trap], str]) -> Request:
    """No server is started for checks that are not made."""
    if any(trap.needs is Needs.START and not skip(trap) for trap in ALL):
        return request
    return replace(request, selection=replace(request.selection, start=None))


def _required(names: Sequence[str]) -> Sequence[str]:
    select(names)
    groups = [name for name in names if name not in BY_ID]
    if groups:
        raise UsageError(f"--require takes the id of a check, not the group {groups[0]}")
    return names


def _unless_skipped(check: Check, skip: Callable[[Trap], str]) -> Check:
    reason = skip(check.trap)
    return Check(trap=check.trap, state=State.SKIPPED, reason=reason) if reason else check


def _unmet(required: Sequence[str], checks: Sequence[Check]) -> list[str]:
    ran = {check.trap.id for check in checks if check.state is not State.SKIPPED}
    return [name for name in dict.fromkeys(required) if name not in ran]


def _unsettled(request: Request, facts: Facts) -> list[str]:
    """Why there can be no verdict even if every check that was made is content."""
    sentences = [*facts.unfinished]
    if request.selection.db is not None and not request.selection.before_first_start:
        absent = {StoreState.MISSING, StoreState.NO_FOLDER}
        sentences += [f"{d.path}: there is no such database" for d in facts.databases if d.reading.state in absent]
    if facts.targets or facts.databases or facts.unfinished:
        return sentences
    if facts.registrations:
        number = plural(len(facts.registrations), "registration")
        sentences.append(f"{number} found, and no client would start any of them")
    else:
        clients = ", ".join(request.selection.clients)
        elsewhere = "; name the file that has one (--registration), the database (--db) or this environment (--env)"
        sentences.append(f"no registration of CPersona was found{f' for {clients}' if clients else elsewhere}")
    return sentences


def _looked(facts: Facts) -> list[str]:
    return [
        f"{looked.path} ({looked.client}): {looked.state}" + "".join(f"; {p.detail}" for p in looked.problems)
        for looked in facts.discovery.looked
    ]


def _rerun(selection: Selection) -> str:
    words = [_NAME]
    for option, values in (("--client", selection.clients), ("--registration", selection.registrations)):
        words.extend(f"{option} {quoted(value)}" for value in values)
    words.extend(["--env"] if selection.env else [])
    words.extend([f"--db {quoted(str(selection.db))}"] if selection.db is not None else [])
    words.extend(["--start"] if selection.start is not None else [])
    words.extend(["--pre"] if selection.before_first_start else [])
    return " ".join(words)


def _next(report: Report, facts: Facts, seconds: float) -> str:
    """The one command that helps most now."""
    explain = "cpersona-cli traps explain"
    findings: Sequence[Finding] = report.worst_first
    if findings:
        worst = findings[0]
        own = (command for command in worst.repair.commands if command.startswith("cpersona-cli "))
        return next(own, f"{explain} {worst.trap}")
    if report.looked:
        return f"{_NAME} --registration FILE"
    late = any(start.late for start in facts.starts)
    if late or facts.unfinished or any(d.reading.unmeasured or d.reading.unchecked for d in facts.databases):
        least = starting.SECONDS if facts.starts else 20.0
        return f"{report.rerun} --timeout {3 * max(least, seconds):g}"
    names = [*report.unmet, *(check.trap.id for check in report.unknown)]
    return f"{explain} {names[0]}" if names else ""


def _tool(preferences: Preferences) -> Section:
    read = [] if preferences.file is None else [("config", str(preferences.file), "read")]
    return Section(title="settings of this tool", rows=[*read, *preferences.rows()])


def _payload(preferences: Preferences) -> Mapping[str, object]:
    return {name: {"value": chosen.value, "source": chosen.source} for name, chosen in preferences.chosen.items()}


def _write_waivers(report: Report, path: Path | None, today: dt.date) -> Report:
    if path is None:
        return report
    findings = [finding for finding in report.worst_first if not finding.trap.startswith(f"{Group.TOOL}.")]
    if not findings:
        return replace(report, notes=[*report.notes, "nothing was found, so no waivers file was written"])
    shown = [
        (finding, tilde(redact(f"{finding.subject}: {finding.measured}", report.secrets), report.home))
        for finding in findings
    ]
    waivers.write(path, shown, today)
    written = f"{plural(len(findings), 'waiver')} written to {path}, each for {waivers.DAYS} days: give each its reason"
    return replace(report, notes=[*report.notes, written])
