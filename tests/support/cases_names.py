"""Rows for the traps about which embedding settings are set, under which names, and what nobody reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.traps import MACHINE, UVX, Case, docker, facts

from cpersona_cli.install.model import Launch, LaunchKind, Place, ServerVersion, Variable
from cpersona_cli.record import replace
from cpersona_cli.traps.model import Facts

MODE, URL = "CPERSONA_EMBEDDING_MODE", "CPERSONA_EMBEDDING_URL"
KEY, API_URL, MODEL = "CPERSONA_EMBEDDING_API_KEY", "CPERSONA_EMBEDDING_API_URL", "CPERSONA_EMBEDDING_MODEL"
GOOD = {MODE: "http", URL: "http://127.0.0.1:8401/embed"}
API = {MODE: "api", KEY: "sk-live-0123456789abcdef"}
SHELL = replace(MACHINE, env={**MACHINE.env, **GOOD})
REMOTE: dict[str, Any] = {
    "launch": Launch(kind=LaunchKind.REMOTE),
    "transport": "http",
    "url": "http://127.0.0.1:8402/mcp",
}


def stray(*names: str, file: str = "/home/u/.zshrc") -> tuple[Variable, ...]:
    """Variables exported in a shell's start file."""
    values = {**GOOD, **API, "CPERSONA_DB_PATH": "/home/u/c.db", "CPERSONA_RRF_K": "30", "FOO": "1", MODE: "http"}
    return tuple(Variable(n, values[n], Place(Path(file), i), "shell file") for i, n in enumerate(names, 1))


def floating(known: Facts) -> Facts:
    """The facts with a release that is not told because every start brings the newest."""
    newest = ServerVersion(version=None, evidence="uvx starts the newest", floating=True)
    return replace(known, targets=tuple(replace(target, version=newest) for target in known.targets))


FLOATING = floating(facts({"CPERSONA_BLOCK_INDEX": "true"}))

HTTP = "streamable-http"


def in_zshrc(**values: str) -> tuple[Variable, ...]:
    """Settings by short names, as a shell's start file holds them."""
    names = {"DB": "CPERSONA_DB_PATH", "TRANSPORT": "CPERSONA_TRANSPORT", "TOKEN": "CPERSONA_AUTH_TOKEN"}
    place = Place(Path("/home/u/.zshrc"), 3)
    return tuple(Variable(names.get(n, f"EMBEDDING_{n}"), value, place, "file") for n, value in values.items())


MODE_NONE = (
    Case("names.mode-none", "nothing set", facts({}), says=(f'"{MODE}": "http"', "8401/embed", "default is none")),
    Case("names.mode-none", "none written", facts({MODE: "none"}), says=f"{MODE}=none"),
    Case("names.mode-none", "typo of the name", facts({"CPERSONA_EMBEDING_MODE": "http"}), says="rename"),
    Case("names.mode-none", "in a container", facts({}, launch=docker()), says=f'"-e", "{MODE}=http"'),
    Case("names.mode-none", "container reaches the host by its name", facts({}, launch=docker()), says="host.docker"),
    Case(
        "names.mode-none", "through an unknown wrapper", facts({}, launch=replace(UVX, wrapper="run.sh")), says="run.sh"
    ),
    Case("names.mode-none", "on purpose", facts({"CPERSONA_DEGRADED_ADVISORY": "false"}), "pass"),
    Case("names.mode-none", "http", facts(GOOD), "pass"),
    Case("names.mode-none", "a URL is set, which is another finding", facts({URL: GOOD[URL]}), "pass"),
    Case("names.mode-none", "a server elsewhere", facts({}, **REMOTE), "skipped"),
    Case("names.mode-none", "shell has it, the desktop start has not", facts({}, machine=SHELL), says="depends on how"),
    Case("names.mode-none", "a client that hands nothing on", facts({}, client="codex", machine=SHELL)),
)

