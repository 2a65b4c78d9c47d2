"""Carrying out a planned import: a backup, the rows, their vectors, and a look at what the database says afterwards."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cpersona_cli.embedding.loop import run as in_loop
from cpersona_cli.fit.model import Fit
from cpersona_cli.history.gather import Tally
from cpersona_cli.history.plan import Plan
from cpersona_cli.history.wants import Wants
from cpersona_cli.rebuild.model import Fetched, Options, Progress, Tell
from cpersona_cli.rebuild.objections import most_are_strangers
from cpersona_cli.rebuild.pipeline import fetch
from cpersona_cli.rebuild.stop import Stop
from cpersona_cli.rebuild.target import Identified
from cpersona_cli.record import record, replace
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.effects import Change
from cpersona_cli.store.job import Refused
from cpersona_cli.store.limits import rules_for
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.writing.backup import Backup, copied, stamp
from cpersona_cli.store.writing.comparing import effects_of
from cpersona_cli.store.writing.filling import Filling, bare, count_bare
from cpersona_cli.store.writing.imports import Action, Record, backup_path
from cpersona_cli.store.writing.insert import Bringing
from cpersona_cli.store.writing.joblock import JobLock
from cpersona_cli.store.writing.mainfile import Main
from cpersona_cli.store.writing.scratch import DONE, FAILED, OPEN, Scratch
from cpersona_cli.store.writing.taking_back import indexes_after

#: Rows without a vector that are listed with the reason.
LISTED = 50
_BACKUP = "backup"


class NoVectors(StrEnum):
    """Why rows were stored without vectors before the endpoint was asked for one."""

    NOT_WANTED = "not wanted"
    UNUSABLE = "the endpoint cannot be used"
    OTHER_WIDTH = "the endpoint gives vectors of another width than those that are stored"
    OTHER_MODEL = "the endpoint’s model is another one than that of the stored vectors"
    INTERRUPTED = "interrupted"


@record(kw_only=True)
class Brought:
    """How an import ended.

    ``rows`` were inserted, by kind. ``without_vector`` of the rows that imports brought in have none now, ``embedded``
    got theirs in this run; ``why_none`` says why no vector was asked for, empty where some were. ``refused`` are the
    first rows that the endpoint refused. ``scopes`` are the recalls as the database tells them afterwards, and
    ``held`` whether every memory counts as it did before (None where that was not promised). ``locked_seconds`` is the
    longest time for which others could not write.
    """

    id: str
    memories: Tally
    episodes: Tally
    rows: Mapping[Kind, int]
    interrupted: bool = False
    fetched: Fetched | None = None
    embedded: int = 0
    without_vector: int = 0
    why_none: str = ""
    refused: tuple[Refused, ...] = ()
    blocks: bool = False
    backup: Backup | None = None
    scopes: tuple[Change, ...] = ()
    held: bool | None = None
    locked_seconds: float = 0.0
    seconds: float = 0.0

    @property
    def whole(self) -> bool:
        """Whether everything that was planned is stored, with its vector where vectors were wanted."""
        failed = self.memories.failures + self.episodes.failures
        lacking = self.without_vector and self.why_none != NoVectors.NOT_WANTED
        return not (self.interrupted or failed or lacking or self.held is False)


def bring_in(
    database: Path,
    scratch: Scratch,
    plan: Plan,
    wants: Wants,
    *,
    identified: Identified | None = None,
    beside: Fit | None = None,
    tell: Tell = lambda _progress: None,
    stop: Stop | None = None,
    wait: float = 30.0,
) -> Brought:
    """Store what is open in ``scratch``, and embed it where ``identified`` is an endpoint.

    ``beside`` is how the stored vectors fit that endpoint, None where it was not measured. Everything up to an end of
    any kind stays stored, and the same import again goes on. Raises ``StoreError``.
    """
    if plan.refusals:
        raise StoreError(plan.refusals[0])
    work = _Work(database, scratch, plan, wants, identified, beside, tell, stop or Stop(), wait)
    return work.go()


def why_none(plan: Plan, identified: Identified | None, beside: Fit | None = None) -> NoVectors | None:
    """Why no vector of this endpoint may be stored beside those that are there, None where it may."""
    if identified is None:
        return NoVectors.NOT_WANTED
    if identified.target is None:
        return NoVectors.UNUSABLE
    widths, dim = plan.present.widths, identified.target.dim
    if widths and dim != next(iter(widths)):
        return NoVectors.OTHER_WIDTH
    return NoVectors.OTHER_MODEL if beside and most_are_strangers(beside, widths.get(dim, 0)) else None


@dataclass(slots=True)
class _Work:
    database: Path
    scratch: Scratch
    plan: Plan
    wants: Wants
    identified: Identified | None
    beside: Fit | None
    tell: Tell
    stop: Stop
    wait: float

    def go(self) -> Brought:
        began = time.monotonic()
        with JobLock(self.database):
            saved = self._backup()
            with Main(self.database) as main, Record(self.database) as kept:
                kept.check(main)
                identifier = kept.begin(
                    Action.IMPORT,
                    agent=self.wants.agent,
                    no_penalty=self.wants.no_penalty,
                    backup=stamp(saved.path) if saved else None,
                )
                bringing = Bringing(
                    main,
                    self.scratch,
                    kept,
                    self.wants.no_penalty,
                    self.wants.clamp,
                    tell=lambda done, total: self.tell(Progress(phase="storing", done=done, total=total)),
                    stopped=lambda: self.stop.asked,
                    wait=self.wait,
                )
                through = bringing.go()
                main.make_durable()
                main.checkpoint()
                kept.finish(through=through)
                vectors = self._vectors(main, kept)
                episodes = [entry.id for entry in kept.entries(kept.number, Kind.EPISODE)]
                indexes_after(self.database, main)
            scopes, held = self._after(episodes)
        return replace(
            vectors,
            id=identifier if sum(bringing.inserted.values()) else "",
            memories=_ended(self.plan.read.memories, self.scratch.outcomes(Kind.MEMORY, DONE)),
            episodes=_ended(self.plan.read.episodes, self.scratch.outcomes(Kind.EPISODE, DONE)),
            rows=dict(bringing.inserted),
            interrupted=vectors.interrupted or not through,
            backup=saved,
            scopes=scopes,
            held=held,
            locked_seconds=bringing.longest,
            seconds=time.monotonic() - began,
        )

    def _backup(self) -> Backup | None:
        """A copy from before the import; that of an import that was cut off is still the one."""
        if self.plan.empty:
            return None
        path = backup_path(self.database)
        with Record(self.database) as kept:
            last = next(iter(kept.all()), None)
        if last is not None and not last.finished and not last.undone:
            with contextlib.suppress(OSError):
                if last.kept.get(_BACKUP) == stamp(path):
                    return Backup(path, path.stat().st_size, made=False)
        return copied(
            self.database, path, lambda phase, done, total: self.tell(Progress(phase=phase, done=done, total=total))
        )

    def _vectors(self, main: Main, kept: Record) -> Brought:
        """Give every row that imports brought in its vector, where it has none."""
        ended = Brought(id="", memories=Tally(), episodes=Tally(), rows={})
        missing = count_bare(main, kept)
        why = why_none(self.plan, self.identified, self.beside)
        if not why and self.stop.asked:
            why = NoVectors.INTERRUPTED
        if why or not missing.rows:
            return replace(ended, without_vector=missing.rows, why_none=why if why and missing.rows else "")
        found = self.identified
        assert found is not None  # noqa: S101 - else there is a reason
        assert found.target is not None  # noqa: S101
        filling = Filling(main, found.target, self.wait)
        options = Options(target=found.target, total=missing.rows, tokens=missing.characters // 4)

        async def main_() -> Fetched:
            with self.stop.event() as event:
                return await fetch(bare(main, kept), filling, found.endpoint, options, tell=self.tell, stop=event)

        fetched = in_loop(main_())
        queued = filling.finish(blocks=bool(fetched.counts.done))
        return replace(
            ended,
            fetched=fetched,
            interrupted=fetched.interrupted,
            embedded=fetched.counts.done,
            without_vector=count_bare(main, kept).rows,
            refused=tuple(filling.refused[:LISTED]),
            blocks=queued,
        )

    def _after(self, episodes: Sequence[int]) -> tuple[tuple[Change, ...], bool | None]:
        """Every recall as the database now has it, with these episodes and without, over the memories of before."""
        store, present, lens = CPersonaStore(self.database), self.plan.present, self.wants.lens
        rules = rules_for(present.schema) if self.wants.no_penalty and episodes else ()
        found = effects_of(
            store,
            present.newest,
            episodes,
            upto=present.last,
            lenses=[lens, *(replace(lens, rule=rule) for rule in rules if rule != lens.rule)],
        )
        held = not any(one.changed for seen in found for one in seen) if self.wants.no_penalty else None
        return found[0], held


def _ended(read: Tally, outcomes: Mapping[str, int]) -> Tally:
    """What was read, by what became of it."""
    left = {state: count for state, count in outcomes.items() if state not in {DONE, OPEN}}
    failed = {state.removeprefix(FAILED): count for state, count in left.items() if state.startswith(FAILED)}
    there = {state: count for state, count in left.items() if not state.startswith(FAILED)}
    return replace(
        read,
        stored=outcomes.get(DONE, 0),
        duplicate={**read.duplicate, **there},
        failed=failed,
        rest=outcomes.get(OPEN, 0),
    )
