"""The server's own health rule: two failed calls in a row are a fault, one success clears it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Health
from cpersona_cli.embedding.model import Outcome

State = Literal["unknown", "healthy", "hint", "fault"]

#: Consecutive failures from which the server tells its agent.
THRESHOLD = 2


def health(outcomes: Iterable[Outcome]) -> Health:
    """The state after each call, as ``cpersona.health`` of 2.6.14 keeps it from its own view of the outcome.

    Mode none is a hint at once. A failure that is the first in a row changes nothing: recalls are degraded, and
    nobody is told. A call that would crash the server ends there; its failure counts.
    """
    state: State = "unknown"
    failures = 0
    calls = []
    for outcome in outcomes:
        view = outcome.server_view
        if outcome.kind is Kind.DISABLED:
            state = "hint"
        elif view.ok:
            state, failures = "healthy", 0
        else:
            failures += 1
            state = "fault" if failures >= THRESHOLD else state
        calls.append((outcome.kind, state))
    return Health(state=state, calls=tuple(calls))
