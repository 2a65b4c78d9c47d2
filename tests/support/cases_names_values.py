"""Rows for the traps about values that cannot be used."""

from __future__ import annotations

from support.cases_names import API, GOOD, KEY, MODE, MODEL, REMOTE, URL
from support.traps import Case, docker, facts

FTS, OPEN = "CPERSONA_FTS_ENABLED", "CPERSONA_ALLOW_UNAUTHENTICATED_HTTP"
COARSE = "CPERSONA_CUE_COARSE_ENABLED"
HTTP = {"CPERSONA_TRANSPORT": "streamable-http"}
TIMEOUT = "CPERSONA_EMBEDDING_TIMEOUT_SECS"

SWITCHES = (
    *(
        Case("names.bool-words", f"{word!r} before", facts({FTS: word}, version="2.6.10"), says=f'"{FTS}": "true"')
        for word in ("1", "yes", "ON", " true")
    ),
    *(
        Case("names.bool-words", f"{word!r} since", facts({FTS: word}, version="2.6.11"), "pass")
        for word in ("1", "yes")
    ),
    Case("names.bool-words", "true", facts({FTS: "TRUE"}, version="2.6.10"), "pass"),
    Case("names.bool-words", "off either way", facts({FTS: "0"}, version="2.6.10"), "pass"),
    Case("names.bool-words", "release not told", facts({FTS: "1"}, version=None), "unknown"),
    Case("names.bool-words", "release not told, true", facts({FTS: "true"}, version=None), "pass"),
    Case("names.only-true", "coarse index", facts({COARSE: "1"}), says=(f'"{COARSE}": "true"', "off")),
    Case("names.only-true", "HTTP without a token", facts({**HTTP, OPEN: "yes"}), says="refuses to start"),
    Case("names.only-true", "with a token it changes nothing", facts({OPEN: "1"}), says="true"),
    Case("names.only-true", "true", facts({COARSE: "true", OPEN: "true"}), "pass"),
    Case("names.only-true", "before it was known", facts({OPEN: "1"}, version="2.5.2"), "pass"),
)

NOT_TEXT = (
    Case("names.not-text", "a switch", facts({FTS: True}), says=(f'"{FTS}": "true"', "true or false")),
    Case("names.not-text", "a number", facts({"CPERSONA_RRF_K": 60}), says='"CPERSONA_RRF_K": "60"'),
    Case("names.not-text", "a fraction", facts({"CPERSONA_DECAY_RATE": 0.5}), says='"0.5"'),
    Case(
        "names.not-text",
        "in Codex",
        facts({"CPERSONA_HTTP_PORT": 8402}, client="codex"),
        says='CPERSONA_HTTP_PORT = "8402"',
    ),
    Case("names.not-text", "null", facts({URL: None}), says=f"remove {URL}"),
    Case("names.not-text", "null by its name", facts({URL: None}), says=f"{URL} is null"),
    Case(
        "names.not-text",
        "a list that belongs beside the block",
        facts({"env_vars": ["A"]}, client="codex"),
        says=('env_vars = ["A"]', "below [mcp_servers.cpersona]", "one level up"),
    ),
    Case("names.not-text", "a list", facts({"ARGS": ["a"]}), says="a list"),
    Case("names.not-text", "an object", facts({"ARGS": {"a": 1}}), says="an object"),
    Case("names.not-text", "a secret is not shown", facts({KEY: 1234567890}), says="<the same value>"),
    Case("names.not-text", "VS Code allows numbers", facts({"A": 1, "B": None}, client="vscode"), "pass"),
    Case("names.not-text", "VS Code allows no switches", facts({"A": True}, client="vscode")),
    Case("names.not-text", "texts", facts({**GOOD, "CPERSONA_RRF_K": "60"}), "pass"),
    Case("names.not-text", "no file", facts({"A": 1}, client="env"), "pass"),
)

QUOTED = (
    Case("names.quoted", "a path", facts({"CPERSONA_EXPORT_DIR": '"/srv/x"'}), says='"CPERSONA_EXPORT_DIR": "/srv/x"'),
    Case("names.quoted", "a number", facts({"CPERSONA_RRF_K": "'60'"}), says='"60"'),
    Case(
        "names.quoted", "docker", facts({}, launch=docker({"CPERSONA_EXPORT_DIR": "'/x'"})), says='"-e", "CPERSONA_EXP'
    ),
    Case("names.quoted", "nothing inside", facts({"CPERSONA_EXPORT_DIR": '""'}), says="remove CPERSONA_EXPORT_DIR"),
    Case("names.quoted", "inside a value", facts({**API, MODEL: "a'b"}), "pass"),
    Case("names.quoted", "the mode's own finding", facts({MODE: '"http"'}), "pass"),
    Case("names.quoted", "plain", facts(GOOD), "pass"),
)

