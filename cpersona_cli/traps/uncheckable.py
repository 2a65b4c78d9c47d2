"""Catalogue rows about names and values that no static trap decides, and why."""

from __future__ import annotations

from cpersona_cli.traps.model import Uncheckable

UNCHECKABLE: tuple[Uncheckable, ...] = ()
