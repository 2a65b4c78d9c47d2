"""After a rebuild: what the user has to do, with the exact edit of each registration that names another endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cpersona_cli.commands.rebuild_request import Request, again, naming
from cpersona_cli.commands.workplace import Workplace
from cpersona_cli.embedding.endpoints import API_URL, KEY, MODE, MODEL, URL, configured
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.install.model import LaunchKind
from cpersona_cli.rebuild.model import Only
from cpersona_cli.rebuild.work import Ended, Why
from cpersona_cli.report.reembed import Step
from cpersona_cli.text import plural, quoted
from cpersona_cli.traps.model import Target
from cpersona_cli.traps.repairs import set_variables

#: What a start of the server through these is: not by a command that could be given variables.
_ELSEWHERE = {LaunchKind.REMOTE, LaunchKind.PROXY}


def differs(target: Target, endpoint: Endpoint) -> bool:
    """Whether a registration calls another endpoint, or asks it for another model."""
    if target.registration.launch.kind in _ELSEWHERE:
        return False
    own = configured(target.settings, target.environment)
    if (own.mode, own.url) != (endpoint.mode, endpoint.url):
        return True
    return own.model != endpoint.model and (endpoint.mode == Mode.API or endpoint.named)


def wanted(endpoint: Endpoint) -> Mapping[str, str]:
    """The settings of a server that calls ``endpoint``, but for a key, which is not to be written down here."""
    api = endpoint.mode == Mode.API
    values = {MODE: str(endpoint.mode), API_URL if api else URL: endpoint.url}
    return {**values, MODEL: endpoint.model} if api or endpoint.named else values


def steps(request: Request, place: Workplace, endpoint: Endpoint, ended: Ended) -> Sequence[Step]:
    """What is to be done now, in order."""
    return tuple(_steps(request, place, endpoint, ended))


def _about(request: Request, place: Workplace, words: str, *, calls: bool = False) -> str:
    """A command about the same database; one that ``calls`` an endpoint calls the one that was named for the rebuild.

    The registrations may name the former one for as long as they are not edited.
    """
    named = naming(request.chosen) if calls else []
    return " ".join([f"cpersona-cli {words} --db {quoted(str(place.database.path))}", *named])


def _steps(request: Request, place: Workplace, endpoint: Endpoint, ended: Ended) -> Iterator[Step]:
    for target in place.everyone:
        if differs(target, endpoint):
            yield _edit(target, endpoint)
    if ended.switched:
        registrations = [target.registration for target in place.everyone]
        clients = dict.fromkeys(r.client_title for r in registrations if r.launch.kind is not LaunchKind.PROCESS)
        who = ", ".join(clients) or "every server that uses this database"
        yield Step(sentence=f"restart {who}: a server learns its thresholds and the width when it starts")
    if request.live:
        yield Step(
            sentence="then repair what a server wrote with the former model meanwhile",
            commands=(_about(request, place, "reembed finish", calls=True),),
        )
    if ended.missed and not request.live:
        yield Step(
            sentence=f"{plural(ended.missed, 'row')} came or changed meanwhile: give them their vectors",
            commands=(_about(request, place, f"reembed --only {Only.MISSING}", calls=True),),
        )
    if ended.switched:
        yield Step(
            sentence="the old vectors are kept: undo puts them back, forget removes them",
            commands=(_about(request, place, "reembed undo"), _about(request, place, "reembed forget")),
        )


def _edit(target: Target, endpoint: Endpoint) -> Step:
    repair = set_variables(target.registration, wanted(endpoint))
    key = f"; {KEY} goes there too" if endpoint.mode == Mode.API and endpoint.key else ""
    return Step(
        sentence=f"{target.registration.label}: {repair.prose}{key}",
        edit=repair.edit,
        commands=repair.commands,
        place=repair.place,
    )


def summary(ended: Ended) -> str:
    """The last line: what became of the rows, and nothing that the database does not say."""
    counts = ended.counts
    if not ended.switched:
        why = {
            Why.INTERRUPTED: "interrupted",
            Why.NOT_VERIFIED: "refused: the new vectors do not hold what they should",
            Why.DECLINED: "not switched, as you wished",
            Why.IN_USE: "not switched: the database is open elsewhere",
        }
        reason = next((words for word, words in why.items() if word == ended.reason), f"stopped ({ended.reason})")
        return f"{counts.done:,} of {counts.planned:,} done, {reason}; the old vectors are in use"
    if not counts.planned:
        return "nothing was left to do; every row has its vector"
    parts = [f"{ended.held:,} of {counts.done + counts.failed + counts.unchanged:,} re-embedded"]
    parts += [f"{counts.failed:,} failed"] if counts.failed else []
    parts += [f"{counts.unchanged:,} too long"] if counts.unchanged else []
    parts += [f"{counts.nothing:,} blank"] if counts.nothing else []
    parts += [f"{ended.missed:,} came meanwhile"] if ended.missed else []
    return ", ".join(parts)


def following(request: Request, place: Workplace, ended: Ended) -> str:
    """The one command that helps most now."""
    if ended.reason == Why.NOT_VERIFIED:
        return _about(request, place, "reembed abandon")
    if not ended.switched:
        return again(request, database=place.database.path)
    if request.live:
        return _about(request, place, "reembed finish", calls=True)
    if ended.missed or ended.counts.failed:
        return _about(request, place, f"reembed --only {Only.MISSING}", calls=True)
    # what the registrations name is a part of what is to be looked at, where there are any
    return _about(request, place, "dimension", calls=not place.everyone)
