"""The subcommands, as the dispatcher and the application both must know them."""

from __future__ import annotations

#: Subcommands of this release.
COMMANDS = ("doctor", "probe", "dimension", "reembed", "advisory-preview", "backfill", "traps", "demo")
