"""From what was measured at an endpoint to findings: what is wrong, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cpersona_cli.embedding.endpoints import MODEL, URL
from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.embedding.model import Mode
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.text import plural
from cpersona_cli.traps.endpoint_remarks import REMARKS
from cpersona_cli.traps.endpoint_repairs import address, one_model, place_of, repair_of, set_for, setting_of, with_place
from cpersona_cli.traps.model import Finding, Repair, Severity, Subject

#: Ends of a call that are no verdict: the endpoint may be fine, and that could not be found out.
UNDECIDED = frozenset({Kind.LOADING, Kind.TIMEOUT, Kind.THROTTLED, Kind.INTERNAL})

_COSTS = "no memory gets a vector: memories are found only by shared words, and CPersona calls it “unreachable”"
_COSTS_SILENT = "CPersona takes the endpoint for healthy, and its searches by meaning return nothing or anything"


def trap_id(name: str) -> str:
    """``endpoint.model-not-found`` for a kind or a remark."""
    return f"endpoint.{name.replace('_', '-')}"


def findings(subject: Subject) -> Iterator[Finding]:
    """What is wrong, the decisive thing first."""
    kind, found = subject.kind, subject.measured
    if MEANINGS[kind].fatal and kind not in UNDECIDED | {Kind.DISABLED} and not subject.outside:
        yield _decisive(subject)
    for remark in found.remarks:
        advice = REMARKS[remark.name]
        name = setting_of(subject, None, advice.setting or URL)
        prose = with_place(subject, name, advice.repair) if advice.setting else advice.repair
        value = dict(remark.evidence).get("write", advice.value)
        stored = _stored(subject, remark.name)
        yield Finding(
            trap=trap_id(remark.name),
            severity=Severity.FAULT if remark.fatal else Severity.WARNING if stored else advice.severity,
            subject=subject.label,
            about=name,
            place=place_of(subject, name),
            measured=f"{remark.measured}{stored}",
            expected=advice.expected,
            costs=advice.costs,
            repair=set_for(subject, {name: value}) if value else Repair(prose=prose),
            evidence=remark.evidence,
        )
    yield from _widths(subject)
    yield from _samples(subject)
    yield from _another_model(subject)


def unsettled(subject: Subject) -> Iterator[str]:
    """Why there is no verdict on this endpoint; nothing where there is one."""
    found, kind = subject.measured, subject.kind
    if subject.outside:
        inside = "a container" if subject.target and subject.target.environment.base == "container" else "WSL"
        yield (
            f"{subject.label}: its server runs in {inside}, on another network than this command, and from here "
            f"{address(subject)} cannot be judged: {MEANINGS[kind].sentence}"
        )
        return
    if kind in UNDECIDED:
        yield f"{subject.label}: {_sentence(subject)}; {_WAIT[kind]} ({trap_id(kind)})"
        return
    for step in found.steps:
        if step.state == "unknown":
            yield f"{subject.label}: {step.name} could not be measured: {step.detail}"


_WAIT: Mapping[Kind, str] = {
    Kind.LOADING: "wait until the model is loaded: --wait 120",
    Kind.TIMEOUT: "that is slow and not “down”: a first call may have to load a model: --wait 180",
    Kind.THROTTLED: "wait and try again: --wait 60",
    Kind.INTERNAL: "please report it",
}


def _decisive(subject: Subject) -> Finding:
    name = setting_of(subject, subject.kind)
    outcome = subject.measured.outcome
    evidence = (
        *outcome.evidence,
        *((f"tried {made.changed}", f"{made.kind}") for made in subject.measured.refinement.experiments),
    )
    return Finding(
        trap=trap_id(subject.kind),
        # readable by other clients, and a setting of a proxy away from working
        severity=Severity.WARNING if subject.kind is Kind.BASE64 else Severity.FAULT,
        subject=subject.label,
        about=name,
        place=place_of(subject, name),
        measured=_sentence(subject),
        expected="vectors in the contract of this mode, finite, different for different texts",
        costs=_COSTS_SILENT if outcome.server_view.ok else _COSTS,
        repair=repair_of(subject, name),
        evidence=evidence,
    )


def _sentence(subject: Subject) -> str:
    """What happened, where, and what the server itself said of it."""
    found, outcome = subject.measured, subject.measured.outcome
    parts = [MEANINGS[outcome.kind].sentence]
    if outcome.attempted:
        status = f" is answered with {outcome.status}" if outcome.status else ""
        parts.append(f"POST {address(subject)} in mode {found.endpoint.mode}{status}")
    shown = dict(outcome.evidence)
    detail = shown.get("objection") or shown.get("detail") or shown.get("looks like")
    parts += [detail] if detail else []
    parts += [f"“{outcome.server_message}”"] if outcome.server_message else []
    parts += [f"by way of the proxy {outcome.via_proxy}"] if outcome.via_proxy else []
    return ", ".join([": ".join(parts[:2]), *parts[2:]])


def _readable(subject: Subject) -> Reading | None:
    reading = subject.reading
    return reading if reading is not None and reading.state is State.OK else None


def _stored(subject: Subject, name: str) -> str:
    """How the longest stored memory compares with a window."""
    reading, window = _readable(subject), subject.measured.window
    if reading is None or window is None or name not in {"truncating", "window-too-small"}:
        return ""
    if reading.longest_content <= window.characters:
        return ""
    return f"; the longest stored memory has {reading.longest_content} characters"


def _widths(subject: Subject) -> Iterator[Finding]:
    """The stored vectors and the endpoint's are of one width, or nothing that is stored can be compared."""
    reading, dim = _readable(subject), subject.measured.outcome.dim
    if reading is None or dim is None or not subject.measured.outcome.ok or not reading.widths or dim in reading.widths:
        return
    stored = ", ".join(
        f"{plural(rows, 'memory has', 'memories have')} {width}" for width, rows in reading.widths.items()
    )
    name = setting_of(subject, None, URL)
    yield Finding(
        trap=trap_id(Kind.DIMENSION_MISMATCH),
        severity=Severity.FAULT,
        subject=subject.label,
        about=name,
        place=place_of(subject, name),
        measured=f"the endpoint makes {dim} dimensions; in {reading.path} {stored}",
        expected="vectors as wide as the stored ones",
        costs="no stored memory is found any more, not even by its words, and CPersona says nothing",
        repair=one_model(subject, name),
    )


