from __future__ import annotations

import codecs
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.clients import database, machine, server, write

from cpersona_cli.install.clients.discover import BadSpecError, discover, from_file, from_process
from cpersona_cli.install.model import Discovery, LaunchKind, Looked, ProblemKind, Status

_JSON = {"mcpServers": {"memory": server()}}
_EXTENSION = {"name": "memory", "server": {"type": "python", "mcp_config": server()}}


def _looked(found: Discovery, path: Path) -> Looked:
    return next(looked for looked in found.looked if looked.path == path)


# --- damaged files, as people have them


def test_a_byte_order_mark_is_reported_and_the_entry_found(tmp_path: Path) -> None:
    path = write(tmp_path / "home/.claude.json", _JSON)
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    found = discover(machine(tmp_path))
    looked = _looked(found, path)
    assert (looked.state, looked.mentions, looked.mtime) == ("read", True, path.stat().st_mtime)
    assert [problem.kind for problem in looked.problems] == [ProblemKind.BOM]
    assert [entry.status for entry in found.registrations] == [Status.ACTIVE]


_LENIENT = """{
  "KEY": {
    // memory
    "memory": {"command": "uvx", "args": ["cpersona"], "env": {"CPERSONA_DB_PATH": "/srv/m.db",}}
} }
"""


@pytest.mark.parametrize(
    "path", [".claude.json", "work/.mcp.json", ".config/Claude/claude_desktop_config.json", ".cursor/mcp.json"]
)
def test_a_comment_and_a_trailing_comma_break_a_strict_file_and_the_entry_is_still_shown(
    tmp_path: Path, path: str
) -> None:
    file = write(tmp_path / "home" / path, _LENIENT.replace("KEY", "mcpServers"))
    found = discover(machine(tmp_path))
    looked = _looked(found, file)
    assert looked.state == "broken"
    assert [(problem.kind, problem.place.line, problem.fatal) for problem in looked.problems] == [
        (ProblemKind.COMMENT, 3, True),
        (ProblemKind.TRAILING_COMMA, 4, True),
    ]
    assert [database(entry) for entry in found.registrations] == ["/srv/m.db"]


def test_vs_code_reads_the_same_text_and_keeps_inputs(tmp_path: Path) -> None:
    text = """{
  "inputs": [{"type": "promptString", "id": "key", "password": true},],
  "servers": { // mine
    "memory": {"type": "stdio", "command": "uvx", "args": ["cpersona"], "env": {
      "CPERSONA_EMBEDDING_API_KEY": "${input:key}", "CPERSONA_DB_PATH": "${workspaceFolder}/m.db"}},
  },
}"""
    file = write(tmp_path / "home/work/.vscode/mcp.json", text)
    found = discover(machine(tmp_path))
    assert (_looked(found, file).state, _looked(found, file).problems) == ("read", ())
    (entry,) = found.registrations
    assert [variable.raw for variable in entry.variables] == ["${input:key}", "${workspaceFolder}/m.db"]
    assert (entry.project, entry.fields) == (tmp_path / "home/work", {"type": "stdio"})


def test_gemini_takes_comments_and_no_trailing_comma(tmp_path: Path) -> None:
    file = write(tmp_path / "home/.gemini/settings.json", _LENIENT.replace("KEY", "mcpServers"))
    looked = _looked(discover(machine(tmp_path)), file)
    assert [problem.kind for problem in looked.problems] == [ProblemKind.TRAILING_COMMA]


def test_single_backslashes_are_named_and_the_path_is_shown_as_meant(tmp_path: Path) -> None:
    text = """{"mcpServers": {"memory": {"command": "uvx", "args": ["cpersona"],
  "env": {"CPERSONA_DB_PATH": "C:\\Users\\me\\memory.db"}}}}"""
    file = write(tmp_path / "home/AppData/Roaming/Claude/claude_desktop_config.json", text)
    found = discover(machine(tmp_path, "windows"))
    (problem,) = _looked(found, file).problems
    assert (problem.kind, problem.place.line, problem.place.column) == (ProblemKind.SYNTAX, 2, 34)
    assert "C:/Users/" in problem.advice
    assert [database(entry) for entry in found.registrations] == ["C:\\Users\\me\\memory.db"]


