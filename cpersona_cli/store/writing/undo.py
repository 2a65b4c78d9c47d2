"""Taking a cut-over back: a second one, with the same guards.

A row gets its old vector and label again only if it still holds the vector the job wrote, and the text that is for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpersona_cli.record import record, replace
from cpersona_cli.store.job import JobError, JobState, undo_path
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing import calibration, derived
from cpersona_cli.store.writing.derived import Dropped
from cpersona_cli.store.writing.disk import told
from cpersona_cli.store.writing.finished import read_record, write_record
from cpersona_cli.store.writing.joblock import JobLock
from cpersona_cli.store.writing.mainfile import TABLES, Main, Stored
from cpersona_cli.store.writing.planning import Side
from cpersona_cli.store.writing.settling import is_written, settle
from cpersona_cli.store.writing.staging import Staging
from cpersona_cli.store.writing.undofile import Entry, UndoFile, UndoMeta, open_undo


@record(kw_only=True)
class Undone:
    """What taking a cut-over back did.

    ``restored`` rows have their old vector and label again, ``already`` had them. ``left`` rows were changed since, so
    they keep what they have; ``gone`` ones are no more; ``newer`` rows came since and have a vector. Those left and
    newer may have vectors of the model that is being left. ``calibration`` is ``restored``, ``rewritten``, ``absent``,
    ``untouched`` or a reason.
    """

    restored: int = 0
    already: int = 0
    left: int = 0
    gone: int = 0
    newer: int = 0
    blocks: int = 0
    nodes: int = 0
    seconds: float = 0.0
    locked_seconds: float = 0.0
    indexes: tuple[str, ...] = ()
    calibration: str = "untouched"


def undo(database: Path, *, wait: float = 30.0) -> Undone:
    """Give every row its old vector and label back, bit for bit, and bring everything derived into order.

    Killed, it is simply called again. ``wait`` is as in ``cut_over``. Raises ``StoreError``.
    """
    started = time.monotonic()
    with JobLock(database) as lock:
        staging = Staging.under(database, lock)
        try:
            settle(database, staging)
            path = undo_path(database)
            file = open_undo(path)
            if file is None:
                raise JobError(f"no re-embedding of {database} can be taken back: {path} is not there")
            with told(path), file, Main(database) as main:
                file.verify()
                done = _take_back(main, file, wait=wait)
                if staging is not None and staging.meta.job == file.meta().job:
                    staging.set_state(JobState.UNDONE)
        finally:
            if staging is not None:
                staging.close()
    return replace(done, seconds=time.monotonic() - started)


def _take_back(main: Main, file: UndoFile, *, wait: float) -> Undone:
    meta = file.meta()
    file.write_meta(state="undoing")
    file.connection.execute("CREATE TEMP TABLE back (kind TEXT, id INTEGER, PRIMARY KEY (kind, id)) WITHOUT ROWID")
    seen = main.version()
    found = _classify(main, file, meta)
    dropped, locked = Dropped(), 0.0
    indexes = derived.remove_indexes(main.path)
    if found.restored:
        main.lock(wait)
        since = time.monotonic()
        with told(main.path):
            if main.version() != seen:
                found = _classify(main, file, meta)
            dropped = _swap_back(main, file, meta)
        locked = time.monotonic() - since
    main.make_durable()
    indexes = tuple(dict.fromkeys((*indexes, *derived.remove_indexes(main.path))))
    calibrated = _recalibrate(main, file, meta)
    main.checkpoint()
    now = time.time()
    record_before = read_record(main.path)
    if record_before is not None and record_before.job == meta.job:
        write_record(main.path, replace(record_before, undone=now))
    file.write_meta(state="undone", undone=now)
    return Undone(
        restored=found.restored,
        already=found.already,
        left=found.left,
        gone=found.gone,
        newer=found.newer,
        blocks=dropped.blocks,
        nodes=dropped.nodes,
        locked_seconds=locked,
        indexes=indexes,
        calibration=calibrated,
    )


@dataclass(slots=True)
class _Found:
    restored: int = 0
    already: int = 0
    left: int = 0
    gone: int = 0
    newer: int = 0


def _classify(main: Main, file: UndoFile, meta: UndoMeta) -> _Found:
    """Count rows by what can be done for them, and fill ``temp.back`` with those that get their old vector."""
    found = _Found()
    file.connection.execute("DELETE FROM temp.back")
    for kind in Kind:
        file.connection.executemany("INSERT INTO temp.back VALUES (?, ?)", _to_restore(main, file, meta, kind, found))
    return found


def _to_restore(main: Main, file: UndoFile, meta: UndoMeta, kind: Kind, found: _Found) -> Iterator[tuple[str, int]]:
    entries = Side((entry.id, entry) for entry in file.entries(kind))
    last = meta.last.get(kind, 0)
    for row in main.rows(kind):
        entry = entries.at(row.id)
        if entry is None:
            found.newer += row.id > last and row.form != "null"
        elif _as_before(row, entry):
            found.already += 1
        elif row.digest == entry.digest and is_written(row.form, row.vector, entry.written):
            found.restored += 1
            yield kind, row.id
        else:
            found.left += 1
    entries.end()
    found.gone += len(entries.passed)


def _as_before(row: Stored, entry: Entry) -> bool:
    same_label = entry.label is None or row.label == entry.label
    return (row.form, row.vector) == (entry.form, entry.vector) and same_label


def _swap_back(main: Main, file: UndoFile, meta: UndoMeta) -> Dropped:
    connection = main.connection
    derived.stop_logs(connection, main.shape)
    for kind in Kind:
        table, _ = TABLES[kind]
        # A vector that was text is text again; bytes are bound as they were read.
        vector = "CASE ? WHEN 'text' THEN CAST(? AS TEXT) ELSE ? END"
        label = ", embedding_model = CAST(? AS TEXT)" if main.shape.labelled else ""
        connection.executemany(
            f"UPDATE {table} SET embedding = {vector}{label} WHERE id = ?",  # noqa: S608
            _old(file, kind, labelled=main.shape.labelled),
        )
    whole = meta.only == "all"
    if not whole:
        derived.choose(connection, file.connection.execute("SELECT kind, id FROM temp.back"))
    dropped = derived.drop(connection, main.shape, chosen=not whole)
    connection.execute("COMMIT")
    return dropped


def _old(file: UndoFile, kind: Kind, *, labelled: bool) -> Iterator[tuple[Any, ...]]:
    rows = file.connection.execute(
        f"SELECT form, vector, label, {kind}.id FROM temp.back JOIN {kind} ON {kind}.id = back.id"  # noqa: S608
        " WHERE back.kind = ? ORDER BY back.id",
        (kind,),
    )
    for form, vector, label, identifier in rows:
        # A column that came after the cut-over, with an upgrade, was empty for every row before it.
        yield (form, vector, vector, *((label or b"",) if labelled else ()), identifier)


def _recalibrate(main: Main, file: UndoFile, meta: UndoMeta) -> str:
    if not meta.renew:
        return "untouched"
    width = file.old_width() or meta.target.dim
    results = [
        calibration.restore(Path(name), content, width, main.shape.schema) for name, content in file.sidecars().items()
    ]
    return next((result for result in results if result != "absent"), "absent")
