"""Variables of other programs that meet CPersona's: the embedding server, the agent plugin, the HTTP client, nobody.

The embedding server's rows describe CEmbedding 0.9.1, the reference implementation.
"""

from __future__ import annotations

from typing import Unpack

from cpersona_cli.install.settings.model import Invalid, Kind, Reader, Setting
from cpersona_cli.install.settings.rows import More, text


def _embedding(name: str, note: str, default: str = "", kind: Kind = Kind.TEXT, **more: Unpack[More]) -> Setting:
    """A row of the embedding server, which checks nothing politely: what it cannot read ends its start."""
    if kind is not Kind.TEXT:
        more.setdefault("invalid", Invalid.REFUSES)
        more.setdefault("outside", Invalid.REFUSES)
        more.setdefault("empty_is_unset", False)
    more["reader"] = Reader.EMBEDDING_SERVER
    more["since"] = ""
    return Setting(name=name, note=note, default=default, kind=kind, **more)


def _one_of(name: str, note: str, choices: tuple[str, ...], kind: Kind = Kind.CHOICE, **more: Unpack[More]) -> Setting:
    more.setdefault("invalid", Invalid.REFUSES)
    more["reader"] = Reader.EMBEDDING_SERVER
    more["since"] = ""
    more["empty_is_unset"] = False
    return Setting(name=name, note=note, choices=choices, default=choices[0], kind=kind, **more)


EMBEDDING_SERVER: tuple[Setting, ...] = (
    _one_of(
        "EMBEDDING_PROVIDER",
        "what computes the vectors; left unset it is an API and needs a key",
        ("api_openai", "onnx_miniml", "onnx_jina_v5_nano", "onnx_bge_m3", "mlx_bge_m3", "auto_bge_m3"),
        Kind.EXACT,
    ),
    _embedding("EMBEDDING_HTTP_HOST", "address to bind; a container needs 0.0.0.0", "127.0.0.1", stripped=True),
    _embedding("EMBEDDING_HTTP_PORT", "port of the /embed route", "8401", Kind.INT, low=1, high=65535),
    _embedding("EMBEDDING_API_KEY", "key of the API provider; also CPersona's second name", secret=True),
    _embedding(
        "EMBEDDING_API_URL",
        "address of the API provider; also CPersona's second name",
        "https://api.openai.com/v1/embeddings",
        empty_is_unset=False,
    ),
    _embedding("EMBEDDING_MODEL", "model of the API provider; also CPersona's second name"),
    _embedding("EMBEDDING_TIMEOUT_SECS", "seconds per call of the API provider", "30", Kind.INT),
    _embedding("EMBEDDING_DIMENSIONS", "width of the API provider's vectors", "1536", Kind.INT),
    _embedding(
        "EMBEDDING_INDEX_ENABLED",
        "serve an index for CPersona's remote search",
        "true",
        Kind.TRUE_ONLY,
        invalid=Invalid.OFF,
    ),
    _embedding(
        "EMBEDDING_INDEX_DB_PATH",
        "the index; relative to the folder the process starts in",
        "data/embedding_index.db",
        empty_is_unset=False,
    ),
    _one_of("EMBEDDING_SEARCH_BACKEND", "what searches the index", ("numpy", "mlx"), Kind.LOWER),
    _embedding("EMBEDDING_MAX_BATCH", "texts computed in one pass; 0 merges no requests", "64", Kind.INT, low=0),
    _one_of("EMBEDDING_MODEL_VARIANT", "precision of the model; another one moves vectors", ("fp32", "fp16", "int8")),
    _one_of(
        "EMBEDDING_TRANSPORT",
        "streamable-http serves MCP instead of /embed",
        ("stdio", "streamable-http"),
        Kind.EXACT,
        invalid=Invalid.UNCHECKED,
        effect="it counts as stdio",
    ),
    _embedding("EMBEDDING_MCP_HTTP_HOST", "address of that MCP transport", "0.0.0.0", empty_is_unset=False),  # noqa: S104 - what that program does
    _embedding("EMBEDDING_MCP_HTTP_PORT", "port of that MCP transport", "8403", Kind.INT),
    _one_of("EMBEDDING_SIDECAR", "keep a memory-mapped copy of the index", ("auto", "off")),
    _embedding("EMBEDDING_SIDECAR_PATH", "where that copy is; beside the index when empty"),
    _embedding("EMBEDDING_SIDECAR_MIN_ROWS", "rows from which it is kept", "10000", Kind.INT),
    _embedding("EMBEDDING_SIDECAR_MAX_TAIL", "part that may be newer than it", "0.25", Kind.FLOAT),
    _embedding(
        "CEMBEDDING_AUTH_TOKEN", "bearer token callers must send; CPersona sends none", secret=True, stripped=True
    ),
    _embedding(
        "CEMBEDDING_REQUIRE_AUTH",
        "refuse to start without that token",
        "false",
        Kind.BOOL,
        invalid=Invalid.OFF,
        empty_is_unset=True,
    ),
    _embedding("ONNX_MODEL_DIR", "folder of the model; relative to the folder the process starts in"),
    _embedding("MLX_MODEL_DIR", "the same for MLX models"),
    _embedding("CLOTO_PROJECT_DIR", "folder the default model folder is relative to"),
    _embedding("ONNX_MAX_SEQ_LEN", "tokens read of a text", "2048", Kind.INT, low=1, high=8192),
    _embedding("ONNX_INTRA_OP_THREADS", "threads; 0 leaves it to the runtime", "0", Kind.INT, low=0),
    _one_of("ONNX_GRAPH_OPT_LEVEL", "graph optimisation", ("all", "disable", "basic", "extended")),
    _one_of("ONNX_ALLOW_SPINNING", "keep threads busy between calls", ("0", "1")),
    _embedding("ONNX_EP_PREFERENCE", "execution providers to try, separated by commas", stripped=True),
)

