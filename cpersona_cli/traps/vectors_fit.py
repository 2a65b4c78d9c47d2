"""Stored vectors beside the endpoint they are searched with: of one width, of one model, or which are not.

Measuring happens in ``fit``; here its answer becomes findings. ``doctor`` compares a few vectors only (group
``endpoint``); these traps run in ``cpersona-cli dimension``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cpersona_cli.fit.model import TABLES, Basis, Break, Compared, Fit, Likeness, State
from cpersona_cli.record import replace
from cpersona_cli.store.model import Form
from cpersona_cli.text import percent, plural, safe
from cpersona_cli.traps import live, vectors
from cpersona_cli.traps.model import Detect, Facts, Finding, Judged, Needs, Repair, Severity, SkipError, Trap
from cpersona_cli.traps.vectors_stored import NOUNS, misshapen, reembed, rows_of, unreadable
from cpersona_cli.traps.vectors_stored import TRAPS as STORED

_AGENTS = 5
_BREAKS = 3


def lost(fit: Fit) -> str:
    """What recall by meaning cannot find now, in all and per agent; empty where nothing is lost."""
    missing, rows = sum(cost.lost for cost in fit.lost), sum(cost.rows for cost in fit.lost)
    if not missing:
        return ""
    said = f"recall by meaning cannot find {missing:,} of {rows:,} memories and episodes now, {percent(missing, rows)}"
    if len(fit.lost) == 1:
        return said
    worst = sorted((cost for cost in fit.lost if cost.lost), key=lambda cost: (-cost.lost, cost.agent))
    shares = [f"{safe(cost.agent, 60) or '(no agent)'} {cost.lost:,} of {cost.rows:,}" for cost in worst[:_AGENTS]]
    more = f", {len(worst) - _AGENTS} more agents" if len(worst) > _AGENTS else ""
    return f"{said} (by agent: {', '.join(shares)}{more})"


def nulled(fit: Fit) -> int:
    """Rows whose vector ``check_health(fix=true)`` would remove: all that are not as wide as the endpoint's."""
    return sum(
        group.rows
        for group in fit.census.of(*NOUNS)
        if group.form is not Form.NULL and not (group.form is Form.VECTOR and group.width == fit.expected_dim)
    )


def _costs(fit: Fit, *, width: bool) -> str:
    parts = [lost(fit) or "vectors that do not belong together are compared as if they did"]
    if not fit.advisory or fit.advisory.startswith("nothing"):
        parts.append("the server says nothing about it")
    else:
        parts.append(f"the server tells its agent {safe(fit.advisory)}")
    if width and (rows := nulled(fit)) and fit.expected_dim is not None:
        parts.append(f"check_health(fix=true) would set {plural(rows, 'vector')} to NULL")
    return "; ".join(parts)


def _endpoint(fit: Fit) -> str:
    found = fit.live
    return "the endpoint" if found is None else f"the endpoint {found.address}"


def _by_width(fit: Fit, widths: Sequence[int]) -> str:
    parts = []
    for width in widths:
        groups = [g for g in fit.census.of(*NOUNS) if g.form is Form.VECTOR and g.width == width]
        parts.append(f"{rows_of((group.table, group.rows) for group in groups)} with {width}")
    return ", ".join(parts)


def _need_width(fit: Fit) -> None:
    """Raises ``SkipError`` where the endpoint told no width."""
    if fit.expected_dim is None and fit.state is not State.EMPTY:
        raise SkipError("the endpoint’s width was not measured")


def _need_model(fit: Fit) -> None:
    """Raises ``SkipError`` where nothing tells the model behind the stored vectors."""
    if fit.state is State.CHANGED:
        raise SkipError("no vector is of the endpoint’s width")
    if fit.state is not State.EMPTY and fit.basis not in {Basis.VECTORS, Basis.LABEL}:
        raise SkipError("no stored vector was compared with a new one")


def _changed(facts: Facts) -> Iterator[Finding]:
    judged, fit = facts.judged, facts.judged.fit
    _need_width(fit)
    if fit.state is State.CHANGED:
        stored = _by_width(fit, list(fit.census.widths()))
        yield _finding(
            judged,
            measured=f"{_endpoint(fit)} makes {fit.expected_dim} dimensions, and stored are {stored}",
            expected="stored vectors as wide as the endpoint’s",
            costs=_costs(fit, width=True),
            repair=reembed(facts, "put the earlier model back, or re-embed everything with this one"),
        )


