"""Stores of an older server, in both journal modes."""

from __future__ import annotations

import os
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


@pytest.fixture
def oldest() -> str:
    """The interpreter that has the server of the 2.4 line."""
    python = os.environ.get("CPERSONA_CLI_TEST_OLDEST_SERVER", "")
    if not python:
        pytest.skip("CPERSONA_CLI_TEST_OLDEST_SERVER names no interpreter; `make test` sets it")
    return python
