"""Whose memories they are: agent ids and project ids, in the store and in what agents are told."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from cpersona_cli.install.instructions import Block, InstructionFile
from cpersona_cli.install.model import LaunchKind
from cpersona_cli.store.audit_model import Places
from cpersona_cli.text import nearest, plural, safe
from cpersona_cli.traps.model import Database, Facts, Finding, Needs, Repair, Severity, Trap
from cpersona_cli.traps.repairs import remove_variable
from cpersona_cli.traps.subject import measured, readable

# Letters of other scripts that look like Latin ones; NFKC leaves them alone.
_LISTED = 6  # names shown of a longer list
_LOOK_ALIKES = str.maketrans("асеорхуіѕјһԁɡαοеνρτικ", "aceopxyisjhdgaoevptik")


def folded(name: str) -> str:
    """``name`` as a hurried reader sees it: no case, every separator a ``-``, look-alike letters as Latin."""
    text = unicodedata.normalize("NFKC", name).casefold().translate(_LOOK_ALIKES)
    return "-".join("".join(c if c.isalnum() else " " for c in text).split())


def _alike(names: Iterable[str]) -> list[list[str]]:
    """Groups of two and more names that differ only to a machine."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(folded(name), []).append(name)
    return [sorted(group) for group in groups.values() if len(group) > 1]


def _rows(counts: Mapping[str, int], names: Iterable[str], episodes: Mapping[str, int] | None = None) -> str:
    """The names with most rows, each with its number of memories, or of episodes where it has no memory."""
    ordered = sorted(names, key=lambda name: (-counts.get(name, 0), name))
    listed = [f"{_quoted(name)} with {_amount(name, counts, episodes or {})}" for name in ordered[:_LISTED]]
    more = len(ordered) - _LISTED
    return ", ".join([*listed, f"{more} more"] if more > 0 else listed)


def _amount(name: str, memories: Mapping[str, int], episodes: Mapping[str, int]) -> str:
    rows = memories.get(name, 0)
    if not rows and episodes.get(name):
        return plural(episodes[name], "episode")
    return plural(rows, "memory", "memories")


def _along(places: Places, axis: int) -> dict[str, int]:
    """Rows by agent (0), project (1) or channel (2)."""
    counts: dict[str, int] = {}
    for place, rows in places.items():
        counts[place[axis]] = counts.get(place[axis], 0) + rows
    return counts


def _quoted(name: str) -> str:
    return f"'{safe(name, 80)}'"


def policy_blocks(facts: Facts) -> Iterator[tuple[InstructionFile, Block]]:
    """Policy blocks in files that a client with a registration loads."""
    clients = {registration.client for registration in facts.active}
    for file in facts.instructions.files:
        if clients.intersection(file.clients):
            for block in file.blocks:
                yield file, block


def _named(facts: Facts) -> dict[str, None]:
    """Every agent id that some always-loaded file, or the plugin, tells an agent to use."""
    ids = dict.fromkeys(chain.from_iterable(block.agents for _, block in policy_blocks(facts)))
    plugin = facts.instructions.plugin
    return {**ids, plugin.agent: None} if plugin else ids


def databases_of(facts: Facts, clients: Iterable[str]) -> list[Database]:
    wanted = set(clients)
    return [
        database
        for database in facts.databases
        if database.reading.agents and any(t.registration.client in wanted for t in database.targets)
    ]


def _agent_without_memories(facts: Facts) -> Iterator[Finding]:
    named = _named(facts)
    for file, block in policy_blocks(facts):
        for database in databases_of(facts, file.clients):
            agents = database.reading.agents
            episodes = _along(database.reading.audit.episodes, 0)
            unclaimed = [agent for agent in agents if agent not in named]
            for agent in block.agents:
                if agent in agents or agent in episodes or not unclaimed:
                    continue
                into = nearest(agent, unclaimed) or max(unclaimed, key=lambda name: agents[name])
                sure = folded(into) == folded(agent) or _all_told(facts, database)
                yield Finding(
                    about=agent,
                    place=file.at(block.agent_line),
                    subject=str(file.path),
                    severity=None if sure else Severity.HINT,
                    measured=f"agent_id {_quoted(agent)} has no memories in {database.path}, which holds "
                    f"{_rows(agents, unclaimed)} that no instruction file names",
                    repair=Repair(
                        prose=f"if {into!r} is the right id, write it here; if {agent!r} is, ask the agent to move the "
                        "memories with the tool call below (look at its dry run first)",
                        edit=f'agent_id="{into}"',
                        commands=(_merge(into, agent),),
                        place=file.at(block.agent_line),
                    ),
                )


def _all_told(facts: Facts, database: Database) -> bool:
    """Whether every client that opens ``database`` is told an id by some file: then an id of no file has no reader."""
    told = {client for file, block in policy_blocks(facts) if block.agents for client in file.clients}
    return {target.registration.client for target in database.targets} <= told


def _merge(source: str, target: str) -> str:
    return f"merge_memories(source_agent_id={source!r}, target_agent_id={target!r}, mode='move', dry_run=true)"


