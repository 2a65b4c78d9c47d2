"""Installed distributions read from their files, the real ones of this environment among them."""

from __future__ import annotations

import sysconfig
from importlib import metadata
from pathlib import Path

from support.clients import machine
from support.pythons import distribution, script, venv

from cpersona_cli.install.release.distributions import installed, script_owner, server, venv_site

SITE = Path(sysconfig.get_path("purelib"))


def test_the_real_environment_agrees_with_the_library() -> None:
    listed = installed(SITE)
    for name in ("cpersona", "mcp", "numpy", "httpx"):
        assert listed[name].release == metadata.version(name)
    found = server(SITE)
    assert found is not None
    assert found.release == metadata.version("cpersona")
    assert found.installed is not None


def test_what_is_not_there(tmp_path: Path) -> None:
    assert installed(tmp_path / "absent") == {}
    assert installed(Path("nul\0")) == {}
    assert server(tmp_path) is None
    info = distribution(tmp_path, "cpersona", "2.6.14")
    gone = installed(tmp_path)["cpersona"]
    (info / "METADATA").write_text("Name: cpersona\n\nVersion: 2.6.14\n")
    assert server(tmp_path) is None
    for path in info.iterdir():
        path.unlink()
    info.rmdir()
    assert gone.installed is None


def test_metadata_outranks_the_folders_name(tmp_path: Path) -> None:
    info = distribution(tmp_path, "cpersona", "2.6.14")
    info.rename(tmp_path / "CPersona-0.dist-info")
    found = server(tmp_path)
    assert found is not None
    assert found.release == "2.6.14"


def test_the_owner_of_a_script(tmp_path: Path) -> None:
    tool = script(tmp_path / "bin/cpersona", "#!x")
    site = tmp_path / "site"
    distribution(site, "quiet", "1")
    assert script_owner(installed(site), tool) == ""
    distribution(site, "cpersona", "2.6.14", script=tool)
    assert script_owner(installed(site), tool) == "cpersona"
    lost = distribution(site, "lost", "1", script=tool)
    (lost / "RECORD").unlink()
    assert script_owner(installed(site), tool) == "cpersona"
    (lost / "RECORD").write_text("../../../bin/cpersona,sha256=other,1\n")
    assert script_owner(installed(site), tool) == "cpersona"
    tool.unlink()
    assert script_owner(installed(site), tool) == ""


def test_the_site_of_an_environment(tmp_path: Path) -> None:
    where = machine(tmp_path / "m")
    site = venv(tmp_path / "v", {}, release="3.12")
    assert venv_site(tmp_path / "v", where) == site
    (tmp_path / "v/pyvenv.cfg").write_text("home = /x\n")
    assert venv_site(tmp_path / "v", where) == site
    (tmp_path / "v/pyvenv.cfg").write_text("version = 3.99\n")
    assert venv_site(tmp_path / "v", where) == site
    site.rmdir()
    assert venv_site(tmp_path / "v", where) is None
    assert venv_site(tmp_path / "absent", where) is None
    assert venv_site(tmp_path / "v", machine(tmp_path / "w", "windows")) == tmp_path / "v/Lib/site-packages"
