"""One run of ``dimension``: from a request over databases beside their endpoints to the report."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

from cpersona_cli.commands import chosen as choosing
from cpersona_cli.commands.chosen import Chosen
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.options import LONGEST_WAIT
from cpersona_cli.commands.pairing import Pair, elsewhere, look, pairs, rerun
from cpersona_cli.embedding.kinds import MEANINGS, Stage
from cpersona_cli.fit.model import Basis, State
from cpersona_cli.install.machine import Machine, this_machine
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.record import field, record, replace
from cpersona_cli.report import dimension, dimension_json, inventory
from cpersona_cli.report.model import Report
from cpersona_cli.report.output import say
from cpersona_cli.store.model import StoreError
from cpersona_cli.store.reading import State as Readable
from cpersona_cli.text import bare_url, plural
from cpersona_cli.traps.concurrent import concurrently
from cpersona_cli.traps.gather import Selection
from cpersona_cli.traps.model import Database, Facts, Finding, Judged, Severity
from cpersona_cli.traps.run import run
from cpersona_cli.traps.vectors_fit import JUDGES

_NAME = "cpersona-cli dimension"

#: Seconds for a run, and for one that reads every vector.
_SECONDS, _DEEP_SECONDS = 120.0, 3600.0
_MOST_SAMPLES = 1000
_GATHERING = 20.0
#: What measuring may take beyond its deadline before it is given up.
_GRACE = 5.0


@record(kw_only=True)
class Request:
    """What the user asked of one run."""

    selection: Selection
    chosen: Chosen = field(default_factory=Chosen)
    notes: tuple[str, ...] = ()
    sample: int = 24
    deep: bool = False
    yes: bool = False
    offline: bool = False
    timeout: float | None = None


@record(kw_only=True)
class _Done:
    """What became of one pair: ``judged``, or the sentence why it was not. ``left_out``: why no text was sent."""

    pair: Pair
    judged: Judged | None = None
    why: str = ""
    left_out: str = ""


def examine(request: Request, machine: Machine | None = None) -> Report:
    """Find the pairs, measure them, and judge. Raises ``CommandError`` when there can be no result."""
    start = time.monotonic()
    _check(request)
    machine = machine or this_machine()
    seconds = request.timeout or (_DEEP_SECONDS if request.deep else _SECONDS)
    facts = look(request.selection, machine, min(seconds, _GATHERING))
    found = pairs(facts, request.chosen, machine)
    left_out = {id(pair): why for pair in found if (why := _left_out(request, pair))}
    _consent(request, found, left_out)
    done = _all(request, found, left_out, start + seconds)
    made = [one for one in done if one.judged is not None]
    fits = [one.judged for one in made if one.judged is not None]
    known = replace(facts, fits=tuple(fits), databases=_databases(facts, fits))
    checks = run(JUDGES, known, skip=lambda _trap: "" if fits else "nothing was measured")
    findings = _distinct([finding for check in checks for finding in check.findings])
    unsettled = {number: tuple(_unsettled(one)) for number, one in enumerate(made)}
    sentences = [*facts.unfinished, *_nothing(facts), *(one.why for one in done if one.why)]
    again = rerun(_NAME, request.selection, request.chosen, machine)
    return Report(
        command="dimension",
        headline=dimension.headline(fits),
        checks=checks,
        findings=findings,
        unsettled=[*sentences, *(sentence for number in unsettled for sentence in unsettled[number])],
        sections=[
            section
            for one in made
            if one.judged is not None
            for section in dimension.sections(one.judged, one.left_out)
        ],
        notes=request.notes,
        payload=dimension_json.payload(
            [(one.judged, one.pair.endpoint) for one in made if one.judged is not None],
            {number: one.left_out for number, one in enumerate(made)},
            unsettled,
        ),
        next_command=_next(request, made, findings, again, machine),
        rerun=again,
        summary=_summary(fits, findings),
        elapsed=time.monotonic() - start,
        home=str(machine.home),
        secrets=(*inventory.secrets(facts), *(s for p in found if p.endpoint for s in p.endpoint.secrets)),
    )


def _check(request: Request) -> None:
    """Refuse what makes no sense. Raises ``UsageError``."""
    choosing.check(request.chosen, request.selection, beside=True)
    if request.offline and request.chosen.url is not None:
        raise UsageError("--offline calls nothing, so it does not go with --url")
    if not 0 <= request.sample <= _MOST_SAMPLES:
        raise UsageError(f"--sample takes a number from 0 to {_MOST_SAMPLES}, not {request.sample}")
    if request.timeout is not None and not 0 < request.timeout <= LONGEST_WAIT:
        most = f"{LONGEST_WAIT:g}"
        raise UsageError(f"--timeout takes a number of seconds above 0 and up to {most}, not {request.timeout:g}")


def _left_out(request: Request, pair: Pair) -> str:
    """Why no stored text would be embedded again, whatever the user consents to."""
    if request.offline:
        return "nothing was called (--offline)"
    if pair.endpoint is None:
        return "no endpoint is known"
    return "not asked for (--sample 0)" if not request.sample else ""


def _consent(request: Request, found: Sequence[Pair], left_out: dict[int, str]) -> None:
    """Stored texts leave this computer only when the user says so; without, widths and labels are judged."""
    away = [
        pair
        for pair in found
        if id(pair) not in left_out and pair.endpoint is not None and not is_loopback(pair.endpoint.url)
        and pair.database.reading.state is Readable.OK
    ]  # fmt: skip
    if not away or request.yes:
        return
    where = ", ".join(dict.fromkeys(bare_url(pair.endpoint.url) for pair in away if pair.endpoint is not None))
    if choosing.terminal(sys.stdin) and choosing.terminal(sys.stderr):
        say(f"{plural(request.sample, 'stored text')} would be sent to {where}, to compare their vectors.")
        say("Type yes to allow it; anything else compares widths and labels only:")
        if sys.stdin.readline().strip().lower() == "yes":
            return
    for pair in away:
        left_out[id(pair)] = f"{where} is another computer, and that was not allowed (--yes)"


def _all(request: Request, found: Sequence[Pair], left_out: Mapping[int, str], end: float) -> list[_Done]:
    """Every pair measured, at the same time, in the order of the pairs."""
    open_ones = [pair for pair in found if pair.database.reading.state is Readable.OK]
    results, missed = concurrently(
        lambda pair: _one(request, pair, left_out.get(id(pair), ""), end), open_ones, end + _GRACE
    )
    by_pair = {id(one.pair): one for one in results}
    by_pair.update((id(pair), _Done(pair=pair, why=f"{pair.database.path}: {why}")) for pair, why in missed)
    return [by_pair.get(id(pair)) or _Done(pair=pair, why=_unreadable(pair.database)) for pair in found]


def _unreadable(database: Database) -> str:
    reading = database.reading
    if reading.state in {Readable.MISSING, Readable.NO_FOLDER}:
        return f"{database.path}: there is no such database"
    return f"{database.path} cannot be read ({reading.state}): {reading.detail or 'no more is known'}"


def _one(request: Request, pair: Pair, left_out: str, end: float) -> _Done:
    from cpersona_cli.fit.stored import Stored  # noqa: PLC0415 - not for a usage error
    from cpersona_cli.store.cpersona.store import CPersonaStore  # noqa: PLC0415 - brings SQLite along

    store = CPersonaStore(pair.database.path)
    stored = Stored(store=store, sample=request.sample, deep=request.deep, deadline=end).begin()
    from cpersona_cli.fit.measure import measure  # noqa: PLC0415 - the HTTP client, imported while the store is read

    try:
        fit = measure(
            store,
            None if request.offline else pair.endpoint,
            sample=request.sample,
            deep=request.deep,
            texts_allowed=not left_out,
            stated=pair.stated,
            deadline=end,
            stored=stored,
        )
    except StoreError as error:
        named = str(pair.database.path) in str(error)
        return _Done(pair=pair, why=f"{error}" if named else f"{pair.database.path}: {error}")
    judged = Judged(path=pair.database.path, label=pair.label, fit=fit, target=pair.target, options=pair.options)
    return _Done(pair=pair, judged=judged, left_out=left_out)


def _databases(facts: Facts, fits: Sequence[Judged]) -> tuple[Database, ...]:
    """The databases that were measured, with what was counted."""
    counted = {judged.path: judged.fit.census for judged in fits}
    return tuple(replace(d, census=counted[d.path]) for d in facts.databases if d.path in counted)


def _distinct(findings: Sequence[Finding]) -> list[Finding]:
    """One finding for what two endpoints of one database show alike."""
    seen: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        seen.setdefault((finding.fingerprint, finding.measured), finding)
    return list(seen.values())


def _outside(judged: Judged) -> str:
    """Where the server stands, if that is another network than this command's."""
    base = "" if judged.target is None else judged.target.environment.base
    return {"container": "a container", "wsl": "WSL"}.get(base, "")


