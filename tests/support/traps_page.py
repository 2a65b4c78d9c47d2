"""The page of all traps, made from the list; it says what ``traps explain`` says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from support.markdown import code, plain, table
from support.uncheckable import UNCHECKABLE

from cpersona_cli.commands.trap_list import explained
from cpersona_cli.traps.model import Group, Trap
from cpersona_cli.traps.registry import ALL, RETIRED

#: What each group is about, in the order of the report.
GROUPS = {
    Group.NAMES: "names and values of settings: misspelt, shadowed, unusable, read by nobody",
    Group.NETWORK: "the embedding endpoint's address, proxies, and how the embedding server is started",
    Group.ENDPOINT: "what the embedding endpoint answers when it is asked: refused, another contract, another model",
    Group.ADVISORY: "what the agent is told about its memory, and what it is not told (`advisory-preview`)",
    Group.DATABASE: "where the database is, whether it can be opened, what is in it",
    Group.VECTORS: "the stored vectors: missing, mixed, of another model",
    Group.IDENTITY: "agent ids, projects, access tables, and what the agent is told of its memory",
    Group.RECALL: "limits, thresholds and gates that keep memories from being recalled",
    Group.REGISTRATION: "the client's files: broken, hidden, disabled, not started, not expanded",
    Group.VERSION: "the release that would start, and releases that share a database",
    Group.TRANSPORT: "stdio and HTTP: addresses, tokens, ports",
    Group.START: "what the registered servers do when they are started as their clients start them (`--start`)",
    Group.TOOL: "this tool's own waivers file",
}

_INTRODUCTION = """\
# Traps

Every known way for a CPersona installation to be wrong that this release can find: {traps} traps in {groups} groups.
Each has a permanent id, `group.name`, which is never renamed and never used for anything else. The same texts offline:

```console
$ cpersona-cli traps list --group names
$ cpersona-cli traps explain names.url-missing
$ cpersona-cli doctor --only names.url-missing
```

* **fault**: the server does not start, or memories or vectors are lost or go to the wrong place, silently.
  **warning**: works now, but is wrong or fragile. **hint**: supported, and worth knowing. A finding may be milder or
  worse than its trap where the case is.
* *servers* are the releases of the server that a trap applies to. Where the release cannot be told, the check says so.
* *rows* are those of the catalogue of known faults from which the list was made. Those that no look at files can
  decide stand [at the end](#not-decided-by-looking), with the reason.

This page is generated; change the trap in `cpersona_cli/traps/` and run `make docs`.
"""

_NOT_SHOWN = {"what", "severity", "check"}


def page() -> str:
    """The whole page as Markdown."""
    lines = [_INTRODUCTION.format(traps=len(ALL), groups=len(GROUPS))]
    for name, traps in groupby(ALL, lambda trap: trap.group):
        lines += _group(name, list(traps))
    return "\n".join([*lines, *_retired(), *_uncheckable()])


def groups() -> str:
    """The table of groups, for docs/doctor.md."""
    counts = {group: sum(trap.group is group for trap in ALL) for group in GROUPS}
    rows = ((f"[{group}](traps.md#group-{group})", f"{counts[group]}", GROUPS[group]) for group in GROUPS)
    return "\n".join(table(("group", "traps", "what it is about"), rows))


def _group(group: Group, traps: list[Trap]) -> Iterator[str]:
    yield f'<a id="group-{group}"></a>\n'
    yield f"## {group}\n"
    yield f"{GROUPS[group][0].upper()}{GROUPS[group][1:]}.\n"
    rows = ((f"[{trap.id}](#{trap.id})", str(trap.severity), plain(trap.title)) for trap in traps)
    yield from table(("id", "severity", "what"), rows)
    yield ""
    for trap in traps:
        yield from _trap(trap)


def _trap(trap: Trap) -> Iterator[str]:
    yield f'<a id="{trap.id}"></a>\n'
    yield f"### {trap.id}\n"
    yield f"{plain(trap.title)} ({trap.severity}).\n"
    for label, text, _ in explained(trap.id).sections[0].rows:
        if label not in _NOT_SHOWN:
            yield f"* *{label}*: {plain(text)}"
    if trap.rows:
        yield f"* *rows*: {', '.join(trap.rows)}"
    yield ""


def _retired() -> Iterator[str]:
    if RETIRED:
        yield "## Retired ids\n"
        yield from table(("id", "why"), ((f'<a id="{name}"></a>{name}', plain(why)) for name, why in RETIRED.items()))
        yield ""


def _uncheckable() -> Iterator[str]:
    yield '<a id="not-decided-by-looking"></a>\n'
    yield "## Not decided by looking\n"
    yield "What files, settings and the database alone cannot tell, and the command that can, if there is one.\n"
    rows = (
        (line.row, plain(line.title), plain(line.why), code(line.command) if line.command else "")
        for line in UNCHECKABLE
    )
    yield from table(("row", "what", "why it is no trap", "measured by"), rows)
    yield ""


assert set(GROUPS) == set(Group)
