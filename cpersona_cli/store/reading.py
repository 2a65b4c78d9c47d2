"""What can be seen of a database file without changing a byte of it or of its folder."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Literal

from cpersona_cli.install.model import Process
from cpersona_cli.record import field, record
from cpersona_cli.store.audit_model import Audit


class State(StrEnum):
    """The first thing that stood in the way of reading, or ``ok``.

    A database that could be read is ``ok`` even where the server could not write to it: ``writable`` and
    ``folder_writable`` tell that.
    """

    OK = "ok"
    MISSING = "missing"  # no such file, its folder exists
    NO_FOLDER = "no-folder"
    IS_FOLDER = "is-folder"
    NO_PERMISSION = "no-permission"
    NAME_TOO_LONG = "name-too-long"
    NOT_SQLITE = "not-sqlite"
    EMPTY = "empty"  # zero bytes, or no tables at all
    FOREIGN = "foreign"  # SQLite, but of another program
    CORRUPT = "corrupt"
    LOCKED = "locked"
    FOLDER_READ_ONLY = "folder-read-only"  # WAL mode, no -shm, none can be made, and somebody has it open
    STALE_WAL = "stale-wal"  # the -wal does not belong to the main file; SQLite would replay it, or drop it
    UNREADABLE = "unreadable"  # anything else, the reason in detail
    VOLATILE = "volatile"  # :memory:


@record(kw_only=True)
class Reading:
    """The facts of one database.

    ``detail`` is a sentence about ``state``. ``files`` are what stands beside it, with sizes in bytes: by suffix of
    the database's own name (``-wal``, ``.calibration.json`` ...), and ``alias_ledger.json`` by its full name.
    ``folder_writable``, ``free_bytes``, ``filesystem`` and ``risk`` are of its folder, or of the nearest folder above
    that exists. ``filesystem`` is the mount's type; ``risk`` is a word when that type or folder endangers the
    database: ``network``, ``bind-mount``, ``synced``, ``volatile`` (gone with the next start) or ``git``.
    ``journal`` is ``wal`` or ``rollback``, as the file's header says. ``method`` is how it was read: ``in-place``,
    ``immutable`` (no log to read, so no locks) or ``copy`` (of the file and its log, in a private folder).

    ``counts`` are rows per table, ``agents`` and ``projects`` memories per id, the largest first and at most 200 of
    them. ``missing`` are tables, triggers and unique indexes the server of that schema relies on; those of the text
    index are listed only where its table exists, and ``fts_rows`` has no entry where it does not. Widths, labels and
    sizes come from cheap SQL only; contents of vectors are not looked at here. ``audit`` is empty unless it was asked
    for. ``unmeasured`` names the fields, also those of the audit, that kept their default because time ran out.

    ``integrity`` is ``whole`` when SQLite checked every page, ``partial`` when time allowed only some tables
    (``unchecked`` names the others), empty when nothing was checked.
    """

    path: Path
    state: State
    detail: str = ""
    size: int = 0
    schema: int | None = None
    mode: int | None = None  # permission bits
    owner: int | None = None  # uid
    writable: bool = True
    folder_writable: bool = True
    free_bytes: int | None = None
    filesystem: str = ""
    risk: str = ""
    risk_detail: str = ""
    files: Mapping[str, int] = field(default_factory=dict)
    conflicts: tuple[tuple[str, int | None], ...] = ()  # conflict copies beside it, with their memories
    journal: str = ""
    method: str = ""
    wal_bytes: int = 0
    holders: tuple[Process, ...] = ()
    holders_known: bool = True  # False where the system does not tell
    counts: Mapping[str, int] = field(default_factory=dict)
    agents: Mapping[str, int] = field(default_factory=dict)
    projects: Mapping[str, int] = field(default_factory=dict)
    auto_project_rows: int = 0  # memories, episodes and profiles stored under the literal project "@auto"
    labels: Mapping[str, int] = field(default_factory=dict)  # embedding_model -> memories with a vector
    widths: Mapping[int, int] = field(default_factory=dict)  # dimensions -> memories
    unembedded: int = 0
    longest_content: int = 0  # characters
    largest_batch_bytes: int = 0  # UTF-8 bytes of the 32 longest memories
    missing: tuple[str, ...] = ()
    fts_rows: Mapping[str, int] = field(default_factory=dict)
    fts_pending: bool = False
    future_timestamps: int = 0  # memories dated more than a day ahead of this machine's clock
    invalid_timestamps: int = 0  # memories whose timestamp is not empty and SQLite's datetime() cannot read
    calibration: Mapping[str, object] | None = None
    calibration_problem: str = ""
    audit: Audit = field(default_factory=Audit)
    integrity: Literal["", "whole", "partial"] = ""
    unchecked: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()
