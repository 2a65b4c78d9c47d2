"""Addresses of embedding endpoints: whether the client library can use them, and whether they fit the mode."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from urllib.parse import SplitResult, urlsplit, urlunsplit

from cpersona_cli.install.effective import Effective
from cpersona_cli.text import bare_url, safe
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Trap
from cpersona_cli.traps.names import API_URL, KEY, MODE, MODEL, URL, mode
from cpersona_cli.traps.repairs import set_variable, set_variables
from cpersona_cli.traps.subject import server, written

#: A longer address is refused by the client library (characters).
LONGEST = 65536

_REFERENCE_PORT = 8401
_OLLAMA_PORT = 11434
_LM_STUDIO_PORT = 1234
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DOTTED = re.compile(r"\d+\.\d+\.\d+\.\d+")
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


@dataclass(frozen=True, slots=True)
class _Address:
    """An address that was written for the mode in force, taken apart."""

    setting: Effective
    text: str
    parts: SplitResult

    @property
    def host(self) -> str:
        return self.parts.hostname or ""

    @property
    def port(self) -> int | None:
        return self.parts.port

    @property
    def path(self) -> str:
        return self.parts.path

    @property
    def shown(self) -> str:
        return f"{self.setting.name}={safe(bare_url(self.text), 120)}"

    def with_path(self, path: str) -> str:
        """The same endpoint with another path; user, password and query are left out, as they may be secret."""
        return bare_url(urlunsplit(self.parts._replace(path=path)))


def _used(facts: Facts) -> Effective | None:
    """The address the mode in force reads, when somebody wrote one."""
    server(facts)
    name = {"http": URL, "api": API_URL}.get(mode(facts))
    return written(facts, name) if name else None


def _address(facts: Facts) -> _Address | None:
    """The address in use when it can be used at all; what is wrong with others is a finding of its own."""
    found = _used(facts)
    if found is None or unusable(str(found.text)) or port_too_large(str(found.text)):
        return None
    return _Address(found, str(found.text), urlsplit(str(found.text)))


def unusable(url: str) -> str:
    """Why the server's HTTP client refuses ``url`` before anything is sent; empty when it would try.

    Measured against httpx, which the server uses: it does not strip, needs http:// or https:// and a host, refuses
    control characters, ports that are not numbers, and names that are no host names.
    """
    if len(url) > LONGEST:
        return f"is {len(url)} characters long"
    if match := _CONTROL.search(url):
        return f"contains the control character {ascii(match.group())}"
    if url != url.strip():
        return "begins or ends with a space" if url.isascii() else "begins or ends with an invisible character"
    if url[0] in "\"'`“”" or url[-1] in "\"'`“”":
        return "contains quotation marks"
    if any(0xD800 <= ord(c) <= 0xDFFF for c in url):
        return "is not valid text"
    if not re.match(r"https?://", url, re.IGNORECASE):
        return "does not begin with http:// or https://"
    return _unusable_host(url)


def _unusable_host(url: str) -> str:
    authority = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0].rpartition("@")[2]
    if authority.startswith("["):
        host, closed, rest = authority[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            return "has an IPv6 address without its closing bracket"
        port = rest[1:]
        if not _is_ip(host.partition("%")[0]):
            return "has brackets around something that is no IPv6 address"
    else:
        host, _, port = authority.partition(":")
    if not host:
        return "names no host"
    if port and not re.fullmatch(r"[+-]?\d+", port):
        return f"has a port that is not a number (“{safe(port, 20)}”)"
    if host.isascii() and re.search(r"[\s\"<>\\^`{|}$]", host):
        return "names a host with characters that no host name has"
    if _DOTTED.fullmatch(host) and not _is_ip(host):
        return "names an IPv4 address that does not exist"
    if not host.isascii() and any(c.isspace() or not c.isprintable() for c in host):
        return "names a host with an invisible character"
    return ""


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def port_too_large(url: str) -> bool:
    """Whether the port is a number that no port has."""
    if unusable(url):
        return False
    try:
        urlsplit(url).port  # noqa: B018 - reading it is the check
    except ValueError:
        return True
    return False


def loopback(host: str) -> bool:
    """Whether ``host`` is this machine itself, or a container on it by its usual names."""
    if host in {"localhost", "host.docker.internal"}:
        return True
    return _is_ip(host) and ip_address(host).is_loopback


def private(host: str) -> bool:
    """Whether ``host`` is this machine or stands in a private network, so no public service."""
    if loopback(host) or "." not in host or host.endswith((".local", ".lan", ".internal", ".home.arpa")):
        return True
    return _is_ip(host) and ip_address(host).is_private


def _unusable(facts: Facts) -> Iterator[Finding]:
    found = _used(facts)
    why = unusable(str(found.text)) if found else ""
    if found is None or not why:
        return
    yield Finding(
        about=found.setting.name,
        place=found.place,
        measured=f"{found.name} {why}: {safe(bare_url(str(found.text)), 120)}",
        repair=set_variable(facts.target.registration, found.name, _mended(found), at=found.place),
    )


def _mended(found: Effective) -> str:
    """The address as it was most likely meant, else the usual one of the mode."""
    text = re.sub(r"[\s\x00-\x1f\x7f]", "", str(found.text)).strip("\"'`“”\ufeff\u200b")
    text = re.sub(r"^(https?):?/*", r"\1://", text, flags=re.IGNORECASE)
    if not re.match(r"https?://", text, re.IGNORECASE) and re.match(r"[\w.-]+:\d+(/|$)|localhost(/|$)", text):
        text = f"http://{text}"
    text = re.sub(r"(?<=:)[\dOoIl]{2,5}(?=/|$)", lambda m: m.group().translate(_DIGITS), text)
    usual = str(found.setting.default) or "http://127.0.0.1:8401/embed"
    return usual if not text or unusable(text) or port_too_large(text) else bare_url(text)


_DIGITS = str.maketrans("OoIl", "0011")


def _port(facts: Facts) -> Iterator[Finding]:
    found = _used(facts)
    if found is None or not port_too_large(str(found.text)):
        return
    text = str(found.text)
    port = str(_REFERENCE_PORT) if found.setting.name == URL else ""
    mended = re.sub(r":[+-]?\d+(?=[/?#]|$)", f":{port}" if port else "", bare_url(text), count=1)
    yield Finding(
        about=found.setting.name,
        place=found.place,
        measured=f"{found.name}={safe(bare_url(text), 120)}",
        repair=set_variable(facts.target.registration, found.name, mended, at=found.place),
    )


def _path(facts: Facts) -> Iterator[Finding]:
    address = _address(facts)
    if address is None or mode(facts) != "http" or _foreign_api(address) or address.path.strip("/"):
        return
    yield Finding(
        about=URL,
        place=address.setting.place,
        measured=f"{address.shown} has no path",
        repair=_set(facts, address, "/embed"),
    )


def _set(facts: Facts, address: _Address, path: str) -> Repair:
    """The same address with another path; a query or password that is not shown is to be kept by hand."""
    value = address.with_path(path)
    repair = set_variable(facts.target.registration, address.setting.name, value, at=address.setting.place)
    if not (address.parts.query or "@" in address.parts.netloc):
        return repair
    return Repair(
        prose=f"{repair.prose} (keep the user name and the part after “?” as they are)",
        commands=repair.commands,
        edit=repair.edit,
        place=repair.place,
    )


def _slash(facts: Facts) -> Iterator[Finding]:
    address = _address(facts)
    if address is None or mode(facts) != "http" or not re.search(r"/embed/+$", address.path) or _foreign_api(address):
        return
    reference = address.port == _REFERENCE_PORT or loopback(address.host)
    yield Finding(
        about=URL,
        place=address.setting.place,
        measured=f"{address.shown} ends in a slash",
        repair=_set(facts, address, address.path.rstrip("/")),
        severity=None if reference else Severity.WARNING,
    )


def _custom_path(facts: Facts) -> Iterator[Finding]:
    address = _address(facts)
    if address is None or mode(facts) != "http" or _foreign_api(address):
        return
    path = address.path.rstrip("/")
    if path and not path.endswith("/embed"):
        yield Finding(
            about=URL,
            place=address.setting.place,
            measured=f"{address.shown}: the path does not end in /embed",
            repair=_set(facts, address, f"{path}/embed"),
        )


def _foreign_api(address: _Address) -> str:
    """What kind of service the address belongs to that does not speak the /embed contract; empty when none is known."""
    path = address.path.rstrip("/")
    if address.port == _OLLAMA_PORT or path.endswith("/api/embed"):
        return "Ollama"
    if any(address.host == host or address.host.endswith(f".{host}") for host in _OPENAI_HOSTS):
        return f"the service {address.host}"
    if path.endswith("/embeddings"):
        return "an OpenAI-style endpoint"
    if address.port == _LM_STUDIO_PORT and path in {"", "/v1", "/api/v0"}:
        return "LM Studio"
    return ""


def _wrong_api(facts: Facts) -> Iterator[Finding]:
    address = _address(facts)
    kind = _foreign_api(address) if address and mode(facts) == "http" else ""
    if address is None or not kind:
        return
    path = address.path.rstrip("/")
    path = path if path.endswith("/embeddings") and not path.endswith("/api/embeddings") else "/v1/embeddings"
    values = {MODE: "api", API_URL: address.with_path(path)}
    if not facts.setting(KEY).given:
        values[KEY] = "unused" if private(address.host) else "<your API key>"
    if not facts.setting(MODEL).given:
        values[MODEL] = "<the name of the model>"
    repair = set_variables(facts.target.registration, values)
    yield Finding(
        about=URL,
        place=address.setting.place,
        measured=f"{address.shown} is {kind}, which does not understand what http mode sends",
        repair=Repair(
            prose=f"{repair.prose}; remove {address.setting.name}",
            commands=repair.commands,
            edit=repair.edit,
            place=repair.place,
        ),
    )


def _api_base(facts: Facts) -> Iterator[Finding]:
    address = _address(facts)
    if address is None or mode(facts) != "api":
        return
    path = address.path.rstrip("/")
    ollama = path in {"/api/embed", "/api/embeddings"}
    if ollama or path in {"", "/api"}:
        wanted = "/v1/embeddings"
    elif re.search(r"/(v\d+\w*|openai)$", path) or path.endswith("/chat/completions"):
        wanted = f"{path.removesuffix('/chat/completions')}/embeddings"
    else:
        return
    yield Finding(
        about=API_URL,
        place=address.setting.place,
        measured=f"{address.shown} is " + ("Ollama's own interface" if ollama else "only the base of the service"),
        repair=_set(facts, address, wanted),
    )


def _api_to_embed(facts: Facts) -> Iterator[Finding]:
    address = _address(facts)
    if address is None or mode(facts) != "api" or not re.search(r"(?<!/api)/embed/*$", address.path):
        return
    values = {MODE: "http", URL: address.with_path(address.path.rstrip("/"))}
    repair = set_variables(facts.target.registration, values)
    yield Finding(
        about=API_URL,
        place=address.setting.place,
        measured=f"{address.shown} ends in /embed, the path of the http mode, and the mode is api",
        repair=repair,
        severity=None if address.port == _REFERENCE_PORT else Severity.WARNING,
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
    address = _address(facts)
    model = facts.setting(MODEL)
    if address is None or mode(facts) != "api" or model.given or model.text == "" or model.unresolved:
        return
    if address.host.endswith(("api.openai.com", "openai.azure.com")):
        return
    yield Finding(
        about=MODEL,
        place=address.setting.place,
        measured=f"{address.shown} and no model: every request asks for {model.setting.default}",
        repair=set_variable(facts.target.registration, MODEL, "<the name of the model>"),
    )


TRAPS = (
    Trap(
        id="names.url-malformed",
        title="Embedding address that cannot be used",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_unusable,
        expected="http:// or https://, a host, a port in digits if any, a path; no quotes, spaces or line ends",
        costs="no request ever leaves the machine: memories are found only by shared words",
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
        costs="every call is refused or answered in a shape that cannot be read: memories are found only by shared words",
        repair=f"use {MODE}=api with {API_URL}, {KEY} and {MODEL}",
        source="the server's getting-started page: http mode sends texts, api mode sends input",
        rows=("A14",),
    ),
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
        costs="your texts leave this machine for api.openai.com, which costs money and privacy; the address you wrote is"
        " never used",
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
