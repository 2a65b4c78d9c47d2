"""Facts for trap tests, built from an env block; and the row format of table-driven trap tests.

CASES = (
    Case("names.url-missing", "no URL", facts({"CPERSONA_EMBEDDING_MODE": "http"}), "findings", "no URL"),
    Case("names.url-missing", "both set", facts({...}), "pass"),
)

@pytest.mark.parametrize("case", CASES, ids=str)
def test_traps(case: Case) -> None:
    case.check()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cpersona_cli.install.database import database_path
from cpersona_cli.install.embedding_server import EmbeddingServer
from cpersona_cli.install.environment import environments
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import (
    Discovery,
    Launch,
    LaunchKind,
    Looked,
    Place,
    Registration,
    ServerVersion,
    Variable,
)
from cpersona_cli.install.settings.effective import effective
from cpersona_cli.record import replace
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.traps.model import Database, Facts, Finding, Needs, Target, Trap
from cpersona_cli.traps.registry import ALL
from cpersona_cli.traps.run import check

#: A machine that exists only in words: nothing under ``/home/u`` is ever opened.
MACHINE = Machine(
    system="linux",
    home=Path("/home/u"),
    cwd=Path("/home/u/work"),
    env={"HOME": "/home/u", "PATH": "/usr/bin:/bin", "USER": "u"},
)

#: client id -> its name for people, scope, and the file its registration stands in (None: this process).
CLIENTS: Mapping[str, tuple[str, str, Path | None]] = {
    "claude-code": ("Claude Code", "user", Path("/home/u/.claude.json")),
    "claude-desktop": ("Claude Desktop", "user", Path("/home/u/.config/Claude/claude_desktop_config.json")),
    "codex": ("Codex", "user", Path("/home/u/.codex/config.toml")),
    "cursor": ("Cursor", "user", Path("/home/u/.cursor/mcp.json")),
    "vscode": ("VS Code", "user", Path("/home/u/.config/Code/User/mcp.json")),
    "windsurf": ("Windsurf", "user", Path("/home/u/.codeium/windsurf/mcp_config.json")),
    "gemini-cli": ("Gemini CLI", "user", Path("/home/u/.gemini/settings.json")),
    "zed": ("Zed", "user", Path("/home/u/.config/zed/settings.json")),
    "clotocore": ("ClotoCore", "project", Path("/home/u/work/mcp.toml")),
    "env": ("this process", "", None),
}

UVX = Launch(kind=LaunchKind.UVX, package="cpersona", program="uvx", requirement="cpersona", words=("uvx", "cpersona"))

#: The env block stands below this line of its file, one variable a line.
FIRST_LINE = 10


def variables(env: Mapping[str, object], file: Path | None, *, origin: str = "env block") -> tuple[Variable, ...]:
    """``env`` as variables that stand one below the other in ``file``; values that are no strings stay as they are."""
    return tuple(
        Variable(name, raw, _place(file, line), origin)  # type: ignore[arg-type]
        for line, (name, raw) in enumerate(env.items(), FIRST_LINE + 1)
    )


def _place(file: Path | None, line: int) -> Place:
    return Place(words="this process's environment") if file is None else Place(file=file, line=line, column=9)


def docker(
    env: Mapping[str, object] | None = None,
    *,
    image: str = "ghcr.io/cloto-dev/cpersona:2.6.14",
    **fields: object,
) -> Launch:
    """A ``docker run`` whose ``-e`` options carry ``env``."""
    place = Place(words="-e on the command line")
    launch = Launch(
        kind=LaunchKind.DOCKER,
        package="cpersona",
        program="docker",
        image=image,
        variables=tuple(Variable(name, str(raw), place, "docker -e") for name, raw in (env or {}).items()),
        inside="container",
        words=("docker", "run", "-i", "--rm", image),
    )
    return replace(launch, **fields)


def registration(
    env: Mapping[str, object] | None = None,
    *,
    client: str = "claude-code",
    launch: Launch = UVX,
    **fields: object,
) -> Registration:
    """One entry ``cpersona`` of ``client``; ``fields`` are those of Registration."""
    title, scope, file = CLIENTS[client]
    if file is None and launch is UVX:
        launch = Launch(kind=LaunchKind.PROCESS)
    words = launch.words or ("cpersona",)
    entry = Registration(
        client=client,
        client_title=title,
        scope=scope,
        name="cpersona",
        place=_place(file, FIRST_LINE - 4),
        command=words[0],
        args=words[1:],
        variables=variables(env or {}, file, origin="env block" if file else "process"),
        env_place=_place(file, FIRST_LINE),
        launch=launch,
    )
    return replace(entry, **fields)


def targets(entry: Registration, *, version: str | None = "2.6.14", machine: Machine = MACHINE) -> tuple[Target, ...]:
    """``entry`` as its client would start it: one target, or two where the inherited environment is not known."""
    release = ServerVersion(version=version, evidence="a test says so" if version else "the version was not told")
    found = []
    for environment in environments(entry, machine):
        settings = effective(environment, version, system=machine.system)
        database = database_path(entry, settings["CPERSONA_DB_PATH"], machine)
        found.append(
            Target(registration=entry, environment=environment, settings=settings, version=release, database=database)
        )
    return tuple(found)


def reading(path: str = "/home/u/cpersona.db", state: State = State.OK, **fields: object) -> Reading:
    """A healthy small database of 2.6.14, except for what ``fields`` say."""
    healthy = Reading(path=Path(path), state=state, size=4096, schema=21, mode=0o600)
    return replace(healthy, **fields)


def facts(
    env: Mapping[str, object] | None = None,
    *,
    client: str = "claude-code",
    version: str | None = "2.6.14",
    launch: Launch = UVX,
    reading: Reading | Iterable[Reading] = (),
    machine: Machine = MACHINE,
    others: Iterable[Registration] = (),
    looked: Iterable[Looked] = (),
    embedding_servers: Iterable[EmbeddingServer] = (),
    stray: Iterable[Variable] = (),
    before_first_start: bool = False,
    versions: Mapping[int, str | None] | None = None,
    **fields: object,
) -> Facts:
    """The facts of one registration of ``client`` with the env block ``env``, plus ``others`` beside it.

    ``fields`` go to the Registration. ``versions`` gives releases to ``others`` by their index (default: ``version``).
    Each reading becomes a Database that knows the targets which open its path. ``current`` is the first target.
    """
    entry = registration(env, client=client, launch=launch, **fields)
    rest = tuple(others)
    found = [*targets(entry, version=version, machine=machine)]
    for index, other in enumerate(rest):
        release = (versions or {}).get(index, version)
        found += targets(other, version=release, machine=machine)
    readings = (reading,) if isinstance(reading, Reading) else tuple(reading)
    databases = tuple(
        Database(path=one.path, reading=one, targets=tuple(t for t in found if t.database.path == one.path))
        for one in readings
    )
    return Facts(
        machine=machine,
        discovery=Discovery(registrations=(entry, *rest), looked=tuple(looked)),
        targets=tuple(found),
        databases=databases,
        before_first_start=before_first_start,
        embedding_servers=tuple(embedding_servers),
        stray=tuple(stray),
        current=found[0],
    )


@cache
def all_traps() -> Mapping[str, Trap]:
    """Every trap by its id."""
    return {trap.id: trap for trap in ALL}


def outcome(trap_id: str, known: Facts) -> tuple[str, tuple[Finding, ...]]:
    """How the trap ends on the first registration of ``known`` (or on the machine, or on its databases).

    The state is one of ``pass``, ``findings``, ``unknown``, ``skipped``. A trap that fails in itself fails the test.
    """
    trap = all_traps()[trap_id]
    if trap.needs is Needs.REGISTRATION and known.targets:
        entry = known.targets[0].registration
        known = replace(known, targets=tuple(t for t in known.targets if t.registration is entry))
    ended = check(trap, known)
    assert "the check itself failed" not in ended.reason, _traceback(trap, known)
    return str(ended.state), ended.findings


def _traceback(trap: Trap, known: Facts) -> str:
    """Run the trap once more, unguarded, so that the test shows where it failed."""
    for subject in (*known.targets, *known.databases, known.current):
        list(trap.detect(replace(known, current=subject)))
    return f"{trap.id} failed inside check()"


@dataclass(frozen=True)
class Case:
    """One row: the trap, what the row shows, the facts, how it must end, and words that its findings must hold.

    ``says`` is looked for in everything a finding tells: measured, expected, costs, repair, about, depends.
    ``count`` is the number of findings, where it matters.
    """

    trap: str
    name: str
    facts: Facts = field(repr=False)
    state: str = "findings"
    says: str | tuple[str, ...] = ()
    count: int | None = None

    def __str__(self) -> str:
        return f"{self.trap}: {self.name}"

    def check(self) -> tuple[Finding, ...]:
        """Fail unless the trap ends as the row says; the findings otherwise."""
        state, findings = outcome(self.trap, self.facts)
        told = "\n".join(everything(finding) for finding in findings)
        assert state == self.state, told or state
        for words in (self.says,) if isinstance(self.says, str) else self.says:
            assert words in told, f"{words!r} is not in:\n{told}"
        assert self.count is None or len(findings) == self.count, told
        return findings


def everything(finding: Finding) -> str:
    """All the text of a finding that a person may read."""
    repair = finding.repair
    parts = (finding.subject, finding.about, finding.measured, finding.expected, finding.costs, finding.depends)
    evidence = (f"{name}: {value}" for name, value in finding.evidence)
    return "\n".join((*parts, repair.prose, *repair.commands, repair.edit, *evidence))
