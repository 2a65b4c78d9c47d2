"""A rebuild from its plan to its cut-over: one sequence, which a later run takes up wherever an earlier one ended.

    backup -> fetch until nothing is left -> verify -> judge -> wait until nobody has the database open
    -> fetch what came meanwhile -> cut over -> look whether the database holds it

Each step is repeated harmlessly. What an earlier run has done stands in the staging file and beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

from cpersona_cli.embedding.loop import run as in_loop
from cpersona_cli.embedding.meaning import cosine
from cpersona_cli.embedding.stored import unpack
from cpersona_cli.rebuild.judge import ROWS, Item, judge
from cpersona_cli.rebuild.judgement import Judgement
from cpersona_cli.rebuild.model import Counts, Fetched, Only, Options, Progress, Tell
from cpersona_cli.rebuild.pipeline import fetch
from cpersona_cli.rebuild.remaining import BLANK, Tally, holding, in_sample, tally, walk
from cpersona_cli.rebuild.select import Selector, damaged, selector
from cpersona_cli.rebuild.stop import Stop
from cpersona_cli.rebuild.verify import Verified, inspect_staged, verify
from cpersona_cli.rebuild.work import Effort, Ended, Why, Work
from cpersona_cli.record import replace
from cpersona_cli.store.job import JobState, Refused, Staged
from cpersona_cli.store.model import Kind, Row, Store
from cpersona_cli.store.writing.backup import back_up
from cpersona_cli.store.writing.cutover import cut_over
from cpersona_cli.store.writing.locks import Use, in_use
from cpersona_cli.store.writing.settling import CutOver
from cpersona_cli.store.writing.staging import Staging, open_job
from cpersona_cli.text import safe

#: Passes over the rows at the most: each finds what was stored during the one before.
PASSES = 20
#: Rows whose staged vectors are embedded afresh before they are trusted, and before they are added to.
VERIFIED, AGAIN = 32, 8
#: Cosine of old and new vectors of the same texts from which both are one model's.
SAME_MODEL = 0.98
#: Failed rows that are listed; all are counted.
LISTED = 1000
#: Seconds between two looks at who has the database open, and looks at which it must be for anybody to be asked.
LOOK, BRIEF = 0.5, 3
#: What the staging file keeps of a run beside the vectors: the canary of the pipeline, whether the old vectors are of
#: the same model, whether the user was told of the cut-over, and how many rows there are.
CANARY, SAME, TOLD, PLANNED = "canary", "same_model", "told", "planned"
#: What the steps of the writing side are called for people.
_STEPS = {"plan": "preparing the switch"}


#: Asked when the new vectors are ready and the switch is next; whether to go on.
Agree = Callable[[Judgement], bool]
#: Told who has the database open; whether to go on waiting until nobody has.
Wait = Callable[[tuple[str, ...]], bool]


class Job:
    """One run of one job. ``agree`` and ``wait`` speak to the user; ``tell`` hears of progress."""

    def __init__(self, work: Work, stop: Stop, tell: Tell, *, agree: Agree, wait: Wait) -> None:
        self.work = work
        self.stop = stop
        self.tell = tell
        self.agree = agree
        self.wait = wait
        self.effort = Effort()
        self.before = 0
        self.backup: Path | None = None
        self.notes: list[str] = []
        self.verified: Verified | None = None
        self.judgement: Judgement | None = None

    def run(self) -> Ended:
        """From wherever it is to its end. Raises ``StoreError``; whatever was kept until then stays."""
        work = self.work
        with open_job(work.database, work.plan.target, only=work.plan.only, cut_texts=work.cut_texts) as staging:
            self.notes += staging.notes
            if staging.state is JobState.CUTTING:  # killed in the middle of it
                return self._switch(staging)
            self._phase("backup")
            self.backup = back_up(staging, self._step).path
            for step in (self._same, partial(self._fetch_all, again=True), self._check, self._alone, self._fetch_all):
                ended = step(staging)
                if ended is not None:
                    return ended
            return self._switch(staging)

    # The steps. Each returns the end of the run where it cannot go on.

    def _same(self, staging: Staging) -> Ended | None:
        """Whether the endpoint still makes the vectors that an earlier run has staged: a killed one left no word."""
        if staging.fresh or _canary(staging) or not staging.counts().staged:
            return None
        found = self._verified(staging, AGAIN)
        if found is None:
            return self._ended(staging, Why.INTERRUPTED)
        if found.ok:
            return None
        detail = f"the vectors that an earlier run has fetched are not this model’s: {found.reason}"
        return self._ended(staging, Why.CHANGED, detail)

    def _fetch_all(self, staging: Staging, *, again: bool = False) -> Ended | None:
        """Fetch until a walk over the rows finds none that is left; ``again``: also rows that failed before."""
        known = tally(self.work.store, staging, self.work.select)
        if again:
            self.before = known.staged
        staging.keep(PLANNED, known.seen)
        if staging.state is JobState.STAGED and known.pending:
            staging.set_state(JobState.STAGING)
        for _ in range(PASSES):
            if self.stop.asked:
                return self._ended(staging, Why.INTERRUPTED)
            if not known.pending and not (again and known.refused):
                return self._staged(staging, known.counts())
            seen = Tally()
            fetched = self._fetch(staging, walk(self.work.store, staging, self.work.select, seen, again=again), known)
            if fetched.interrupted or fetched.reason:
                return self._ended(staging, fetched.reason or Why.INTERRUPTED, fetched.detail)
            again = False
            known = tally(self.work.store, staging, self.work.select)
        return self._ended(staging, Why.RESTLESS, "rows are stored faster than their vectors can be fetched")

    def _staged(self, staging: Staging, counts: Counts) -> Ended | None:
        """Every row has its outcome. A store of which most texts were refused is better off as it is."""
        if counts.failed > counts.done:
            refused = next(failing(staging), None)
            said = f", for example: {refused.detail or refused.reason}" if refused is not None else ""
            detail = f"{counts.failed} of {counts.failed + counts.done} rows could not be embedded{said}"
            return self._ended(staging, Why.TOO_MANY_ERRORS, detail)
        staging.set_state(JobState.STAGED)
        return None

    def _fetch(self, staging: Staging, rows: Iterator[Row], known: Tally) -> Fetched:
        """One pass of the pipeline over ``rows``."""
        work = self.work
        options = Options(
            target=staging.target,
            total=known.pending,
            tokens=work.plan.tokens,
            batch=work.batch,
            batch_tokens=work.batch_tokens,
            concurrency=work.concurrency,
            max_errors=work.max_errors,
            cut=work.cut_texts,
            canary=_canary(staging),
        )

        def tell(progress: Progress) -> None:
            # an earlier run's rows are done, too
            done = progress.done + known.seen - known.pending
            self.tell(replace(progress, done=done, total=progress.total + known.seen - known.pending))

        async def main() -> Fetched:
            with self.stop.event() as stop:
                return await fetch(rows, Sink(staging), work.endpoint, options, tell=tell, stop=stop)

        fetched = in_loop(main())
        self.effort = self.effort.and_(fetched)
        if fetched.canary:
            staging.keep(CANARY, fetched.canary.hex())
        return fetched

    def _check(self, staging: Staging) -> Ended | None:
        """Hold the new vectors to what they should be, and search with them to search with the old ones."""
        work = self.work
        self._phase("checking")
        self.verified = self._verified(staging, VERIFIED)
        if self.verified is None:
            return self._ended(staging, Why.INTERRUPTED)
        if not self.verified.ok:
            return self._ended(staging, Why.NOT_VERIFIED, self.verified.reason)
        if work.sample:
            self._phase("comparing search")
            comparison = judge(self._items(staging), new=work.endpoint, old=work.old, queries=work.sample)
            self.judgement = in_loop(self.stop.unless(comparison))
            if self.judgement is None:
                return self._ended(staging, Why.INTERRUPTED)
            if not self.agree(self.judgement):
                return self._ended(staging, Why.DECLINED, "the switch was declined")
        return self._ended(staging, Why.INTERRUPTED) if self.stop.asked else None

    def _verified(self, staging: Staging, count: int) -> Verified | None:
        """Every staged vector by its shape, and ``count`` of them beside fresh ones. None where it was stopped."""
        work = self.work
        everything = chain.from_iterable(staging.staged(kind) for kind in Kind)
        inspection = inspect_staged(everything, staging.target, expected=staging.counts().staged)
        sample = [(entry, row.text) for entry, row in in_sample(work.store, staging.sample(count))]
        target, repeat = staging.target, work.identified.repeat
        return in_loop(self.stop.unless(verify(inspection, sample, work.endpoint, target, repeat=repeat)))

    def _items(self, staging: Staging) -> list[Item]:
        """Rows with both vectors, to search among."""
        return [
            Item(text=row.text, old=row.vector, new=entry.vector)
            for entry, row in in_sample(self.work.store, staging.sample(ROWS))
        ]

    def _alone(self, staging: Staging) -> Ended | None:
        """Wait until no server has the database open, unless it is to be switched under one."""
        if self.work.live:
            return None
        looks = 0
        while (use := in_use(self.work.database)).live:
            names, looks = users(use), looks + 1
            if looks < BRIEF:  # another command, or a backup, has it open for a moment
                time.sleep(LOOK)
                continue
            if not self.wait(names) or self.stop.asked:
                reason = Why.INTERRUPTED if self.stop.asked else Why.IN_USE
                return self._ended(staging, reason, f"the database is open in {', '.join(names)}")
            time.sleep(LOOK)
        return None

    def _switch(self, staging: Staging) -> Ended:
        """The cut-over, and what the database says afterwards."""
        work = self.work
        self._phase("switching")
        if staging.state is not JobState.CUTTING:
            staging.keep(SAME, self._same_model(staging))
        same = bool(staging.kept(SAME))
        cut = cut_over(work.database, staging, same_model=same, tokens=work.tokens, tell=self._step)
        ended = _switched(work.store, staging, cut, work.select)
        return replace(
            ended,
            before=self.before,
            effort=self.effort,
            verified=self.verified,
            judgement=self.judgement,
            backup=self.backup,
            notes=tuple(self.notes),
        )

    def _same_model(self, staging: Staging) -> bool:
        """Whether the vectors that were there are of the model that made the new ones, as compared now."""
        pairs = [
            (unpack(row.vector), unpack(entry.vector))
            for entry, row in in_sample(self.work.store, staging.sample(VERIFIED))
            if row.vector is not None and len(row.vector) == len(entry.vector) and not damaged(row, unit=False)
        ]
        likeness = [cosine(old, new) for old, new in pairs if old is not None and new is not None]
        return bool(likeness) and min(likeness) >= SAME_MODEL

    def _ended(self, staging: Staging, reason: str, detail: str = "") -> Ended:
        """The end of a run that does not come to the cut-over."""
        counts = tally(self.work.store, staging, self.work.select)
        return Ended(
            state=staging.state,
            counts=counts.counts(),
            left=counts.pending,
            before=self.before,
            failed=tuple(islice(failing(staging), LISTED)),
            effort=self.effort,
            verified=self.verified,
            judgement=self.judgement,
            backup=self.backup,
            reason=reason,
            detail=detail,
            notes=tuple(self.notes),
        )

    def _phase(self, name: str) -> None:
        self.tell(Progress(phase=name, done=0, total=0))

    def _step(self, phase: str, done: int, total: int) -> None:
        self.tell(Progress(phase=_STEPS.get(phase, phase), done=done, total=total))


class Sink:
    """The staging file as the pipeline sees it."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def known(self, text: bytes) -> bytes | None:
        """The vector of an equal text, from this run or an earlier one."""
        return self._staging.vector_for(text)

    def add(self, staged: Sequence[Staged], refused: Sequence[Refused] = ()) -> None:
        """Keep the outcome of a batch."""
        self._staging.add(staged, refused)

    def discard(self, rows: Sequence[tuple[Kind, int]]) -> None:
        """Forget vectors that may be another model's."""
        self._staging.discard(rows)


