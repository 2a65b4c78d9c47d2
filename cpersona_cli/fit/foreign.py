"""How many rows of the right width are another model's, by table and agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from cpersona_cli.embedding.likeness import Likeness
from cpersona_cli.fit.labels import Standing, standing
from cpersona_cli.fit.model import TABLES, Compared, Live, Located
from cpersona_cli.store.model import Census, Form, Group, Kind

Agents = Mapping[str, int]
#: Vectors by agent with ids above the one and not above the other number.
Count = Callable[[Kind, int, int | None], Agents]


def foreign(
    census: Census, live: Live | None, count: Count, *, compared: Sequence[Compared], located: Sequence[Located]
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
            agents = _measured(groups, rows, changes, count)
        else:
            agents = _total(group for group in groups if standing(group.label, live) is Standing.OTHER)
        if agents:
            found[kind] = agents
    return found


def _measured(groups: Sequence[Group], rows: Sequence[Compared], located: Located | None, count: Count) -> Agents:
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
        return _between(located, count)
    share = len(other) / len(rows)
    return {agent: round(total * share) for agent, total in _total(groups).items()}


def _between(located: Located, count: Count) -> Agents:
    """The rows of every stretch between two changes that is another model's."""
    agents: dict[str, int] = {}
    breaks = located.breaks
    stretches = [(0, breaks[0].before), *((change.before.id, change.after) for change in breaks)]
    ends = [change.before.id for change in breaks]
    for (after, row), upto in zip(stretches, [*ends, None], strict=True):
        if row.likeness is Likeness.OTHER:
            for agent, rows in count(located.kind, after, upto).items():
                agents[agent] = agents.get(agent, 0) + rows
    return agents


def _total(groups: Iterable[Group]) -> Agents:
    agents: dict[str, int] = {}
    for group in groups:
        agents[group.agent] = agents.get(group.agent, 0) + group.rows
    return agents
