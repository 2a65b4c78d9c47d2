"""The cut-over: the one transaction in which staged vectors take the place of the old ones.

What happens, in an order in which a crash at any point loses nothing:

1. Every vector and label to be replaced is written to the undo file, which is brought to the disk.
2. ``CUTTING`` is written; the search indexes beside the database are removed.
3. One transaction: change logs off, vectors and labels set, blocks and nodes removed, rebuilds queued.
4. The undo file gets its name, indexes are removed again, the calibration file is renewed, the log is brought into the
   database, the record is written, and then ``CUT``.

After a crash from 2 on, ``settle`` asks the database whether 3 happened, and does 4 or drops what 1 wrote.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from cpersona_cli.record import record, replace
from cpersona_cli.store.files import real_path, sibling, size_of
from cpersona_cli.store.job import JobError, JobState, undo_path
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.writing import calibration, derived
from cpersona_cli.store.writing.derived import Dropped
from cpersona_cli.store.writing.disk import told
from cpersona_cli.store.writing.mainfile import TABLES, Main
from cpersona_cli.store.writing.planning import Rule, Tally, Tell, plan
from cpersona_cli.store.writing.settling import CutOver, follow, settle
from cpersona_cli.store.writing.staging import Staging
from cpersona_cli.store.writing.undofile import UndoFile, next_path, open_undo

#: Seconds of the write lock per row, per number of a vector, and per block: see benchmarks/cutover.py.
_PER_ROW, _PER_NUMBER, _PER_BLOCK = 1.0e-5, 3.5e-8, 5.0e-6


def predict_lock(rows: int, dim: int, blocks: int = 0) -> float:
    """Seconds for which a cut-over of ``rows`` vectors of ``dim`` keeps others from writing, on a usual disk."""
    return rows * (_PER_ROW + dim * _PER_NUMBER) + blocks * _PER_BLOCK


def cut_over(
    database: Path,
    staging: Staging,
    *,
    same_model: bool = False,
    tokens: bool = False,
    wait: float = 30.0,
    tell: Tell | None = None,
) -> CutOver:
    """Put the staged vectors in the place of the old ones, all at once, and bring everything derived into order.

    A job about all rows leaves no vector of another model behind: a row without a new vector (refused, or its text
    changed) is emptied, unless ``same_model`` or its label vouch for the old one. A job about some rows touches those
    it has vectors for. ``tokens``: the endpoint counts tokens, so the server can rebuild its nodes. ``wait`` is for
    the write lock, in seconds. ``tell`` is called with a phase, and rows done of all.

    What an earlier run was killed in is settled first; had it happened, only what follows is done. Raises
    ``StoreError``; the database is then as it was, or, where that could not be found out, the next run finds out.
    """
    recovered = settle(database, staging)
    if recovered is not None:
        return recovered
    if staging.state is JobState.CUT:
        raise JobError(f"the vectors of this job are in {database} already: begin a new one, or undo it")
    rule = Rule(target=staging.target, whole=staging.whole, same_model=same_model)
    path = next_path(database)
    with told(path):
        undo = UndoFile.make(path)
    return _cut(_Work(database, staging, rule, undo, tokens, wait), tell)


def finish_over(
    database: Path, staging: Staging, *, tokens: bool = False, wait: float = 30.0, tell: Tell | None = None
) -> CutOver:
    """Bring in the rows that were staged after the job's cut-over (see ``undo.unvouched``), guarded in the same way.

    What they held goes to the job's undo file. Rows that were not staged are left as they are. The counts of the
    result are of this step alone, those of ``read_record`` afterwards of the whole job. Raises ``StoreError``.
    """
    settle(database, staging)
    path = undo_path(database)
    undo = open_undo(path)
    if undo is None or staging.state is not JobState.CUT:
        raise JobError(f"no finished re-embedding of {database} is here to be completed")
    with told(path):
        undo.round = undo.meta().round + 1
    rule = Rule(target=staging.target, whole=staging.whole, later=True)
    return _cut(_Work(database, staging, rule, undo, tokens, wait), tell)


@record
class _Work:
    database: Path
    staging: Staging
    rule: Rule
    undo: UndoFile
    tokens: bool
    wait: float


def _cut(work: _Work, tell: Tell | None) -> CutOver:
    started = time.monotonic()
    undo, database = work.undo, work.database
    with Main(database) as main:
        try:
            with told(undo.path), undo:
                undo.attach(work.staging.path)
                seen = main.version()
                tally = _write_plan(work, main, tell)
                _read_back(undo)
                undo.write_meta(state="cutting")
                work.staging.set_state(JobState.CUTTING)
                indexes = derived.remove_indexes(database)
                main.lock(work.wait)
                with told(database):
                    done = _swap(work, main, tally, seen)
        except BaseException:
            main.close()
            # Whether the transaction happened is asked of the database itself; if even that fails, the next run asks.
            with contextlib.suppress(StoreError):
                settle(database, work.staging)
            raise
        after = follow(main, work.staging)
    return replace(
        done,
        indexes=tuple(dict.fromkeys((*indexes, *after.indexes))),
        calibration=after.calibration,
        seconds=time.monotonic() - started,
    )


def _write_plan(work: _Work, main: Main, tell: Tell | None) -> Tally:
    undo, meta = work.undo, work.staging.meta
    with undo.change():
        tally = plan(main, undo, work.rule, tell)
        undo.write_meta(round=undo.round)
        if not work.rule.later:
            for name, content in calibration.contents(work.database).items():
                undo.keep_sidecar(name, content)
            undo.write_meta(job=meta.job, target=meta.target, only=meta.only, started=meta.started, last=tally.last)
            undo.write_meta(counts=_counts(tally), renew=work.rule.whole or undo.replaces())
    return tally


def _read_back(undo: UndoFile) -> None:
    if not undo.sound():
        raise StoreError(f"{undo.path} could not be read back from the disk whole: nothing was changed")


def _counts(tally: Tally) -> dict[str, Any]:
    return {"already": tally.already, "kept": tally.kept, "changed": tally.changed, "gone": tally.gone}


def _swap(work: _Work, main: Main, tally: Tally, seen: int) -> CutOver:
    """The transaction itself; the write lock is held. Everything it does not need is done before or after."""
    locked = time.monotonic()
    undo, rule, connection = work.undo, work.rule, main.connection
    if main.version() != seen:
        with told(undo.path), undo.change():
            tally = plan(main, undo, rule)
            if not rule.later:
                undo.write_meta(last=tally.last, counts=_counts(tally))
    derived.stop_logs(connection, main.shape)
    written, emptied = {}, 0
    for kind in Kind:
        _update(main, undo, kind, rule.target.label)
        number, without = undo.in_round(kind)
        emptied += without
        if number:
            written[kind] = number
    dropped = _drop(work, main)
    connection.execute("COMMIT")
    return CutOver(
        written=written,
        emptied=emptied,
        blocks=dropped.blocks,
        nodes=dropped.nodes,
        locked_seconds=time.monotonic() - locked,
        wal_bytes=size_of(sibling(real_path(work.database), "-wal")) or 0,
        **_counts(tally),
    )


def _update(main: Main, undo: UndoFile, kind: Kind, label: str) -> None:
    """Set the vectors and labels of a kind, in order of id: the pages of the table are written once each."""
    table, _ = TABLES[kind]
    changes = undo.changes(kind)
    if main.shape.labelled:
        main.connection.executemany(
            f"UPDATE {table} SET embedding = ?, embedding_model = ? WHERE id = ?",  # noqa: S608
            ((vector, "" if vector is None else label, identifier) for vector, identifier in changes),
        )
    else:
        main.connection.executemany(f"UPDATE {table} SET embedding = ? WHERE id = ?", changes)  # noqa: S608


def _drop(work: _Work, main: Main) -> Dropped:
    rule = work.rule
    if rule.whole:
        # What a server on the new backend has built since the cut-over is good, where it says so itself.
        label = rule.target.label if rule.later and rule.target.telling else ""
        return derived.drop(main.connection, main.shape, chosen=False, label=label, tokens=work.tokens)
    derived.choose(main.connection, (row for kind in Kind for row in work.undo.chosen(kind)))
    return derived.drop(main.connection, main.shape, chosen=True, tokens=work.tokens)
