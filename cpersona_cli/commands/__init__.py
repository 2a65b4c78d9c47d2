"""One module for each subcommand: parse, call, return a report."""

from __future__ import annotations
