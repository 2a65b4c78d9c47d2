"""One run of the probe: from a request over the endpoints and what they answer to the report."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence

from cpersona_cli.commands.chosen import Chosen, check, named, terminal
from cpersona_cli.commands.errors import CommandError, UsageError
from cpersona_cli.commands.options import LONGEST_WAIT
from cpersona_cli.commands.pairing import words
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Measured, Plan, StoredText
from cpersona_cli.embedding.model import Mode
from cpersona_cli.embedding.probe import probe as measure_all
from cpersona_cli.embedding.stored import unpack
from cpersona_cli.install.clients.discover import BadSpecError
from cpersona_cli.install.machine import Machine, this_machine
from cpersona_cli.install.model import Discovery
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.record import field, record, replace
from cpersona_cli.report import inventory, probe
from cpersona_cli.report.model import Report
from cpersona_cli.report.output import say
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.model import StoreError
from cpersona_cli.store.reading import State
from cpersona_cli.text import bare_url, plural, quoted, safe
from cpersona_cli.traps.endpoint import findings, unsettled
from cpersona_cli.traps.gather import Selection, gather
from cpersona_cli.traps.live import Goal
from cpersona_cli.traps.live import goals as goals_of
from cpersona_cli.traps.model import Facts, Severity, Subject
from cpersona_cli.traps.shell import tool

_NAME = "cpersona-cli probe"

#: The most that options may ask for: seconds, calls, stored texts.
_MOST_CALLS, _MOST_SAMPLES = 100, 1000
_GATHERING, _SAMPLING = 20.0, 20.0


@record(kw_only=True)
class Request:
    """What the user asked of one run."""

    selection: Selection
    chosen: Chosen = field(default_factory=Chosen)
    notes: tuple[str, ...] = ()
    wait: float = 0.0
    count: int = 0
    samples: int = 0
    show_text: bool = False
    yes: bool = False
    timeout: float | None = None
    identify: bool = False
    role: str | None = None
    full: bool = False


def examine(request: Request, machine: Machine | None = None) -> Report:
    """Find the endpoints, measure them, and judge. Raises ``CommandError`` when there can be no result."""
    start = time.monotonic()
    _check(request)
    machine = machine or this_machine()
    facts = _gather(request, machine)
    goals = _goals(request, facts, machine)
    texts = _stored(request, goals)
    measured = _measure(request, goals, texts)
    subjects = [goal.subject(found) for goal, found in zip(goals, measured, strict=True)]
    steps = [step for subject in subjects for step in subject.measured.steps]
    ran = sum(step.state != "skipped" for step in steps)
    shown = {row.id: row.text for row in texts} if request.show_text else {}
    found = [finding for subject in subjects for finding in findings(subject)]
    bad = any(finding.severity is not Severity.HINT for finding in found)
    rerun = _rerun(request, subjects)
    return Report(
        command="probe",
        headline=probe.headline(subjects),
        findings=found,
        unsettled=[
            *facts.unfinished,
            *_nothing(goals, facts),
            *(s for subject in subjects for s in unsettled(subject)),
        ],
        sections=list(probe.sections(subjects, shown)),
        notes=request.notes,
        payload=probe.payload(subjects, shown),
        measured=ran,
        unmeasured=len(steps) - ran,
        next_command=rerun if bad else _next(subjects, rerun, ran),
        rerun=rerun,
        elapsed=time.monotonic() - start,
        home=str(machine.home),
        secrets=(*inventory.secrets(facts), *(value for goal in goals for value in goal.endpoint.secrets)),
    )


def _check(request: Request) -> None:
    """Refuse what makes no sense. Raises ``UsageError``."""
    check(request.chosen, request.selection)
    if request.role not in {None, "chat", "embedding"}:
        raise UsageError(f"--role takes chat or embedding, not {safe(repr(request.role), 40)}")
    for option, number, most in (
        ("--wait", request.wait, LONGEST_WAIT),
        ("--count", request.count, _MOST_CALLS),
        ("--sample-from-db", request.samples, _MOST_SAMPLES),
    ):
        if not 0 <= number <= most:
            raise UsageError(f"{option} takes a number from 0 to {most:g}, not {number:g}")
    if request.timeout is not None and not 0 < request.timeout <= LONGEST_WAIT:
        raise UsageError(
            f"--timeout takes a number of seconds above 0 and up to {LONGEST_WAIT:g}, not {request.timeout:g}"
        )
    if request.show_text and not request.samples:
        raise UsageError("--show-text goes with --sample-from-db")


def _gather(request: Request, machine: Machine) -> Facts:
    selection = request.selection
    if request.chosen.url is not None and selection.db is None:
        # nothing of this machine is asked for
        return Facts(machine=machine, discovery=Discovery((), ()))
    try:
        return gather(selection, machine, _GATHERING)
    except BadSpecError as error:
        raise UsageError(str(error)) from error


def _goals(request: Request, facts: Facts, machine: Machine) -> list[Goal]:
    if request.chosen.url is not None:
        reading = facts.databases[0].reading if facts.databases else None
        rebuild = () if reading is None else tool("reembed", reading.path, machine, *words(request.chosen, machine))
        endpoint = named(request.chosen, machine.env)
        return [Goal(endpoint=endpoint, label="--url", reading=reading, rebuild=rebuild)]
    return goals_of(facts)


def _stored(request: Request, goals: Sequence[Goal]) -> tuple[StoredText, ...]:
    """Stored texts, of the one database in question. Raises ``UsageError`` where they may not be sent."""
    if not request.samples:
        return ()
    found = {goal.reading.path: goal.reading for goal in goals if goal.reading is not None}
    if len(found) != 1:
        what = "no database is known" if not found else f"{len(found)} databases are in question"
        raise UsageError(f"--sample-from-db: {what}; name one with --db")
    (path, reading), *_ = found.items()
    if reading.state is not State.OK:
        raise CommandError(
            f"--sample-from-db: {path} cannot be read ({reading.state}): {reading.detail or 'no more is known'}"
        )
    _consent(request, goals)
    try:
        rows = CPersonaStore(path).texts(request.samples, deadline=time.monotonic() + _SAMPLING)
    except StoreError as error:
        raise CommandError(f"--sample-from-db: {error}") from None
    return tuple(StoredText(str(row.id), row.text, unpack(row.vector) or ()) for row in rows)


def _consent(request: Request, goals: Iterable[Goal]) -> None:
    """Stored texts leave this computer only when the user says so, here or by ``--yes``."""
    away = list(dict.fromkeys(bare_url(g.endpoint.url) for g in goals if not is_loopback(g.endpoint.url)))
    if not away or request.yes:
        return
    where = ", ".join(away)
    refusal = UsageError(
        f"--sample-from-db would send stored texts to {where}, not on this computer; add --yes to allow it"
    )
    if not (terminal(sys.stdin) and terminal(sys.stderr)):
        raise refusal
    say(f"{plural(request.samples, 'stored text')} would be sent to {where}. Type yes to allow it:")
    if sys.stdin.readline().strip().lower() != "yes":
        raise refusal


def _measure(request: Request, goals: Sequence[Goal], texts: tuple[StoredText, ...]) -> Sequence[Measured]:
    plan = Plan(
        timeout=request.timeout,
        wait=request.wait,
        count=request.count,
        identify=request.identify,
        full=request.full,
        role=request.role or "",
        samples=texts,
    )
    return measure_all([goal.endpoint for goal in goals], plan)


def _nothing(goals: Sequence[Goal], facts: Facts) -> list[str]:
    """Why there is nothing to call, where there is nothing."""
    if goals:
        modes = {goal.endpoint.mode for goal in goals}
        return ["no embedding backend is configured (mode none)"] if modes == {Mode.NONE} else []
    if facts.registrations:
        return [f"{plural(len(facts.registrations), 'registration')} found, and no client would start a server here"]
    return ["no registration of CPersona was found; name an endpoint with --url"]


def _rerun(request: Request, subjects: Sequence[Subject]) -> str:
    """The command that examines the same again; an endpoint of the command line as it works or should be written."""
    selection, chosen = request.selection, request.chosen
    words = [_NAME]
    if chosen.url is not None:
        solution = subjects[0].measured.refinement.solution
        corrected = dict(subjects[0].measured.outcome.evidence).get("suggestion", "")
        if corrected:
            chosen = replace(chosen, url=corrected)
        if solution is not None:
            model = solution.model or chosen.model
            chosen = replace(chosen, url=solution.url, mode=solution.mode, model=model)
        words += [f"--url {quoted(bare_url(chosen.url or ''))}"]
    for option, value in (("--mode", chosen.mode), ("--model", chosen.model)):
        words += [f"{option} {quoted(value)}"] if value is not None else []
    words += [f"--api-key-file {quoted(str(request.chosen.key_file))}"] if request.chosen.key_file else []
    words += [f"--client {quoted(name)}" for name in selection.clients]
    words += [f"--registration {quoted(spec)}" for spec in selection.registrations]
    words += ["--env"] if selection.env else []
    words += [f"--db {quoted(str(selection.db))}"] if selection.db is not None else []
    return " ".join(words)


_PATIENCE = {Kind.LOADING: 120, Kind.TIMEOUT: 180, Kind.THROTTLED: 60}


def _next(subjects: Sequence[Subject], rerun: str, ran: int) -> str:
    """The one command that helps most where nothing was found to be wrong."""
    waits = [_PATIENCE[subject.kind] for subject in subjects if subject.kind in _PATIENCE]
    if waits:
        return f"{rerun} --wait {max(waits)}"
    return "" if ran else "cpersona-cli doctor"
