"""Rows for the traps about addresses, keys and models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.cases_names import API, API_URL, GOOD, KEY, MODE, MODEL, REMOTE, URL
from support.traps import MACHINE, Case, docker, facts

from cpersona_cli.install.model import Place, Variable
from cpersona_cli.record import replace


def http(url: str, **more: str) -> dict[str, object]:
    return {MODE: "http", URL: url, **more}


def api(url: str, **more: str) -> dict[str, object]:
    return {**API, API_URL: url, MODEL: "m", **more}


_UNUSABLE = {
    "http://127.0.0.1:8401/embed\n": ("control character", "http://127.0.0.1:8401/embed"),
    " http://127.0.0.1:8401/embed": ("space", "http://127.0.0.1:8401/embed"),
    "http://127.0.0.1:8401/embed ": ("space", "http://127.0.0.1:8401/embed"),
    "\u00a0http://127.0.0.1:8401/embed": ("invisible", "http://127.0.0.1:8401/embed"),
    '"http://127.0.0.1:8401/embed"': ("quotation marks", "http://127.0.0.1:8401/embed"),
    "'http://h:8401/embed'": ("quotation marks", "http://h:8401/embed"),
    "“http://h:8401/embed”": ("quotation marks", "http://h:8401/embed"),
    "127.0.0.1:8401/embed": ("does not begin", "http://127.0.0.1:8401/embed"),
    "localhost/embed": ("does not begin", "http://localhost/embed"),
    "http:/h:8401/embed": ("does not begin", "http://h:8401/embed"),
    "http//h:8401/embed": ("does not begin", "http://h:8401/embed"),
    "ftp://h/embed": ("does not begin", "http://127.0.0.1:8401/embed"),
    "/embed": ("does not begin", "http://127.0.0.1:8401/embed"),
    "<url>": ("does not begin", "http://127.0.0.1:8401/embed"),
    "http://127.0.0.1:84O1/embed": ("not a number", "http://127.0.0.1:8401/embed"),
    "http://:8401/embed": ("no host", "http://127.0.0.1:8401/embed"),
    "http:///embed": ("no host", "http://127.0.0.1:8401/embed"),
    "http://exa mple/embed": ("no host name has", "http://example/embed"),
    "http://{{host}}/embed": ("no host name has", "http://127.0.0.1:8401/embed"),
    "http://256.1.1.1/embed": ("IPv4", "http://127.0.0.1:8401/embed"),
    "http://[::1/embed": ("bracket", "http://127.0.0.1:8401/embed"),
    "http://[localhost]:8401/embed": ("brackets around", "http://127.0.0.1:8401/embed"),
    "http://::1:8401/embed": ("no host", "http://127.0.0.1:8401/embed"),
    "http://h\u00a0x/embed": ("invisible", "http://hx/embed"),
    "http://h/embed\ud800": ("valid text", "http://127.0.0.1:8401/embed"),
    f"http://h/{'a' * 70000}/embed": ("characters long", "http://127.0.0.1:8401/embed"),
}

_USABLE = (
    "http://127.0.0.1:8401/embed",
    "HTTP://127.0.0.1:8401/embed",
    "https://embed.example.org/embed",
    "http://[::1]:8401/embed",
    "http://bücher.example/embed",
    "http://user:p%40ss@h:8401/embed?token=x",
    "http://h:/embed",
    "http://host.docker.internal:8401/embed",
    "http://embed_server:8401/embed",
)

UNUSABLE = (
    *(
        Case("names.url-malformed", f"{ascii(url)[:40]}", facts(http(url)), says=(why, f'"{URL}": "{mended}"'))
        for url, (why, mended) in _UNUSABLE.items()
    ),
    *(Case("names.url-malformed", f"{url} is fine", facts(http(url)), "pass") for url in _USABLE),
    Case(
        "names.url-malformed", "with a password", facts(http("'http://u:secret-word@h/embed'")), says="keep a user name"
    ),
    Case("names.url-malformed", "of the api mode", facts(api("api.example.org/v1/embeddings")), says=API_URL),
    Case(
        "names.url-malformed", "in a container", facts({}, launch=docker({MODE: "http", URL: "x"})), says="host.docker"
    ),
    Case("names.url-malformed", "not used in this mode", facts({MODE: "none", URL: "x"}), "pass"),
    Case("names.url-malformed", "prompted for", facts(http("${input:u}"), client="vscode"), "skipped"),
    Case("names.url-malformed", "a reference that could not be expanded", facts(http("${U}/embed")), "pass"),
    Case("names.url-malformed", "a server elsewhere", facts(http("x"), **REMOTE), "skipped"),
    Case(
        "names.url-port", "too large", facts(http("http://127.0.0.1:84010/embed")), says='"http://127.0.0.1:8401/embed"'
    ),
    Case("names.url-port", "negative", facts(http("http://127.0.0.1:-1/embed"))),
    Case(
        "names.url-port", "of a service", facts(api("https://h:99999/v1/embeddings")), says='"https://h/v1/embeddings"'
    ),
    Case("names.url-port", "the largest", facts(http("http://127.0.0.1:65535/embed")), "pass"),
    Case("names.url-port", "none", facts(http("http://h/embed")), "pass"),
)

PATHS = (
    Case("names.url-path", "no path", facts(http("http://127.0.0.1:8401")), says='"http://127.0.0.1:8401/embed"'),
    Case("names.url-path", "root", facts(http("http://h:8401/")), says='"http://h:8401/embed"'),
    Case(
        "names.url-path", "a query is kept by hand", facts(http("http://h:8401?k=secret-word")), says="keep a user name"
    ),
    Case("names.url-path", "right", facts(GOOD), "pass"),
    Case("names.url-path", "Ollama is another finding", facts(http("http://127.0.0.1:11434")), "pass"),
    Case("names.url-path", "api mode", facts(api("https://h")), "pass"),
    Case("names.url-slash", "reference server", facts(http("http://127.0.0.1:8401/embed/")), says='8401/embed"'),
    Case("names.url-slash", "elsewhere", facts(http("https://h.example.org/embed/")), says="ends in a slash"),
    Case("names.url-slash", "right", facts(GOOD), "pass"),
    Case(
        "names.url-custom", "behind a proxy", facts(http("https://h.example.org/memory/vectors")), says="vectors/embed"
    ),
    Case("names.url-custom", "deep but right", facts(http("https://h.example.org/memory/embed?x=1")), "pass"),
    Case("names.url-custom", "no path is another finding", facts(http("http://127.0.0.1:8401")), "pass"),
    Case("names.url-custom", "OpenAI style is another finding", facts(http("http://h/v1/embeddings")), "pass"),
    Case(
        "names.url-wrong-api",
        "Ollama",
        facts(http("http://127.0.0.1:11434/api/embed")),
        says=(f'"{MODE}": "api"', "http://127.0.0.1:11434/v1/embeddings", f'"{KEY}": "unused"', "Ollama"),
    ),
    Case(
        "names.url-wrong-api", "Ollama behind a name", facts(http("https://llm.example.org/api/embed")), says="Ollama"
    ),
    Case("names.url-wrong-api", "OpenAI", facts(http("https://api.openai.com/v1/embeddings")), says="<your API key>"),
    Case(
        "names.url-wrong-api", "OpenAI's base", facts(http("https://api.openai.com/v1")), says="api.openai.com/v1/emb"
    ),
    Case("names.url-wrong-api", "Azure", facts(http("https://x.openai.azure.com/openai/v1/embeddings")), says="azure"),
    Case("names.url-wrong-api", "LM Studio", facts(http("http://localhost:1234/v1")), says="LM Studio"),
    Case("names.url-wrong-api", "keeps key and model", facts(http("http://h/v1/embeddings", **{KEY: "k", MODEL: "m"}))),
    Case("names.url-wrong-api", "an adapter on that port", facts(http("http://localhost:1234/embed")), "pass"),
    Case("names.url-wrong-api", "reference server", facts(GOOD), "pass"),
    Case("names.url-wrong-api", "api mode", facts(api("http://127.0.0.1:11434/v1/embeddings")), "pass"),
)

API_ADDRESSES = (
    *(
        Case("names.api-url-base", url, facts(api(url)), says=f'"{API_URL}": "{whole}"')
        for url, whole in {
            "https://api.openai.com/v1": "https://api.openai.com/v1/embeddings",
            "https://api.openai.com/v1/": "https://api.openai.com/v1/embeddings",
            "https://api.example.org": "https://api.example.org/v1/embeddings",
            "https://openrouter.ai/api/v1": "https://openrouter.ai/api/v1/embeddings",
            "https://generativelanguage.googleapis.com/v1beta/openai": (
                "https://generativelanguage.googleapis.com/v1beta/openai/embeddings"
            ),
            "https://h.example.org/v1/chat/completions": "https://h.example.org/v1/embeddings",
            "http://127.0.0.1:11434/api/embed": "http://127.0.0.1:11434/v1/embeddings",
            "http://127.0.0.1:11434/api/embeddings": "http://127.0.0.1:11434/v1/embeddings",
        }.items()
    ),
    Case("names.api-url-base", "whole", facts(api("https://api.openai.com/v1/embeddings")), "pass"),
    Case("names.api-url-base", "a path of its own", facts(api("https://h.example.org/vectors")), "pass"),
    Case("names.api-url-base", "default", facts(API), "pass"),
    Case("names.api-url-base", "http mode", facts(http("http://h:8401")), "pass"),
    Case(
        "names.api-url-embed", "reference server", facts(api("http://127.0.0.1:8401/embed")), says=f'"{MODE}": "http"'
    ),
    Case("names.api-url-embed", "elsewhere", facts(api("https://h.example.org/embed/")), says="path of the http mode"),
    Case("names.api-url-embed", "Ollama is another finding", facts(api("http://h:11434/api/embed")), "pass"),
    Case("names.api-url-embed", "right", facts(api("https://h.example.org/v1/embeddings")), "pass"),
    Case(
        "names.api-ignores-url",
        "texts go to OpenAI",
        facts({**API, URL: "http://127.0.0.1:8401/embed"}),
        says=("api.openai.com", f'"{MODE}": "http"'),
    ),
    Case(
        "names.api-ignores-url",
        "the address is of the right kind",
        facts({**API, URL: "https://h.example.org/v1/embeddings"}),
        says=f'"{API_URL}": "https://h.example.org/v1/embeddings"',
    ),
    Case("names.api-ignores-url", "both", facts({**api("https://h/v1/embeddings"), URL: "http://h/embed"}), "pass"),
    Case("names.api-ignores-url", "http mode", facts(GOOD), "pass"),
    Case(
        "names.api-model-default",
        "another service",
        facts({**API, API_URL: "http://127.0.0.1:11434/v1/embeddings"}),
        says="text-embedding-3-small",
    ),
    Case("names.api-model-default", "OpenAI", facts({**API, API_URL: "https://api.openai.com/v1/embeddings"}), "pass"),
    Case("names.api-model-default", "model set", facts(api("http://127.0.0.1:11434/v1/embeddings")), "pass"),
    Case("names.api-model-default", "default address", facts(API), "pass"),
    Case("names.model-unused", "in http mode", facts({**GOOD, MODEL: "bge-m3"}), says=f"remove {MODEL}"),
    Case("names.model-unused", "by its alias", facts({**GOOD, "EMBEDDING_MODEL": "bge-m3"}), says="EMBEDDING_MODEL"),
    Case("names.model-unused", "in api mode", facts({**API, MODEL: "m"}), "pass"),
    Case("names.model-unused", "mode none", facts({MODEL: "m"}), "pass"),
    Case(
        "names.model-unused",
        "the embedding server's",
        facts({**GOOD, "EMBEDDING_MODEL": "m", "EMBEDDING_PROVIDER": "api_openai"}),
        "pass",
    ),
    Case(
        "names.model-unused",
        "another program's, in the shell",
        facts(GOOD, machine=replace(MACHINE, env={**MACHINE.env, "EMBEDDING_MODEL": "m"})),
        "pass",
    ),
)

_KEYS = {
    "sk-live-0123456789\n": "line end",
    "sk-live\x00-0123456789": "control character",
    "sk-live-0123456789 ": "ends in a space",
    "sk-livé-0123456789": "1 character outside ASCII",
    '"sk-live-0123456789"': "quotation marks",
    "'sk-live-0123456789'": "quotation marks",
    "Bearer sk-live-0123456789": "the word Bearer",
    "sk-live 0123456789": "contains a space",
    "<your key>": "placeholder",
    "YOUR_OPENAI_API_KEY": "placeholder",
    "sk-your-key-here": "placeholder",
    "changeme": "placeholder",
    "sk-xxxxxxxx": "placeholder",
}

KEY_IN_SHELL: dict[str, Any] = {
    "client": "claude-desktop",
    "machine": replace(MACHINE, env={**MACHINE.env, KEY: "sk-live-0123456789abcdef"}),
}

KEYS = (
    *(Case("names.key-malformed", why, facts({**API, KEY: key}), says=why) for key, why in _KEYS.items()),
    Case(
        "names.key-malformed",
        "by its alias",
        facts({MODE: "api", "EMBEDDING_API_KEY": "a b"}),
        says="EMBEDDING_API_KEY",
    ),
    Case("names.key-malformed", "a key", facts(API), "pass"),
    Case("names.key-malformed", "a leading space is harmless", facts({**API, KEY: " sk-live-0123456789"}), "pass"),
    Case(
        "names.key-malformed",
        "a dummy for a server of one's own",
        facts(api("http://localhost:1234/v1/embeddings", **{KEY: "my-key"})),
        "pass",
    ),
    Case("names.key-malformed", "not sent in http mode", facts({**GOOD, KEY: "a b"}), "pass"),
    Case("names.key-malformed", "prompted for", facts({**API, KEY: "${input:k}"}, client="vscode"), "skipped"),
    Case("names.key-missing", "no key", facts({MODE: "api"}), says="<your API key>"),
    Case(
        "names.key-missing",
        "in a file that no server reads",
        facts({MODE: "api"}, stray=[Variable(KEY, "sk-1", Place(Path("/home/u/.zshrc"), 3), "shell start file")]),
        says="<the value from /home/u/.zshrc:3>",
    ),
    Case("names.key-missing", "empty", facts({MODE: "api", KEY: ""})),
    Case(
        "names.key-missing",
        "under OpenAI's name",
        facts({MODE: "api", "OPENAI_API_KEY": "sk-live-0123456789"}),
        says=f"rename OPENAI_API_KEY to {KEY}",
    ),
    Case(
        "names.key-missing",
        "in the shell under OpenAI's name",
        facts({MODE: "api"}, machine=replace(MACHINE, env={**MACHINE.env, "OPENAI_API_KEY": "sk-live-0123456789"})),
        says=f'"{KEY}": "<your API key>"',
    ),
    Case(
        "names.key-missing",
        "misspelt",
        facts({MODE: "api", "CPERSONA_EMBEDDING_KEY": "k"}),
        says="CPERSONA_EMBEDDING_KEY to",
    ),
    Case(
        "names.key-missing",
        "a server of one's own",
        facts({MODE: "api", API_URL: "http://127.0.0.1:11434/v1/embeddings", MODEL: "m"}),
        says=f'"{KEY}": "unused"',
    ),
    Case("names.key-missing", "a desktop client does not see the shell's", facts({MODE: "api"}, **KEY_IN_SHELL)),
    Case(
        "names.key-missing",
        "a client started from that shell does",
        facts({MODE: "api"}, machine=KEY_IN_SHELL["machine"]),
        says="depends on how the client was started",
    ),
    Case("names.key-missing", "a key", facts(API), "pass"),
    Case("names.key-missing", "by its alias", facts({MODE: "api", "EMBEDDING_API_KEY": "sk-live-0123456789"}), "pass"),
    Case("names.key-missing", "prompted for", facts({MODE: "api", KEY: "${input:k}"}, client="vscode"), "pass"),
    Case("names.key-missing", "http mode", facts(GOOD), "pass"),
)

CASES = (*UNUSABLE, *PATHS, *API_ADDRESSES, *KEYS)
