"""What a rebuild would do and has done, told for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cpersona_cli.install.model import Place
from cpersona_cli.rebuild.judgement import Judgement
from cpersona_cli.rebuild.model import Only, Plan
from cpersona_cli.rebuild.work import Ended
from cpersona_cli.record import record
from cpersona_cli.report.figures import Copied
from cpersona_cli.report.model import Section
from cpersona_cli.report.progress import short, spoken
from cpersona_cli.store.job import Target
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing.settling import CutOver
from cpersona_cli.text import plural, safe

Row = tuple[str, str, str]

_NOUNS = {Kind.MEMORY: ("memory", "memories"), Kind.EPISODE: ("episode", "episodes")}
_CHOSEN = {
    Only.ALL: "every row",
    Only.MISSING: "rows without a vector",
    Only.MISMATCHED: "rows of another width, or without a vector",
    Only.DAMAGED: "rows whose vector no search can use",
    Only.FOREIGN: "rows of another model",
}
#: Labels that are listed by name.
_LABELS = 4
#: Failed rows that are listed in text.
_SHOWN = 10
#: Below this share of the free space what is needed is no matter.
_TIGHT = 0.5


@record(kw_only=True)
class Step:
    """One thing to do: a sentence, and what is to be copied: the edit of a file at ``place``, or commands."""

    sentence: str
    edit: str = ""
    place: Place | None = None
    commands: tuple[str, ...] = ()


def plan_section(plan: Plan, *, waiting: int | None = None) -> Section:
    """The plan. ``waiting`` is how many of its rows an earlier run has left to do, None where there was none."""
    return Section(title="plan", rows=list(_plan(plan, waiting)), verbosity=0)


def _plan(plan: Plan, waiting: int | None) -> Iterator[Row]:
    total = sum(plan.rows.values())
    yield "rows", ", ".join([f"{_CHOSEN[plan.only]}: {_by_kind(plan.rows)}", *_left_out(plan)]), ""
    if waiting is not None:
        yield "continues", f"{total - waiting:,} of {total:,} are done, {waiting:,} are left", ""
    yield "texts", f"{plan.distinct:,} different, {plan.characters:,} characters, about {short(plan.tokens)} tokens", ""
    yield "takes", _time(plan), ""
    yield "from", _old(plan), ""
    yield "to", identity(plan.target), ""
    if plan.consent:
        yield "sends", f"stored texts to {safe(plan.consent)}, which is not this computer", ""
    yield "disk", _disk(plan), ""
    yield "switch", f"in one step, for which other writers wait {_about(plan.lock_seconds)}", ""
    if plan.holders:
        yield "in use by", ", ".join(safe(holder) for holder in plan.holders), ""
    for warning in plan.warnings:
        yield "mind", safe(warning, 600), ""


def _about(seconds: float) -> str:
    return "less than a second" if seconds < 1 else f"about {seconds:.1f} s"


def _by_kind(rows: Mapping[Kind, int]) -> str:
    parts = [f"{count:,} {_NOUNS[kind][count != 1]}" for kind, count in rows.items() if count]
    return " and ".join(parts) or "none"


def _left_out(plan: Plan) -> Iterator[str]:
    if plan.blank:
        yield f"{plan.blank:,} blank"
    for reason, count in plan.left_out.items():
        yield f"{count:,} left as they are ({safe(reason)})"


def _time(plan: Plan) -> str:
    requests = f"about {plural(plan.requests, 'request')}"
    if plan.seconds is None:
        return f"{requests}; how long is not known"
    speed = f", {plan.pilot.texts_per_second:,.0f} texts/s measured" if plan.pilot is not None else ""
    return f"about {spoken(plan.seconds)} in {requests}{speed}" if plan.seconds >= 1 else f"{requests}, a moment"


def _old(plan: Plan) -> str:
    width = "no vectors" if plan.old_dim is None else f"{plan.old_dim} dimensions"
    labels = [
        f"{safe(label, 60) or 'no label'} ({count:,})" for label, count in list(plan.old_labels.items())[:_LABELS]
    ]
    labels += [f"{len(plan.old_labels) - _LABELS} more labels"] if len(plan.old_labels) > _LABELS else []
    return "; ".join([width, *([", ".join(labels)] if labels else [])])


def identity(target: Target) -> str:
    """One model at one endpoint, in a line."""
    parts = [f"{target.dim} dimensions", f"mode {safe(target.mode, 20)} at {safe(target.url)}"]
    model = target.served or (target.model if target.mode == "api" else "")
    parts += [f"model {safe(model, 100)}"] if model else []
    parts += [f"label {safe(target.label, 60)}"] if target.label else ["no label"]
    return ", ".join(parts)


def _disk(plan: Plan) -> str:
    need = plan.staging_bytes + plan.backup_bytes + plan.undo_bytes + plan.wal_bytes
    text = f"{size(need)} beside the database"
    if plan.free_bytes is not None:
        text += f", {size(plan.free_bytes)} are free"
    if plan.free_bytes is None or need > _TIGHT * plan.free_bytes:
        parts = (
            f"new vectors {size(plan.staging_bytes)}",
            f"backup {size(plan.backup_bytes)}",
            f"old vectors {size(plan.undo_bytes)}",
            f"log {size(plan.wal_bytes)}",
        )
        text += f" ({', '.join(parts)})"
    return text


def size(count: int) -> str:
    """``950 bytes``, ``12 KiB``, ``3.4 MiB``."""
    number = float(count)
    if number < 1024:
        return f"{count} bytes"
    for unit in ("KiB", "MiB", "GiB"):
        number /= 1024
        if number < 1024 or unit == "GiB":
            break
    return f"{number:.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"


def refused_section(sentences: Sequence[str]) -> Section:
    """Why it cannot be done."""
    return Section(title="refused", rows=[("", safe(sentence, 1000), "") for sentence in sentences], verbosity=0)


def steps_sections(steps: Sequence[Step]) -> Iterator[Section]:
    """What the user has to do now, in order, with what is to be copied."""
    for number, step in enumerate(steps, 1):
        yield Section(
            title="" if number > 1 else "what to do now",
            rows=[(f"{number}.", step.sentence, "")],
            figures=(Copied((step.edit, *step.commands)),) if step.edit or step.commands else (),
            verbosity=0,
        )


def judgement_section(judgement: Judgement) -> Section:
    """Whether search is better with the new vectors."""
    rows = [("", sentence, "") for sentence in judgement.sentences]
    return Section(title="search with the new vectors", rows=rows, verbosity=0)


def ended_sections(ended: Ended) -> Iterator[Section]:
    """What a run came to."""
    yield Section(title="result", rows=list(_result(ended)), verbosity=0)
    if ended.failed:
        yield Section(title="rows without a new vector", rows=list(_failed(ended)), verbosity=0)
    if ended.judgement is not None:
        yield judgement_section(ended.judgement)
    if ended.verified is not None:
        rows = [(check.name, check.sentence, "") for check in ended.verified.checks]
        yield Section(title="what was checked", rows=rows, verbosity=0 if not ended.verified.ok else 1)


def _result(ended: Ended) -> Iterator[Row]:
    counts, effort = ended.counts, ended.effort
    earlier = f", {ended.before:,} of them by earlier runs" if ended.before else ""
    yield "embedded", f"{counts.done:,} of {counts.planned - counts.nothing:,} rows{earlier}", ""
    if counts.failed:
        yield "failed", f"{plural(counts.failed, 'row')}, listed below", ""
    if counts.unchanged:
        yield "too long", f"{plural(counts.unchanged, 'row')}, left as they are; --cut-long would cut them", ""
    if counts.nothing:
        yield "blank", f"{plural(counts.nothing, 'row')} with nothing to embed", ""
    if ended.left:
        yield "left", f"{plural(ended.left, 'row')} for the next run", ""
    if effort.requests:
        yield "took", f"{spoken(effort.seconds)}, {_effort(ended)}", ""
    if effort.cut:
        yield "cut", f"{plural(effort.cut, 'text')} longer than the model reads", ""
    if effort.learned:
        yield "learned", f"limits of the endpoint: {_limits(effort.learned)}", ""
    if ended.cut is not None:
        yield "switched", _switch(ended.cut), ""
    if ended.missed:
        yield "missed", f"{plural(ended.missed, 'row')} came or changed while it was switched", ""
    if ended.detail:
        yield "reason", safe(ended.detail, 1000), ""


def _effort(ended: Ended) -> str:
    effort = ended.effort
    parts = [plural(effort.requests, "request"), f"{short(effort.tokens)} tokens"]
    parts += [plural(effort.retries, "retry", "retries")] if effort.retries else []
    parts += [f"{effort.same:,} equal texts"] if effort.same else []
    return ", ".join(parts)


_LIMIT_WORDS = {
    "batch": "texts in a request",
    "tokens": "tokens in a request",
    "bytes": "bytes in a request",
    "concurrency": "requests at a time",
    "window": "tokens in a text",
}


def _limits(learned: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {_LIMIT_WORDS.get(name, name)}" for name, number in learned.items())


def _switch(cut: CutOver) -> str:
    if cut.recovered:
        return "by the earlier run, which ended before it could say so"
    parts = [f"in one step; other writers waited {cut.locked_seconds:.2f} s"]
    parts += [f"{plural(cut.emptied, 'row')} left without a vector"] if cut.emptied else []
    parts += [f"calibration {cut.calibration}"] if cut.calibration else []
    return ", ".join(parts)


def _failed(ended: Ended) -> Iterator[Row]:
    for entry in ended.failed[:_SHOWN]:
        tokens = f", {entry.tokens:,} tokens" if entry.tokens else ""
        said = f": {entry.detail}" if entry.detail else ""
        yield f"{entry.kind}:{entry.id}", safe(f"{entry.reason.replace('_', ' ')}{tokens}{said}", 400), ""
    rest = ended.counts.failed + ended.counts.unchanged - min(len(ended.failed), _SHOWN)
    if rest > 0:
        yield "", f"and {rest:,} more; --json lists them", ""
