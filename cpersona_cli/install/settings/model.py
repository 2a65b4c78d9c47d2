"""What one variable means: its reader, type, default, other names, and what the reader does with a bad value.

The rows stand in ``table*.py``; how a text becomes a value is in ``parse.py``; how a whole environment
becomes effective is in ``effective.py``.
"""

from __future__ import annotations

from enum import StrEnum

from cpersona_cli.install.release.version import older
from cpersona_cli.record import record, replace


class Kind(StrEnum):
    """How the reader turns text into a value."""

    TEXT = "text"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    CHOICE = "choice"  # surrounding spaces and case do not count
    LOWER = "choice, any case"  # case does not count, spaces do
    EXACT = "exact choice"  # compared as it stands: case and spaces count
    TRISTATE = "tri-state"  # auto, true or false
    OPTIONAL_INT = "optional int"
    TRUE_ONLY = "only true"  # "true" in any case is on, everything else is off
    OFF_ONLY = "only off"  # "off" in any case is off, everything else is on


class Invalid(StrEnum):
    """What the reader does with a value it cannot use."""

    UNCHECKED = "taken as it is"
    DEFAULT = "default is used, one line on stderr"
    OFF = "counts as off"
    CLAMPED = "moved to the nearest bound without a word"
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


@record(kw_only=True)
class Earlier:
    """What was different about a setting before release ``until``; what is None was as it is now.

    ``bounded`` is False when the bounds (``low`` ... ``ceiling``) were not checked yet.
    """

    until: str
    kind: Kind | None = None
    invalid: Invalid | None = None
    default: str | None = None
    fallback: str | None = None
    choices: tuple[str, ...] | None = None
    aliases: tuple[str, ...] | None = None
    empty_is_unset: bool | None = None
    effect: str | None = None
    bounded: bool = True


@record(kw_only=True)
class Setting:
    """One row of the table.

    ``default`` is the text whose parse gives the default (empty: no value) and ``derived`` says in words how the
    default follows from other settings where it does. ``aliases`` are read when the name itself is unset or empty, in
    this order; with ``alias_first`` they are read before it and even an empty one ends the search. ``since`` and
    ``removed`` are releases of CPersona (``2.4`` stands for all of that line, an empty one for "not counted in them").
    ``fallback`` is used instead of the default when the text cannot be read.

    Bounds of numbers: outside of ``low``/``high`` (inclusive) and ``above`` (exclusive) ``outside`` happens;
    ``floor``/``ceiling`` move the number. ``empty_is_unset`` is False where an empty text is taken literally;
    ``stripped`` where surrounding spaces are removed first. ``effect`` tells what an unusable value leads to where
    ``invalid`` alone does not. ``secret`` values are never shown. ``instead`` is the real name of one nobody reads.
    ``earlier`` are the differences of former releases, newest first.
    """

    name: str
    reader: Reader = Reader.SERVER
    kind: Kind = Kind.TEXT
    default: str = ""
    derived: str = ""
    fallback: str = ""
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    alias_first: bool = False
    since: str = "2.4"
    removed: str = ""
    invalid: Invalid = Invalid.UNCHECKED
    outside: Invalid = Invalid.DEFAULT
    low: float | None = None
    high: float | None = None
    above: float | None = None
    floor: float | None = None
    ceiling: float | None = None
    empty_is_unset: bool = True
    stripped: bool = False
    effect: str = ""
    secret: bool = False
    instead: str = ""
    earlier: tuple[Earlier, ...] = ()
    note: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name it is read from, in the order in which they are tried."""
        return (*self.aliases, self.name) if self.alias_first else (self.name, *self.aliases)

    def known_to(self, version: str) -> bool:
        """Whether release ``version`` of CPersona reads it at all."""
        too_new = bool(self.since) and older(version, self.since)
        return not too_new and not (self.removed and not older(version, self.removed))

    def at(self, version: str) -> Setting:
        """The row as release ``version`` reads it."""
        row = self
        for change in self.earlier:
            if not older(version, change.until):
                break
            row = replace(
                row,
                kind=row.kind if change.kind is None else change.kind,
                invalid=row.invalid if change.invalid is None else change.invalid,
                default=row.default if change.default is None else change.default,
                fallback=row.fallback if change.fallback is None else change.fallback,
                choices=row.choices if change.choices is None else change.choices,
                aliases=row.aliases if change.aliases is None else change.aliases,
                empty_is_unset=row.empty_is_unset if change.empty_is_unset is None else change.empty_is_unset,
                effect=row.effect if change.effect is None else change.effect,
            )
            if not change.bounded:
                row = replace(row, low=None, high=None, above=None, floor=None, ceiling=None)
        return row
