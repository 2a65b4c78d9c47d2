"""A row that is to be brought in, as it will stand in the database, and what tells later whether it still does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from cpersona_cli.record import record
from cpersona_cli.store.model import Kind

#: Longest ``msg_id``, ``channel`` and ``project_id``, and the longest JSON of ``source`` and ``metadata``, that the
#: server itself would store (2.6.14: MAX_KEY_FIELD_LENGTH, MAX_METADATA_LENGTH).
KEY, JSON = 256, 8000


@record(kw_only=True)
class NewRow:
    """A memory or an episode. Times are text as the server spells them; ``at`` is a memory's ``timestamp``.

    ``item`` numbers what was read that it came from: a long message becomes several rows. ``key`` names the
    conversation of an episode, by which a later run knows it, and ``last`` the last message it covers. ``wanted`` is
    an episode's ``created`` before it was held back to spare memories.
    """

    kind: Kind
    item: int
    agent: str
    project: str
    channel: str
    text: str
    created: str
    msg_id: str = ""
    source: str = "{}"
    metadata: str = "{}"
    at: str = ""
    started: str = ""
    ended: str = ""
    keywords: str = ""
    resolved: int = 0
    locked: int = 0
    key: str = ""
    last: str = ""
    wanted: str = ""


#: Columns that a row is inserted with, and by which it is known to be as it was. Recalls and new vectors change others.
COLUMNS = {
    Kind.MEMORY: (
        "agent_id", "project_id", "channel", "msg_id", "content", "source", "timestamp", "metadata", "created_at",
        "locked",
    ),
    Kind.EPISODE: (
        "agent_id", "project_id", "channel", "summary", "keywords", "start_time", "end_time", "created_at", "resolved",
    ),
}  # fmt: skip


def values(row: NewRow) -> tuple[str | int, ...]:
    """What stands in ``COLUMNS``."""
    place = row.agent, row.project, row.channel
    if row.kind is Kind.MEMORY:
        return (*place, row.msg_id, row.text, row.source, row.at, row.metadata, row.created, row.locked)
    return (*place, row.text, row.keywords, row.started, row.ended, row.created, row.resolved)


def digest_of(found: Sequence[Any]) -> bytes:
    """The digest of what stands in ``COLUMNS``, whether its texts are text or bytes."""
    shown = [value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value for value in found]
    return hashlib.sha256(json.dumps(shown).encode()).digest()


def text_digest(text: str) -> bytes:
    """Sixteen bytes that stand for a text where a million of them are compared."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