PLUGIN: tuple[Setting, ...] = (
    text(
        "CPERSONA_AGENT_ID", "whose memory the plugin's hooks write; the server does not read it", reader=Reader.PLUGIN
    ),
    text(
        "CPERSONA_HOOKS_DISABLE", "switches the plugin's hooks off; the server does not read it", reader=Reader.PLUGIN
    ),
)


def _system(name: str, note: str, *, both_cases: bool = True, secret: bool = False) -> Setting:
    return text(
        name,
        note,
        reader=Reader.SYSTEM,
        since="",
        secret=secret,
        aliases=(name.lower(),) if both_cases else (),
        alias_first=both_cases,
    )


SYSTEM: tuple[Setting, ...] = (
    _system("HTTP_PROXY", "proxy for http:// addresses, loopback included"),
    _system("HTTPS_PROXY", "proxy for https:// addresses"),
    _system("ALL_PROXY", "proxy for everything else; a socks:// one needs an extra package or nothing starts"),
    _system("NO_PROXY", "hosts reached directly, by name; ranges such as 127.0.0.0/8 do not count"),
    _system("SSL_CERT_FILE", "certificates to trust", both_cases=False),
    _system("SSL_CERT_DIR", "folder of certificates to trust, when SSL_CERT_FILE is unset", both_cases=False),
)


def _nobody(name: str, meant: str, note: str, *, removed: str = "", secret: bool = False) -> Setting:
    return text(name, note, reader=Reader.NOBODY, since="", instead=meant, removed=removed, secret=secret)


_SIBLING = "never was a name of this server"
_FORMER = "of an earlier host program; the server has no language model of its own"
_BUNDLED = "stood in a bundled library until 2.5.1 and was never used by the server"

