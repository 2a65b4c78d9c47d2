from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.traps import MACHINE, Case, docker, facts, outcome, reading, variables
from support.variations import severities

from cpersona_cli.install.embedding_server import EmbeddingServer
from cpersona_cli.install.model import Launch, LaunchKind, Place
from cpersona_cli.record import replace
from cpersona_cli.traps.model import Facts
from cpersona_cli.words import COMMANDS

URL = "http://127.0.0.1:8401/embed"
REMOTE = Launch(kind=LaunchKind.REMOTE)


def http(url: str = URL, more: Mapping[str, object] | None = None, **fields: object) -> Facts:
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": url, **(more or {})}
    return facts(env, **fields)  # type: ignore[arg-type]


def api(more: Mapping[str, object]) -> Facts:
    return facts({"CPERSONA_EMBEDDING_MODE": "api", "CPERSONA_EMBEDDING_API_KEY": "k", **more})


def start(port: str = "8500", **fields: object) -> EmbeddingServer:
    server = EmbeddingServer(
        title="service unit embed.service",
        place=Place(Path("/home/u/.config/systemd/user/embed.service"), 4),
        manner="unit",
        variables={"EMBEDDING_HTTP_PORT": port},
    )
    return replace(server, **fields)


def container(url: str, **fields: object) -> Facts:
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": url}
    return facts(launch=docker(env, **fields))  # type: ignore[arg-type]


def wsl(url: str) -> Facts:
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": url}
    file = Path("/home/u/.claude.json")
    words = ("wsl.exe", "env", "uvx", "cpersona")
    return facts(launch=Launch(kind=LaunchKind.UVX, inside="wsl", words=words, variables=variables(env, file)))


IN_WSL = replace(MACHINE, env={**MACHINE.env, "WSL_DISTRO_NAME": "Ubuntu"})

