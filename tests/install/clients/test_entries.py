from __future__ import annotations

from pathlib import Path

import pytest
from support.clients import database, machine, server, write

from cpersona_cli.install.clients.discover import discover
from cpersona_cli.install.model import Discovery, LaunchKind, Registration, Status

_UVX = {"command": "uvx", "args": ["cpersona"]}


def _cursor(tmp_path: Path, servers: object, **top: object) -> Discovery:
    write(tmp_path / "home/.cursor/mcp.json", {"mcpServers": servers, **top})
    return discover(machine(tmp_path), clients=["cursor"])


def _one(tmp_path: Path, entry: object) -> Registration:
    (found,) = _cursor(tmp_path, {"memory": entry}).registrations
    return found


@pytest.mark.parametrize(
    "entry",
    [
        _UVX,
        {"command": "/opt/venv/bin/cpersona"},
        {"command": "C:\\Tools\\Scripts\\cpersona.exe"},
        {"command": "python3", "args": ["-m", "cpersona"]},
        {"command": "uvx", "args": ["cpersona@2.6.14"]},
        {"command": "uvx", "args": ["--from", "cpersona==2.6.14", "cpersona"]},
        {"command": "docker", "args": ["run", "-i", "ghcr.io/someone/cpersona:2.6"]},
        {"command": "docker", "args": ["run", "-i", "-e", "CPERSONA_DB_PATH=/data/m.db", "memory:1"]},
        {"command": "docker", "args": ["run", "-i", "-e", "CPERSONA_AUTH_TOKEN", "memory:1"]},
        {"command": "./start-memory.sh", "env": {"CPERSONA_DB_PATH": "/srv/m.db"}},
        {"command": "./start-memory.sh", "env": {"cpersona_db_path": "/srv/m.db"}},
        {"command": "./start-memory.sh", "CPERSONA_DB_PATH": "/srv/m.db"},
        {"url": "http://127.0.0.1:8402/mcp"},
        {"url": "http://[::1]:8402"},
        {"url": "https://cpersona.example.org/mcp"},
        {"url": "http://memory.lan/mcp", "headers": {"Authorization": "Bearer ${CPERSONA_AUTH_TOKEN}"}},
        {"command": "npx", "args": ["mcp-remote", "http://127.0.0.1:8402/mcp"]},
    ],
)
def test_an_entry_is_recognised_by_what_it_starts_or_calls(tmp_path: Path, entry: object) -> None:
    found = _cursor(tmp_path, {"whatever": entry})
    assert [registration.name for registration in found.registrations] == ["whatever"]


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "node", "args": ["server.js"]},
        {"command": "uvx", "args": ["mcp-server-sqlite", "--db-path", "/home/u/cpersona.db"]},
        {"command": "npx", "args": ["server-filesystem", "/home/u/cpersona"]},
        {"command": "uvx", "args": ["cpersona-cli", "doctor"]},
        {"url": "http://127.0.0.1:9000/mcp"},
        {"url": "http://127.0.0.1:18402/mcp"},
        {"url": "http://127.0.0.1:9000/mcp?next=cpersona:8402/"},
        {},
        [],
        None,
        7,
    ],
)
def test_a_name_alone_makes_no_registration(tmp_path: Path, entry: object) -> None:
    found = _cursor(tmp_path, {"cpersona": entry})
    assert (found.registrations, found.embedding_servers) == ((), ())


def test_the_old_port_counts_together_with_the_name(tmp_path: Path) -> None:
    entry = {"url": "http://127.0.0.1:8400/mcp"}
    found = _cursor(tmp_path, {"CPersona": entry, "other": entry})
    assert [registration.name for registration in found.registrations] == ["CPersona"]


def test_the_embedding_server_is_kept_apart(tmp_path: Path) -> None:
    servers = {
        "a": {"command": "uvx", "args": ["cembedding"]},
        "b": {"command": "./embed.sh", "env": {"EMBEDDING_PROVIDER": "onnx_miniml"}},
        "c": {**_UVX, "env": {"EMBEDDING_PROVIDER": "onnx_miniml"}},
        "d": {"command": "cembedding", "env": {"CPERSONA_DB_PATH": "/srv/m.db"}},
    }
    found = _cursor(tmp_path, servers)
    assert [entry.name for entry in found.registrations] == ["c"]
    assert [entry.name for entry in found.embedding_servers] == ["a", "b", "d"]


