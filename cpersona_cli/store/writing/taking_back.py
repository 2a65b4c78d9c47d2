"""Taking an import or a repair back: exactly what it did, where that still stands as it left it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from cpersona_cli.record import record
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.writing.derived import remove_indexes
from cpersona_cli.store.writing.disk import told
from cpersona_cli.store.writing.imports import Action, Entry, Import, Record, digest_in, imports
from cpersona_cli.store.writing.joblock import JobLock
from cpersona_cli.store.writing.mainfile import TABLES, Main

_MANY, _PAUSE = 500, 0.02


@record(kw_only=True)
class TakenBack:
    """What became of the rows of an import: removed (of a repair: dated as before), left as they were changed, gone."""

    of: Import
    removed: int
    left: int
    gone: int
    seconds: float


def which(database: Path, identifier: str = "") -> Import:
    """The import that ``take_back`` would take back: the named one, or the latest. Raises ``StoreError``."""
    found = [one for one in imports(database) if not one.undone and identifier in {"", one.id}]
    if not found:
        named = f"no import {identifier} that could be taken back" if identifier else "no import"
        raise StoreError(f"{named} is on record beside {database}: nothing was changed")
    return found[0]


def take_back(
    database: Path,
    identifier: str = "",
    *,
    wait: float = 30.0,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> TakenBack:
    """Remove the rows an import inserted, or date episodes again as they were before a repair.

    Rows that were changed since are left as they are. When it is cut off, the same call goes on. Raises ``StoreError``.
    """
    start = time.monotonic()
    with JobLock(database):
        chosen = which(database, identifier)
        with Record(database) as kept, Main(database) as main:
            kept.check(main)
            number = kept.number_of(chosen.id)
            total, counts = sum(chosen.rows.values()), [0, 0, 0]
            for kind in (Kind.MEMORY, Kind.EPISODE):
                entries = kept.entries(number, kind)
                while page := list(islice(entries, _MANY)):
                    with main.transaction(wait):
                        for entry in page:
                            counts[_take(main, chosen.action, entry)] += 1
                    tell(sum(counts), total)
                    main.checkpoint()
                    time.sleep(_PAUSE)
            main.make_durable()
            kept.undone(number)
            indexes_after(database, main)
    removed, left, gone = counts
    return TakenBack(of=chosen, removed=removed, left=left, gone=gone, seconds=time.monotonic() - start)


def _take(main: Main, action: Action, entry: Entry) -> int:
    """Take one row back; 0 when it was, 1 when it was changed since, 2 when it is gone."""
    found = digest_in(main, entry.kind, entry.id)
    if found is None:
        return 2
    if found != entry.digest:
        return 1
    table = TABLES[entry.kind][0]
    if action is Action.REPAIR:
        main.connection.execute(f"UPDATE {table} SET created_at = ? WHERE id = ?", (entry.old, entry.id))  # noqa: S608
    else:
        main.connection.execute(f"DELETE FROM {table} WHERE id = ?", (entry.id,))  # noqa: S608
    return 0


def indexes_after(database: Path, main: Main) -> Sequence[str]:
    """Remove the indexes beside a database whose release keeps no log of changes; they would not hear of any."""
    if "vector_log_clock" in main.shape.tables:
        return ()
    with told(database):
        return remove_indexes(database)
