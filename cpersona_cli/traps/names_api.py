"""The api mode: its address, its key and its model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from cpersona_cli.text import bare_url, plural, secret
from cpersona_cli.traps.address import REFERENCE_PORT, address, private, set_path, unusable
from cpersona_cli.traps.model import Facts, Finding, Needs, Severity, Trap
from cpersona_cli.traps.names import API_URL, KEY, MODE, MODEL, URL, mode, renamed, shares_block
from cpersona_cli.traps.repairs import remove_variable, rename_variable, set_variable, set_variables
from cpersona_cli.traps.subject import missing, own, server, written

_OPENAI_KEY = "OPENAI_API_KEY"
_INNER_SPACE = "contains a space"
# A key that somebody meant to fill in later.
_STAND_IN = re.compile(
    r"^(<.*>|\$\{.*\}|\$[A-Za-z_]\w*|%\w+%|\{\{.*\}\}|x{3,}|\.{3,}|change[-_ ]?me|todo|(sk-)?x{3,}.*)$"
    r"|(your|my)[-_ ]?(own[-_ ]?)?(open[-_ ]?ai[-_ ]?)?(api[-_ ]?)?(key|token)",
    re.IGNORECASE,
)


def _api_base(facts: Facts) -> Iterator[Finding]:
    endpoint = address(facts)
    if endpoint is None or mode(facts) != "api":
        return
    path = endpoint.path.rstrip("/")
    ollama = path in {"/api/embed", "/api/embeddings"}
    if ollama or not path:
        wanted = "/v1/embeddings"
    elif re.search(r"/(v\d+\w*|openai)$", path) or path.endswith("/chat/completions"):
        wanted = f"{path.removesuffix('/chat/completions')}/embeddings"
    else:
        return
    yield Finding(
        about=API_URL,
        place=endpoint.setting.place,
        measured=f"{endpoint.shown} is " + ("Ollama's own interface" if ollama else "only the base of the service"),
        repair=set_path(facts, endpoint, wanted),
    )


def _api_to_embed(facts: Facts) -> Iterator[Finding]:
    endpoint = address(facts)
    if endpoint is None or mode(facts) != "api" or not re.search(r"(?<!/api)/embed/*$", endpoint.path):
        return
    values = {MODE: "http", URL: endpoint.with_path(endpoint.path.rstrip("/"))}
    repair = set_variables(facts.target.registration, values)
    yield Finding(
        about=API_URL,
        place=endpoint.setting.place,
        measured=f"{endpoint.shown} ends in /embed, the path of the http mode, and the mode is api",
        repair=repair,
        severity=None if endpoint.port == REFERENCE_PORT else Severity.WARNING,
    )


def _api_ignores_url(facts: Facts) -> Iterator[Finding]:
    target, url, api_url = server(facts), facts.setting(URL), facts.setting(API_URL)
    if mode(facts) != "api" or not url.given or api_url.given or url.unresolved:
        return
    text = str(url.text)
    if not unusable(text) and urlsplit(text).path.rstrip("/").endswith("/embeddings"):
        repair = set_variable(target.registration, API_URL, bare_url(text))
    else:
        repair = set_variable(target.registration, MODE, "http", at=facts.setting(MODE).place)
    yield Finding(
        about=URL,
        place=url.place,
        measured=f"the mode is api, {url.name} is set, and {API_URL} is not: texts go to {api_url.setting.default}",
        repair=repair,
    )


def _api_model(facts: Facts) -> Iterator[Finding]:
    endpoint = address(facts)
    model = facts.setting(MODEL)
    if endpoint is None or mode(facts) != "api" or model.given or model.text == "" or model.unresolved:
        return
    if endpoint.host.endswith(("api.openai.com", "openai.azure.com")):
        return
    yield Finding(
        about=MODEL,
        place=endpoint.setting.place,
        measured=f"{endpoint.shown} and no model: every request asks for {model.setting.default}",
        repair=set_variable(facts.target.registration, MODEL, "<the name of the model>"),
    )


def _key_missing(facts: Facts) -> Iterator[Finding]:
    target, key = server(facts), facts.setting(KEY)
    if mode(facts) != "api" or key.given:
        return
    where = address(facts)
    other = target.environment.values.get(_OPENAI_KEY)
    beside = f"; {_OPENAI_KEY} is set, a name the server does not read" if other and other.text else ""
    repair = renamed(target, KEY)
    if repair is None and other and other.text and own(target, _OPENAI_KEY):
        repair = rename_variable(target.registration, _OPENAI_KEY, KEY, at=other.place)
    if repair is None:
        local = where is not None and private(where.host)
        kept = next((v.place for v in facts.stray if v.name == KEY and v.text), None)
        text = f"<the value from {kept}>" if kept else "unused" if local else "<your API key>"
        repair = set_variable(target.registration, KEY, text)
    finding = Finding(
        about=KEY,
        place=facts.setting(MODE).place,
        measured=f"the mode is api and {KEY} is empty{beside}",
        repair=repair,
    )
    yield missing(finding, target)


def _key_unsendable(facts: Facts) -> Iterator[Finding]:
    server(facts)
    key = written(facts, KEY) if mode(facts) == "api" else None
    where = address(facts) if key else None
    why = key_problem(str(key.text), strict=where is None or not private(where.host)) if key else ""
    if key is None or not why:
        return
    yield Finding(
        about=KEY,
        place=key.place,
        measured=f"{key.name} ({secret(str(key.text))}) {why}",
        repair=set_variable(facts.target.registration, key.name, "<your API key>", at=key.place),
        severity=Severity.WARNING if why == _INNER_SPACE else None,
    )


def key_problem(key: str, *, strict: bool = True) -> str:
    """Why a key cannot be right, in words that tell nothing of it; empty when nothing is wrong to the eye.

    ``strict`` also looks for words that stand for a key still to be filled in; an endpoint of one's own may want just
    such a word.
    """
    if re.search(r"[\n\r]", key):
        return "contains a line end"
    if re.search(r"[\x00\x0b\x0c]", key):
        return "contains a control character"
    if foreign := sum(not character.isascii() for character in key):
        return f"contains {plural(foreign, 'character')} outside ASCII"
    if key != key.rstrip():
        return "ends in a space"
    if len(key) > 1 and key[0] == key[-1] and key[0] in "\"'`":
        return "stands in quotation marks, which count as part of it"
    if re.match(r"bearer\s", key, re.IGNORECASE):
        return "begins with the word Bearer, which the server adds itself"
    if strict and _STAND_IN.search(key):
        return "is still a placeholder"
    return _INNER_SPACE if re.search(r"\s", key.strip()) else ""


def _model_unused(facts: Facts) -> Iterator[Finding]:
    target, model = server(facts), facts.setting(MODEL)
    if mode(facts) != "http" or not model.given:
        return
    if model.name in model.setting.aliases and (shares_block(target) or not own(target, model.name)):
        return  # it is the embedding server's there, or another program's
    yield Finding(
        about=MODEL,
        place=model.place,
        measured=f"the mode is http and {model.name} is set; http mode sends no model name",
        repair=remove_variable(target.registration, model.name, at=model.place),
    )


TRAPS = (
    Trap(
        id="names.api-url-base",
        title="Only the base of an API address",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_api_base,
        expected=f"{API_URL} is the whole address, ending in /embeddings",
        costs="the service answers 404 to every call: memories are found only by shared words",
        repair="append the rest of the path, usually /v1/embeddings",
        source="the embedding client of 2.6.14 posts to the address as it stands and appends nothing",
        rows=("A19",),
    ),
    Trap(
        id="names.api-url-embed",
        title="api mode at an endpoint of the http mode",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_api_to_embed,
        expected='an OpenAI-style endpoint that takes {"input": […]}',
        costs="the endpoint refuses every call: memories are found only by shared words",
        repair=f"use {MODE}=http with {URL}",
        source="the embedding client of 2.6.14; measured with the reference embedding server",
        rows=("A14",),
    ),
    Trap(
        id="names.api-ignores-url",
        title="api mode with the address under the name of the http mode",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_api_ignores_url,
        expected=f"{API_URL} in api mode, {URL} in http mode",
        costs="your texts leave this machine for api.openai.com, which costs money and privacy; the address you wrote"
        " is never used",
        repair=f"set {API_URL}, or {MODE}=http",
        source="config.py of 2.6.14: the api mode reads only the API address, whose default is OpenAI's",
        rows=("A18",),
    ),
    Trap(
        id="names.api-model-default",
        title="OpenAI's model name at another service",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_api_model,
        expected=f"{MODEL} names a model of the service at {API_URL}",
        costs="the service refuses the unknown model, or answers with another one whose vectors fit nothing stored",
        repair=f"set {MODEL} to a model of that service",
        source="config.py of 2.6.14: the default is text-embedding-3-small, whatever the address",
        rows=("A20",),
    ),
    Trap(
        id="names.key-missing",
        title="api mode without a key",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_key_missing,
        expected=f"{KEY} holds a key; any word will do for a server of your own that wants none",
        costs="no request ever leaves the machine: memories are found only by shared words, and the server calls the"
        " service unreachable, which is not the reason",
        repair=f"set {KEY}; the server reads neither {_OPENAI_KEY} nor any other name for it",
        source="measured on 2.6.14: Illegal header value b'Bearer ' on every call",
        rows=("A15", "A17"),
    ),
    Trap(
        id="names.key-malformed",
        title="Key that cannot be right",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_key_unsendable,
        expected="the key alone: printable ASCII, no spaces, no quotes, no line end",
        costs="every call fails before it is sent, or is refused: memories are found only by shared words",
        repair="write the key again, without anything around it",
        source="measured on 2.6.14: LocalProtocolError for line ends and spaces at the end, UnicodeEncodeError outside"
        " ASCII",
        rows=("A16", "A26"),
    ),
    Trap(
        id="names.model-unused",
        title="Model name in http mode",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_model_unused,
        expected=f"{MODEL} is set in api mode only; in http mode the embedding server chooses",
        costs="it selects nothing, and changing it makes the server build blocks and nodes anew under another label",
        repair="choose the model in the embedding server, and remove the variable here",
        source="config.py of 2.6.14, reported_embedding_model",
        rows=("A21",),
    ),
)
