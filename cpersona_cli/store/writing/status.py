"""How far a job is, told without its lock: from another terminal, while it runs."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path

from cpersona_cli.record import field, record
from cpersona_cli.store.files import size_of
from cpersona_cli.store.job import backup_path, staging_path, undo_path
from cpersona_cli.store.model import StoreError
from cpersona_cli.store.opening import ChangedError, LockedError, UncopiedError, method_for, opened
from cpersona_cli.store.writing import stagingfile
from cpersona_cli.store.writing.disk import is_plain, told
from cpersona_cli.store.writing.finished import Finished, read_record
from cpersona_cli.store.writing.joblock import busy
from cpersona_cli.store.writing.stagingfile import Meta, StagingCounts
from cpersona_cli.store.writing.undofile import UndoMeta, open_undo

_ATTEMPTS = 5
#: Seconds one look may take.
_LIMIT = 10.0


@record(kw_only=True)
class JobStatus:
    """A job as seen from outside. ``meta`` is None where there is no staging file, or none that can be read.

    ``running`` is the process that works on it now (0: not known which), None where none does. ``undo`` describes the
    cut-over that can be taken back. ``sizes`` are bytes by file, of those that are there.
    """

    meta: Meta | None = None
    counts: StagingCounts = field(default_factory=StagingCounts)
    kept: Mapping[str, object] = field(default_factory=dict)
    running: int | None = None
    undo: UndoMeta | None = None
    finished: Finished | None = None
    sizes: Mapping[Path, int] = field(default_factory=dict)
    problem: str = ""


def job_status(database: Path) -> JobStatus | None:
    """What is known of the jobs of a database; None where nothing of one is there. Raises ``StoreError``."""
    paths = (staging_path(database), undo_path(database), backup_path(database))
    sizes = {path: size for path in paths if (size := size_of(path)) is not None}
    finished = read_record(database)
    if not sizes and finished is None:
        return None
    meta, counts, problem = None, StagingCounts(), ""
    kept: dict[str, object] = {}
    if staging_path(database) in sizes:
        try:
            meta, counts, kept = _look(staging_path(database))
        except StoreError as error:
            problem = str(error)
    return JobStatus(
        meta=meta,
        counts=counts,
        kept=kept,
        running=busy(database),
        undo=_undo(database),
        finished=finished,
        sizes=sizes,
        problem=problem,
    )


def _look(path: Path) -> tuple[Meta, StagingCounts, dict[str, object]]:
    is_plain(path)
    stagingfile.check_ours(path)
    deadline = time.monotonic() + _LIMIT
    for attempt in range(_ATTEMPTS):
        try:
            with told(path), opened(path, method_for(path), deadline) as connection:
                values = stagingfile.read_values(connection)
                kept = {name.removeprefix("kept."): value for name, value in values.items() if name.startswith("kept.")}
                return stagingfile.read_meta(connection), stagingfile.counts_of(connection), kept
        except (ChangedError, LockedError, UncopiedError) as error:
            if attempt == _ATTEMPTS - 1:
                raise StoreError(f"{path} changes faster than it can be read: try again") from error
            time.sleep(0.02)
        except (TypeError, ValueError) as error:
            raise StoreError(f"{path} does not say what job it is of") from error
    raise AssertionError(path)


def _undo(database: Path) -> UndoMeta | None:
    path = undo_path(database)
    file = open_undo(path)
    if file is None:
        return None
    with file:
        try:
            return file.meta()
        except (sqlite3.Error, KeyError, TypeError, ValueError):
            return None
