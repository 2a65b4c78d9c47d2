"""The traps that commands speak of, and the ids and groups by which a user names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cpersona_cli.commands.errors import UsageError
from cpersona_cli.text import nearest, safe
from cpersona_cli.traps.model import Group, Trap
from cpersona_cli.traps.registry import ALL, RETIRED

BY_ID: Mapping[str, Trap] = {trap.id: trap for trap in ALL}


def select(names: Iterable[str]) -> Mapping[str, Trap]:
    """The traps that ids and groups name. Raises ``UsageError`` for a name that is neither, with the nearest one."""
    found: dict[str, Trap] = {}
    for name in names:
        chosen = [trap for trap in ALL if name in {trap.id, str(trap.group)}]
        if not chosen:
            raise UsageError(unknown(name))
        found.update((trap.id, trap) for trap in chosen)
    return found


def unknown(name: str) -> str:
    """The sentence for a name that is no trap and no group."""
    if name in RETIRED:
        return f"{name} is retired: {RETIRED[name]}"
    near = nearest(name, [*BY_ID, *Group], 3) or _by_ending(name)
    hint = f"did you mean {near}?" if near else "see: cpersona-cli traps list"
    return f"there is no check or group {safe(name, 60)!r}; {hint}"


def _by_ending(name: str) -> str | None:
    """The id of which only the part after the group was given, or that is under another group."""
    ending = name.rpartition(".")[2]
    return next((known for known in BY_ID if ending and known.partition(".")[2] == ending), None)
