"""Changes to the facts of ``support.traps``: versions, side files and instruction files laid over every target."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from support.traps import Case

from cpersona_cli.install.instructions import AlwaysLoaded, InstructionFile, blocks_of
from cpersona_cli.install.model import Registration, ServerVersion
from cpersona_cli.install.sidefiles import SideFiles
from cpersona_cli.record import replace
from cpersona_cli.traps.model import Facts, Finding, Target


def retarget(known: Facts, *, version: ServerVersion | None = None, files: SideFiles | None = None) -> Facts:
    """``known`` with the release or the side files of every target replaced."""

    def changed(target: Target) -> Target:
        return replace(target, version=version or target.version, files=files or target.files)

    swapped = {id(target): changed(target) for target in known.targets}
    databases = tuple(
        replace(database, targets=tuple(swapped[id(t)] for t in database.targets)) for database in known.databases
    )
    targets = tuple(swapped.values())
    return replace(known, targets=targets, databases=databases, current=targets[0])


def release(version: str | None = "2.6.14", **fields: object) -> ServerVersion:
    return ServerVersion(version=version, evidence="a test says so", **fields)  # type: ignore[arg-type]


def told(known: Facts, *files: InstructionFile, **fields: object) -> Facts:
    """``known`` with these always-loaded files."""
    searched = ("claude-code", "codex", "cursor")
    return replace(known, instructions=AlwaysLoaded(files=files, searched=searched, **fields))  # type: ignore[arg-type]


def instructions(text: str, path: str = "/home/u/.claude/CLAUDE.md", *clients: str) -> InstructionFile:
    return InstructionFile(clients=clients or ("claude-code",), path=Path(path), blocks=blocks_of(text))


def policy(agent: str = "claude-code", version: str = " v5") -> str:
    return f'<!-- BEGIN cpersona-policy{version} -->\nagent_id="{agent}"\n<!-- END cpersona-policy -->\n'


def listed(known: Facts, *registrations: Registration) -> Facts:
    """``known`` with more entries that no client starts."""
    found = known.discovery
    return replace(known, discovery=replace(found, registrations=(*found.registrations, *registrations)))


@dataclass(frozen=True)
class Graded(Case):
    """A case that also names the severity of its findings."""

    severity: str = field(default="", kw_only=True)

    def check(self) -> tuple[Finding, ...]:
        findings = super().check()
        if self.severity:
            assert {str(finding.severity) for finding in findings} == {self.severity}
        return findings
