"""``python -m cpersona_cli`` is ``cpersona-cli``."""

from __future__ import annotations

from cpersona_cli.entry import tool

tool()