def test_codex_with_single_backslashes_does_not_start_and_is_told_the_literal_string(tmp_path: Path) -> None:
    text = '[mcp_servers.m]\ncommand = "cpersona"\n[mcp_servers.m.env]\nCPERSONA_DB_PATH = "C:\\Users\\me\\m.db"\n'
    file = write(tmp_path / "home/.codex/config.toml", text)
    found = discover(machine(tmp_path, "windows"))
    looked = _looked(found, file)
    assert (looked.state, looked.problems[0].place.line) == ("broken", 4)
    assert "single quotes" in looked.problems[0].advice
    assert [database(entry) for entry in found.registrations] == ["C:\\Users\\me\\m.db"]


@pytest.mark.parametrize(
    ("content", "kind", "mentions"),
    [
        ("", ProblemKind.EMPTY, False),
        ('{"mcpServers": {"m": {"command": "uvx", "args": ["cpersona"], "env": {"CPERS', ProblemKind.TRUNCATED, True),
    ],
)
def test_an_empty_and_a_half_written_file_are_named_and_left_alone(
    tmp_path: Path, content: str, kind: ProblemKind, *, mentions: bool
) -> None:
    path = write(tmp_path / "home/.claude.json", content)
    before = path.stat()
    looked = _looked(discover(machine(tmp_path)), path)
    assert (looked.state, looked.mentions) == ("broken", mentions)
    assert kind in [problem.kind for problem in looked.problems]
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "mcpServers",
                        "projects",
                        "m",
                        "command",
                        "args",
                        "env",
                        "url",
                        "headers",
                        "CPERSONA_X",
                        "type",
                        "cwd",
                        "config",
                        "enabledMcpjsonServers",
                        "enabledPlugins",
                        "plugins",
                        "path",
                        "disabled",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_no_shape_of_a_file_makes_it_raise(tmp_path: Path, content: object) -> None:  # fmt: skip
    here = machine(tmp_path)
    for path in (".claude.json", ".claude/settings.json", ".claude/plugins/installed_plugins.json", ".cursor/mcp.json",
                 ".gemini/settings.json", ".config/zed/settings.json"):  # fmt: skip
        write(here.home / path, content)
    discover(here)


# --- rules of single clients


def test_a_project_of_codex_must_be_trusted(tmp_path: Path) -> None:
    (tmp_path / "home/work/.git").mkdir(parents=True)
    entry = '[mcp_servers.m]\ncommand = "cpersona"\n'
    write(tmp_path / "home/work/.codex/config.toml", entry)
    user = write(tmp_path / "home/.codex/config.toml", entry)
    found = discover(machine(tmp_path, cwd="work/src"), clients=["codex"]).registrations
    assert [(one.scope, one.status, one.cause) for one in found] == [
        ("project", Status.PENDING, "untrusted"),
        ("user", Status.ACTIVE, ""),
    ]
    write(user, f'{entry}[projects."{(tmp_path / "home/work").as_posix()}"]\ntrust_level = "trusted"\n')
    found = discover(machine(tmp_path, cwd="work/src"), clients=["codex"]).registrations
    assert [(one.scope, one.status, one.cause) for one in found] == [
        ("project", Status.ACTIVE, ""),
        ("user", Status.HIDDEN, "scope"),
    ]
    write(user, f'{entry}[projects."{(tmp_path / "home/work").as_posix()}"]\ntrust_level = "untrusted"\n')
    assert discover(machine(tmp_path, cwd="work"), clients=["codex"]).registrations[0].status is Status.PENDING


@pytest.mark.parametrize(
    ("lists", "status"),
    [
        ({"mcp": {"excluded": ["memory"]}}, Status.DISABLED),
        ({"excludeMCPServers": ["memory"]}, Status.DISABLED),
        ({"mcp": {"allowed": ["other"]}}, Status.DISABLED),
        ({"allowMCPServers": []}, Status.DISABLED),
        ({"mcp": {"allowed": ["memory"], "excluded": ["other"]}}, Status.ACTIVE),
    ],
)
def test_gemini_s_lists_are_honoured(tmp_path: Path, lists: dict[str, object], status: Status) -> None:
    write(tmp_path / "home/.gemini/settings.json", {**_JSON, **lists})
    (found,) = discover(machine(tmp_path)).registrations
    assert found.status is status
    assert found.cause == ("switch" if status is Status.DISABLED else "")


