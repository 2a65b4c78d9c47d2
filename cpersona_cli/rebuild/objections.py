"""Why a rebuild cannot be done, and what should be known before it is agreed to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cpersona_cli.fit.model import Fit, State
from cpersona_cli.rebuild.disk import Need
from cpersona_cli.rebuild.model import Only
from cpersona_cli.rebuild.survey import Survey
from cpersona_cli.rebuild.target import Identified
from cpersona_cli.record import record
from cpersona_cli.store.job import Target
from cpersona_cli.store.model import Census
from cpersona_cli.text import plural, safe

SEARCH, BLOB = "CPERSONA_VECTOR_SEARCH_MODE", "CPERSONA_STORE_BLOB"
#: Seconds after which the server gives up on the write lock (its ``busy_timeout``).
PATIENCE = 5.0


@record(kw_only=True)
class Circumstances:
    """What is around a database that decides whether it can be rebuilt.

    ``search`` is where the server searches (``local`` or ``remote``), ``blobs`` whether memories keep vectors in the
    database. ``holders`` have it open. ``free`` are bytes on its disk (None: not told). ``objections`` are
    what others found that forbids the rebuild: each a sentence. ``job`` is the target of a job that was begun earlier.
    ``beside`` is how the stored vectors of the target's width fit it, where some of them are to stay.
    """

    database: Path
    search: str = "local"
    blobs: bool = True
    holders: tuple[str, ...] = ()
    free: int | None = None
    objections: tuple[str, ...] = ()
    job: Target | None = None
    beside: Fit | None = None
    may_write: bool = True


@record(kw_only=True)
class Seen:
    """All that a plan is made from, for those who object to it."""

    target: Target
    found: Identified
    only: Only
    census: Census
    around: Circumstances
    survey: Survey
    need: Need
    lock: float


def refusals(seen: Seen) -> Iterator[str]:
    """Why it cannot be done, each one sentence with what to do."""
    around, target = seen.around, seen.target
    yield from around.objections
    if around.search == "remote" and not around.blobs:
        yield (
            f"{SEARCH} is remote and {BLOB} is off, so memories keep no vectors in {around.database} and a new vector"
            " would be searched by nobody; rebuild the index of that service, or turn one of the two settings back"
        )
    if not around.may_write:
        yield f"{around.database} or its folder may not be written to by this user; mend the permissions first"
    if around.job is not None and _identity(around.job) != _identity(target):
        yield (
            f"a rebuild with {_named(around.job)} was begun and is not finished, and this one is with {_named(target)};"
            " go on with the former, or give it up with cpersona-cli reembed abandon"
        )
    if around.free is not None and around.job is None and seen.need.total > around.free:
        yield (
            f"the disk of {around.database} has {_size(around.free)} free and the rebuild needs up to"
            f" {_size(seen.need.total)} (new vectors {_size(seen.need.staging)}, backup {_size(seen.need.backup)},"
            f" old vectors for undo {_size(seen.need.undo)}, log and growth"
            f" {_size(seen.need.log + seen.need.growth)}); make room first"
        )
    if seen.only in {Only.MISSING, Only.DAMAGED} and _others_stay(seen):
        yield (
            f"most stored vectors have {next(iter(seen.census.widths()))} dimensions and this endpoint gives"
            f" {target.dim}: --only {seen.only} would leave two models in one store; leave --only out, or use"
            " --only mismatched"
        )
    elif others := _strangers(seen, most=True):
        yield (
            f"{others}: --only {seen.only} would leave two models in one store; leave --only out, or name the"
            " endpoint of their model"
        )
    elif seen.only is not Only.ALL and not seen.found.unit and _stored_unit(seen.census):
        yield (
            "stored vectors have length one and this endpoint’s have not, so a part of the rows would be on another"
            " scale than the rest; turn normalisation on in the server, or leave --only out"
        )


def _identity(target: Target) -> tuple[str, str, int, str]:
    return target.mode, target.model, target.dim, target.fingerprint


def _named(target: Target) -> str:
    model = target.served or target.model or target.fingerprint or "an unnamed model"
    print_ = f", fingerprint {safe(target.fingerprint, 40)}" if target.fingerprint else ""
    return f"{safe(model, 60)} ({target.mode}, {plural(target.dim, 'dimension')}{print_})"


def _others_stay(seen: Seen) -> bool:
    """Whether rows that are not chosen keep vectors of another width."""
    common = next(iter(seen.census.widths()), None)
    return common is not None and common != seen.target.dim


def _strangers(seen: Seen, *, most: bool) -> str:
    """What is known of stored vectors that have the target's width, are another model's, and would stay.

    ``most`` of the vectors of that width, or fewer; empty where it is not so.
    """
    fit, rows = seen.around.beside, seen.census.widths("memories", "episodes").get(seen.target.dim, 0)
    return strangers(fit, rows) if fit is not None and most_are_strangers(fit, rows) is most else ""


def most_are_strangers(fit: Fit, rows: int) -> bool:
    """Whether most of the ``rows`` that have the endpoint's width were told to be another model's."""
    return 2 * sum(fit.foreign.values()) > rows


def strangers(fit: Fit, rows: int) -> str:
    """How many of the ``rows`` that have the endpoint's width are another model's; empty where none is."""
    others = sum(fit.foreign.values())
    cosine = f" (median cosine {fit.median:.2f})" if fit.median is not None else ""
    return f"about {others:,} of {rows:,} stored vectors of this width are another model’s{cosine}" if others else ""


def _stored_unit(census: Census) -> bool:
    """Whether the vectors that were looked at mostly have length one (the census rounds to two decimals)."""
    norms = census.contents.norms
    near = sum(count for norm, count in norms.items() if abs(norm - 1) < 0.01)
    return near * 2 > sum(norms.values())


def warnings(seen: Seen) -> Iterator[str]:
    """What the user should know before agreeing."""
    around, rows = seen.around, seen.survey
    yield from seen.found.warnings
    if others := _strangers(seen, most=False):
        yield f"{others}, and stay: --only foreign takes them"
    elif around.beside is not None and around.beside.state is State.DRIFTED:
        yield f"the stored vectors that stay are not quite this endpoint’s: {around.beside.detail}"
    elif around.beside is not None and not around.beside.judged and not around.beside.foreign:
        yield "whether the stored vectors that stay are of this model was not measured, as no stored text was sent"
    if rows.long:
        yield (
            f"{plural(rows.long, 'row is', 'rows are')} longer than what the server reads (the longest has about"
            f" {rows.longest:,} tokens); what stands behind that cannot be found by meaning"
        )
    if around.search == "remote" and around.blobs:
        yield (
            f"{SEARCH} is remote: the index of that service is not rebuilt here, and it answers from the old vectors"
            " until it is"
        )
    if seen.lock > PATIENCE:
        yield (
            f"the switch keeps other writers waiting for about {seen.lock:.0f} s, and a server gives up after"
            f" {PATIENCE:.0f} s: stop it for the switch, or what it stores then is lost"
        )
    if seen.census.unmeasured:
        yield f"not counted, for want of time: {', '.join(seen.census.unmeasured)}"
    if around.free is None:
        yield "the system does not tell how much disk is free"


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{round(count / 1000)} kB"
