"""What the settings of clients make of recall, and so of what is worth measuring in the rows of a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cpersona_cli.install.settings.effective import Effective
from cpersona_cli.store.audit_model import Lens, Wants
from cpersona_cli.store.boundary import Penalty, rule_of
from cpersona_cli.traps.model import Target
from cpersona_cli.traps.subject import elsewhere

#: The scan window of a server that is told nothing.
USUAL_WINDOW = 10_000


def number(setting: Effective) -> float:
    return setting.value if isinstance(setting.value, int | float) else 0


def starting(targets: Iterable[Target]) -> Iterator[Target]:
    """Those that start the server itself, so that its settings stand with them."""
    return (target for target in targets if not elsewhere(target))


def lens_of(target: Target) -> Lens | None:
    """How this client weakens old memories; None where it does not."""
    settings = target.settings
    if settings["CPERSONA_EPISODE_PENALTY_ENABLED"].value is not True:
        return None
    penalty = Penalty(number(settings["CPERSONA_EPISODE_DECAY_RATE"]), number(settings["CPERSONA_EPISODE_DECAY_FLOOR"]))
    return Lens(rule_of(target.version.version), penalty)


def reach(target: Target) -> int:
    """How many of an agent's newest rows a recall ranks by meaning, the far list included; 0 where none is local."""
    settings = target.settings
    if settings["CPERSONA_VECTOR_SEARCH_MODE"].value == "remote":
        return 0
    window = int(number(settings["CPERSONA_MAX_MEMORIES"]))
    far = int(number(settings["CPERSONA_VECTOR_REACH"]))
    return max(window, far) if settings["CPERSONA_RECALL_MODE"].value != "cascade" else window


def wants(targets: Iterable[Target]) -> Wants:
    """What to measure for these clients; of a database that nobody opens, what a server told nothing would do."""
    known = list(starting(targets))
    lenses = (lens_of(target) for target in known)
    return Wants(
        windows=tuple(dict.fromkeys(reach(target) for target in known)) or (USUAL_WINDOW,),
        lenses=tuple(dict.fromkeys(lens for lens in lenses if lens is not None)),
    )
