"""The MCP clients: where each keeps its registrations, and which of them it would start."""

from __future__ import annotations