MODE_UNSUPPORTED = (
    *(
        Case("names.mode-unsupported", f"written {text!r}", facts({MODE: text}), says=f'"{MODE}": "{meant}"')
        for text, meant in {
            "HTTP": "http",
            "http ": "http",
            '"http"': "http",
            "htpp": "http",
            "true": "http",
            "onnx": "http",
            "openai": "api",
            "ollama": "api",
            "off": "none",
            "None": "none",
        }.items()
    ),
    Case("names.mode-unsupported", "a word that means nothing", facts({MODE: "banana"}), says="none for neither"),
    Case(
        "names.mode-unsupported", "under the alias", facts({"EMBEDDING_MODE": "ollama"}), says='"EMBEDDING_MODE": "api"'
    ),
    Case(
        "names.mode-unsupported",
        "a local server at an address of the other kind",
        facts({MODE: "ollama", URL: "http://127.0.0.1:8401/embed"}),
        says=f'"{MODE}": "http"',
    ),
    Case("names.mode-unsupported", "no text is another finding", facts({MODE: True}), "pass"),
    Case("names.mode-unsupported", "in TOML", facts({MODE: "HTTP"}, client="codex"), says=f'{MODE} = "http"'),
    Case("names.mode-unsupported", "literal in a process", facts({MODE: "${M}"}, client="env"), says="“${M}”"),
    Case("names.mode-unsupported", "before it was refused", facts({MODE: "HTTP"}, version="2.5.9"), says="http"),
    Case("names.mode-unsupported", "control characters are shown harmless", facts({MODE: "a\x1b[2J"}), says="\\x1b[2J"),
    *(
        Case("names.mode-unsupported", f"{text!r} is fine", facts({MODE: text}), "pass")
        for text in ("none", "http", "api")
    ),
    Case("names.mode-unsupported", "empty counts as unset", facts({MODE: ""}), "pass"),
    Case("names.mode-unsupported", "empty was refused before 2.6.11", facts({"EMBEDDING_MODE": ""}, version="2.6.10")),
    Case("names.mode-unsupported", "prompted for", facts({MODE: "${input:m}"}, client="vscode"), "pass"),
)

URL_MISSING = (
    Case("names.url-missing", "no URL", facts({MODE: "http"}), says=f'"{URL}": "http://127.0.0.1:8401/embed"'),
    Case("names.url-missing", "empty URL", facts({MODE: "http", URL: ""})),
    Case("names.url-missing", "swapped name", facts({MODE: "http", "EMBEDDING_URL": "http://h/embed"}), says="rename"),
    Case(
        "names.url-missing",
        "address under the other mode's name",
        facts({MODE: "http", API_URL: "http://h/embed"}),
        says=f"rename {API_URL} to {URL}",
    ),
    Case(
        "names.url-missing",
        "the mode is the mistake",
        facts({MODE: "http", API_URL: "https://h/v1/embeddings"}),
        says=f'"{MODE}": "api"',
    ),
    Case(
        "names.url-missing", "the alias holds it", facts({MODE: "http", "EMBEDDING_HTTP_URL": "http://h/embed"}), "pass"
    ),
    Case("names.url-missing", "mode none", facts({MODE: "none"}), "pass"),
    Case("names.url-missing", "mode api", facts(API), "pass"),
    Case("names.url-missing", "not expanded", facts({MODE: "http", URL: "${E}"}), "pass"),
)

URL_WITHOUT_MODE = (
    Case("names.url-without-mode", "URL alone", facts({URL: GOOD[URL]}), says=(f'"{MODE}": "http"', "is not set")),
    Case(
        "names.url-without-mode", "URL by its alias", facts({"EMBEDDING_HTTP_URL": "http://h/embed"}), says="HTTP_URL"
    ),
    Case("names.url-without-mode", "key alone", facts({KEY: "sk-1234567890"}), says=f'"{MODE}": "api"'),
    Case("names.url-without-mode", "API address alone", facts({API_URL: "https://h/v1/embeddings"}), says="api"),
    Case(
        "names.url-without-mode",
        "typo of the mode",
        facts({URL: GOOD[URL], "CPERSONA_EMBEDING_MODE": "http"}),
        says="ren",
    ),
    Case("names.url-without-mode", "none written", facts({MODE: "none", URL: GOOD[URL]}), says=f"{MODE} is none"),
    Case(
        "names.url-without-mode",
        "switched off on purpose",
        facts({MODE: "none", URL: GOOD[URL], "CPERSONA_DEGRADED_ADVISORY": "false"}),
        "pass",
    ),
    Case("names.url-without-mode", "another program's key", facts({"EMBEDDING_API_KEY": "sk-1234567890"}), "pass"),
    Case("names.url-without-mode", "both set", facts(GOOD), "pass"),
    Case("names.url-without-mode", "nothing set", facts({}), "pass"),
    Case("names.url-without-mode", "unknown mode", facts({MODE: "HTTP", URL: GOOD[URL]}), "pass"),
)

