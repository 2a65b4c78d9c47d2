from __future__ import annotations

from pathlib import Path

import pytest
from support.clients import database, machine, server, write

from cpersona_cli.install.clients.discover import discover
from cpersona_cli.install.model import Discovery, Registration, Status, System

_ACTIVE = (Status.ACTIVE, "")
_HIDDEN = (Status.HIDDEN, "scope")


def _claude(tmp_path: Path, *, cwd: str = "work", system: System = "linux") -> Discovery:
    return discover(machine(tmp_path, system, cwd=cwd), clients=["claude-code"])


def _told(found: Discovery) -> list[tuple[str, object, tuple[Status, str]]]:
    return [(entry.scope, database(entry), (entry.status, entry.cause)) for entry in found.registrations]


def _one(found: Discovery) -> Registration:
    (registration,) = found.registrations
    return registration


def _state(tmp_path: Path, **content: object) -> Path:
    return write(tmp_path / "home/.claude.json", content)


def test_one_name_in_every_scope_the_nearest_wins_and_the_others_are_shown(tmp_path: Path) -> None:
    work, other = tmp_path / "home/work", tmp_path / "home/other"
    state = _state(
        tmp_path,
        mcpServers={"cpersona": server("/a.db")},
        projects={
            str(work): {"mcpServers": {"cpersona": server("/b.db")}, "enabledMcpjsonServers": ["cpersona"]},
            str(other): {"mcpServers": {}},
        },
    )
    write(work / ".mcp.json", {"mcpServers": {"cpersona": server("./c.db")}})
    found = _claude(tmp_path)
    assert _told(found) == [("local", "/b.db", _ACTIVE), ("project", "./c.db", _HIDDEN), ("user", "/a.db", _HIDDEN)]
    assert str(found.registrations[0].place) in found.registrations[2].why
    assert [(place.file, place.line is not None, place.words) for place in found.empty_projects] == [
        (state, True, str(other))
    ]
    # Seen from the other folder, the user's server is the one that starts.
    found = _claude(tmp_path, cwd="other")
    assert _told(found) == [("user", "/a.db", _ACTIVE), ("local", "/b.db", _ACTIVE), ("project", "./c.db", _HIDDEN)]
    assert found.registrations[1].project == work


def test_an_entry_of_another_program_hides_one_of_the_same_name(tmp_path: Path) -> None:
    local = {"memory": {"command": "node", "args": ["notes.js"]}}
    _state(
        tmp_path,
        mcpServers={"memory": server(), "second": server("/two.db")},
        projects={str(tmp_path / "home/work"): {"mcpServers": local}},
    )
    assert _told(_claude(tmp_path)) == [("user", "/srv/memory.db", _HIDDEN), ("user", "/two.db", _ACTIVE)]


def test_a_local_server_belongs_to_the_root_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "home/work/.git").mkdir(parents=True)
    _state(tmp_path, projects={str(tmp_path / "home/work"): {"mcpServers": {"m": server("/b.db")}}},
           mcpServers={"m": server("/a.db")})  # fmt: skip
    assert _told(_claude(tmp_path, cwd="work/src")) == [("local", "/b.db", _ACTIVE), ("user", "/a.db", _HIDDEN)]
    (tmp_path / "home/work/.git").rmdir()
    assert _told(_claude(tmp_path, cwd="work/src")) == [("user", "/a.db", _ACTIVE), ("local", "/b.db", _ACTIVE)]


def test_a_project_of_windows_is_known_in_any_spelling(tmp_path: Path) -> None:
    work = str(tmp_path / "home/work")
    _state(tmp_path, projects={work.upper().replace("/", "\\"): {"mcpServers": {"m": server("/b.db")}}},
           mcpServers={"m": server("/a.db")})  # fmt: skip
    assert _told(_claude(tmp_path, system="windows"))[1] == ("user", "/a.db", _HIDDEN)


def test_the_project_s_file_is_found_by_walking_up_and_the_nearest_one_wins(tmp_path: Path) -> None:
    write(tmp_path / "home/.mcp.json", {"mcpServers": {"m": server("/far.db")}})
    write(tmp_path / "home/work/.mcp.json", {"mcpServers": {"m": server("/near.db")}})
    write(tmp_path / "home/.claude/settings.json", {"enableAllProjectMcpServers": True})
    found = _claude(tmp_path, cwd="work/src")
    assert _told(found) == [("project", "/near.db", _ACTIVE), ("project", "/far.db", _HIDDEN)]
    assert found.registrations[0].project == tmp_path / "home/work"


