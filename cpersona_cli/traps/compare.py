"""Registrations that share one database, held against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cpersona_cli.text import safe
from cpersona_cli.traps.model import Finding, Repair, Target
from cpersona_cli.traps.repairs import set_variable

Worlds = Sequence[tuple[str, Sequence[Target]]]

_SHELL = "depends on how the clients were started: true when they start from a shell with these variables"
_BARE = "depends on how the clients were started: true when they start without this shell's variables"


def worlds(targets: Sequence[Target]) -> Worlds:
    """One target per registration under each assumption about what its client hands on.

    The condition is empty where the assumption makes no difference.
    """
    groups: dict[int, list[Target]] = {}
    for target in targets:
        groups.setdefault(id(target.registration), []).append(target)
    bare = [next((t for t in group if t.environment.assumption != "shell"), group[0]) for group in groups.values()]
    shell = [next((t for t in group if t.environment.assumption == "shell"), group[0]) for group in groups.values()]
    if all(one is other for one, other in zip(bare, shell, strict=True)):
        return (("", bare),)
    return ((_BARE, bare), (_SHELL, shell))


def where(targets: Sequence[Target]) -> str:
    """The registrations, by name and file."""
    return ", ".join(f"{target.registration.label} ({target.registration.place})" for target in targets)


def disagreements(
    targets: Sequence[Target], value_of: Callable[[Target], str | None]
) -> Iterator[tuple[str, dict[str, list[Target]]]]:
    """(condition, value -> registrations) wherever registrations differ in a value; None takes one out.

    What holds under both assumptions comes once, without a condition.
    """
    found = []
    for condition, world in worlds(targets):
        groups: dict[str, list[Target]] = {}
        for target in world:
            value = value_of(target)
            if value is not None:
                groups.setdefault(value, []).append(target)
        if len(groups) > 1:
            found.append((condition, groups))
    # True under both assumptions: the second time it would only be said again, so it is said without a condition.
    yield from [("", found[0][1])] if len(found) > 1 else found


def differ(
    setting: str, condition: str, groups: dict[str, list[Target]], *, best: Callable[[str], bool] = bool
) -> Finding:
    """One finding about a setting that differs: every registration and value, and the edit for the one that deviates.

    The value to keep is the one most registrations have among those ``best`` allows, in order of appearance.
    """
    kept = max((value for value in groups if best(value)), key=lambda v: len(groups[v]), default=next(iter(groups)))
    deviating = next(target for value, found in groups.items() if value != kept for target in found)
    effective = deviating.settings[setting]
    listed = "; ".join(f"{safe(value, 120) or '(empty)'}: {where(found)}" for value, found in groups.items())
    change = set_variable(deviating.registration, setting, kept, at=effective.place if effective.given else None)
    return Finding(
        about=setting,
        place=effective.place if effective.given else deviating.registration.place,
        measured=f"{setting} differs: {listed}",
        depends=condition,
        repair=Repair(
            prose=f"decide on one value, for example: {change.prose}",
            commands=change.commands,
            edit=change.edit,
            place=change.place,
        ),
        evidence=tuple((where(found), safe(value, 120)) for value, found in groups.items()),
    )
