"""What a client's agent reads in every session: the memory policy block, memory index files, hooks and the plugin.

The block's markers and wording are those of the server's own skill (``cpersona-memory``, version 5 with 2.6.14); the
files are those each client loads without being asked. Nothing here is needed for the server to start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cpersona_cli.install.clients.table import claude_folder, codex_home, project_folders
from cpersona_cli.install.files.bounded import Content, line_of, read_bounded
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Place
from cpersona_cli.record import record

#: The policy block that the skill of 2.6.14 writes.
NEWEST_POLICY = 5

#: What Claude Code loads of a ``MEMORY.md``; the rest is left out without a word.
INDEX_BYTES, INDEX_LINES = 25_000, 200

_MANY = 200  # rule files and memory indexes looked at, at most
_BEGIN = re.compile(r"BEGIN\s+cpersona-policy\b(?:\s+v(\d+))?", re.IGNORECASE)
_END = re.compile(r"END\s+cpersona-policy\b", re.IGNORECASE)
_AGENT = re.compile(r"agent_id\s*[=:]\s*[\"'“`]([^\"'”`\n]+)[\"'”`]")
_BARE_PLACEHOLDER = re.compile(r"<\s*agent[_-]?id\s*>", re.IGNORECASE)
_SCRIPT = re.compile(r"[\"']?([^\"'\s]+\.(?:py|sh|js|ps1))[\"']?")


@record(kw_only=True)
class Block:
    """One policy block: the lines it spans, its version, and the agent ids it tells the agent to use.

    ``end`` is None when the END marker is missing. ``version`` is None when the marker names none. ``placeholder`` is
    the line on which ``<AGENT_ID>`` was left standing.
    """

    begin: int
    end: int | None
    version: int | None
    agents: tuple[str, ...] = ()
    agent_line: int | None = None
    placeholder: int | None = None


@record(kw_only=True)
class InstructionFile:
    """One always-loaded file that exists; ``clients`` are the ids of those that load it."""

    clients: tuple[str, ...]
    path: Path
    blocks: tuple[Block, ...] = ()
    problem: str = ""

    def at(self, line: int | None = None) -> Place:
        return Place(file=self.path, line=line)


@record(kw_only=True)
class MemoryIndex:
    """A ``MEMORY.md`` that Claude Code loads in every session, and its size."""

    path: Path
    size: int
    lines: int


@record(kw_only=True)
class Hook:
    """A hook in Claude Code's settings that belongs to CPersona, registered by hand."""

    event: str
    command: str
    place: Place


@record(kw_only=True)
class Plugin:
    """CPersona's plugin for Claude Code: where it is switched on, and the agent id that its session note names."""

    name: str
    place: Place
    agent: str
    agent_source: str
    hooks_disabled: bool = False


@record(kw_only=True)
class AlwaysLoaded:
    """All of it. ``searched`` are the clients whose always-loaded files are known to this tool."""

    files: tuple[InstructionFile, ...] = ()
    indexes: tuple[MemoryIndex, ...] = ()
    hooks: tuple[Hook, ...] = ()
    plugin: Plugin | None = None
    searched: tuple[str, ...] = ()

    def of(self, client: str) -> tuple[InstructionFile, ...]:
        return tuple(file for file in self.files if client in file.clients)


def always_loaded(machine: Machine) -> AlwaysLoaded:
    """Read every always-loaded file of ``machine`` that exists. Never raises for what a file holds."""
    files = tuple(_instruction_file(*candidate) for candidate in _candidates(machine) if _exists(candidate[1]))
    hooks, plugin = _claude_settings(machine)
    searched = tuple(dict.fromkeys(client for clients, _ in _candidates(machine) for client in clients))
    return AlwaysLoaded(files=files, indexes=tuple(_indexes(machine)), hooks=hooks, plugin=plugin, searched=searched)


def blocks_of(text: str) -> tuple[Block, ...]:
    """The policy blocks in ``text``, in order. A block without END ends where the next one begins."""
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if _BEGIN.search(line)]
    found = []
    for start, following in zip(starts, [*starts, len(lines)][1:], strict=True):
        end = next((i for i in range(start, following) if _END.search(lines[i])), None)
        last = following if end is None else end + 1
        found.append(_block(lines, start, last, closed=end is not None))
    return tuple(found)


def _block(lines: Sequence[str], start: int, last: int, *, closed: bool) -> Block:
    agents: dict[str, int] = {}
    placeholder: int | None = None
    for number, line in enumerate(lines[start:last], start + 1):
        for match in _AGENT.finditer(line):
            if match[1].startswith("<"):
                placeholder = placeholder or number
            else:
                agents.setdefault(match[1], number)
        if _BARE_PLACEHOLDER.search(line) and not agents:
            placeholder = placeholder or number
    marker = _BEGIN.search(lines[start])
    version = marker[1] if marker else None
    return Block(
        begin=start + 1,
        end=last if closed else None,
        version=int(version[:6]) if version else None,
        agents=tuple(agents),
        agent_line=next(iter(agents.values()), None),
        placeholder=placeholder,
    )