def _unsettled(one: _Done) -> Sequence[str]:
    """Why there is no verdict on a pair; nothing where there is one."""
    judged = one.judged
    if judged is None or judged.fit.state is not State.UNKNOWN:
        return ()
    live = judged.fit.live
    beside = f"{judged.path} ({judged.label})" if judged.label else str(judged.path)
    if live is not None and _outside(judged) and MEANINGS[live.call].stage is Stage.NETWORK:
        where = f"in {_outside(judged)}, on another network than this command"
        return (f"{beside}: its server runs {where}, and from here {live.address} cannot be judged",)
    if live is None and one.pair.endpoint is None:
        return (f"{beside}: no registration opens it, so its endpoint is not known; name one with --url",)
    detail = judged.fit.detail or "the endpoint was not compared"
    rejected = live is not None and "dimensions" in live.sentence and live.dim is None
    hint = "; CPersona sends no `dimensions`: something between adds it" if rejected else ""
    return (f"{beside}: {detail}{hint}",)


def _nothing(facts: Facts) -> list[str]:
    """Why there is nothing to look at, where there is nothing."""
    if facts.databases:
        return []
    if facts.registrations:
        number = plural(len(facts.registrations), "registration")
        if elsewhere(facts):
            return [f"{number} found, whose server runs elsewhere; run this command there, on its database"]
        return [f"{number} found, and none tells a database that can be looked at; name it with --db"]
    return ["no registration of CPersona was found; name a database with --db and an endpoint with --url"]


