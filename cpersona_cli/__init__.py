"""Operator toolkit and install gate for the CPersona memory server."""

from __future__ import annotations

__version__ = "0.1.0"
