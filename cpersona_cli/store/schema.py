"""What the server relies on in its database, by schema number (read from the releases 2.4.41 to 2.6.14)."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

#: Schema numbers and the first release that wrote each: ``schema_version`` holds the number.
RELEASES = {13: "2.4.41", 17: "2.6.0", 18: "2.6.3", 19: "2.6.7", 20: "2.6.11", 21: "2.6.14"}

#: The first schema number this tool knows; older servers wrote triggers that fire on every update.
OLDEST = 13
NEWEST = 21

#: Columns without which a table ``memories`` is some other program's.
OWN_COLUMNS = frozenset({"id", "agent_id", "content", "timestamp"})

#: Schema number -> tables, triggers and unique indexes that came with it.
_PARTS: Mapping[int, tuple[str, ...]] = {
    13: (
        "schema_version",
        "memories",
        "episodes",
        "profiles",
        "pending_memory_tasks",
        "idx_memories_dedup_content",
        "idx_memories_dedup_msg_id",
    ),
    14: (
        "record_nodes",
        "record_nodes_memories_ad",
        "record_nodes_memories_au",
        "record_nodes_episodes_ad",
        "record_nodes_episodes_au",
    ),
    15: (
        "entities",
        "entity_aliases",
        "entity_mentions",
        "relations",
        "associations_entities_ad",
        "associations_memories_ad",
        "associations_episodes_ad",
    ),
    16: (
        "record_blocks",
        "record_blocks_memories_ad",
        "record_blocks_memories_au",
        "record_blocks_memories_ax",
        "record_blocks_episodes_ad",
        "record_blocks_episodes_au",
        "record_blocks_episodes_ax",
    ),
    17: ("record_block_vectors", "record_block_vectors_ad"),
    19: (
        "block_log_clock",
        "record_block_changes",
        "record_block_log_ai",
        "record_block_log_ad",
        "record_block_log_au",
        "record_block_log_ak",
    ),
    20: (
        "vector_log_clock",
        "record_vector_changes",
        "memories_vector_log_au",
        "memories_vector_log_ak",
        "memories_vector_log_ad",
        "episodes_vector_log_au",
        "episodes_vector_log_ak",
        "episodes_vector_log_ad",
    ),
    21: ("folders", "folder_members", "folders_memories_ad", "folders_episodes_ad", "folders_folders_ad"),
}

#: Text index -> the triggers that keep it in step.
_TEXT_INDEXES = {
    "memories_fts": ("memories_fts_ai", "memories_fts_ad", "memories_fts_au"),
    "episodes_fts": ("episodes_ai", "episodes_ad", "episodes_au"),
}


def missing(schema: int | None, present: AbstractSet[str]) -> tuple[str, ...]:
    """Names a server of ``schema`` relies on that are not among ``present``; a schema not told counts as the oldest."""
    number = OLDEST if schema is None else schema
    wanted = [name for since, names in _PARTS.items() if since <= number for name in names]
    wanted += [trigger for index, triggers in _TEXT_INDEXES.items() if index in present for trigger in triggers]
    return tuple(name for name in wanted if name not in present)


def text_indexes(present: AbstractSet[str]) -> tuple[str, ...]:
    """The text indexes that exist."""
    return tuple(index for index in _TEXT_INDEXES if index in present)
