"""How stored vectors and the endpoint go together, told for people. Never a stored text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cpersona_cli.fit.model import TABLES, Fit, Likeness
from cpersona_cli.report.figures import FAINT, FULL, HALF, LOW, Bars, Spans, Strip, Table, minute
from cpersona_cli.report.model import Section
from cpersona_cli.store.model import Contents, Defect, Form, Group, Kind
from cpersona_cli.text import percent, plural, safe
from cpersona_cli.traps.model import Judged
from cpersona_cli.traps.vectors_stored import NOUNS, rows_of

Row = tuple[str, str, str]

_AGENTS = 8
_FLAWS: Mapping[Defect, str] = {
    Defect.BIG_ENDIAN: "big-endian",
    Defect.FLOAT64: "64-bit floats",
    Defect.QUARTER_WIDTH: "base64 taken for numbers",
    Defect.NON_FINITE: "not finite",
    Defect.ZERO: "all zeros",
    Defect.NOT_UNIT: "not of length one",
}

#: What a compared row is drawn as, the most serious last.
_MARKS = (
    (FULL, "same as a new vector"),
    ("?", "not judged"),
    (HALF, "near"),
    (LOW, "another width"),
    (FAINT, "another model"),
)
_MARK = {
    Likeness.UNJUDGED: "?",
    Likeness.SAME: FULL,
    Likeness.NEAR: HALF,
    Likeness.WIDTH: LOW,
    Likeness.OTHER: FAINT,
}


def headline(fits: Sequence[Judged]) -> str:
    """``1 database, 1 endpoint, 6 calls, 24 stored texts sent``."""
    databases = {judged.path for judged in fits}
    endpoints = {(j.fit.live.mode, j.fit.live.address) for j in fits if j.fit.live is not None}
    parts = [plural(len(databases), "database"), plural(len(endpoints), "endpoint")]
    calls = sum(judged.fit.live.calls for judged in fits if judged.fit.live is not None)
    parts += [plural(calls, "call")] if calls else []
    sent = sum(judged.fit.texts_sent for judged in fits)
    return ", ".join([*parts, *([f"{plural(sent, 'stored text')} sent"] if sent else [])])


def sections(judged: Judged, left_out: str = "") -> Iterator[Section]:
    """One database and one endpoint. ``left_out`` is why no stored text was embedded again, if none was."""
    fit = judged.fit
    yield Section(title=_title(judged), rows=list(_rows(judged, left_out)), verbosity=0)
    yield from _vectors(fit)
    yield from _over_time(fit)
    yield from _sampled(fit)
    yield from _norms(fit.census.contents)


def _title(judged: Judged) -> str:
    live = judged.fit.live
    beside = "no endpoint" if live is None else f"{live.address or 'no URL'} (mode {safe(live.mode, 20)})"
    return f"{judged.path} beside {beside}"


def _rows(judged: Judged, left_out: str) -> Iterator[Row]:
    fit, live = judged.fit, judged.fit.live
    yield "status", f"{fit.state}: {fit.detail}" if fit.detail else str(fit.state), ""
    if judged.label and judged.label != "--url":
        yield "used by", judged.label, ""
    if live is not None and live.dim is not None:
        named = [f"model {safe(live.model, 80)}"] if live.model else []
        named += [f"fingerprint {safe(live.fingerprint, 40)}"] if live.fingerprint else []
        yield "endpoint", ", ".join([f"{live.dim} dimensions, measured", *named]), ""
    elif live is not None:
        yield "endpoint", live.sentence or f"not measured ({live.call})", ""
    yield "sample", _sample(fit, left_out), ""
    yield "contents", _contents(fit.census.contents), ""
    if fit.lost:
        yield "agents", _agents(fit), ""
    if blank := sum(fit.census.blank.values()):
        rows = rows_of((TABLES[kind], count) for kind, count in fit.census.blank.items() if count)
        yield "blank", f"{rows} without a text, which never {'get' if blank > 1 else 'gets'} a vector", ""
    if fit.advisory:
        yield "advisory", f"the server will tell its agent {safe(fit.advisory)}", ""
    if fit.past is not None:
        holds = "and still so" if fit.past.holds else "and no longer so"
        made = f"{fit.past.rows:,} vectors of {fit.past.dim} dimensions"
        yield "past", f"re-embedded {minute(fit.past.finished)}: {made}, {holds}", ""
    missed = dict.fromkeys((*fit.unmeasured, *fit.census.unmeasured))
    if missed:
        yield "not measured", ", ".join(safe(name, 120) for name in missed), ""


def _sample(fit: Fit, left_out: str) -> str:
    if not fit.texts_sent:
        return f"no stored text was embedded again{f': {left_out}' if left_out else ''}"
    counts = {likeness: sum(row.likeness is likeness for row in fit.compared) for likeness in Likeness}
    words = {
        Likeness.SAME: "same",
        Likeness.NEAR: "near",
        Likeness.OTHER: "another model’s",
        Likeness.WIDTH: "of another width",
        Likeness.UNJUDGED: "not judged",
    }
    said = ", ".join(f"{counts[likeness]} {word}" for likeness, word in words.items() if counts[likeness])
    parts = [f"{plural(len(fit.compared), 'stored vector')} beside new ones: {said}"]
    if fit.median is not None and fit.lowest is not None:
        parts.append(f"median cosine {fit.median:.3f}, lowest {fit.lowest:.3f}")
    if fit.thresholds is not None:
        parts.append(f"same from {fit.thresholds.same:.3f}, another model below {fit.thresholds.other:.3f}")
    return "; ".join(parts)


def _contents(contents: Contents) -> str:
    if not contents.total:
        return "no vectors"
    if not contents.looked:
        return f"none of {contents.total:,} vectors were read"
    read = f"all {contents.looked:,}" if contents.complete else f"{contents.looked:,} of {contents.total:,}"
    shape = f"{read} vectors read"
    if not contents.flaws:
        return f"{shape}: finite, none zero, of length one"
    return f"{shape}: " + ", ".join(f"{flaw.rows:,} {_FLAWS[flaw.defect]} ({flaw.table})" for flaw in contents.flaws)


def _agents(fit: Fit) -> str:
    ordered = sorted(fit.lost, key=lambda cost: (-cost.lost, -cost.rows, cost.agent))
    parts = [
        f"{safe(cost.agent, 60) or '(no agent)'} {cost.rows:,}"
        + (f", {cost.lost:,} not found by meaning ({percent(cost.lost, cost.rows)})" if cost.lost else "")
        for cost in ordered[:_AGENTS]
    ]
    more = [f"{len(ordered) - _AGENTS} more"] if len(ordered) > _AGENTS else []
    return "; ".join([*parts, *more])


def _vectors(fit: Fit) -> Iterator[Section]:
    """The table of all groups, agents taken together; with ``-v`` one line for each agent."""
    if not fit.census.groups:
        return
    header = ("table", "width", "label", "rows", "oldest", "newest")
    rows = [
        (table, width, label, f"{count:,}", oldest, newest)
        for (table, width, label), count, oldest, newest in _merged(fit.census.groups)
    ]
    table = Table(header=header, rows=rows, numbers=frozenset({1, 3}), elastic=2)
    yield Section(title="stored vectors", rows=(), figures=(table,), verbosity=0)
    by_agent = [
        (safe(g.agent, 40) or "(no agent)", g.table, _width(g), _label(g), f"{g.rows:,}")
        for g in sorted(fit.census.groups, key=lambda group: (group.agent, group.table, -group.rows))
        if g.table in NOUNS
    ]
    if by_agent:
        figure = Table(
            header=("agent", "table", "width", "label", "rows"), rows=by_agent, numbers=frozenset({2, 4}), elastic=3
        )
        yield Section(title="stored vectors by agent", rows=(), figures=(figure,))


def _merged(groups: Sequence[Group]) -> Sequence[tuple[tuple[str, str, str], int, str, str]]:
    """Rows, oldest and newest by (table, width, label), in the order of the tables, the largest group first."""
    merged: dict[tuple[str, str, str], tuple[int, str, str]] = {}
    order = {table: number for number, table in enumerate(dict.fromkeys(group.table for group in groups))}
    for group in groups:
        key = group.table, _width(group), _label(group)
        count, oldest, newest = merged.get(key, (0, "", ""))
        first = min(filter(None, (oldest, group.oldest)), default="")
        merged[key] = count + group.rows, first, max(newest, group.newest)
    lines = [(key, count, _day(first), _day(last)) for key, (count, first, last) in merged.items()]
    return sorted(lines, key=lambda line: (order[line[0][0]], line[0][1] == "none", -line[1]))


def _width(group: Group) -> str:
    if group.form is Form.VECTOR:
        return "?" if group.width is None else str(group.width)
    return "none" if group.form is Form.NULL else str(group.form)


def _label(group: Group) -> str:
    return safe(group.label, 60) if group.label else "-"


def _day(stamp: str) -> str:
    return minute(stamp)[:10] if stamp else "-"


def _over_time(fit: Fit) -> Iterator[Section]:
    """When which kind of vector was written, where there is more than one."""
    kinds: dict[tuple[str, str, str], list[Group]] = {}
    for group in fit.census.of(*NOUNS):
        if group.form is Form.VECTOR and group.oldest:
            kinds.setdefault((group.table, _width(group), _label(group)), []).append(group)
    if len({key[1:] for key in kinds}) < 2:
        return
    rows = [
        (
            f"{table} {width}" + (f" {label[:24]}" if label != "-" else ""),
            min(group.oldest for group in groups),
            max(group.newest for group in groups),
        )
        for (table, width, label), groups in kinds.items()
    ]
    yield Section(title="when they were written", rows=(), figures=(Spans(rows=rows),), verbosity=0)


def _sampled(fit: Fit) -> Iterator[Section]:
    """Every row looked at as a mark, oldest first; shown without ``-v`` where not all are the same."""
    if not fit.judged:
        return
    rows: list[tuple[str, str]] = []
    ends: tuple[str, str] = ("", "")
    for kind in Kind:
        own = sorted((row for row in fit.compared if row.kind is kind), key=lambda row: row.id)
        if own:
            rows.append((TABLES[kind], "".join(_MARK[row.likeness] for row in own)))
            ends = ends if any(ends) else (_day(own[0].created), _day(own[-1].created))
    plain = all(row.likeness in {Likeness.SAME, Likeness.UNJUDGED} for row in fit.compared)
    strip = Strip(rows=rows, marks=_MARKS, ends=ends if len(rows) == 1 else ("oldest", "newest"))
    yield Section(
        title="stored vectors beside new ones of the same texts", rows=(), figures=(strip,), verbosity=int(plain)
    )


def _norms(contents: Contents) -> Iterator[Section]:
    """How long the vectors are, where not all are of length one."""
    if len(contents.norms) < 2:
        return
    lengths = sorted(contents.norms.items())
    if len(lengths) > 12:
        lengths = _binned(lengths, 12)
    bars = Bars(rows=[(f"{length:.2f}", count) for length, count in lengths])
    odd = any(flaw.defect is Defect.NOT_UNIT for flaw in contents.flaws)
    yield Section(title="lengths of the vectors", rows=(), figures=(bars,), verbosity=0 if odd else 1)


def _binned(lengths: Sequence[tuple[float, int]], bins: int) -> list[tuple[float, int]]:
    """Counts by the lower edge of equally wide steps."""
    low, high = lengths[0][0], lengths[-1][0]
    step = (high - low) / bins
    counts = [0] * bins
    for length, count in lengths:
        counts[min(bins - 1, int((length - low) / step))] += count
    return [(low + number * step, count) for number, count in enumerate(counts)]