ALIASES = (
    Case("names.alias-too-old", "before", facts({"EMBEDDING_MODE": "http"}, version="2.4.22"), says=f"to {MODE}"),
    Case(
        "names.alias-too-old", "the release that reads it", facts({"EMBEDDING_MODE": "http"}, version="2.4.23"), "pass"
    ),
    Case("names.alias-too-old", "today", facts({"EMBEDDING_MODE": "http"}), "pass"),
    Case("names.alias-too-old", "release not told", facts({"EMBEDDING_MODE": "http"}, version=None), "unknown"),
    Case(
        "names.alias-too-old", "prefixed as well", facts({**GOOD, "EMBEDDING_MODE": "http"}, version="2.4.22"), "pass"
    ),
    Case("names.alias-too-old", "prefixed only", facts(GOOD, version="2.4.22"), "pass"),
    Case(
        "names.alias-shadowed",
        "a repair that does not take",
        facts({**GOOD, "EMBEDDING_HTTP_URL": "http://127.0.0.1:8500/embed"}),
        says=("wins", "remove EMBEDDING_HTTP_URL", f"{URL} first"),
    ),
    Case("names.alias-shadowed", "the mode", facts({**GOOD, "EMBEDDING_MODE": "none"}), says="EMBEDDING_MODE"),
    Case(
        "names.alias-shadowed", "the model", facts({**API, MODEL: "a", "EMBEDDING_MODEL": "b"}), says="EMBEDDING_MODEL"
    ),
    Case("names.alias-shadowed", "in a container", facts({}, launch=docker({**GOOD, "EMBEDDING_MODE": "api"}))),
    Case("names.alias-shadowed", "the same value", facts({**GOOD, "EMBEDDING_HTTP_URL": GOOD[URL]}), "pass"),
    Case(
        "names.alias-shadowed",
        "an empty prefixed one falls through",
        facts({MODE: "", "EMBEDDING_MODE": "http"}),
        "pass",
    ),
    Case("names.alias-shadowed", "an empty alias", facts({**GOOD, "EMBEDDING_MODE": ""}), "pass"),
    Case(
        "names.alias-shadowed",
        "the shell's own key for other programs",
        facts(API, machine=replace(MACHINE, env={**MACHINE.env, "EMBEDDING_API_KEY": "another-key"})),
        "pass",
    ),
    Case(
        "names.alias-shadowed",
        "the embedding server's model beside it",
        facts({**API, MODEL: "a", "EMBEDDING_MODEL": "b", "EMBEDDING_PROVIDER": "api_openai"}),
        "pass",
    ),
    Case("names.empty-alias", "model", facts({**API, "EMBEDDING_MODEL": ""}), says="remove EMBEDDING_MODEL"),
    Case("names.empty-alias", "address", facts({**API, "EMBEDDING_API_URL": ""}), says="no address"),
    Case("names.empty-alias", "prefixed wins", facts({**API, MODEL: "m", "EMBEDDING_MODEL": ""}), "pass"),
    Case("names.empty-alias", "of no consequence in http mode", facts({**GOOD, "EMBEDDING_MODEL": ""}), "pass"),
    Case("names.empty-alias", "absent", facts(API), "pass"),
    Case(
        "names.shared-block",
        "key and model",
        facts(
            {MODE: "api", "EMBEDDING_API_KEY": "sk-12345", "EMBEDDING_MODEL": "m", "EMBEDDING_PROVIDER": "api_openai"}
        ),
        says=(f"rename EMBEDDING_API_KEY to {KEY}", f"rename EMBEDDING_MODEL to {MODEL}"),
        count=2,
    ),
    Case(
        "names.shared-block",
        "the label in http mode",
        facts({**GOOD, "EMBEDDING_MODEL": "m", "ONNX_MODEL_DIR": "/m"}),
        says="ONNX_MODEL_DIR",
        count=1,
    ),
    Case("names.shared-block", "kept apart", facts({**API, MODEL: "m", "EMBEDDING_PROVIDER": "api_openai"}), "pass"),
    Case("names.shared-block", "aliases alone", facts({MODE: "api", "EMBEDDING_API_KEY": "sk-12345"}), "pass"),
)

