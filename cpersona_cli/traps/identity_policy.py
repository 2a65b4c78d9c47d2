"""What agents are told in every session: the policy block, the plugin and its hooks, the memory index."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.install.instructions import INDEX_BYTES, INDEX_LINES, NEWEST_POLICY, Block, InstructionFile
from cpersona_cli.text import plural
from cpersona_cli.traps.identity import databases_of, policy_blocks
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, SkipError, Trap

_SKILL = "say “set up the CPersona policy block” to the agent (step 4 of its cpersona-memory skill)"


def _policy_missing(facts: Facts) -> Iterator[Finding]:
    told = {client for file, _ in policy_blocks(facts) for client in file.clients}
    if facts.instructions.plugin:
        told.add("claude-code")
    for client, registration in {r.client: r for r in facts.active}.items():
        if client in facts.instructions.searched and client not in told:
            yield Finding(
                subject=registration.client_title,
                about=client,
                place=registration.place,
                measured="no always-loaded instruction file holds a CPersona policy block"
                + "".join(f"; {f.path}: {f.problem}" for f in facts.instructions.of(client) if f.problem),
                repair=Repair(prose=f"{_SKILL}; leave it out if you declined it on purpose"),
            )


def _placeholder(facts: Facts) -> Iterator[Finding]:
    for file, block in policy_blocks(facts):
        if block.placeholder:
            yield Finding(
                subject=str(file.path),
                about="agent_id",
                place=file.at(block.placeholder),
                measured="the policy block still says <AGENT_ID>",
                repair=Repair(
                    prose=f"in {file.at(block.placeholder)}, put the agent id in place of <AGENT_ID>",
                    edit=f'agent_id="{_usual_agent(facts, file)}"',
                    place=file.at(block.placeholder),
                ),
            )


def _usual_agent(facts: Facts, file: InstructionFile) -> str:
    """The id with most memories in a database this file's clients open, else the client's own name."""
    counts = [(n, a) for d in databases_of(facts, file.clients) for a, n in d.reading.agents.items()]
    return max(counts)[1] if counts else file.clients[0]


def _no_agent(facts: Facts) -> Iterator[Finding]:
    for file, block in policy_blocks(facts):
        if not block.agents and not block.placeholder:
            yield Finding(
                subject=str(file.path),
                about="agent_id",
                place=file.at(block.begin),
                measured="the policy block names no agent_id",
                repair=Repair(prose=_SKILL, place=file.at(block.begin)),
            )


def _policy_broken(facts: Facts) -> Iterator[Finding]:
    for file, block in policy_blocks(facts):
        if block.end is None:
            yield Finding(
                subject=str(file.path),
                about="END",
                place=file.at(block.begin),
                measured="BEGIN cpersona-policy has no END cpersona-policy after it",
                repair=Repair(
                    prose="add the end marker after the block's last line",
                    edit="<!-- END cpersona-policy -->",
                    place=file.at(block.begin),
                ),
            )


def _policy_twice(facts: Facts) -> Iterator[Finding]:
    seen: dict[str, tuple[InstructionFile, Block]] = {}
    for file, block in policy_blocks(facts):
        first = seen.setdefault(str(file.path), (file, block))[1]
        if first is not block:
            yield Finding(
                subject=str(file.path),
                about="duplicate",
                place=file.at(block.begin),
                measured=f"a second policy block; the first begins on line {first.begin}",
                repair=Repair(
                    prose=f"remove one of the two, from line {block.begin} to line {block.end or '?'}",
                    place=file.at(block.begin),
                ),
            )


def _policy_disagrees(facts: Facts) -> Iterator[Finding]:
    by_client: dict[str, list[tuple[InstructionFile, Block]]] = {}
    for file, block in policy_blocks(facts):
        for client in file.clients:
            by_client.setdefault(client, []).append((file, block))
    titles = {r.client: r.client_title for r in facts.active}
    for client, title in titles.items():
        spoken = [(agent, file, block) for file, block in by_client.get(client, ()) for agent in block.agents]
        if len({agent for agent, _, _ in spoken}) > 1:
            agent, file, block = spoken[-1]
            yield Finding(
                subject=title,
                about="agent_id",
                place=file.at(block.agent_line),
                measured="; ".join(f"{f.at(b.agent_line)} says {a!r}" for a, f, b in spoken),
                repair=Repair(
                    prose="write the same agent id everywhere",
                    edit=f'agent_id="{agent}"',
                    place=file.at(block.agent_line),
                ),
            )


def _policy_old(facts: Facts) -> Iterator[Finding]:
    for file, block in policy_blocks(facts):
        if block.version is None or block.version < NEWEST_POLICY:
            version = "no version" if block.version is None else f"version {block.version}"
            yield Finding(
                subject=str(file.path),
                about="version",
                place=file.at(block.begin),
                measured=f"the policy block has {version}; the newest known is {NEWEST_POLICY}",
                repair=Repair(
                    prose=f"{_SKILL}; it replaces what stands between the markers", place=file.at(block.begin)
                ),
            )


def _plugin_agent(facts: Facts) -> Iterator[Finding]:
    plugin = facts.instructions.plugin
    if plugin is None:
        raise SkipError("CPersona's plugin for Claude Code is not switched on")
    for file in facts.instructions.of("claude-code"):
        for block in file.blocks:
            other = next((agent for agent in block.agents if agent != plugin.agent), None)
            if other is not None:
                yield Finding(
                    subject="Claude Code plugin",
                    about="agent_id",
                    place=file.at(block.agent_line),
                    measured=f"the plugin's session note says {plugin.agent!r} ({plugin.agent_source}), "
                    f"the policy block in {file.at(block.agent_line)} says {other!r}",
                    repair=Repair(
                        prose=f"in Claude Code, run /config and set the plugin's agent_id to {other!r}",
                        commands=("/config",),
                        place=plugin.place,
                    ),
                )


def _hooks_doubled(facts: Facts) -> Iterator[Finding]:
    plugin = facts.instructions.plugin
    if plugin is None or plugin.hooks_disabled:
        return
    for hook in facts.instructions.hooks:
        yield Finding(
            subject="Claude Code hooks",
            about=f"{hook.event} {hook.command}",
            place=hook.place,
            measured=f"a {hook.event} hook of CPersona, registered by hand, beside the plugin {plugin.name}",
            repair=Repair(prose=f"remove the hook in {hook.place}; the plugin brings its own", place=hook.place),
        )


def _index_full(facts: Facts) -> Iterator[Finding]:
    for index in facts.instructions.indexes:
        share = max(index.size / INDEX_BYTES, index.lines / INDEX_LINES)
        if share >= 0.8:
            over = share > 1
            yield Finding(
                subject=str(index.path),
                about="size",
                place=None,
                severity=None if over else Severity.HINT,
                measured=f"{index.size} bytes in {plural(index.lines, 'line')}, "
                + ("beyond what is loaded" if over else f"{share:.0%} of what is loaded"),
                repair=Repair(prose=f"shorten {index.path}: one line a memory, the text itself in the store"),
            )


_SOURCE = "the policy block standard of the cpersona-memory skill, steps 4 and 5"

TRAPS = (
    Trap(
        id="identity.policy-missing",
        title="No policy block in any file the agent always reads",
        severity=Severity.HINT,
        needs=Needs.MACHINE,
        detect=_policy_missing,
        expected="a policy block with the agent id in the client's always-loaded file",
        costs="a new session does not know that it has a memory, nor which agent id holds it",
        repair="let the skill write the block, or leave it out on purpose",
        source=_SOURCE,
        rows=("E3",),
    ),
    Trap(
        id="identity.policy-placeholder",
        title="The placeholder for the agent id was left in the policy block",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_placeholder,
        expected="a real agent id in place of <AGENT_ID>",
        costs="the agent guesses an id, or uses the placeholder itself, and its memories split",
        repair="put the id in place of <AGENT_ID>",
        source=_SOURCE,
        rows=("E3",),
    ),
    Trap(
        id="identity.policy-without-agent",
        title="A policy block that names no agent id",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_no_agent,
        expected='the block says which agent_id to use: agent_id="NAME"',
        costs="every session chooses an id of its own, and finds nothing of the others",
        repair="let the skill write the block anew",
        source=_SOURCE,
        rows=("E3",),
    ),
    Trap(
        id="identity.policy-unclosed",
        title="A policy block without its end marker",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_policy_broken,
        expected="BEGIN cpersona-policy and END cpersona-policy, one of each",
        costs="the next update of the block cannot tell where it ends, and adds a second one or eats your text",
        repair="add the end marker",
        source=_SOURCE,
        rows=("E3",),
    ),
    Trap(
        id="identity.policy-twice",
        title="Two policy blocks in one file",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_policy_twice,
        expected="one block in a file",
        costs="the agent reads two sets of rules, one of them out of date",
        repair="remove the older block",
        source=_SOURCE,
        rows=("E3",),
    ),
    Trap(
        id="identity.policy-disagrees",
        title="One client is told several agent ids",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_policy_disagrees,
        expected="every file that one client loads names the same agent id",
        costs="memories go to whichever id the agent happens to follow",
        repair="write the same agent id in every block",
        source=_SOURCE,
        rows=("E3",),
    ),
    Trap(
        id="identity.policy-old",
        title="A policy block of an earlier version",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_policy_old,
        expected=f"cpersona-policy v{NEWEST_POLICY}",
        costs="the agent uses tools the way an earlier release wanted them used",
        repair="let the skill replace the block",
        source=_SOURCE,
        rows=("E3",),
    ),
    Trap(
        id="identity.plugin-agent",
        title="The plugin and the policy block name different agent ids",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_plugin_agent,
        expected="one id in both places",
        costs="half of the memories are stored under one id, half under the other",
        repair="set the plugin's agent_id option to the id of the policy block",
        source="the cpersona-memory skill, step 3: the option, else CPERSONA_AGENT_ID, else “default”",
        rows=("E4",),
    ),
    Trap(
        id="identity.hooks-doubled",
        title="CPersona's hooks run twice",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_hooks_doubled,
        expected="the plugin's hooks, or hooks registered by hand, not both",
        costs="the agent gets every note twice",
        repair="remove the hand-registered hooks, or switch the plugin's off with CPERSONA_HOOKS_DISABLE",
        source="the server's README, on hooks that ship with the plugin since 2.6.12",
        rows=("E10",),
    ),
    Trap(
        id="identity.memory-index",
        title="The always-loaded memory index is too long",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_index_full,
        expected=f"at most {INDEX_BYTES} bytes and {INDEX_LINES} lines; shorten it at 80 %",
        costs="what stands beyond the limit is not loaded, and nothing says so",
        repair="shorten MEMORY.md to one line a memory",
        source="the skill's reference on an always-loaded index; measured limits of Claude Code",
        rows=("E11",),
    ),
)
