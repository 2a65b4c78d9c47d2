"""What one database of the server has, told from its tables and columns rather than from its number.

Stores differ in the order of their columns, as upgrades append them, and in what late releases of one schema number
added. The number only bounds what is known at all: before 13, triggers of the text index fired on every update; what
stands after the newest one, nobody here has seen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Literal

from cpersona_cli.record import record, replace
from cpersona_cli.store import schema as known
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.sql import quoted

#: How a vector is stored: 32-bit floats, one bit for each dimension (eight to a byte), or one byte.
Coding = Literal["floats", "bits", "bytes"]


@record(kw_only=True)
class Table:
    """A table that holds vectors, with the names of its columns, empty where it has none such.

    ``key`` is the row's own id, in derived tables that of its parent; ``kind`` is what its rows are, in derived
    tables None.
    """

    name: str
    key: str
    vector: str
    coding: Coding = "floats"
    kind: Kind | None = None
    text: str = ""
    label: str = ""
    agent: str = ""
    created: str = ""
    order: tuple[str, ...] = ("rowid",)

    @property
    def place(self) -> str:
        """The column by which a row is found again, as far as it has one of its own."""
        return "rowid" if self.order == ("rowid",) else self.key

    def width(self, size: int) -> int | None:
        """Dimensions of a vector of ``size`` bytes; None for no whole number of them. Of bits, the most there are."""
        if self.coding == "floats":
            return None if size % 4 else size // 4
        return 8 * size if self.coding == "bits" else size


#: Every table with vectors, each column as the releases 2.4.41 to 2.6.14 name it.
TABLES = (
    Table(
        name="memories",
        key="id",
        vector="embedding",
        kind=Kind.MEMORY,
        text="content",
        label="embedding_model",
        agent="agent_id",
        created="created_at",
    ),
    Table(
        name="episodes",
        key="id",
        vector="embedding",
        kind=Kind.EPISODE,
        text="summary",
        label="embedding_model",
        agent="agent_id",
        created="created_at",
    ),
    Table(name="record_nodes", key="parent_id", vector="embedding", label="embedding_model"),
    Table(
        name="record_blocks",
        key="parent_id",
        vector="embedding_bits",
        coding="bits",
        label="embedding_model",
        agent="agent_id",
    ),
    Table(
        name="record_block_vectors",
        key="parent_id",
        vector="embedding_i8",
        coding="bytes",
        order=("parent_kind", "parent_id", "block_index"),
    ),
)

#: What ``str.strip`` removes.
_BLANKS = (
    "char(9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 133, 160, 5760, 8192, 8193, 8194, 8195, 8196, 8197, 8198, 8199,"
    " 8200, 8201, 8202, 8232, 8233, 8239, 8287, 12288)"
)

_OPTIONAL = ("label", "agent", "created")


def blank(text: str) -> str:
    """The SQL condition of a column of texts that hold nothing to embed.

    Most texts begin with a printable character, which is quicker to see than what is left of them once trimmed.
    """
    return f"(typeof({text}) <> 'text' OR (({text} < '!' OR {text} >= char(127)) AND trim({text}, {_BLANKS}) = ''))"


@record(kw_only=True)
class Features:
    """``tables`` are those of ``TABLES`` that exist, each with the columns it really has.

    ``columns`` are of every plain table; ``cookie`` is SQLite's number of the schema as it is now, which index files
    carry too.
    """

    schema: int
    tables: tuple[Table, ...]
    columns: Mapping[str, frozenset[str]]
    page_size: int
    cookie: int

    def table(self, name: str) -> Table | None:
        return next((table for table in self.tables if table.name == name), None)

    def of(self, kind: Kind) -> Table | None:
        """The table of the rows of a kind."""
        return next((table for table in self.tables if table.kind is kind), None)

    @property
    def labelled(self) -> bool:
        """Whether memories name the model of their vector."""
        memories = self.of(Kind.MEMORY)
        return memories is not None and bool(memories.label)


def detect(connection: sqlite3.Connection) -> Features:
    """The features of the database behind ``connection``.

    Raises ``StoreError`` for one this tool does not know, its message without the path, and ``sqlite3.Error``.
    """
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        " AND coalesce(sql, '') NOT LIKE 'create virtual%' AND name NOT GLOB 'sqlite_*'"
    ).fetchall()
    columns = {str(name): _columns(connection, str(name)) for (name,) in tables}
    schema = _schema(connection, columns)
    return Features(
        schema=schema,
        tables=tuple(table for wanted in TABLES if (table := existing(wanted, columns)) is not None),
        columns=columns,
        page_size=_pragma(connection, "page_size"),
        cookie=_pragma(connection, "schema_version"),
    )


def _schema(connection: sqlite3.Connection, columns: Mapping[str, frozenset[str]]) -> int:
    if not columns:
        raise StoreError("is a database without any table; start the server once, which makes them")
    memories = columns.get("memories", frozenset())
    if not memories >= known.OWN_COLUMNS:
        lost = not memories and "agent_id" in columns.get("episodes", ())
        raise StoreError(
            "has lost its table memories; restore a backup"
            if lost
            else "is the database of another program; name the one of CPersona"
        )
    if "embedding" not in memories:
        raise StoreError("has memories without the column embedding; start the server once, which adds what is missing")
    number = None
    if "version" in columns.get("schema_version", ()):
        (number,) = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    if not isinstance(number, int):
        raise StoreError("states no schema number; start the server once, which writes it")
    if number < known.OLDEST:
        raise StoreError(
            f"has schema {number}, and this tool reads {known.OLDEST} to {known.NEWEST};"
            " start the server once, which migrates it"
        )
    if number > known.NEWEST:
        raise StoreError(
            f"has schema {number}, newer than {known.NEWEST}, the newest this tool knows; update cpersona-cli"
        )
    return number


def existing(table: Table, columns: Mapping[str, frozenset[str]]) -> Table | None:
    """``table`` with the columns it has; None where it, or what makes it one of vectors, is not there."""
    own = columns.get(table.name, frozenset())
    if not own >= {table.key, table.vector} or (table.text and table.text not in own):
        return None
    values = {name: getattr(table, name) for name in _OPTIONAL}
    missing = {name: "" for name, column in values.items() if column and column not in own}
    return replace(table, **missing) if missing else table


def _columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    return frozenset(str(row[1]) for row in connection.execute(f"PRAGMA table_info({quoted(table)})"))


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)