def _mixed(facts: Facts) -> Iterator[Finding]:
    judged, fit = facts.judged, facts.judged.fit
    widths = fit.census.widths()
    if fit.state is State.CHANGED or len(widths) < 2:
        return
    other = [width for width in widths if width != fit.expected_dim] if fit.expected_dim else list(widths)
    if fit.expected_dim is None:
        measured = f"vectors of {len(widths)} widths: {_by_width(fit, other)} dimensions"
    else:
        measured = f"{_by_width(fit, other)} dimensions, and {_endpoint(fit)} makes {fit.expected_dim}"
    fallback = "look at what the endpoint was at that time (a fallback model?), then " if _when(fit, "width") else ""
    yield _finding(
        judged,
        measured=f"{measured}{_when(fit, 'width')}",
        expected=f"{fit.expected_dim or 'one width'} for every vector",
        costs=_costs(fit, width=True),
        repair=reembed(facts, f"{fallback}re-embed the rows of another width", "--only", "mismatched"),
    )


def _foreign(facts: Facts) -> Iterator[Finding]:
    """Vectors of the right width that are another model's, beside others that fit."""
    judged, fit = facts.judged, facts.judged.fit
    _need_model(fit)
    if fit.state is State.SWAPPED or not any(fit.foreign.values()):
        return
    rows = rows_of((TABLES[kind], count) for kind, count in fit.foreign.items() if count)
    how = "by their label" if fit.basis is Basis.LABEL else "measured by embedding stored texts again"
    about = "about " if fit.interleaved or any(not one.exact for one in fit.breaks) else ""
    yield _finding(
        judged,
        measured=f"{about}{rows} have the right width and are another model’s ({how})"
        f"{_when(fit, 'model')}{_mingled(fit)}",
        costs=_costs(fit, width=False),
        repair=reembed(facts, "re-embed the rows of the other model", "--only", "foreign"),
        evidence=_cosines(fit),
    )


def _swapped(facts: Facts) -> Iterator[Finding]:
    judged, fit = facts.judged, facts.judged.fit
    _need_model(fit)
    if fit.state is not State.SWAPPED:
        return
    if fit.median is not None:
        how = f"embedded again, {len(fit.judged)} stored texts have a median cosine of {fit.median:.2f}"
    else:
        how = "the stored vectors are labelled with another model than the endpoint names"
    yield _finding(
        judged,
        measured=f"the width fits ({fit.stored_dim}), the model does not: {how}",
        expected="the model that questions are embedded with made the stored vectors too",
        costs=f"the server calls this healthy; {_costs(fit, width=False)}",
        repair=reembed(facts, "put the earlier model back, or re-embed everything with this one"),
        evidence=_cosines(fit),
    )


def _drifted(facts: Facts) -> Iterator[Finding]:
    judged, fit = facts.judged, facts.judged.fit
    _need_model(fit)
    if fit.state is not State.DRIFTED:
        return
    bad = fit.median is not None and fit.thresholds is not None and fit.median < fit.thresholds.other
    middle = "" if fit.median is None else f" (median cosine {fit.median:.2f})"
    yield _finding(
        judged,
        severity=Severity.FAULT if bad else Severity.WARNING,
        measured=f"{len(fit.judged)} stored texts, embedded again, get vectors near the stored ones and not the same"
        f"{middle}",
        repair=reembed(facts, "find out what changed in the endpoint (build, quantisation, window); then re-embed"),
        evidence=_cosines(fit),
    )


def _unreadable(facts: Facts) -> Iterator[Finding]:
    """Rows that hold no vector; or no such row, and yet no width can be told."""
    judged, fit = facts.judged, facts.judged.fit
    if misshapen(fit.census):
        yield from unreadable(fit.census, facts)
    elif fit.state is State.UNREADABLE:
        yield _finding(
            judged,
            measured=fit.detail or "no width can be told from the stored vectors",
            repair=reembed(facts, "re-embed everything"),
        )


