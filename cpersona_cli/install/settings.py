"""What one variable means: its reader, type, default, other names, and what the server does with a bad value.

The rows stand in ``install/table.py``; how a value becomes effective is in ``install/effective.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How the reader turns text into a value."""

    TEXT = "text"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    CHOICE = "choice"
    TRISTATE = "tri-state"
    OPTIONAL_INT = "optional int"
    EXACT = "exact choice"  # compared as it stands: case and spaces count
    TRUE_ONLY = "only true"  # "true" in any case is on, everything else is off


class Invalid(StrEnum):
    """What the reader does with a value it cannot use."""

    UNCHECKED = "taken as it is"
    DEFAULT = "default is used, one line on stderr"
    OFF = "counts as off"
    REFUSES = "the server refuses to start"
    IGNORED = "ignored, as if unset"


class Reader(StrEnum):
    """Who reads the variable."""

    SERVER = "server"
    PROXY = "stdio proxy"
    PLUGIN = "agent plugin"
    EMBEDDING_SERVER = "embedding server"
    NOBODY = "nobody"
    SYSTEM = "http client"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the table.

    ``default`` is the text whose parse gives the default (empty: no value); ``aliases`` are read when the name itself
    is unset or empty, in this order. ``since`` and ``removed`` are releases (``2.4`` stands for all of that line);
    ``low``/``high`` are inclusive bounds for numbers outside of which the value counts as invalid. ``boolean_since``
    is the release from which ``1/yes/on`` mean on. ``secret`` values are never shown. ``default_before`` gives earlier
    defaults as (release the default ended at, text).
    """

    name: str
    reader: Reader = Reader.SERVER
    kind: Kind = Kind.TEXT
    default: str = ""
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    since: str = "2.4"
    removed: str = ""
    invalid: Invalid = Invalid.UNCHECKED
    low: float | None = None
    high: float | None = None
    secret: bool = False
    default_before: tuple[tuple[str, str], ...] = ()
    note: str = ""
