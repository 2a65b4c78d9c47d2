"""Stores of the oldest and the newest schema, with what the newest server derives from vectors."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.endpoints_small import serving
from support.stores import Server, copy_store, fill, run_sql, schema_13


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store as 2.4.41 leaves it: twelve memories and an episode, vectors of eight dimensions."""
    database = schema_13(tmp_path / "old" / "c.db")
    run_sql(database, "PRAGMA journal_mode=WAL")
    return database


@pytest.fixture(scope="session")
def written_with_vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the installed server with vectors and blocks of 64 dimensions; not to be changed."""
    database = tmp_path_factory.mktemp("vectors") / "c.db"
    with serving(width=64) as endpoint:
        env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": endpoint.url()}
        with Server(database, env) as server:
            fill(server)
    return database


@pytest.fixture
def new(written_with_vectors: Path, tmp_path: Path) -> Path:
    """A copy of the newest server's store, with a few derived rows for certain."""
    database = copy_store(written_with_vectors, tmp_path / "new")
    run_sql(
        database,
        "UPDATE vector_log_clock SET logging = 0",
        "UPDATE block_log_clock SET logging = 0",
        "DELETE FROM record_vector_changes",
        "DELETE FROM record_block_changes",
        "DELETE FROM pending_memory_tasks",
        "DELETE FROM record_blocks",
        "INSERT INTO record_blocks(parent_kind, parent_id, block_index, agent_id, start_char, end_char, embedding_bits)"
        " SELECT 'mem', id, n, agent_id, 0, 9, x'0102030405060708' FROM memories, (SELECT 0 n UNION SELECT 1)",
        "INSERT INTO record_block_vectors SELECT parent_kind, parent_id, block_index, zeroblob(64) FROM record_blocks",
        "INSERT INTO record_nodes(parent_kind, parent_id, node_index, start_char, end_char, token_count, window,"
        " embedding) SELECT 'mem', id, 0, 0, 9, 3, 256, zeroblob(256) FROM memories",
        "UPDATE vector_log_clock SET logging = 1, generation = 3, head = 7",
        "UPDATE block_log_clock SET logging = 1, generation = 2, head = 5",
        "INSERT INTO record_vector_changes VALUES (7, 'mem', 1)",
        "INSERT INTO record_block_changes VALUES (5, 'mem', 1)",
    )
    return database
