"""Small changes to the facts of ``support.traps``."""

from __future__ import annotations

from cpersona_cli.record import replace
from cpersona_cli.traps.model import Facts, Finding, Target


def with_targets(known: Facts, **fields: object) -> Facts:
    """``known`` with fields of every target replaced, also where databases speak of them."""
    changed = {id(target): replace(target, **fields) for target in known.targets}

    def new(targets: tuple[Target, ...]) -> tuple[Target, ...]:
        return tuple(changed[id(target)] for target in targets)

    return replace(
        known,
        targets=new(known.targets),
        databases=tuple(replace(database, targets=new(database.targets)) for database in known.databases),
        current=changed.get(id(known.current)),
    )


def with_packages(known: Facts, **packages: str) -> Facts:
    """``known`` with these distributions beside every server."""
    first = known.targets[0]
    return with_targets(known, version=replace(first.version, packages=packages))


def severities(findings: tuple[Finding, ...]) -> list[str]:
    return [str(finding.severity) for finding in findings]
