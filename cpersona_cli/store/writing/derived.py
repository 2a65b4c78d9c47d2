"""What the server derives from vectors: change logs, blocks, nodes, indexes beside the file, pending rebuilds."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from cpersona_cli.record import record
from cpersona_cli.store.files import SIDECARS, real_path, sibling
from cpersona_cli.store.writing.mainfile import Shape

#: Each log of changes and the clock it is numbered by: a file that was built from a log is refused once it is off.
_LOGS = (("vector_log_clock", "record_vector_changes"), ("block_log_clock", "record_block_changes"))

_INDEXES = tuple(suffix for suffix in SIDECARS if suffix.endswith("index"))


@record
class Dropped:
    """Derived rows that a transaction removed."""

    blocks: int = 0
    nodes: int = 0


def names_of(database: Path) -> tuple[Path, ...]:
    """The database as it was named and as the file system has it: the server names what it keeps after the former."""
    return tuple(dict.fromkeys((database, real_path(database))))


def remove_indexes(database: Path) -> tuple[str, ...]:
    """Remove the search indexes beside a database; their names. Raises ``OSError``.

    The server looks at them anew for every question, and reads the tables where there is none.
    """
    removed = []
    for name in names_of(database):
        for suffix in _INDEXES:
            with contextlib.suppress(FileNotFoundError):
                sibling(name, suffix).unlink()
                removed.append(sibling(name, suffix).name)
    return tuple(dict.fromkeys(removed))


def stop_logs(connection: sqlite3.Connection, shape: Shape) -> None:
    """Turn the change logs off, as the server does: no row is logged, and files built from the logs are refused."""
    for clock, changes in _LOGS:
        if {clock, changes} <= shape.tables:
            stopped = connection.execute(
                f"UPDATE {clock} SET logging = 0, pruned_through = head WHERE id = 0 AND logging = 1"  # noqa: S608
            )
            if stopped.rowcount:
                connection.execute(f"DELETE FROM {changes}")  # noqa: S608


def choose(connection: sqlite3.Connection, rows: Iterable[tuple[str, int]]) -> None:
    """Fill ``temp.chosen`` with (kind, id) of the rows whose derived ones are to go; nothing of it reaches the file."""
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS chosen (kind, id, PRIMARY KEY (kind, id)) WITHOUT ROWID")
    connection.execute("DELETE FROM temp.chosen")
    connection.executemany("INSERT INTO temp.chosen VALUES (?, ?)", rows)


def drop(
    connection: sqlite3.Connection, shape: Shape, *, chosen: bool, label: str = "", tokens: bool = False
) -> Dropped:
    """Remove blocks and nodes, and have the server build them again; of the rows in ``temp.chosen`` only, if so asked.

    What carries a ``label`` that is not empty is left. Nodes are asked for only with ``tokens``: without an endpoint
    that counts them, the server would try in vain for minutes. To be called within the transaction.
    """
    where, values = "WHERE 1", ()
    if chosen:
        where += " AND (parent_kind, parent_id) IN (SELECT kind, id FROM temp.chosen)"
    others = where + (" AND embedding_model <> ?" if label else "")
    labels: tuple[str, ...] = (label,) if label else values
    nodes = blocks = 0
    if "record_nodes" in shape.tables:
        if tokens:
            _queue_nodes(connection, others, labels)
        nodes = connection.execute(f"DELETE FROM record_nodes {others}", labels).rowcount  # noqa: S608
    if "record_blocks" in shape.tables:
        if "record_block_vectors" in shape.tables and not label:
            # Emptied first, the trigger that would do it block by block finds nothing.
            connection.execute(f"DELETE FROM record_block_vectors {where}")  # noqa: S608
        blocks = connection.execute(f"DELETE FROM record_blocks {others}", labels).rowcount  # noqa: S608
        if blocks:
            queue_blocks(connection, shape)
    return Dropped(blocks, nodes)


def queue_blocks(connection: sqlite3.Connection, shape: Shape) -> bool:
    """Ask the server to build the blocks that are missing, unless it was asked already; whether it has any.

    To be called within the transaction.
    """
    if "record_blocks" not in shape.tables:
        return False
    connection.execute(
        "INSERT INTO pending_memory_tasks(task_type, agent_id, payload) SELECT 'backfill_blocks', '', '{}'"
        " WHERE NOT EXISTS (SELECT 1 FROM pending_memory_tasks WHERE task_type = 'backfill_blocks')"
    )
    return True


def _queue_nodes(connection: sqlite3.Connection, where: str, labels: tuple[str, ...]) -> None:
    for kind, table in (("mem", "memories"), ("ep", "episodes")):
        connection.execute(
            "INSERT INTO pending_memory_tasks(task_type, agent_id, payload)"  # noqa: S608
            f" SELECT 'build_nodes', agent_id, '{{\"kind\": \"{kind}\", \"id\": ' || id || '}}'"
            f" FROM {table} WHERE id IN (SELECT parent_id FROM record_nodes {where} AND parent_kind = '{kind}')"
            " ORDER BY id",
            labels,
        )
