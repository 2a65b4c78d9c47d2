"""The last finished re-embedding of a database, and whether what it wrote still is what stands there."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cpersona_cli.fit.model import TABLES, Live, Past
from cpersona_cli.store.model import Census, Form
from cpersona_cli.store.writing.finished import read_record
from cpersona_cli.text import safe


def past(database: Path, census: Census, live: Live | None) -> Past | None:
    """What is on record, None where nothing is or the job was undone. Raises nothing."""
    found = read_record(database)
    if found is None or found.undone:
        return None
    groups = [group for group in census.of(*TABLES.values()) if group.form is Form.VECTOR]
    holds = (
        live is not None
        and live.dim == found.dim
        and (not found.fingerprint or not live.fingerprint or live.fingerprint == found.fingerprint)
        and all(group.width == found.dim and group.label in {"", found.label} for group in groups)
    )
    return Past(
        finished=_when(found.finished), dim=found.dim, label=safe(found.label, 200), rows=found.rows, holds=holds
    )


def _when(seconds: float) -> str:
    """A Unix time in UTC, as the database writes times."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return ""
