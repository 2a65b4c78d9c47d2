"""How the embedding server of this machine is started, and whether the registrations fit it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from cpersona_cli.install.embedding_server import DEFAULT_PORT, EmbeddingServer
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.text import bare_url, safe
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, SkipError, Target, Trap
from cpersona_cli.traps.network import endpoint, loopback, split, with_host
from cpersona_cli.traps.repairs import set_variable

# Ports on which something else of this family answers by default.
_OTHER_PORTS = {
    8400: "the port of CPersona's older container images",
    8402: "the default port of CPersona's own MCP endpoint",
    8403: "the default port of the embedding server's MCP endpoint",
}


def _ports_of_servers(facts: Facts) -> list[int]:
    return [server.port for server in facts.embedding_servers if server.port is not None]


def _other_port(facts: Facts) -> Iterator[Finding]:
    found = loopback(facts)
    if found is None or found[1].setting.name != "CPERSONA_EMBEDDING_URL":
        return
    target, setting, parts = found
    port = parts.port
    if port is None or port in _ports_of_servers(facts):
        return
    settings = target.settings
    own = settings["CPERSONA_TRANSPORT"].value == "streamable-http" and settings["CPERSONA_HTTP_PORT"].value == port
    if own or port in _OTHER_PORTS:
        what = "the port this very server listens on" if own else _OTHER_PORTS[port]
        yield Finding(
            about=setting.setting.name,
            place=setting.place,
            severity=Severity.FAULT if own else Severity.WARNING,
            measured=f"{setting.name}={bare_url(str(setting.value))}; {port} is {what}",
            repair=set_variable(
                target.registration,
                setting.name,
                with_host(parts, parts.hostname or "127.0.0.1", DEFAULT_PORT),
                at=setting.place,
            ),
        )


def _listens_elsewhere(facts: Facts) -> Iterator[Finding]:
    found = loopback(facts)
    if found is None or found[1].setting.name != "CPERSONA_EMBEDDING_URL":
        return
    target, setting, parts = found
    servers = [server for server in facts.embedding_servers if not server.container and server.port is not None]
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    if target.registration.launch.inside != "host" or not servers or port in _ports_of_servers(facts):
        return
    if port in _OTHER_PORTS or not all(server.whole for server in servers):
        return
    server = servers[0]
    yield Finding(
        about=setting.setting.name,
        place=setting.place,
        measured=f"{setting.name}={bare_url(str(setting.value))}; "
        f"the {server.title} ({server.place}) listens on port {server.port}",
        repair=set_variable(
            target.registration,
            setting.name,
            with_host(parts, parts.hostname or "127.0.0.1", server.port),
            at=setting.place,
        ),
    )


def starts(facts: Facts) -> tuple[EmbeddingServer, ...]:
    """The starts of the embedding server; raises ``SkipError`` where there are none."""
    if not facts.embedding_servers:
        raise SkipError("no start of the reference embedding server was found")
    return facts.embedding_servers


def assign(server: EmbeddingServer, name: str, value: str) -> Repair:
    """``name=value`` in the spelling of the file the server is started from."""
    spelled = {
        "client": f'"{name}": "{value}"',
        "unit": f"Environment={name}={value}",
        "agent": f"<key>{name}</key><string>{value}</string>",
        "compose": f"{name}: {value}",
    }[server.manner]
    return Repair(prose=f"in {server.place}, set it and start the server again", edit=spelled, place=server.place)


def found_at(server: EmbeddingServer, about: str, measured: str, repair: Repair) -> Finding:
    """A finding about one start of the embedding server."""
    return Finding(
        subject=f"embedding server ({server.title})",
        about=about,
        place=server.place,
        measured=measured,
        repair=repair,
    )


def _without_stdin(facts: Facts) -> Iterator[Finding]:
    for server in starts(facts):
        if server.holds_stdin or server.get("EMBEDDING_TRANSPORT") == "streamable-http":
            continue
        edit, prose = {
            "unit": ("ExecStart=/bin/sh -c 'sleep infinity | exec cembedding'", "keep a pipe open in front of it"),
            "agent": (
                "<string>/bin/sh</string><string>-c</string><string>sleep 2147483647 | exec cembedding</string>",
                "keep a pipe open in front of it",
            ),
            "compose": ("stdin_open: true", "add to the service"),
            "client": ('"-i"', "add to the docker arguments, after “run”"),
        }[server.manner]
        yield found_at(
            server,
            "stdin",
            "nothing holds its standard input open",
            Repair(prose=f"in {server.place}, {prose}, then start it again", edit=edit, place=server.place),
        )


def _provider_unset(facts: Facts) -> Iterator[Finding]:
    for server in starts(facts):
        if server.whole and not server.get("EMBEDDING_PROVIDER") and not server.get("EMBEDDING_API_KEY"):
            yield found_at(
                server,
                "EMBEDDING_PROVIDER",
                "EMBEDDING_PROVIDER is not set, which means api_openai, and there is no EMBEDDING_API_KEY",
                assign(server, "EMBEDDING_PROVIDER", "onnx_jina_v5_nano"),
            )


def _relative_models(facts: Facts) -> Iterator[Finding]:
    for server in starts(facts):
        folder = server.get("ONNX_MODEL_DIR") or server.get("CLOTO_PROJECT_DIR")
        local = server.get("EMBEDDING_PROVIDER").startswith(("onnx_", "auto_"))
        if not local or server.container or server.cwd or not server.whole:
            continue
        if folder and facts.machine.pure(folder).is_absolute():
            continue
        written = f"ONNX_MODEL_DIR={safe(folder)}" if folder else "ONNX_MODEL_DIR is not set"
        absolute = facts.machine.home / ".local" / "share" / "cembedding" / "models"
        yield found_at(
            server,
            "ONNX_MODEL_DIR",
            f"{written}, so the model is looked for below whatever folder the server is started in",
            assign(server, "ONNX_MODEL_DIR", str(absolute)),
        )


def _one_port(facts: Facts) -> Iterator[Finding]:
    by_port: dict[int, list[EmbeddingServer]] = defaultdict(list)
    for server in starts(facts):
        if server.port is not None and not server.container and server.get("EMBEDDING_TRANSPORT") != "streamable-http":
            by_port[server.port].append(server)
    for port, servers in by_port.items():
        if len(servers) < 2:
            continue
        last = servers[-1]
        listed = "; ".join(f"{server.title} ({server.place})" for server in servers)
        yield found_at(
            last,
            "EMBEDDING_HTTP_PORT",
            f"{len(servers)} starts on port {port}: {listed}",
            Repair(
                prose=f"keep one of them and remove the others, or give this one, in {last.place}, a port of its own",
                edit=assign(last, "EMBEDDING_HTTP_PORT", str(port + 100)).edit,
                place=last.place,
            ),
        )


def _mcp_only(facts: Facts) -> Iterator[Finding]:
    for server in starts(facts):
        if server.get("EMBEDDING_TRANSPORT") == "streamable-http":
            yield found_at(
                server,
                "EMBEDDING_TRANSPORT",
                "EMBEDDING_TRANSPORT=streamable-http",
                Repair(prose=f"in {server.place}, remove EMBEDDING_TRANSPORT and start it again", place=server.place),
            )


def _wants_token(facts: Facts) -> Iterator[Finding]:
    http = [t for t in facts.targets if t.settings["CPERSONA_EMBEDDING_MODE"].value == "http"]
    for server in starts(facts):
        token = server.get("CEMBEDDING_AUTH_TOKEN").strip()
        if token and any(is_for(target, server) for target in http):
            yield found_at(
                server,
                "CEMBEDDING_AUTH_TOKEN",
                f"CEMBEDDING_AUTH_TOKEN is set ({len(token)} characters)",
                Repair(
                    prose=f"in {server.place}, remove CEMBEDDING_AUTH_TOKEN, keep the server bound to 127.0.0.1 "
                    "(or behind a firewall), and start it again",
                    place=server.place,
                ),
            )


def is_for(target: Target, server: EmbeddingServer) -> bool:
    """Whether the target's URL leads to this server: this computer, and its port."""
    setting = endpoint(target)
    parts = None if setting is None else split(setting)
    if setting is None or parts is None or setting.setting.name != "CPERSONA_EMBEDDING_URL":
        return False
    near = is_loopback(str(setting.value)) or parts.hostname == "host.docker.internal"
    return near and server.port == (parts.port or 80)