NOBODY: tuple[Setting, ...] = (
    _nobody("EMBEDDING_URL", "CPERSONA_EMBEDDING_URL", "the second name of the address is EMBEDDING_HTTP_URL"),
    _nobody("CPERSONA_EMBEDDING_HTTP_URL", "CPERSONA_EMBEDDING_URL", "the prefixed name has no HTTP in it"),
    _nobody("CPERSONA_EMBED_URL", "CPERSONA_EMBEDDING_URL", _SIBLING),
    _nobody("CPERSONA_EMBEDDING_ENDPOINT", "CPERSONA_EMBEDDING_URL", _SIBLING),
    _nobody("CPERSONA_EMBEDDING_PROVIDER", "CPERSONA_EMBEDDING_MODE", "the provider is the embedding server's setting"),
    _nobody("CPERSONA_EMBEDDING_BACKEND", "CPERSONA_EMBEDDING_MODE", _SIBLING),
    _nobody("CPERSONA_EMBEDDING_ENABLED", "CPERSONA_EMBEDDING_MODE", "embedding is switched on by its mode"),
    _nobody("CPERSONA_EMBEDDING_KEY", "CPERSONA_EMBEDDING_API_KEY", _SIBLING, secret=True),
    _nobody("CPERSONA_EMBEDDING_TOKEN", "CPERSONA_EMBEDDING_API_KEY", _SIBLING, secret=True),
    _nobody("CPERSONA_EMBEDDING_MODEL_NAME", "CPERSONA_EMBEDDING_MODEL", _SIBLING),
    _nobody("CPERSONA_EMBEDDING_TIMEOUT", "CPERSONA_EMBEDDING_TIMEOUT_SECS", "the name ends in the unit"),
    _nobody("CPERSONA_EMBEDDING_DIMENSIONS", "", "the width is learnt from the first answer"),
    _nobody("CPERSONA_OPENAI_API_KEY", "CPERSONA_EMBEDDING_API_KEY", _SIBLING, secret=True),
    _nobody("OPENAI_API_KEY", "CPERSONA_EMBEDDING_API_KEY", "the server reads its own name only", secret=True),
    _nobody("CPERSONA_DATABASE_PATH", "CPERSONA_DB_PATH", _SIBLING),
    _nobody("CPERSONA_DATABASE", "CPERSONA_DB_PATH", _SIBLING),
    _nobody("CPERSONA_DATABASE_URL", "CPERSONA_DB_PATH", "the database is a plain path, not an address"),
    _nobody("CPERSONA_DB", "CPERSONA_DB_PATH", _SIBLING),
    _nobody("CPERSONA_DB_FILE", "CPERSONA_DB_PATH", _SIBLING),
    _nobody("CPERSONA_DB_URL", "CPERSONA_DB_PATH", "the database is a plain path, not an address"),
    _nobody("CPERSONA_DATA_DIR", "CPERSONA_DB_PATH", "the database is named as a file"),
    _nobody("CPERSONA_PATH", "CPERSONA_DB_PATH", _SIBLING),
    _nobody("CPERSONA_HOST", "CPERSONA_HTTP_HOST", _SIBLING),
    _nobody("CPERSONA_PORT", "CPERSONA_HTTP_PORT", _SIBLING),
    _nobody("CPERSONA_TOKEN", "CPERSONA_AUTH_TOKEN", _SIBLING, secret=True),
    _nobody("CPERSONA_API_KEY", "CPERSONA_AUTH_TOKEN", _SIBLING, secret=True),
    _nobody("CPERSONA_URL", "CPERSONA_REMOTE_URL", "the stdio proxy's address"),
    _nobody(
        "CPERSONA_AGENT", "CPERSONA_AGENT_ID", "the plugin's name for it; the server takes the agent with each call"
    ),
    _nobody("CPERSONA_LOG_LEVEL", "", "the server has no setting for its log"),
    _nobody("CPERSONA_DEBUG", "", "the server has no setting for its log"),
    _nobody("CPERSONA_LLM_PROVIDER", "", _FORMER, removed="2.4"),
    _nobody("CPERSONA_LLM_MODEL", "", _FORMER, removed="2.4"),
    _nobody("CPERSONA_LLM_API_KEY", "", _FORMER, removed="2.4", secret=True),
    _nobody("CLOTO_LLM_PROXY", "", _BUNDLED, removed="2.5.2"),
    _nobody("CLOTO_MEMORY_INJECTION", "", _BUNDLED, removed="2.5.2"),
    _nobody("CLOTO_SEARCH_PROVIDER", "", _BUNDLED, removed="2.5.2"),
    _nobody("CLOTO_SEARCH_TIMEOUT", "", _BUNDLED, removed="2.5.2"),
)
