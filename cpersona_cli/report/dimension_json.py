"""How stored vectors and the endpoint go together, told for machines: the fields of the document of ``dimension``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.fit.model import TABLES, Break, Compared, Fit, Likeness
from cpersona_cli.store.model import Group
from cpersona_cli.text import bare_url, secret
from cpersona_cli.traps.model import Judged


def payload(
    fits: Sequence[tuple[Judged, Endpoint | None]], left_out: Mapping[int, str], unsettled: Mapping[int, Sequence[str]]
) -> Mapping[str, object]:
    """The fields of one pair at the top, those of several as ``targets``.

    ``left_out`` and ``unsettled`` are by position: why no text was sent, and why there is no verdict.
    """
    targets = [
        _target(judged, endpoint, left_out.get(number, ""), unsettled.get(number, ()))
        for number, (judged, endpoint) in enumerate(fits)
    ]
    return targets[0] if len(targets) == 1 else {"targets": targets}


def _target(judged: Judged, endpoint: Endpoint | None, left_out: str, unsettled: Sequence[str]) -> Mapping[str, object]:
    fit, census = judged.fit, judged.fit.census
    return {
        "status": fit.state,
        "stored_dim": fit.stored_dim,
        "expected_dim": fit.expected_dim,
        "detail": fit.detail,
        "basis": fit.basis,
        "unsettled_because": unsettled,
        "database": judged.path,
        "label": judged.label,
        "endpoint": _endpoint(endpoint),
        "live": _live(fit),
        "schema_version": census.schema,
        "widths": {f"{width}": rows for width, rows in census.widths().items()},
        "groups": [_group(group) for group in census.groups],
        "agents": [
            {
                "agent": cost.agent,
                "rows": cost.rows,
                "lost": cost.lost,
                "missing": cost.missing,
                "other_width": cost.width,
                "foreign": cost.foreign,
            }
            for cost in fit.lost
        ],
        "blank": {TABLES[kind]: rows for kind, rows in census.blank.items()},
        "contents": {
            "looked": census.contents.looked,
            "total": census.contents.total,
            "complete": census.contents.complete,
            "flaws": [
                {"table": flaw.table, "defect": flaw.defect, "rows": flaw.rows, "ids": flaw.ids}
                for flaw in census.contents.flaws
            ],
            "norms": {f"{norm:.2f}": rows for norm, rows in sorted(census.contents.norms.items())},
        },
        "damaged": fit.damaged,
        "indexes": [
            {
                "name": index.name,
                "bytes": index.size,
                "dimensions": index.width,
                "rows": index.rows,
                "format": index.format,
                "unsafe": index.unsafe,
            }
            for index in census.indexes
        ],
        "calibration": {"dimensions": census.calibration_width, "calibrated_at": census.calibrated_at or None},
        "thresholds": None
        if fit.thresholds is None
        else {
            "same": fit.thresholds.same,
            "other": fit.thresholds.other,
            "repeat": fit.thresholds.repeat,
            "strangers": fit.thresholds.strangers,
        },
        "compared": _compared(fit, left_out),
        "breaks": [_break(one) for one in fit.breaks],
        "interleaved": [TABLES[kind] for kind in fit.interleaved],
        "foreign": {TABLES[kind]: rows for kind, rows in fit.foreign.items()},
        "advisory": fit.advisory or None,
        "past": None
        if fit.past is None
        else {
            "finished": fit.past.finished,
            "dimensions": fit.past.dim,
            "label": fit.past.label,
            "rows": fit.past.rows,
            "holds": fit.past.holds,
        },
        "texts_sent": fit.texts_sent,
        "calls": 0 if fit.live is None else fit.live.calls,
        "unmeasured": list(dict.fromkeys((*fit.unmeasured, *census.unmeasured))),
        "census_seconds": round(census.seconds, 3),
    }


def _endpoint(endpoint: Endpoint | None) -> Mapping[str, object] | None:
    if endpoint is None:
        return None
    return {
        "mode": endpoint.mode,
        "url": bare_url(endpoint.url),
        "model": endpoint.model,
        "key": secret(endpoint.key),
        "timeout_seconds": endpoint.timeout,
    }


def _live(fit: Fit) -> Mapping[str, object] | None:
    live = fit.live
    if live is None:
        return None
    return {
        "kind": live.call,
        "sentence": live.sentence,
        "dimensions": live.dim,
        "model": live.model,
        "fingerprint": live.fingerprint or None,
        "stated_dimensions": [{"by": who, "dimensions": dim} for who, dim in live.stated],
        "recorded_as_success": live.recorded,
    }


def _group(group: Group) -> Mapping[str, object]:
    return {
        "table": group.table,
        "form": group.form,
        "width": group.width,
        "label": group.label,
        "agent": group.agent,
        "rows": group.rows,
        "first_id": group.first,
        "last_id": group.last,
        "oldest": group.oldest,
        "newest": group.newest,
    }


def _compared(fit: Fit, left_out: str) -> Mapping[str, object]:
    counts = {likeness: sum(row.likeness is likeness for row in fit.compared) for likeness in Likeness}
    why: dict[str, int] = {}
    for row in fit.compared:
        if row.why:
            why[row.why] = why.get(row.why, 0) + 1
    return {
        "rows": len(fit.compared),
        **{str(likeness): count for likeness, count in counts.items()},
        "median": fit.median,
        "lowest": fit.lowest,
        "unjudged_because": why,
        "not_made_because": "" if fit.texts_sent else left_out,
        "overlooked_at_most": fit.overlooked,
        "different": [_row(row) for row in fit.compared if row.likeness in {Likeness.OTHER, Likeness.NEAR}],
    }


def _break(one: Break) -> Mapping[str, object]:
    return {
        "table": TABLES[one.kind],
        "before": _row(one.before),
        "after": _row(one.after),
        "rows_before": one.rows_before,
        "rows_after": one.rows_after,
        "exact": one.exact,
    }


def _row(row: Compared) -> Mapping[str, object]:
    return {
        "table": TABLES[row.kind],
        "id": row.id,
        "created": row.created,
        "agent": row.agent,
        "label": row.label,
        "width": row.width,
        "likeness": row.likeness,
        "cosine": None if row.cosine is None else round(row.cosine, 6),
        "why": row.why,
    }