def _two_models(facts: Facts) -> Iterator[Finding]:
    """Labels alone, where nothing more was measured."""
    judged, fit = facts.judged, facts.judged.fit
    labels: dict[str, int] = {}
    for group in fit.census.of(*NOUNS):
        if group.form is Form.VECTOR and group.label:
            labels[group.label] = labels.get(group.label, 0) + group.rows
    if len(labels) < 2 or any(fit.foreign.values()) or fit.state in {State.SWAPPED, State.CHANGED}:
        return
    listed = ", ".join(f"{safe(label, 60)} ({rows:,})" for label, rows in sorted(labels.items(), key=lambda i: -i[1]))
    yield _finding(
        judged,
        severity=Severity.FAULT if fit.state is State.MIXED and len(fit.census.widths()) < 2 else None,
        about="memories.embedding_model",
        measured=f"vectors of {len(labels)} models: {listed}",
        repair=reembed(facts, "decide on one model, give it to every client, then re-embed"),
    )


def _backlog(facts: Facts) -> Iterator[Finding]:
    judged, fit = facts.judged, facts.judged.fit
    if judged.target is not None and not vectors.blobs_kept(judged.target):
        return
    groups = [group for group in fit.census.of(*NOUNS) if group.form is Form.NULL]
    blank = sum(fit.census.blank.values())
    empty, total = sum(group.rows for group in groups), sum(group.rows for group in fit.census.of(*NOUNS))
    if empty - blank <= 0 or fit.state is State.EMPTY:
        return
    without = f" ({plural(blank, 'blank text')} among them, which never get one)" if blank else ""
    yield _finding(
        judged,
        severity=Severity.FAULT if 2 * empty > total else Severity.WARNING,
        measured=f"{rows_of((g.table, g.rows) for g in groups)} without a vector, of {total:,} in all{without}",
        repair=reembed(facts, "make sure that the endpoint answers, then fill them in", "--only", "missing"),
    )


def _empty(facts: Facts) -> Iterator[Finding]:
    judged, fit = facts.judged, facts.judged.fit
    if fit.state is not State.EMPTY:
        return
    groups = [group for group in fit.census.of(*NOUNS) if group.rows]
    rows = rows_of((group.table, group.rows) for group in groups)
    repair = Repair(prose="store a memory with the endpoint in place, then look again")
    if groups:
        repair = reembed(facts, "with an endpoint in place, give them their vectors", "--only", "missing")
    yield _finding(
        judged,
        measured=f"{rows}, and not one vector" if groups else "nothing is stored yet",
        costs=lost(fit) or "there is nothing to judge",
        repair=repair,
    )


def _misstated(facts: Facts) -> Iterator[Finding]:
    judged, fit = facts.judged, facts.judged.fit
    _need_width(fit)
    claims = () if fit.live is None else fit.live.misstated
    if claims and fit.live is not None:
        said = ", ".join(f"{safe(who, 80)} says {dim}" for who, dim in claims)
        yield _finding(
            judged,
            about="dimensions",
            measured=f"{fit.live.dim} dimensions were measured; {said}",
            repair=Repair(prose="correct the setting, or ignore it: nothing here relies on it"),
        )


def _finding(
    judged: Judged,
    *,
    measured: str,
    repair: Repair,
    about: str = "",
    expected: str = "",
    costs: str = "",
    severity: Severity | None = None,
    evidence: tuple[tuple[str, str], ...] = (),
) -> Finding:
    return Finding(
        subject=judged.subject,
        about=about or f"embedding ({judged.label})",
        measured=measured,
        expected=expected,
        costs=costs,
        severity=severity,
        repair=repair,
        evidence=(("endpoint", judged.label), *evidence),
    )


def _when(fit: Fit, what: str) -> str:
    """Where, by time, the writer changed: only breaks of width, or only those of the model."""
    breaks = [one for one in fit.breaks if _of_width(one) == (what == "width")]
    said = [
        f"{TABLES[one.kind]} up to {_stamp(one.before)} {_side(one, one.before)}, "
        f"from {_stamp(one.after)} on {_side(one, one.after)}"
        for one in breaks[:_BREAKS]
    ]
    more = f" and {len(breaks) - _BREAKS} more changes" if len(breaks) > _BREAKS else ""
    return f"; {'; '.join(said)}{more}" if said else ""