MISSPELT = (
    Case("names.misspelt", "a letter missing", facts({"CPERSONA_EMBEDING_MODE": "http"}), says=f"to {MODE}"),
    Case("names.misspelt", "without HTTP", facts({"EMBEDDING_URL": "http://h/embed"}), says=f"EMBEDDING_URL to {URL}"),
    Case("names.misspelt", "HTTP too much", facts({"CPERSONA_EMBEDDING_HTTP_URL": "http://h/embed"}), says=f"to {URL}"),
    Case("names.misspelt", "shortened", facts({"CPERSONA_EMBED_URL": "http://h/embed"}), says=f"to {URL}"),
    Case("names.misspelt", "the database", facts({"CPERSONA_DATABASE_PATH": "/c.db"}), says="to CPERSONA_DB_PATH"),
    Case("names.misspelt", "a preference", facts({"CPERSONA_RECAL_MODE": "rsf"}), says="CPERSONA_RECALL_MODE"),
    Case(
        "names.misspelt",
        "the right name is set too",
        facts({**GOOD, "CPERSONA_EMBEDING_MODE": "http"}),
        says=("in force", "remove CPERSONA_EMBEDING_MODE"),
    ),
    Case("names.misspelt", "lower case", facts({"cpersona_embedding_mode": "http"}), says=f"to {MODE}"),
    Case(
        "names.misspelt",
        "the case does not count on Windows",
        facts({"cpersona_embedding_mode": "http"}, machine=replace(MACHINE, system="windows")),
        "pass",
    ),
    Case(
        "names.misspelt",
        "in the environment of this process",
        facts({"CPERSONA_EMBED_URL": "x"}, client="env"),
        says="unset",
    ),
    Case("names.misspelt", "all known", facts({**GOOD, "CPERSONA_DB_PATH": "/c.db"}), "pass"),
    Case("names.misspelt", "nothing like it", facts({"CPERSONA_BANANA_TREE": "1"}), "pass"),
    Case(
        "names.misspelt", "a helper of another value", facts({"CPERSONA_HOM": "/h", "X": "${CPERSONA_HOM}/c"}), "pass"
    ),
    Case("names.misspelt", "OpenAI's own name", facts({"OPENAI_API_KEY": "sk-1234"}), "pass"),
    Case("names.misspelt", "this tool's own", facts({"CPERSONA_CLI_COLOR": "never"}), "pass"),
    Case("names.unread", "unknown", facts({"CPERSONA_BANANA_TREE": "1"}), says="remove CPERSONA_BANANA_TREE"),
    Case("names.unread", "known to be read by nobody", facts({"CPERSONA_LOG_LEVEL": "debug"}), says="log"),
    Case(
        "names.unread",
        "of the embedding server",
        facts({"EMBEDDING_TIMEOUT_SECS": "9"}),
        says="CPERSONA_EMBEDDING_TIMEOUT",
    ),
    Case(
        "names.unread",
        "without counterpart",
        facts({"EMBEDDING_DIMENSIONS": "768"}),
        says="remove EMBEDDING_DIMENSIONS",
    ),
    Case(
        "names.unread",
        "the counterpart is set",
        facts({"EMBEDDING_TIMEOUT_SECS": "9", "CPERSONA_EMBEDDING_TIMEOUT_SECS": "20"}),
        says="remove EMBEDDING_TIMEOUT_SECS",
    ),
    Case(
        "names.unread",
        "beside the embedding server's others",
        facts({"EMBEDDING_TIMEOUT_SECS": "9", "EMBEDDING_PROVIDER": "api_openai"}),
        "pass",
    ),
    Case("names.unread", "a typo is another finding", facts({"CPERSONA_EMBED_URL": "x"}), "pass"),
    Case(
        "names.unread", "a helper of another value", facts({"CPERSONA_HOMES": "/h", "X": "${CPERSONA_HOMES}/c"}), "pass"
    ),
    Case("names.unread", "known", facts(GOOD), "pass"),
    Case(
        "names.removed",
        "of an earlier host",
        facts({"CPERSONA_LLM_PROVIDER": "x"}),
        says="remove CPERSONA_LLM_PROVIDER",
    ),
    Case("names.removed", "of a bundled library", facts({"CLOTO_LLM_PROXY": "x"}), says="CLOTO_LLM_PROXY"),
    Case(
        "names.removed",
        "another program's, in the shell",
        facts({}, machine=replace(MACHINE, env={**MACHINE.env, "CLOTO_LLM_PROXY": "x"})),
        "pass",
    ),
    Case("names.removed", "none", facts(GOOD), "pass"),
    Case("names.too-new", "before", facts({"CPERSONA_BLOCK_INDEX": "true"}, version="2.6.6"), says="2.6.7"),
    Case(
        "names.too-new", "the release that reads it", facts({"CPERSONA_BLOCK_INDEX": "true"}, version="2.6.7"), "pass"
    ),
    Case("names.too-new", "release not told", facts({"CPERSONA_BLOCK_INDEX": "true"}, version=None), "unknown"),
    Case("names.too-new", "the next start brings the newest", FLOATING, "pass"),
    Case("names.too-new", "read by every release", facts(GOOD, version=None), "pass"),
    Case(
        "names.too-new",
        "image",
        facts({}, launch=docker({"CPERSONA_BLOCK_INDEX": "1"}), version="2.5.12"),
        says="image",
    ),
    Case("names.too-new", "old alias is another finding", facts({"EMBEDDING_MODE": "http"}, version="2.4.22"), "pass"),
)

