"""What a misfit costs: the memories that recall by meaning cannot find, and what the server says about it."""

from __future__ import annotations

from collections.abc import Mapping

from cpersona_cli.embedding.kinds import Kind as CallKind
from cpersona_cli.fit.model import TABLES, AgentCost, Live, State
from cpersona_cli.store.model import Census, Defect, Form


def lost(census: Census, dim: int | None, foreign: Mapping[str, int]) -> tuple[AgentCost, ...]:
    """Rows by agent that no query vector of ``dim`` dimensions can find, those with the most first.

    ``foreign`` counts rows of that width that are another model's. With ``dim`` unknown only rows without a readable
    vector are counted.
    """
    rows: dict[str, list[int]] = {}
    for group in census.of(*TABLES.values()):
        total, missing, width = rows.setdefault(group.agent, [0, 0, 0])
        none = group.form is not Form.VECTOR
        other = not none and dim is not None and group.width != dim
        rows[group.agent] = [total + group.rows, missing + none * group.rows, width + other * group.rows]
    costs = []
    for agent, (total, missing, width) in rows.items():
        strange = min(foreign.get(agent, 0), total - missing - width)
        costs.append(
            AgentCost(
                agent=agent,
                rows=total,
                lost=missing + width + strange,
                missing=missing,
                width=width,
                foreign=strange,
            )
        )
    return tuple(sorted(costs, key=lambda cost: (-cost.lost, -cost.rows, cost.agent)))


def damaged(census: Census) -> int:
    """Vectors that are all zeros or hold no finite numbers; estimated from those looked at, where not all were."""
    contents = census.contents
    found = sum(
        flaw.rows
        for flaw in contents.flaws
        if flaw.table in TABLES.values() and flaw.defect in {Defect.ZERO, Defect.NON_FINITE}
    )
    if not found or contents.complete or not contents.looked:
        return found
    return max(found, round(found * contents.total / contents.looked))


def advisory(live: Live | None, state: State) -> str:
    """What the server will tell the agent at the next recall (measured on 2.6.14; health.py)."""
    if live is None:
        return ""
    if live.call is CallKind.DISABLED:
        return "a hint at the first recall: no embedding backend is configured"
    if live.dim is None and not live.recorded:
        return f"a fault, once two calls in a row have failed{': ' if live.error else ''}{live.error}"
    if state is State.CHANGED:
        return (
            "nothing, if it was started after the change; one that has run since before it refuses every new vector, "
            "and after two of them calls the endpoint unreachable"
        )
    if state in {State.SWAPPED, State.DRIFTED}:
        return "nothing: it takes every vector of the right width for its own"
    return "nothing"
