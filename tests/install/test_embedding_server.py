"""Starts of the embedding server in real files: units, launch agents, compose files, client entries."""

from __future__ import annotations

import plistlib
from pathlib import Path

import pytest

from cpersona_cli.install.embedding_server import EmbeddingServer, embedding_servers
from cpersona_cli.install.environment import environments
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Discovery, Launch, LaunchKind, Place, Registration, Variable
from cpersona_cli.record import replace

NOTHING = Discovery((), ())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for name in ("home", "work", "root"):
        (tmp_path / name).mkdir()
    return Machine(system="linux", home=tmp_path / "home", cwd=tmp_path / "work", root=tmp_path / "root")


def unit(machine: Machine, text: str | bytes, name: str = "embed.service") -> Path:
    path = machine.home / ".config" / "systemd" / "user" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def only(machine: Machine, discovery: Discovery = NOTHING) -> EmbeddingServer:
    (server,) = embedding_servers(discovery, machine)
    return server


def test_a_unit_with_its_variables(machine: Machine) -> None:
    (machine.home / "embed.env").write_text("# note\nEMBEDDING_HTTP_PORT='8500'\n\n; x=y\n")
    path = unit(
        machine,
        "[Service]\n"
        "# cembedding\n"
        'Environment="EMBEDDING_PROVIDER=onnx_bge_m3" ONNX_MODEL_DIR=/models\n'
        f"EnvironmentFile=-{machine.home / 'embed.env'}\n"
        "WorkingDirectory=/srv/embed\n"
        "ExecStart=/usr/bin/cembedding \\\n  --flag\n",
    )
    server = only(machine)
    assert server.place == Place(path, 6)
    assert (server.manner, server.holds_stdin, server.whole, server.container) == ("unit", False, True, False)
    assert (server.port, server.width, server.cwd) == (8500, 1024, "/srv/embed")
    assert server.get("ONNX_MODEL_DIR") == "/models"
    assert server.title == "service unit embed.service"


@pytest.mark.parametrize(
    ("lines", "held"),
    [
        ("ExecStart=/bin/sh -c 'sleep infinity | cembedding'", True),
        ("ExecStart=cembedding\nStandardInput=tty", True),
        ("ExecStart=cembedding\nStandardInput=fd:embed", True),
        ("ExecStart=cembedding\nStandardInput=null", False),
        ("ExecStart=python3 -m cembedding.server", False),
    ],
)
def test_what_holds_the_standard_input_of_a_unit(machine: Machine, lines: str, held: bool) -> None:
    unit(machine, f"[Service]\n{lines}\n")
    assert only(machine).holds_stdin is held


@pytest.mark.parametrize("named", ["%h/embed.env", "/nowhere/embed.env", ""])
def test_an_environment_file_that_cannot_be_read_leaves_the_variables_open(machine: Machine, named: str) -> None:
    unit(machine, f"[Service]\nEnvironmentFile={named}\nExecStart=cembedding\n")
    assert not only(machine).whole


def test_units_of_the_administrator_and_broken_quotes(machine: Machine) -> None:
    folder = machine.root / "etc" / "systemd" / "system"
    folder.mkdir(parents=True)
    (folder / "e.service").write_text("[Service]\nEnvironment='A=b\nExecStart=docker run cembedding\n")
    server = only(machine)
    assert server.container
    assert server.get("'A") == "b"


@pytest.mark.parametrize(
    "text", [b"", b"[Service]\nExecStart=cpersona\n", b"# cembedding only in a comment\n", b"\xff"]
)
def test_other_units_are_none(machine: Machine, text: bytes) -> None:
    unit(machine, text)
    assert embedding_servers(NOTHING, machine) == ()


def test_a_folder_in_place_of_a_unit_is_survived(machine: Machine) -> None:
    unit(machine, "").unlink()
    (machine.home / ".config" / "systemd" / "user" / "embed.service").mkdir()
    assert embedding_servers(NOTHING, machine) == ()


def agent(machine: Machine, content: object) -> Machine:
    folder = machine.home / "Library" / "LaunchAgents"
    folder.mkdir(parents=True)
    data = content if isinstance(content, bytes) else plistlib.dumps(content)  # type: ignore[arg-type]
    (folder / "embed.plist").write_bytes(data)
    return replace(machine, system="darwin")


def test_a_launch_agent(machine: Machine) -> None:
    server = only(
        agent(
            machine,
            {
                "ProgramArguments": ["/bin/sh", "-c", "sleep 9 | cembedding"],
                "EnvironmentVariables": {"EMBEDDING_PROVIDER": "onnx_miniml"},
                "WorkingDirectory": "/Users/u",
            },
        )
    )
    assert (server.manner, server.holds_stdin, server.width, server.cwd) == ("agent", True, 384, "/Users/u")


