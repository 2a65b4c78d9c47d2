"""The stored side of a fit: counted, and rows of it chosen, while something else goes on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Self

from cpersona_cli.fit.model import TABLES
from cpersona_cli.store.model import Census, Row, Store, StoreError

#: Stored texts that are embedded again, unless asked otherwise.
SAMPLE = 24
#: The newest rows of each table are always looked at: what has changed lately shows there first.
_NEWEST = 2


@dataclass(slots=True, kw_only=True)
class Stored:
    """What is stored, read in a thread of its own while the endpoint is asked, or all that asks one is imported.

    ``sample`` rows are chosen beside the newest; 0 is as many as usual, as their widths and labels are looked at too.
    ``census``, ``rows`` and ``unmeasured`` (what could not be read) are there after ``end``.
    """

    store: Store
    sample: int
    deep: bool
    deadline: float
    census: Census = field(init=False)
    rows: list[Row] = field(default_factory=list)
    unmeasured: list[str] = field(default_factory=list)
    _error: BaseException | None = None
    _thread: threading.Thread = field(init=False)

    def begin(self) -> Self:
        """Start reading."""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def _read(self) -> None:
        try:
            self.census = self.store.census(deep=self.deep, deadline=self.deadline)
            self._choose()
        except BaseException as error:  # noqa: BLE001 - it belongs to the one who waits
            self._error = error

    def _choose(self) -> None:
        """The rows to look at: a sample of all, and the newest of each table."""
        try:
            chosen = list(self.store.sample(self.sample or SAMPLE, deadline=self.deadline))
        except StoreError as error:
            self.unmeasured.append(f"stored texts could not be read: {error}")
            return
        try:
            for kind, table in TABLES.items():
                last = max((group.last for group in self.census.of(table)), default=0)
                chosen += self.store.near(kind, last, _NEWEST, deadline=self.deadline) if last else ()
        except StoreError as error:
            self.unmeasured.append(f"the newest rows could not be read: {error}")
        rows = {(row.kind, row.id): row for row in chosen}
        self.rows = [rows[key] for key in sorted(rows)]

    def end(self, dim: int | None) -> None:
        """Wait for the thread. Raises ``StoreError``, as counting does.

        A quarter of the live width ``dim`` can only be told now that the width is known.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        widths = self.census.widths(*TABLES.values())
        if dim is not None and any(width * 4 == dim for width in widths) and next(iter(widths)) != dim:
            self.census = self.store.census(deep=self.deep, live_width=dim, deadline=self.deadline)
