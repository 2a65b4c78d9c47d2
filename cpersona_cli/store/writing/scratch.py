"""What an import gathers before it writes anything: its rows, in a private file that is gone when the run ends.

Sources are read once, whatever their size: what the plan shows is what will be written, and no more than one row is in
memory. Within it equal rows fall together, and what is in the database already is marked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cpersona_cli.record import fields
from cpersona_cli.store.model import Kind
from cpersona_cli.store.newrow import NewRow, text_digest
from cpersona_cli.store.writing.disk import Held, told

#: Why a row is not new; the words read well after a number.
SAME_TEXT = "equal texts in what is imported"
SAME_ID = "ids that occur twice in what is imported"
STORED_ID = "stored already, by their id"
STORED_TEXT = "stored already, with the same text"
STORED_WIDER = "stored already where every project or channel sees them"

#: What becomes of a row: nothing yet, it is in the database now, or why it is not (any other text).
OPEN, DONE, FAILED = "", "done", "failed: "

_FIELDS = tuple(fields(NewRow))
_ROWS = f"""
CREATE TABLE rows (n INTEGER PRIMARY KEY, {", ".join(_FIELDS)}, digest BLOB NOT NULL, state TEXT NOT NULL DEFAULT '');
CREATE UNIQUE INDEX texts ON rows(digest, kind, agent, project, channel);
CREATE UNIQUE INDEX ids ON rows(msg_id, agent, project) WHERE msg_id <> '';
CREATE TABLE known (key TEXT PRIMARY KEY, last TEXT NOT NULL, ended TEXT NOT NULL) WITHOUT ROWID;
"""
_INSERT = f"INSERT OR IGNORE INTO rows({', '.join(_FIELDS)}, digest) VALUES ({', '.join('?' * (len(_FIELDS) + 1))})"  # noqa: S608
#: Rows between two commits; nothing of this file need survive.
_MANY = 20_000
_PAGE = 500
#: Where it is, for people: SQLite chooses.
_PLACE = Path("a temporary file (in TMPDIR, else /var/tmp)")


class Scratch(Held):
    """The rows of one run. Every method may raise ``StoreError``. Use as a context manager."""

    def __init__(self) -> None:
        # SQLite deletes a database without a name as soon as it is made: what people said does not outlive the run, not
        # even one that is killed.
        self.path = _PLACE
        self._added = 0
        with told(self.path):
            self.connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            self.connection.executescript(
                f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=FILE; {_ROWS} BEGIN;"
            )

    def add(self, row: NewRow) -> str:
        """Take a row in; empty, or the reason why it falls together with one that is here already."""
        stored = (*(getattr(row, name) for name in _FIELDS), text_digest(row.text))
        with told(self.path):
            if self.connection.execute(_INSERT, stored).rowcount:
                self._count()
                return ""
            same = self.connection.execute(
                "SELECT 1 FROM rows WHERE digest = ? AND kind = ? AND agent = ? AND project = ? AND channel = ?",
                (stored[-1], row.kind, row.agent, row.project, row.channel),
            ).fetchone()
            return SAME_TEXT if same else SAME_ID

    def _count(self) -> None:
        self._added += 1
        if self._added % _MANY == 0:
            self.connection.execute("COMMIT")
            self.connection.execute("BEGIN")

    def know(self, episodes: Iterable[tuple[str, str, str]]) -> None:
        """Remember (key, last, ended) of episodes that earlier runs stored; later ones win."""
        with told(self.path):
            self.connection.executemany("INSERT OR REPLACE INTO known VALUES (?, ?, ?)", episodes)

    def cover(self, key: str, last: str, ended: str) -> None:
        """Remember an episode of this run."""
        self.know([(key, last, ended)])

    def covered(self, key: str) -> tuple[str, str] | None:
        """The last message that an earlier episode with this key covers, and its end; None where there is none."""
        with told(self.path):
            found: tuple[str, str] | None = self.connection.execute(
                "SELECT last, ended FROM known WHERE key = ?", (key,)
            ).fetchone()
        return found

    def rows(self, kind: Kind | None = None) -> Iterator[tuple[int, NewRow]]:
        """The rows that are open, with their numbers, in the order they came; states may be set meanwhile."""
        after = 0
        while page := self._page(kind, after):
            yield from page
            after = page[-1][0]

    def _page(self, kind: Kind | None, after: int) -> list[tuple[int, NewRow]]:
        with told(self.path):
            found = self.connection.execute(
                f"SELECT n, {', '.join(_FIELDS)} FROM rows"  # noqa: S608
                " WHERE n > ? AND state = '' AND kind = ifnull(?, kind) ORDER BY n LIMIT ?",
                (after, kind, _PAGE),
            ).fetchall()
        return [(number, _row(values)) for number, *values in found]

    def set(self, states: Iterable[tuple[int, str]]) -> None:
        """Say what became of rows, by their numbers."""
        with told(self.path):
            self.connection.executemany("UPDATE rows SET state = ? WHERE n = ?", ((s, n) for n, s in states))

    def date(self, created: Iterable[tuple[int, str]]) -> None:
        """Give episodes another ``created``."""
        with told(self.path):
            self.connection.executemany("UPDATE rows SET created = ? WHERE n = ?", ((c, n) for n, c in created))

    def forget_states(self) -> None:
        """Every row is open again."""
        with told(self.path):
            self.connection.execute("UPDATE rows SET state = '' WHERE state <> ''")

    def agents(self) -> tuple[str, ...]:
        """Whose rows are open."""
        with told(self.path):
            found = self.connection.execute("SELECT DISTINCT agent FROM rows WHERE state = '' ORDER BY 1")
            return tuple(str(agent) for (agent,) in found)

    def newest(self) -> Sequence[tuple[str, str, str, str]]:
        """The latest ``created`` of the open episodes of each (agent, project, channel)."""
        with told(self.path):
            return self.connection.execute(
                "SELECT agent, project, channel, max(created) FROM rows WHERE state = '' AND kind = ?"
                " GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
                (Kind.EPISODE,),
            ).fetchall()

    def oldest(self) -> str:
        """The earliest time of the open memories, empty where there are none."""
        with told(self.path):
            (at,) = self.connection.execute(
                "SELECT min(at) FROM rows WHERE state = '' AND kind = ?", (Kind.MEMORY,)
            ).fetchone()
        return at or ""

    def places(self) -> Sequence[tuple[str, str, str]]:
        """Where open rows will lie."""
        with told(self.path):
            return self.connection.execute(
                "SELECT DISTINCT agent, project, channel FROM rows WHERE state = '' ORDER BY 1, 2, 3"
            ).fetchall()

    def size(self) -> Mapping[Kind, tuple[int, int]]:
        """Open rows by kind, and the characters of their texts."""
        with told(self.path):
            found = self.connection.execute(
                "SELECT kind, count(*), sum(length(text)) FROM rows WHERE state = '' GROUP BY kind"
            ).fetchall()
        return {Kind(kind): (rows, characters) for kind, rows, characters in found}

    def outcomes(self, kind: Kind, done: str = OPEN) -> Mapping[str, int]:
        """What was read, by what becomes of it: ``done`` where any of its rows has that state, else their state."""
        with told(self.path):
            return dict(
                self.connection.execute(
                    "SELECT state, count(*) FROM (SELECT iif(max(state = ?1), ?1, max(state)) AS state FROM rows"
                    " WHERE kind = ?2 GROUP BY item) GROUP BY state ORDER BY count(*) DESC, state",
                    (done, kind),
                ).fetchall()
            )


def _row(values: Sequence[Any]) -> NewRow:
    given = dict(zip(_FIELDS, values, strict=True))
    return NewRow(**{**given, "kind": Kind(given["kind"])})
