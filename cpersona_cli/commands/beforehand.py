"""What is known before a rebuild: of earlier ones, of others who write, of the endpoint that is configured now."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.commands import aftermath
from cpersona_cli.commands.rebuild_request import Request
from cpersona_cli.commands.workplace import Workplace
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.rebuild.model import Only
from cpersona_cli.store.job import Target
from cpersona_cli.store.writing.status import job_status


def warnings(request: Request, place: Workplace, target: Target, endpoint: Endpoint) -> Iterator[str]:
    """What the plan does not know: who else writes vectors into this database, and what was done before."""
    if request.chosen.url is None:
        other = [t.registration.label for t in place.others if aftermath.differs(t, endpoint)]
        if other:
            yield f"{', '.join(dict.fromkeys(other))} opens this database too, and calls another endpoint"
    job = job_status(place.database.path)
    if job is None or job.finished is None:
        return
    done = job.finished
    same = (done.mode, done.model, done.dim, done.fingerprint) == (
        target.mode, target.model, target.dim, target.fingerprint,
    )  # fmt: skip
    if same and not done.undone and request.rows is Only.ALL:
        yield "an earlier rebuild with this model is on record; --only foreign takes what does not fit"
    if job.undo is not None and job.undo.state == "cut":
        yield "the vectors of before the earlier rebuild are given up at the switch; undo then leads back to today"


def former(request: Request, place: Workplace, endpoint: Endpoint) -> Endpoint | None:
    """The endpoint that is configured now, where another was named and texts may go to the former."""
    goals = place.goals()
    old = goals[0].endpoint if goals and request.chosen.url is not None else None
    if old is None or old.mode not in {Mode.HTTP, Mode.API} or (old.mode, old.url) == (endpoint.mode, endpoint.url):
        return None
    return old if is_loopback(old.url) or request.yes else None