def test_a_bare_launch_agent_closes_its_input(machine: Machine) -> None:
    server = only(agent(machine, {"ProgramArguments": ["cembedding", 3], "EnvironmentVariables": []}))
    assert (server.holds_stdin, dict(server.variables), server.cwd) == (False, {}, "")


@pytest.mark.parametrize(
    "content",
    [
        b"cembedding <plist",
        {"Label": "other"},
        {"Label": "cembedding"},
        {"ProgramArguments": ["x"], "Label": "cembedding"},
        ["cembedding"],
    ],
)
def test_other_launch_agents_are_none(machine: Machine, content: object) -> None:
    assert embedding_servers(NOTHING, agent(machine, content)) == ()


COMPOSE = """\
services:
  memory:
    image: ghcr.io/x/cpersona
  embed:  # vectors
    image: "ghcr.io/x/cembedding:0.9.1"
    stdin_open: true
    environment:
      EMBEDDING_HTTP_HOST: 127.0.0.1
      EMBEDDING_PROVIDER: "onnx_jina_v5_nano"
  other:
    command: ["cembedding"]
    environment:
      - EMBEDDING_HTTP_PORT=8500
      - BARE
volumes:
  data:
"""


def test_services_of_a_compose_file(machine: Machine) -> None:
    path = machine.cwd / "compose.yaml"
    path.write_text(COMPOSE)
    embed, other = embedding_servers(NOTHING, machine)
    assert embed.title == "service “embed” of compose.yaml"
    assert embed.place.file == path
    assert (embed.holds_stdin, embed.container, embed.whole, embed.width) == (True, True, False, 768)
    assert embed.get("EMBEDDING_HTTP_HOST") == "127.0.0.1"
    assert (other.holds_stdin, other.port, dict(other.variables)) == (False, 8500, {"EMBEDDING_HTTP_PORT": "8500"})


@pytest.mark.parametrize(
    "text", ["cembedding", "services: cembedding\n", "a: cembedding\n", "services:\n  # cembedding\n"]
)
def test_other_compose_files_have_none(machine: Machine, text: str) -> None:
    (machine.cwd / "docker-compose.yml").write_text(text)
    assert embedding_servers(NOTHING, machine) == ()


def entry(kind: LaunchKind = LaunchKind.UVX, *, interactive: bool = True) -> Registration:
    file = Path("/home/u/mcp.toml")
    return Registration(
        client="codex",
        client_title="Codex",
        scope="user",
        name="tool.embedding",
        place=Place(file, 4),
        variables=(Variable("EMBEDDING_PROVIDER", "onnx_jina_v5_nano", Place(file, 6)),),
        launch=Launch(kind=kind, interactive=interactive),
    )


def test_a_client_keeps_a_pipe_and_its_entry_alone_is_not_everything(machine: Machine) -> None:
    server = only(machine, Discovery((), (), embedding_servers=(entry(),)))
    assert (server.manner, server.holds_stdin, server.whole, server.width) == ("client", True, False, 768)
    assert server.title == "entry “tool.embedding” of Codex (user)"


def test_docker_hands_the_pipe_on_only_when_told_to(machine: Machine) -> None:
    docker = entry(LaunchKind.DOCKER, interactive=False)
    server = only(machine, Discovery((), (), embedding_servers=(docker,)))
    assert (server.holds_stdin, server.container) == (False, True)


def test_an_effective_environment_makes_an_entry_whole(machine: Machine) -> None:
    one = entry()
    (environment,) = environments(one, machine)
    (server,) = embedding_servers(Discovery((), (), embedding_servers=(one,)), machine, {id(one): environment})
    assert server.whole
    assert server.get("EMBEDDING_PROVIDER") == "onnx_jina_v5_nano"


@pytest.mark.parametrize(("text", "port"), [("", 8401), (" 9000 ", 9000), ("84O1", None), ("99999999", None)])
def test_the_port(text: str, port: int | None) -> None:
    server = EmbeddingServer(title="", place=Place(), manner="unit", variables={"EMBEDDING_HTTP_PORT": text})
    assert server.port == port


def test_a_folder_that_cannot_be_listed_is_passed_over(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path, pattern: str) -> None:
        raise OSError(5, f"{folder}/{pattern}")

    unit(machine, "[Service]\nExecStart=cembedding\n")
    monkeypatch.setattr(Path, "glob", refuse)
    assert embedding_servers(NOTHING, machine) == ()
