"""The traps that would make a rebuild wrong: looked at before anything is sent or written."""

from __future__ import annotations

from collections.abc import Sequence

from cpersona_cli.commands.workplace import Workplace
from cpersona_cli.traps.model import Finding, Severity, Trap
from cpersona_cli.traps.registry import ALL
from cpersona_cli.traps.run import Check, run

#: What keeps the database from being rewritten.
_DATABASE = frozenset({
    "database.is-folder", "database.no-permission", "database.name-too-long", "database.not-sqlite", "database.empty",
    "database.foreign", "database.corrupt", "database.locked", "database.folder-read-only", "database.stale-wal",
    "database.unreadable", "database.unsafe-filesystem", "database.not-writable", "database.disk-full",
    "database.schema-unnumbered",
})  # fmt: skip
#: What makes it uncertain which endpoint the vectors are for; an endpoint named by the user settles that.
_ENDPOINT = frozenset({
    "database.modes-differ", "database.urls-differ", "database.models-differ",
    "names.mode-unsupported", "names.url-missing", "names.url-without-mode", "names.alias-too-old",
    "names.url-malformed", "names.url-port", "names.url-path", "names.url-slash", "names.url-wrong-api",
    "names.api-url-base", "names.api-url-embed", "names.key-missing", "names.key-malformed", "names.quoted",
    "names.misspelt", "names.unexpanded", "names.timeout",
    "network.loopback-in-container", "network.proxy-takes-loopback", "network.no-proxy-misses",
    "network.proxy-unusable",
})  # fmt: skip
#: What makes vectors in the database useless, whichever endpoint makes them.
_SEARCH = frozenset({"network.remote-route"})

IDS = _DATABASE | _ENDPOINT | _SEARCH


def gate(place: Workplace, *, named: bool, uncalled: str = "") -> tuple[Sequence[Check], Sequence[Finding]]:
    """The checks made, and what was found.

    ``named``: the endpoint was named on the command line; ``uncalled``: why none will be called at all.
    """
    why = uncalled or ("the endpoint was named (--url)" if named else "")

    def skip(trap: Trap) -> str:
        return why if trap.id in _ENDPOINT or (uncalled and trap.id in _SEARCH) else ""

    checks = run([trap for trap in ALL if trap.id in IDS], place.facts, skip=skip)
    return checks, [finding for check in checks for finding in check.findings if finding.severity is not Severity.HINT]
