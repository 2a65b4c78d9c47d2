"""What a probe measured, told for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.embedding.measured import Identity, Measured
from cpersona_cli.embedding.model import ServerView
from cpersona_cli.report.figures import Bars
from cpersona_cli.report.model import Section
from cpersona_cli.text import bare_url, plural, safe, secret
from cpersona_cli.traps.endpoint import unsettled
from cpersona_cli.traps.model import Subject

Row = tuple[str, str, str]


def headline(subjects: Sequence[Subject]) -> str:
    """``1 endpoint, 12 calls``."""
    calls = sum(subject.measured.calls for subject in subjects)
    return f"{plural(len(subjects), 'endpoint')}, {plural(calls, 'call')}"


def sections(subjects: Sequence[Subject], texts: Mapping[str, str]) -> Iterator[Section]:
    """One block for each endpoint; ``texts`` are stored texts by id that the user asked to see."""
    for subject in subjects:
        endpoint = subject.measured.endpoint
        where = bare_url(endpoint.url) or "no URL"
        rows = [*_steps(subject.measured), *_facts(subject)]
        yield Section(title=f"{subject.label}: mode {safe(endpoint.mode, 20)}, {where}", rows=rows, verbosity=0)
        yield from _times(subject)
        yield from _experiments(subject)
        yield from _shown_texts(subject, texts)


def _steps(found: Measured) -> Iterator[Row]:
    """What was measured; what was not, in one line for each reason."""
    left_out: dict[str, list[str]] = {}
    for step in found.steps:
        if step.state == "skipped":
            left_out.setdefault(step.detail, []).append(step.name)
        else:
            yield step.name, step.detail, ""
    for reason, names in left_out.items():
        yield "not made", f"{', '.join(names)}: {reason}", ""


def _facts(subject: Subject) -> Iterator[Row]:
    found = subject.measured
    outcome = found.outcome
    if found.ready_after is not None:
        yield "ready", f"ready after {found.ready_after:.1f} s", ""
    if found.first_call is not None and found.second_call is not None:
        yield "cold start", f"first call {found.first_call:.2f} s, second {found.second_call:.2f} s", ""
    if outcome.via_proxy:
        yield "proxy", outcome.via_proxy, ""
    if found.out_of_order:
        yield "order", "the server answers out of order; every vector was placed by its index", ""
    yield "CPersona", _view(outcome.server_view), ""
    if found.health is not None:
        calls = ", ".join(f"{kind} → {state}" for kind, state in found.health.calls)
        yield "advisory", f"state {found.health.state} after {plural(len(found.health.calls), 'call')}: {calls}", ""
    if found.identity is not None:
        yield from _identity(found.identity)
    if subject.kind is Kind.OK and outcome.model:
        yield "model", f"{outcome.model}, as the replies say", ""


def _times(subject: Subject) -> Iterator[Section]:
    """How long the calls took that can be compared, as a picture; the rows above tell what follows from it."""
    found = subject.measured
    calls = [("first call", found.first_call), ("second call", found.second_call)]
    calls += [(plural(made.size, "text"), made.seconds) for made in found.batches if made.kind is Kind.OK]
    rows = [(name, round(seconds * 1000)) for name, seconds in calls if seconds is not None]
    if len(rows) > 1:
        yield Section(title=f"milliseconds of a call: {subject.label}", rows=(), figures=(Bars(rows=rows),))


def _view(view: ServerView) -> str:
    if view.ok:
        return "would record success"
    if view.crash:
        return f"would fail with {view.crash} outside of what it catches"
    if not view.attempted:
        return f"would call nothing: {view.error or 'no backend'}"
    return f"would record: {view.error or 'nothing'}"


def _identity(identity: Identity) -> Iterator[Row]:
    parts = [f"{identity.family} {identity.version}".strip(), identity.model]
    parts += [f"{identity.dimensions} dimensions"] if identity.dimensions else []
    parts += [f"window {identity.window} tokens"] if identity.window else []
    parts += [f"at most {identity.largest_batch} texts at once"] if identity.largest_batch else []
    shown = ", ".join(part for part in parts if part)
    if shown:
        yield "server", shown, ""
    if identity.models:
        more = f" and {len(identity.models) - 10} more" if len(identity.models) > 10 else ""
        yield "models", f"{', '.join(identity.models[:10])}{more}", ""
    if identity.role != "unknown":
        yield "role", f"{identity.role} ({identity.role_from})", ""


def _experiments(subject: Subject) -> Iterator[Section]:
    made = subject.measured.refinement.experiments
    if made:
        rows = [
            (
                experiment.changed,
                f"{'answered' if experiment.helped else MEANINGS[experiment.kind].sentence}"
                + (f" (“{experiment.message}”)" if experiment.message else ""),
                "",
            )
            for experiment in made
        ]
        yield Section(title="tried besides, one thing changed each time", rows=rows, verbosity=0)


def _shown_texts(subject: Subject, texts: Mapping[str, str]) -> Iterator[Section]:
    sampled = subject.measured.sampled
    failed = [] if sampled is None else [(identifier, kind) for identifier, kind in sampled.failed]
    rows = [(identifier, safe(texts[identifier]), "") for identifier, _ in failed if identifier in texts]
    if rows:
        yield Section(title="stored texts that fail", rows=rows, verbosity=0)


def payload(subjects: Sequence[Subject], texts: Mapping[str, str]) -> Mapping[str, object]:
    """The fields of one endpoint at the top, those of several as ``targets``."""
    if len(subjects) == 1:
        return _target(subjects[0], texts)
    return {"targets": [_target(subject, texts) for subject in subjects]}


def _target(subject: Subject, texts: Mapping[str, str]) -> Mapping[str, object]:
    found = subject.measured
    outcome, endpoint = found.outcome, found.endpoint
    return {
        "kind": outcome.kind,
        "stage": outcome.stage,
        "sentence": MEANINGS[outcome.kind].sentence,
        "fault": MEANINGS[outcome.kind].fault,
        "unsettled_because": list(unsettled(subject)),
        "label": subject.label,
        "endpoint": {
            "mode": endpoint.mode,
            "url": bare_url(endpoint.url),
            "model": endpoint.model,
            "key": secret(endpoint.key),
            "timeout_seconds": endpoint.timeout,
            "via_proxy": outcome.via_proxy,
        },
        "server_view": _server_view(outcome.server_view),
        "attempted": outcome.attempted,
        "ok": outcome.ok,
        "retryable": outcome.retryable,
        "retry_after_seconds": outcome.retry_after,
        "status": outcome.status,
        "server_message": outcome.server_message,
        "evidence": [{"name": name, "value": value} for name, value in outcome.evidence],
        "dimensions": outcome.dim,
        "norm_min": min(outcome.norms, default=None),
        "norm_max": max(outcome.norms, default=None),
        "served_model": outcome.model,
        "out_of_order": found.out_of_order,
        "calls": found.calls,
        "calls_repeated": found.dropped,
        "seconds": round(found.seconds, 3),
        "ready_after_seconds": found.ready_after,
        "first_call_seconds": found.first_call,
        "second_call_seconds": found.second_call,
        "largest_batch": found.largest_batch,
        "batches": [
            {"texts": made.size, "kind": made.kind, "seconds": made.seconds, "stated_limit": made.limit}
            for made in found.batches
        ],
        "window": _window(found),
        "separation": _separation(found),
        "steps": [{"name": step.name, "state": step.state, "detail": step.detail} for step in found.steps],
        "remarks": [
            {"name": remark.name, "kind": remark.kind, "measured": remark.measured, "fatal": remark.fatal}
            for remark in found.remarks
        ],
        "experiments": [
            {
                "changed": made.changed,
                "mode": made.mode,
                "url": made.url,
                "kind": made.kind,
                "status": made.status,
                "server_message": made.message,
                "helped": made.helped,
            }
            for made in found.refinement.experiments
        ],
        "solution": _solution(found),
        "identity": _identified(found.identity),
        "health": None
        if found.health is None
        else {
            "state": found.health.state,
            "calls": [{"kind": kind, "state_after": state} for kind, state in found.health.calls],
        },
        "samples": None
        if found.sampled is None
        else {
            "tried": found.sampled.tried,
            "unfinished": found.sampled.unfinished,
            "compared": found.sampled.compared,
            "agreement": found.sampled.agreement,
            "differing": found.sampled.differing,
            "failed": [
                {"id": identifier, "kind": kind, **({"text": texts[identifier]} if identifier in texts else {})}
                for identifier, kind in found.sampled.failed
            ],
        },
    }


def _server_view(view: ServerView) -> Mapping[str, object]:
    return {
        "attempted": view.attempted,
        "ok": view.ok,
        "error": view.error,
        "leaks": view.leaks,
        "crash": view.crash or None,
    }


def _window(found: Measured) -> Mapping[str, object] | None:
    window = found.window
    if window is None:
        return None
    return {
        "words": window.words,
        "characters": window.characters,
        "at_least": window.at_least,
        "truncates": window.cut,
        "refused_with": window.refused,
        "stated_tokens": window.limit,
    }


def _separation(found: Measured) -> Mapping[str, object] | None:
    apart = found.separation
    if apart is None:
        return None
    return {
        "related": round(apart.related, 4),
        "strangers": round(apart.strangers, 4),
        "closest_stranger": round(apart.closest_stranger, 4),
        "partners_found": apart.nearest,
        "texts": apart.of,
    }


def _solution(found: Measured) -> Mapping[str, object] | None:
    solution = found.refinement.solution
    if solution is None:
        return None
    return {
        "mode": solution.mode,
        "url": bare_url(solution.url),
        "model": solution.model or None,
        "no_proxy": solution.no_proxy or None,
        "needs_any_key": solution.key,
        "trim_key": solution.trim_key,
    }


def _identified(identity: Identity | None) -> Mapping[str, object] | None:
    if identity is None:
        return None
    return {
        "family": identity.family or None,
        "version": identity.version or None,
        "model": identity.model or None,
        "models": identity.models,
        "dimensions": identity.dimensions,
        "window_tokens": identity.window,
        "largest_batch": identity.largest_batch,
        "fingerprint": identity.fingerprint or None,
        "role": identity.role,
        "role_from": identity.role_from or None,
        "asked": [{"request": request, "answer": answer} for request, answer in identity.asked],
    }
