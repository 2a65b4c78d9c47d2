"""The address of the http mode: whether it can be used, and whether it is the right kind of endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cpersona_cli.install.settings.effective import Effective
from cpersona_cli.record import replace
from cpersona_cli.text import bare_url, safe
from cpersona_cli.traps.address import (
    REFERENCE_PORT,
    Address,
    address,
    loopback,
    port_too_large,
    private,
    set_address,
    set_path,
    unusable,
    used,
)
from cpersona_cli.traps.model import Facts, Finding, Needs, Severity, Target, Trap
from cpersona_cli.traps.names import API_URL, KEY, MODE, MODEL, URL, mode, reference_url
from cpersona_cli.traps.repairs import set_variables

_OLLAMA_PORT = 11434
_LM_STUDIO_PORT = 1234
_OPENAI_HOSTS = (
    "api.openai.com",
    "openai.azure.com",
    "api.mistral.ai",
    "api.voyageai.com",
    "api.together.xyz",
    "api.jina.ai",
    "openrouter.ai",
    "generativelanguage.googleapis.com",
)


def _unusable(facts: Facts) -> Iterator[Finding]:
    found = used(facts)
    why = unusable(str(found.text)) if found else ""
    if found is None or not why:
        return
    yield Finding(
        about=found.setting.name,
        place=found.place,
        measured=f"{found.name} {why}: {safe(bare_url(str(found.text)), 120)}",
        repair=set_address(facts, found, _mended(facts.target, found)),
    )


def _mended(target: Target, found: Effective) -> str:
    """The address as it was most likely meant, else the usual one of the mode."""
    text = re.sub(r"[\s\x00-\x1f\x7f]", "", str(found.text)).strip("\"'`“”\ufeff\u200b")
    text = re.sub(r"^(https?):?/{0,2}", r"\1://", text, flags=re.IGNORECASE)
    if not re.match(r"https?://", text, re.IGNORECASE) and re.match(r"[\w.-]+:\d+(/|$)|localhost(/|$)", text):
        text = f"http://{text}"
    text = re.sub(r"(?<=:)[\dOoIl]{2,5}(?=/|$)", lambda m: m.group().translate(_DIGITS), text)
    usual = str(found.setting.default) or reference_url(target)
    return usual if not text or unusable(text) or port_too_large(text) else bare_url(text)


_DIGITS = str.maketrans("OoIl", "0011")


def _port(facts: Facts) -> Iterator[Finding]:
    found = used(facts)
    if found is None or not port_too_large(str(found.text)):
        return
    text = str(found.text)
    port = str(REFERENCE_PORT) if found.setting.name == URL else ""
    mended = re.sub(r":[+-]?\d+(?=[/?#]|$)", f":{port}" if port else "", bare_url(text), count=1)
    yield Finding(
        about=found.setting.name,
        place=found.place,
        measured=f"{found.name}={safe(bare_url(text), 120)}",
        repair=set_address(facts, found, mended),
    )


def _path(facts: Facts) -> Iterator[Finding]:
    endpoint = address(facts)
    if endpoint is None or mode(facts) != "http" or _foreign_api(endpoint) or endpoint.path.strip("/"):
        return
    yield Finding(
        about=URL,
        place=endpoint.setting.place,
        measured=f"{endpoint.shown} has no path",
        repair=set_path(facts, endpoint, "/embed"),
    )


def _slash(facts: Facts) -> Iterator[Finding]:
    endpoint = address(facts)
    if (
        endpoint is None
        or mode(facts) != "http"
        or not re.search(r"/embed/+$", endpoint.path)
        or _foreign_api(endpoint)
    ):
        return
    reference = endpoint.port == REFERENCE_PORT or loopback(endpoint.host)
    yield Finding(
        about=URL,
        place=endpoint.setting.place,
        measured=f"{endpoint.shown} ends in a slash",
        repair=set_path(facts, endpoint, endpoint.path.rstrip("/")),
        severity=None if reference else Severity.WARNING,
    )


def _custom_path(facts: Facts) -> Iterator[Finding]:
    endpoint = address(facts)
    if endpoint is None or mode(facts) != "http" or _foreign_api(endpoint):
        return
    path = endpoint.path.rstrip("/")
    if path and not path.endswith("/embed"):
        yield Finding(
            about=URL,
            place=endpoint.setting.place,
            measured=f"{endpoint.shown}: the path does not end in /embed",
            repair=set_path(facts, endpoint, f"{path}/embed"),
        )


def _foreign_api(endpoint: Address) -> str:
    """What kind of service the address belongs to that does not speak the /embed contract; empty when none is known."""
    path = endpoint.path.rstrip("/")
    if endpoint.port == _OLLAMA_PORT or path.endswith("/api/embed"):
        return "Ollama"
    if any(endpoint.host == host or endpoint.host.endswith(f".{host}") for host in _OPENAI_HOSTS):
        return f"the service {endpoint.host}"
    if path.endswith("/embeddings"):
        return "an OpenAI-style endpoint"
    if endpoint.port == _LM_STUDIO_PORT and path in {"", "/v1", "/api/v0"}:
        return "LM Studio"
    return ""


def _wrong_api(facts: Facts) -> Iterator[Finding]:
    endpoint = address(facts)
    kind = _foreign_api(endpoint) if endpoint and mode(facts) == "http" else ""
    if endpoint is None or not kind:
        return
    path = endpoint.path.rstrip("/")
    path = path if path.endswith("/embeddings") and not path.endswith("/api/embeddings") else "/v1/embeddings"
    values = {MODE: "api", API_URL: endpoint.with_path(path)}
    if not facts.setting(KEY).given:
        values[KEY] = "unused" if private(endpoint.host) else "<your API key>"
    if not facts.setting(MODEL).given:
        values[MODEL] = "<the name of the model>"
    repair = set_variables(facts.target.registration, values)
    yield Finding(
        about=URL,
        place=endpoint.setting.place,
        measured=f"{endpoint.shown} is {kind}, which does not understand what http mode sends",
        repair=replace(repair, prose=f"{repair.prose}; remove {endpoint.setting.name}"),
    )


TRAPS = (
    Trap(
        id="names.url-malformed",
        title="Embedding address that cannot be used",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_unusable,
        expected="http:// or https://, a host, a port in digits if any, a path; no quotes, spaces or line ends",
        costs="no request ever reaches the endpoint: memories are found only by shared words",
        repair="write the address as it would stand in a browser, without anything around it",
        source="measured on 2.6.14 with httpx: UnsupportedProtocol or InvalidURL on every call",
        rows=("A8", "A9", "A26"),
    ),
    Trap(
        id="names.url-port",
        title="Embedding address with a port that does not exist",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_port,
        expected="a port between 0 and 65535",
        costs="the server crashes at start (OverflowError) and the client shows it as failed",
        repair="correct the port; the embedding server's own default is 8401",
        source="measured on 2.6.14",
        rows=("A10",),
    ),
    Trap(
        id="names.url-path",
        title="Embedding URL without /embed",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_path,
        expected=f"{URL} ends in /embed",
        costs="the embedding server answers 404 to every call: memories are found only by shared words",
        repair="append /embed",
        source="measured with the reference embedding server: POST / is 404",
        rows=("A11",),
    ),
    Trap(
        id="names.url-slash",
        title="Embedding URL with a slash at the end",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_slash,
        expected=f"{URL} ends in /embed, without a slash",
        costs="the reference embedding server answers 404 to /embed/, and redirects of other servers are not followed:"
        " memories are found only by shared words",
        repair="remove the slash",
        source="measured with the reference embedding server",
        rows=("A12",),
    ),
    Trap(
        id="names.url-custom",
        title="Embedding URL with a path of its own",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_custom_path,
        expected=f"{URL} ends in /embed",
        costs="even where the path works, the server cannot ask the endpoint which model it runs or how long a text may"
        " be: a change of the model stays unseen, and remote search is off",
        repair="serve the endpoint under a path that ends in /embed",
        source="vector.py and the embedding client of 2.6.14: sibling routes derive only from …/embed",
        rows=("A13",),
    ),
    Trap(
        id="names.url-wrong-api",
        title="http mode at an endpoint of another kind",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_wrong_api,
        expected='an endpoint that takes {"texts": […]} at …/embed, or the api mode for OpenAI-style endpoints',
        costs="every call is refused or answered in a shape the server cannot read: memories are found only by shared"
        " words",
        repair=f"use {MODE}=api with {API_URL}, {KEY} and {MODEL}",
        source="the server's getting-started page: http mode sends texts, api mode sends input",
        rows=("A14",),
    ),
)
