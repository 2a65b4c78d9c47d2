"""What a memory store is to this tool: rows with a text and a vector, whatever file they stand in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from cpersona_cli.record import field, record

#: Groups of a table that are listed; the smallest of more are folded together.
LISTED_GROUPS = 500
#: The agent of rows that are counted together because there are too many agents to list.
FOLDED = "*"


class Kind(StrEnum):
    """What carries a vector of its own. The words are the server's, as in ``record_blocks.parent_kind``."""

    MEMORY = "mem"
    EPISODE = "ep"


class Form(StrEnum):
    """What stands in a vector's place, as far as its type and length tell."""

    VECTOR = "vector"  # a whole number of 32-bit floats
    NULL = "null"
    TEXT = "text"  # not a blob at all
    EMPTY = "empty"  # a blob of no bytes
    ODD = "odd"  # a length that is no whole number of floats


class Defect(StrEnum):
    """What the contents of a vector's blob show to be wrong; the first that applies."""

    BIG_ENDIAN = "big-endian"
    FLOAT64 = "float64"  # 64-bit floats: twice the width, and numbers only when read so
    QUARTER_WIDTH = "quarter-width"  # a base64 reply decoded as if it were numbers: a fourth of the live width
    NON_FINITE = "non-finite"
    ZERO = "zero"
    NOT_UNIT = "not-unit"  # length further than 1e-3 from one


@record(kw_only=True)
class Row:
    """One memory or episode. ``vector`` is the blob as stored, None where there is none or where it was not asked for.

    What stands there and is no blob (text, a number) is an empty one.
    ``text`` is what is embedded: a memory's content, an episode's summary. ``created`` is ``created_at`` as stored.
    """

    kind: Kind
    id: int
    text: str
    vector: bytes | None = None
    label: str = ""
    agent: str = ""
    created: str = ""


@record(kw_only=True)
class Group:
    """Rows of one table that are alike in width, label and agent.

    ``table`` is the database's name of it. ``width`` is in dimensions, None where there is no vector (``form``
    tells). ``first`` and ``last`` are the least and greatest id (of the parent in derived tables); ``oldest`` and
    ``newest`` their ``created_at`` as stored, empty where the table has none.
    """

    table: str
    form: Form
    width: int | None
    label: str
    agent: str
    rows: int
    first: int = 0
    last: int = 0
    oldest: str = ""
    newest: str = ""


@record(kw_only=True)
class Flaw:
    """Rows of one table with one defect: how many of those looked at, and the first ids among them."""

    table: str
    defect: Defect
    rows: int
    ids: tuple[int, ...] = ()


@record(kw_only=True)
class Contents:
    """What the blobs hold. ``looked`` of ``total`` vectors were read; all of them only with ``--deep``.

    ``norms`` counts the finite vectors looked at by length, rounded to two decimals.
    """

    looked: int = 0
    total: int = 0
    flaws: tuple[Flaw, ...] = ()
    norms: Mapping[float, int] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return self.looked == self.total


@record(kw_only=True)
class IndexFile:
    """A search index the server keeps beside its database. ``unsafe`` says why it may answer with old vectors."""

    name: str
    size: int
    width: int | None = None
    rows: int | None = None
    format: int | None = None
    unsafe: str = ""


@record(kw_only=True)
class Census:
    """Everything countable about the vectors of a store, from one pass over each table and constant memory.

    ``groups`` are of every table that holds vectors; where there were more than ``LISTED_GROUPS`` the smallest are
    folded together under agent ``*``. ``blank`` are rows whose text the server never embeds, by kind.
    ``calibration_width`` is what the calibration file was measured for. ``unmeasured`` names what time did not allow.
    """

    path: Path
    schema: int | None
    groups: tuple[Group, ...] = ()
    contents: Contents = field(default_factory=Contents)
    blank: Mapping[Kind, int] = field(default_factory=dict)
    indexes: tuple[IndexFile, ...] = ()
    calibration_width: int | None = None
    calibrated_at: str = ""
    unmeasured: tuple[str, ...] = ()
    seconds: float = 0.0

    def of(self, *tables: str) -> Sequence[Group]:
        """The groups of some tables."""
        return [group for group in self.groups if group.table in tables]

    def widths(self, *tables: str) -> Mapping[int, int]:
        """Rows by dimensions, the most frequent first."""
        counts: dict[int, int] = {}
        for group in self.of(*(tables or ("memories", "episodes"))):
            if group.form is Form.VECTOR and group.width is not None:
                counts[group.width] = counts.get(group.width, 0) + group.rows
        return dict(sorted(counts.items(), key=lambda item: -item[1]))


class StoreError(Exception):
    """The store cannot be worked on; the message is one sentence for the user, with what to do."""


class Store(Protocol):
    """A memory store that is only read. Every method opens it, takes a consistent look, and closes it again.

    All raise ``StoreError``. None creates, migrates or changes anything, also beside a live server.
    """

    @property
    def path(self) -> Path: ...

    def census(self, *, deep: bool = False, live_width: int | None = None, deadline: float) -> Census:
        """Count everything until ``deadline`` of ``time.monotonic``; ``live_width`` lets a quarter of it be told."""

    def rows(self, kind: Kind, *, after: int = 0, vectors: bool = False) -> Iterator[Row]:
        """Every row with an id above ``after``, in order of id, in constant memory."""

    def sample(self, count: int, *, deadline: float) -> Sequence[Row]:
        """At most ``count`` rows with a text and a vector, spread over table, label, width, agent and time."""

    def near(self, kind: Kind, identifier: int, count: int, *, deadline: float) -> Sequence[Row]:
        """The ``count`` rows of a kind with a text and a vector whose ids are nearest, in order of id."""

    def count(self, kind: Kind, *, after: int = 0, upto: int | None = None, deadline: float) -> Mapping[str, int]:
        """Rows by agent that have a vector and an id above ``after`` and not above ``upto``."""