@pytest.mark.parametrize(
    ("file", "content", "status", "cause"),
    [
        ("home/.claude/settings.json", {"enabledMcpjsonServers": ["m"]}, Status.ACTIVE, ""),
        ("home/work/.claude/settings.json", {"enabledMcpjsonServers": ["m"]}, Status.ACTIVE, ""),
        ("home/work/.claude/settings.local.json", {"enableAllProjectMcpServers": True}, Status.ACTIVE, ""),
        ("etc/claude-code/managed-settings.json", {"enableAllProjectMcpServers": True}, Status.ACTIVE, ""),
        ("home/.claude/settings.json", {"enabledMcpjsonServers": ["n"]}, Status.PENDING, "approval"),
        ("home/.claude/settings.json", {"enableAllProjectMcpServers": "true"}, Status.PENDING, "approval"),
        ("home/.claude/settings.json", {"enabledMcpjsonServers": "m"}, Status.PENDING, "approval"),
        ("home/.claude/settings.json", "{broken", Status.PENDING, "approval"),
        (
            "home/.claude/settings.json",
            {"enableAllProjectMcpServers": True, "disabledMcpjsonServers": ["m"]},
            Status.DISABLED, "switch",
        ),
    ],
)  # fmt: skip
def test_a_project_s_server_waits_for_approval(
    tmp_path: Path, file: str, content: object, status: Status, cause: str
) -> None:
    write(tmp_path / "home/work/.mcp.json", {"mcpServers": {"m": server()}})
    write(tmp_path / file, content)
    found = _one(_claude(tmp_path))
    assert (found.status, found.cause) == (status, cause)


def test_a_server_that_waits_hides_nothing(tmp_path: Path) -> None:
    write(tmp_path / "home/work/.mcp.json", {"mcpServers": {"m": server("/c.db")}})
    _state(tmp_path, mcpServers={"m": server("/a.db")})
    assert _told(_claude(tmp_path)) == [
        ("project", "/c.db", (Status.PENDING, "approval")),
        ("user", "/a.db", _ACTIVE),
    ]


def test_a_server_switched_off_for_a_project_is_off_there_in_every_scope(tmp_path: Path) -> None:
    record = {"disabledMcpServers": ["m"], "mcpServers": {"m": server("/b.db")}}
    _state(tmp_path, mcpServers={"m": server("/a.db")}, projects={str(tmp_path / "home/work"): record})
    off = (Status.DISABLED, "switch")
    assert _told(_claude(tmp_path)) == [("local", "/b.db", off), ("user", "/a.db", off)]
    assert _told(_claude(tmp_path, cwd="other")) == [("user", "/a.db", _ACTIVE), ("local", "/b.db", off)]


def test_the_committed_servers_of_known_projects_are_found_from_anywhere(tmp_path: Path) -> None:
    far = tmp_path / "far"
    write(far / ".mcp.json", {"mcpServers": {"m": server("/c.db"), "n": server("/n.db")}})
    write(far / ".claude/settings.local.json", {"enabledMcpjsonServers": ["m"]})
    _state(tmp_path, projects={str(far): {}, "C:/Users/me/proj": {"mcpServers": {"w": server("C:/m.db")}}, "bad": 7})
    found = _claude(tmp_path)
    assert _told(found) == [
        ("project", "/c.db", _ACTIVE),
        ("project", "/n.db", (Status.PENDING, "approval")),
        ("local", "C:/m.db", _ACTIVE),
    ]
    assert found.registrations[0].project == far


@pytest.mark.parametrize("name", ["settings.json", "mcp.json"])
def test_servers_in_a_file_that_is_not_read_for_them_are_shown(tmp_path: Path, name: str) -> None:
    write(tmp_path / "home/.claude" / name, {"mcpServers": {"m": server()}})
    found = _one(_claude(tmp_path))
    assert (found.status, found.cause) == (Status.IGNORED, "file")
    assert str(tmp_path / "home/.claude.json") in found.why


def test_a_project_s_settings_are_not_read_for_servers_either(tmp_path: Path) -> None:
    write(tmp_path / "home/work/.claude/settings.local.json", {"mcpServers": {"m": server()}})
    assert _one(_claude(tmp_path)).cause == "file"


def test_a_fault_in_a_file_nobody_reads_costs_nothing(tmp_path: Path) -> None:
    write(tmp_path / "home/.claude/mcp.json", '{"mcpServers": {"m": {"command": "cpersona"},}}')
    found = _claude(tmp_path)
    looked = next(looked for looked in found.looked if looked.path.name == "mcp.json")
    assert looked.state == "read"
    assert [problem.fatal for problem in looked.problems] == [False]
    assert _one(found).status is Status.IGNORED


def test_an_administrator_s_file_excludes_all_others(tmp_path: Path) -> None:
    write(tmp_path / "etc/claude-code/managed-mcp.json", {"mcpServers": {"m": server("/admin.db")}})
    _state(tmp_path, mcpServers={"other": server("/a.db")}, projects={"/far": {"mcpServers": {"b": server("/b.db")}}})
    assert _told(_claude(tmp_path)) == [
        ("managed", "/admin.db", _ACTIVE),
        ("user", "/a.db", _HIDDEN),
        ("local", "/b.db", _HIDDEN),
    ]