CASES = (
    Case(
        "network.localhost-name",
        "localhost",
        http("http://localhost:8401/embed?key=abcd"),
        says=('"http://127.0.0.1:8401/embed"', "line 12"),
    ),
    Case("network.localhost-name", "127.0.0.1", http(), "pass"),
    Case("network.localhost-name", "another host", http("http://embed.lan/embed"), "pass"),
    Case("network.localhost-name", "no URL", http(""), "pass"),
    Case("network.localhost-name", "no mode", facts({"CPERSONA_EMBEDDING_URL": "http://localhost/embed"}), "pass"),
    Case("network.localhost-name", "a broken URL", http("http://[::1"), "pass"),
    Case("network.localhost-name", "a port out of range", http("http://localhost:99999/embed"), "pass"),
    Case("network.localhost-name", "in a container", container("http://localhost:8401/embed"), "pass"),
    Case("network.localhost-name", "elsewhere", http("http://localhost/embed", launch=REMOTE), "skipped"),
    Case(
        "network.loopback-in-container",
        "docker",
        container(URL),
        says=("http://host.docker.internal:8401/embed", "--add-host", "host-gateway"),
    ),
    Case(
        "network.loopback-in-container",
        "compose",
        container("http://localhost:8401/embed", kind=LaunchKind.COMPOSE),
        says="its service name is the host",
    ),
    Case("network.loopback-in-container", "the host's network", container(URL, network_host=True), "pass"),
    Case("network.loopback-in-container", "a service name", container("http://embed:8401/embed"), "pass"),
    Case("network.loopback-in-container", "no container", http(), "pass"),
    Case("network.wsl-loopback", "from Windows into WSL", wsl(URL), says=("wsl --shutdown", "inside WSL")),
    Case(
        "network.wsl-loopback",
        "from WSL to Windows",
        http(machine=IN_WSL, command="/mnt/c/bin/uvx.EXE"),
        says="starts a Windows program",
    ),
    Case("network.wsl-loopback", "WSL alone", http(machine=IN_WSL), "pass"),
    Case("network.wsl-loopback", "a real host", wsl("http://embed.lan/embed"), "pass"),
    Case("network.port-of-another-service", "the MCP port", http("http://127.0.0.1:8402/embed"), says="8401/embed"),
    Case("network.port-of-another-service", "the older image", http("http://localhost:8400/embed"), says="older"),
    Case(
        "network.port-of-another-service",
        "its own port",
        http("http://127.0.0.1:9000/embed", {"CPERSONA_TRANSPORT": "streamable-http", "CPERSONA_HTTP_PORT": "9000"}),
        says="this very server",
    ),
    Case("network.port-of-another-service", "8401", http(), "pass"),
    Case("network.port-of-another-service", "an API", api({}), "pass"),
    Case(
        "network.port-of-another-service",
        "an embedding server was given that port",
        http("http://127.0.0.1:8402/embed", embedding_servers=[start("8402")]),
        "pass",
    ),
    Case(
        "network.server-listens-elsewhere",
        "another port",
        http(embedding_servers=[start()]),
        says=("embed.service:4", '"http://127.0.0.1:8500/embed"'),
    ),
    Case("network.server-listens-elsewhere", "the port it has", http(embedding_servers=[start("8401")]), "pass"),
    Case("network.server-listens-elsewhere", "no port in the URL", http("http://localhost/embed"), "pass"),
    Case(
        "network.server-listens-elsewhere",
        "the scheme's port",
        http("http://localhost/embed", embedding_servers=[start("80")]),
        "pass",
    ),
    Case("network.server-listens-elsewhere", "none was found", http(), "pass"),
    Case("network.server-listens-elsewhere", "not whole", http(embedding_servers=[start(whole=False)]), "pass"),
    Case("network.server-listens-elsewhere", "in a container", http(embedding_servers=[start(container=True)]), "pass"),
    Case("network.server-listens-elsewhere", "no number", http(embedding_servers=[start("x")]), "pass"),
    Case(
        "network.server-listens-elsewhere",
        "a known other service",
        http("http://127.0.0.1:8403/embed", embedding_servers=[start()]),
        "pass",
    ),
    Case("network.server-listens-elsewhere", "another host", http("http://h:1/embed"), "pass"),
    Case("network.https-to-loopback", "https", http("https://127.0.0.1:8401/embed"), says='"http://127.0.0.1:8401'),
    Case("network.https-to-loopback", "http", http(), "pass"),
    Case("network.https-to-loopback", "another host", http("https://embed.example/embed"), "pass"),
    Case("network.advisory-off", "off", http(more={"CPERSONA_DEGRADED_ADVISORY": "false"}), says="remove"),
    Case("network.advisory-off", "on", http(), "pass"),
    Case("network.advisory-off", "a choice", facts({"CPERSONA_DEGRADED_ADVISORY": "false"}), "pass"),
    Case(
        "network.advisory-off",
        "a word that older releases took for off",
        http(more={"CPERSONA_DEGRADED_ADVISORY": "yes"}, version="2.6.10"),
    ),
    Case(
        "network.advisory-off",
        "a word that newer releases take for on",
        http(more={"CPERSONA_DEGRADED_ADVISORY": "yes"}, version="2.6.11"),
        "pass",
    ),
    Case(
        "network.advisory-once",
        "one process for all",
        http(more={"CPERSONA_TRANSPORT": "streamable-http"}),
        says="doctor --client claude-code",
    ),
    Case("network.advisory-once", "stdio", http(), "pass"),
    Case("network.advisory-once", "no embedding", facts({"CPERSONA_TRANSPORT": "streamable-http"}), "pass"),
    Case("network.prompt-prefix-model", "e5", api({"CPERSONA_EMBEDDING_MODEL": "intfloat/multilingual-e5-large"})),
    Case("network.prompt-prefix-model", "nomic", api({"CPERSONA_EMBEDDING_MODEL": "nomic-embed-text:latest"})),
    Case("network.prompt-prefix-model", "a name with e5 inside", api({"CPERSONA_EMBEDDING_MODEL": "bge5"}), "pass"),
    Case("network.prompt-prefix-model", "the default", api({}), "pass"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_endpoints(case: Case) -> None:
    for finding in case.check():
        assert "abcd" not in finding.measured + finding.repair.edit


def test_its_own_port_is_a_fault_and_a_known_one_a_warning() -> None:
    own = CASES[[case.name for case in CASES].index("its own port")]
    known = CASES[[case.name for case in CASES].index("the MCP port")]
    assert severities(own.check()) == ["fault"]
    assert severities(known.check()) == ["warning"]


@pytest.mark.parametrize(
    ("size", "mode", "state"),
    [
        (1 << 20, "http", "findings"),
        ((1 << 20) - 1, "http", "pass"),
        (1 << 21, "api", "pass"),
        (1 << 21, "none", "pass"),
    ],
)
def test_large_batches(size: int, mode: str, state: str) -> None:
    known = http(
        more={"CPERSONA_EMBEDDING_MODE": mode, "CPERSONA_DB_PATH": "/home/u/my c.db"},
        reading=reading("/home/u/my c.db", largest_batch_bytes=size),
    )
    ended, findings = outcome("network.large-batches", known)
    assert ended == state
    for finding in findings:
        named = " ".join(finding.repair.commands)
        assert named in {"", "cpersona-cli reembed --db '/home/u/my c.db' --dry-run"}
        assert bool(named) == ("reembed" in COMMANDS)
