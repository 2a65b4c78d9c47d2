"""From rows to texts that wait to be sent: blank and known ones settled, equal ones sent once, a window at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from cpersona_cli.embedding.kinds import Kind as Ending
from cpersona_cli.rebuild.batches import Item, item
from cpersona_cli.record import record
from cpersona_cli.store.job import Refused, Staged, digest
from cpersona_cli.store.model import Row

#: Rows of a window, and characters of it: it is what is held in memory, twice for a moment.
WINDOW, CHARACTERS = 4096, 4_000_000
#: Rows of the first one, so that the endpoint need not wait for a full one.
FIRST_WINDOW = 1024
#: Rows read between two looks at the network.
SLICE = 256
#: Texts whose refusal is remembered, so that an equal one is not sent again.
_REMEMBERED = 10_000

BLANK = "blank"


@record
class Reason:
    """Why a text has no vector."""

    reason: str
    detail: str = ""
    tokens: int | None = None


@dataclass(slots=True)
class Intake:
    """Reads ``rows`` slice by slice. ``known`` gives the vector of a text that has one already.

    What needs no request is left in ``staged`` and ``refused`` for the writer to take; ``pending`` are the texts that
    were read and not settled, and rows with the same text join them there.
    """

    rows: Iterable[Row]
    known: Callable[[bytes], bytes | None]
    read: int = 0
    same: int = 0
    exhausted: bool = False
    window: list[Item] = field(default_factory=list)
    pending: dict[bytes, Item] = field(default_factory=dict)
    staged: list[Staged] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    _refusals: dict[bytes, Reason] = field(default_factory=dict)
    _iterator: Iterator[Row] = field(init=False)
    _size: int = field(init=False)
    _rows: int = 0
    _characters: int = 0

    def __post_init__(self) -> None:
        self._iterator = iter(self.rows)
        self._size = FIRST_WINDOW

    @property
    def full(self) -> bool:
        return self.exhausted or self._rows >= self._size or self._characters >= CHARACTERS

    @property
    def first(self) -> bool:
        """No window was taken yet."""
        return self._size == FIRST_WINDOW

    def slice(self) -> None:
        """Read some more rows. Raises what the store raises."""
        for _ in range(SLICE):
            row = next(self._iterator, None)
            if row is None:
                self.exhausted = True
                return
            self.read += 1
            self._take(row)
            if self.full:
                return

    def take(self) -> list[Item]:
        """The texts of the window, which is empty then."""
        items, self.window, self._rows, self._characters = self.window, [], 0, 0
        self._size = WINDOW
        return items

    def settle(self, one: Item, refusal: Reason | None = None) -> None:
        """A text has its vector, or will not get one."""
        del self.pending[one.digest]
        if refusal is not None and len(self._refusals) < _REMEMBERED:
            self._refusals[one.digest] = refusal

    def _take(self, row: Row) -> None:
        key = digest(row.text)
        waiting = self.pending.get(key)
        if waiting is not None:
            waiting.rows.append((row.kind, row.id))
            self._rows += 1
            self.same += 1
            return
        # as the server sees it: what str.strip leaves nothing of has nothing to embed
        refusal = self._refusals.get(key) if row.text.strip() else Reason(BLANK)
        if refusal is not None:
            self.refused.append(Refused(row.kind, row.id, key, refusal.reason, refusal.detail, refusal.tokens))
            return
        vector = self.known(key)
        if vector is not None:
            self.staged.append(Staged(row.kind, row.id, key, vector))
            self.same += 1
            return
        try:
            one = item(row, key)
        except UnicodeEncodeError:
            detail = "the text holds half a character"
            self.refused.append(Refused(row.kind, row.id, key, Ending.INPUT_INVALID.value, detail))
            return
        self.pending[key] = one
        self.window.append(one)
        self._rows += 1
        self._characters += len(row.text)
