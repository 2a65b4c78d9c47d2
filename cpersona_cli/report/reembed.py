"""What a rebuild would do and has done, told for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cpersona_cli.rebuild.model import Counts, Only, Plan
from cpersona_cli.report.model import Section
from cpersona_cli.report.progress import duration, short
from cpersona_cli.store.job import Target
from cpersona_cli.store.model import Kind
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
#: Below this share of the free space what is needed is no matter.
_TIGHT = 0.5


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
    yield "switch", f"other writers wait for about {plan.lock_seconds:.1f} s", ""
    if plan.holders:
        yield "in use by", ", ".join(safe(holder) for holder in plan.holders), ""
    for warning in plan.warnings:
        yield "mind", safe(warning, 600), ""


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
    return (
        f"about {duration(plan.seconds)} min:s in {requests}{speed}" if plan.seconds >= 1 else f"{requests}, a moment"
    )


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
    need = plan.staging_bytes + plan.backup_bytes + plan.wal_bytes
    text = f"{size(need)} beside the database"
    if plan.free_bytes is not None:
        text += f", {size(plan.free_bytes)} are free"
    if plan.free_bytes is None or need > _TIGHT * plan.free_bytes:
        parts = (
            f"new vectors {size(plan.staging_bytes)}",
            f"backup {size(plan.backup_bytes)}",
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


def plan_payload(plan: Plan) -> Mapping[str, object]:
    """The plan for machines; sizes in bytes, times in seconds."""
    return {
        "target": target_payload(plan.target),
        "only": plan.only,
        "rows": {str(kind): count for kind, count in plan.rows.items()},
        "blank": plan.blank,
        "left_out": dict(plan.left_out),
        "distinct_texts": plan.distinct,
        "characters": plan.characters,
        "tokens_estimated": plan.tokens,
        "requests_estimated": plan.requests,
        "seconds_estimated": plan.seconds,
        "texts_per_second": None if plan.pilot is None else plan.pilot.texts_per_second,
        "staging_bytes": plan.staging_bytes,
        "backup_bytes": plan.backup_bytes,
        "wal_bytes": plan.wal_bytes,
        "free_bytes": plan.free_bytes,
        "old_dimensions": plan.old_dim,
        "old_labels": dict(plan.old_labels),
        "lock_seconds_estimated": plan.lock_seconds,
        "holders": plan.holders,
        "sends_texts_to": plan.consent or None,
        "refusals": plan.refusals,
        "warnings": plan.warnings,
    }


def target_payload(target: Target) -> Mapping[str, object]:
    """What makes the new vectors."""
    return {
        "mode": target.mode,
        "url": target.url,
        "model": target.model or None,
        "dimensions": target.dim,
        "fingerprint": target.fingerprint or None,
        "label": target.label,
        "served_model": target.served or None,
    }


def counts_payload(counts: Counts) -> Mapping[str, object]:
    """Rows by what became of them."""
    return {
        "planned": counts.planned,
        "done": counts.done,
        "failed": counts.failed,
        "nothing": counts.nothing,
        "unchanged": counts.unchanged,
    }


def refused_section(sentences: Sequence[str]) -> Section:
    """Why it cannot be done."""
    return Section(title="refused", rows=[("", safe(sentence, 1000), "") for sentence in sentences], verbosity=0)


def steps_section(steps: Sequence[str]) -> Section:
    """What the user has to do now, in order."""
    rows = [(f"{number}.", step, "") for number, step in enumerate(steps, 1)]
    return Section(title="what to do now", rows=rows, verbosity=0)
