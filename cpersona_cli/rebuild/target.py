"""What a rebuild would write: the endpoint measured twice, and what the server would call its vectors.

Only texts made up for the purpose are sent. Two measurements on two connections must agree in width, in the vectors
of the same texts, in the model that answers and in the fingerprint: behind one address there may be two models.
"""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.embedding.calling import Factory, connect
from cpersona_cli.embedding.capabilities import Stated, capabilities
from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.embedding.loop import run
from cpersona_cli.embedding.meaning import cosine
from cpersona_cli.embedding.measured import Clock, Measured, Plan, Window
from cpersona_cli.embedding.model import Endpoint, Mode, Outcome
from cpersona_cli.embedding.probe import measure
from cpersona_cli.embedding.texts import nonce
from cpersona_cli.record import record
from cpersona_cli.store.job import Target
from cpersona_cli.text import bare_url, safe

#: Cosine of one text's vectors below which an endpoint is no model to rebuild with. Batches, devices and arithmetic
#: of eight bits keep closer than this; another model does not.
REPEATS = 0.98
#: A cosine below this is worth a word: vectors of one text then differ visibly from call to call.
STEADY = 0.999

#: The batches the server itself sends: 32 texts when it fills missing vectors, 64 for the blocks of long memories.
_BATCHES = (32, 64)
#: Seconds after which no further measurement is begun.
_BUDGET = 60.0
#: Remarks of the probe that do not concern the vectors of a rebuild.
_ASIDE = frozenset({"loopback-name", "key-shown", "unstable"})
#: Ends of a call after which vectors came and must not be stored.
_WORTHLESS = frozenset({Kind.ZERO_VECTOR, Kind.CONSTANT_VECTOR})


@record(kw_only=True)
class Identified:
    """One endpoint as a target of a rebuild. ``target`` is None where it cannot be one; ``refusals`` say why.

    ``kind`` is how the call that decides ended. ``repeat`` is the lowest cosine of one text's vectors in two replies,
    ``largest_batch`` the largest of the tried batches that was answered, ``window`` how much of a long text counts.
    Sentences of ``refusals`` and ``warnings`` hold no secrets.
    """

    endpoint: Endpoint
    kind: Kind
    target: Target | None = None
    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    repeat: float | None = None
    largest_batch: int | None = None
    window: Window | None = None

    @property
    def ok(self) -> bool:
        return self.target is not None

    @property
    def no_verdict(self) -> bool:
        """Whether it failed in a way that says nothing about the endpoint's worth: not there, or not ready."""
        return not self.ok and (MEANINGS[self.kind].retryable or self.kind is Kind.INTERNAL)

    @property
    def unit(self) -> bool:
        """Whether the vectors that would be stored have length one."""
        return self.kind is not Kind.NOT_NORMALIZED


def label_for(endpoint: Endpoint, fingerprint: str) -> str:
    """What server 2.6.14 writes as ``embedding_model`` beside a vector (generation.py, ``record_label``).

    The fingerprint where the backend states one; else the model in mode api, or one that was configured; else nothing.
    """
    if fingerprint:
        return fingerprint
    return endpoint.model if endpoint.mode == Mode.API or endpoint.named else ""


def identified(endpoint: Endpoint, factory: Factory = connect) -> Identified:
    """``identify_target`` in an event loop of its own."""
    return run(identify_target(endpoint, factory=factory))


async def identify_target(
    endpoint: Endpoint, *, factory: Factory = connect, clock: Clock | None = None, word: str = ""
) -> Identified:
    """Measure ``endpoint`` twice. Never raises but for cancellation; ``word`` stands in every text that is sent."""
    clock, word = clock or Clock(), word or nonce()
    thorough = Plan(full=True, batches=_BATCHES, body=0, budget=_BUDGET)
    first = await measure(endpoint, thorough, factory, clock=clock, word=word)
    refused = tuple(_unusable(endpoint, first))
    if refused:
        return Identified(endpoint=endpoint, kind=first.outcome.kind, refusals=refused)
    stated = await capabilities(endpoint)
    second = await measure(endpoint, Plan(light=True, budget=_BUDGET), factory, clock=clock, word=word)
    again = await capabilities(endpoint)
    repeat = _repeat(first, second)
    refused = (
        *_unusable(endpoint, second, again=True),
        *_differences(endpoint, first.outcome, second.outcome, repeat),
        *_two_fingerprints(endpoint, stated, again),
    )
    known = again if again.fingerprint else stated
    return Identified(
        endpoint=endpoint,
        kind=second.outcome.kind if not second.outcome.ok else Kind.UNSTABLE if refused else first.outcome.kind,
        target=None if refused else _target(endpoint, first.outcome, known),
        refusals=refused,
        warnings=tuple(_warnings(first, repeat)),
        repeat=repeat,
        largest_batch=first.largest_batch,
        window=first.window,
    )