def _canary(staging: Staging) -> bytes:
    """The fixed text's vector of an earlier run; empty where none was kept, or what was kept is damaged."""
    kept = staging.kept(CANARY)
    try:
        return bytes.fromhex(kept) if isinstance(kept, str) else b""
    except ValueError:
        return b""


def settle(database: Path, store: Store, tell: Tell) -> Ended | None:
    """Bring to its end what an earlier run was about when it was killed: the switch itself, or the word of it.

    None where nothing of the kind is left. Nothing is sent anywhere. Raises ``StoreError``.
    """
    staging = Staging.open_existing(database)
    if staging is None:
        return None
    with staging:
        if staging.state is JobState.CUTTING:
            tell(Progress(phase="switching", done=0, total=0))
            cut: CutOver | None = cut_over(database, staging, same_model=bool(staging.kept(SAME)))
        elif staging.state is JobState.CUT and not staging.kept(TOLD):
            cut = None
        else:
            return None
        return _switched(store, staging, cut, selector(Only.ALL, staging.target) if staging.whole else _not_looked_at)


def told(database: Path) -> None:
    """The user knows of the cut-over: the same command begins anew from here on."""
    staging = Staging.open_existing(database)
    if staging is not None:
        with staging:
            staging.keep(TOLD, value=True)