def _next(request: Request, made: Sequence[_Done], findings: Sequence[Finding], again: str, machine: Machine) -> str:
    """The one command that helps most now: against a fault, then towards a verdict, then against the rest."""
    faults = [finding for finding in findings if finding.severity is Severity.FAULT]
    milder = sorted((f for f in findings if f not in faults), key=lambda f: (f.severity or Severity.HINT).rank)
    if faults:
        return _command(faults[0])
    for one in made:
        if one.judged is None or one.judged.fit.state is not State.UNKNOWN:
            continue
        live = one.judged.fit.live
        if live is None:
            return again if request.offline else f"{again} --url URL"
        if live.dim is None:
            return rerun("cpersona-cli probe", replace(request.selection, db=None), request.chosen, machine)
        if one.left_out:
            return f"{again} --sample 24" if not request.sample else f"{again} --yes"
        if one.judged.fit.unmeasured or one.judged.fit.census.unmeasured:
            return f"{again} --timeout {3 * (request.timeout or _SECONDS):g}"
        return f"{rerun('cpersona-cli probe', request.selection, request.chosen, machine)} --sample-from-db 24"
    if milder:
        return _command(milder[0])
    return "" if made else "cpersona-cli doctor"


def _command(finding: Finding) -> str:
    return next(iter(finding.repair.commands), f"cpersona-cli traps explain {finding.trap}")


def _summary(fits: Sequence[Judged], findings: Sequence[Finding]) -> str:
    """The verdict in the words of the question: the state and both widths, or how many there are of each state."""
    counts = {severity: sum(finding.severity is severity for finding in findings) for severity in Severity}
    told = ", ".join(
        plural(counts[severity], str(severity)) for severity in Severity if counts[severity] or severity != "hint"
    )
    if not fits:
        return ""
    if len(fits) > 1:
        states = {state: sum(judged.fit.state is state for judged in fits) for state in State}
        said = ", ".join(f"{number} {_word(state, counts)}" for state, number in states.items() if number)
        return f"{said}; {told}."
    fit = fits[0].fit
    widths = f"stored {fit.stored_dim or 'none'}, expected {fit.expected_dim or 'not known'}"
    basis = " (by width alone)" if fit.state is State.OK and fit.basis is Basis.WIDTH else ""
    return f"{_word(fit.state, counts)}{basis}, {widths}; {told}."


def _word(state: State, counts: Mapping[Severity, int]) -> str:
    """A state as the last line says it: nothing is called ok beside a fault."""
    return "the model fits" if state is State.OK and counts[Severity.FAULT] else str(state)
