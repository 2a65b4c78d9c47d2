"""What can be seen of a database file without changing a byte of it or of its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from cpersona_cli.install.model import Process


class State(StrEnum):
    """The first thing that stood in the way of reading, or ``ok``."""

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
    FOLDER_READ_ONLY = "folder-read-only"  # WAL mode, no -shm, and none can be made
    STALE_WAL = "stale-wal"
    UNREADABLE = "unreadable"  # anything else, the reason in detail
    VOLATILE = "volatile"  # :memory:


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The facts of one database.

    ``files`` are the names that stand beside it (``-wal``, ``.calibration.json`` ...) with their sizes in bytes.
    ``filesystem`` is the mount's type; ``risk`` a word when that type or folder endangers SQLite (``network``,
    ``bind-mount``, ``synced``). ``counts`` are rows per table, ``agents`` memories per agent id. ``missing`` are
    schema objects the server relies on. Widths, labels and sizes come from cheap SQL only; contents of vectors are
    not looked at here.
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
    wal_bytes: int = 0
    holders: tuple[Process, ...] = ()
    holders_known: bool = True  # False where the system does not tell
    counts: Mapping[str, int] = field(default_factory=dict)
    agents: Mapping[str, int] = field(default_factory=dict)
    projects: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)  # embedding_model -> memories with a vector
    widths: Mapping[int, int] = field(default_factory=dict)  # dimensions -> memories
    unembedded: int = 0
    longest_content: int = 0  # characters
    largest_batch_bytes: int = 0  # UTF-8 bytes of the 32 longest memories
    missing: tuple[str, ...] = ()
    fts_rows: Mapping[str, int] = field(default_factory=dict)
    sqlite_version: str = ""
    trigram: bool = True
    fts_pending: bool = False
    future_timestamps: int = 0  # memories dated more than a day ahead of this machine's clock
    invalid_timestamps: int = 0  # memories whose timestamp is not empty and SQLite's datetime() cannot read
    before_newest_episode: int = 0  # memories older than their agent's newest episode by its created_at
    newest_memory: str = ""
    newest_episode_created: str = ""
    newest_episode_ended: str = ""
    calibration: Mapping[str, object] | None = None
    calibration_problem: str = ""
