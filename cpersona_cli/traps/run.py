"""Running traps over facts: which ones, on what, and how each check ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import groupby
from typing import TypeAlias

from cpersona_cli.install.clients.table import IN_TERMINAL
from cpersona_cli.install.release.version import NEWEST_KNOWN, older
from cpersona_cli.record import record, replace
from cpersona_cli.start.model import Start
from cpersona_cli.traps.model import (
    CannotTellError,
    Database,
    Facts,
    Finding,
    Judged,
    Needs,
    Previewed,
    Severity,
    SkipError,
    Subject,
    Target,
    Trap,
)

Examined: TypeAlias = Target | Database | Subject | Start | Judged | Previewed | None


class State(StrEnum):
    """How a check ended."""

    PASS = "pass"  # noqa: S105
    FINDINGS = "findings"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


@record(kw_only=True)
class Check:
    """One trap, run on everything it applies to. ``reason`` explains ``unknown`` and ``skipped``."""

    trap: Trap
    state: State
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    subjects: int = 0


@record
class _Outcome:
    state: State
    findings: tuple[Finding, ...] = ()
    reason: str = ""


def check(trap: Trap, facts: Facts) -> Check:
    """Run one trap on every subject it needs.

    A trap that raises anything but its own two exceptions is ``unknown``: one broken trap never hides the others.
    """
    outcomes = [_merge(group) for group in _by_subject(trap, facts)]
    findings = tuple(finding for outcome in outcomes for finding in outcome.findings)
    reasons = {outcome.reason: None for outcome in outcomes if outcome.state is State.UNKNOWN}
    if not outcomes:
        return Check(trap=trap, state=State.SKIPPED, reason=_nothing(trap))
    ran = [outcome for outcome in outcomes if outcome.state is not State.SKIPPED]
    if not ran:
        return Check(trap=trap, state=State.SKIPPED, reason=outcomes[0].reason)
    state = State.FINDINGS if findings else State.UNKNOWN if reasons else State.PASS
    return Check(trap=trap, state=state, findings=findings, reason="; ".join(reasons), subjects=len(ran))


def run(traps: Iterable[Trap], facts: Facts, *, skip: Callable[[Trap], str] = lambda _: "") -> tuple[Check, ...]:
    """Run the traps in their order; ``skip`` returns the reason not to run one, or an empty string."""
    checks = []
    for trap in traps:
        reason = skip(trap)
        checks.append(Check(trap=trap, state=State.SKIPPED, reason=reason) if reason else check(trap, facts))
    return tuple(checks)


def _nothing(trap: Trap) -> str:
    return {
        Needs.REGISTRATION: "no registration that a client would start",
        Needs.DATABASE: "no database to look at",
        Needs.ENDPOINT: "no embedding endpoint that can be called",
        Needs.START: "no server was started (--start does)",
        Needs.FIT: "no stored vectors were compared (cpersona-cli dimension does)",
        Needs.ADVISORY: "no advisory was previewed (cpersona-cli advisory-preview does)",
        Needs.MACHINE: "nothing to look at",
    }[trap.needs]


def _by_subject(trap: Trap, facts: Facts) -> list[list[tuple[Examined, _Outcome]]]:
    """Outcomes grouped by subject: the environments of one registration form one group."""
    if trap.needs is Needs.MACHINE:
        return [[(None, _once(trap, facts, ""))]]
    if trap.needs is Needs.DATABASE:
        return [[(d, _once(trap, replace(facts, current=d), d.subject))] for d in facts.databases]
    if trap.needs is Needs.ENDPOINT:
        return [[(s, _once(trap, replace(facts, current=s), s.label))] for s in facts.endpoints]
    if trap.needs is Needs.START:
        return [[(s, _once(trap, replace(facts, current=s), s.registration.label))] for s in facts.starts]
    if trap.needs is Needs.FIT:
        return [[(j, _once(trap, replace(facts, current=j), j.subject))] for j in facts.fits]
    if trap.needs is Needs.ADVISORY:
        return [[(p, _once(trap, replace(facts, current=p), p.label))] for p in facts.previews]
    groups = groupby(facts.targets, key=lambda target: id(target.registration))
    return [
        [(t, _once(trap, replace(facts, current=t), t.registration.label)) for t in targets] for _, targets in groups
    ]


def _merge(group: Sequence[tuple[Examined, _Outcome]]) -> _Outcome:
    """One outcome for a registration: findings that hold under only one assumption say so."""
    outcomes = [outcome for _, outcome in group]
    if len(outcomes) == 1:
        return outcomes[0]
    total = len(outcomes)
    seen: dict[tuple[str, str], list[tuple[Examined, Finding]]] = {}
    for subject, outcome in group:
        for finding in outcome.findings:
            seen.setdefault((finding.fingerprint, finding.measured), []).append((subject, finding))
    findings = tuple(pairs[0][1] if len(pairs) == total else _conditional(*pairs[0]) for pairs in seen.values())
    if findings:
        return _Outcome(State.FINDINGS, findings)
    worst = [State.UNKNOWN, State.PASS, State.SKIPPED, State.FINDINGS]
    return min(outcomes, key=lambda outcome: worst.index(outcome.state))


def _conditional(subject: Examined, finding: Finding) -> Finding:
    """A finding under one assumption: no fault of a client that is usually started the other way.

    Clients that run in a terminal have the shell's variables; without them they start only from other programs.
    """
    severity = finding.severity or Severity.FAULT
    if isinstance(subject, Target):
        terminal = subject.registration.client in IN_TERMINAL
        usual = terminal and subject.environment.assumption == "shell"
        mildest = Severity.HINT if terminal else Severity.WARNING
        severity = severity if usual else max(severity, mildest, key=lambda one: one.rank)
    return replace(finding, depends=_condition(subject), severity=severity)


def _condition(subject: Examined) -> str:
    if isinstance(subject, Target) and subject.environment.assumption == "shell":
        return "depends on how the client was started: true when it starts from a shell with these variables"
    return "depends on how the client was started: true when it starts without this shell's variables"


def _once(trap: Trap, facts: Facts, subject: str) -> _Outcome:
    try:
        findings = tuple(trap.stamp(finding, subject) for finding in trap.detect(facts))
    except SkipError as reason:
        return _Outcome(State.SKIPPED, reason=str(reason))
    except CannotTellError as reason:
        return _Outcome(State.UNKNOWN, reason=str(reason))
    except Exception as error:  # noqa: BLE001 - the isolation this function exists for
        return _Outcome(State.UNKNOWN, reason=f"the check itself failed ({type(error).__name__}); please report it")
    return _bounded(trap, facts, findings)


def _bounded(trap: Trap, facts: Facts, findings: tuple[Finding, ...]) -> _Outcome:
    """Hold a trap to the server releases it applies to; what would bite in an untold release is ``unknown``."""
    if not findings or not (trap.since or trap.until) or not isinstance(facts.current, Target):
        return _Outcome(State.FINDINGS if findings else State.PASS, findings)
    version = facts.current.version.version
    bounds = (f"from {trap.since} on" if trap.since else "", f"before {trap.until}" if trap.until else "")
    span = " and ".join(bound for bound in bounds if bound)
    if version is None:
        if not trap.until or older(NEWEST_KNOWN, trap.until):
            return _Outcome(State.FINDINGS, findings)
        return _Outcome(State.UNKNOWN, reason=f"true of servers {span}; {facts.current.version.evidence}")
    if (trap.since and older(version, trap.since)) or (trap.until and not older(version, trap.until)):
        return _Outcome(State.PASS)
    return _Outcome(State.FINDINGS, findings)
