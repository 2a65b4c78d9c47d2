"""What follows the transaction of a cut-over, and what is done about one that a crash left open."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cpersona_cli.record import field, record
from cpersona_cli.store.job import JobState, undo_path
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.writing import calibration, derived
from cpersona_cli.store.writing.disk import remove, told
from cpersona_cli.store.writing.finished import Finished, write_record
from cpersona_cli.store.writing.mainfile import TABLES, Main
from cpersona_cli.store.writing.staging import Staging
from cpersona_cli.store.writing.undofile import UndoFile, UndoMeta, make_final, next_path, open_undo

#: Rows that must speak for one answer more than for the other.
_LEAD = 100


@record(kw_only=True)
class CutOver:
    """What a cut-over did.

    ``written`` are rows that got their new vector, by kind; ``already`` had it. ``emptied`` are rows left without a
    vector: they have no new one, and the old one, of another model, is in the undo file. ``kept`` have no new one
    either, and their old one is good. ``changed`` are rows whose text is not the one that was embedded (a part of
    ``emptied`` and ``kept``), ``gone`` staged rows that are no more. Others could not write for ``locked_seconds``;
    the database's log then had ``wal_bytes``.

    ``indexes`` are search indexes that were removed. ``calibration`` is ``rewritten``, ``absent``, ``untouched`` or a
    reason. ``recovered``: it had happened in an earlier run, and this one did what follows.
    """

    written: Mapping[Kind, int] = field(default_factory=dict)
    already: int = 0
    emptied: int = 0
    kept: int = 0
    changed: int = 0
    gone: int = 0
    blocks: int = 0
    nodes: int = 0
    seconds: float = 0.0
    locked_seconds: float = 0.0
    wal_bytes: int = 0
    indexes: tuple[str, ...] = ()
    calibration: str = "untouched"
    recovered: bool = False

    @property
    def rows(self) -> int:
        return sum(self.written.values())


def settle(database: Path, staging: Staging | None) -> CutOver | None:
    """Find out what became of a cut-over that was begun, and do what follows one that happened.

    None where none was begun, or it did not happen; then the job is as it was before. The caller holds the job's
    lock. Raises ``StoreError``.
    """
    upcoming = next_path(database)
    undo = open_undo(upcoming)
    if undo is not None:
        with told(upcoming), undo, Main(database) as main:
            happened = _cutting(undo, staging) and _happened(main, undo)
            undo.close()
            if happened:
                return follow(main, staging)
    with told(upcoming):
        remove(upcoming)
    undo = open_undo(undo_path(database))
    if undo is not None:
        with told(undo.path), undo:
            meta = undo.meta()
        same = staging is None or staging.meta.job == meta.job
        # A crash after the undo file got its name, or just before the staging file was told.
        if meta.state == "cutting" or (same and meta.state == "cut" and staging and staging.state is JobState.CUTTING):
            with Main(database) as main:
                return follow(main, staging)
    if staging is not None and staging.state is JobState.CUTTING:
        staging.set_state(JobState.STAGED)
    return None


def _cutting(undo: UndoFile, staging: Staging | None) -> bool:
    try:
        return undo.meta().state == "cutting"
    except (sqlite3.DatabaseError, KeyError, TypeError, ValueError) as error:
        if staging is not None and staging.state is not JobState.CUTTING:
            return False  # never came further than its plan
        raise StoreError(
            f"{undo.path} is damaged, and it alone tells whether the last cut-over happened: keep it, and restore the"
            " database from its .reembed-backup if searches by meaning find nothing"
        ) from error


def _happened(main: Main, undo: UndoFile) -> bool:
    """Whether the database holds the new vectors. Servers may have changed some rows since, so the many decide."""
    lead = 0
    for kind in Kind:
        table, _ = TABLES[kind]
        for entry in undo.entries(kind):
            found = main.connection.execute(
                f"SELECT typeof(embedding), embedding FROM {table} WHERE id = ?",  # noqa: S608
                (entry.id,),
            ).fetchone()
            if found is None:
                continue
            form, vector = found[0].decode(), found[1]
            lead += is_written(form, vector, entry.written) - ((form, vector) == (entry.form, entry.vector))
            if abs(lead) >= _LEAD:
                return lead > 0
    return lead > 0


def is_written(form: str, vector: object, written: bytes | None) -> bool:
    """Whether a stored vector is the one a job wrote; ``written`` is its SHA-256, None for a row that was emptied."""
    if written is None or not isinstance(vector, bytes):
        return written is None and form == "null"
    return hashlib.sha256(vector).digest() == written


def follow(main: Main, staging: Staging | None) -> CutOver:
    """Everything that follows the transaction, as often as needed: the counts are those of the undo file.

    ``main`` is outside any transaction, and no undo file is open. Raises ``StoreError``; calling again goes on.
    """
    database = main.path
    path = undo_path(database)
    main.make_durable()
    with told(path):
        if next_path(database).exists():
            make_final(database)
        indexes = derived.remove_indexes(database)
        undo = open_undo(path)
        if undo is None:
            raise StoreError(f"{path} is gone: the new vectors are in the database, and cannot be taken back")
        with undo:
            meta = undo.meta()
            calibrated = calibration.renew(database, meta.target.dim, main.shape.schema) if meta.renew else "untouched"
            main.checkpoint()
            done = CutOver(
                written={kind: number for kind in Kind if (number := undo.count(kind, written=True))},
                emptied=sum(undo.count(kind, written=False) for kind in Kind),
                indexes=indexes,
                calibration=calibrated,
                recovered=True,
                **_others(meta),
            )
            now = time.time()
            write_record(database, _finished(meta, done, now))
            undo.write_meta(state="cut", cut=meta.cut or now)
    if staging is not None and staging.meta.job == meta.job:
        staging.set_state(JobState.CUT)
    return done


def _others(meta: UndoMeta) -> dict[str, Any]:
    return dict(meta.counts)


def _finished(meta: UndoMeta, done: CutOver, now: float) -> Finished:
    target = meta.target
    return Finished(
        job=meta.job,
        started=meta.started,
        finished=meta.cut or now,
        only=meta.only,
        mode=target.mode,
        url=target.url,
        model=target.model,
        dim=target.dim,
        fingerprint=target.fingerprint,
        label=target.label,
        served=target.served,
        rows=done.rows,
        emptied=done.emptied,
    )
