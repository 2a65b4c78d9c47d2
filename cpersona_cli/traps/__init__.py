"""The config trap list: every known way for a CPersona installation to be wrong."""

from __future__ import annotations
