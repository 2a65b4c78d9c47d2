"""Finding out by experiment what would work in place of a call that failed: one thing changed by each request.

At most eight requests beside the first, all to the same host. What is offered as a solution was answered by a real
call; where none was, nothing is offered.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from cpersona_cli.embedding.calling import Factory, connect
from cpersona_cli.embedding.configuration import better_url
from cpersona_cli.embedding.identify import Asker, models_like
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Experiment, Refinement, Solution
from cpersona_cli.embedding.model import Endpoint, Mode, Outcome
from cpersona_cli.embedding.variants import MISUNDERSTOOD, UNREACHED, Variant, same_host, split, variants, with_name
from cpersona_cli.record import replace
from cpersona_cli.text import bare_url

#: Requests beside the one that failed.
LIMIT = 8

#: Ends that may be due to one text among several, or to their number.
_BY_TEXTS = frozenset({
    Kind.BATCH_TOO_LARGE, Kind.COUNT_MISMATCH, Kind.BAD_INDEX, Kind.NO_BATCHING, Kind.NAN_FOR_INPUT, Kind.BAD_VALUES,
    Kind.RAGGED, Kind.INPUT_TOO_LARGE, Kind.SERVER_ERROR, Kind.REJECTED, Kind.NULL_VECTOR, Kind.DISCONNECTED,
})  # fmt: skip


@dataclass(slots=True, kw_only=True)
class _Trials:
    """The experiments of one refinement; ``left`` requests may still be made."""

    original: Endpoint
    texts: Sequence[str]
    factory: Factory
    left: int
    made: list[Experiment] = field(default_factory=list)
    tried: set[tuple[str, str, str, str, bool]] = field(default_factory=set)

    async def call(self, variant: Variant, texts: Sequence[str]) -> Outcome | None:
        """The outcome of one experiment; None for one that was made before, is too much, or leaves the host."""
        endpoint = variant.endpoint
        mark = _mark(endpoint, texts)
        allowed = same_host(endpoint.url, self.original.url) or split(self.original.url) is None
        if self.left <= 0 or mark in self.tried or not allowed:
            return None
        self.tried.add(mark)
        self.left -= 1
        async with self.factory(endpoint, endpoint.timeout) as client:
            outcome = await client.embed(texts)
        self.note(variant, outcome)
        return outcome

    def note(self, variant: Variant, outcome: Outcome) -> None:
        self.made.append(
            Experiment(
                changed=variant.changed,
                mode=variant.endpoint.mode,
                url=bare_url(variant.endpoint.url),
                kind=outcome.kind,
                status=outcome.status,
                message=outcome.server_message,
                helped=outcome.ok,
            )
        )

    def result(self, solution: Solution | None = None, remark: str = "") -> Refinement:
        return Refinement(tuple(self.made), solution, remark)


async def refine(
    endpoint: Endpoint, outcome: Outcome, texts: Sequence[str], factory: Factory = connect, limit: int = LIMIT
) -> Refinement:
    """What would work in place of the call of ``texts`` that ended in ``outcome``."""
    trials = _Trials(original=endpoint, texts=texts, factory=factory, left=limit)
    trials.tried.add(_mark(endpoint, texts))
    nearest = Variant("", endpoint)
    waiting = [*_first(endpoint, outcome)]
    last = outcome
    while waiting:
        variant = waiting.pop(0)
        tried = await trials.call(variant, texts)
        if tried is None:
            continue
        if tried.ok:
            return trials.result(_solution(endpoint, variant.endpoint))
        if _rank(tried.kind) > _rank(last.kind):
            nearest, last = variant, tried
            waiting = [*variants(variant.endpoint, tried.kind, proxied=bool(tried.via_proxy)), *waiting]
        if _rank(last.kind) == _UNDERSTOOD:
            break
    if last.kind is Kind.MODEL_NOT_FOUND and nearest.endpoint.mode == Mode.API:
        found = await _another_model(trials, nearest.endpoint)
        if found is not None:
            return trials.result(_solution(endpoint, found))
    if outcome.kind in _BY_TEXTS and len(texts) > 1:
        alone = await trials.call(Variant("one short text alone", endpoint), texts[:1])
        if alone is not None and alone.ok:
            return trials.result(remark="one text at a time is answered")
    return trials.result()


def _first(endpoint: Endpoint, outcome: Outcome) -> Sequence[Variant]:
    found = list(variants(endpoint, outcome.kind, proxied=bool(outcome.via_proxy)))
    slipped = outcome.kind is Kind.CONFIG_URL or outcome.kind in MISUNDERSTOOD
    better = better_url(endpoint.url) if slipped else ""
    return [Variant("the URL without its slip", replace(endpoint, url=better)), *found] if better else found


_UNREACHED, _ANSWERED, _UNDERSTOOD = range(3)


def _rank(kind: Kind) -> int:
    """How far a call got: to no answer, to an answer, to one that shows that the contract was understood."""
    if kind in UNREACHED or kind.value.startswith("config_") or kind in {Kind.PROXY, Kind.TIMEOUT, Kind.TLS}:
        return _UNREACHED
    return _ANSWERED if kind in MISUNDERSTOOD or kind in _BY_TEXTS else _UNDERSTOOD


def _mark(endpoint: Endpoint, texts: Sequence[str]) -> tuple[str, str, str, str, bool]:
    proxied = any(name.lower().endswith("_proxy") for name in endpoint.environment)
    return endpoint.mode, endpoint.url, f"{endpoint.model}\n{endpoint.key}", f"{len(texts)}", proxied


async def _another_model(trials: _Trials, endpoint: Endpoint) -> Endpoint | None:
    """A model the server lists and answers with: the asked one in another spelling, or one where none was asked.

    A model that was chosen is not exchanged for another one here: vectors of two models do not mix.
    """
    if trials.left < 2:
        return None
    trials.left -= 1
    async with Asker(endpoint) as asker:
        listed = await asker.models()
    shown = ", ".join(listed[:6]) or "no list"
    missing = Experiment(
        changed="asked for the list of models", mode=endpoint.mode, url=asker.last, kind=Kind.OK, message=shown
    )
    trials.made.append(missing if listed else replace(missing, kind=Kind.ROUTE_NOT_FOUND))
    chosen = trials.original.mode == Mode.API
    for name in models_like(endpoint.model, listed, others=not chosen)[:2]:
        variant = Variant(f"model {name}", replace(endpoint, model=name))
        outcome = await trials.call(variant, trials.texts)
        if outcome is not None and outcome.ok:
            return variant.endpoint
    return None


def _solution(original: Endpoint, found: Endpoint) -> Solution:
    parts = split(found.url)
    return Solution(
        mode=found.mode,
        url=found.url,
        model=found.model if found.model != original.model else "",
        no_proxy=(parts.hostname or "") if parts is not None and found.environment != original.environment else "",
        key=found.mode == Mode.API and not found.key,
        trim_key=found.key != original.key and found.mode == original.mode,
    )


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, none where it has none."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return [str(address[0]) for *_, address in found]


async def listens(host: str, port: int, seconds: float = 2.0) -> bool:
    """Whether a connection to exactly this address is accepted."""
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def loopback_name(endpoint: Endpoint, resolver: Resolve = resolve) -> str:
    """The URL to write in place of a name of this computer that other programs resolve to an address without a server.

    Empty where the name is plain, or where every address behind ``localhost`` is answered.
    """
    parts = split(endpoint.url)
    if parts is None:
        return ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    plain = with_name(endpoint.url, "127.0.0.1")
    if parts.hostname in {"0.0.0.0", "::"}:  # noqa: S104 - what a URL says, nothing is bound
        return plain if await listens("127.0.0.1", port) else ""
    if parts.hostname != "localhost":
        return ""
    addresses = list(dict.fromkeys(await resolver("localhost", port)))
    answered = [address for address in addresses if await listens(address, port)]
    if "127.0.0.1" in answered and len(answered) < len(addresses):
        return plain
    return ""
