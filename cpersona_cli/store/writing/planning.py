"""Which rows a cut-over changes, and to what: one pass over database, staging file and undo file side by side.

The pass runs before the write lock is taken. Should another process change the database in between, it runs once more
under the lock, where it writes only what differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cpersona_cli.record import record, replace
from cpersona_cli.store.job import Target
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing.mainfile import Main, Stored
from cpersona_cli.store.writing.undofile import Entry, UndoFile

#: Rows between two calls of ``tell``.
_STEP = 1000

#: ``tell(phase, done, total)``
Tell = Callable[[str, int, int], None]

T = TypeVar("T")


@record(kw_only=True)
class Rule:
    """What is to become of rows that have no new vector.

    ``whole``: the job is about every row, so an old vector of another model goes. ``same_model``: old vectors are of
    the target's model. ``later``: rows are brought in after a cut-over, and those not looked at stay as they are.
    """

    target: Target
    whole: bool
    same_model: bool = False
    later: bool = False


@dataclass(slots=True)
class Tally:
    """Rows that are not in the plan, by reason, and the greatest ids there were."""

    already: int = 0  # have their new vector
    kept: int = 0  # have a good old one, and no new one
    changed: int = 0  # the text is not the one that was embedded
    gone: int = 0  # staged, and no more in the database
    last: dict[str, int] = field(default_factory=dict)


def plan(main: Main, undo: UndoFile, rule: Rule, tell: Tell | None = None) -> Tally:
    """Bring the entries of ``undo`` up to what the database and the staging file (attached to ``undo``) hold now.

    To be called within ``undo.change()``. Constant memory; raises ``sqlite3.Error``.
    """
    tally = Tally()
    going = _Pass(undo, rule, tally)
    total = main.count() if tell else 0
    seen = 0
    for kind in Kind:
        staged = Side(
            (int(row[0]), (row[1], row[2]))
            for row in undo.connection.execute(
                "SELECT id, digest, ref FROM staging.rows WHERE kind = ? ORDER BY id", (kind,)
            )
        )
        entries = Side((entry.id, entry) for entry in undo.entries(kind))
        for row in main.rows(kind):
            new = staged.at(row.id)
            entry = entries.at(row.id)
            wanted = _wanted(going, row, new, entry)
            if wanted is not None:
                if wanted is not entry:
                    undo.put(kind, wanted)
            elif entry is not None and not rule.later:
                undo.drop(kind, entry.id)
            elif entry is not None and entry.round == undo.round:
                undo.put(kind, replace(entry, round=entry.round - 1))  # changed since the pass before
            tally.last[kind] = row.id
            seen += 1
            if tell and seen % _STEP == 0:
                tell("plan", seen, total)
        staged.end()
        entries.end()
        tally.gone += len(staged.passed)
        if not rule.later:
            for identifier in entries.passed:
                undo.drop(kind, identifier)
    if tell:
        tell("plan", seen, total)
    return tally


@record
class _Pass:
    undo: UndoFile
    rule: Rule
    tally: Tally


def _wanted(going: _Pass, row: Stored, new: tuple[bytes, int | None] | None, entry: Entry | None) -> Entry | None:
    """The entry a row has to have, which may be the one it has; None where the row is to be left as it is."""
    undo, rule, tally = going.undo, going.rule, going.tally
    matches = new is not None and new[0] == row.digest
    if new is not None and new[1] is not None and not matches:
        tally.changed += 1
    ref = new[1] if new is not None and matches else None
    if entry is not None and not rule.later and entry.ref == ref and _as_planned(row, entry):
        return entry
    written = None
    if ref is not None:
        (vector,) = undo.connection.execute("SELECT vector FROM staging.vectors WHERE ref = ?", (ref,)).fetchone()
        written = hashlib.sha256(vector).digest()
        if row.vector == vector and row.label in {None, rule.target.label.encode()}:
            tally.already += 1
            return None
    elif row.form == "null":
        return None
    elif good(row, rule):
        tally.kept += 1
        return None
    elif not rule.whole or (rule.later and not matches):
        return None
    if rule.later and entry is not None and entry.digest == row.digest:
        # The older vector of the same text is the one to go back to.
        return replace(entry, written=written, ref=ref, round=undo.round)
    return Entry(row.id, row.digest, row.form, row.vector, row.label, written, ref, undo.round)


def _as_planned(row: Stored, entry: Entry) -> bool:
    return (row.digest, row.form, row.vector, row.label) == (entry.digest, entry.form, entry.vector, entry.label)


def good(row: Stored, rule: Rule) -> bool:
    """Whether a vector is one that the target's model could have made, as far as can be vouched for."""
    if not isinstance(row.vector, bytes) or row.form != "blob" or len(row.vector) != 4 * rule.target.dim:
        return False
    return rule.same_model or (rule.target.telling and row.label == rule.target.label.encode())


class Side(Generic[T]):
    """Entries in order of id, asked for one ascending id after the other; ``passed`` are ids nobody asked for."""

    def __init__(self, entries: Iterator[tuple[int, T]]) -> None:
        self._entries = entries
        self._next = next(entries, None)
        self.passed: list[int] = []

    def at(self, identifier: int) -> T | None:
        while self._next is not None and self._next[0] < identifier:
            self._pass(self._next[0])
        if self._next is None or self._next[0] != identifier:
            return None
        found = self._next[1]
        self._next = next(self._entries, None)
        return found

    def end(self) -> None:
        while self._next is not None:
            self._pass(self._next[0])

    def _pass(self, identifier: int) -> None:
        self.passed.append(identifier)
        self._next = next(self._entries, None)
