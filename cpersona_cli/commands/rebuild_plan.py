"""The plan of a rebuild: what is there, what was begun, and how the rows that stay fit those that are made anew."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from cpersona_cli.commands.beforehand import warnings
from cpersona_cli.commands.workplace import Workplace
from cpersona_cli.fit.measure import measure
from cpersona_cli.fit.model import Fit
from cpersona_cli.fit.stored import SAMPLE
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.rebuild.job import users
from cpersona_cli.rebuild.model import Only, Plan, Progress
from cpersona_cli.rebuild.pilot import timed
from cpersona_cli.rebuild.plan import circumstances, make_plan
from cpersona_cli.rebuild.remaining import tally
from cpersona_cli.rebuild.select import Range, Selector, foreign_ranges, selector
from cpersona_cli.rebuild.target import Identified
from cpersona_cli.record import record, replace
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.job import JobState, Target
from cpersona_cli.store.model import Census
from cpersona_cli.store.writing.locks import in_use
from cpersona_cli.store.writing.staging import Staging, identity, otherwise

if TYPE_CHECKING:
    from cpersona_cli.commands.rebuilding import Run

#: Seconds for counting what is there, and for measuring which rows are another model's.
COUNTING, _MEASURING = 600.0, 600.0
#: Rows that decide which are another model's; whether those that stay are is told from as many as usual.
_SAMPLED = 64


@record(kw_only=True)
class Begun:
    """An unfinished job beside the database: its target, rows still ``left``, and why these options do not fit it."""

    target: Target
    left: int
    otherwise: str = ""


@record(kw_only=True)
class Planned:
    """A plan, the rows it chooses, and the job that it would continue."""

    plan: Plan
    select: Selector
    begun: Begun | None = None

    @property
    def left(self) -> int | None:
        return None if self.begun is None else self.begun.left


def planned(run: Run, place: Workplace, store: CPersonaStore, found: Identified, target: Target) -> Planned:
    """Count, measure and ask what a plan needs. Raises ``StoreError``, and ``UsageError`` where consent is missing."""
    request, path = run.request, place.database.path
    foreign = _foreign(run, store, found)
    select = selector(request.rows, target, foreign=foreign, unit=found.unit)
    run.teller.tell(_phase("counting"))
    census = store.census(live_width=target.dim, deadline=time.monotonic() + COUNTING)
    begun = _begun(run, path, store, select, target)
    objection = "" if begun is None else begun.otherwise
    settings = place.everyone[0].settings if place.everyone else None
    plan = make_plan(
        store,
        census,
        found,
        request.rows,
        foreign=foreign,
        pilot=timed(found.endpoint),
        around=circumstances(
            settings,
            path,
            holders=users(in_use(path)),
            objections=(objection,) if objection else (),
            job=None if begun is None else begun.target,
            beside=None if objection else _beside(run, store, census, found, target),
        ),
    )
    plan = replace(plan, warnings=(*plan.warnings, *warnings(request, place, target, found.endpoint)))
    run.teller.clear()
    return Planned(plan=plan, select=select, begun=begun)


def _foreign(run: Run, store: CPersonaStore, found: Identified) -> tuple[Range, ...]:
    """Rows told to be another model's, measured on stored texts, where that is asked for."""
    if run.request.rows is not Only.FOREIGN:
        return ()
    run.talk.consent(found.endpoint, "a sample of stored texts")
    return foreign_ranges(_fit(run, store, found, sample=_SAMPLED))


def _beside(run: Run, store: CPersonaStore, census: Census, found: Identified, target: Target) -> Fit | None:
    """How the stored vectors of the new width fit the endpoint, where some of them stay beside the new ones."""
    if run.request.rows in {Only.ALL, Only.FOREIGN} or not census.widths("memories", "episodes").get(target.dim):
        return None
    allowed = is_loopback(found.endpoint.url) or run.request.yes or not run.request.dry_run
    if allowed:
        run.talk.consent(found.endpoint, "a sample of stored texts")
    return _fit(run, store, found, sample=SAMPLE, texts_allowed=allowed)


def _fit(run: Run, store: CPersonaStore, found: Identified, *, sample: int, texts_allowed: bool = True) -> Fit:
    run.teller.tell(_phase("telling models apart"))
    deadline = time.monotonic() + _MEASURING
    return measure(store, found.endpoint, sample=sample, texts_allowed=texts_allowed, deadline=deadline)


def _begun(run: Run, path: Path, store: CPersonaStore, select: Selector, target: Target) -> Begun | None:
    staging = Staging.open_existing(path)
    if staging is None:
        return None
    with staging:
        if staging.state not in {JobState.STAGING, JobState.STAGED}:
            return None
        same = identity(staging.target) == identity(target)
        return Begun(
            target=staging.target,
            left=tally(store, staging, select).pending,
            # another target is an objection of the plan itself
            otherwise=otherwise(staging.meta, run.request.rows, run.request.cut_long) if same else "",
        )


def _phase(name: str) -> Progress:
    return Progress(phase=name, done=0, total=0)