def _not_looked_at(_row: Row) -> str:
    """Which further rows were to be done by a job about some is not known any more."""
    return "not looked at"


def _switched(store: Store, staging: Staging, cut: CutOver | None, select: Selector) -> Ended:
    """The end of a job whose cut-over is done, as the database tells it."""
    found = tally(store, staging, select)
    held, counts = holding(store, staging), found.counts()
    short = counts.done - held
    return Ended(
        state=staging.state,
        counts=replace(counts, planned=counts.planned - found.pending),
        missed=found.pending,
        failed=tuple(islice(failing(staging), LISTED)),
        cut=cut or CutOver(recovered=True),
        held=held,
        reason=Why.NOT_HELD if short else "",
        detail=f"{short} rows do not hold the vector that was written to them: a server may be at work on them"
        if short
        else "",
        notes=staging.notes,
    )


def users(use: Use) -> tuple[str, ...]:
    """Who has the database open, in words."""
    named = tuple(f"process {found.pid} ({safe(found.command, 80)})" for found in use.holders)
    return named or (("another program, which this system does not name",) if use.live else ())


def failing(staging: Staging) -> Iterator[Refused]:
    """Rows that have no new vector, and not because there is nothing to embed."""
    return (entry for entry in staging.refused() if entry.reason != BLANK)
