"""One store of the server, opened anew for each look at it, so that nobody who uses it is ever held up."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from cpersona_cli.store import files
from cpersona_cli.store.cpersona import census as counting
from cpersona_cli.store.cpersona import sample as sampling
from cpersona_cli.store.cpersona.counting import Counted
from cpersona_cli.store.cpersona.features import Features, Table, detect
from cpersona_cli.store.cpersona.picking import thin
from cpersona_cli.store.model import Census, Kind, Row, StoreError
from cpersona_cli.store.opening import (
    ChangedError,
    LockedError,
    Method,
    StaleLogError,
    Stamp,
    UncopiedError,
    stamp,
    steady,
)
from cpersona_cli.store.reading import State
from cpersona_cli.store.refusal import refusal
from cpersona_cli.store.sql import code_of, stop_at
from cpersona_cli.text import safe

T = TypeVar("T")

#: Rows read at once, and of a private copy, which is made anew for each page.
_PAGE, _COPIED_PAGE = 500, 10_000
#: Seconds a page may take.
_PAGE_TIME = 60.0

_WHAT_TO_DO = {
    State.MISSING: "check the path",
    State.NO_FOLDER: "check the path",
    State.IS_FOLDER: "name the file in it",
    State.NO_PERMISSION: "run this as the user who owns it",
    State.NAME_TOO_LONG: "move it to a shorter path",
    State.NOT_SQLITE: "name the database file, or restore a backup",
    State.EMPTY: "start the server once, which makes its tables, or name another file",
    State.CORRUPT: "restore a backup",
    State.STALE_WAL: "keep both files, and restore the ones that belong together",
    State.UNREADABLE: "check the path",
}


class CPersonaStore:
    """The store of the server at ``path``. See ``store.model.Store`` for what every method promises."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # The file as it was at the last census, and what was counted then: a sample after it need not count again.
        self._counted: tuple[Stamp | None, Sequence[Counted]] = (None, ())

    @property
    def path(self) -> Path:
        return self._path

    def census(self, *, deep: bool = False, live_width: int | None = None, deadline: float) -> Census:
        def look(connection: sqlite3.Connection, features: Features, _: Method) -> Census:
            before = self._stamp()
            found, counted = counting.take(
                connection, features, self._path, deep=deep, live_width=live_width, deadline=deadline
            )
            self._counted = (before, counted)
            return found

        return self.look(look, deadline)

    def rows(self, kind: Kind, *, after: int = 0, vectors: bool = False) -> Iterator[Row]:
        """Every row with an id above ``after``, in order of id, in constant memory.

        Each page is a short read of its own: rows that are written meanwhile come if their ids are still ahead.
        """
        while page := self._page(kind, after, vectors=vectors):
            yield from page
            after = page[-1].id

    def _page(self, kind: Kind, after: int, *, vectors: bool) -> Sequence[Row]:
        def look(connection: sqlite3.Connection, _: Features, table: Table, method: Method) -> Sequence[Row]:
            size = _COPIED_PAGE if method == "copy" else _PAGE
            where = f"{table.key} > ? ORDER BY {table.key} LIMIT ?"
            return list(sampling.rows_of(connection, table, where, (after, size), vectors=vectors))

        return self._look_at(kind, look, (), time.monotonic() + _PAGE_TIME)

    def sample(self, count: int, *, deadline: float) -> Sequence[Row]:
        def look(connection: sqlite3.Connection, features: Features, _: Method) -> Sequence[Row]:
            before, counted = self._counted
            counted = counted if before is not None and self._stamp() == before else ()
            return sampling.sample(connection, features, count, deadline=deadline, counted=counted)

        return self.look(look, deadline)

    def texts(self, count: int, *, deadline: float) -> Sequence[Row]:
        """At most ``count`` memories with a text, also without a vector: half of them the longest, in order of id."""

        def look(connection: sqlite3.Connection, features: Features, table: Table, _: Method) -> Sequence[Row]:
            rows = {row.id: row for row in sampling.longest(connection, table, (count + 1) // 2)}
            others = sampling.sample(connection, features, count, deadline=deadline, kinds=[Kind.MEMORY], vectors=False)
            left = [row for row in others if row.id not in rows]
            rows |= {row.id: row for row in thin(left, count - len(rows))}
            return [rows[identifier] for identifier in sorted(rows)]

        return self._look_at(Kind.MEMORY, look, (), deadline)

    def near(self, kind: Kind, identifier: int, count: int, *, deadline: float) -> Sequence[Row]:
        def look(connection: sqlite3.Connection, _: Features, table: Table, __: Method) -> Sequence[Row]:
            return sampling.near(connection, table, identifier, count)

        return self._look_at(kind, look, (), deadline)

    def count(self, kind: Kind, *, after: int = 0, upto: int | None = None, deadline: float) -> Mapping[str, int]:
        def look(connection: sqlite3.Connection, _: Features, table: Table, __: Method) -> Mapping[str, int]:
            return _count(connection, table, after, upto)

        return self._look_at(kind, look, {}, deadline)

    def _stamp(self) -> Stamp:
        return stamp(files.real_path(self._path))

    def _look_at(
        self,
        kind: Kind,
        look: Callable[[sqlite3.Connection, Features, Table, Method], T],
        none: T,
        deadline: float,
    ) -> T:
        """What ``look`` makes of the table of a kind; ``none`` where there is no such table."""

        def with_table(connection: sqlite3.Connection, features: Features, method: Method) -> T:
            table = features.of(kind)
            return none if table is None else look(connection, features, table, method)

        return self.look(with_table, deadline)

    def look(self, look: Callable[[sqlite3.Connection, Features, Method], T], deadline: float) -> T:
        """What ``look`` makes of a connection that reads until ``deadline``; it may be called more than once.

        Raises ``StoreError``, as everything here.
        """
        self._refuse()

        def with_features(connection: sqlite3.Connection, method: Method) -> T:
            stop_at(connection, deadline)
            return look(connection, detect(connection), method)

        try:
            return steady(files.real_path(self._path), with_features, deadline)
        except StoreError as error:
            raise StoreError(f"{self._path} {error}") from None
        except LockedError:
            raise self._error("is kept locked by another process", "end that, or wait until it is done") from None
        except (ChangedError, FileNotFoundError):
            raise self._error("changes faster than it can be read", "try again when less is written") from None
        except UncopiedError as error:
            why = f"can only be read from a copy of it and its log, and {error}"
            raise self._error(why, "start the server once, which takes the log in") from None
        except StaleLogError as error:
            why = f"stands beside a -wal that does not belong to it: {error}"
            raise self._error(why, _WHAT_TO_DO[State.STALE_WAL]) from None
        except sqlite3.Error as error:
            raise self._error(*_explained(error)) from None
        except OSError as error:
            raise self._error(f"cannot be read: {error.strerror or type(error).__name__}", "check the disk") from None

    def _refuse(self) -> None:
        """Raise for what is no database at all."""
        if str(self._path) == ":memory:":
            raise self._error("is kept in memory, and lost when the server ends", "set CPERSONA_DB_PATH to a file")
        stands = files.standing(self._path)
        refused: files.Standing | None = stands
        if stands.status is not None:
            log = files.size_of(files.sibling(files.real_path(self._path), "-wal")) or 0
            refused = refusal(self._path, stands.status.st_size, log)
        if refused is not None:
            what = "does not exist" if refused.state is State.MISSING else "cannot be read"
            raise self._error(f"{what}: {refused.detail}", _WHAT_TO_DO[refused.state])

    def _error(self, what: str, then: str) -> StoreError:
        return StoreError(f"{self._path} {safe(what)}; {then}")


def _explained(error: sqlite3.Error) -> tuple[str, str]:
    """What SQLite said, and what to do."""
    code = code_of(error)
    if code == sqlite3.SQLITE_INTERRUPT:
        return "could not be read in the time there was", "allow more with --timeout"
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return "is kept locked by another process", "end that, or wait until it is done"
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return f"is damaged (SQLite says “{error}”)", "restore a backup, or save what is left with sqlite3 and .recover"
    return f"cannot be read (SQLite says “{error}”)", "check its folder and its disk with cpersona-cli doctor"


def _count(connection: sqlite3.Connection, table: Table, after: int, upto: int | None) -> Mapping[str, int]:
    vector, agent = table.vector, table.agent or "''"
    rows = connection.execute(
        f"SELECT {agent} FROM {table.name} WHERE {table.key} > ? AND {table.key} <= ?"  # noqa: S608
        f" AND typeof({vector}) = 'blob' AND length({vector}) > 0 AND length({vector}) % 4 = 0",
        (after, (1 << 63) - 1 if upto is None else upto),
    )
    return {str(name): number for (name,), number in Counter(rows).items()}
