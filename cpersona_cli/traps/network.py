"""Whether the embedding endpoint, as it is written, can be the one that is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from cpersona_cli.install.model import LaunchKind
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.install.settings.effective import Effective
from cpersona_cli.record import replace
from cpersona_cli.text import bare_url, plural
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Target, Trap
from cpersona_cli.traps.repairs import remove_variable, set_variable
from cpersona_cli.traps.shell import tool
from cpersona_cli.traps.subject import server

#: The reference server refuses a request body of this many bytes or more.
BODY_LIMIT = 1 << 20

# Families whose models expect "query: " or "passage: " before a text, which the server never sends.
_PREFIXED = re.compile(
    r"(?:^|[/_-])(?:multilingual-)?e5(?:[-_]|$)|nomic-embed-text|(?:^|[/_-])instructor-", re.IGNORECASE
)


def endpoint(target: Target) -> Effective | None:
    """The setting that holds the URL the server would call, or None when it calls none."""
    mode = target.settings["CPERSONA_EMBEDDING_MODE"].value
    name = {"http": "CPERSONA_EMBEDDING_URL", "api": "CPERSONA_EMBEDDING_API_URL"}.get(str(mode))
    setting = None if name is None else target.settings[name]
    return setting if setting is not None and setting.value and not setting.unresolved else None


def split(setting: Effective) -> SplitResult | None:
    """The parts of a URL, or None when it cannot be taken apart (the name traps speak of that)."""
    try:
        parts = urlsplit(str(setting.value))
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.hostname else None


def loopback(facts: Facts) -> tuple[Target, Effective, SplitResult] | None:
    """The target, the setting and the parts of its URL, where that URL names the computer the server runs on."""
    target = server(facts)
    setting = endpoint(target)
    parts = None if setting is None else split(setting)
    if setting is None or parts is None or not is_loopback(str(setting.value)):
        return None
    return target, setting, parts


def with_host(parts: SplitResult, host: str, port: int | None = None) -> str:
    """The URL with another host (and port), without user name, password and query."""
    number = port or parts.port
    return bare_url(parts._replace(netloc=f"{host}:{number}" if number else host).geturl())


def _localhost(facts: Facts) -> Iterator[Finding]:
    found = loopback(facts)
    if found is None or found[0].registration.launch.inside != "host":
        return
    target, setting, parts = found
    if parts.hostname == "localhost":
        yield Finding(
            about=setting.setting.name,
            place=setting.place,
            measured=f"{setting.name}={bare_url(str(setting.value))}",
            repair=set_variable(target.registration, setting.name, with_host(parts, "127.0.0.1"), at=setting.place),
        )


def _loopback_in_container(facts: Facts) -> Iterator[Finding]:
    found = loopback(facts)
    if found is None:
        return
    target, setting, parts = found
    launch = target.registration.launch
    if launch.inside != "container" or launch.network_host:
        return
    change = set_variable(target.registration, setting.name, with_host(parts, "host.docker.internal"), at=setting.place)
    extra = (
        '; on Linux also add "--add-host", "host.docker.internal:host-gateway" to the docker arguments'
        if launch.kind is LaunchKind.DOCKER
        else "; where the embedding server is a service of the same compose file, its service name is the host"
    )
    yield Finding(
        about=setting.setting.name,
        place=setting.place,
        measured=f"{setting.name}={bare_url(str(setting.value))}, and the server runs in a container",
        repair=replace(change, prose=change.prose + extra),
    )


def _wsl(facts: Facts) -> Iterator[Finding]:
    found = loopback(facts)
    if found is None:
        return
    target, setting, _ = found
    crossing = (
        "the client runs on Windows and starts the server inside WSL"
        if target.registration.launch.inside == "wsl"
        else "this is WSL, and the client starts a Windows program"
        if facts.machine.env.get("WSL_DISTRO_NAME") and target.registration.command.lower().endswith(".exe")
        else ""
    )
    if crossing:
        yield Finding(
            about=setting.setting.name,
            place=setting.place,
            measured=f"{setting.name}={bare_url(str(setting.value))}; {crossing}",
            repair=Repair(
                prose="start the embedding server on the same side as CPersona, or add networkingMode=mirrored below "
                "[wsl2] in .wslconfig of the Windows home folder and run the command",
                commands=("wsl --shutdown",),
                place=setting.place,
            ),
        )


def _https_loopback(facts: Facts) -> Iterator[Finding]:
    found = loopback(facts)
    if found is not None and found[2].scheme == "https":
        target, setting, parts = found
        yield Finding(
            about=setting.setting.name,
            place=setting.place,
            measured=f"{setting.name}={bare_url(str(setting.value))}",
            repair=set_variable(
                target.registration,
                setting.name,
                bare_url(parts._replace(scheme="http").geturl()),
                at=setting.place,
            ),
        )


def _advisory_off(facts: Facts) -> Iterator[Finding]:
    advisory = server(facts).settings["CPERSONA_DEGRADED_ADVISORY"]
    mode = facts.setting("CPERSONA_EMBEDDING_MODE")
    if mode.value in {"http", "api"} and advisory.value is False:
        yield Finding(
            about=advisory.setting.name,
            place=advisory.place,
            measured=f"{advisory.name}={advisory.text} with {mode.name}={mode.value}",
            repair=remove_variable(facts.target.registration, advisory.name, at=advisory.place),
        )


def _advisory_once(facts: Facts) -> Iterator[Finding]:
    transport = server(facts).settings["CPERSONA_TRANSPORT"]
    if transport.value == "streamable-http" and endpoint(facts.target) is not None:
        yield Finding(
            about=transport.setting.name,
            place=transport.place,
            measured=f"{transport.name or transport.setting.name}=streamable-http: one process serves every session",
            repair=Repair(
                prose="let a timer ask instead of waiting for an agent to be told",
                commands=(f"cpersona-cli doctor --client {facts.target.registration.client}",),
                place=transport.place,
            ),
        )


def _prefixed_model(facts: Facts) -> Iterator[Finding]:
    model = server(facts).settings["CPERSONA_EMBEDDING_MODEL"]
    if endpoint(facts.target) is not None and model.given and _PREFIXED.search(str(model.value)):
        yield Finding(
            about=model.setting.name,
            place=model.place,
            measured=f"{model.name}={model.value}",
            repair=Repair(
                prose="choose a model without roles (jina-v5-nano, bge-m3, text-embedding-3-small), then re-embed",
                place=model.place,
            ),
        )


def _large_batches(facts: Facts) -> Iterator[Finding]:
    database = facts.database
    size = database.reading.largest_batch_bytes
    over_http = [t for t in database.targets if t.settings["CPERSONA_EMBEDDING_MODE"].value == "http"]
    if size >= BODY_LIMIT and over_http:
        yield Finding(
            about="memories.content",
            measured=f"the 32 longest memories are {size:,} bytes together, and one request may hold {BODY_LIMIT:,}",
            repair=Repair(
                prose="re-embed with this tool, which keeps requests below the limit, not with check_health(fix)",
                commands=tool("reembed", database.path, facts.machine, "--dry-run"),
            ),
            evidence=(("largest batch", plural(size, "byte")),),
        )


TRAPS = (
    Trap(
        id="network.localhost-name",
        title="The endpoint is written as localhost",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_localhost,
        expected="127.0.0.1, the address the embedding server binds to",
        costs="localhost may stand for ::1 first; where only that answers, every call is refused",
        repair="write 127.0.0.1 in place of localhost",
        source="measured: the client tries both addresses, and an address written as [::1] is refused",
        rows=("B11",),
    ),
    Trap(
        id="network.loopback-in-container",
        title="A container looks for the embedding server inside itself",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_loopback_in_container,
        expected="host.docker.internal, or the service name of the embedding server",
        costs="every embedding call is refused; memories are stored without vectors",
        repair="name the host as the container sees it",
        source="the server's own compose file and getting-started page",
        rows=("B16",),
    ),
    Trap(
        id="network.wsl-loopback",
        title="A loopback address across the border of WSL",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_wsl,
        expected="CPersona and the embedding server on the same side, or mirrored networking",
        costs="with WSL's default network 127.0.0.1 means another computer on each side, and calls are refused one way",
        repair="run both on one side",
        source="reasoned from WSL's NAT networking; not measured",
        rows=("B18",),
    ),
    Trap(
        id="network.https-to-loopback",
        title="https to an embedding server on this computer",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_https_loopback,
        expected="http://, unless a TLS proxy stands in front",
        costs="the embedding server speaks plain HTTP, so the TLS handshake fails on every call",
        repair="write http:// in place of https://",
        source="measured: ConnectError on every call",
        rows=("B19",),
    ),
    Trap(
        id="network.advisory-off",
        title="Faults of the embedding endpoint are hidden from the agent",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_advisory_off,
        expected="CPERSONA_DEGRADED_ADVISORY unset where an embedding endpoint is configured",
        costs="when the endpoint dies, recall quietly falls back to shared words and nobody is told",
        repair="remove CPERSONA_DEGRADED_ADVISORY",
        source="the server's setup skill: switching it off is the record of a choice to run without embeddings",
        rows=("B30",),
    ),
    Trap(
        id="network.advisory-once",
        title="Only the first session hears that embeddings are down",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_advisory_once,
        expected="something other than the advisory watches the endpoint",
        costs="the advisory is given in full once per process; sessions that come later get the short form or nothing",
        repair="run the probe from a timer",
        source="the server's issue bug-251",
        rows=("B31",),
    ),
    Trap(
        id="network.prompt-prefix-model",
        title="A model that expects a prefix before each text",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_prefixed_model,
        expected="a model without roles: the server sends texts as they are",
        costs="questions and memories are embedded in the wrong role, so nearness means less than it could",
        repair="choose a model that needs no prefix, then re-embed",
        source="the server's embedding repair guide, section 3",
        rows=("B25",),
    ),
    Trap(
        id="network.large-batches",
        title="The longest memories do not fit into one embedding request",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_large_batches,
        expected="32 memories of any kind below 1 MiB",
        costs="the server's own repair sends 32 at a time, is answered 400 “Invalid JSON body”, and never finishes",
        repair="re-embed with this tool",
        source="measured: the embedding server 0.9.1 refuses bodies above 1 MiB",
        rows=("B22",),
    ),
)