def test_an_extension_of_claude_desktop_is_found_with_its_switch(tmp_path: Path) -> None:
    folder = tmp_path / "home/.config/Claude"
    write(folder / "Claude Extensions/ext.memory/manifest.json", _EXTENSION)
    (found,) = discover(machine(tmp_path)).registrations
    assert (found.scope, found.name, found.status, database(found)) == (
        "extension", "memory", Status.ACTIVE, "/srv/memory.db",
    )  # fmt: skip
    write(folder / "Claude Extensions Settings/ext.memory.json", {"isEnabled": False})
    (found,) = discover(machine(tmp_path)).registrations
    assert (found.status, found.cause) == (Status.DISABLED, "switch")
    write(folder / "Claude Extensions/ext.memory/manifest.json", {"server": {}})
    assert discover(machine(tmp_path)).registrations == ()


def test_an_extension_without_a_name_has_that_of_its_folder(tmp_path: Path) -> None:
    manifest = {"server": {"mcp_config": server()}}
    write(tmp_path / "home/.config/Claude/Claude Extensions/ext.memory/manifest.json", manifest)
    assert [entry.name for entry in discover(machine(tmp_path)).registrations] == ["ext.memory"]


def test_vs_code_keeps_servers_of_one_name_side_by_side(tmp_path: Path) -> None:
    for path in ("home/work/.vscode/mcp.json", "home/.config/Code/User/mcp.json"):
        write(tmp_path / path, {"servers": {"memory": server()}})
    found = discover(machine(tmp_path)).registrations
    assert [entry.status for entry in found] == [Status.ACTIVE, Status.ACTIVE]


def test_clotocore_s_embedding_server_is_kept_apart(tmp_path: Path) -> None:
    text = """
[[servers]]
id = "memory.cpersona"
command = "python"
args = ["-m", "cpersona"]
[servers.env]
CPERSONA_DB_PATH = "/srv/m.db"
[[servers]]
id = "tool.embedding"
command = "./run"
[servers.env]
EMBEDDING_PROVIDER = "onnx_miniml"
"""
    write(tmp_path / "home/work/mcp.toml", text)
    found = discover(machine(tmp_path))
    assert [(entry.name, entry.place.line, database(entry)) for entry in found.registrations] == [
        ("memory.cpersona", 2, "/srv/m.db")
    ]
    assert [(entry.name, entry.place.line) for entry in found.embedding_servers] == [("tool.embedding", 8)]


# --- choosing


def test_only_the_named_clients_are_searched(tmp_path: Path) -> None:
    write(tmp_path / "home/.cursor/mcp.json", _JSON)
    write(tmp_path / "home/.claude.json", _JSON)
    found = discover(machine(tmp_path), clients=["cursor"])
    assert [entry.client for entry in found.registrations] == ["cursor"]
    assert {looked.client for looked in found.looked} == {"cursor"}


@pytest.mark.parametrize(
    ("name", "answer"), [("curser", "did you mean cursor?"), ("emacs-ai", "claude-desktop, codex")]
)
def test_a_client_nobody_knows_is_an_error(tmp_path: Path, name: str, answer: str) -> None:
    with pytest.raises(BadSpecError, match=name) as error:
        discover(machine(tmp_path), clients=[name])
    assert answer in str(error.value)


def test_one_file_is_examined_for_what_is_cpersona(tmp_path: Path) -> None:
    servers = {"memory": server(), "notes": {"command": "node"}, "embed": {"command": "cembedding"}}
    path = write(tmp_path / "a.json", {"mcpServers": servers})
    found = from_file(machine(tmp_path), str(path))
    assert [entry.name for entry in found.registrations] == ["memory"]
    assert [entry.name for entry in found.embedding_servers] == ["embed"]
    assert [looked.path for looked in found.looked] == [path]


