from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.traps import UVX, docker, registration

from cpersona_cli.install.model import Launch, LaunchKind, Place, Registration
from cpersona_cli.record import replace
from cpersona_cli.traps import repairs
from cpersona_cli.traps.repairs import remove_variable, rename_variable, set_variable, set_variables

#: What a value may hold in any format: everything that text may be, lone surrogates aside.
values = st.text(st.characters(exclude_categories=["Cs"]))


def in_wsl() -> Registration:
    return registration({}, launch=Launch(kind=LaunchKind.SCRIPT, inside="wsl", words=("wsl.exe", "cpersona")))


@settings(deadline=None, max_examples=50)
@given(values)
@pytest.mark.parametrize("client", ["claude-code", "vscode", "zed"])
def test_a_json_edit_reads_back_as_the_value(client: str, value: str) -> None:
    entry = registration({"A": "1"}, client=client)
    edit = set_variable(entry, "A", value, at=entry.variables[0].place).edit
    assert json.loads(f"{{{edit}}}") == {"A": value}


@settings(deadline=None, max_examples=50)
@given(values.filter(lambda text: "\r" not in text))
def test_a_toml_edit_reads_back_as_the_value(value: str) -> None:
    entry = registration({"A": "1"}, client="codex")
    edit = set_variable(entry, "A", value, at=entry.variables[0].place).edit
    assert tomllib.loads(edit) == {"A": value}


def test_backslashes_stand_in_a_literal_string_of_toml() -> None:
    entry = registration({}, client="codex")
    assert set_variable(entry, "A", r"C:\Users\me\c.db").edit == r"A = 'C:\Users\me\c.db'"


@settings(deadline=None, max_examples=50)
@given(values)
def test_a_docker_edit_reads_back_as_two_words(value: str) -> None:
    edit = set_variable(registration({}, launch=docker()), "A", value).edit
    assert json.loads(f"[{edit}]") == ["-e", f"A={value}"]


def test_a_docker_value_is_changed_where_it_stands() -> None:
    entry = registration({}, launch=docker({"A": "1"}))
    repair = set_variable(entry, "A", "2", at=entry.place)
    assert repair.edit == '"-e", "A=2"'
    assert "write this instead" in repair.prose


def test_a_name_handed_on_by_docker_is_set_in_the_env_block() -> None:
    entry = registration({}, launch=docker(passed=("A",)))
    assert set_variable(entry, "A", "2").edit == '"A": "2"'


def test_compose_takes_options_before_the_service() -> None:
    entry = registration({}, launch=replace(docker(), kind=LaunchKind.COMPOSE))
    repair = set_variables(entry, {"A": "1", "B": "2"})
    assert repair.edit == '"-e", "A=1",\n"-e", "B=2"'
    assert "before the service name" in repair.prose


def test_the_env_block_does_not_reach_into_wsl() -> None:
    repair = set_variable(in_wsl(), "A", "1")
    assert repair.edit == '"env",\n"A=1"'
    assert "WSL" in repair.prose
    entry = in_wsl()
    carried = replace(entry.launch, variables=(docker({"B": "1"}).variables))
    assert set_variable(replace(entry, launch=carried), "A", "1").edit == '"A=1"'


@pytest.mark.parametrize(
    ("file", "edit"),
    [
        ("/home/u/compose.yaml", 'A: "x y"'),
        ("/home/u/compose.yml", 'A: "x y"'),
        ("/home/u/memory.env", "A=x y"),
        ("/home/u/.claude/settings.json", '"A": "x y"'),
        ("/home/u/other.toml", 'A = "x y"'),
    ],
)
def test_a_value_in_another_file_is_spelled_as_that_file_does(file: str, edit: str) -> None:
    at = Place(Path(file), 3)
    repair = set_variable(registration({}), "A", "x y", at=at)
    assert repair.edit == edit
    assert repair.prose.startswith(f"in {file}, line 3, write this instead")


@pytest.mark.parametrize(
    ("client", "name", "edit"),
    [
        ("claude-code", "cpersona", '"env": { "A": "1", "B": "2" }'),
        ("codex", "cpersona", 'env = { A = "1", B = "2" }'),
        ("clotocore", "memory.cpersona", 'env = { A = "1", B = "2" }'),
    ],
)
def test_an_entry_without_an_env_block_gets_one(client: str, name: str, edit: str) -> None:
    entry = registration({}, client=client, name=name, env_place=None)
    repair = set_variables(entry, {"A": "1", "B": "2"})
    assert repair.edit == edit
    assert "give the entry an environment" in repair.prose


def test_an_inherited_value_is_set_in_the_registration_not_in_the_shell() -> None:
    repair = set_variable(registration({}), "A", "1", at=Place(words="this shell"))
    assert repair.edit == '"A": "1"'
    assert "restart Claude Code" in repair.prose


def test_a_process_is_repaired_by_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = registration({"A": "1"}, client="env")
    at = entry.variables[0].place
    monkeypatch.setattr(repairs, "current_system", lambda: "linux")
    assert set_variable(entry, "A", "it's", at=at).commands == ("export A='it'\"'\"'s'",)
    assert remove_variable(entry, "A", at=at).commands == ("unset A",)
    assert rename_variable(entry, "A", "B", at=at).commands == ('export B="$A"', "unset A")
    monkeypatch.setattr(repairs, "current_system", lambda: "windows")
    assert set_variable(entry, "A", "it's", at=at).commands == ("$env:A = 'it''s'",)
    assert remove_variable(entry, "A", at=at).commands == ("Remove-Item Env:A",)
    assert rename_variable(entry, "A", "B", at=at).commands == ("$env:B = $env:A", "Remove-Item Env:A")


def test_a_name_that_is_no_word_gets_no_command_to_copy() -> None:
    entry = registration({"A; rm -rf ~": "1"}, client="env")
    at = entry.variables[0].place
    assert remove_variable(entry, "A; rm -rf ~", at=at).commands == ()
    assert rename_variable(entry, "A; rm -rf ~", "B", at=at).commands == ()


def test_a_place_without_a_line_is_named_by_its_file() -> None:
    entry = registration({}, launch=UVX, env_place=Place(Path("/home/u/.claude.json")))
    assert set_variable(entry, "A", "1").prose.startswith("in /home/u/.claude.json, add")


def test_a_variable_that_stands_there_is_replaced_and_not_given_twice() -> None:
    """Also an empty one, or one that the client could not expand: the trap looks at what arrives, not at the file."""
    entry = registration({"A": "", "B": "2"})
    assert set_variable(entry, "A", "1").place == entry.variables[0].place
    assert "in place of the A that stands there" in set_variables(entry, {"A": "1", "C": "3"}).prose
    assert "in place" not in set_variables(entry, {"C": "3"}).prose
    outside = registration({"A": ""}, launch=docker())
    assert set_variable(outside, "A", "1").edit == '"-e", "A=1"'


def test_what_is_given_to_a_toml_entry_can_stand_anywhere_in_it() -> None:
    """A table header would take the lines after it away from the entry."""
    lines = ["[mcp_servers.memory]", "command = 'uvx'", "args = ['cpersona']"]
    edit = set_variables(registration({}, client="codex", env_place=None), {"A": r"C:\x", "B": "2"}).edit
    for at in (1, 2, 3):
        text = "\n".join([*lines[:at], edit, *lines[at:]])
        assert tomllib.loads(text)["mcp_servers"]["memory"] == {
            "command": "uvx",
            "args": ["cpersona"],
            "env": {"A": r"C:\x", "B": "2"},
        }
