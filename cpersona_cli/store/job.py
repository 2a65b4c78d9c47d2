"""What a rebuild keeps beside the database: where, under which names, and what one entry of it is.

Nothing of a job stands inside the database: any DDL there makes the server throw its index files away. Links to a
database are followed first, so that there is one job however it is called.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from pathlib import Path

from cpersona_cli.record import record
from cpersona_cli.store.files import real_path, sibling
from cpersona_cli.store.model import Kind, StoreError

#: Suffixes of the database's own name.
STAGING = ".reembed"  # new vectors, batch by batch; SQLite
UNDO = ".reembed-undo"  # the vectors and labels that were replaced; SQLite
BACKUP = ".reembed-backup"  # the whole database as it was before the job; SQLite
RECORD = ".reembed.json"  # the last finished job, kept after the other files are gone


class JobError(StoreError):
    """What was asked for does not go with the state of the job beside a database; looking at that state helps."""


class JobState(StrEnum):
    """How far a job has come; each is written before the step it names begins."""

    STAGING = "staging"
    STAGED = "staged"  # every row has its vector, or a reason why not; nothing of the database was changed
    CUTTING = "cutting"  # the one transaction may or may not have happened: the database tells
    CUT = "cut"
    UNDONE = "undone"


@record(kw_only=True)
class Target:
    """What makes the vectors of a job, as measured. ``url`` is without user info and query.

    ``label`` is what the server writes as ``embedding_model`` for this endpoint (empty where it would write nothing).
    Two targets that differ in ``mode``, ``model``, ``dim`` or ``fingerprint`` are never mixed.
    """

    mode: str
    url: str
    model: str
    dim: int
    fingerprint: str = ""
    label: str = ""
    served: str = ""  # the model's name as replies state it

    @property
    def telling(self) -> bool:
        """Whether ``label`` is evidence of who made a vector.

        Only a fingerprint, or the model that mode api sends, is: in mode http a configured name never reaches the
        backend.
        """
        return bool(self.label) and (bool(self.fingerprint) or self.mode == "api")


@record
class Staged:
    """A new vector: little-endian 32-bit floats, as the endpoint gave them. ``digest`` is of the text it is for."""

    kind: Kind
    id: int
    digest: bytes
    vector: bytes


@record
class Refused:
    """A row that has no new vector: ``reason`` is a kind of outcome, or ``blank`` or ``too_long``."""

    kind: Kind
    id: int
    digest: bytes
    reason: str
    detail: str = ""
    tokens: int | None = None


def digest(text: str) -> bytes:
    """SHA-256 of a text as UTF-8; half characters pass, so that every stored text has one."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def staging_path(database: Path) -> Path:
    return sibling(real_path(database), STAGING)


def undo_path(database: Path) -> Path:
    return sibling(real_path(database), UNDO)


def backup_path(database: Path) -> Path:
    return sibling(real_path(database), BACKUP)


def record_path(database: Path) -> Path:
    return sibling(real_path(database), RECORD)
