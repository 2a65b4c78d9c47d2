"""The record of the last finished job beside a database: what stays when the other files are gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cpersona_cli.record import fields, record
from cpersona_cli.store.files import sibling
from cpersona_cli.store.job import record_path
from cpersona_cli.store.writing.disk import make_private, publish, remove, told

#: Bytes; a real one has a few hundred.
_LIMIT = 1 << 16


@record(kw_only=True)
class Finished:
    """A job whose cut-over happened. Times are Unix times in seconds, ``url`` is without user info and query.

    ``rows`` are vectors it wrote, ``emptied`` rows it left without one. ``undone`` is when it was taken back, 0 where
    it was not.
    """

    job: str
    started: float
    finished: float
    only: str
    mode: str
    url: str
    model: str
    dim: int
    fingerprint: str = ""
    label: str = ""
    served: str = ""
    rows: int = 0
    emptied: int = 0
    undone: float = 0.0


def read_record(database: Path) -> Finished | None:
    """The last finished job of ``database``; None where there is none, or none that can be read. Raises nothing."""
    try:
        with record_path(database).open("rb") as file:
            values = json.loads(file.read(_LIMIT))
        kinds = {name: str if name in _WORDS else (int, float) for name in fields(Finished)}
        known = {name: values[name] for name in kinds if isinstance(values.get(name), kinds[name])}
        return Finished(**known)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None


_WORDS = {"job", "only", "mode", "url", "model", "fingerprint", "label", "served"}


def write_record(database: Path, finished: Finished) -> None:
    """Replace the record of ``database``. Raises ``StoreError``."""
    path = record_path(database)
    new = sibling(path, ".new")
    values: dict[str, Any] = {"schema": "cpersona-cli/reembedded/1", **fields(finished)}
    with told(path):
        remove(new)
        make_private(new)
        new.write_text(json.dumps(values, indent=1) + "\n", "utf-8")
        publish(new, path)
