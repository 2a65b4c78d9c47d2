"""Where the server keeps things, how it is reached, who may reach it, and what it lets in."""

from __future__ import annotations

from cpersona_cli.install.settings.model import Earlier, Invalid, Kind, Reader, Setting
from cpersona_cli.install.settings.rows import choice, integer, number, strict_before, switch, text, unbounded_before

STORAGE: tuple[Setting, ...] = (
    text(
        "CPERSONA_DB_PATH",
        "the database; relative to the folder the process starts in, and ~ or $NAME are not expanded",
        "data/cpersona.db",
        earlier=(
            Earlier(
                until="2.6.11",
                empty_is_unset=False,
                effect="every connection gets a private database of its own, and nothing is kept",
            ),
        ),
    ),
    text(
        "CPERSONA_ALIAS_LEDGER_FILE",
        "per-subject aliases, used with such clients in the ACL file only",
        derived="alias_ledger.json beside the database",
        since="2.5.7",
    ),
    text("CPERSONA_EXPORT_DIR", "when set, exports and imports outside of this folder are refused"),
    integer("CPERSONA_MAX_IMPORT_BYTES", "size of the largest file import_memories reads", 104857600, since="2.5.0"),
    switch("CPERSONA_FTS_ENABLED", "word search", default=True),
    switch("CPERSONA_TASK_QUEUE_ENABLED", "background work: profiles, episodes, blocks, index files", default=True),
    integer("CPERSONA_TASK_MAX_RETRIES", "attempts at one piece of background work", 3),
    integer("CPERSONA_TASK_RETRY_DELAY", "seconds between them", 30),
    switch("CPERSONA_BLOCK_BUILD_ENABLED", "cut memories into blocks and embed these too", default=True, since="2.6.0"),
    switch(
        "CPERSONA_BLOCK_RETRIEVAL_ENABLED",
        "search the blocks; on without building them, the server refuses to start",
        default=True,
        derived="as CPERSONA_BLOCK_BUILD_ENABLED",
        since="2.6.0",
    ),
    switch("CPERSONA_BLOCK_INDEX", "keep the blocks in a file beside the database", default=True, since="2.6.7"),
    integer("CPERSONA_REEMBED_ROW_CAP", "rows without a vector one repair run embeds", 5000, floor=1, since="2.5.12"),
    integer("CPERSONA_NEAR_DUPLICATE_ROW_CAP", "rows compared for near duplicates", 5000, floor=2, since="2.5.12"),
    integer("CPERSONA_INVALID_SOURCE_CLASSIFY_CAP", "wrong sources looked at", 10000, floor=1, since="2.5.12"),
    integer("CPERSONA_NORMALIZATION_SCAN_CAP", "rows read for their Unicode form", 10000, floor=1, since="2.5.12"),
)