def _agent_variants(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "agents", "episodes")
    agents, episodes = reading.agents, _along(reading.audit.episodes, 0)
    for group in _alike({**agents, **episodes}):
        keep = max(group, key=lambda name: (agents.get(name, 0), name))
        yield Finding(
            about=keep,
            measured=f"{_rows(agents, group, episodes)}: the same name in {plural(len(group), 'spelling')}",
            repair=Repair(
                prose=f"keep {keep!r}: ask the agent to merge the others into it, then run it again without dry_run",
                commands=tuple(_merge(name, keep) for name in group if name != keep),
            ),
        )


def _agent_in_server(facts: Facts) -> Iterator[Finding]:
    registration = facts.target.registration
    for variable in (*registration.variables, *registration.launch.variables):
        if variable.name == "CPERSONA_AGENT_ID" and registration.launch.kind is not LaunchKind.PROCESS:
            yield Finding(
                about=variable.name,
                place=variable.place,
                measured=f"CPERSONA_AGENT_ID={variable.text} in the server's environment",
                repair=remove_variable(registration, variable.name, at=variable.place),
            )


def _literal_auto(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "projects", "auto_project_rows")
    count, rows = reading.projects.get("@auto", 0), reading.auto_project_rows
    if count or rows:
        what = plural(count, "memory", "memories") if count >= rows else plural(rows, "row")
        others = "" if count >= rows else f" ({plural(count, 'memory', 'memories')}, the others episodes or profiles)"
        yield Finding(
            about="memories.project_id",
            measured=f"{what} under the project id '@auto', taken literally{others}",
            repair=Repair(
                prose="create ~/.cpersona/operating-context.toml (or repair it) with a line for the agent under "
                "[defaults], restart the clients, then ask the agent to store those memories again under their project",
                edit='version = 1\n[defaults]\n"AGENT_ID" = "PROJECT_ID"',
            ),
        )


def _project_variants(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "projects", "episodes")
    projects, episodes = reading.projects, _along(reading.audit.episodes, 1)
    for group in _alike(name for name in {**projects, **episodes} if name and name != "@auto"):
        keep = max(group, key=lambda name: projects.get(name, 0))
        yield Finding(
            about=group[0],
            measured=f"{_rows(projects, group, episodes)}: the same project in {plural(len(group), 'spelling')}",
            repair=Repair(
                prose="use one spelling from now on: list it in registry.project_ids of the operating context, so that "
                "the server warns of any other; check_health names the rows (axis_hygiene)",
                edit=f'[registry]\nproject_ids = ["{keep}"]\nenforce = "warn"',
            ),
        )


def _channel_variants(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "memories", "episodes")
    channels, episodes = _along(reading.audit.memories, 2), _along(reading.audit.episodes, 2)
    for group in _alike(name for name in {**channels, **episodes} if name):
        keep = max(group, key=lambda name: channels.get(name, 0))
        yield Finding(
            about=group[0],
            measured=f"{_rows(channels, group, episodes)}: the same channel in {plural(len(group), 'spelling')}",
            repair=Repair(prose=f"have every client write {_quoted(keep)}; what was stored stays where it is"),
        )


TRAPS = (
    Trap(
        id="identity.agent-without-memories",
        title="An agent is told an id that has no memories, and memories lie under an id nobody is told",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_agent_without_memories,
        expected="the id in the policy block is the one the memories are stored under, letter for letter",
        costs="recall comes back empty, without an error: ids are compared exactly",
        repair="write one id everywhere, or merge the memories with merge_memories",
        source="the cpersona-memory skill, step 3; recall filters on the exact agent_id",
        rows=("E1",),
    ),
    Trap(
        id="identity.agent-spelling",
        title="One agent under several spellings",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_agent_variants,
        expected="one spelling for one agent",
        costs="each spelling is a memory of its own; a question to one never sees the others",
        repair="keep one spelling and merge the others into it with merge_memories",
        source="agent ids are compared exactly; case, spaces and look-alike letters count",
        rows=("E2",),
    ),
    Trap(
        id="identity.agent-in-server",
        title="The agent id is set where the server would have to read it",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_agent_in_server,
        expected="the id stands in the policy block, or in the plugin's option",
        costs="it has no effect: the server takes the id of every call from the call itself",
        repair="remove it here, and name the id in the policy block",
        source="2.6.14 has no reader of CPERSONA_AGENT_ID; only the agent plugin reads it",
        rows=("E5",),
    ),
    Trap(
        id="identity.literal-auto",
        title="Memories stored under the project id “@auto”",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_literal_auto,
        expected="“@auto” is replaced by the agent's default project, which needs an operating context",
        costs="these rows are found under no real project",
        repair="repair the operating context, then store the rows under their project",
        source="operating_context.check_project_id passes every value through while the context is dormant",
        rows=("E6",),
    ),
    Trap(
        id="identity.project-spelling",
        title="One project under several spellings",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_project_variants,
        expected="one spelling for one project",
        costs="a recall within one spelling misses what was stored under the other",
        repair="list the right spelling in the operating context's registry",
        source="project ids are compared exactly; check_health calls it axis_hygiene",
        rows=("E9",),
    ),
    Trap(
        id="identity.channel-spelling",
        title="One channel under several spellings",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_channel_variants,
        expected="one spelling for one channel",
        costs="a recall within one spelling misses what was stored under the other",
        repair="have every client write the same channel",
        source="channels are compared exactly",
        rows=("E9",),
    ),
)