SHELL_ONLY = (Variable(MODE, "http", Place(words="this shell"), "shell"),)

STRAY = (
    Case(
        "names.stray",
        "exported in a shell",
        facts({}, client="codex", stray=stray(MODE, URL)),
        says=("2 settings in /home/u/.zshrc", f'{MODE} = "http"\n{URL} = "http://127.0.0.1:8401/embed"'),
        count=1,
    ),
    Case("names.stray", "a secret", facts({}, stray=stray(KEY)), says="<the value from /home/u/.zshrc:1>"),
    Case("names.stray", "the rest of it", facts({MODE: "http"}, stray=stray(MODE, URL)), says="1 setting in"),
    Case("names.stray", "two files", facts({}, stray=stray(MODE) + stray(URL, file="/home/u/work/.env")), count=2),
    Case(
        "names.stray",
        "the same name twice",
        facts({}, stray=stray(MODE) + stray(MODE, file="/home/u/.profile")),
        count=1,
    ),
    Case("names.stray", "a preference", facts({}, stray=stray("CPERSONA_RRF_K")), says="CPERSONA_RRF_K"),
    Case("names.stray", "to be expanded first", facts({}, stray=in_zshrc(DB="$HOME/c.db")), says="<the value from"),
    Case("names.stray", "a server started by hand", facts({}, stray=in_zshrc(DB="/c.db", TRANSPORT=HTTP)), "pass"),
    Case("names.stray", "transport of another server", facts({}, stray=in_zshrc(TOKEN="t")), "pass"),
    Case("names.stray", "another program's", facts({}, stray=in_zshrc(MODEL="m")), "pass"),
    Case("names.stray", "second names beside", facts({}, stray=in_zshrc(MODEL="m", DB="/c.db")), says="2 settings"),
    Case("names.stray", "empty", facts({}, stray=in_zshrc(DB="")), "pass"),
    Case("names.stray", "in the block as well", facts(GOOD, stray=stray(MODE, URL)), "pass"),
    Case("names.stray", "under its other name", facts({"EMBEDDING_MODE": "http"}, stray=stray(MODE)), "pass"),
    Case("names.stray", "in this shell", facts({}, client="codex", stray=SHELL_ONLY), says="1 setting in this shell"),
    Case("names.stray", "none of the server's", facts({}, stray=stray("FOO")), "pass"),
    Case("names.stray", "nothing", facts({}), "pass"),
    Case("names.stray", "depends on the start", facts({}, stray=stray(MODE), machine=SHELL), says="depends on how"),
    Case(
        "names.stray",
        "compose reads .env itself",
        facts({}, launch=replace(docker(), kind=LaunchKind.COMPOSE), stray=stray(MODE, file="/home/u/work/.env")),
        "pass",
    ),
    Case(
        "names.stray",
        "named as the entry's environment file",
        facts(
            {}, client="vscode", env_file="/home/u/work/memory.env", stray=stray(MODE, file="/home/u/work/memory.env")
        ),
        "pass",
    ),
)

PLACEHOLDERS = (
    Case("names.unexpanded", "gap to fill in", facts({**API, MODEL: "<model name>"}), says="<model name>"),
    Case("names.unexpanded", "template", facts({**API, MODEL: "{{ model }}"}), says="{{ model }}"),
    Case("names.unexpanded", "the process got it literally", facts({MODEL: "<m>"}, client="env"), says="export"),
    Case("names.unexpanded", "the client says it itself", facts({**API, MODEL: "${M}"}), "pass"),
    Case("names.unexpanded", "a reference in a process", facts({MODEL: "${M}"}, client="env"), says="“${M}”"),
    Case("names.unexpanded", "a reference in an option", facts({}, launch=docker({MODEL: "$m"})), says="“$m”"),
    Case("names.unexpanded", "a reference in a block is another group", facts({MODEL: "$m"}), "pass"),
    Case("names.unexpanded", "a plain value", facts({**API, MODEL: "nomic-embed-text:v1.5"}), "pass"),
    Case("names.unexpanded", "the database is another group's", facts({"CPERSONA_DB_PATH": "<path>"}), "pass"),
)

CASES = (
    *MODE_NONE,
    *MODE_UNSUPPORTED,
    *URL_MISSING,
    *URL_WITHOUT_MODE,
    *ALIASES,
    *MISSPELT,
    *STRAY,
    *PLACEHOLDERS,
)
