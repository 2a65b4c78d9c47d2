"""Stores of an older server, in both journal modes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.stores import run_sql, schema_13


@pytest.fixture
def wal(tmp_path: Path) -> Path:
    """A store in WAL mode, closed."""
    database = schema_13(tmp_path / "wal" / "c.db")
    run_sql(database, "PRAGMA journal_mode=WAL")
    return database


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A store in rollback mode."""
    return schema_13(tmp_path / "plain" / "c.db")