def _samples(subject: Subject) -> Iterator[Finding]:
    sampled = subject.measured.sampled
    if sampled is None or not sampled.failed:
        return
    kinds = {kind for _, kind in sampled.failed}
    nan = kinds <= {Kind.NAN_FOR_INPUT, Kind.BAD_VALUES, Kind.NULL_VECTOR}
    why = "; ".join(sorted(MEANINGS[kind].sentence for kind in kinds))
    yield Finding(
        trap=trap_id("nan-for-some-inputs" if nan else "some-texts-fail"),
        severity=Severity.WARNING,
        subject=subject.label,
        about="memories.content",
        measured=f"the endpoint is up, and {len(sampled.failed)} of {sampled.tried} stored texts fail: {why}; "
        f"memories {_listed([identifier for identifier, _ in sampled.failed])}",
        expected="a vector for every stored text",
        costs="these memories get no vector; a re-embedding stops or skips them",
        repair=Repair(
            prose="use another build or server of the model, or shorten these memories; --show-text shows them"
        ),
    )


def _another_model(subject: Subject) -> Iterator[Finding]:
    """The stored vectors are those that the endpoint makes, or it is another model of the same width."""
    sampled = subject.measured.sampled
    if sampled is None or not sampled.differing:
        return
    another = sampled.agreement is not None and sampled.agreement < sampled.thresholds.other
    name = setting_of(subject, None, MODEL if subject.measured.endpoint.mode == Mode.API else URL)
    yield Finding(
        trap=trap_id(Kind.MODEL_MISMATCH),
        severity=Severity.FAULT if another else Severity.WARNING,
        subject=subject.label,
        about=name,
        place=place_of(subject, name),
        measured=f"embedded again, {len(sampled.differing)} of {sampled.compared} stored texts get another vector "
        f"than the stored one (median cosine {sampled.agreement:.2f}): memories {_listed(sampled.differing)}",
        expected="the same vectors as the stored ones",
        costs="vectors of two models are compared as if they were of one: searches by meaning return anything",
        repair=one_model(subject, name),
    )


def _listed(identifiers: Sequence[str]) -> str:
    more = f" and {len(identifiers) - 20} more" if len(identifiers) > 20 else ""
    return f"{', '.join(identifiers[:20])}{more}"
