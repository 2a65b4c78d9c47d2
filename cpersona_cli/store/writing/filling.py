"""Vectors for rows that were brought in: written as they come, each only where its row still has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from cpersona_cli.record import record
from cpersona_cli.store.job import Refused, Staged, Target
from cpersona_cli.store.limits import text_of
from cpersona_cli.store.model import Kind, Row, StoreError
from cpersona_cli.store.writing.derived import queue_blocks
from cpersona_cli.store.writing.imports import Record
from cpersona_cli.store.writing.mainfile import TABLES, Main, digest_of, finite

_PAGE = 500
#: Batches after which the log is brought into the database.
_BATCHES = 50


class Filling:
    """Where the vectors of an import go. Every method may raise ``StoreError``. One thread at a time."""

    def __init__(self, main: Main, target: Target, wait: float = 30.0) -> None:
        self.main, self.target, self.wait = main, target, wait
        self.refused: list[Refused] = []
        self.batches = 0

    def known(self, digest: bytes) -> bytes | None:  # noqa: ARG002 - asked of every place for vectors
        """No vector is known here before it comes."""
        return None

    def add(self, staged: Sequence[Staged], refused: Sequence[Refused] = ()) -> None:
        """Write the vectors of a batch in one short transaction, where the text is still the same."""
        self.refused += refused
        for entry in staged:
            if len(entry.vector) != 4 * self.target.dim or not finite(entry.vector):
                raise StoreError(
                    f"the endpoint gave a vector for {entry.kind}:{entry.id} that is not of {self.target.dim} finite"
                    " numbers: nothing of this batch was written"
                )
        if not staged:
            return
        label = ", embedding_model = :label" if self.main.shape.labelled else ""
        with self.main.transaction(self.wait) as connection:
            for entry in staged:
                table, text = TABLES[entry.kind]
                found = connection.execute(
                    f"SELECT {text} FROM {table} WHERE id = ? AND embedding IS NULL",  # noqa: S608
                    (entry.id,),
                ).fetchone()
                if found is not None and digest_of(found[0]) == entry.digest:
                    connection.execute(
                        f"UPDATE {table} SET embedding = :vector{label} WHERE id = :id",  # noqa: S608
                        {"vector": entry.vector, "label": self.target.label, "id": entry.id},
                    )
        self.batches += 1
        if self.batches % _BATCHES == 0:
            self.main.checkpoint()

    def discard(self, rows: Sequence[tuple[Kind, int]]) -> None:
        """Take vectors back that may be of another model: their rows have none then."""
        label = ", embedding_model = ''" if self.main.shape.labelled else ""
        with self.main.transaction(self.wait) as connection:
            for kind, identifier in rows:
                connection.execute(
                    f"UPDATE {TABLES[kind][0]} SET embedding = NULL{label} WHERE id = ?",  # noqa: S608
                    (identifier,),
                )

    def finish(self, *, blocks: bool = True) -> bool:
        """Bring everything to the disk, and ask the server for blocks of the new rows; whether it was asked."""
        queued = False
        if blocks:
            with self.main.transaction(self.wait) as connection:
                queued = queue_blocks(connection, self.main.shape)
        self.main.make_durable()
        self.main.checkpoint()
        return queued


@record(kw_only=True)
class Bare:
    """Rows that imports brought in and that have no vector, and the characters of their texts."""

    rows: int
    characters: int


def bare(main: Main, kept: Record) -> Iterator[Row]:
    """Every row that an import on record brought in and that has no vector, in constant memory.

    Raises ``StoreError``.
    """
    for kind, found in _bare(main, kept, "id, {text}"):
        for identifier, stored in found:
            yield Row(kind=kind, id=identifier, text=text_of(stored))


def count_bare(main: Main, kept: Record) -> Bare:
    """How many rows ``bare`` gives. Raises ``StoreError``."""
    rows = characters = 0
    for _, ((count, length),) in _bare(main, kept, "count(*), coalesce(sum(length({text})), 0)"):
        rows, characters = rows + count, characters + length
    return Bare(rows=rows, characters=characters)


def _bare(main: Main, kept: Record, columns: str) -> Iterator[tuple[Kind, list[tuple[Any, ...]]]]:
    """``columns`` of the rows without a vector, a page of imported ids at a time; ``{text}`` stands for the text."""
    for kind, (table, text) in TABLES.items():
        entries = kept.entries(None, kind)
        while page := [entry.id for entry in islice(entries, _PAGE)]:
            marks = ",".join("?" * len(page))
            query = f"SELECT {columns.format(text=text)} FROM {table} WHERE id IN ({marks}) AND embedding IS NULL"  # noqa: S608
            with main.reading() as connection:
                found = connection.execute(query, page).fetchall()
            yield kind, found