@pytest.mark.parametrize("spec", ["a.json:notes", "../work/a.json:notes", "~/work/a.json:notes"])
def test_a_named_entry_is_examined_whatever_it_starts(tmp_path: Path, spec: str) -> None:
    write(tmp_path / "home/work/a.json", {"mcpServers": {"memory": server(), "notes": {"command": "node"}}})
    found = from_file(machine(tmp_path), spec)
    assert [(entry.name, entry.command) for entry in found.registrations] == [("notes", "node")]


def test_the_local_servers_of_a_state_file_are_among_its_entries(tmp_path: Path) -> None:
    path = write(
        tmp_path / "home/.claude.json", {**_JSON, "projects": {"/p": {"mcpServers": {"memory": server("/p.db")}}}}
    )
    found = from_file(machine(tmp_path), f"{path}:memory").registrations
    assert [(entry.scope, database(entry), entry.status) for entry in found] == [
        ("user", "/srv/memory.db", Status.ACTIVE),
        ("local", "/p.db", Status.ACTIVE),
    ]


@pytest.mark.skipif(os.name == "nt", reason="a colon cannot stand in a file's name")
@pytest.mark.parametrize("name", ["C:\\Users\\me\\mcp.json", "d:/mcp.json", "a:b.json"])
def test_colons_in_a_path_are_no_obstacle(tmp_path: Path, name: str) -> None:
    here = machine(tmp_path)
    write(here.cwd / name, {"mcpServers": {"plugin:memory": server(), "x": server()}})
    assert len(from_file(here, name).registrations) == 2
    assert [entry.name for entry in from_file(here, f"{name}:plugin:memory").registrations] == ["plugin:memory"]


def _refused(tmp_path: Path, spec: str) -> str:
    with pytest.raises(BadSpecError) as error:
        from_file(machine(tmp_path), spec)
    text = str(error.value)
    assert "\n" not in text
    return text


def test_a_bad_spec_is_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {"mcpServers": {"notes": {"command": "node"}, "other": {"command": "x"}}})
    empty = write(tmp_path / "b.json", {"theme": "dark"})
    assert _refused(tmp_path, f"{path}:memory") == f"{path} has no entry “memory”; its entries are “notes”, “other”"
    assert _refused(tmp_path, f"{empty}:memory") == f"{empty} has no entry “memory”; it has no entries of MCP servers"
    assert _refused(tmp_path, str(path)).startswith(f"nothing in {path} looks like CPersona; its entries are “notes”")
    assert _refused(tmp_path, str(empty)).endswith("it has no entries of MCP servers")
    assert _refused(tmp_path, "none.json:memory") == f"there is no file {tmp_path / 'home/work/none.json'}"
    assert _refused(tmp_path, "none.json").endswith("none.json")
    assert _refused(tmp_path, "C:\\none.json").endswith("C:\\none.json")
    assert _refused(tmp_path, str(tmp_path)) == f"{tmp_path} cannot be read: this is a folder, not a file"
    assert _refused(tmp_path, "").startswith("there is no file")
    assert _refused(tmp_path, "nul\0.json").startswith("there is no file")


def test_a_broken_file_is_shown_instead_of_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", '{"mcpServers": {"notes": {"command": "no')
    for spec in (str(path), f"{path}:memory"):
        found = from_file(machine(tmp_path), spec)
        assert found.registrations == ()
        assert [looked.state for looked in found.looked] == ["broken"]


def test_this_process_is_one_registration(tmp_path: Path) -> None:
    env = {
        "CPERSONA_DB_PATH": "/srv/m.db",
        "CPERSONA_EMBEDING_MODE": "http",
        "EMBEDDING_HTTP_URL": "",
        "http_proxy": "p",
        "NO_PROXY": "*",
        "SSL_CERT_FILE": "c",
        "PATH": "/bin",
        "MY_CPERSONA_X": "1",
    }
    found = from_process(machine(tmp_path, env=env))
    (entry,) = found.registrations
    assert (entry.client, entry.scope, entry.status, entry.launch.kind) == (
        "env", "process", Status.ACTIVE, LaunchKind.PROCESS,
    )  # fmt: skip
    assert str(entry.place) == "this process's environment"
    assert {variable.name for variable in entry.variables} == set(env) - {"PATH", "MY_CPERSONA_X"}
    assert {variable.origin for variable in entry.variables} == {"process"}
    assert (found.looked, found.embedding_servers) == ((), ())