TRANSPORT: tuple[Setting, ...] = (
    Setting(
        name="CPERSONA_TRANSPORT",
        kind=Kind.EXACT,
        default="stdio",
        choices=("stdio", "streamable-http"),
        invalid=Invalid.REFUSES,
        empty_is_unset=False,
        note="how clients reach the server",
        earlier=(Earlier(until="2.6.11", effect="only after it has opened and migrated the database"),),
    ),
    text("CPERSONA_HTTP_HOST", "address to bind; empty binds every interface", "127.0.0.1", empty_is_unset=False),
    integer(
        "CPERSONA_HTTP_PORT",
        "port to bind, read in streamable-http only",
        8402,
        low=0,
        high=65535,
        outside=Invalid.REFUSES,
        effect="in streamable-http only, and after it has opened and migrated the database",
        earlier=(strict_before("2.5.2"),),
    ),
    text(
        "CPERSONA_AUTH_TOKEN",
        "bearer token of the HTTP transport (the stdio proxy sends it); ignored with an ACL file",
        secret=True,
    ),
    Setting(
        name="CPERSONA_ALLOW_UNAUTHENTICATED_HTTP",
        kind=Kind.TRUE_ONLY,
        default="false",
        invalid=Invalid.OFF,
        since="2.5.3",
        empty_is_unset=False,
        note="the HTTP transport without a token; 1, yes and on do not count here",
    ),
    text(
        "CPERSONA_ACL_FILE", "clients and their grants; missing or invalid, the server refuses to start", since="2.5.6"
    ),
    text("CPERSONA_OAUTH_RESOURCE", "with an ACL file: the name tokens must be made out for", since="2.5.7"),
    text("CPERSONA_OAUTH_AUTHORIZATION_SERVERS", "issuers, separated by spaces or commas", since="2.5.7"),
    text("CPERSONA_OAUTH_SCOPES", "scopes to advertise", since="2.5.7"),
    text("CPERSONA_OAUTH_JWKS_URI", "where the keys of the only issuer are", since="2.5.7"),
    integer("CPERSONA_HTTP_MAX_BODY_BYTES", "budget for the body of one request", 4194304, since="2.5.12"),
    choice(
        "CPERSONA_HTTP_BODY_LIMIT_MODE",
        "what a body over that budget costs",
        ("warn", "reject", "off"),
        since="2.5.12",
        invalid=Invalid.UNCHECKED,
        empty_is_unset=False,
        effect="it matches no mode",
    ),
    text(
        "CPERSONA_REMOTE_URL",
        "the server a stdio proxy forwards to",
        "http://localhost:8402/mcp",
        reader=Reader.PROXY,
        empty_is_unset=False,
    ),
    integer(
        "CPERSONA_PROXY_MAX_INFLIGHT",
        "requests a stdio proxy has under way",
        8,
        reader=Reader.PROXY,
        floor=1,
        stripped=True,
        since="2.5.5",
    ),
    Setting(
        name="CPERSONA_OPERATING_CONTEXT",
        kind=Kind.OFF_ONLY,
        default="on",
        since="2.5.1",
        note="off (any case) is the only value with an effect",
    ),
    text(
        "CPERSONA_OPERATING_CONTEXT_PATH",
        "the operator's rules; the one path in which ~ is expanded",
        "~/.cpersona/operating-context.toml",
        since="2.5.1",
    ),
    switch(
        "CPERSONA_UPDATE_CHECK",
        "one request to the package index at each start; what is neither on nor off counts as off",
        default=True,
        invalid=Invalid.OFF,
        since="2.5.11",
    ),
    integer("CPERSONA_UPDATE_CHECK_INTERVAL_SECONDS", "seconds an answer is used", 86400, since="2.5.11"),
)

WRITES: tuple[Setting, ...] = (
    integer(
        "CPERSONA_MAX_CONTENT_LENGTH",
        "characters kept of one memory",
        16000,
        low=1,
        outside=Invalid.REFUSES,
        earlier=(
            unbounded_before("2.6.11"),
            Earlier(until="2.5.4", default="2000"),
            strict_before("2.5.0"),
        ),
    ),
    integer(
        "CPERSONA_MAX_PROFILE_LENGTH",
        "characters kept of a profile",
        2000,
        low=1,
        outside=Invalid.REFUSES,
        since="2.5.4",
        earlier=(unbounded_before("2.6.11"),),
    ),
    integer("CPERSONA_MAX_METADATA_LENGTH", "characters of source or metadata; longer is refused", 8000, since="2.5.2"),
    choice(
        "CPERSONA_EXTERNAL_CONTEXT_MODE",
        "what an external_context entry of another shape costs",
        ("warn", "reject", "off"),
        since="2.5.12",
    ),
    choice(
        "CPERSONA_FUTURE_TIMESTAMP_MODE",
        "what a timestamp ahead of the clock costs",
        ("warn", "reject", "off"),
        since="2.5.12",
    ),
    integer("CPERSONA_FUTURE_TIMESTAMP_SKEW_SECONDS", "how far ahead is still fine", 300, since="2.5.12"),
    switch("CPERSONA_LOGICAL_DIRECTORY", "list memories as folders", default=False, since="2.6.13"),
    switch("CPERSONA_DECLARED_FOLDERS", "let agents file memories into folders", default=False, since="2.6.14"),
    integer("CPERSONA_FOLDER_MAX_DEPTH", "levels of folders", 6, low=1, high=16, since="2.6.14"),
    switch("CPERSONA_SCOPE_STATS_CACHE", "keep the counts each recall needs", default=True, since="2.5.11"),
    number(
        "CPERSONA_SCOPE_STATS_TTL_SECONDS", "seconds they are used after another process wrote", 60.0, since="2.5.11"
    ),
)