NUMBERS = (
    *(
        Case("names.number-unreadable", text, facts({name: text}), says=f'"{name}": "{meant}"')
        for name, text, meant in (
            (TIMEOUT, "30s", "30"),
            ("CPERSONA_MAX_CONTENT_LENGTH", "16k", "16000"),
            ("CPERSONA_MAX_MEMORIES", "10,000", "10000"),
            ("CPERSONA_MAX_MEMORIES", "-5", "10000"),
            ("CPERSONA_FOLDER_MAX_DEPTH", "40", "6"),
            ("CPERSONA_COSINE_FLOOR", "low", "0.2"),
            ("CPERSONA_CALIBRATE_PERCENTILE", "150", "0.95"),
            ("CPERSONA_RRF_K", "0", "1"),
        )
    ),
    Case(
        "names.number-unreadable",
        "an override without a default",
        facts({"CPERSONA_RECONSTRUCT_FORCED_COUNT": "many"}),
        says="remove CPERSONA_RECONSTRUCT_FORCED_COUNT",
    ),
    Case(
        "names.number-unreadable",
        "spaces and underscores are fine",
        facts({"CPERSONA_MAX_MEMORIES": " 20_000 "}),
        "pass",
    ),
    Case("names.number-unreadable", "quoted is another finding", facts({"CPERSONA_RRF_K": '"60"'}), "pass"),
    Case("names.number-unreadable", "port is another group", facts({"CPERSONA_HTTP_PORT": "84O2"}), "pass"),
    Case("names.number-unreadable", "empty", facts({"CPERSONA_RRF_K": ""}), "pass"),
    Case(
        "names.number-unreadable", "not read yet", facts({"CPERSONA_FOLDER_MAX_DEPTH": "x"}, version="2.6.13"), "pass"
    ),
    Case("names.number-unreadable", "refused before 2.5.0", facts({"CPERSONA_RRF_K": "x"}, version="2.4.41"), "pass"),
    Case("names.number-unreadable", "not expanded", facts({"CPERSONA_RRF_K": "${K}"}), "pass"),
    Case("names.number-unreadable", "a server elsewhere", facts({"CPERSONA_RRF_K": "x"}, **REMOTE), "skipped"),
    Case("names.not-finite", "nan", facts({"CPERSONA_COSINE_FLOOR": "nan"}), says="remove CPERSONA_COSINE_FLOOR"),
    Case("names.not-finite", "inf", facts({"CPERSONA_DECAY_RATE": "-inf"}), says="-inf"),
    Case("names.not-finite", "a number", facts({"CPERSONA_COSINE_FLOOR": "1e-1"}), "pass"),
    Case(
        "names.not-finite", "out of bounds is another finding", facts({"CPERSONA_CALIBRATE_PERCENTILE": "nan"}), "pass"
    ),
    Case("names.timeout", "zero", facts({**GOOD, TIMEOUT: "0"}), says=("at once", f'"{TIMEOUT}": "30"')),
    Case("names.timeout", "negative", facts({**API, TIMEOUT: "-1"})),
    Case("names.timeout", "short", facts({**GOOD, TIMEOUT: "3"}), says="still loading"),
    Case("names.timeout", "enough", facts({**GOOD, TIMEOUT: "10"}), "pass"),
    Case("names.timeout", "default", facts(GOOD), "pass"),
    Case("names.timeout", "nothing to call", facts({TIMEOUT: "0"}), "pass"),
    Case("names.timeout", "unreadable is another finding", facts({**GOOD, TIMEOUT: "x"}), "pass"),
)

