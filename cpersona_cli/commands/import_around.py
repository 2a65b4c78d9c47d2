"""What an import has to know beside its sources: whose memory it is, what is kept of a text, where vectors come from.

All of it is told from the database and from the registrations that open it.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from pathlib import Path

from cpersona_cli.commands.chosen import named
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.import_request import Request, Times
from cpersona_cli.commands.workplace import Workplace
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.fit.measure import measure
from cpersona_cli.fit.model import Fit
from cpersona_cli.fit.stored import SAMPLE
from cpersona_cli.history.bring_in import NoVectors, why_none
from cpersona_cli.history.model import HistoryError
from cpersona_cli.history.plan import Plan
from cpersona_cli.history.summaries import read as read_summaries
from cpersona_cli.history.wants import FORMER_LIMIT, LIMIT, Form, Wants
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.rebuild.job import users
from cpersona_cli.rebuild.objections import SEARCH, strangers
from cpersona_cli.rebuild.target import Identified
from cpersona_cli.record import replace
from cpersona_cli.report.backfill import Around, tokens
from cpersona_cli.report.reembed import identity
from cpersona_cli.store.audit_model import Lens
from cpersona_cli.store.boundary import Penalty, rule_of
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.writing.filling import Bare, count_bare
from cpersona_cli.store.writing.imports import Record, imports
from cpersona_cli.store.writing.locks import in_use
from cpersona_cli.store.writing.mainfile import Main
from cpersona_cli.text import nearest, plural, safe
from cpersona_cli.traps.database_schema import FIRST_LINE
from cpersona_cli.traps.recall_settings import lens_of, number, starting

#: The agent of the client's own hooks, which the server does not read.
_AGENT = "CPERSONA_AGENT_ID"
_CONFIDENCE = "CPERSONA_CONFIDENCE_ENABLED"
_CAP = "CPERSONA_MAX_CONTENT_LENGTH"
#: Seconds that it may take to tell whether the stored vectors are the endpoint's.
_MEASURING = 600.0
#: Agents that are listed where one is to be chosen.
_LISTED = 8


def agents(place: Workplace) -> Sequence[str]:
    """The agents that have rows in the database, those with most memories first."""
    audit = place.database.reading.audit
    rows: dict[str, int] = {}
    for places in (audit.memories, audit.episodes):
        for (agent, _, _), count in places.items():
            rows[agent] = rows.get(agent, 0) + count
    for agent in audit.profiles:
        rows.setdefault(agent, 0)
    return sorted(rows, key=lambda agent: -rows[agent])


def agent_of(request: Request, place: Workplace) -> str:
    """Whose memory talk becomes: as named, as a registration names it, or the only one there is; else nobody's."""
    if request.agent is not None:
        return request.agent
    named_by = {target.environment.get(_AGENT) for target in place.targets} - {None, ""}
    if len(named_by) == 1:
        return str(named_by.pop())
    known = agents(place)
    return known[0] if len(known) == 1 and not place.database.reading.audit.more_places else ""


def nobody(place: Workplace, error: HistoryError) -> UsageError:
    """What to say where talk was read and nobody is known whose it is."""
    known = agents(place)
    there = f"in the database are {_listed(known)}" if known else "the database holds none yet"
    return UsageError(f"{error}; {there}")


def wants(request: Request, place: Workplace, times: Times) -> Wants:
    """The request, with what the clients of the database do. Raises ``UsageError``."""
    try:
        summaries = read_summaries(request.summaries) if request.summaries is not None else {}
    except HistoryError as error:
        raise UsageError(f"--summaries: {error}") from None
    return Wants(
        agent=agent_of(request, place),
        keep_agents=request.agent is None,
        project=request.project,
        channel=request.channel,
        form=Form(request.form or Form.MEMORIES),
        since=times.since,
        until=times.until,
        undated=times.undated,
        limit=limit(place),
        no_penalty=request.no_penalty,
        clamp=request.clamp,
        lens=lens(place),
        now=times.clock.now,
        summaries=summaries,
    )


def limit(place: Workplace) -> int:
    """The characters of a text that every client keeps; where none is known, those of the oldest for the schema."""
    known = [int(number(target.settings[_CAP])) for target in starting(place.everyone)]
    if known:
        return max(1, min(known))
    return FORMER_LIMIT if place.database.reading.schema == FIRST_LINE else LIMIT


def lens(place: Workplace) -> Lens:
    """How memories are weakened: by a client that does it, else as one would by its release if it were told to."""
    known = list(starting(place.everyone))
    weakening = next((found for target in known if (found := lens_of(target)) is not None), None)
    if weakening is not None or not known:
        return weakening or Lens(rule_of(None), Penalty())
    settings = known[0].settings
    penalty = Penalty(number(settings["CPERSONA_EPISODE_DECAY_RATE"]), number(settings["CPERSONA_EPISODE_DECAY_FLOOR"]))
    return Lens(rule_of(known[0].version.version), penalty)


def endpoint(request: Request, place: Workplace, machine: Machine) -> Endpoint | None:
    """The endpoint that vectors come from; None where none is called. Raises ``UsageError`` where that is not known."""
    if request.no_embed:
        return None
    goals = place.goals()
    configured = goals[0].endpoint if goals else None
    if request.chosen.url is not None:
        chosen = named(request.chosen, machine.env)
        if request.chosen.model is not None:
            return replace(chosen, named=True)
        return chosen if configured is None else replace(chosen, model=configured.model, named=configured.named)
    if configured is None:
        raise UsageError(
            f"no registration opens {place.database.path}, so nothing says where vectors come from; add --url, or"
            " --no-embed to store without vectors"
        )
    return None if configured.mode == Mode.NONE else configured


