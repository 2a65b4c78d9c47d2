"""From what was counted and measured to one state and one sentence. Pure; a measurement overrules every label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from cpersona_cli.fit.compare import longest_same
from cpersona_cli.fit.labels import Standing, standing
from cpersona_cli.fit.model import (
    TABLES,
    Basis,
    Break,
    Compared,
    Likeness,
    Live,
    Located,
    Past,
    State,
    Thresholds,
)
from cpersona_cli.record import record
from cpersona_cli.store.model import Census, Defect, Form, Group
from cpersona_cli.text import plural, safe

#: Defects of blobs that hold no vector in the only reading the server knows.
_MISREAD = {Defect.BIG_ENDIAN: "big-endian numbers", Defect.FLOAT64: "64-bit numbers"}


@record(kw_only=True)
class Evidence:
    """Everything a state is told from. ``why`` says why no texts were compared, where none were."""

    census: Census
    live: Live | None = None
    lines: Thresholds | None = None
    compared: tuple[Compared, ...] = ()
    located: tuple[Located, ...] = ()
    past: Past | None = None
    why: str = ""

    @property
    def vectors(self) -> Sequence[Group]:
        return [group for group in self.census.of(*TABLES.values()) if group.form is Form.VECTOR and group.rows]

    @property
    def judged(self) -> Sequence[Compared]:
        return [row for row in self.compared if row.likeness in {Likeness.SAME, Likeness.NEAR, Likeness.OTHER}]


@record
class Verdict:
    """The state, what it rests on, and one sentence."""

    state: State
    basis: Basis
    detail: str


def judge(evidence: Evidence) -> Verdict:
    """The most serious state that the evidence shows."""
    verdict = _unreadable(evidence) or _empty(evidence) or _by_width(evidence)
    if verdict is None:
        verdict = _by_vectors(evidence) if evidence.judged else _by_label(evidence)
    past = evidence.past
    if verdict.state is State.OK and past is not None and past.holds:
        when = f" on {past.finished[:16]} UTC" if past.finished else ""
        return Verdict(State.HEALED, verdict.basis, f"re-embedded{when}; {verdict.detail}")
    return verdict


def _unreadable(evidence: Evidence) -> Verdict | None:
    vectors = sum(group.rows for group in evidence.vectors)
    forms: dict[Form, int] = {}
    for group in evidence.census.of(*TABLES.values()):
        if group.form in {Form.TEXT, Form.ODD, Form.EMPTY}:
            forms[group.form] = forms.get(group.form, 0) + group.rows
    broken = sum(forms.values())
    if broken > vectors:
        listed = ", ".join(f"{rows} {_FORMS[form]}" for form, rows in forms.items())
        return Verdict(
            State.UNREADABLE,
            Basis.STORED,
            f"{broken} of {broken + vectors} stored vectors are no vectors of any width: {listed}",
        )
    for defect, words in _MISREAD.items():
        rows = sum(
            flaw.rows
            for flaw in evidence.census.contents.flaws
            if flaw.defect is defect and flaw.table in TABLES.values()
        )
        if rows * 2 > evidence.census.contents.looked > 0:
            detail = f"{rows} of {evidence.census.contents.looked} stored vectors looked at hold {words}"
            return Verdict(State.UNREADABLE, Basis.STORED, f"{detail}, which the server reads as something else")
    return None


_FORMS = {Form.TEXT: "are text", Form.ODD: "have a length that is no number of dimensions", Form.EMPTY: "are empty"}


def _empty(evidence: Evidence) -> Verdict | None:
    if evidence.vectors:
        return None
    rows = sum(group.rows for group in evidence.census.of(*TABLES.values()))
    none = "no vectors are stored" + (f"; {plural(rows, 'row has', 'rows have')} none" if rows else "")
    if evidence.live is None or evidence.live.dim is None:
        return Verdict(State.UNKNOWN, Basis.STORED, f"{none}, and {_silence(evidence.live)}")
    return Verdict(State.EMPTY, Basis.STORED, none)


def _by_width(evidence: Evidence) -> Verdict | None:
    """What the widths alone decide, or nothing where all stored vectors have that of the endpoint."""
    widths = evidence.census.widths(*TABLES.values())
    total, live = sum(widths.values()), evidence.live
    listed = " and ".join(f"{rows} with {width}" for width, rows in list(widths.items())[:4])
    if live is None or live.dim is None:
        if len(widths) > 1:
            detail = f"stored vectors are of {len(widths)} widths: {listed}{_changes(evidence)}; {_silence(live)}"
            return Verdict(State.MIXED, Basis.STORED, detail)
        stored = f"{plural(total, 'stored vector has', 'stored vectors have')} {next(iter(widths))} dimensions"
        return Verdict(State.UNKNOWN, Basis.STORED, f"{stored}; {_silence(live)}")
    fitting = widths.get(live.dim, 0)
    if fitting == total:
        return None
    if not fitting:
        all_of = "the one stored vector has" if total == 1 else f"all {total} stored vectors have"
        stored = f"{all_of} {next(iter(widths))} dimensions" if len(widths) == 1 else listed
        return Verdict(State.CHANGED, Basis.WIDTH, f"{stored}; the endpoint makes {live.dim}{_changes(evidence)}")
    detail = f"{total - fitting} of {total} stored vectors have another width than the endpoint’s {live.dim}: {listed}"
    strange = sum(row.likeness is Likeness.OTHER for row in evidence.judged)
    if strange:
        detail += f"; of those as wide, {strange} of {len(evidence.judged)} compared are another model’s too"
    return Verdict(State.MIXED, Basis.WIDTH, detail + _changes(evidence))


def _silence(live: Live | None) -> str:
    if live is None:
        return "the endpoint was not asked"
    return f"what the endpoint makes could not be measured: {live.sentence}"


def _by_label(evidence: Evidence) -> Verdict:
    """All is of one width and no vectors were compared."""
    live = evidence.live
    assert live is not None  # noqa: S101 - or the widths had decided
    rows: dict[Standing, int] = {}
    names: dict[str, int] = {}
    for group in evidence.vectors:
        stands = standing(group.label, live)
        rows[stands] = rows.get(stands, 0) + group.rows
        if stands is Standing.OTHER:
            names[group.label] = names.get(group.label, 0) + group.rows
    total, other = sum(rows.values()), rows.get(Standing.OTHER, 0)
    not_compared = f"no texts were compared: {evidence.why}" if evidence.why else "no texts were compared"
    if other:
        listed = " and ".join(f"“{safe(name, 60)}”" for name in list(names)[:3])
        detail = f"{other} of {total} stored vectors are labelled {listed}, and the endpoint is {_name(live)}"
        state = State.SWAPPED if other == total else State.MIXED
        return Verdict(state, Basis.LABEL, f"{detail}{_changes(evidence)}; {not_compared}")
    if rows.get(Standing.SAME, 0) == total:
        detail = f"all {total} stored vectors have {live.dim} dimensions and the endpoint’s fingerprint"
        return Verdict(State.OK, Basis.LABEL, f"{detail}; {not_compared}")
    detail = f"the width fits ({live.dim}), and whether the model does cannot be told: {not_compared}"
    return Verdict(State.UNKNOWN, Basis.WIDTH, detail)


def _name(live: Live) -> str:
    names = [f"“{safe(name, 60)}”" for name in dict.fromkeys((live.model or live.asked, live.fingerprint)) if name]
    return ", fingerprint ".join(names) or "another"


def _by_vectors(evidence: Evidence) -> Verdict:
    """Texts were embedded again."""
    judged, lines = evidence.judged, evidence.lines or Thresholds()
    cosines = [row.cosine for row in judged if row.cosine is not None]
    middle, lowest, count = median(cosines), min(cosines), len(judged)
    found = {likeness: [row for row in judged if row.likeness is likeness] for likeness in Likeness}
    same, other = len(found[Likeness.SAME]), len(found[Likeness.OTHER])
    figures = f"cosines: median {middle:.3f}, lowest {lowest:.3f} of {count}"
    cut = longest_same(judged, lines)
    if cut is not None:
        detail = f"only texts of more than {cut} characters get another vector now ({figures}): they are cut elsewhere"
        return Verdict(State.DRIFTED, Basis.VECTORS, f"{detail}{_changes(evidence)}")
    if same and other:
        detail = f"of {count} stored texts embedded again {count - same} get another vector than the stored one"
        return Verdict(State.MIXED, Basis.VECTORS, f"{detail}{_changes(evidence)}")
    if middle < lines.other:
        width = evidence.live.dim if evidence.live else None
        detail = (
            f"the width fits ({width}), but another model made the stored vectors; against new ones of the same texts"
        )
        return Verdict(State.SWAPPED, Basis.VECTORS, f"{detail}, {figures}{_despite(evidence)}")
    if middle < lines.same or any(located.breaks for located in evidence.located):
        detail = f"new vectors of the same texts are only near the stored ones ({figures})"
        return Verdict(
            State.DRIFTED,
            Basis.VECTORS,
            f"{detail}: another build, quantisation or window of one model{_despite(evidence)}{_changes(evidence)}",
        )
    asked = [row for row in evidence.compared if row.likeness is not Likeness.WIDTH]
    if count * 2 < len(asked):
        detail = f"only {count} of {len(asked)} stored texts could be compared: {_reason(asked)}"
        return Verdict(State.UNKNOWN, Basis.WIDTH, detail)
    detail = f"{plural(count, 'stored text', 'stored texts')} embedded again gave the stored vectors ({figures})"
    nearly = f"; {count - same} of them only nearly" if same < count else ""
    return Verdict(State.OK, Basis.VECTORS, f"{detail}{nearly}{_despite(evidence)}")


def _reason(rows: Sequence[Compared]) -> str:
    reasons: dict[str, int] = {}
    for row in rows:
        if row.why:
            reasons[row.why] = reasons.get(row.why, 0) + 1
    return max(reasons, key=lambda why: reasons[why], default="the endpoint gave no vectors")


def _despite(evidence: Evidence) -> str:
    """A label that says otherwise than the vectors do."""
    live = evidence.live
    assert live is not None  # noqa: S101 - vectors were compared with its own
    stands = {standing(row.label, live) for row in evidence.judged}
    alike = all(row.likeness is not Likeness.OTHER for row in evidence.judged)
    if alike and Standing.OTHER in stands:
        return "; their labels name another model"
    if not alike and stands & {Standing.SAME, Standing.NAMED}:
        return "; their labels name this one"
    return ""


def _changes(evidence: Evidence) -> str:
    """Where the writers changed, as the end of a sentence."""
    parts = []
    for located in evidence.located:
        many = TABLES[located.kind]
        if located.interleaved:
            parts.append(f"{many} of both stand among each other, as two clients write them")
        elif len(located.breaks) > 1:
            parts.append(f"{many} changed {len(located.breaks)} times, last {_change(located.breaks[-1])}")
        elif located.breaks:
            parts.append(f"{many} changed {_change(located.breaks[0])}")
        elif located.isolated:
            parts.append(f"in {many}, id {located.isolated[0].id} differs from all around it")
    return f"; {'; '.join(parts)}" if parts else ""


def _change(change: Break) -> str:
    exactly = "" if change.exact else "somewhere "
    return (
        f"{exactly}between {change.before.created or 'an unknown time'} (id {change.before.id}, "
        f"{_side(change.before)}) and {change.after.created or 'an unknown time'} (id {change.after.id}, "
        f"{_side(change.after)})"
    )


_SIDES: Mapping[Likeness, str] = {
    Likeness.SAME: "this model’s",
    Likeness.NEAR: "near this model’s",
    Likeness.OTHER: "another model’s",
}


def _side(row: Compared) -> str:
    return _SIDES.get(row.likeness) or f"{row.width} dimensions" + (f", “{safe(row.label, 60)}”" if row.label else "")