def _candidates(machine: Machine) -> Iterator[tuple[tuple[str, ...], Path]]:
    """(clients, file) of every file some client loads in each session; user files first."""
    claude, home = claude_folder(machine), machine.home
    codex = codex_home(machine)
    yield ("claude-code",), claude / "CLAUDE.md"
    yield ("codex",), codex / "AGENTS.md"
    yield ("gemini-cli",), home / ".gemini" / "GEMINI.md"
    yield ("windsurf",), home / ".codeium" / "windsurf" / "memories" / "global_rules.md"
    for folder in project_folders(machine):
        if folder == home:
            break
        yield ("claude-code",), folder / "CLAUDE.md"
        yield ("claude-code",), folder / "CLAUDE.local.md"
        if folder / ".claude" != claude:
            yield ("claude-code",), folder / ".claude" / "CLAUDE.md"
        if folder != codex:
            yield ("codex", "cursor", "vscode", "zed"), folder / "AGENTS.md"
        yield ("vscode",), folder / ".github" / "copilot-instructions.md"
        yield ("gemini-cli",), folder / "GEMINI.md"
        for path in _listed(folder / ".cursor" / "rules", "*.mdc"):
            yield ("cursor",), path
        for path in _listed(folder / ".windsurf" / "rules", "*.md"):
            yield ("windsurf",), path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a loop of links, a name that is too long: a file nobody can load
        return False


def _listed(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))[:_MANY]
    except (OSError, ValueError):
        return []


def _instruction_file(clients: tuple[str, ...], path: Path) -> InstructionFile:
    content = read_bounded(path)
    return InstructionFile(clients=clients, path=path, blocks=blocks_of(content.text), problem=content.problem)


def _indexes(machine: Machine) -> Iterator[MemoryIndex]:
    for path in _listed(claude_folder(machine) / "projects", "*/memory/MEMORY.md"):
        content = read_bounded(path)
        if content.state == "read":
            yield MemoryIndex(path=path, size=content.size, lines=len(content.text.splitlines()))


def _claude_settings(machine: Machine) -> tuple[tuple[Hook, ...], Plugin | None]:
    hooks: list[Hook] = []
    enabled: tuple[str, Place] | None = None
    env: dict[str, tuple[str, str]] = {
        name: (value, "this shell") for name, value in machine.env.items() if name.startswith("CPERSONA_")
    }
    option: tuple[str, str] | None = None
    for path in _settings_files(machine):
        content = read_bounded(path)
        data = _object(content.text)
        hooks += _hooks(data, content, path, machine)
        name = _plugin_name(data)
        if name is not None:
            enabled = (name, Place(file=path, line=line_of(content.text, name))) if _on(data, name) else None
        for key, value in _mapping(data.get("env")).items():
            env[key] = (str(value), str(path))
        for key, config in _mapping(data.get("pluginConfigs")).items():
            agent = _mapping(_mapping(config).get("options")).get("agent_id")
            if _is_ours(key) and isinstance(agent, str) and agent:
                option = (agent, f"the plugin's agent_id option in {path}")
    if enabled is None:
        return tuple(hooks), None
    from_env = env.get("CPERSONA_AGENT_ID", ("", ""))
    agent, source = option or (
        (from_env[0], f"CPERSONA_AGENT_ID in {from_env[1]}") if from_env[0] else ("default", "the plugin's own default")
    )
    disabled = bool(env.get("CPERSONA_HOOKS_DISABLE", ("", ""))[0])
    return tuple(hooks), Plugin(
        name=enabled[0], place=enabled[1], agent=agent, agent_source=source, hooks_disabled=disabled
    )


def _settings_files(machine: Machine) -> tuple[Path, ...]:
    """Claude Code's settings, the strongest last: user, project, project local."""
    folders = (claude_folder(machine), machine.cwd / ".claude")
    files = (folders[0] / "settings.json", folders[1] / "settings.json", folders[1] / "settings.local.json")
    return tuple(dict.fromkeys(path for path in files if _exists(path)))


def _object(text: str) -> Mapping[str, object]:
    try:
        return _mapping(json.loads(text))
    except (ValueError, RecursionError):  # Claude Code ignores the file, and so do we; discovery names the fault
        return {}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _is_ours(name: str) -> bool:
    return name.partition("@")[0].lower() == "cpersona"


def _plugin_name(data: Mapping[str, object]) -> str | None:
    return next((name for name in _mapping(data.get("enabledPlugins")) if _is_ours(name)), None)


def _on(data: Mapping[str, object], name: str) -> bool:
    return bool(_mapping(data.get("enabledPlugins")).get(name))


def _hooks(data: Mapping[str, object], content: Content, path: Path, machine: Machine) -> Iterator[Hook]:
    for event, matchers in _mapping(data.get("hooks")).items():
        for matcher in matchers if isinstance(matchers, list) else ():
            entries = _mapping(matcher).get("hooks")
            for entry in entries if isinstance(entries, list) else ():
                command = _mapping(entry).get("command")
                if isinstance(command, str) and _speaks_of_us(command, machine):
                    line = line_of(content.text, json.dumps(command)[1:-1]) or line_of(content.text, command)
                    yield Hook(event=event, command=command, place=Place(file=path, line=line))


def _speaks_of_us(command: str, machine: Machine) -> bool:
    """Whether the command, or a script it names, belongs to CPersona: the example hook's own name does not say so."""
    if "cpersona" in command.lower():
        return True
    for match in _SCRIPT.finditer(command):
        text = re.sub(r"\$\{?CLAUDE_PROJECT_DIR\}?", str(machine.cwd), match[1])
        text = re.sub(r"^(?:~|\$\{?HOME\}?)(?=/)", str(machine.home), text)
        script = machine.cwd / text
        if _exists(script) and "cpersona" in read_bounded(script).text.lower():
            return True
    return False
