"""Always-loaded instruction files, memory indexes, hooks and the plugin, laid out on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.install.instructions import Block, always_loaded, blocks_of
from cpersona_cli.install.machine import Machine

BLOCK = """<!-- BEGIN cpersona-policy v5 (managed) -->
Use the tools with `agent_id="claude-code"`.
<!-- END cpersona-policy -->
"""


def machine(root: Path, **env: str) -> Machine:
    home, work = root / "home", root / "home" / "work"
    (work / ".git").mkdir(parents=True)
    return Machine(system="linux", home=home, cwd=work, root=root, env=env)


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("", ()),
        ("# Notes\nnothing here\n", ()),
        (BLOCK, (Block(begin=1, end=3, version=5, agents=("claude-code",), agent_line=2),)),
        (
            f"# Mine\n\n{BLOCK}{BLOCK}",
            (
                Block(begin=3, end=5, version=5, agents=("claude-code",), agent_line=4),
                Block(begin=6, end=8, version=5, agents=("claude-code",), agent_line=7),
            ),
        ),
        (
            '<!-- begin CPERSONA-POLICY -->\nagent_id: "<AGENT_ID>"\n<!-- end cpersona-policy -->',
            (Block(begin=1, end=3, version=None, placeholder=2),),
        ),
        ("BEGIN cpersona-policy v3\nuse <agent_id> here\n", (Block(begin=1, end=None, version=3, placeholder=2),)),
        (
            "BEGIN cpersona-policy v4\nagent_id='a'\nBEGIN cpersona-policy v5\nagent_id='b'\nEND cpersona-policy",
            (
                Block(begin=1, end=None, version=4, agents=("a",), agent_line=2),
                Block(begin=3, end=5, version=5, agents=("b",), agent_line=4),
            ),
        ),
        (
            'BEGIN cpersona-policy v5\nagent_id="a" then agent_id="b" and agent_id="a"\nEND cpersona-policy',
            (Block(begin=1, end=3, version=5, agents=("a", "b"), agent_line=2),),
        ),
    ],
)
def test_blocks(text: str, blocks: tuple[Block, ...]) -> None:
    assert blocks_of(text) == blocks


@given(st.text())
def test_any_text_is_survived(text: str) -> None:
    for block in blocks_of(f"BEGIN cpersona-policy v5\n{text}"):
        assert block.begin >= 1


def test_every_client_has_its_files(tmp_path: Path) -> None:
    here = machine(tmp_path)
    for name in (
        ".claude/CLAUDE.md",
        ".codex/AGENTS.md",
        ".gemini/GEMINI.md",
        ".codeium/windsurf/memories/global_rules.md",
    ):
        write(here.home / name, BLOCK)
    for name in (
        "CLAUDE.md",
        "CLAUDE.local.md",
        ".claude/CLAUDE.md",
        "AGENTS.md",
        "GEMINI.md",
        ".github/copilot-instructions.md",
        ".cursor/rules/memory.mdc",
        ".windsurf/rules/memory.md",
    ):
        write(here.cwd / name, BLOCK)
    found = always_loaded(here)
    count = {client: len(found.of(client)) for client in found.searched}
    assert count == {
        "claude-code": 4, "codex": 2, "gemini-cli": 2, "windsurf": 2, "cursor": 2, "vscode": 2, "zed": 1,
    }  # fmt: skip
    assert all(file.blocks and not file.problem for file in found.files)


def test_moved_folders_are_followed(tmp_path: Path) -> None:
    here = machine(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "c"), CODEX_HOME=str(tmp_path / "x"))
    write(here.home / ".claude" / "CLAUDE.md", BLOCK)
    write(tmp_path / "c" / "CLAUDE.md", BLOCK)
    write(tmp_path / "x" / "AGENTS.md", BLOCK)
    assert {str(file.path.relative_to(tmp_path)) for file in always_loaded(here).files} == {
        "c/CLAUDE.md",
        "x/AGENTS.md",
    }


def test_the_home_directory_is_no_project(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(home / "CLAUDE.md", BLOCK)
    assert always_loaded(Machine(system="linux", home=home, cwd=home, root=tmp_path)).files == ()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff\xfe" + BLOCK.encode("utf-16-le"), "not UTF-8"),
        (b"\xef\xbb\xbf" + BLOCK.encode(), ""),
        (BLOCK.encode() + b"\x00\xff", "not UTF-8"),
    ],
)
def test_odd_encodings_are_named(tmp_path: Path, content: bytes, problem: str) -> None:
    here = machine(tmp_path)
    write(here.home / ".claude" / "CLAUDE.md", content)
    (file,) = always_loaded(here).files
    assert problem in file.problem
    assert bool(problem) == bool(file.problem)


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    here = machine(tmp_path)
    (here.home / ".claude" / "CLAUDE.md").mkdir(parents=True)
    loop = here.cwd / "CLAUDE.md"
    loop.symlink_to(loop)
    (file,) = always_loaded(here).files
    assert file.problem == "this is not a regular file"


def test_memory_indexes_are_measured(tmp_path: Path) -> None:
    here = machine(tmp_path)
    write(here.home / ".claude" / "projects" / "-home-u-work" / "memory" / "MEMORY.md", "- one\n- two\n")
    (index,) = always_loaded(here).indexes
    assert (index.size, index.lines) == (12, 2)


HOOK = {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "python -m cpersona_note"}]}]}}


def test_hooks_of_ours_are_found_with_their_line(tmp_path: Path) -> None:
    here = machine(tmp_path)
    path = write(here.home / ".claude" / "settings.json", json.dumps(HOOK, indent=1))
    (hook,) = always_loaded(here).hooks
    assert (hook.event, hook.place.file, hook.place.line) == ("UserPromptSubmit", path, 8)


@pytest.mark.parametrize(
    ("body", "found"),
    [("# calls CPersona's reconstruct\n", True), ("print('formatting')\n", False)],
)
def test_a_hook_script_is_looked_into(tmp_path: Path, body: str, found: bool) -> None:
    here = machine(tmp_path)
    write(here.cwd / ".claude" / "hooks" / "prompt_hook.py", body)
    command = 'python "$CLAUDE_PROJECT_DIR/.claude/hooks/prompt_hook.py"'
    settings = {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": command}]}]}}
    write(here.cwd / ".claude" / "settings.json", json.dumps(settings))
    assert bool(always_loaded(here).hooks) is found


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": [1, {"hooks": 3}, {"hooks": [{"command": 4}]}]}}', "[" * 20_000],
)
def test_settings_of_any_shape_are_survived(tmp_path: Path, text: str) -> None:
    here = machine(tmp_path)
    write(here.home / ".claude" / "settings.json", text)
    found = always_loaded(here)
    assert (found.hooks, found.plugin) == ((), None)


@pytest.mark.parametrize(
    ("settings", "env", "agent", "source"),
    [
        ({}, {}, "default", "own default"),
        ({"env": {"CPERSONA_AGENT_ID": "mine"}}, {}, "mine", "settings.json"),
        ({}, {"CPERSONA_AGENT_ID": "shell"}, "shell", "this shell"),
        (
            {"env": {"CPERSONA_AGENT_ID": "mine"}, "pluginConfigs": {"cpersona@x": {"options": {"agent_id": "opt"}}}},
            {},
            "opt",
            "agent_id option",
        ),
        ({"pluginConfigs": {"cpersona@x": {"options": {"agent_id": 5}}, "other": 3}}, {}, "default", "own default"),
    ],
)
def test_the_plugin_names_an_agent(
    tmp_path: Path, settings: dict[str, object], env: dict[str, str], agent: str, source: str
) -> None:
    here = machine(tmp_path, **env)
    write(here.home / ".claude" / "settings.json", json.dumps({"enabledPlugins": {"cpersona@x": True}, **settings}))
    plugin = always_loaded(here).plugin
    assert plugin is not None
    assert plugin.agent == agent
    assert source in plugin.agent_source


def test_the_plugin_can_be_off_or_silent(tmp_path: Path) -> None:
    here = machine(tmp_path)
    write(here.home / ".claude" / "settings.json", '{"enabledPlugins": {"cpersona@x": true}}')
    write(here.cwd / ".claude" / "settings.json", '{"env": {"CPERSONA_HOOKS_DISABLE": "all"}}')
    plugin = always_loaded(here).plugin
    assert plugin is not None
    assert plugin.hooks_disabled
    write(here.cwd / ".claude" / "settings.local.json", '{"enabledPlugins": {"cpersona@x": false}}')
    assert always_loaded(here).plugin is None


def test_a_project_that_is_also_the_settings_folder_is_read_once(tmp_path: Path) -> None:
    here = machine(tmp_path)
    here = Machine(
        system="linux",
        home=here.home,
        cwd=here.cwd,
        root=tmp_path,
        env={"CLAUDE_CONFIG_DIR": str(here.cwd / ".claude"), "CODEX_HOME": str(here.cwd)},
    )
    write(here.cwd / ".claude" / "CLAUDE.md", BLOCK)
    write(here.cwd / "AGENTS.md", BLOCK)
    assert [file.path.name for file in always_loaded(here).files] == ["CLAUDE.md", "AGENTS.md"]


@pytest.mark.parametrize("folder", ["x" * 5000, "nul\0name"])
def test_folders_that_cannot_exist_are_survived(tmp_path: Path, folder: str) -> None:
    assert always_loaded(machine(tmp_path, CLAUDE_CONFIG_DIR=f"/{folder}")).files == ()


def test_a_memory_index_that_is_no_file_is_left_out(tmp_path: Path) -> None:
    here = machine(tmp_path)
    (here.home / ".claude" / "projects" / "p" / "memory" / "MEMORY.md").mkdir(parents=True)
    assert always_loaded(here).indexes == ()