def _container_loopback(facts: Facts) -> Iterator[Finding]:
    for server in starts(facts):
        host = server.get("EMBEDDING_HTTP_HOST")
        if server.container and host in {"127.0.0.1", "localhost", "::1"}:
            yield found_at(
                server,
                "EMBEDDING_HTTP_HOST",
                f"EMBEDDING_HTTP_HOST={host} in a container",
                assign(server, "EMBEDDING_HTTP_HOST", "0.0.0.0"),  # noqa: S104 - inside a container
            )


TRAPS = (
    Trap(
        id="network.port-of-another-service",
        title="The embedding URL names a port where something else listens",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_other_port,
        expected=f"the embedding server's port, {DEFAULT_PORT} unless EMBEDDING_HTTP_PORT says otherwise",
        costs="an MCP endpoint answers 401, 404 or 406 in place of vectors",
        repair=f"use port {DEFAULT_PORT}",
        source="default ports of the server 2.6.14 and the embedding server 0.9.1",
        rows=("B8",),
    ),
    Trap(
        id="network.server-listens-elsewhere",
        title="The embedding server that is set up here listens on another port",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_listens_elsewhere,
        expected="the port of the embedding server that was found",
        costs="every embedding call is refused unless another embedding server is started by hand",
        repair="use the port of the embedding server",
        source="EMBEDDING_HTTP_PORT of the embedding server 0.9.1",
        rows=("B8",),
    ),
    Trap(
        id="network.server-without-stdin",
        title="The embedding server is started with its standard input closed",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_without_stdin,
        expected="something that keeps its standard input open: a pipe, a terminal, stdin_open",
        costs="it opens its port and ends in the same second with exit code 0, so the supervisor sees no failure",
        repair="start it behind a pipe that never ends, or with stdin_open: true",
        source="measured on the embedding server 0.9.1: it ends when its MCP session over stdin ends",
        rows=("B2",),
    ),
    Trap(
        id="network.server-provider-unset",
        title="The embedding server is started without a provider",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_provider_unset,
        expected="EMBEDDING_PROVIDER names a local model, or EMBEDDING_API_KEY is set",
        costs="it asks for an OpenAI key and ends with ValueError",
        repair="set EMBEDDING_PROVIDER=onnx_jina_v5_nano",
        source="measured on the embedding server 0.9.1",
        rows=("B3",),
    ),
    Trap(
        id="network.server-model-folder-relative",
        title="The embedding server looks for its model below its working folder",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_relative_models,
        expected="ONNX_MODEL_DIR is absolute, or the working folder is fixed",
        costs="started from another folder than the one the model was downloaded in, it does not find the model",
        repair="set ONNX_MODEL_DIR to an absolute folder, for the download and for the server",
        source="the embedding server 0.9.1: ONNX_MODEL_DIR defaults to data/models/… below the working folder",
        rows=("B5",),
    ),
    Trap(
        id="network.servers-share-a-port",
        title="Several starts of the embedding server want the same port",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_one_port,
        expected="one embedding server per port",
        costs="the later one loses its REST interface without a word while its MCP session lives on, and the "
        "earlier one's model answers for both",
        repair="keep one start, or give each its own EMBEDDING_HTTP_PORT",
        source="measured on the embedding server 0.9.1",
        rows=("B7",),
    ),
    Trap(
        id="network.server-speaks-mcp-only",
        title="The embedding server serves MCP in place of its REST interface",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_mcp_only,
        expected="EMBEDDING_TRANSPORT unset (stdio), which also serves POST /embed",
        costs="there is no /embed at all, so CPersona gets no vectors from it",
        repair="remove EMBEDDING_TRANSPORT",
        source="source of the embedding server 0.9.1",
        rows=("B9",),
    ),
    Trap(
        id="network.server-wants-token",
        title="The embedding server wants a token that CPersona never sends",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_wants_token,
        expected="CEMBEDDING_AUTH_TOKEN unset",
        costs="every embedding call is answered 401: in http mode CPersona sends no Authorization header",
        repair="remove CEMBEDDING_AUTH_TOKEN and protect the port by its address",
        source="measured on 2.6.14 with the embedding server 0.9.1",
        rows=("B10",),
    ),
    Trap(
        id="network.container-binds-loopback",
        title="An embedding server in a container that only its own container can reach",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_container_loopback,
        expected="EMBEDDING_HTTP_HOST=0.0.0.0 inside a container",
        costs="every call from outside the container is refused, published port or not",
        repair="set EMBEDDING_HTTP_HOST=0.0.0.0 in the container",
        source="the server's own compose file",
        rows=("B17",),
    ),
)
