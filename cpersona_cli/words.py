"""The subcommands, as the dispatcher and the application both must know them."""

from __future__ import annotations

#: Subcommands of this release.
COMMANDS = ("doctor", "probe", "dimension", "reembed", "traps")

#: Reserved for coming releases: they reach this tool, never the server, and are answered in one sentence.
PLANNED = ("advisory-preview", "backfill", "demo")
