"""The files and recipes for CI systems, run as those systems would run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).with_name("cpersona-cli")
RECIPES = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")


def block(language: str, containing: str = "") -> str:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", RECIPES, re.DOTALL)
    (text,) = [text for text in found if containing in text]
    return text


def action_script() -> str:
    """The one step of the action, as text: the file is small enough to be read without a YAML library."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    return "\n".join(line[8:] for line in text.partition("run: |\n")[2].splitlines())


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """What a workflow run has; its Python makes an environment of the one that is there, and installs nothing."""
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        f'if [ "$2" = venv ]; then mkdir -p "$3/bin"; ln -s {shlex.quote(str(SCRIPT))} "$3/bin/cpersona-cli";'
        ' cp "$0" "$3/bin/python"; else echo "$@" >> "$RUNNER_TEMP/pip"; fi\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_WORKSPACE": str(work),
        "PYTHON": str(python),
        "HERE": str(ROOT),
        "VERSION": "",
        "ARGUMENTS": "--pre --offline .mcp.json",
        "WAIT": "0",
        "FAIL_ON": "fault",
        "SARIF": "",
    }


def register(env: dict[str, str], **variables: str) -> None:
    entry = {"command": "uvx", "args": ["cpersona==2.6.14"], "env": variables}
    document = {"mcpServers": {"cpersona": entry}}
    Path(env["GITHUB_WORKSPACE"], ".mcp.json").write_text(json.dumps(document, indent=1), encoding="utf-8")


def step(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", action_script()],
        env=env, cwd=env["GITHUB_WORKSPACE"], capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip


def outputs(env: dict[str, str]) -> dict[str, str]:
    lines = Path(env["GITHUB_OUTPUT"]).read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_the_action_fails_where_memory_would_not_work(runner: dict[str, str]) -> None:
    register(runner, CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDING_URL="http://127.0.0.1:1/embed")
    runner["SARIF"] = str(Path(runner["RUNNER_TEMP"], "out.sarif"))
    ended = step(runner)
    assert ended.returncode == 1, ended.stderr
    assert "::error file=.mcp.json,line=" in ended.stdout
    said = outputs(runner)
    assert (said["verdict"], said["exit-code"]) == ("fail", "1")
    report: Any = json.loads(Path(said["report"]).read_text(encoding="utf-8"))
    assert report["schema"] == "cpersona-cli/doctor/1"
    assert "names.misspelt" in {finding["trap"] for finding in report["findings"]}
    assert Path(runner["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8").startswith("## cpersona-cli doctor: ")
    assert json.loads(Path(runner["SARIF"]).read_text(encoding="utf-8"))["version"] == "2.1.0"
    assert Path(runner["RUNNER_TEMP"], "pip").read_text(encoding="utf-8").strip().endswith(str(ROOT))


def test_the_action_passes_a_good_configuration(runner: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir(mode=0o700)
    register(
        runner,
        CPERSONA_EMBEDDING_MODE="http",
        CPERSONA_EMBEDDING_URL="http://127.0.0.1:8401/embed",
        CPERSONA_DB_PATH=str(folder / "memory.db"),
    )
    runner |= {"VERSION": "0.1.0", "FAIL_ON": "never"}
    ended = step(runner)
    assert ended.returncode in {0, 3}, ended.stdout + ended.stderr
    assert outputs(runner)["exit-code"] == str(ended.returncode)
    assert Path(runner["RUNNER_TEMP"], "pip").read_text(encoding="utf-8").strip().endswith("cpersona-cli==0.1.0")


def test_the_action_reports_a_usage_error_as_no_verdict(runner: dict[str, str]) -> None:
    runner["ARGUMENTS"] = "--client nobody"
    ended = step(runner)
    assert ended.returncode == 2
    assert ended.stdout.startswith("::error title=cpersona-cli doctor::")
    assert outputs(runner)["verdict"] == "unknown"


def test_nothing_of_an_input_becomes_part_of_the_script() -> None:
    assert "${{" not in action_script()


def test_the_hook_checks_each_file_it_is_given(tmp_path: Path) -> None:
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    entry = re.search(r"^  entry: (.*)$", hook, re.MULTILINE)
    pattern = re.search(r"^  files: (.*)$", hook, re.MULTILINE)
    assert entry
    assert pattern
    good = {"CPERSONA_EMBEDDING_MODE": "none", "CPERSONA_DB_PATH": str(tmp_path / "a.db")}
    for name, variables in (
        (".mcp.json", good),
        (".vscode/mcp.json", {**good, "CPERSONA_EMBEDDING_MODE": "htp"}),
    ):
        assert re.search(pattern[1], name)
        entries = {"cpersona": {"command": "uvx", "args": ["cpersona==2.6.14"], "env": variables}}
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"servers" if "vscode" in name else "mcpServers": entries}), encoding="utf-8")
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text('{"mcpServers": {"notes": {"command": "notes"}}}', encoding="utf-8")
    path = os.pathsep.join((str(SCRIPT.parent), os.environ["PATH"]))
    env = {"HOME": str(tmp_path), "PATH": path, "CPERSONA_CLI_FORMAT": "json"}

    def ran(*files: str) -> subprocess.CompletedProcess[str]:
        command = [*shlex.split(entry[1]), *files]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (ran(".cursor/mcp.json").returncode, ran(".cursor/mcp.json").stdout) == (0, ""), "it registers no CPersona"
    assert ran(".mcp.json").returncode == 0
    ended = ran(".cursor/mcp.json", ".mcp.json", ".vscode/mcp.json")
    assert ended.returncode == 1, ended.stdout
    said = json.loads(ended.stdout)
    assert len(said["registrations"]) == 2
    wrong = [finding for finding in said["findings"] if finding["trap"] == "names.mode-unsupported"]
    assert [Path(finding["place"]["file"]).parent.name for finding in wrong] == [".vscode"]
    # Which release `cpersona` is cannot be told here: no verdict, and no reason to refuse a commit.
    http = {**good, "CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/embed"}
    untold = {"cpersona": {"command": "cpersona", "env": http}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": untold}), encoding="utf-8")
    (tmp_path / "cpersona").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "cpersona").chmod(0o755)
    env["PATH"] = os.pathsep.join((str(tmp_path), path))
    passed = ran(".mcp.json")
    assert (passed.returncode, json.loads(passed.stdout)["exit_code"]) == (0, 3)
    for name in ("package.json", "docs/mcp.json", "mcp.json"):
        assert not re.search(pattern[1], name)