def test_an_entry_keeps_what_stands_in_it_and_where(tmp_path: Path) -> None:
    text = """{
  "mcpServers": {
    "memory": {
      "command": "uvx",
      "args": ["cpersona", 7, ""],
      "cwd": "sub",
      "envFile": ".env",
      "timeout": 30,
      "options": {"deep": [true, null]},
      "env": {
        "CPERSONA_DB_PATH": "/srv/m.db",
        "CPERSONA_HTTP_PORT": 8402,
        "CPERSONA_FTS_ENABLED": true, "X": null
      }
    }
  }
}"""
    file = write(tmp_path / "home/.cursor/mcp.json", text)
    (found,) = discover(machine(tmp_path), clients=["cursor"]).registrations
    assert (found.command, found.args, found.cwd, found.env_file) == ("uvx", ("cpersona", "7", ""), "sub", ".env")
    assert found.fields == {"timeout": 30, "options": {"deep": [True, None]}}
    assert (found.place.file, found.place.line, found.place.column) == (file, 3, 5)
    assert found.env_place is not None
    assert found.env_place.line == 10
    assert [
        (variable.name, variable.raw, variable.place.line, variable.place.column) for variable in found.variables
    ] == [
        ("CPERSONA_DB_PATH", "/srv/m.db", 11, 9),
        ("CPERSONA_HTTP_PORT", 8402, 12, 9),
        ("CPERSONA_FTS_ENABLED", True, 13, 9),
        ("X", None, 13, 39),
    ]
    assert found.launch.kind is LaunchKind.UVX
    assert found.label == "Cursor (user)"


def test_an_address_makes_a_remote_registration(tmp_path: Path) -> None:
    found = _one(
        tmp_path, {"type": "http", "url": "http://127.0.0.1:8402/mcp", "headers": {"Authorization": "Bearer x", "n": 1}}
    )
    assert (found.transport, found.url) == ("http", "http://127.0.0.1:8402/mcp")
    assert found.headers == {"Authorization": "Bearer x", "n": ""}
    assert found.launch.kind is LaunchKind.REMOTE
    assert found.fields == {"type": "http"}


@pytest.mark.parametrize("key", ["url", "httpUrl", "serverUrl"])
def test_every_client_s_word_for_the_address_is_known(tmp_path: Path, key: str) -> None:
    found = _one(tmp_path, {key: "http://127.0.0.1:8402/mcp"})
    assert (found.transport, found.url) == ("http", "http://127.0.0.1:8402/mcp")


@pytest.mark.parametrize(
    ("env", "shape", "status"),
    [
        ({}, "object", Status.ACTIVE),
        (None, "null", Status.ACTIVE),
        (["CPERSONA_DB_PATH=/srv/m.db"], "array", Status.IGNORED),
        ("CPERSONA_DB_PATH=/srv/m.db", "string", Status.IGNORED),
        (5, "number", Status.IGNORED),
    ],
)
def test_an_env_that_is_no_object_is_named(tmp_path: Path, env: object, shape: str, status: Status) -> None:
    found = _one(tmp_path, {**_UVX, "env": env})
    assert (found.env_shape, found.status, found.variables) == (shape, status, ())
    assert found.env_place is not None
    assert (found.cause, shape in found.why) == (("shape", True) if status is Status.IGNORED else ("", False))


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ({"command": ["uvx", "cpersona"]}, "“command” is one array"),
        ({"command": "uvx", "args": "cpersona serve"}, "“args” is one string"),
        ("uvx cpersona", "one string"),
        ({"env": {"CPERSONA_DB_PATH": "/srv/m.db"}}, "neither a command nor an address"),
        ({"config": server()}, "“config”"),
    ],
)
def test_an_entry_of_another_shape_is_shown_and_not_counted_as_started(
    tmp_path: Path, entry: object, word: str
) -> None:
    found = _one(tmp_path, entry)
    assert (found.status, found.cause) == (Status.IGNORED, "shape")
    assert word in found.why


def test_an_env_block_outside_of_the_server_is_found(tmp_path: Path) -> None:
    stray = {"CPERSONA_DB_PATH": "/srv/m.db"}
    found = _cursor(tmp_path, {"memory": _UVX, "env": stray}, env=stray).registrations
    assert [(entry.name, entry.status, entry.cause, database(entry)) for entry in found] == [
        ("memory", Status.ACTIVE, "", None),
        ("env", Status.IGNORED, "shape", "/srv/m.db"),
        ("env", Status.IGNORED, "shape", "/srv/m.db"),
    ]
    assert "inside the server's own object" in found[1].why
    assert "top of the file" in found[2].why


@pytest.mark.parametrize("switch", [{"disabled": True}, {"enabled": False}])
def test_a_switch_in_the_entry_is_honoured(tmp_path: Path, switch: dict[str, object]) -> None:
    found = _one(tmp_path, {**_UVX, **switch})
    assert (found.status, found.cause) == (Status.DISABLED, "switch")
    assert _one(tmp_path, {**_UVX, "disabled": False, "enabled": True}).status is Status.ACTIVE


