"""A job as seen from outside, told for people and for machines."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping

from cpersona_cli.report.progress import spoken
from cpersona_cli.report.reembed import identity, size
from cpersona_cli.store.job import JobState
from cpersona_cli.store.writing.finished import Finished
from cpersona_cli.store.writing.status import JobStatus
from cpersona_cli.text import plural, safe

Row = tuple[str, str, str]

_STATES = {
    JobState.STAGING: "new vectors are being collected; the database is as it was",
    JobState.STAGED: "every row has its new vector; the database is as it was",
    JobState.CUTTING: "the switch was begun; the next run finds out whether it happened",
    JobState.CUT: "the database holds the new vectors",
    JobState.UNDONE: "the old vectors were put back",
}


def job_sentence(job: JobStatus) -> str:
    """How far it is, in one sentence."""
    if job.meta is None:
        return "no job is under way" if not job.problem else "the staging file cannot be read"
    staged = plural(job.counts.staged, "new vector")
    if job.meta.state in {JobState.STAGING, JobState.STAGED}:
        of = _planned(job)
        kept = f"{job.counts.staged:,} of {of:,} new vectors" if of is not None else staged
        return f"{kept} {'and counting' if job.running is not None else 'are kept'}; the old ones are in use"
    return f"{_STATES[job.meta.state]} ({staged})"


def _planned(job: JobStatus) -> int | None:
    planned = job.kept.get("planned")
    return planned if isinstance(planned, int) else None


def job_rows(job: JobStatus, now: float) -> Iterator[Row]:
    """All that is known."""
    if job.meta is not None:
        yield "state", _STATES[job.meta.state], ""
        if job.running is not None or job.meta.state not in {JobState.CUT, JobState.UNDONE}:
            yield "works", _works(job, now), ""
        yield "begun", _when(job.meta.started), ""
        yield "to", identity(job.meta.target), ""
        yield "rows", _rows(job), ""
        refused = ", ".join(
            f"{count:,} {safe(reason).replace('_', ' ')}" for reason, count in job.counts.refused.items()
        )
        if refused:
            yield "without", refused, ""
    if job.problem:
        yield "problem", safe(job.problem, 1000), ""
    if job.finished is not None:
        yield "last", _finished(job.finished), ""
    if job.undo is not None and job.undo.state == "cut":
        yield "undo", f"possible: the vectors of before {_when(job.undo.cut)} are kept", ""
    for path, count in job.sizes.items():
        yield "file", f"{path.name}, {size(count)}", ""


def _works(job: JobStatus, now: float) -> str:
    assert job.meta is not None  # noqa: S101 - asked before
    heard = f"last heard of {spoken(max(0.0, now - job.meta.heartbeat))} ago"
    if job.running is not None:
        return f"process {job.running} works on it, {heard}" if job.running else f"a process works on it, {heard}"
    return f"nobody works on it, {heard}"


def _rows(job: JobStatus) -> str:
    of = _planned(job)
    return f"{job.counts.staged:,}{f' of {of:,}' if of is not None else ''} have their new vector"


def _when(moment: float) -> str:
    return f"{dt.datetime.fromtimestamp(moment).astimezone():%Y-%m-%d %H:%M}"


def _finished(done: Finished) -> str:
    undone = f", undone {_when(done.undone)}" if done.undone else ""
    model = f", label {safe(done.label, 60)}" if done.label else ""
    return f"{_when(done.finished)}: {plural(done.rows, 'vector')} of {done.dim} dimensions{model}{undone}"


def job_payload(job: JobStatus) -> Mapping[str, object]:
    """The same for machines; times are Unix times in seconds, sizes are bytes."""
    meta = job.meta
    return {
        "state": None if meta is None else meta.state,
        "only": None if meta is None else meta.only,
        "started": None if meta is None else meta.started,
        "heartbeat": None if meta is None else meta.heartbeat,
        "running_pid": job.running,
        "planned": _planned(job),
        "staged": job.counts.staged,
        "refused": dict(job.counts.refused),
        "undo_possible": job.undo is not None and job.undo.state == "cut",
        "finished": None
        if job.finished is None
        else {
            "finished": job.finished.finished,
            "undone": job.finished.undone or None,
            "rows": job.finished.rows,
            "dimensions": job.finished.dim,
            "label": job.finished.label,
        },
        "files": {str(path): count for path, count in job.sizes.items()},
        "problem": job.problem or None,
    }
