"""The subcommands, as the dispatcher and the application both must know them."""

from __future__ import annotations

#: Subcommands of this release.
COMMANDS = ("doctor", "probe", "dimension", "reembed", "advisory-preview", "backfill", "traps", "demo")

#: Reserved for coming releases: they reach this tool, never the server, and are answered in one sentence.
PLANNED: tuple[str, ...] = ()