WORDS = (
    Case(
        "names.word-unreadable",
        "a typo",
        facts({"CPERSONA_RECALL_MODE": "rrff"}),
        says=("rrf instead", '"CPERSONA_RECALL_MODE": "rrf"'),
    ),
    Case(
        "names.word-unreadable",
        "before: another branch",
        facts({"CPERSONA_RECALL_MODE": "x"}, version="2.6.10"),
        says="cascade",
    ),
    Case(
        "names.word-unreadable", "no near word", facts({"CPERSONA_EMBEDDING_MODEL_MODE": "strict"}), says="warn instead"
    ),
    Case("names.word-unreadable", "a switch", facts({FTS: "treu"}), says=f'"{FTS}": "true"'),
    Case("names.word-unreadable", "a switch before", facts({FTS: "treu"}, version="2.6.10"), says="takes it as off"),
    Case(
        "names.word-unreadable",
        "a word for no",
        facts({"CPERSONA_VECTOR_SEARCH_MODE": "no"}),
        says="remove CPERSONA_VECTOR",
    ),
    Case("names.word-unreadable", "tri-state", facts({COARSE: "atuo"}), says=f'"{COARSE}": "auto"'),
    Case("names.word-unreadable", "tri-state off", facts({COARSE: "off"}), says=f'"{COARSE}": "false"'),
    Case("names.word-unreadable", "tri-state on is another finding", facts({COARSE: "on"}), "pass"),
    Case("names.word-unreadable", "update check is another group", facts({"CPERSONA_UPDATE_CHECK": "never"}), "pass"),
    Case("names.word-unreadable", "any case", facts({"CPERSONA_RECALL_MODE": " RSF "}), "pass"),
    Case("names.word-unreadable", "the mode's own finding", facts({MODE: "HTTP"}, version="2.5.9"), "pass"),
    Case("names.word-unreadable", "fine", facts({"CPERSONA_RECALL_PRECISION": "lenient"}), "pass"),
    Case("names.body-limit-mode", "a typo", facts({"CPERSONA_HTTP_BODY_LIMIT_MODE": "rejct"}), says='"reject"'),
    Case("names.body-limit-mode", "no near word", facts({"CPERSONA_HTTP_BODY_LIMIT_MODE": "413"}), says="remove"),
    Case(
        "names.body-limit-mode", "quoted is another finding", facts({"CPERSONA_HTTP_BODY_LIMIT_MODE": '"off"'}), "pass"
    ),
    Case("names.body-limit-mode", "any case", facts({"CPERSONA_HTTP_BODY_LIMIT_MODE": " Reject"}), "pass"),
)

R = "CPERSONA_RECONSTRUCT_"
REFUSED = (
    Case("names.refused", "default above maximum", facts({R + "DEFAULT_COUNT": "20"}), says=f"remove {R}DEFAULT_COUNT"),
    Case(
        "names.refused", "forced above maximum", facts({R + "FORCED_COUNT": "20", R + "MAX_COUNT": "5"}), says="FORCED"
    ),
    Case("names.refused", "budget below a preview", facts({R + "MAX_BUDGET": "100"}), says="preview"),
    Case("names.refused", "tail above the quote", facts({R + "TAIL_QUOTE_CHARS": "900"}), says="TAIL_QUOTE_CHARS"),
    Case("names.refused", "tail did not follow before 2.6.11", facts({R + "QUOTE_CHARS": "100"}, version="2.6.10")),
    Case("names.refused", "tail follows since", facts({R + "QUOTE_CHARS": "100"}, version="2.6.11"), "pass"),
    Case(
        "names.refused",
        "blocks read and not built",
        facts({"CPERSONA_BLOCK_BUILD_ENABLED": "false", "CPERSONA_BLOCK_RETRIEVAL_ENABLED": "true"}),
        says="remove CPERSONA_BLOCK_RETRIEVAL_ENABLED",
    ),
    Case("names.refused", "blocks switched off", facts({"CPERSONA_BLOCK_BUILD_ENABLED": "false"}), "pass"),
    Case("names.refused", "cap below 1", facts({"CPERSONA_MAX_CONTENT_LENGTH": "0"}), says="refuses to start"),
    Case(
        "names.refused",
        "cap below 1, not checked yet",
        facts({"CPERSONA_MAX_CONTENT_LENGTH": "0"}, version="2.6.10"),
        "pass",
    ),
    Case(
        "names.refused", "before 2.5.0 any bad number", facts({"CPERSONA_RRF_K": "x"}, version="2.4.41"), says="RRF_K"
    ),
    Case("names.refused", "the mode's own finding", facts({MODE: "HTTP"}), "pass"),
    Case("names.refused", "transport is another group", facts(HTTP), "pass"),
    Case("names.refused", "nothing wrong", facts(GOOD), "pass"),
)

CASES = (*SWITCHES, *NOT_TEXT, *QUOTED, *NUMBERS, *WORDS, *REFUSED)