def test_the_health_check_answers_with_what_docker_knows(tmp_path: Path) -> None:
    command = block("dockerfile").partition("CMD ")[2].replace("cpersona-cli", shlex.quote(str(SCRIPT)), 1)
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "CPERSONA_EMBEDDING_MODE": "htp"}
    sick = subprocess.run(["sh", "-c", command], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert sick.returncode == 1
    assert len(sick.stdout.splitlines()) == 1
    wrong = command.replace("--pre", "--no-such-option")
    assert subprocess.run(["sh", "-c", wrong], env=env, cwd=tmp_path, capture_output=True, check=False).returncode == 1


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    service = block("ini", "[Service]").replace("%h/.local/bin/cpersona-cli", str(SCRIPT))
    (tmp_path / "cpersona-doctor.service").write_text(service, encoding="utf-8")
    (tmp_path / "cpersona-doctor.timer").write_text(block("ini", "[Timer]"), encoding="utf-8")
    for unit in ("cpersona-doctor.service", "cpersona-doctor.timer"):
        checked = subprocess.run(
            ["systemd-analyze", "verify", tmp_path / unit], capture_output=True, text=True, check=False
        )
        mine = [line for line in checked.stderr.splitlines() if str(tmp_path) in line or "cpersona" in line]
        assert mine == []


def test_the_shell_recipe_is_a_shell_script() -> None:
    checked = subprocess.run(["bash", "-n"], input=block("bash"), capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_action_has_no_known_weakness() -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    checked = subprocess.run(
        [zizmor, "--offline", "--no-progress", "--format", "plain", ROOT / "action.yml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout


def test_the_workflow_recipe_has_no_known_weakness(tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    pinned = "9c091bb21b7c1c1d1991bb908d89e4e9dddfe3e0"
    text = block("yaml", "runs-on").replace("COMMIT", pinned).replace("checkout@v5", f"checkout@{pinned}")
    (folder / "memory.yml").write_text(text, encoding="utf-8")
    zizmor = Path(sys.executable).with_name("zizmor")
    checked = subprocess.run(
        [zizmor, "--offline", "--no-progress", "--format", "plain", tmp_path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout
