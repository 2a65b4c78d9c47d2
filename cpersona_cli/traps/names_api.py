"""The api mode: its address, its key and its model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from cpersona_cli.text import bare_url
from cpersona_cli.traps.address import REFERENCE_PORT, address, set_path, unusable
from cpersona_cli.traps.model import Facts, Finding, Needs, Severity, Trap
from cpersona_cli.traps.names import API_URL, MODE, MODEL, URL, mode
from cpersona_cli.traps.repairs import set_variable, set_variables
from cpersona_cli.traps.subject import server


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
)
