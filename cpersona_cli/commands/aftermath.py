"""After a rebuild: what the user has to do, with the exact edit of each registration that names another endpoint."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from cpersona_cli.commands.rebuild_request import Request, again
from cpersona_cli.commands.workplace import Workplace
from cpersona_cli.embedding.endpoints import API_URL, KEY, MODE, MODEL, URL, configured
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.install.model import LaunchKind
from cpersona_cli.rebuild.model import Only
from cpersona_cli.rebuild.work import Ended, Why
from cpersona_cli.report.reembed import Step
from cpersona_cli.text import plural
from cpersona_cli.traps.model import Target
from cpersona_cli.traps.repairs import set_variables
from cpersona_cli.words import COMMANDS

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


def steps(place: Workplace, endpoint: Endpoint, ended: Ended, *, live: bool) -> Sequence[Step]:
    """What is to be done now, in order."""
    return tuple(_steps(place, endpoint, ended, live=live))


def _steps(place: Workplace, endpoint: Endpoint, ended: Ended, *, live: bool) -> Iterator[Step]:
    for target in place.everyone:
        if differs(target, endpoint):
            yield _edit(target, endpoint)
    clients = list(dict.fromkeys(target.registration.client_title for target in place.everyone))
    about = f"cpersona-cli reembed %s --db {shlex.quote(str(place.database.path))}"
    if ended.switched:
        who = ", ".join(clients) if clients else "every server that uses this database"
        yield Step(sentence=f"restart {who}: a server learns its thresholds and the width when it starts")
    if live:
        yield Step(
            sentence="then repair what a server wrote with the former model meanwhile", commands=(about % "finish",)
        )
    if ended.missed and not live:
        yield Step(
            sentence=f"{plural(ended.missed, 'row')} came or changed meanwhile: give them their vectors",
            commands=(f"cpersona-cli reembed --only {Only.MISSING} --db {shlex.quote(str(place.database.path))}",),
        )
    if ended.switched:
        yield Step(
            sentence="the old vectors are kept: undo puts them back, forget removes them",
            commands=(about % "undo", about % "forget"),
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
    parts = [f"{ended.held:,} of {counts.done + counts.failed + counts.unchanged:,} re-embedded"]
    parts += [f"{counts.failed:,} failed"] if counts.failed else []
    parts += [f"{counts.unchanged:,} too long"] if counts.unchanged else []
    parts += [f"{counts.nothing:,} blank"] if counts.nothing else []
    parts += [f"{ended.missed:,} came meanwhile"] if ended.missed else []
    return ", ".join(parts)


def following(request: Request, place: Workplace, ended: Ended) -> str:
    """The one command that helps most now."""
    path = place.database.path
    db = f"--db {shlex.quote(str(path))}"
    if ended.reason == Why.NOT_VERIFIED:
        return f"cpersona-cli reembed abandon {db}"
    if not ended.switched:
        return again(request, database=path)
    if request.live:
        return f"cpersona-cli reembed finish {db}"
    if ended.missed or ended.counts.failed:
        return f"cpersona-cli reembed --only {Only.MISSING} {db}"
    return f"cpersona-cli dimension {db}" if "dimension" in COMMANDS else ""
