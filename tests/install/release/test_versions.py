"""The release a registration would start, told from files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from support.clients import machine
from support.pythons import cached, distribution, script, venv, wheel
from support.starts import registered

from cpersona_cli.install.environment import environments
from cpersona_cli.install.machine import Machine, this_machine
from cpersona_cli.install.model import ServerVersion
from cpersona_cli.install.release.versions import server_version


def told(
    where: Machine, *words: str, client: str = "codex", env: Mapping[str, Any] | None = None, **fields: Any
) -> ServerVersion:
    registration = registered(where, client, *words, env=env, **fields)
    return server_version(registration, environments(registration, where)[-1], where)


@pytest.fixture
def where(tmp_path: Path) -> Machine:
    """A machine with uv installed."""
    for name in ("uv", "uvx", "pipx", "docker"):
        script(tmp_path / "usr/bin" / name, "#!/bin/sh")
    return machine(tmp_path, env={"PATH": str(tmp_path / "usr/bin")})


# uv -------------------------------------------------------------------------------------------------------------


def test_uvx_without_a_cache_is_honest(where: Machine) -> None:
    found = told(where, "uvx", "cpersona")
    assert (found.version, found.floating) == (None, True)
    assert "the first start downloads it" in found.evidence
    assert (found.program, found.program_problem) == (where.root / "usr/bin/uvx", "")


def test_uvx_starts_what_is_cached(where: Machine) -> None:
    site = cached(where.home / ".cache/uv", "a1", {"cpersona": "2.6.14", "mcp": "1.30.0", "rich": "14"})
    found = told(where, "uvx", "cpersona")
    assert (found.version, found.floating) == ("2.6.14", True)
    assert found.site is not None
    assert found.site.resolve() == site
    assert dict(found.packages) == {"mcp": "1.30.0"}
    assert found.installed == pytest.approx((site / "cpersona-2.6.14.dist-info").stat().st_mtime)
    assert found.interpreter is not None
    assert found.interpreter.release == ".".join(map(str, sys.version_info[:3]))


def test_several_cached_releases_are_named_and_the_highest_counts(where: Machine) -> None:
    cache = where.home / ".cache/uv"
    for key, release in (("a1", "2.5.12"), ("b2", "2.6.14"), ("c3", "2.6.9")):
        cached(cache, key, {"cpersona": release})
    cached(cache, "d4", {"black": "25.1"})
    found = told(where, "uvx", "cpersona")
    assert found.version == "2.6.14"
    assert "2.6.14 and 2.6.9 and 2.5.12" in found.evidence
    assert told(where, "uvx", "--from", "cpersona<2.6.10", "cpersona").version == "2.6.9"
    pinned = told(where, "uvx", "cpersona==2.5.12")
    assert (pinned.version, pinned.floating) == ("2.5.12", False)
    assert pinned.site is not None


def test_a_pin_counts_without_any_cache(where: Machine) -> None:
    found = told(where, "uvx", "cpersona@2.6.10")
    assert (found.version, found.floating, found.site) == ("2.6.10", False, None)


def test_what_stands_beside_the_server_chooses_the_environment(where: Machine) -> None:
    cache = where.home / ".cache/uv"
    cached(cache, "a1", {"cpersona": "2.6.14"})
    cached(cache, "b2", {"cpersona": "2.6.10", "cembedding": "0.9.1"})
    found = told(where, "uvx", "--with", "cembedding[onnx]", "cpersona")
    assert (found.version, dict(found.packages)) == ("2.6.10", {"cembedding": "0.9.1"})


@pytest.mark.parametrize("old", [True, False])
def test_an_unpacked_wheel_tells_too(where: Machine, old: bool) -> None:
    wheel(where.home / ".cache/uv", "2.6.9", old=old)
    wheel(where.home / ".cache/uv", "2.6.10", old=old)
    found = told(where, "uvx", "cpersona")
    assert (found.version, found.floating, found.site) == ("2.6.10", True, None)
    assert told(where, "uvx", "--with", "numpy", "cpersona").version is None


def test_an_installed_tool_is_preferred_by_uvx(where: Machine) -> None:
    venv(where.home / ".local/share/uv/tools/cpersona", {"cpersona": "2.6.9"})
    cached(where.home / ".cache/uv", "a1", {"cpersona": "2.6.14"})
    found = told(where, "uvx", "cpersona")
    assert (found.version, found.floating) == ("2.6.9", False)
    assert "installed tool" in found.evidence
    assert told(where, "uv", "tool", "run", "cpersona").version == "2.6.9"
    for words in (
        ("uvx", "cpersona@latest"),
        ("uvx", "cpersona>=2.6.10"),
        ("uvx", "--isolated", "cpersona"),
        ("uvx", "--python", "3.13", "cpersona"),
        ("uv", "run", "--no-project", "--with", "cpersona", "cpersona"),
    ):
        assert told(where, *words).version == "2.6.14", words
    assert told(where, "uvx", "--with", "numpy", "cpersona").version is None


def test_latest_says_that_every_start_asks(where: Machine) -> None:
    cached(where.home / ".cache/uv", "a1", {"cpersona": "2.6.14"})
    found = told(where, "uvx", "cpersona@latest")
    assert found.floating
    assert "newest release at every start" in found.evidence


def test_uvs_own_variables_move_its_folders(where: Machine, tmp_path: Path) -> None:
    cached(tmp_path / "cache", "a1", {"cpersona": "2.6.1"})
    venv(tmp_path / "tools/cpersona", {"cpersona": "2.6.2"})
    assert told(where, "uvx", "cpersona", env={"UV_CACHE_DIR": str(tmp_path / "cache")}).version == "2.6.1"
    assert told(where, "uvx", "cpersona", env={"UV_TOOL_DIR": str(tmp_path / "tools")}).version == "2.6.2"
    venv(tmp_path / "data/uv/tools/cpersona", {"cpersona": "2.6.3"})
    assert told(where, "uvx", "cpersona", env={"XDG_DATA_HOME": str(tmp_path / "data")}).version == "2.6.3"
    cached(tmp_path / "xdg/uv", "b2", {"cpersona": "2.6.4"})
    assert told(where, "uvx", "cpersona", env={"XDG_CACHE_HOME": str(tmp_path / "xdg")}).version == "2.6.4"


def test_uv_on_windows_keeps_its_folders_elsewhere(tmp_path: Path) -> None:
    where = machine(tmp_path, "windows")
    venv(where.local / "uv/cache/environments-v2/x/y", {"cpersona": "2.6.5"}, windows=True)
    assert told(where, "uvx.exe", "cpersona").version == "2.6.5"
    venv(where.roaming / "uv/data/tools/cpersona", {"cpersona": "2.6.6"}, windows=True)
    found = told(where, "uvx.exe", "cpersona")
    assert (found.version, found.program, found.program_problem) == ("2.6.6", None, "")


def test_sources_name_no_release_unless_they_do(where: Machine) -> None:
    found = told(where, "uvx", "--from", "git+https://example.org/CPersona@main", "cpersona")
    assert (found.version, found.floating) == (None, True)
    assert told(where, "uvx", "--from", "git+https://example.org/CPersona@v2.6.9", "cpersona").version == "2.6.9"


def test_uv_run_uses_the_projects_environment(where: Machine) -> None:
    project = where.home / "memory"
    project.mkdir()
    words = ("uv", "run", "--project", str(project), "cpersona")
    assert "no environment yet" in told(where, *words).evidence
    venv(project / ".venv", {"cpersona": "2.6.8"})
    assert told(where, *words).version == "2.6.8"
    assert told(where, "uv", "run", "cpersona", cwd=str(project)).version == "2.6.8"
    assert "depends on the folder" in told(where, "uv", "run", "cpersona").evidence


def test_the_proxy_is_a_release_too(where: Machine) -> None:
    cached(where.home / ".cache/uv", "a1", {"cpersona": "2.6.14"})
    assert told(where, "uvx", "--from", "cpersona", "python", "-m", "cpersona.proxy_stdio").version == "2.6.14"


# pipx -----------------------------------------------------------------------------------------------------------


def test_pipx_keeps_temporary_environments(where: Machine) -> None:
    assert told(where, "pipx", "run", "cpersona").version is None
    assert told(where, "pipx", "run", "--spec", "cpersona==2.6.7", "cpersona").version == "2.6.7"
    venv(where.home / ".local/pipx/.cache/0123", {"cpersona": "2.6.8"})
    assert told(where, "pipx", "run", "cpersona").version == "2.6.8"
    venv(where.home / ".local/share/pipx/.cache/4567", {"cpersona": "2.6.9"})
    assert told(where, "pipx", "run", "cpersona").version is None
    assert told(where, "pipx", "run", "cpersona", env={"PIPX_HOME": str(where.home / ".local/pipx")}).version == "2.6.8"


@pytest.mark.parametrize(
    ("system", "folder"),
    [
        ("darwin", "Library/Application Support/pipx"),
        ("windows", "AppData/Local/pipx/pipx"),
        ("linux", ".local/share/pipx"),
    ],
)
def test_pipx_folders_of_each_system(tmp_path: Path, system: Any, folder: str) -> None:
    where = machine(tmp_path, system)
    venv(where.home / folder / ".cache/x", {"cpersona": "2.6.8"}, windows=system == "windows")
    assert told(where, "pipx", "run", "cpersona").version == "2.6.8"


# scripts and interpreters ---------------------------------------------------------------------------------------


def test_an_installed_script(where: Machine, tmp_path: Path) -> None:
    site = venv(tmp_path / "v", {"mcp": "1.30.0", "socksio": "1.0.0"})
    server = script(tmp_path / "v/bin/cpersona", f"#!{tmp_path}/v/bin/python")
    distribution(site, "cpersona", "2.6.14", script=server)
    found = told(where, str(server), "serve")
    assert (found.version, found.site, found.floating) == ("2.6.14", site, False)
    assert (found.script_owner, found.program) == ("cpersona", server)
    assert dict(found.packages) == {"mcp": "1.30.0", "socksio": "1.0.0"}


def test_two_distributions_claim_one_script(where: Machine, tmp_path: Path) -> None:
    site = venv(tmp_path / "v", {})
    server = script(tmp_path / "v/bin/cpersona", f"#!{tmp_path}/v/bin/python")
    distribution(site, "cpersona", "2.6.14", script=server)
    script(server, f"#!{tmp_path}/v/bin/python\n# another")
    distribution(site, "other-tool", "1.0", script=server)
    assert told(where, str(server)).script_owner == "other-tool"
    script(server, f"#!{tmp_path}/v/bin/python\n# edited by hand")
    assert told(where, str(server)).script_owner == ""


def test_a_module_of_an_environment(where: Machine, tmp_path: Path) -> None:
    site = venv(tmp_path / "v", {"cpersona": "2.6.14"})
    found = told(where, f"{tmp_path}/v/bin/python", "-m", "cpersona")
    assert (found.version, found.site, found.script_owner) == ("2.6.14", site, "")
    empty = venv(tmp_path / "w", {})
    missing = told(where, f"{tmp_path}/w/bin/python", "-m", "cpersona")
    assert (missing.version, missing.evidence) == (None, f"no CPersona is installed in {empty}")


def test_a_distribution_without_metadata_is_no_release(where: Machine, tmp_path: Path) -> None:
    site = venv(tmp_path / "v", {"cpersona": "2.6.14"})
    (site / "cpersona-2.6.14.dist-info/METADATA").unlink()
    assert told(where, f"{tmp_path}/v/bin/python", "-m", "cpersona").version is None


def test_source_that_python_finds_first(where: Machine, tmp_path: Path) -> None:
    venv(tmp_path / "v", {"cpersona": "2.6.14"})
    (tmp_path / "src/cpersona").mkdir(parents=True)
    (tmp_path / "src/cpersona/__init__.py").touch()
    words = (f"{tmp_path}/v/bin/python", "-m", "cpersona")
    assert "before any installed" in told(where, *words, env={"PYTHONPATH": f"/none:{tmp_path}/src"}).evidence
    assert "before any installed" in told(where, *words, cwd=f"{tmp_path}/src").evidence
    assert told(where, *words, cwd=str(tmp_path)).version == "2.6.14"


def test_what_stands_in_the_way_is_the_evidence(where: Machine, tmp_path: Path) -> None:
    assert told(where, "cpersona").evidence.startswith("cpersona was not found")
    assert "not a Python script" in told(where, str(script(tmp_path / "bin/cpersona", "#!/bin/bash"))).evidence
    shim = script(tmp_path / ".pyenv/shims/cpersona", "#!/bin/bash")
    found = told(where, str(shim))
    assert "pyenv" in found.evidence
    assert "pyenv" in found.program_doubt
    assert not found.program_problem
    assert "does not say" in told(where, "uvx", "something-else").evidence


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("v", "{python} -m pip install cpersona"),
        (".local/share/uv/tools/cpersona-cli", "uv pip install --python {python} cpersona"),
        (".local/share/pipx/venvs/cpersona-cli", "pipx inject cpersona-cli cpersona"),
    ],
)
def test_the_script_of_this_tool_has_no_server_to_start(where: Machine, prefix: str, command: str) -> None:
    site = venv(where.home / prefix, {})
    python = where.home / prefix / "bin/python"
    ours = script(python.with_name("cpersona"), f"#!{python}")
    distribution(site, "cpersona-cli", "0.1.0", script=ours)
    (site / "pipx_shared.pth").write_text("/shared/by/pipx\n")
    found = told(where, str(ours))
    assert "is the script of this tool, and no CPersona is installed" in found.program_problem
    assert found.program_command == command.format(python=python)
    distribution(site, "cpersona", "2.6.14")
    handed_on = told(where, str(ours))
    assert (handed_on.version, handed_on.program_problem) == ("2.6.14", "")


def test_an_interpreter_without_the_package_cannot_start_the_server(where: Machine, tmp_path: Path) -> None:
    """Only where nothing else can bring the package: no other folder, no system packages, no PYTHONPATH."""
    site = venv(tmp_path / "bare", {"mcp": "1.26.0"})
    python = f"{tmp_path}/bare/bin/python"
    found = told(where, python, "-m", "cpersona")
    assert found.program_problem == f"{python} cannot start it: no CPersona is installed in {site}"
    assert found.program_command == f"{python} -m pip install cpersona"
    assert not told(where, python, "-m", "cpersona", env={"PYTHONPATH": "/elsewhere"}).program_problem
    (site / "more.pth").write_text("import os\n")
    assert told(where, python, "-m", "cpersona").program_problem
    (site / "more.pth").write_text("/elsewhere\n")
    assert not told(where, python, "-m", "cpersona").program_problem
    (site / "more.pth").unlink()
    with (tmp_path / "bare/pyvenv.cfg").open("a") as stream:
        stream.write("include-system-site-packages = true\n")
    assert not told(where, python, "-m", "cpersona").program_problem


def test_the_program_behind_a_shell_is_looked_for(where: Machine, tmp_path: Path) -> None:
    script(tmp_path / "usr/bin/sh", "#!/bin/sh")
    server = where.home / "v/bin/cpersona"
    venv(where.home / "v", {"cpersona": "2.6.14"})
    script(server, f"#!{where.home}/v/bin/python")
    found = told(where, "sh", "-c", "exec $HOME/v/bin/cpersona")
    assert (found.version, found.program) == ("2.6.14", server)
    assert told(where, "sh", "-c", "exec ~/v/bin/cpersona").version == "2.6.14"
    assert "sh2 was not found" in told(where, "sh2", "--", "cpersona").program_problem


# elsewhere ------------------------------------------------------------------------------------------------------

IMAGES = [
    ("ghcr.io/someone/cpersona:2.6.14", "2.6.14", False),
    ("cpersona:v2.6.14-slim", "2.6.14", False),
    ("localhost:5000/cpersona", None, True),
    ("cpersona:latest", None, True),
    ("cpersona:2", None, True),
    ("cpersona@sha256:abc", None, False),
]


@pytest.mark.parametrize(("image", "release", "floating"), IMAGES)
def test_an_image_tells_by_its_tag(where: Machine, image: str, release: str | None, floating: bool) -> None:
    found = told(where, "docker", "run", "-i", image)
    assert (found.version, found.floating) == (release, floating)
    assert found.program == where.root / "usr/bin/docker"


def test_servers_that_cannot_be_seen_from_here(where: Machine) -> None:
    assert "image" in told(where, "docker", "exec", "-i", "m", "cpersona").evidence
    assert "WSL" in told(where, "wsl.exe", "cpersona").evidence
    assert told(where, "wsl.exe", "uvx", "cpersona==2.6.1").version == "2.6.1"
    assert "elsewhere" in told(where, url="http://h:8402/mcp").evidence
    assert "elsewhere" in told(where, "npx", "mcp-remote", "http://h/mcp").evidence


def test_this_process_means_the_environment_of_this_tool() -> None:
    here = this_machine()
    found = told(here, client="env")
    assert found.version == metadata.version("cpersona")
    assert found.site is not None
    assert (found.site / "cpersona" / "server.py").is_file()
    assert found.packages["mcp"] == metadata.version("mcp")


def test_this_process_without_a_server_looks_on_path(tmp_path: Path) -> None:
    foreign = machine(tmp_path, "darwin" if sys.platform != "darwin" else "linux")
    nothing = told(foreign, client="env")
    assert (nothing.version, nothing.program_problem) == (None, nothing.evidence)
    assert nothing.program_command == shlex.join((sys.executable, "-m", "pip", "install", "cpersona"))
    off_path = script(foreign.home / ".local/bin/cpersona", "#!/bin/sh")
    beside = told(foreign, client="env")
    assert f"in no folder of that PATH: {off_path}" in beside.program_problem
    assert beside.program_command == f'export PATH={off_path.parent}:"$PATH"'
    off_path.unlink()
    venv(tmp_path / "v", {"cpersona": "2.6.3"})
    script(tmp_path / "v/bin/cpersona", f"#!{tmp_path}/v/bin/python")
    with_path = machine(tmp_path, foreign.system, env={"PATH": str(tmp_path / "v/bin")})
    assert told(with_path, client="env").version == "2.6.3"
    script(tmp_path / "v/bin/cpersona", "#!/bin/bash")
    assert "not a Python script" in told(with_path, client="env").evidence
