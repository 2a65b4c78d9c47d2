"""Clearing up behind a job, and what a later step has to look at again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from cpersona_cli.store.files import sibling
from cpersona_cli.store.job import JobError, JobState, backup_path, staging_path, undo_path
from cpersona_cli.store.model import Kind, Row
from cpersona_cli.store.writing.backup import made_by
from cpersona_cli.store.writing.disk import is_plain, remove, told
from cpersona_cli.store.writing.joblock import JobLock
from cpersona_cli.store.writing.mainfile import TABLES, Main, Stored
from cpersona_cli.store.writing.planning import Rule, Side, good
from cpersona_cli.store.writing.settling import is_written, settle
from cpersona_cli.store.writing.staging import Staging
from cpersona_cli.store.writing.undofile import Entry, UndoFile, open_undo


def unvouched(database: Path) -> Iterator[Row]:
    """Rows that may need another look after the last cut-over: those of which nothing says that their vector is good.

    Of a job about all rows these are the ones without a vector, and the ones whose vector neither the job wrote nor
    their label vouches for: a server still on the old backend may have made it. Of another job, those of its own
    rows that no longer hold what it wrote. The database is not held meanwhile. Raises ``StoreError``.
    """
    path, staging = undo_path(database), staging_path(database)
    undo = open_undo(path)
    if undo is None:
        raise JobError(f"no finished re-embedding of {database} is here to be completed")
    with told(path), undo, Main(database) as main:
        meta = undo.meta()
        rule = Rule(target=meta.target, whole=meta.only == "all")
        staged = is_plain(staging)
        if staged:
            undo.attach(staging)
        for kind in Kind:
            entries = Side((entry.id, entry) for entry in undo.entries(kind))
            # The ids first: who goes through the rows may take long, and nothing is read from the database meanwhile.
            doubtful = [
                row.id
                for row in main.rows(kind)
                if not _vouched(row, entries.at(row.id), rule) and not (staged and _staged(undo, kind, row))
            ]
            entries.end()
            yield from (row for identifier in doubtful if (row := _row(main, kind, identifier)) is not None)


def _vouched(row: Stored, entry: Entry | None, rule: Rule) -> bool:
    if row.digest is None or good(row, rule):
        return True
    if entry is None:
        return not rule.whole
    return entry.written is not None and row.digest == entry.digest and is_written(row.form, row.vector, entry.written)


def _staged(undo: UndoFile, kind: Kind, row: Stored) -> bool:
    """Whether a row holds what was staged for its text."""
    found = undo.connection.execute(
        "SELECT new.vector FROM staging.rows JOIN staging.vectors AS new ON new.ref = rows.ref"
        " WHERE kind = ? AND id = ? AND rows.digest = ?",
        (kind, row.id, row.digest),
    ).fetchone()
    return found is not None and bool(row.vector == found[0])


def _row(main: Main, kind: Kind, identifier: int) -> Row | None:
    """A row that can be embedded, as it is now; None where it is gone."""
    table, text = TABLES[kind]
    label = "embedding_model" if main.shape.labelled else "''"
    found = main.connection.execute(
        f"SELECT {text}, agent_id, created_at, {label}, typeof(embedding) = 'blob', embedding FROM {table}"  # noqa: S608
        f" WHERE id = ? AND typeof({text}) = 'text'",
        (identifier,),
    ).fetchone()
    if found is None:
        return None
    words = [value.decode("utf-8", "backslashreplace") for value in found[:4]]
    vector = found[5] if found[4] else None
    return Row(kind=kind, id=identifier, text=words[0], agent=words[1], created=words[2], label=words[3], vector=vector)


def abandon(database: Path) -> tuple[Path, ...]:
    """Drop the unfinished job of a database, whose rows it has not touched; the files removed.

    Raises ``StoreError`` when there is none, or its cut-over has happened.
    """
    with JobLock(database) as lock:
        staging = Staging.under(database, lock)
        if staging is None:
            if not is_plain(staging_path(database)):
                raise JobError(f"there is no unfinished job of {database}")
            settle(database, None)
            return _removed(staging_path(database))
        with contextlib.closing(staging):
            settle(database, staging)
            if staging.state is JobState.CUT:
                raise JobError(
                    f"the new vectors are in {database} already: take them back with cpersona-cli reembed undo,"
                    " or clear up with cpersona-cli reembed forget"
                )
            if staging.state is JobState.UNDONE:
                raise JobError(
                    f"the new vectors were taken out of {database} again: clear up with cpersona-cli reembed forget"
                )
            backup = made_by(staging)
        return _removed(staging_path(database), *([backup_path(database)] if backup else []))


def forget(database: Path) -> tuple[Path, ...]:
    """Remove what would take the last cut-over back, the backup and the staged vectors; the files removed.

    The record of the job stays. Raises ``StoreError`` while a job is unfinished.
    """
    with JobLock(database) as lock:
        staging = Staging.under(database, lock)
        if staging is not None:
            with contextlib.closing(staging):
                settle(database, staging)
                if staging.state not in {JobState.CUT, JobState.UNDONE}:
                    raise JobError(
                        f"a job of {database} is unfinished: continue it with cpersona-cli reembed,"
                        " or give it up with cpersona-cli reembed abandon"
                    )
        else:
            settle(database, None)
        undo = open_undo(undo_path(database))
        if undo is not None:
            undo.close()
        return _removed(undo_path(database), backup_path(database), staging_path(database))


def _removed(*paths: Path) -> tuple[Path, ...]:
    """Remove files of this tool, and what an interrupted step left under their temporary names."""
    gone = []
    for path in paths:
        for name in (path, sibling(path, ".new"), sibling(path, ".next")):
            with told(name):
                is_plain(name)
                if remove(name):
                    gone.append(name)
    return tuple(gone)
