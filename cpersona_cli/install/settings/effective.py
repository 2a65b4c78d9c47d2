"""From an environment to the values the server would work with, each with its provenance."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Callable, Mapping

from cpersona_cli.install.model import Environment, Place, System, Value
from cpersona_cli.install.release.version import NEWEST_KNOWN, older
from cpersona_cli.install.settings.model import Invalid, Reader, Setting
from cpersona_cli.install.settings.parse import Parsed, default_of, parse
from cpersona_cli.install.settings.table import SETTINGS
from cpersona_cli.install.settings.unknown import UnknownName, unknown_names
from cpersona_cli.record import field, record, replace

__all__ = ["Effective", "Parsed", "Settings", "UnknownName", "effective"]


@record(kw_only=True)
class Effective:
    """One setting as the server would see it.

    ``value`` is what the server works with; ``text`` what was written (None: nothing, the default is in force);
    ``name`` the variable it was read from (an alias or the setting's own name); ``unresolved`` why the written text
    could not be expanded; ``invalid`` a sentence when the server cannot use the text, and then ``value`` is what it
    uses instead and ``outcome`` what it does about it; ``shadowed`` are other names that are set too but lose;
    ``ignored`` a sentence when the release in question does not read the variable at all (then ``value`` is the
    default). ``setting`` is the row as that release reads it.
    """

    setting: Setting
    value: Parsed
    text: str | None = None
    name: str = ""
    place: Place = field(default_factory=Place)
    origin: str = "default"
    unresolved: str = ""
    invalid: str = ""
    outcome: Invalid | None = None
    shadowed: tuple[str, ...] = ()
    ignored: str = ""

    @property
    def given(self) -> bool:
        """Whether a non-empty text was written somewhere."""
        return bool(self.text)

    def __str__(self) -> str:
        return "" if self.value is None else str(self.value)


@record
class Settings:
    """All effective values of one environment; ``unknown`` are the look-alikes nobody reads."""

    values: Mapping[str, Effective]
    unknown: tuple[UnknownName, ...] = ()

    def __getitem__(self, name: str) -> Effective:
        return self.values[name]

    def __contains__(self, name: str) -> bool:
        return name in self.values


def effective(environment: Environment, version: str | None, *, system: System = "linux") -> Settings:
    """Read every setting out of ``environment`` as release ``version`` of the server would (None: the newest).

    A name newer than the release, or one it no longer reads, is ``ignored``. Names nobody ever read have no value.
    On Windows the case of variable names does not count.
    """
    release = version or NEWEST_KNOWN
    given = environment.values
    if system == "windows":
        given = {name.upper(): value for name, value in given.items()}
    values: dict[str, Effective] = {}
    for setting in SETTINGS:
        if setting.reader is not Reader.NOBODY or setting.removed:
            values[setting.name] = _effective(setting, given, release, values, system)
    return Settings(values, unknown_names(given, system=system))


def _effective(
    setting: Setting, given: Mapping[str, Value], release: str, values: Mapping[str, Effective], system: System
) -> Effective:
    row = setting.at(release)
    default = _default(row, release, values, system)
    name, shadowed = _winner(row, given, system)
    if not name:
        return Effective(setting=row, value=default)
    found = given[name]
    if not row.known_to(release):
        return _read(row, default, found, name=name, ignored=_unread(row, release))
    if not found.text and name != row.names[-1]:  # only the last name's empty text is ever taken literally
        return _read(row, default, found, name=name, shadowed=shadowed)
    if row.fallback in values:
        row = replace(row, fallback=str(values[row.fallback]))
    result = parse(row, found.text, default)
    if found.unresolved:
        return _read(row, result.value, found, name=name, shadowed=shadowed)
    return _read(row, result.value, found, name=name, invalid=result.wrong, outcome=result.outcome, shadowed=shadowed)


def _read(
    row: Setting,
    value: Parsed,
    found: Value,
    *,
    name: str,
    invalid: str = "",
    outcome: Invalid | None = None,
    shadowed: tuple[str, ...] = (),
    ignored: str = "",
) -> Effective:
    return Effective(
        setting=row,
        value=value,
        text=found.text,
        name=name,
        place=found.place,
        origin=found.origin,
        unresolved=found.unresolved,
        invalid=invalid,
        outcome=outcome,
        shadowed=shadowed,
        ignored=ignored,
    )


def _winner(row: Setting, given: Mapping[str, Value], system: System) -> tuple[str, tuple[str, ...]]:
    """The name whose text counts, and the names that hold a text too but lose."""
    names = row.names
    if system == "windows":
        names = tuple(dict.fromkeys(name.upper() for name in names))
    present = [name for name in names if name in given]
    if not present:
        return "", ()
    if row.alias_first:
        winner = present[0]
    else:
        filled = [name for name in present if given[name].text]
        winner = filled[0] if filled else present[-1]
    return winner, tuple(name for name in present if name != winner and given[name].text)


def _unread(row: Setting, release: str) -> str:
    if row.removed and not older(release, row.removed):
        return f"{row.name} is read by nobody any more: {row.note}"
    return f"{row.name} is read from {row.since} on; {release} ignores it"


def _default(row: Setting, release: str, values: Mapping[str, Effective], system: System) -> Parsed:
    follow = _DERIVED.get(row.name)
    return follow(values, release, system) if follow else default_of(row)


# ---- defaults that follow from other settings ------------------------------------------------------------------

_FREE_BUDGETS_SINCE = "2.6.11"  # until then the defaults below did not follow anything
_BETA = {"strict": 2.0, "balanced": 1.0, "lenient": 0.5}

Follow = Callable[[Mapping[str, Effective], str, System], Parsed]


def _int(values: Mapping[str, Effective], name: str) -> int:
    value = values[name].value
    return value if isinstance(value, int) else 0


def preview(values: Mapping[str, Effective]) -> int:
    """Characters of one preview, the smallest budget ``reconstruct`` accepts."""
    return max(1, _int(values, "CPERSONA_RECALL_PREVIEW_CHARS"))


def _ledger(values: Mapping[str, Effective], _release: str, system: System) -> Parsed:
    path = ntpath if system == "windows" else posixpath
    folder: str = path.dirname(str(values["CPERSONA_DB_PATH"])) or "."
    return str(path.join(folder, "alias_ledger.json"))


def _retrieval(values: Mapping[str, Effective], _release: str, _system: System) -> Parsed:
    return values["CPERSONA_BLOCK_BUILD_ENABLED"].value


def _beta(values: Mapping[str, Effective], _release: str, _system: System) -> Parsed:
    return _BETA.get(str(values["CPERSONA_RECALL_PRECISION"]), 1.0)


def _count(values: Mapping[str, Effective], _release: str, _system: System) -> Parsed:
    return min(10, _int(values, "CPERSONA_RECONSTRUCT_MAX_COUNT"))


def _tail(values: Mapping[str, Effective], release: str, _system: System) -> Parsed:
    return 400 if older(release, _FREE_BUDGETS_SINCE) else min(400, _int(values, "CPERSONA_RECONSTRUCT_QUOTE_CHARS"))


def _max_budget(values: Mapping[str, Effective], release: str, _system: System) -> Parsed:
    return 20000 if older(release, _FREE_BUDGETS_SINCE) else max(20000, preview(values))


def _budget(values: Mapping[str, Effective], release: str, _system: System) -> Parsed:
    if older(release, _FREE_BUDGETS_SINCE):
        return 4000
    return min(max(4000, preview(values)), _int(values, "CPERSONA_RECONSTRUCT_MAX_BUDGET"))


_DERIVED: Mapping[str, Follow] = {
    "CPERSONA_ALIAS_LEDGER_FILE": _ledger,
    "CPERSONA_BLOCK_RETRIEVAL_ENABLED": _retrieval,
    "CPERSONA_FUSED_GATE_BETA": _beta,
    "CPERSONA_RECONSTRUCT_DEFAULT_COUNT": _count,
    "CPERSONA_RECONSTRUCT_TAIL_QUOTE_CHARS": _tail,
    "CPERSONA_RECONSTRUCT_MAX_BUDGET": _max_budget,
    "CPERSONA_RECONSTRUCT_DEFAULT_BUDGET": _budget,
}
