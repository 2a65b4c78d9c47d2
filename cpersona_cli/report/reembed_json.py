"""What a rebuild would do and has done, for machines: the fields of its JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cpersona_cli.rebuild.judgement import Found, Judgement
from cpersona_cli.rebuild.model import Plan
from cpersona_cli.rebuild.verify import Verified
from cpersona_cli.rebuild.work import Ended
from cpersona_cli.report.json import place
from cpersona_cli.report.reembed import Step
from cpersona_cli.store.job import Refused, Target
from cpersona_cli.store.writing.settling import CutOver


def document(
    *,
    database: Path,
    action: str,
    plan: Plan | None = None,
    target: Target | None = None,
    ended: Ended | None = None,
    search: Judgement | None = None,
    steps: Sequence[Step] = (),
    job: Mapping[str, object] | None = None,
    refusals: Sequence[str] = (),
) -> Mapping[str, object]:
    """The command's own fields, which are there in every document of it: null where nothing came to it."""
    found = _ended(ended) if ended is not None else dict.fromkeys(_ENDED)
    judged = ended.judgement if ended is not None and search is None else search
    return {
        "database": str(database),
        "action": action,
        "refusals": list(refusals),
        "plan": None if plan is None else _plan(plan),
        "target": None if target is None else target_payload(target),
        **found,
        "search": _judgement(judged),
        "next_steps": _steps(steps),
        "job": job,
    }


def _ended(ended: Ended) -> Mapping[str, object]:
    """What a run came to."""
    counts, effort = ended.counts, ended.effort
    values = (
        ended.state,
        ended.switched,
        ended.complete,
        ended.reason or None,
        ended.detail or None,
        counts.planned,
        counts.done,
        counts.failed,
        counts.nothing,
        counts.unchanged,
        ended.left,
        ended.missed,
        ended.held if ended.switched else None,
        ended.before,
        [f"{entry.kind}:{entry.id}" for entry in ended.failed],
        [_failure(entry) for entry in ended.failed],
        effort.requests,
        effort.retries,
        effort.tokens,
        round(effort.seconds, 3),
        effort.cut,
        effort.same,
        dict(effort.learned),
        None if ended.verified is None else _verified(ended.verified),
        None if ended.cut is None else _cut(ended.cut),
        None if ended.backup is None else str(ended.backup),
    )
    return dict(zip(_ENDED, values, strict=True))


#: The fields of a run, in the order of the values above.
_ENDED = (
    "state", "switched", "complete", "reason", "detail", "planned", "done", "failed", "nothing", "unchanged", "left",
    "missed", "held", "done_by_earlier_runs", "ids", "failures", "requests", "retries", "tokens_estimated",
    "fetch_seconds", "texts_cut", "equal_texts", "learned", "verification", "cutover", "backup",
)  # fmt: skip


def _failure(entry: Refused) -> Mapping[str, object]:
    return {
        "kind": entry.kind,
        "id": entry.id,
        "reason": entry.reason,
        "detail": entry.detail or None,
        "tokens": entry.tokens,
    }


def _verified(found: Verified) -> Mapping[str, object]:
    checks = [{"name": check.name, "ok": check.ok, "sentence": check.sentence} for check in found.checks]
    return {"ok": found.ok, "compared": found.compared, "lowest_cosine": found.lowest, "checks": checks}


def _cut(cut: CutOver) -> Mapping[str, object]:
    return {
        "rows": cut.rows,
        "emptied": cut.emptied,
        "kept": cut.kept,
        "changed": cut.changed,
        "gone": cut.gone,
        "blocks_removed": cut.blocks,
        "nodes_removed": cut.nodes,
        "seconds": round(cut.seconds, 3),
        "locked_seconds": round(cut.locked_seconds, 3),
        "wal_bytes": cut.wal_bytes,
        "indexes_removed": cut.indexes,
        "calibration": cut.calibration or None,
        "recovered": cut.recovered,
    }


def _plan(plan: Plan) -> Mapping[str, object]:
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
        "undo_bytes": plan.undo_bytes,
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


def _steps(steps: Sequence[Step]) -> Sequence[Mapping[str, object]]:
    """The same for machines."""
    return [
        {
            "sentence": step.sentence,
            "edit": step.edit or None,
            "place": None if step.place is None else place(step.place),
            "commands": step.commands,
        }
        for step in steps
    ]


def _judgement(judgement: Judgement | None) -> Mapping[str, object] | None:
    """The same in figures."""
    if judgement is None:
        return None
    return {
        "verdict": judgement.verdict,
        "sentences": judgement.sentences,
        "known_item_new": _found(judgement.new),
        "known_item_old": _found(judgement.old),
        "ahead": judgement.ahead,
        "behind": judgement.behind,
        "chance": judgement.chance,
        "neighbours_shared": None if judgement.agreement is None else judgement.agreement.mean,
        "neighbours_of": None if judgement.agreement is None else judgement.agreement.asked,
        "old_unknown": judgement.old_unknown or None,
        "texts_sent": judgement.texts_sent,
    }


def _found(found: Found | None) -> Mapping[str, object] | None:
    if found is None:
        return None
    return {
        "asked": found.asked,
        "rows": found.rows,
        "first": found.first,
        "first_share_low": found.low,
        "first_share_high": found.high,
        "within_ten": found.within,
        "reciprocal_rank": found.reciprocal,
    }
