"""Agent ids, project ids, policy blocks, side files: when they split a memory and when they do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trap_facts import Graded, instructions, policy, retarget, told
from support.traps import facts, reading, registration

from cpersona_cli.install.instructions import Hook, InstructionFile, MemoryIndex, Plugin
from cpersona_cli.install.model import Place, Process
from cpersona_cli.install.sidefiles import AccessTable, Grant, OperatingContext, SideFile, SideFiles, SideState
from cpersona_cli.record import replace
from cpersona_cli.store.audit_model import Audit
from cpersona_cli.store.reading import Reading
from cpersona_cli.traps.identity import folded
from cpersona_cli.traps.model import Facts

DB = "/home/u/cpersona.db"
ENV = {"CPERSONA_DB_PATH": DB}
HERE = Place(words="a test")


def store(agents: dict[str, int] | None = None, projects: dict[str, int] | None = None, **fields: object) -> Reading:
    return reading(DB, agents=agents or {}, projects=projects or {}, **fields)  # type: ignore[arg-type]


def read(*files: InstructionFile, agents: dict[str, int] | None = None, others: str = "", **fields: object) -> Facts:
    more = [registration(ENV, client=client) for client in others.split()]
    return told(facts(ENV, reading=store(agents), others=more), *files, **fields)


def side(**fields: object) -> Facts:
    return retarget(facts(ENV, reading=store(holders=(Process(pid=7, started=100.0),))), files=SideFiles(**fields))  # type: ignore[arg-type]


def acl(*clients: Grant, state: SideState = "read", problem: str = "", line: int | None = None) -> AccessTable:
    return AccessTable(
        text="/a.json", path=Path("/a.json"), place=HERE, state=state, problem=problem, line=line, clients=clients
    )


def context(state: SideState = "read", problem: str = "", summary: int = 10, mtime: float = 50.0) -> OperatingContext:
    return OperatingContext(
        text="~/.cpersona/operating-context.toml",
        path=Path("/c.toml"),
        place=HERE,
        state=state,
        problem=problem,
        summary=summary,
        mtime=mtime,
    )


def ledger(state: SideState, problem: str = "") -> SideFile:
    return SideFile(text="/l.json", path=Path("/l.json"), place=HERE, state=state, problem=problem)


def plugin(agent: str = "claude-code", *, disabled: bool = False) -> Plugin:
    return Plugin(name="cpersona@cpersona", place=HERE, agent=agent, agent_source="a test", hooks_disabled=disabled)


HOOK = Hook(event="Stop", command="cpersona-note", place=Place(file=Path("/s.json"), line=3))
LOCAL = Grant(client="local", agents={"claude-code": "read-write"})
HTTP = {**ENV, "CPERSONA_TRANSPORT": "streamable-http"}

IDS = (
    Graded(
        "identity.agent-without-memories",
        "an id nobody stores under",
        read(instructions(policy("claude")), agents={"claude-code": 200}),
        says=(
            "'claude' has no memories",
            "'claude-code' with 200 memories",
            "merge_memories(",
            'agent_id="claude-code"',
        ),
        severity="warning",
    ),
    Graded(
        "identity.agent-without-memories",
        "the right id",
        read(instructions(policy()), agents={"claude-code": 200}),
        "pass",
    ),
    Graded(
        "identity.agent-without-memories",
        "a new store",
        read(instructions(policy())),
        "pass",
    ),
    Graded(
        "identity.agent-without-memories",
        "a new client beside told ones",
        read(
            instructions(policy()),
            instructions(policy("codex"), "/home/u/.codex/AGENTS.md", "codex"),
            agents={"claude-code": 9},
            others="codex",
        ),
        "pass",
    ),
    Graded(
        "identity.agent-without-memories",
        "the other client may own the rows",
        read(instructions(policy("mine")), agents={"desktop": 9}, others="claude-desktop"),
        severity="hint",
    ),
    Graded(
        "identity.agent-without-memories",
        "only a spelling apart, whoever else is there",
        read(instructions(policy("Claude_Code")), agents={"claude-code": 9}, others="claude-desktop"),
        severity="warning",
    ),
    Graded(
        "identity.agent-without-memories",
        "an id of a client that has no registration",
        read(instructions(policy("x"), "/home/u/.gemini/GEMINI.md", "gemini-cli"), agents={"claude-code": 9}),
        "pass",
    ),
    Graded(
        "identity.agent-without-memories",
        "it has episodes",
        told(
            facts(ENV, reading=store({"atlas": 3}, audit=Audit(episodes={("claude-code", "", ""): 2}))),
            instructions(policy()),
        ),
        "pass",
    ),
    Graded(
        "identity.agent-spelling",
        "one has only episodes",
        facts(ENV, reading=store({"atlas": 3}, audit=Audit(episodes={("Atlas", "", ""): 2}))),
        says=("'atlas' with 3 memories", "'Atlas' with 2 episodes"),
        count=1,
    ),
    Graded(
        "identity.agent-spelling",
        "case, space and separator",
        facts(ENV, reading=store({"claude-code": 9, "Claude Code": 1, "claude_code ": 2, "codex": 4})),
        says=("in 3 spellings", "keep 'claude-code'", "'Claude Code' with 1 memory"),
        count=1,
        severity="warning",
    ),
    Graded(
        "identity.agent-spelling",
        "a Cyrillic letter",
        facts(ENV, reading=store({"claude": 9, "clаude": 1})),
        count=1,
        severity="warning",
    ),
    Graded(
        "identity.agent-spelling",
        "numbered agents are different agents",
        facts(ENV, reading=store({"agent-1": 9, "agent-2": 9, "agent-11": 3})),
        "pass",
    ),
    Graded(
        "identity.agent-without-memories",
        "a long list is cut",
        read(instructions(policy("me")), agents={f"agent {n}": n for n in range(9)}),
        says=("'agent 8' with 8 memories", "3 more"),
    ),
    Graded(
        "identity.agent-in-server",
        "set for the server",
        facts({**ENV, "CPERSONA_AGENT_ID": "me"}),
        says="CPERSONA_AGENT_ID=me",
        severity="hint",
    ),
    Graded("identity.agent-in-server", "not set", facts(ENV), "pass"),
    Graded(
        "identity.agent-in-server",
        "this process may be the plugin's own",
        facts({**ENV, "CPERSONA_AGENT_ID": "me"}, client="env"),
        "pass",
    ),
    Graded(
        "identity.literal-auto",
        "rows under @auto",
        facts(ENV, reading=store(projects={"@auto": 3, "work": 1})),
        says="3 memories",
        severity="warning",
    ),
    Graded(
        "identity.literal-auto",
        "in episodes alone",
        facts(ENV, reading=store(auto_project_rows=2)),
        says="2 rows under the project id '@auto', taken literally (0 memories, the others",
    ),
    Graded("identity.literal-auto", "none", facts(ENV, reading=store(projects={"": 3})), "pass"),
    Graded(
        "identity.project-spelling",
        "two spellings",
        facts(ENV, reading=store(projects={"My App": 1, "my-app": 7, "": 9, "@auto": 1})),
        says=('project_ids = ["my-app"]', "in 2 spellings"),
        count=1,
        severity="warning",
    ),
    Graded(
        "identity.project-spelling",
        "an episode's is another",
        facts(
            ENV,
            reading=store(
                projects={"my-app": 7}, audit=Audit(episodes={("a", "MyApp", ""): 1, ("a", "My App", ""): 2})
            ),
        ),
        says=("'My App' with 2 episodes", "'my-app' with 7 memories"),
    ),
    Graded(
        "identity.channel-spelling",
        "case",
        facts(
            ENV, reading=store(audit=Audit(memories={("a", "", "Desk"): 3, ("b", "x", "desk"): 4, ("a", "", ""): 9}))
        ),
        says=("'desk' with 4 memories, 'Desk' with 3 memories", "in 2 spellings", "write 'desk'"),
        severity="warning",
        count=1,
    ),
    Graded(
        "identity.channel-spelling",
        "different ones",
        facts(ENV, reading=store(audit=Audit(memories={("a", "", "desk"): 3, ("a", "", "bench"): 3}))),
        "pass",
    ),
    Graded(
        "identity.channel-spelling",
        "not all were counted",
        facts(ENV, reading=store(unmeasured=("memories",))),
        "unknown",
    ),
    Graded("identity.project-spelling", "one", facts(ENV, reading=store(projects={"app": 1, "": 9})), "pass"),
)

POLICY = (
    Graded("identity.policy-missing", "no file at all", read(), says="no always-loaded", severity="hint"),
    Graded("identity.policy-missing", "a block", read(instructions(policy())), "pass"),
    Graded("identity.policy-missing", "the plugin speaks", read(plugin=plugin()), "pass"),
    Graded(
        "identity.policy-missing",
        "a file that cannot be decoded",
        read(replace(instructions(""), problem="not UTF-8 at byte 0")),
        says="CLAUDE.md: not UTF-8",
        severity="hint",
    ),
    Graded(
        "identity.policy-missing",
        "a client without such a file",
        told(facts(ENV, client="claude-desktop")),
        "pass",
    ),
    Graded(
        "identity.policy-placeholder",
        "left standing",
        read(instructions(policy("<AGENT_ID>")), agents={"a": 1, "b": 5}),
        says=("CLAUDE.md:2", 'agent_id="b"'),
        severity="warning",
    ),
    Graded(
        "identity.policy-placeholder",
        "nothing stored yet",
        read(instructions(policy("<AGENT_ID>"))),
        says='agent_id="claude-code"',
        severity="warning",
    ),
    Graded("identity.policy-placeholder", "filled in", read(instructions(policy())), "pass"),
    Graded(
        "identity.policy-without-agent",
        "none named",
        read(instructions("BEGIN cpersona-policy v5\nEND cpersona-policy")),
        severity="warning",
    ),
    Graded("identity.policy-without-agent", "named", read(instructions(policy())), "pass"),
    Graded(
        "identity.policy-without-agent",
        "the placeholder is another trap's",
        read(instructions(policy("<AGENT_ID>"))),
        "pass",
    ),
    Graded(
        "identity.policy-unclosed",
        "no end",
        read(instructions('BEGIN cpersona-policy v5\nagent_id="a"')),
        says="<!-- END cpersona-policy -->",
        severity="warning",
    ),
    Graded("identity.policy-unclosed", "closed", read(instructions(policy())), "pass"),
    Graded(
        "identity.policy-twice",
        "two in one file",
        read(instructions(policy() * 2)),
        says=("the first begins on line 1", "from line 4 to line 6"),
        count=1,
        severity="warning",
    ),
    Graded(
        "identity.policy-twice",
        "the second without an end",
        read(instructions(f"{policy()}BEGIN cpersona-policy v4\n")),
        says="to line ?",
    ),
    Graded(
        "identity.policy-twice",
        "user and project",
        read(instructions(policy()), instructions(policy(), "/home/u/work/CLAUDE.md")),
        "pass",
    ),
    Graded(
        "identity.policy-disagrees",
        "user and project differ",
        read(instructions(policy()), instructions(policy("other"), "/home/u/work/CLAUDE.md")),
        says=("CLAUDE.md:2 says 'claude-code'", "says 'other'"),
        count=1,
        severity="warning",
    ),
    Graded(
        "identity.policy-disagrees",
        "each client its own",
        read(
            instructions(policy()), instructions(policy("codex"), "/home/u/.codex/AGENTS.md", "codex"), others="codex"
        ),
        "pass",
    ),
    Graded(
        "identity.policy-old",
        "version 4",
        read(instructions(policy(version=" v4"))),
        says="version 4",
        severity="warning",
    ),
    Graded("identity.policy-old", "no version", read(instructions(policy(version=""))), says="no version"),
    Graded("identity.policy-old", "the newest", read(instructions(policy())), "pass"),
    Graded("identity.policy-old", "a later one", read(instructions(policy(version=" v6"))), "pass"),
    Graded(
        "identity.plugin-agent",
        "default and another",
        read(instructions(policy()), plugin=plugin("default")),
        says=("'default'", "'claude-code'", "/config"),
        severity="warning",
    ),
    Graded("identity.plugin-agent", "the same", read(instructions(policy()), plugin=plugin()), "pass"),
    Graded("identity.plugin-agent", "no plugin", read(instructions(policy())), "skipped"),
    Graded(
        "identity.hooks-doubled", "both", read(plugin=plugin(), hooks=(HOOK,)), says="a Stop hook", severity="warning"
    ),
    Graded("identity.hooks-doubled", "the plugin's are off", read(plugin=plugin(disabled=True), hooks=(HOOK,)), "pass"),
    Graded("identity.hooks-doubled", "by hand alone", read(hooks=(HOOK,)), "pass"),
    Graded(
        "identity.memory-index",
        "too many bytes",
        read(indexes=(MemoryIndex(path=Path("/M"), size=25_001, lines=9),)),
        says="beyond what is loaded",
        severity="warning",
    ),
    Graded(
        "identity.memory-index",
        "too many lines",
        read(indexes=(MemoryIndex(path=Path("/M"), size=9, lines=201),)),
        severity="warning",
    ),
    Graded(
        "identity.memory-index",
        "nearly",
        read(indexes=(MemoryIndex(path=Path("/M"), size=20_000, lines=200),)),
        says="100%",
        severity="hint",
    ),
    Graded(
        "identity.memory-index", "small", read(indexes=(MemoryIndex(path=Path("/M"), size=19_999, lines=159),)), "pass"
    ),
)

FILES = (
    Graded(
        "identity.context-unusable",
        "broken",
        side(context=context("broken", "version must be 1")),
        says="version must be 1",
        severity="warning",
    ),
    Graded("identity.context-unusable", "absent", side(context=context("absent")), says="does not exist"),
    Graded("identity.context-unusable", "sound", side(context=context()), "pass"),
    Graded("identity.context-unusable", "none", side(), "skipped"),
    Graded(
        "identity.context-unusable", "not to be seen", side(context=context("unknown", "in a container")), "skipped"
    ),
    Graded(
        "identity.context-unusable",
        "a release without it",
        retarget(facts(ENV, version="2.4.41"), files=SideFiles(context=context("broken", "x"))),
        "pass",
    ),
    Graded(
        "identity.context-unusable",
        "the first release with it",
        retarget(facts(ENV, version="2.5.1"), files=SideFiles(context=context("broken", "x"))),
    ),
    Graded(
        "identity.context-long", "3001 characters", side(context=context(summary=3001)), says="3001", severity="warning"
    ),
    Graded("identity.context-long", "3000", side(context=context(summary=3000)), "pass"),
    Graded("identity.context-edited", "after the start", side(context=context(mtime=101.0)), severity="hint", count=1),
    Graded("identity.context-edited", "before", side(context=context(mtime=99.0)), "pass"),
    Graded("identity.context-edited", "none", side(), "pass"),
    Graded(
        "identity.acl-broken",
        "refused",
        side(acl=acl(state="broken", problem="grants must be", line=4)),
        says=("/a.json:4", "grants must be"),
        severity="fault",
    ),
    Graded("identity.acl-broken", "absent", side(acl=acl(state="absent")), says="does not exist", severity="fault"),
    Graded(
        "identity.acl-broken",
        "a token that is not set",
        side(acl=acl(LOCAL, Grant(client="l", agents={}, variable="L_TOKEN", missing=True))),
        says="L_TOKEN",
        count=1,
    ),
    Graded("identity.acl-broken", "sound", side(acl=acl(LOCAL)), "pass"),
    Graded("identity.acl-broken", "none", side(), "skipped"),
    Graded("identity.acl-broken", "in a container", side(acl=acl(state="unknown", problem="inside")), "skipped"),
    Graded(
        "identity.acl-grant",
        "no local client",
        side(acl=acl(Grant(client="laptop", agents={"*": "read"}))),
        says="has no client 'local'",
        severity="fault",
    ),
    Graded(
        "identity.acl-grant",
        "read only",
        told(side(acl=acl(Grant(client="local", agents={"*": "read"}))), instructions(policy())),
        says=("permission 'read'", '"claude-code": "read-write"'),
        severity="fault",
    ),
    Graded(
        "identity.acl-grant",
        "another agent",
        told(side(acl=acl(Grant(client="local", agents={"codex": "read-write"}))), instructions(policy())),
        says="permission 'none'",
        severity="fault",
    ),
    Graded("identity.acl-grant", "granted", told(side(acl=acl(LOCAL)), instructions(policy())), "pass"),
    Graded(
        "identity.acl-grant",
        "granted to everyone",
        told(side(acl=acl(Grant(client="local", agents={"*": "read-write"}))), instructions(policy())),
        "pass",
    ),
    Graded("identity.acl-grant", "over HTTP", retarget(facts(HTTP), files=SideFiles(acl=acl())), "skipped"),
    Graded("identity.acl-grant", "no table", side(), "skipped"),
    Graded(
        "identity.alias-ledger", "broken", side(ledger=ledger("broken", "expected")), says="expected", severity="fault"
    ),
    Graded("identity.alias-ledger", "sound", side(ledger=ledger("read")), "pass"),
    Graded("identity.alias-ledger", "not made yet", side(ledger=ledger("absent")), "pass"),
)


@pytest.mark.parametrize("case", [*IDS, *POLICY, *FILES], ids=str)
def test_identity(case: Graded) -> None:
    case.check()


@given(st.text())
def test_folding_is_stable(name: str) -> None:
    assert folded(folded(name)) == folded(name)
    assert folded(f" {name} ") == folded(name)
