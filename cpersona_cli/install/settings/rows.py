"""Short forms for the rows of the settings table, one for each of the server's own parsers.

Each brings what the parser did in former releases: before 2.5.0 a malformed number ended the start (an empty one
too), and before 2.6.11 a switch was on for ``true`` alone.
"""

from __future__ import annotations

from typing import TypedDict, Unpack

from cpersona_cli.install.release.version import older
from cpersona_cli.install.settings.model import Earlier, Invalid, Kind, Reader, Setting

#: The release from which a malformed number costs one line on stderr instead of the start.
NUMBERS_FALL_BACK_SINCE = "2.5.0"
#: The release from which 1/yes/on and 0/no/off are understood beside true and false.
BOOLEANS_SINCE = "2.6.11"


class More(TypedDict, total=False):
    """The fields of ``Setting`` a row may add."""

    reader: Reader
    derived: str
    fallback: str
    aliases: tuple[str, ...]
    alias_first: bool
    since: str
    removed: str
    invalid: Invalid
    outside: Invalid
    low: float | None
    high: float | None
    above: float | None
    floor: float | None
    ceiling: float | None
    empty_is_unset: bool
    stripped: bool
    effect: str
    secret: bool
    instead: str
    earlier: tuple[Earlier, ...]


def text(name: str, note: str, default: str = "", **more: Unpack[More]) -> Setting:
    """A setting taken as it stands, spaces included."""
    return Setting(name=name, default=default, note=note, **more)


def integer(name: str, note: str, default: int | str, **more: Unpack[More]) -> Setting:
    """A whole number, as ``int()`` reads it."""
    return _number(name, note, str(default), Kind.INT, more)


def number(name: str, note: str, default: float | str, **more: Unpack[More]) -> Setting:
    """A number, as ``float()`` reads it (so ``nan`` and ``inf`` too)."""
    return _number(name, note, str(default), Kind.FLOAT, more)


def switch(name: str, note: str, *, default: bool, **more: Unpack[More]) -> Setting:
    """On or off; what is neither is the default."""
    change = Earlier(until=BOOLEANS_SINCE, kind=Kind.TRUE_ONLY, invalid=Invalid.OFF, empty_is_unset=False)
    if older(more.get("since", "2.4"), BOOLEANS_SINCE):
        more["earlier"] = (change, *more.get("earlier", ()))
    more.setdefault("invalid", Invalid.DEFAULT)
    return Setting(name=name, kind=Kind.BOOL, default="true" if default else "false", note=note, **more)


def choice(name: str, note: str, choices: tuple[str, ...], default: str | None = None, **more: Unpack[More]) -> Setting:
    """One of some words in any case; the first is the default unless another is named."""
    more.setdefault("invalid", Invalid.DEFAULT)
    word = choices[0] if default is None else default
    return Setting(name=name, kind=Kind.CHOICE, choices=choices, default=word, note=note, **more)


def _number(name: str, note: str, default: str, kind: Kind, more: More) -> Setting:
    more.setdefault("invalid", Invalid.DEFAULT)
    if "earlier" not in more and older(more.get("since", "2.4"), NUMBERS_FALL_BACK_SINCE):
        more["earlier"] = (strict_before(NUMBERS_FALL_BACK_SINCE),)
    return Setting(name=name, kind=kind, default=default, note=note, **more)


def strict_before(release: str) -> Earlier:
    """Before ``release`` what could not be read ended the start, an empty text included."""
    return Earlier(until=release, invalid=Invalid.REFUSES, empty_is_unset=False)


def unbounded_before(release: str) -> Earlier:
    """Before ``release`` any number was taken."""
    return Earlier(until=release, bounded=False)