@pytest.mark.parametrize(
    ("path", "client", "content", "where", "right"),
    [
        ("home/work/.vscode/mcp.json", "vscode", {"mcpServers": {"m": server()}}, "“mcpServers”", "“servers”"),
        ("home/work/.mcp.json", "claude-code", {"servers": {"m": server()}}, "“servers”", "“mcpServers”"),
        ("home/.claude.json", "claude-code", {"mcp": {"servers": {"m": server()}}}, "“mcp.servers”", "“mcpServers”"),
        ("home/.cursor/mcp.json", "cursor", {"mcp_servers": {"m": server()}}, "“mcp_servers”", "“mcpServers”"),
        ("home/.cursor/mcp.json", "cursor", {"m": server()}, "top level", "“mcpServers”"),
        ("home/.cursor/mcp.json", "cursor", server(), "top level", "“mcpServers”"),
        ("home/.config/zed/settings.json", "zed", {"mcpServers": {"m": server()}}, "“mcpServers”", "“context_servers”"),
        ("home/.codex/config.toml", "codex", '[mcpServers.m]\ncommand="cpersona"', "[mcpServers]", "[mcp_servers"),
        ("home/.codex/config.toml", "codex", '[mcp]\nm = {command = "cpersona"}\n', "[mcp]", "[mcp_servers.NAME]"),
        ("home/work/mcp.toml", "clotocore", '[mcp_servers.m]\ncommand = "cpersona"\n', "[mcp_servers]", "[[servers]]"),
    ],
)  # fmt: skip
def test_an_entry_under_the_wrong_key_is_shown_with_the_right_one(  # noqa: PLR0917
    tmp_path: Path, path: str, client: str, content: object, where: str, right: str
) -> None:
    write(tmp_path / path, content)
    (found,) = discover(machine(tmp_path), clients=[client]).registrations
    assert (found.status, found.cause) == (Status.IGNORED, "key")
    assert where in found.why
    assert right in found.why


def test_servers_in_an_array_are_shown(tmp_path: Path) -> None:
    found = _cursor(tmp_path, [{"name": "mine", **_UVX}, _UVX]).registrations
    assert [(entry.name, entry.status, entry.cause) for entry in found] == [
        ("mine", Status.IGNORED, "shape"),
        ("#2", Status.IGNORED, "shape"),
    ]


def test_what_lies_too_deep_or_is_no_server_is_left_alone(tmp_path: Path) -> None:
    deep = {"a": {"b": {"c": {"d": server()}}}}
    hooks = {"hooks": {"start": [{"command": "cpersona"}]}, "env": {"PATH": "/bin"}}
    assert _cursor(tmp_path, {}, deep=deep, **hooks).registrations == ()


def test_zed_s_older_shape_is_read(tmp_path: Path) -> None:
    command = {"path": "uvx", "args": ["cpersona"], "env": {"CPERSONA_DB_PATH": "/srv/m.db"}}
    write(tmp_path / "home/.config/zed/settings.json", {"context_servers": {"m": {"command": command}}})
    (found,) = discover(machine(tmp_path), clients=["zed"]).registrations
    assert (found.command, found.args, found.status, database(found)) == (
        "uvx", ("cpersona",), Status.ACTIVE, "/srv/m.db",
    )  # fmt: skip


def test_codex_entries_keep_headers_lists_and_numbers(tmp_path: Path) -> None:
    text = """\
[mcp_servers.local]
command = "uvx"
args = ["cpersona"]
env_vars = ["HTTPS_PROXY"]
startup_timeout_sec = 20.5
enabled = false
[mcp_servers.local.env]
env_vars = ["CPERSONA_DB_PATH"]
CPERSONA_HTTP_PORT = 8402
[mcp_servers.remote]
url = "http://127.0.0.1:8402/mcp"
bearer_token_env_var = "CPERSONA_AUTH_TOKEN"
http_headers = { X-One = "1" }
headers = { X-Two = "2" }
"""
    write(tmp_path / "home/.codex/config.toml", text)
    local, remote = discover(machine(tmp_path), clients=["codex"]).registrations
    assert local.fields == {"env_vars": ["HTTPS_PROXY"], "startup_timeout_sec": 20.5, "enabled": False}
    assert (local.status, local.cause) == (Status.DISABLED, "switch")
    assert [(variable.name, variable.raw, variable.place.line) for variable in local.variables] == [
        ("env_vars", ["CPERSONA_DB_PATH"], 8),
        ("CPERSONA_HTTP_PORT", 8402, 9),
    ]
    assert remote.headers == {"X-One": "1"}
    assert remote.fields == {"bearer_token_env_var": "CPERSONA_AUTH_TOKEN", "headers": {"X-Two": "2"}}


def test_a_table_without_a_server_s_name_is_a_stray_env_block(tmp_path: Path) -> None:
    write(tmp_path / "home/.codex/config.toml", '[mcp_servers.env]\nCPERSONA_DB_PATH = "/srv/m.db"\n')
    (found,) = discover(machine(tmp_path), clients=["codex"]).registrations
    assert (found.name, found.status, found.cause) == ("env", Status.IGNORED, "shape")
