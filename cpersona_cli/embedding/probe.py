"""One endpoint, measured: from the first call to what its vectors are worth.

The order is that of the questions a person would ask. A question whose answer rests on an earlier one is not asked
when that one failed; it is listed as not made, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cpersona_cli.embedding.calling import Caller, Factory, connect, contact
from cpersona_cli.embedding.health import health
from cpersona_cli.embedding.identify import identify, plain_name, with_role
from cpersona_cli.embedding.kinds import MEANINGS, Kind, Stage
from cpersona_cli.embedding.loop import run
from cpersona_cli.embedding.measured import Clock, Identity, Measured, Plan, Remark, Step
from cpersona_cli.embedding.model import Endpoint, Mode, Outcome
from cpersona_cli.embedding.quality import Quality
from cpersona_cli.embedding.refine import Resolve, loopback_name, refine, resolve
from cpersona_cli.embedding.sampling import sample
from cpersona_cli.embedding.texts import fresh, nonce, single
from cpersona_cli.embedding.variants import split
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.record import replace

#: Ends of the first call after which vectors cannot be judged further.
_WORTHLESS = frozenset({Kind.ZERO_VECTOR, Kind.CONSTANT_VECTOR})
#: Ends that experiments cannot say more about.
_SETTLED = frozenset({
    Kind.DISABLED, Kind.CONFIG_MODE, Kind.LOADING, Kind.THROTTLED, Kind.QUOTA, Kind.INPUT_INVALID, Kind.INTERNAL,
})  # fmt: skip


def probe(endpoints: Sequence[Endpoint], plan: Plan, factory: Factory = connect) -> list[Measured]:
    """Measure every endpoint, all at the same time. The order of the results is that of ``endpoints``."""

    async def together() -> list[Measured]:
        return await asyncio.gather(*(measure(endpoint, plan, factory) for endpoint in endpoints))

    return run(together())


async def measure(
    endpoint: Endpoint,
    plan: Plan,
    factory: Factory = connect,
    *,
    clock: Clock | None = None,
    word: str = "",
    resolver: Resolve = resolve,
) -> Measured:
    """Everything ``plan`` asks about one endpoint. Never raises but for cancellation."""
    clock = clock or Clock()
    start = clock.now()
    word = word or nonce()
    called = replace(endpoint, timeout=plan.timeout) if plan.timeout and endpoint.timeout > 0 else endpoint
    async with Caller(endpoint=called, factory=factory, deadline=plan.timeout, clock=clock) as caller:
        texts = fresh(word)
        first = await contact(caller, texts, plan.wait)
        found = Measured(endpoint=endpoint, outcome=first.outcome)
        found.steps.append(_reached(first.outcome))
        if first.waited is not None:
            found.first_call = first.outcome.elapsed
            found.ready_after = first.waited if first.attempts > 1 else None
        if first.outcome.ok:
            await _answered(caller, found, plan, texts, word)
            await _names(found, resolver)
        else:
            await _refused(caller, found, plan, texts, factory)
        await _identity(found, plan)
        if plan.count:
            _counted(found, [await caller.once([single(word, n)]) for n in range(1, plan.count + 1)])
        found.calls += caller.calls
        found.dropped = caller.dropped
    _remarks(found, first.waited)
    found.seconds = clock.now() - start
    return found


def _counted(found: Measured, outcomes: Sequence[Outcome]) -> None:
    found.health = health(outcomes)
    failed = [outcome for outcome in outcomes if not outcome.ok]
    if failed and (found.outcome.ok or len(failed) < len(outcomes)):
        measured = f"{len(failed)} of {len(outcomes)} calls failed: {MEANINGS[failed[-1].kind].sentence}"
        found.remarks.append(Remark(name="unstable", measured=measured, kind=failed[-1].kind))


def _reached(outcome: Outcome) -> Step:
    if outcome.kind is Kind.DISABLED:
        return Step(name="contract", state="skipped", detail=MEANINGS[outcome.kind].sentence)
    if outcome.ok:
        return Step(name="contract", state="pass", detail=f"four texts came back as {outcome.dim} dimensions each")
    unknown = outcome.kind in {Kind.LOADING, Kind.TIMEOUT, Kind.THROTTLED, Kind.INTERNAL}
    return Step(name="contract", state="unknown" if unknown else "findings", detail=MEANINGS[outcome.kind].sentence)


async def _answered(caller: Caller, found: Measured, plan: Plan, texts: Sequence[str], word: str) -> None:
    found.out_of_order = any(name == "order" for name, _ in found.outcome.evidence)
    if found.outcome.kind in _WORTHLESS:
        sentence = MEANINGS[found.outcome.kind].sentence
        found.steps.append(Step(name="values", state="findings", detail=sentence))
        found.steps.extend(Step(name=name, state="skipped", detail=sentence) for name in Quality.NAMES)
        return
    low, high = min(found.outcome.norms), max(found.outcome.norms)
    normal = found.outcome.kind is not Kind.NOT_NORMALIZED
    found.steps.append(
        Step(name="values", state="pass" if normal else "findings", detail=f"lengths {low:.4g} to {high:.4g}")
    )
    heavy = plan.full or is_loopback(found.endpoint.url)
    await Quality(caller, found, plan, texts, word, heavy=heavy).all()
    if plan.samples:
        await _samples(caller, found, plan)


async def _samples(caller: Caller, found: Measured, plan: Plan) -> None:
    sampled = await sample(caller, plan.samples, plan.budget, found.thresholds)
    found.sampled = sampled
    state = "findings" if sampled.failed or sampled.differing else "unknown" if sampled.unfinished else "pass"
    detail = f"{sampled.tried} stored texts tried, {len(sampled.failed)} failed"
    if sampled.agreement is not None:
        agree = sampled.compared - len(sampled.differing)
        detail += f"; {agree} of {sampled.compared} stored vectors agree with new ones"
    found.steps.append(Step(name="samples", state=state, detail=detail))  # type: ignore[arg-type]


async def _refused(caller: Caller, found: Measured, plan: Plan, texts: Sequence[str], factory: Factory) -> None:
    why = MEANINGS[found.outcome.kind].sentence
    found.steps.extend(Step(name=name, state="skipped", detail=why) for name in ("values", *Quality.NAMES))
    if found.outcome.kind in _SETTLED:
        return
    found.refinement = await refine(caller.endpoint, found.outcome, texts, factory, plan.experiments)
    found.calls += len(found.refinement.experiments)


async def _names(found: Measured, resolver: Resolve) -> None:
    if found.outcome.via_proxy:
        return
    better = await loopback_name(found.endpoint, resolver)
    parts = split(found.endpoint.url)
    if better and parts is not None:
        found.remarks.append(
            Remark(
                name="loopback-name",
                measured=f"127.0.0.1 is answered, and not every address that {parts.hostname} stands for",
                evidence=(("write", better),),
            )
        )


async def _identity(found: Measured, plan: Plan) -> None:
    reached = found.outcome.status is not None
    if plan.identify and reached:
        found.identity = await identify(found.endpoint)
        found.calls += len(found.identity.asked)
    elif found.outcome.kind is Kind.WRONG_CONTRACT and found.outcome.stage is Stage.HEAD:
        # which server it is decides what to write, so it is asked, and the question counts as an experiment
        room = plan.experiments - len(found.refinement.experiments)
        if room >= 5:
            found.identity = await identify(found.endpoint)
            found.calls += len(found.identity.asked)
    found.identity = with_role(found.identity or Identity(), plan.role, found.outcome, found.separation)


def _remarks(found: Measured, waited: float | None) -> None:
    """What the calls together say, beside the steps."""
    outcome, timeout = found.outcome, found.endpoint.timeout
    if waited is not None and (slow := max(waited, outcome.elapsed)) > timeout > 0:
        found.remarks.append(
            Remark(
                name="slow-start",
                measured=f"ready after {slow:.0f} s; CPersona gives up after {timeout:g} s",
                kind=Kind.TIMEOUT,
            )
        )
    if found.dropped:
        found.remarks.append(
            Remark(
                name="unstable",
                measured=f"{found.dropped} of {found.calls} calls failed and went through when repeated",
                kind=Kind.UNSTABLE,
            )
        )
    if outcome.ok and not outcome.server_view.ok:
        _server_differs(found)
    if outcome.server_view.leaks:
        found.remarks.append(
            Remark(name="key-shown", measured="the message the server records for this carries the key")
        )
    asked, served = found.endpoint.model, outcome.model
    if found.endpoint.mode == Mode.API and served and asked and plain_name(asked) != plain_name(served):
        found.remarks.append(
            Remark(name="other-model", measured=f"asked for {asked}, answered by {served}", kind=Kind.MODEL_MISMATCH)
        )


def _server_differs(found: Measured) -> None:
    view = found.outcome.server_view
    if found.endpoint.mode == Mode.API and not found.endpoint.key:
        found.remarks.append(
            Remark(
                name="key-needed",
                measured="the server answers without a key, and CPersona cannot call it without one",
                kind=Kind.CONFIG_CREDENTIAL,
            )
        )
        return
    said = view.error or view.crash or "nothing"
    found.remarks.append(
        Remark(name="server-differs", measured=f"answered here, and CPersona would record: {said}", fatal=True)
    )
