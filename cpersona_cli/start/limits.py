"""How long each client waits for a server that it started.

Codex: ``startup_timeout_sec``, 10 seconds unless set. Claude Code: the variable ``MCP_TIMEOUT`` in milliseconds, else
30 seconds. Gemini CLI: ``timeout`` in milliseconds, else 10 minutes. The others: 60 seconds, the limit of the MCP
library for one request.
"""

from __future__ import annotations

import math

from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Registration
from cpersona_cli.start.model import Limit

_LIBRARY = 60.0


def limit(registration: Registration, machine: Machine) -> Limit:
    """The limit of the registration's own client."""
    fields = registration.fields
    match registration.client:
        case "codex":
            for name, unit in (("startup_timeout_sec", 1.0), ("startup_timeout_ms", 1000.0)):
                seconds = _number(fields.get(name), unit)
                if seconds:
                    return Limit(seconds=seconds, origin=f"{name} in {registration.place}")
            return Limit(seconds=10.0, origin="its default")
        case "claude-code":
            told = [
                machine.env.get("MCP_TIMEOUT", ""),
                *(v.text for v in registration.inherited if v.name == "MCP_TIMEOUT"),
            ]
            seconds = _number(told[-1], 1000.0)
            return Limit(seconds=seconds or 30.0, origin="MCP_TIMEOUT" if seconds else "its default")
        case "gemini-cli":
            seconds = _number(fields.get("timeout"), 1000.0)
            return Limit(
                seconds=seconds or 600.0, origin=f"timeout in {registration.place}" if seconds else "its default"
            )
        case _:
            return Limit(seconds=_LIBRARY, origin="the default of the MCP library")


def _number(value: object, unit: float) -> float | None:
    """A positive number of ``unit`` as seconds, also from a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value) / unit
    except (ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < math.inf else None
