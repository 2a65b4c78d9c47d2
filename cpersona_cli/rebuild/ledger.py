"""What became of every row: handed to the sink, one commit for each batch, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cpersona_cli.embedding.stored import pack
from cpersona_cli.rebuild.batches import Item
from cpersona_cli.rebuild.intake import BLANK, Intake, Reason
from cpersona_cli.rebuild.model import Counts
from cpersona_cli.store.job import Refused, Staged
from cpersona_cli.store.model import Kind

#: The reason of a text that is longer than the endpoint takes.
TOO_LONG = "too_long"


class Sink(Protocol):
    """Where vectors go. Called from the one thread that runs ``fetch``; each may raise ``StoreError``."""

    def known(self, digest: bytes) -> bytes | None:
        """The vector of a text that was staged already, whichever row it was for."""

    def add(self, staged: Sequence[Staged], refused: Sequence[Refused] = ()) -> None:
        """Keep these for good, in one commit. What is known of the same rows is replaced."""

    def discard(self, rows: Sequence[tuple[Kind, int]]) -> None:
        """Forget the vectors of these rows' texts, in one commit: they may be another model's."""


@dataclass(slots=True)
class Ledger:
    """Rows by what became of them. ``errors`` counts distinct texts; ``last`` says why the last one failed.

    ``unproven`` are the texts whose vectors came since the model was last proven to be the same, and their rows.
    """

    sink: Sink
    intake: Intake
    mode: str
    done: int = 0
    failed: int = 0
    nothing: int = 0
    unchanged: int = 0
    errors: int = 0
    cut: int = 0
    last: str = ""
    unproven: dict[bytes, list[tuple[Kind, int]]] = field(default_factory=dict)
    _refused: list[Refused] = field(default_factory=list)

    @property
    def settled(self) -> int:
        return self.done + self.failed + self.nothing + self.unchanged

    def counts(self, planned: int) -> Counts:
        return Counts(
            planned=planned, done=self.done, failed=self.failed, nothing=self.nothing, unchanged=self.unchanged
        )

    def stage(self, items: Sequence[Item], vectors: Sequence[Sequence[float]]) -> None:
        """One commit: the vectors of a batch, and whatever needed no request meanwhile."""
        staged: list[Staged] = []
        for one, vector in zip(items, vectors, strict=True):
            blob = pack(self.mode, vector)
            staged.extend(Staged(kind, identifier, one.digest, blob) for kind, identifier in one.rows)
            self.cut += len(one.rows) if one.cut else 0
            self.unproven[one.digest] = list(one.rows)
            self.intake.settle(one)
        self._write(staged)

    def refuse(self, one: Item, reason: Reason) -> None:
        """A text gets no vector; written with the next commit."""
        self.intake.settle(one, reason)
        self._refused.extend(
            Refused(kind, identifier, one.digest, reason.reason, reason.detail, reason.tokens)
            for kind, identifier in one.rows
        )
        if reason.reason != TOO_LONG:
            self.errors += 1
            self.last = reason.detail

    def flush(self) -> None:
        """One commit for what needed no request, if there is any."""
        if self._refused or self.intake.staged or self.intake.refused:
            self._write([])

    def prove(self, count: int) -> None:
        """The first ``count`` unproven texts have vectors of the same model."""
        for key in list(self.unproven)[:count]:
            del self.unproven[key]

    def take_back(self) -> None:
        """What came since the last proof may be another model's: it is to do again."""
        rows = [row for some in self.unproven.values() for row in some]
        self.unproven = {}
        if rows:
            self.sink.discard(rows)
            self.done -= len(rows)

    def _write(self, staged: list[Staged]) -> None:
        refused = [*self._refused, *self.intake.refused]
        for row in self.intake.staged:
            if row.digest in self.unproven:
                self.unproven[row.digest].append((row.kind, row.id))
        staged = [*staged, *self.intake.staged]
        self.sink.add(staged, refused)
        self._refused, self.intake.staged, self.intake.refused = [], [], []
        self.done += len(staged)
        reasons = [row.reason for row in refused]
        nothing, unchanged = reasons.count(BLANK), reasons.count(TOO_LONG)
        self.nothing += nothing
        self.unchanged += unchanged
        self.failed += len(reasons) - nothing - unchanged
