"""Traps about how the embedding server is started, and about its index."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.traps import Case, facts, outcome

from cpersona_cli.install.embedding_server import EmbeddingServer, Manner
from cpersona_cli.install.model import Place
from cpersona_cli.record import replace
from cpersona_cli.traps.model import Facts

HTTP = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/embed"}
REMOTE = {**HTTP, "CPERSONA_VECTOR_SEARCH_MODE": "remote"}
LOCAL = {"EMBEDDING_PROVIDER": "onnx_jina_v5_nano"}


def server(variables: Mapping[str, str], manner: Manner = "unit", **fields: object) -> EmbeddingServer:
    one = EmbeddingServer(
        title=f"the {manner}",
        place=Place(Path(f"/etc/{manner}"), 3),
        manner=manner,
        variables=variables,
    )
    return replace(one, **fields)


def found(*servers: EmbeddingServer, env: Mapping[str, object] = HTTP) -> Facts:
    return facts(env, embedding_servers=servers)


STDIN, PROVIDER = "network.server-without-stdin", "network.server-provider-unset"
FOLDER, PORT = "network.server-model-folder-relative", "network.servers-share-a-port"
MCP, TOKEN = "network.server-speaks-mcp-only", "network.server-wants-token"
BINDS, OFF, RELATIVE = "network.container-binds-loopback", "network.remote-index-off", "network.remote-index-relative"
ROUTE, BLOBS = "network.remote-route", "network.remote-without-blobs"

TRANSPORT = {"EMBEDDING_TRANSPORT": "streamable-http"}
SECRET = {"CEMBEDDING_AUTH_TOKEN": "hunter2hunter2"}

CASES = (
    Case(STDIN, "a unit", found(server(LOCAL, holds_stdin=False)), says="sleep infinity |"),
    Case(STDIN, "an agent", found(server(LOCAL, "agent", holds_stdin=False)), says="/bin/sh"),
    Case(STDIN, "a service", found(server(LOCAL, "compose", holds_stdin=False)), says="stdin_open: true"),
    Case(STDIN, "docker", found(server(LOCAL, "client", holds_stdin=False)), says='"-i"'),
    Case(STDIN, "held", found(server(LOCAL)), "pass"),
    Case(STDIN, "not needed over HTTP", found(server(TRANSPORT, holds_stdin=False)), "pass"),
    Case(STDIN, "none", found(), "skipped"),
    Case(PROVIDER, "unset", found(server({})), says="Environment=EMBEDDING_PROVIDER=onnx_jina_v5_nano"),
    Case(PROVIDER, "empty", found(server({"EMBEDDING_PROVIDER": ""}, "agent")), says="<key>EMBEDDING_PROVIDER</key>"),
    Case(PROVIDER, "in compose", found(server({}, "compose")), says="EMBEDDING_PROVIDER: onnx"),
    Case(PROVIDER, "in a client", found(server({}, "client")), says='"EMBEDDING_PROVIDER": "onnx'),
    Case(PROVIDER, "a key", found(server({"EMBEDDING_API_KEY": "k"})), "pass"),
    Case(PROVIDER, "not all is known", found(server({}, whole=False)), "pass"),
    Case(FOLDER, "unset", found(server(LOCAL)), says=("is not set", "/home/u/.local/share/cembedding/models")),
    Case(FOLDER, "relative", found(server({**LOCAL, "ONNX_MODEL_DIR": "models"})), says="ONNX_MODEL_DIR=models"),
    Case(FOLDER, "absolute", found(server({**LOCAL, "ONNX_MODEL_DIR": "/models"})), "pass"),
    Case(FOLDER, "a project folder", found(server({**LOCAL, "CLOTO_PROJECT_DIR": "/srv"})), "pass"),
    Case(FOLDER, "a fixed working folder", found(server(LOCAL, cwd="/srv")), "pass"),
    Case(FOLDER, "an API", found(server({"EMBEDDING_PROVIDER": "api_openai"})), "pass"),
    Case(FOLDER, "a container", found(server(LOCAL, container=True)), "pass"),
    Case(PORT, "twice", found(server(LOCAL), server(LOCAL, "agent")), says=("port 8401", "8501"), count=1),
    Case(PORT, "two ports", found(server(LOCAL), server({"EMBEDDING_HTTP_PORT": "8500"})), "pass"),
    Case(PORT, "one over MCP", found(server(LOCAL), server(TRANSPORT)), "pass"),
    Case(PORT, "one in a container", found(server(LOCAL), server(LOCAL, container=True)), "pass"),
    Case(PORT, "no number", found(server({"EMBEDDING_HTTP_PORT": "x"}), server({"EMBEDDING_HTTP_PORT": "x"})), "pass"),
    Case(MCP, "MCP", found(server(TRANSPORT)), says="remove EMBEDDING_TRANSPORT"),
    Case(MCP, "stdio", found(server(LOCAL)), "pass"),
    Case(TOKEN, "a token", found(server(SECRET)), says=("14 characters", "remove CEMBEDDING_AUTH_TOKEN")),
    Case(TOKEN, "blank", found(server({"CEMBEDDING_AUTH_TOKEN": " "})), "pass"),
    Case(TOKEN, "another port", found(server({**SECRET, "EMBEDDING_HTTP_PORT": "9"})), "pass"),
    Case(TOKEN, "no URL", found(server(SECRET), env={"CPERSONA_EMBEDDING_MODE": "http"}), "pass"),
    Case(TOKEN, "nobody uses it", found(server(SECRET), env={}), "pass"),
    Case(
        TOKEN,
        "an API at that port",
        found(
            server(SECRET),
            env={"CPERSONA_EMBEDDING_MODE": "api", "CPERSONA_EMBEDDING_API_URL": "http://127.0.0.1:8401/v1"},
        ),
        "pass",
    ),
    Case(
        BINDS,
        "loopback",
        found(server({"EMBEDDING_HTTP_HOST": "127.0.0.1"}, "compose", container=True)),
        says="0.0.0.0",
    ),
    Case(BINDS, "open", found(server({"EMBEDDING_HTTP_HOST": "0.0.0.0"}, "compose", container=True)), "pass"),
    Case(BINDS, "not told", found(server({}, "compose", container=True)), "pass"),
    Case(BINDS, "no container", found(server({"EMBEDDING_HTTP_HOST": "127.0.0.1"})), "pass"),
    Case(OFF, "off", found(server({"EMBEDDING_INDEX_ENABLED": "false"}), env=REMOTE), says="=true"),
    Case(OFF, "empty", found(server({"EMBEDDING_INDEX_ENABLED": ""}), env=REMOTE)),
    Case(OFF, "on by default", found(server({}), env=REMOTE), "pass"),
    Case(OFF, "on", found(server({"EMBEDDING_INDEX_ENABLED": "TRUE"}), env=REMOTE), "pass"),
    Case(OFF, "local search", found(server({"EMBEDDING_INDEX_ENABLED": "false"})), "pass"),
    Case(RELATIVE, "unset", found(server({}), env=REMOTE), says="is not set"),
    Case(RELATIVE, "relative", found(server({"EMBEDDING_INDEX_DB_PATH": "i.db"}), env=REMOTE), says="=i.db"),
    Case(RELATIVE, "absolute", found(server({"EMBEDDING_INDEX_DB_PATH": "/i.db"}), env=REMOTE), "pass"),
    Case(RELATIVE, "fixed folder", found(server({}, cwd="/srv"), env=REMOTE), "pass"),
    Case(RELATIVE, "not all is known", found(server({}, whole=False), env=REMOTE), "pass"),
    Case(RELATIVE, "local search", found(server({})), "pass"),
    Case(
        ROUTE, "another path", facts({**REMOTE, "CPERSONA_EMBEDDING_URL": "http://h/v1/vectors"}), says="h/v1/vectors"
    ),
    Case(ROUTE, "no URL", facts({"CPERSONA_VECTOR_SEARCH_MODE": "remote"}), says="no embedding URL"),
    Case(ROUTE, "a slash at the end", facts({**REMOTE, "CPERSONA_EMBEDDING_URL": "http://h/embed/"}), "pass"),
    Case(ROUTE, "fine", facts(REMOTE), "pass"),
    Case(ROUTE, "local", facts({}), "pass"),
    Case(BLOBS, "off", facts({**REMOTE, "CPERSONA_STORE_BLOB": "false"}), says="remove CPERSONA_STORE_BLOB"),
    Case(BLOBS, "on", facts(REMOTE), "pass"),
    Case(BLOBS, "local", facts({**HTTP, "CPERSONA_STORE_BLOB": "false"}), "pass"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_embedding_servers(case: Case) -> None:
    for finding in case.check():
        assert "hunter2" not in repr(finding)


def test_a_finding_stands_where_the_server_is_started() -> None:
    _, (finding,) = outcome(MCP, found(server(TRANSPORT)))
    assert finding.place == Place(Path("/etc/unit"), 3)
    assert finding.subject == "embedding server (the unit)"