def test_what_the_settings_put_into_the_environment_comes_along(tmp_path: Path) -> None:
    mine = write(
        tmp_path / "home/.claude/settings.json", {"env": {"CPERSONA_DB_PATH": "/one.db", "HTTP_PROXY": "p", "N": 1}}
    )
    near = write(tmp_path / "home/work/.claude/settings.local.json", {"env": {"CPERSONA_DB_PATH": "/two.db"}})
    _state(tmp_path, mcpServers={"m": {"command": "cpersona"}})
    found = _one(_claude(tmp_path))
    assert {(variable.name, variable.raw, variable.place.file) for variable in found.inherited} == {
        ("CPERSONA_DB_PATH", "/two.db", near), ("HTTP_PROXY", "p", mine),
    }  # fmt: skip
    assert {variable.origin for variable in found.inherited} == {"client settings"}
    assert found.variables == ()


def _plugin(tmp_path: Path, manifest: object = None, servers: object = None) -> Path:
    root = tmp_path / "plugins/memory"
    if manifest is not None:
        write(root / ".claude-plugin/plugin.json", manifest)
    if servers is not None:
        write(root / ".mcp.json", servers)
    installed = {"version": 2, "plugins": {"memory@market": [{"scope": "user", "installPath": str(root)}]}}
    write(tmp_path / "home/.claude/plugins/installed_plugins.json", installed)
    write(tmp_path / "home/.claude/settings.json", {"enabledPlugins": {"memory@market": True}})
    return root


@pytest.mark.parametrize(
    ("manifest", "servers"),
    [
        (None, {"mcpServers": {"m": server()}}),
        (None, {"m": server()}),
        ({"name": "memory", "mcpServers": {"m": server()}}, None),
        ({"mcpServers": "./extra.json"}, None),
        ({"mcpServers": ["${CLAUDE_PLUGIN_ROOT}/extra.json"]}, None),
    ],
)
def test_a_plugin_s_servers_are_found_however_it_brings_them(tmp_path: Path, manifest: object, servers: object) -> None:
    root = _plugin(tmp_path, manifest, servers)
    write(root / "extra.json", {"mcpServers": {"m": server()}})  # read only where the manifest points to it
    found = _one(_claude(tmp_path))
    assert (found.scope, found.name, found.status) == ("plugin", "memory:m", Status.ACTIVE)


def test_a_plugin_that_is_not_switched_on_starts_nothing(tmp_path: Path) -> None:
    _plugin(tmp_path, None, {"mcpServers": {"m": server()}})
    write(tmp_path / "home/.claude/settings.json", {"enabledPlugins": {"memory@market": False}})
    found = _one(_claude(tmp_path))
    assert (found.status, found.cause) == (Status.DISABLED, "switch")
    (tmp_path / "home/.claude/settings.json").unlink()
    assert _one(_claude(tmp_path)).status is Status.DISABLED


def test_a_plugin_gives_way_to_an_entry_that_starts_the_same(tmp_path: Path) -> None:
    _plugin(tmp_path, None, {"same": server("/plugin.db"), "other": {"command": "cpersona"}})
    _state(tmp_path, mcpServers={"memory": server("/a.db")})
    assert _told(_claude(tmp_path)) == [
        ("user", "/a.db", _ACTIVE),
        ("plugin", "/plugin.db", _HIDDEN),
        ("plugin", None, _ACTIVE),
    ]


def test_a_plugin_record_of_the_first_form_and_a_damaged_one_are_survived(tmp_path: Path) -> None:
    root = _plugin(tmp_path, None, {"m": server()})
    plugins = {"memory@market": {"installPath": str(root)}, "x@y": [{"installPath": "relative"}, 7], "z": "?"}
    write(tmp_path / "home/.claude/plugins/installed_plugins.json", {"plugins": plugins})
    assert [entry.name for entry in _claude(tmp_path).registrations] == ["memory:m"]
    write(tmp_path / "home/.claude/plugins/installed_plugins.json", "[]")
    assert _claude(tmp_path).registrations == ()


@pytest.mark.parametrize(
    "projects", [[], "x", {"/p": []}, {"/p": {"mcpServers": [server()]}}, {"/p": {"mcpServers": 1}}]
)
def test_project_records_of_another_shape_are_survived(tmp_path: Path, projects: object) -> None:
    _state(tmp_path, projects=projects, mcpServers={"m": server("/a.db")})
    assert _told(_claude(tmp_path))[0] == ("user", "/a.db", _ACTIVE)
