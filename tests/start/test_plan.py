"""What is started in the place of a registration, and what is not started at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.impostor import candidate, here, prepared

from cpersona_cli.install.clients.discover import from_process
from cpersona_cli.install.model import ServerVersion
from cpersona_cli.record import replace
from cpersona_cli.start.plan import Plan, over_stdio, plan

PYTHON = (sys.executable, "-m", "cpersona")
IMAGE = "ghcr.io/cloto-dev/cpersona:2.6.14"


def planned(tmp_path: Path, *words: str, env: dict[str, str] | None = None, **fields: object) -> Plan | str:
    machine = here(tmp_path)
    return plan(candidate(machine, env or {}, *words, **fields), machine, tmp_path / "scratch")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "env", "fields", "says"),
    [
        (("docker", "run", "-i", "--rm", "-e", "CPERSONA_DB_PATH=/data/m.db", IMAGE), {}, {}, "in a container"),
        (("docker", "run", "-i", "-e", "CPERSONA_DB_PATH", IMAGE), {"CPERSONA_DB_PATH": "/x"}, {}, "in a container"),
        (("docker", "compose", "run", "cpersona"), {}, {}, "in a container"),
        (("docker", "exec", "-i", "memory", "cpersona"), {}, {}, "in a container"),
        (("wsl.exe", "--", "cpersona"), {}, {}, "in WSL"),
        (("uvx", "--from", "cpersona", "python", "-m", "cpersona.proxy_stdio"), {}, {}, "a server elsewhere"),
        (("npx", "mcp-remote", "https://memory.example.com/mcp"), {}, {}, "a server elsewhere"),
        (PYTHON, {}, {"torn": True}, "breaks off"),
        (("env", "CPERSONA_DB_PATH=/x", *PYTHON), {}, {}, "CPERSONA_DB_PATH stands on its command line"),
        (("sh", "-c", "CPERSONA_EXPORT_DIR=/x cpersona"), {}, {}, "CPERSONA_EXPORT_DIR stands on its command line"),
        (("uvx", "cembedding"), {}, {}, "an embedding server"),
        (PYTHON, {"CPERSONA_TRANSPORT": "streamable-http"}, {}, "listen on a port"),
        (PYTHON, {"CPERSONA_EMBEDDING_API_KEY": "${input:key}"}, {"client": "vscode"}, "asks the user for CPERSONA_"),
        ((*PYTHON, "${input:more}"), {}, {"client": "vscode"}, "prompted for"),
        (("${env:SERVER}",), {}, {"client": "cursor"}, "SERVER is not set"),
        (("conda", "run", "cpersona"), {"PATH": "@/bin"}, {}, "what conda changes"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_what_is_not_started(
    tmp_path: Path, words: tuple[str, ...], env: dict[str, str], fields: dict[str, object], says: str
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "conda").write_bytes(b"\x7fELF")
    (tmp_path / "bin" / "conda").chmod(0o755)
    found = planned(tmp_path, *words, env={n: v.replace("@", str(tmp_path)) for n, v in env.items()}, **fields)
    assert isinstance(found, str)
    assert says in found


def test_what_is_started(tmp_path: Path) -> None:
    env = {
        "CPERSONA_DB_PATH": "/srv/memory.db",
        "CPERSONA_VECTOR_SEARCH_MODE": "remote",
        "CPERSONA_EMBEDDING_API_KEY": "sk-0123456789",
        "EXTRA": "kept",
        "TOKEN": "abc",
    }
    found = planned(tmp_path, *PYTHON, "left over", env=env, cwd=str(tmp_path / "there"))
    assert isinstance(found, Plan)
    scratch = tmp_path / "scratch"
    assert found.command == (*PYTHON, "left over")
    assert found.cwd == tmp_path / "there"
    assert found.database == scratch / "memory.db"
    assert (found.download, found.absent) == (False, "")
    assert found.replaced == ("CPERSONA_DB_PATH", "CPERSONA_VECTOR_SEARCH_MODE")
    assert found.secrets == ("sk-0123456789",), "a value of three letters would be found everywhere"
    told = {name: found.env[name] for name in found.env if name.startswith("CPERSONA_") or name == "EXTRA"}
    assert told == {
        "CPERSONA_ALIAS_LEDGER_FILE": f"{scratch}/alias_ledger.json",
        "CPERSONA_DB_PATH": f"{scratch}/memory.db",
        "CPERSONA_EMBEDDING_API_KEY": "sk-0123456789",
        "CPERSONA_EXPORT_DIR": str(scratch),
        "CPERSONA_UPDATE_CHECK": "false",
        "CPERSONA_VECTOR_SEARCH_MODE": "local",
        "EXTRA": "kept",
    }


@pytest.mark.parametrize(("client", "folder"), [("claude-code", "home/work"), ("cursor", "home")])
def test_where_a_client_starts_it(tmp_path: Path, client: str, folder: str) -> None:
    machine = replace(here(tmp_path), home=tmp_path / "home", cwd=tmp_path / "home" / "work")
    found = plan(candidate(machine, {}, client=client), machine, tmp_path / "scratch")
    assert isinstance(found, Plan)
    assert found.cwd == tmp_path / folder


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    for word, says in (("/nowhere/cpersona", "does not exist"), ("cpersona-x1", "what")):
        found = planned(tmp_path, word)
        assert says in (found.absent if isinstance(found, Plan) else found) or isinstance(found, Plan)
    found = planned(tmp_path, "uvx", "cpersona", env={"PATH": str(tmp_path)})
    assert isinstance(found, Plan)
    assert found.download
    assert "uvx" in found.absent


def test_this_process(tmp_path: Path) -> None:
    machine = replace(here(tmp_path), env={"PATH": str(tmp_path), "CPERSONA_DB_PATH": "/x"})
    (entry,) = from_process(machine).registrations
    assert over_stdio(entry)
    ready = prepared(entry, machine)
    found = plan(ready, machine, tmp_path / "scratch")
    assert isinstance(found, Plan)
    assert found.command == (str(Path(sys.executable).with_name("cpersona")),)
    assert found.cwd == machine.cwd
    without = replace(ready, version=replace(ready.version, program=None))
    found = plan(without, machine, tmp_path / "scratch")
    assert isinstance(found, Plan)
    assert found.command[1:] == ("-m", "cpersona")
    none = replace(ready, version=ServerVersion(version=None, evidence="no CPersona is installed"))
    assert plan(none, machine, tmp_path / "scratch") == "no CPersona is installed"


def test_what_no_client_starts(tmp_path: Path) -> None:
    machine = here(tmp_path)
    remote = candidate(machine, {}, transport="http", url="http://127.0.0.1:8402/mcp").registration
    assert not over_stdio(remote)
    assert over_stdio(candidate(machine, {}).registration)


def test_another_system(tmp_path: Path) -> None:
    machine = replace(here(tmp_path), system="windows")
    said = plan(candidate(machine, {}), machine, tmp_path / "scratch")
    assert said == "its paths are those of another system than this one"