def waiting(database: Path) -> Bare:
    """The rows of earlier imports that still have no vector. Raises ``StoreError``."""
    if not imports(database):
        return Bare(rows=0, characters=0)
    with Main(database) as main, Record(database) as kept:
        return count_bare(main, kept)


def measured(place: Workplace, plan: Plan, found: Identified) -> Fit | None:
    """How the stored vectors fit that endpoint, told from some of their texts; None where they cannot be compared.

    Raises ``StoreError``.
    """
    if why_none(plan, found) or not plan.present.widths:
        return None
    store, deadline = CPersonaStore(place.database.path), time.monotonic() + _MEASURING
    return measure(store, found.endpoint, sample=SAMPLE, deadline=deadline)


def strange(request: Request, place: Workplace) -> Sequence[str]:
    """That the named agent has nothing in the database yet, where others have: the name may be mistyped."""
    known = agents(place)
    if request.agent is None or not known or request.agent in known or place.database.reading.audit.more_places:
        return []
    near = nearest(request.agent, known)
    hint = f"did you mean {safe(near, 60)}?" if near else f"the database holds memories of {_listed(known)}"
    return [f"agent {safe(repr(request.agent), 80)} has no memories yet; {hint}"]


def _listed(known: Sequence[str]) -> str:
    more = f" and {len(known) - _LISTED:,} more" if len(known) > _LISTED else ""
    return f"{', '.join(safe(agent, 60) for agent in known[:_LISTED])}{more}"


def elsewhere(place: Workplace) -> Sequence[str]:
    """That a client searches an index of another service, which nobody tells of what is stored here."""
    remote = [one.registration.label for one in starting(place.everyone) if str(one.settings[SEARCH]) == "remote"]
    if not remote:
        return []
    clients = ", ".join(safe(name, 80) for name in dict.fromkeys(remote))
    sentence = (
        f"{SEARCH} is remote in {clients}: that service is not told of what is stored here, and finds it only once its"
        " index is made anew"
    )
    return [sentence]


def ages(place: Workplace, plan: Plan, oldest: str) -> Sequence[str]:
    """What ``oldest``, the earliest memory that is to be stored, does to the confidence that clients show."""
    on = [one.registration.label for one in starting(place.everyone) if one.settings[_CONFIDENCE].value is True]
    there = min((one.at for known in plan.present.oldest.values() for one in known), default=None)
    if not on or there is None or not oldest or dt.datetime.fromisoformat(oldest) >= there:
        return []
    clients = ", ".join(safe(name, 80) for name in dict.fromkeys(on))
    sentence = (
        f"{_CONFIDENCE} is on in {clients}: confidence follows the time from the oldest memory to the newest, which"
        f" begins {oldest[:10]} then in place of {there:%Y-%m-%d}; so each memory gets another, with --no-penalty, too"
    )
    return [sentence]


def around(
    request: Request,
    place: Workplace,
    wanted: Wants,
    plan: Plan,
    *,
    found: Identified | None,
    beside: Fit | None,
    bare: Bare,
) -> Around:
    """What is to be said beside the plan."""
    known = list(starting(place.everyone))
    weakening = [target.registration.label for target in known if lens_of(target) is not None]
    embeds = why_none(plan, found, beside) is None
    far = found is not None and not is_loopback(found.endpoint.url) and embeds
    return Around(
        agent=wanted.agent,
        keep_agents=wanted.keep_agents,
        project=wanted.project or "",
        channel=wanted.channel or "",
        limit=wanted.limit,
        no_penalty=wanted.no_penalty,
        vectors=_vectors(request, plan, found, beside, bare),
        sends=found.endpoint.address if found is not None and far and (not plan.empty or bare.rows) else "",
        holders=users(in_use(place.database.path)),
        weakening=tuple(dict.fromkeys(weakening)),
        clients=bool(known),
        waiting=bare.rows if embeds else 0,
    )


def _vectors(request: Request, plan: Plan, found: Identified | None, beside: Fit | None, bare: Bare) -> str:
    later = "`cpersona-cli reembed --only missing` adds them"
    if found is None:
        return f"none (--no-embed); {later}" if request.no_embed else "none: the server works without an endpoint"
    if found.target is None:
        return f"none: {safe(' '.join(found.refusals) or NoVectors.UNUSABLE, 400)}; once it answers, {later}"
    why, widths = why_none(plan, found, beside), plan.present.widths
    if why == NoVectors.OTHER_WIDTH:
        there = next(iter(widths))
        return f"none: the endpoint gives {found.target.dim} dimensions, and those stored have {there}; {later}"
    if why == NoVectors.OTHER_MODEL and beside is not None:
        others = strangers(beside, widths[found.target.dim])
        return f"none: {others}, so that these would not go with them; `cpersona-cli dimension` tells more"
    rows = sum(plan.rows.values()) + bare.rows
    if not rows:
        return "none to be made"
    return f"{plural(rows, 'text')}, {tokens(plan.characters + bare.characters)}; {identity(found.target)}"


def secrets(request: Request, machine: Machine) -> Sequence[str]:
    """The secrets of an endpoint named on the command line."""
    return named(request.chosen, machine.env).secrets if request.chosen.url is not None else ()
