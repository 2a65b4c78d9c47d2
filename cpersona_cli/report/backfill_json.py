"""What an import would do and has done, for machines: the fields of its JSON document."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path

from cpersona_cli.history.bring_in import Brought
from cpersona_cli.history.gather import Read, Tally
from cpersona_cli.history.plan import Plan
from cpersona_cli.history.times import timestamp
from cpersona_cli.report.backfill import Around
from cpersona_cli.store.boundary import Boundary
from cpersona_cli.store.effects import Change
from cpersona_cli.store.writing.backup import Backup
from cpersona_cli.store.writing.mending import Harm, Mended
from cpersona_cli.store.writing.taking_back import TakenBack


def document(
    *,
    database: Path,
    action: str,
    plan: Plan | None = None,
    around: Around | None = None,
    done: Brought | None = None,
    harm: Harm | None = None,
    mended: Mended | None = None,
    undone: TakenBack | None = None,
) -> Mapping[str, object]:
    """The command's own fields, which are there in every document of it: null where nothing came to it."""
    read = None if plan is None else plan.read
    tallies = plan if done is None else done
    return {
        "database": str(database),
        "action": action,
        "agent": around.agent or None if around is not None else None,
        "project": around.project if around is not None else None,
        "channel": around.channel if around is not None else None,
        "no_penalty": around.no_penalty if around is not None else None,
        "read": None if read is None else _read(read),
        "memories": None if tallies is None else tally(tallies.memories),
        "episodes": None if tallies is None else tally(tallies.episodes),
        "plan": None if plan is None or around is None else _plan(plan, around),
        "result": None if done is None else _result(done),
        "harm": None if harm is None else _harm(harm),
        "mended": None if mended is None else _mended(mended),
        "undone": None if undone is None else _undone(undone),
    }


def tally(counts: Tally) -> Mapping[str, object]:
    """``read`` is the sum of ``stored``, ``duplicate``, ``left_out``, ``failed`` and ``rest``."""
    return {
        "read": counts.read,
        "stored": counts.stored,
        "duplicate": counts.duplicates,
        "left_out": counts.out,
        "failed": counts.failures,
        "rest": counts.rest,
        "duplicate_by_reason": dict(counts.duplicate),
        "left_out_by_reason": dict(counts.left_out),
        "failed_by_reason": dict(counts.failed),
    }


def _read(read: Read) -> Mapping[str, object]:
    return {
        "files_read": read.files_read,
        "files_passed_over": read.files_passed,
        "bytes": read.bytes,
        "files": [
            {"where": one.where, "bytes": one.size, "format": one.format, "reason": one.reason or None}
            for one in read.files
        ],
        "conversations": read.conversations,
        "messages": read.turns,
        "rows": read.rows,
        "first": _time(read.first),
        "last": _time(read.last),
        "unread": read.unread_count,
        "unread_places": [{"where": one.where, "reason": one.reason} for one in read.unread],
        "passed_over": dict(read.passed_over),
        "not_talk": dict(read.not_talk),
        "altered": dict(read.altered),
        "undated": dict(read.undated),
        "branches": read.branches,
        "split": read.split,
        "remarks": read.remarks,
        "remark_count": read.remark_count,
    }


def _time(at: dt.datetime | None) -> str | None:
    return None if at is None else timestamp(at)


def _plan(plan: Plan, around: Around) -> Mapping[str, object]:
    """The plan for machines; sizes in bytes."""
    return {
        "rows": {str(kind): count for kind, count in plan.rows.items()},
        "characters": plan.characters,
        "limit": around.limit,
        "vectors": around.vectors,
        "waiting_for_vectors": around.waiting,
        "sends_texts_to": around.sends or None,
        "holders": around.holders,
        "weakening_clients": around.weakening,
        "memories_changed": plan.changed,
        "scopes": _scopes(plan.scopes),
        "late_episodes": plan.late_count,
        "late": [
            {
                "agent": one.agent,
                "project": one.project,
                "channel": one.channel,
                "ended": one.ended,
                "allowed": one.allowed or None,
            }
            for one in plan.late
        ],
        "clamped": plan.clamped,
        "growth_bytes": plan.growth_bytes,
        "backup_bytes": plan.backup_bytes,
        "free_bytes": plan.free_bytes,
        "refusals": plan.refusals,
        "warnings": plan.warnings,
    }


def _scopes(changes: Sequence[Change]) -> Sequence[Mapping[str, object]]:
    return [
        {
            "agent": one.scope.agent,
            "project": one.scope.project,
            "channel": one.scope.channel,
            "before": _boundary(one.before),
            "after": _boundary(one.after),
            "memories": one.rows,
            "changed": one.changed,
            "most": one.most,
        }
        for one in changes
    ]


def _boundary(boundary: Boundary) -> str | None:
    return boundary.stamp or None


def _result(done: Brought) -> Mapping[str, object]:
    """What was done; times in seconds."""
    fetched = done.fetched
    return {
        "id": done.id or None,
        "rows": {str(kind): count for kind, count in done.rows.items()},
        "interrupted": done.interrupted,
        "embedded": done.embedded,
        "without_vector": done.without_vector,
        "why_none": str(done.why_none) or None,
        "reason": None if fetched is None else fetched.reason or None,
        "detail": None if fetched is None else fetched.detail or None,
        "requests": 0 if fetched is None else fetched.requests,
        "refused": [
            {"kind": one.kind, "id": one.id, "reason": one.reason, "detail": one.detail or None} for one in done.refused
        ],
        "blocks_queued": done.blocks,
        "scopes": _scopes(done.scopes),
        "penalty_held": done.held,
        "backup": _backup(done.backup),
        "locked_seconds": round(done.locked_seconds, 3),
        "seconds": round(done.seconds, 3),
    }


def _backup(backup: Backup | None) -> str | None:
    return None if backup is None else str(backup.path)


def _harm(harm: Harm) -> Mapping[str, object]:
    return {
        "episodes": harm.episodes,
        "imports": harm.bursts,
        "stored_first": harm.first or None,
        "stored_last": harm.last or None,
        "oldest": harm.oldest or None,
        "newest": harm.newest or None,
        "agents": dict(harm.agents),
        "scopes": _scopes(harm.scopes),
    }


def _mended(done: Mended) -> Mapping[str, object]:
    return {
        "id": done.id or None,
        "mended": done.mended,
        "left": done.left,
        "backup": _backup(done.backup),
        "seconds": round(done.seconds, 3),
    }


def _undone(done: TakenBack) -> Mapping[str, object]:
    return {
        "id": done.of.id,
        "of": done.of.action,
        "removed": done.removed,
        "left": done.left,
        "gone": done.gone,
        "seconds": round(done.seconds, 3),
    }
