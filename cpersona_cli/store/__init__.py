"""A memory store, seen from outside: files, pages, tables."""

from __future__ import annotations