def _side(one: Break, row: Compared) -> str:
    """What the rows on one side of a change are."""
    if _of_width(one):
        return f"have {row.width}"
    return {
        Likeness.SAME: "are the endpoint’s own",
        Likeness.NEAR: "are near its own",
        Likeness.OTHER: "are another model’s",
    }.get(row.likeness, f"are labelled {safe(row.label, 60)}" if row.label else "are not labelled")


def _of_width(one: Break) -> bool:
    return one.before.width != one.after.width or Likeness.WIDTH in {one.before.likeness, one.after.likeness}


def _stamp(row: Compared) -> str:
    when = safe(row.created, 19).replace("T", " ")
    return f"{when} (id {row.id})" if when else f"id {row.id}"


def _mingled(fit: Fit) -> str:
    if not fit.interleaved:
        return ""
    return (
        f"; in {' and '.join(TABLES[kind] for kind in fit.interleaved)} they stand among the others: two clients write"
    )


def _cosines(fit: Fit) -> tuple[tuple[str, str], ...]:
    if fit.median is None or fit.lowest is None:
        return ()
    return (
        ("median cosine", f"{fit.median:.4f}"),
        ("lowest cosine", f"{fit.lowest:.4f}"),
        ("texts compared", f"{len(fit.judged)}"),
    )


_SOURCE = "measured on 2.6.14: a search skips vectors of another width, and takes any of the right width"

#: Traps of the list that only this command decides.
TRAPS = (
    Trap(
        id="vectors.foreign-rows",
        title="Part of the vectors is another model's",
        severity=Severity.FAULT,
        needs=Needs.FIT,
        detect=_foreign,
        expected="every vector made by the model that questions are embedded with",
        costs="these rows are found by chance, and hide better answers",
        repair="re-embed the rows of the other model",
        source="measured on 2.6.14: check_health(fix=true) calls this healthy",
    ),
    Trap(
        id="vectors.drifted",
        title="The model's vectors are not what they were",
        severity=Severity.WARNING,
        needs=Needs.FIT,
        detect=_drifted,
        expected="the same vector for the same text",
        costs="old memories rank a little below new ones; thresholds fit neither",
        repair="find out what changed in the endpoint (build, quantisation, window); then re-embed",
        source="other builds of one server give other numbers for the same weights",
    ),
    Trap(
        id="vectors.none",
        title="There is no vector to judge",
        severity=Severity.HINT,
        needs=Needs.FIT,
        detect=_empty,
        expected="a vector for every memory",
        costs="nothing can be found by meaning",
        repair="set up an endpoint, then give the memories their vectors",
        source=_SOURCE,
    ),
)

#: The same, of the group ``endpoint``.
ENDPOINT_TRAPS = (
    Trap(
        id="endpoint.dimensions-misstated",
        title="A stated number of dimensions is wrong",
        severity=Severity.WARNING,
        needs=Needs.FIT,
        detect=_misstated,
        expected="the number that is measured",
        costs="whoever believes the statement makes room for vectors of another width",
        repair="correct the setting, or ignore it",
        source="the reference embedding server states its setting EMBEDDING_DIMENSIONS, whatever the model gives",
    ),
)


def _here(name: str, detect: Detect, known: Sequence[Trap]) -> Trap:
    """A trap of the list, decided by what was measured here: same id, same meaning, better facts."""
    found = next(trap for trap in known if trap.id == name)
    return replace(found, needs=Needs.FIT, detect=detect, since="", until="")


#: What ``dimension`` runs, in the order of the report.
JUDGES: tuple[Trap, ...] = (
    _here("endpoint.dimension-mismatch", _changed, live.TRAPS),
    _here("endpoint.model-mismatch", _swapped, live.TRAPS),
    *ENDPOINT_TRAPS,
    _here("vectors.mixed-widths", _mixed, vectors.TRAPS),
    _here("vectors.two-models", _two_models, vectors.TRAPS),
    _here("vectors.backlog", _backlog, vectors.TRAPS),
    _here("vectors.unreadable", _unreadable, STORED),
    *(trap for trap in STORED if trap.id != "vectors.unreadable"),
    *TRAPS,
)
