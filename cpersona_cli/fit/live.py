"""The endpoint as it answers now: a width that two calls agree on, what it makes of known texts, and what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cpersona_cli.embedding.calling import Factory
from cpersona_cli.embedding.capabilities import Stated, capabilities
from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.embedding.measured import Clock, Measured, Plan
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.probe import measure
from cpersona_cli.fit.model import Live
from cpersona_cli.text import redact, safe

Claims = Sequence[tuple[str, int]]


async def answer(
    endpoint: Endpoint,
    *,
    seconds: float,
    factory: Factory,
    clock: Clock,
    wait: float = 0.0,
    stated: Claims = (),
) -> tuple[Live, Measured | None]:
    """A few short texts of our own, sent several times. Never raises but for cancellation.

    After ``seconds`` the endpoint counts as silent, and there is no ``Measured``.
    """
    timeout = min(endpoint.timeout, seconds) if endpoint.timeout > 0 else None
    plan = Plan(timeout=timeout, light=True, wait=min(wait, seconds), experiments=0, budget=seconds)
    said = Stated()
    try:
        async with asyncio.timeout(seconds):
            measured = await measure(endpoint, plan, factory, clock=clock)
            if measured.outcome.ok:
                said = await capabilities(endpoint)
    except TimeoutError:
        return _silent(endpoint, stated), None
    return _live(endpoint, measured, said, stated), measured


def _live(endpoint: Endpoint, measured: Measured, said: Stated, stated: Claims) -> Live:
    outcome = measured.outcome
    agreed = outcome.ok and measured.repeat is not None and measured.repeat > 0
    claims = [*stated, *([("GET /capabilities", said.dimensions)] if said.dimensions else [])]
    claims += [("its own reply", outcome.stated_dim)] if outcome.stated_dim else []
    view = outcome.server_view
    return Live(
        address=endpoint.address,
        mode=safe(endpoint.mode, 20),
        call=outcome.kind,
        sentence=_sentence(measured),
        dim=outcome.dim if agreed else None,
        model=safe(said.model, 100) or outcome.model,
        asked=safe(endpoint.model, 100) if endpoint.mode == Mode.API else "",
        configured=_configured(endpoint),
        fingerprint=safe(said.fingerprint, 200),
        stated=tuple(claims),
        recorded=view.ok,
        error=safe(redact(view.error or view.crash, endpoint.secrets)),
        calls=measured.calls + bool(said.fingerprint or said.why),
    )


def _sentence(measured: Measured) -> str:
    """What happened, and what the server itself said of it."""
    outcome = measured.outcome
    said = MEANINGS[outcome.kind].sentence
    if outcome.ok and outcome.kind not in {Kind.ZERO_VECTOR, Kind.CONSTANT_VECTOR}:
        if measured.repeat is None:
            said = "the first call was answered, and the same call again was not"
        elif measured.repeat <= 0:
            said = "two calls with the same texts agree on nothing"
    return f"{said}, “{outcome.server_message}”" if outcome.server_message else said


def _silent(endpoint: Endpoint, stated: Claims) -> Live:
    return Live(
        address=endpoint.address,
        mode=safe(endpoint.mode, 20),
        call=Kind.TIMEOUT,
        sentence=MEANINGS[Kind.TIMEOUT].sentence,
        configured=_configured(endpoint),
        stated=tuple(stated),
        recorded=False,
    )


def _configured(endpoint: Endpoint) -> str:
    """The name the settings give; the server's default for it says nothing."""
    return safe(endpoint.model, 100) if endpoint.named or endpoint.mode == Mode.API else ""
