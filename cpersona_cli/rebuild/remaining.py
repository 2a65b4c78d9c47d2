"""The rows of a job, held against its staging file: which are still to be done, and what became of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from cpersona_cli.rebuild.model import Counts
from cpersona_cli.rebuild.select import BLANK as NOTHING_TO_EMBED
from cpersona_cli.rebuild.select import Selector
from cpersona_cli.store.job import Refused, Staged, digest
from cpersona_cli.store.model import Kind, Row, Store

#: Rows that are held against the staging file at a time.
PAGE = 500

#: Rows that are rather passed over than the database opened anew, and an id past every other.
_NEAR, _NEVER = 200, 2**63 - 1

#: Refusals that say nothing against the row.
BLANK, TOO_LONG = "blank", "too_long"


class Known(Protocol):
    """What a staging file knows of rows."""

    def staged_digests(self, kind: Kind, ids: Sequence[int]) -> dict[int, bytes]:
        """The digests of the texts for which rows have a vector."""

    def refused_digests(self, kind: Kind, ids: Sequence[int]) -> dict[int, bytes]:
        """The digests of the texts for which rows have a reason why not."""

    def vectors(self, kind: Kind, ids: Sequence[int]) -> dict[int, bytes]:
        """The new vectors of some rows."""

    def refused(self) -> Iterator[Refused]:
        """Every row with a reason in the place of a vector."""


@dataclass(slots=True)
class Tally:
    """Rows seen in one walk, by what is known of them. ``pending`` are chosen and have no outcome yet."""

    staged: int = 0
    pending: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    changed: int = 0  # of those pending, rows whose text is another than when they were staged

    def blank(self, reason: str) -> None:
        """A row was left out; one that is blank is part of the plan all the same."""
        if reason == NOTHING_TO_EMBED:
            self.refused[BLANK] = self.refused.get(BLANK, 0) + 1

    @property
    def seen(self) -> int:
        return self.staged + self.pending + sum(self.refused.values())

    def counts(self) -> Counts:
        """The outcome as far as there is one."""
        nothing, too_long = self.refused.get(BLANK, 0), self.refused.get(TOO_LONG, 0)
        return Counts(
            planned=self.seen,
            done=self.staged,
            failed=sum(self.refused.values()) - nothing - too_long,
            nothing=nothing,
            unchanged=too_long,
        )


def pages(store: Store, kind: Kind, *, vectors: bool) -> Iterator[list[Row]]:
    """Every row of a kind in order of id, ``PAGE`` at a time; the store reads them in short looks of its own."""
    rows = iter(store.rows(kind, vectors=vectors))
    while page := list(islice(rows, PAGE)):
        yield page


def walk(store: Store, known: Known, select: Selector, found: Tally, *, again: bool = False) -> Iterator[Row]:
    """The rows still to be done, read as they are asked for; ``found`` counts all chosen ones.

    ``again``: rows that were refused count as to be done, but for those that are blank or too long.
    """
    reasons = {(entry.kind, entry.id): entry.reason for entry in known.refused()}
    for kind in Kind:
        for page in pages(store, kind, vectors=True):
            ids = [row.id for row in page]
            staged, refused = known.staged_digests(kind, ids), known.refused_digests(kind, ids)
            for row in page:
                text, reason = digest(row.text), reasons.get((kind, row.id), "")
                if staged.get(row.id) == text:
                    found.staged += 1
                elif refused.get(row.id) == text and (not again or reason in {BLANK, TOO_LONG}):
                    found.refused[reason] = found.refused.get(reason, 0) + 1
                elif left_out := select(row):
                    found.blank(left_out)
                else:
                    found.pending += 1
                    found.changed += row.id in staged or row.id in refused
                    yield row


def tally(store: Store, known: Known, select: Selector) -> Tally:
    """Count without doing anything."""
    found = Tally()
    for _ in walk(store, known, select, found):
        pass
    return found


def holding(store: Store, known: Known) -> int:
    """How many rows of the database hold, bit for bit, the vector that was staged for the text they have now."""
    found = 0
    for kind in Kind:
        for page in pages(store, kind, vectors=True):
            ids = [row.id for row in page]
            texts, vectors = known.staged_digests(kind, ids), known.vectors(kind, ids)
            found += sum(
                row.vector is not None and row.vector == vectors.get(row.id) and digest(row.text) == texts.get(row.id)
                for row in page
            )
    return found


def in_sample(store: Store, sample: Sequence[Staged]) -> list[tuple[Staged, Row]]:
    """Staged rows as they stand in the database now; rows that are gone, or whose text changed, are left out."""
    found = []
    rows: Iterator[Row] = iter(())
    last = Row(kind=Kind.MEMORY, id=0, text="")
    for entry in sorted(sample, key=lambda one: (one.kind, one.id)):
        if entry.kind is not last.kind or not last.id or entry.id - last.id > _NEAR:
            rows = iter(store.rows(entry.kind, after=entry.id - 1, vectors=True))
            last = Row(kind=entry.kind, id=0, text="")
        while last.id < entry.id:
            last = next(rows, Row(kind=entry.kind, id=_NEVER, text=""))
        if last.id == entry.id and digest(last.text) == entry.digest:
            found.append((entry, last))
    return found
