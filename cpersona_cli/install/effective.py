"""From an environment to the values the server would work with, each with its provenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpersona_cli.install.model import Environment, Place
from cpersona_cli.install.settings import Setting

Parsed = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """One setting as the server would see it.

    ``value`` is what the server works with; ``text`` what was written (None: nothing, the default is in force);
    ``name`` the variable it was read from (an alias or the setting's own name); ``unresolved`` why the written text
    could not be expanded; ``invalid`` a sentence when the server cannot use the text, and then ``value`` is what it
    uses instead; ``shadowed`` are other names that are set too but lose.
    """

    setting: Setting
    value: Parsed
    text: str | None = None
    name: str = ""
    place: Place = field(default_factory=Place)
    origin: str = "default"
    unresolved: str = ""
    invalid: str = ""
    shadowed: tuple[str, ...] = ()

    @property
    def given(self) -> bool:
        """Whether a non-empty text was written somewhere."""
        return bool(self.text)

    def __str__(self) -> str:
        return "" if self.value is None else str(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownName:
    """A variable that looks like a setting of CPersona but is read by nobody; ``meant`` is the nearest real one."""

    name: str
    place: Place
    origin: str
    meant: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """All effective values of one environment; ``unknown`` are the look-alikes nobody reads."""

    values: Mapping[str, Effective]
    unknown: tuple[UnknownName, ...] = ()

    def __getitem__(self, name: str) -> Effective:
        return self.values[name]

    def __contains__(self, name: str) -> bool:
        return name in self.values


def effective(environment: Environment, version: str | None) -> Settings:
    """Read every setting out of ``environment`` as release ``version`` of the server would (None: the newest)."""
    raise NotImplementedError
