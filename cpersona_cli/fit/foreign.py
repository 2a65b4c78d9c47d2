"""How many rows of the right width are another model's, by table and agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cpersona_cli.embedding.likeness import Likeness
from cpersona_cli.fit.labels import Standing, standing
from cpersona_cli.fit.model import TABLES, Compared, Live, Located
from cpersona_cli.store.model import Census, Form, Group, Kind, Store

Agents = Mapping[str, int]


def foreign(
    store: Store,
    census: Census,
    live: Live | None,
    *,
    compared: Sequence[Compared],
    located: Sequence[Located],
    deadline: float,
) -> Mapping[Kind, Agents]:
    """Rows told to be another model's; exact where labels or the changes of writer tell, else by the sample's share.

    Without a comparison the labels decide. Raises ``StoreError``.
    """
    if live is None or live.dim is None:
        return {}
    found = {}
    measured = any(row.cosine is not None for row in compared)
    for kind, table in TABLES.items():
        groups = [group for group in census.of(table) if group.form is Form.VECTOR and group.width == live.dim]
        if measured:
            rows = [row for row in compared if row.kind is kind and row.cosine is not None]
            changes = next((place for place in located if place.kind is kind), None)
            agents = _measured(store, groups, rows, changes, deadline)
        else:
            agents = _total(group for group in groups if standing(group.label, live) is Standing.OTHER)
        if agents:
            found[kind] = agents
    return found


def _measured(
    store: Store, groups: Sequence[Group], rows: Sequence[Compared], located: Located | None, deadline: float
) -> Agents:
    other = [row for row in rows if row.likeness is Likeness.OTHER]
    if not other:
        return {}
    if len(other) == len(rows):
        return _total(groups)
    theirs = {row.label for row in other}
    ours = {row.label for row in rows if row.likeness is not Likeness.OTHER}
    if not theirs & ours and {group.label for group in groups} <= theirs | ours:
        return _total(group for group in groups if group.label in theirs)
    if located is not None and located.breaks:
        return _between(store, located, deadline)
    share = len(other) / len(rows)
    return {agent: round(count * share) for agent, count in _total(groups).items()}


def _between(store: Store, located: Located, deadline: float) -> Agents:
    """The rows of every stretch between two changes that is another model's."""
    agents: dict[str, int] = {}
    breaks = located.breaks
    stretches = [(0, breaks[0].before), *((change.before.id, change.after) for change in breaks)]
    ends = [change.before.id for change in breaks]
    for (after, row), upto in zip(stretches, [*ends, None], strict=True):
        if row.likeness is Likeness.OTHER:
            for agent, count in store.count(located.kind, after=after, upto=upto, deadline=deadline).items():
                agents[agent] = agents.get(agent, 0) + count
    return agents


def _total(groups: Iterable[Group]) -> Agents:
    agents: dict[str, int] = {}
    for group in groups:
        agents[group.agent] = agents.get(group.agent, 0) + group.rows
    return agents
