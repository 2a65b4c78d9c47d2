"""The server's own embedding variables: the one group with second names, shared by other servers of the family."""

from __future__ import annotations

from cpersona_cli.install.settings.model import Earlier, Invalid, Kind, Setting
from cpersona_cli.install.settings.rows import choice, integer, number, strict_before, switch, text, unbounded_before

# The second names came with 2.4.23; an earlier server reads the prefixed names only.
_PREFIXED_ONLY = Earlier(until="2.4.23", aliases=())

ROWS: tuple[Setting, ...] = (
    Setting(
        name="CPERSONA_EMBEDDING_MODE",
        kind=Kind.EXACT,
        default="none",
        choices=("none", "http", "api"),
        aliases=("EMBEDDING_MODE",),
        invalid=Invalid.REFUSES,
        earlier=(
            Earlier(until="2.6.11", empty_is_unset=False),
            Earlier(until="2.5.10", invalid=Invalid.UNCHECKED, effect="every embedding call fails"),
            _PREFIXED_ONLY,
        ),
        note="where vectors come from: nowhere, an embedding server, or an OpenAI-style API",
    ),
    text(
        "CPERSONA_EMBEDDING_URL",
        "mode http: the full address of the route, ending in /embed",
        aliases=("EMBEDDING_HTTP_URL",),
        earlier=(_PREFIXED_ONLY,),
    ),
    text(
        "CPERSONA_EMBEDDING_API_KEY",
        "mode api: the bearer key; an empty one makes every call fail before it leaves the machine",
        aliases=("EMBEDDING_API_KEY",),
        secret=True,
        earlier=(_PREFIXED_ONLY,),
    ),
    text(
        "CPERSONA_EMBEDDING_API_URL",
        "mode api: the full address of the route; an empty second name stays empty",
        "https://api.openai.com/v1/embeddings",
        aliases=("EMBEDDING_API_URL",),
        empty_is_unset=False,
        earlier=(_PREFIXED_ONLY,),
    ),
    text(
        "CPERSONA_EMBEDDING_MODEL",
        "mode api: sent with every call; mode http: a label only. An empty second name stays empty",
        "text-embedding-3-small",
        aliases=("EMBEDDING_MODEL",),
        empty_is_unset=False,
        earlier=(_PREFIXED_ONLY,),
    ),
    choice(
        "CPERSONA_EMBEDDING_MODEL_MODE",
        "what a vector labelled with another model counts for; reject treats it as no vector",
        ("warn", "reject", "off"),
        since="2.6.3",
    ),
    integer(
        "CPERSONA_EMBEDDING_TIMEOUT_SECS",
        "seconds per embedding call; 0 or less makes every call time out at once",
        30,
        earlier=(strict_before("2.5.2"),),
    ),
    integer(
        "CPERSONA_EMBEDDING_CACHE_SIZE",
        "vectors of recent texts kept in memory; 0 keeps none",
        256,
        floor=0,
        earlier=(unbounded_before("2.6.11"), strict_before("2.5.0")),
    ),
    integer("CPERSONA_EMBEDDING_CACHE_TTL", "seconds a kept vector is used", 300),
    number(
        "CPERSONA_VECTOR_MIN_SIMILARITY", "similarity below which a row is no hit, until a threshold is calibrated", 0.3
    ),
    choice(
        "CPERSONA_VECTOR_SEARCH_MODE",
        "search the vectors in the database, or ask the embedding server's index",
        ("local", "remote"),
        earlier=(
            Earlier(
                until="2.5.12",
                kind=Kind.EXACT,
                invalid=Invalid.UNCHECKED,
                empty_is_unset=False,
                effect="new memories are not sent to the remote index, and without CPERSONA_STORE_BLOB get no vector",
            ),
        ),
    ),
    switch("CPERSONA_STORE_BLOB", "keep vectors in the database also in remote mode", default=True),
    number("CPERSONA_REMOTE_SEARCH_TIMEOUT_SECS", "seconds a remote search may take before the local one answers", 5.0),
    number("CPERSONA_REMOTE_INDEX_TIMEOUT_SECS", "seconds a push to the remote index may take", 10.0, since="2.5.2"),
    switch("CPERSONA_DEGRADED_ADVISORY", "tell the agent when meaning search is not available", default=True),
)