def _target(endpoint: Endpoint, outcome: Outcome, stated: Stated) -> Target:
    return Target(
        mode=endpoint.mode,
        url=bare_url(endpoint.url),
        model=endpoint.model if endpoint.mode == Mode.API or endpoint.named else "",
        dim=outcome.dim or 0,
        fingerprint=stated.fingerprint,
        label=label_for(endpoint, stated.fingerprint),
        served=outcome.model or safe(stated.model, 100),
    )


def _unusable(endpoint: Endpoint, found: Measured, *, again: bool = False) -> Iterator[str]:
    """Why no vector of this endpoint may be stored."""
    outcome, where = found.outcome, endpoint.address or "the embedding endpoint"
    if not outcome.ok or outcome.kind in _WORTHLESS:
        meaning = MEANINGS[outcome.kind]
        seen = dict(outcome.evidence).get("detail", "")
        said = f" (“{outcome.server_message}”)" if outcome.server_message else f" ({seen})" if seen else ""
        before = "answered once, and then " if again else ""
        advice = f"; {meaning.advice}" if outcome.kind is Kind.DISABLED else f"; {meaning.advice}, or let probe look"
        yield f"{where}: {before}{meaning.sentence}{said}{advice}"
    else:
        yield from (f"{where}: {remark.measured}" for remark in found.remarks if remark.fatal)


def _repeat(first: Measured, second: Measured) -> float | None:
    """The lowest cosine of one text's vectors, within each measurement and between the two."""
    seen = [found.repeat for found in (first, second) if found.repeat is not None]
    if first.outcome.dim == second.outcome.dim:
        pairs = zip(first.outcome.vectors, second.outcome.vectors, strict=False)
        seen.extend(cosine(left, right) for left, right in pairs)
    return min(seen, default=None)


def _differences(endpoint: Endpoint, first: Outcome, second: Outcome, repeat: float | None) -> Iterator[str]:
    if not second.ok:
        return
    where = endpoint.address
    if first.dim != second.dim:
        yield f"{where}: {first.dim} dimensions in one measurement, {second.dim} in the next: see what answers there"
    elif first.model != second.model:
        yield (
            f"{where}: {first.model or 'no model'} is named in one reply, {second.model or 'none'} in the next:"
            " look at what answers there"
        )
    elif repeat is not None and repeat < REPEATS:
        yield (
            f"{where}: the same text gets vectors that agree only to a cosine of {repeat:.4f}:"
            " more than one model may answer there"
        )


def _two_fingerprints(endpoint: Endpoint, first: Stated, second: Stated) -> Iterator[str]:
    if first.fingerprint and second.fingerprint and first.fingerprint != second.fingerprint:
        both = f"{safe(first.fingerprint, 40)} and then {safe(second.fingerprint, 40)}"
        yield f"{endpoint.address}: its fingerprint was {both}: more than one model answers there"


def _warnings(found: Measured, repeat: float | None) -> Iterator[str]:
    if found.outcome.kind is Kind.NOT_NORMALIZED:
        low, high = min(found.outcome.norms), max(found.outcome.norms)
        yield (
            f"vectors come with lengths from {low:.4g} to {high:.4g} and mode http stores them so;"
            " similarity then also counts length, so turn normalisation on in the server if you can"
        )
    if repeat is not None and repeat < STEADY:
        yield f"the same text gets slightly different vectors from call to call (lowest cosine {repeat:.4f})"
    yield from (remark.measured for remark in found.remarks if not remark.fatal and remark.name not in _ASIDE)
