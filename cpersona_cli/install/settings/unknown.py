"""Names that look like settings of CPersona but are read by nobody, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cpersona_cli.install.model import Place, System, Value
from cpersona_cli.install.settings.model import Reader
from cpersona_cli.install.settings.table import BY_ALIAS, BY_NAME, SETTINGS
from cpersona_cli.record import record
from cpersona_cli.text import distance, nearest

PREFIX = "CPERSONA_"
#: Variables of this tool itself.
OWN_PREFIX = "CPERSONA_CLI_"

# Names of other programs that are theirs rightfully, even where the table says that CPersona does not read them.
_RIGHTFUL = frozenset({"OPENAI_API_KEY"})
_READERS = (Reader.SERVER, Reader.PROXY, Reader.PLUGIN)


@record(kw_only=True)
class UnknownName:
    """A variable that looks like a setting of CPersona but is read by nobody.

    ``meant`` is the real name it was probably meant to be (empty: no guess), ``why`` a sentence about the name.
    """

    name: str
    place: Place
    meant: str = ""
    why: str = ""


def unknown_names(given: Mapping[str, Value], *, system: System = "linux") -> tuple[UnknownName, ...]:
    """The look-alikes among the variables of an environment, in its order."""
    found = []
    for name, value in given.items():
        verdict = _verdict(name, written=value.place.file is not None, folded=system == "windows")
        if verdict is not None:
            meant, why = verdict
            found.append(UnknownName(name=name, place=value.place, meant=meant, why=why))
    return tuple(found)


def _verdict(name: str, *, written: bool, folded: bool) -> tuple[str, str] | None:
    """(what was meant, why) for a name nobody reads; None for one that is fine or nobody's business.

    ``written`` says that it stands in a file, for this server; then also names are judged that in a shell could
    belong to anything. ``folded`` says that case does not count.
    """
    if folded:
        name = name.upper()
    upper = name.upper()
    if upper.startswith(OWN_PREFIX) or name in _RIGHTFUL:
        return None
    row = BY_NAME.get(name)
    if row is not None:
        return (row.instead, row.note) if row.reader is Reader.NOBODY and not row.removed else None
    if name in BY_ALIAS:
        return None
    if upper in BY_NAME or upper in BY_ALIAS:
        ours = upper.startswith(PREFIX) or "EMBEDDING" in upper
        return (upper, "the case of variable names counts here") if ours else None
    if not _looks_alike(upper, written=written):
        return None
    return _guess(upper)


def _looks_alike(upper: str, *, written: bool) -> bool:
    word, bar, rest = upper.partition("_")
    if upper.startswith("CPERSONA") or word in {"EMBEDDING", "CEMBEDDING"}:
        return True
    if bar and rest and distance(word, "CPERSONA", 2) <= 2 and nearest(PREFIX + rest, _server_names()):
        return True
    if bar and distance(word, "EMBEDDING", 2) <= 2 and nearest(upper, _all_names()):
        return True
    return written and (word == "CLOTO" or _prefixed(upper))


def _prefixed(upper: str) -> bool:
    """Whether the name with the prefix is one that something of CPersona reads."""
    row = BY_NAME.get(PREFIX + upper)
    return row is not None and row.reader in _READERS


def _guess(upper: str) -> tuple[str, str]:
    if _prefixed(upper):
        return PREFIX + upper, f"the prefix {PREFIX} is missing"
    if (near := nearest(upper, _all_names())) is not None:
        if near in BY_ALIAS:
            return BY_ALIAS[near].name, f"no release reads this name; {near} is a second name of {BY_ALIAS[near].name}"
        return near, "no release reads this name"
    bare = upper.removeprefix(PREFIX)
    row = BY_NAME.get(bare)
    if row is not None and row.reader is Reader.EMBEDDING_SERVER:
        return "", f"{bare} is a setting of the embedding server, and stands there without the prefix"
    words = sorted(bare.split("_"))
    same = [name for name in _server_names() if sorted(name.removeprefix(PREFIX).split("_")) == words]
    longer = [name for name in _server_names() if name.startswith(f"{upper}_") or upper.startswith(f"{name}_")]
    for candidates in (same, longer):
        if len(candidates) == 1:
            return candidates[0], "no release reads this name"
    repaired = PREFIX + upper.partition("_")[2]
    meant = nearest(repaired, _server_names()) if not upper.startswith(PREFIX) else None
    return meant or "", "no release reads this name"


def _server_names() -> Iterable[str]:
    return (setting.name for setting in SETTINGS if setting.reader in _READERS)


def _all_names() -> Iterable[str]:
    for setting in SETTINGS:
        if setting.reader in _READERS or setting.reader is Reader.EMBEDDING_SERVER:
            yield from (setting.name, *setting.aliases)
