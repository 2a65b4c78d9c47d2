"""After a switch under a live server: the rows that it wrote with the former model meanwhile get their right vector."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cpersona_cli.embedding.loop import run as in_loop
from cpersona_cli.rebuild.job import LISTED, Sink
from cpersona_cli.rebuild.model import Fetched, Options, Tell
from cpersona_cli.rebuild.pipeline import fetch
from cpersona_cli.rebuild.remaining import BLANK, in_sample
from cpersona_cli.rebuild.stop import Stop
from cpersona_cli.rebuild.target import Identified
from cpersona_cli.rebuild.work import Effort, Ended, Why
from cpersona_cli.store.job import JobError, JobState, Refused, Staged
from cpersona_cli.store.model import Store
from cpersona_cli.store.writing.clearing import unvouched
from cpersona_cli.store.writing.cutover import finish_over
from cpersona_cli.store.writing.settling import CutOver
from cpersona_cli.store.writing.staging import Staging, described, identity


def finish(database: Path, store: Store, found: Identified, tell: Tell, stop: Stop, *, tokens: bool = False) -> Ended:
    """Embed every row that nothing vouches for, and bring it in. Raises ``StoreError``."""
    staging = Staging.open_existing(database)
    if staging is None:
        raise JobError(f"no re-embedding of {database} is on record that could be finished")
    with staging:
        if staging.state not in {JobState.CUT, JobState.CUTTING}:
            was = "was taken back" if staging.state is JobState.UNDONE else "has not switched yet"
            raise JobError(f"the re-embedding of {database} {was}, so there is nothing to finish")
        if found.target is None or identity(found.target) != identity(staging.target):
            gives = "none that can be used" if found.target is None else described(found.target)
            raise JobError(
                f"the job made vectors of {described(staging.target)}, and the endpoint gives {gives}:"
                " name the endpoint of the job with --url"
            )
        sink = _Noting(staging)
        options = Options(target=staging.target)

        async def main() -> Fetched:
            with stop.event() as event:
                return await fetch(unvouched(database), sink, found.endpoint, options, tell=tell, stop=event)

        fetched = in_loop(main())
        stopped = fetched.reason or (Why.INTERRUPTED if fetched.interrupted else "")
        # what has its vector is brought in also where the rest has none yet
        idle = not sink.staged and staging.state is JobState.CUT
        cut = CutOver() if idle else finish_over(database, staging, tokens=tokens)
        counts = fetched.counts
        now = in_sample(store, sink.staged)
        return Ended(
            state=staging.state,
            counts=counts,
            left=counts.planned - counts.done - counts.failed - counts.nothing - counts.unchanged,
            failed=tuple(sink.refused[:LISTED]),
            effort=Effort().and_(fetched),
            cut=cut,
            held=sum(row.vector == entry.vector for entry, row in now),
            reason=stopped,
            detail=fetched.detail,
        )


class _Noting(Sink):
    """The staging file, and what this run puts into it."""

    def __init__(self, staging: Staging) -> None:
        super().__init__(staging)
        self.staged: list[Staged] = []
        self.refused: list[Refused] = []

    def add(self, staged: Sequence[Staged], refused: Sequence[Refused] = ()) -> None:
        """Keep the outcome of a batch, and remember it."""
        super().add(staged, refused)
        self.staged += staged
        self.refused += (entry for entry in refused if entry.reason != BLANK)
