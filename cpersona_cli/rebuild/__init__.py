"""Rebuilding every vector of a store: planned, staged beside it, verified, exchanged at once, and undoable."""

from __future__ import annotations
