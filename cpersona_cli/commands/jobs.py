"""What may be asked about a rebuild that was begun: how far it is, back, away, to its end, out of the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cpersona_cli.commands.chosen import Chosen, mode_of
from cpersona_cli.commands.rebuild_request import naming
from cpersona_cli.commands.workplace import Workplace
from cpersona_cli.rebuild.job import LOOK, users
from cpersona_cli.rebuild.model import Only
from cpersona_cli.report import reembed as page
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.model import Report, Section
from cpersona_cli.report.reembed import Step
from cpersona_cli.report.reembed_job import job_payload, job_rows, job_sentence
from cpersona_cli.store.job import JobError, JobState, Target
from cpersona_cli.store.model import StoreError
from cpersona_cli.store.writing.clearing import abandon, forget
from cpersona_cli.store.writing.locks import in_use
from cpersona_cli.store.writing.status import JobStatus, job_status
from cpersona_cli.store.writing.undo import Undone, undo
from cpersona_cli.text import bare_url, plural, quoted

if TYPE_CHECKING:
    from cpersona_cli.commands.rebuilding import Run


def act(action: str, place: Workplace, run: Run) -> Report:
    """Do what the first word asks for. Raises ``StoreError`` and ``UsageError``."""
    return run.finish(place) if action == "finish" else _ACTIONS[action](place, run)


def kept(database: Path) -> str:
    """What there is of a job, in a few words, for a run that could not come to its end."""
    try:
        job = job_status(database)
    except StoreError:
        job = None
    return "nothing was changed" if job is None else job_sentence(job)


def _status(place: Workplace, run: Run) -> Report:
    path = place.database.path
    job = job_status(path)
    if job is None:
        return run.base(
            place,
            measured=1,
            summary="no re-embedding of this database is on record",
            next_command=f"cpersona-cli reembed --dry-run {_db(path)}",
        )
    return run.base(
        place,
        sections=[Section(title="job", rows=list(job_rows(job, time.time())), verbosity=0)],
        fields={"target": None if job.meta is None else job.meta.target, "job": job_payload(job)},
        unsettled=[job.problem] if job.problem else [],
        measured=1,
        summary=job_sentence(job),
        next_command=_next(job, place),
    )


def status_command(database: Path) -> str:
    """The command that tells how a job stands, and what continues it."""
    return f"cpersona-cli reembed status {_db(database)}"


def _next(job: JobStatus, place: Workplace) -> str:
    """The one command that helps most now."""
    path = place.database.path
    if job.running is not None:
        return ""
    if job.meta is not None and job.meta.state in {JobState.STAGING, JobState.STAGED, JobState.CUTTING}:
        words = ["cpersona-cli reembed", _db(path), *_naming(place, job.meta.target)]
        words += [f"--only {job.meta.only}"] if job.meta.only != Only.ALL else []
        words += ["--cut-long"] if job.meta.cut_texts else []
        return " ".join(words)
    if job.undo is None or job.undo.state != "cut":
        return ""
    named = [] if job.meta is None else _naming(place, job.meta.target)
    return " ".join(["cpersona-cli dimension", _db(path), *named])  # to see that it fits; undo is for who wants it


def _naming(place: Workplace, target: Target) -> list[str]:
    """The options that name the endpoint of a job, where no registration does."""
    goals = place.goals()
    if goals and (goals[0].endpoint.mode, bare_url(goals[0].endpoint.url)) == (target.mode, target.url):
        return []
    mode = None if mode_of(target.url) == target.mode else target.mode
    return naming(Chosen(url=target.url, mode=mode, model=target.model or None))


def _undo(place: Workplace, run: Run) -> Report:
    path = place.database.path
    job = job_status(path)
    if job is None or job.undo is None:
        raise JobError(f"there is no finished re-embedding of {path} that could be taken back")
    held = _held(place, run)
    if held:
        return run.refused(place, held, f"cpersona-cli reembed undo {_db(path)}")
    rows = plural(job.finished.rows, "row") if job.finished is not None else "every row it wrote"
    run.talk.confirm(f"The old vectors and labels of {rows} would be put back.")
    done = undo(path)
    complete = not done.left and not done.newer
    steps = tuple(_undone_steps(place, done))
    return run.base(
        place,
        sections=[Section(title="undo", rows=list(_undone(done)), verbosity=0), *page.steps_sections(steps)],
        fields={"job": {"undone": _undone_payload(done)}, "steps": steps},
        measured=1,
        error_code=Exit.OK if complete else Exit.NEGATIVE,
        summary=f"{plural(done.restored + done.already, 'row')} as before"
        + ("" if complete else f", {done.left + done.newer:,} left as they are"),
        next_command=f"cpersona-cli dimension {_db(path)}",
    )


def _undone_steps(place: Workplace, done: Undone) -> Iterator[Step]:
    clients = list(dict.fromkeys(target.registration.client_title for target in place.everyone))
    who = ", ".join(clients) if clients else "every server that uses this database"
    yield Step(sentence=f"see that {who} again calls the endpoint of the old vectors, then restart")
    if done.left or done.newer:
        yield Step(
            sentence=f"{plural(done.left + done.newer, 'row')} were written since, by whichever model: fit them in",
            commands=(f"cpersona-cli reembed --only {Only.FOREIGN} {_db(place.database.path)}",),
        )


def _undone(done: Undone) -> Iterator[tuple[str, str, str]]:
    yield "put back", plural(done.restored, "row"), ""
    if done.already:
        yield "were back", plural(done.already, "row"), ""
    if done.left:
        yield "left", f"{plural(done.left, 'row')} that changed since", ""
    if done.newer:
        yield "newer", f"{plural(done.newer, 'row')} that came since", ""
    if done.gone:
        yield "gone", f"{plural(done.gone, 'row')} that are no more", ""
    yield "switched", f"in one step; other writers waited {done.locked_seconds:.2f} s", ""


def _undone_payload(done: Undone) -> Mapping[str, object]:
    return {
        "restored": done.restored,
        "already": done.already,
        "left": done.left,
        "newer": done.newer,
        "gone": done.gone,
        "seconds": round(done.seconds, 3),
        "locked_seconds": round(done.locked_seconds, 3),
        "calibration": done.calibration,
    }


def _abandon(place: Workplace, run: Run) -> Report:
    path = place.database.path
    job = job_status(path)
    if job is not None and job.meta is not None:
        run.talk.confirm(f"{plural(job.counts.staged, 'new vector')} would be thrown away.")
    return _removed(place, run, abandon(path), "abandoned; the database was not changed")


def _forget(place: Workplace, run: Run) -> Report:
    path = place.database.path
    if job_status(path) is None:
        return run.base(place, measured=1, summary="there is nothing to forget")
    run.talk.confirm("The old vectors and the backup would be removed, and the way back with them.")
    return _removed(place, run, forget(path), "forgotten; the vectors in the database stay as they are")


def _removed(place: Workplace, run: Run, files: tuple[Path, ...], summary: str) -> Report:
    rows = [("removed", str(file), "") for file in files]
    return run.base(
        place,
        sections=[Section(title="files", rows=rows, verbosity=0)] if rows else [],
        fields={"job": {"removed": [str(file) for file in files]}},
        measured=1,
        summary=summary,
    )


def _held(place: Workplace, run: Run) -> str:
    """Wait until nobody else has the database open; who has it, where nobody is there to end that."""
    while (use := in_use(place.database.path)).live:
        if not run.talk.wait(users(use)):
            return f"the database is open in {', '.join(users(use))}; quit that first"
        time.sleep(LOOK)
    return ""


def _db(path: Path) -> str:
    return f"--db {quoted(str(path))}"


_ACTIONS: Mapping[str, Callable[[Workplace, Run], Report]] = {
    "status": _status,
    "undo": _undo,
    "abandon": _abandon,
    "forget": _forget,
}
