"""Command lines understood: what would be started, where, and with which variables of its own."""

from __future__ import annotations
