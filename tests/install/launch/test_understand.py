"""Command lines of client files, each with what it starts."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_cli.install.launch.understand import understand
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Launch, LaunchKind
from cpersona_cli.record import replace

LINUX = Machine(system="linux", home=Path("/home/ada"), cwd=Path("/nowhere"))
WINDOWS = Machine(system="windows", home=Path("/home/ada"), cwd=Path("/nowhere"))


def read(line: str, machine: Machine = LINUX) -> Launch:
    command, *args = shlex.split(line)
    return understand(command, args, machine)


def shown(launch: Launch, name: str) -> object:
    """A field as a table can hold it: variables as ``NAME=text``, tuples of words as one text."""
    value = getattr(launch, name)
    if name == "variables":
        return " ".join(f"{variable.name}={variable.text}" for variable in value)
    if isinstance(value, tuple) and all(isinstance(word, str) for word in value):
        return " ".join(value)
    return value


STARTS: list[tuple[str, LaunchKind, dict[str, object]]] = [
    # uv
    ("uvx cpersona", LaunchKind.UVX, {"requirement": "cpersona", "program": "uvx", "fresh": False, "leftover": ""}),
    ("uvx cpersona@latest", LaunchKind.UVX, {"requirement": "cpersona@latest", "fresh": True}),
    ("uvx cpersona@2.6.10", LaunchKind.UVX, {"requirement": "cpersona@2.6.10", "fresh": False}),
    ("uvx cpersona==2.6.10 serve", LaunchKind.UVX, {"requirement": "cpersona==2.6.10", "leftover": "serve"}),
    ("uvx CPersona", LaunchKind.UVX, {"requirement": "CPersona"}),
    ("uvx --from cpersona==2.6.10 cpersona --x", LaunchKind.UVX,
     {"requirement": "cpersona==2.6.10", "leftover": "--x"}),
    ("uvx --from=cpersona>=2.6 cpersona", LaunchKind.UVX, {"requirement": "cpersona>=2.6"}),
    ("uvx --python 3.12 --refresh cpersona", LaunchKind.UVX, {"python": "3.12", "fresh": True}),
    ("uvx -p3.13 -q cpersona", LaunchKind.UVX, {"python": "3.13", "fresh": False}),
    ("uvx --with numpy,httpx -w tiktoken cpersona", LaunchKind.UVX, {"beside": "numpy httpx tiktoken"}),
    ("uvx --index-url http://127.0.0.1/simple cpersona", LaunchKind.UVX, {"requirement": "cpersona"}),
    ("uvx --env-file /etc/memory.env cpersona", LaunchKind.UVX, {"env_files": "/etc/memory.env"}),
    ("uvx --from ./src/CPersona cpersona", LaunchKind.UVX, {"requirement": "./src/CPersona"}),
    ("uvx --from git+https://example.org/CPersona@v2.6.10 cpersona", LaunchKind.UVX, {"package": "cpersona"}),
    ("uvx --from cpersona python -m cpersona.proxy_stdio", LaunchKind.PROXY, {"requirement": "cpersona"}),
    ("uvx --from numpy --with cpersona==2.6.1 python -m cpersona", LaunchKind.UVX, {"requirement": "cpersona==2.6.1"}),
    ("uvx -- cpersona", LaunchKind.UVX, {"requirement": "cpersona"}),
    ("/opt/homebrew/bin/uvx cpersona", LaunchKind.UVX, {"program": "/opt/homebrew/bin/uvx"}),
    ("uv tool run cpersona", LaunchKind.UVX, {"program": "uv", "requirement": "cpersona", "project": ""}),
    ("uv --quiet tool run cpersona@latest", LaunchKind.UVX, {"fresh": True}),
    ("uv x cpersona", LaunchKind.UVX, {"requirement": "cpersona"}),
    ("uv --directory /srv tool run cpersona", LaunchKind.UVX, {"cwd": "/srv"}),
    ("uv run --with cpersona python -m cpersona", LaunchKind.UVX, {"requirement": "cpersona", "project": "."}),
    ("uv run --no-project --with cpersona cpersona", LaunchKind.UVX, {"requirement": "cpersona", "project": ""}),
    ("uv run --with cpersona==2.6.1 -m cpersona x", LaunchKind.UVX,
     {"requirement": "cpersona==2.6.1", "leftover": "x"}),
    ("uv run --script /x/cpersona/server.py", LaunchKind.UVX, {"project": "."}),
    ("uv --directory /src/memory run cpersona", LaunchKind.UVX, {"project": "/src/memory", "cwd": "/src/memory"}),
    ("uv run --project /src/memory cpersona", LaunchKind.UVX, {"project": "/src/memory", "cwd": "", "requirement": ""}),
    # pipx
    ("pipx run cpersona", LaunchKind.PIPX, {"requirement": "cpersona", "fresh": False}),
    ("pipx run --spec cpersona==2.6.10 cpersona serve", LaunchKind.PIPX, {"requirement": "cpersona==2.6.10"}),
    ("pipx run --no-cache --python 3.12 cpersona", LaunchKind.PIPX, {"fresh": True, "python": "3.12"}),
    ("pipx run --spec cpersona python -m cpersona", LaunchKind.PIPX, {"requirement": "cpersona"}),
    # an installed script
    ("cpersona", LaunchKind.SCRIPT, {"program": "cpersona", "leftover": ""}),
    ("cpersona serve --port 1", LaunchKind.SCRIPT, {"leftover": "serve --port 1"}),
    ("/home/ada/.venv/bin/cpersona", LaunchKind.SCRIPT, {"program": "/home/ada/.venv/bin/cpersona"}),
    (r"'C:\Users\ada\Scripts\CPersona.EXE'", LaunchKind.SCRIPT, {"program": r"C:\Users\ada\Scripts\CPersona.EXE"}),
    # an interpreter
    ("python -m cpersona", LaunchKind.MODULE, {"python": "python", "leftover": ""}),
    ("python3.12 -m cpersona serve -c x", LaunchKind.MODULE, {"python": "python3.12", "leftover": "serve -c x"}),
    ("python -Im cpersona.server", LaunchKind.MODULE, {}),
    ("python -mcpersona", LaunchKind.MODULE, {}),
    ("python -X utf8 -W ignore -m cpersona", LaunchKind.MODULE, {}),
    ("pythonw.exe -m cpersona", LaunchKind.MODULE, {"python": "pythonw.exe"}),
    ("py -3.12 -m cpersona", LaunchKind.MODULE, {"python": "py"}),
    ("/x/.venv/bin/python /x/.venv/bin/cpersona a", LaunchKind.MODULE, {"leftover": "a"}),
    ("python /x/site-packages/cpersona/server.py", LaunchKind.MODULE, {}),
    ("python /x/site-packages/cpersona", LaunchKind.MODULE, {}),
    ("python -c 'from cpersona.server import run; run()'", LaunchKind.MODULE, {}),
    ("python -m cpersona.proxy_stdio", LaunchKind.PROXY, {}),
    ("python /x/cpersona/proxy_stdio.py", LaunchKind.PROXY, {}),
    ("python -m uv tool run cpersona", LaunchKind.UVX, {"program": "uv"}),
    # other command lines in front
    ("env A=1 B=2=3 cpersona", LaunchKind.SCRIPT, {"variables": "A=1 B=2=3"}),
    ("/usr/bin/env -i -C /srv P=1 uvx cpersona", LaunchKind.UVX, {"unset": "*", "cwd": "/srv", "variables": "P=1"}),
    ("env -u CPERSONA_DB_PATH cpersona", LaunchKind.SCRIPT, {"unset": "CPERSONA_DB_PATH"}),
    ("env -S 'A=1 cpersona serve'", LaunchKind.SCRIPT, {"variables": "A=1", "leftover": "serve"}),
    ("env A=1 env B=2 cpersona", LaunchKind.SCRIPT, {"variables": "A=1 B=2"}),
    ("sh -c cpersona", LaunchKind.SCRIPT, {"wrapper": ""}),
    (
        "sh -c 'cd /srv && export A=1 B=2; C=3 exec uvx cpersona serve 2>/dev/null'",
        LaunchKind.UVX,
        {"cwd": "/srv", "variables": "A=1 B=2 C=3", "leftover": "serve"},
    ),
    ("sh -c 'A=1; mkdir -p /x; cpersona >> /x/log 2>&1'", LaunchKind.SCRIPT, {"variables": "A=1", "leftover": ""}),
    ("bash -lc 'uvx cpersona'", LaunchKind.UVX, {"wrapper": "bash as a login shell"}),
    ("bash -o pipefail -c 'cat | cpersona'", LaunchKind.SCRIPT, {}),
    ("bash /x/wrap.sh cpersona", LaunchKind.SCRIPT, {"wrapper": "/x/wrap.sh"}),
    ("cmd /c uvx cpersona serve", LaunchKind.UVX, {"leftover": "serve"}),
    ("cmd.exe /d /s /c 'set A=1&& cd /d C:/srv && uvx cpersona'", LaunchKind.UVX,
     {"variables": "A=1", "cwd": "C:/srv"}),
    ("cmd /C call cpersona.cmd", LaunchKind.SCRIPT, {}),
    ('cmd /c \'set "A=1" & "C:/Program Files/x/cpersona.exe"\'', LaunchKind.SCRIPT, {"variables": "A=1"}),
    ("powershell -NoProfile -Command \"& 'C:/x y/cpersona.exe' serve\"", LaunchKind.SCRIPT, {"leftover": "serve"}),
    ("pwsh -c \"$env:A='1'; uvx cpersona\"", LaunchKind.UVX, {"variables": "A=1"}),
    ("powershell -ExecutionPolicy Bypass uvx cpersona", LaunchKind.UVX, {}),
    ("nice -n 5 cpersona", LaunchKind.SCRIPT, {"wrapper": "", "unclear": ""}),
    ("timeout 5 /usr/bin/env uvx cpersona", LaunchKind.UVX, {"wrapper": ""}),
    ("op run --env-file=.env -- uvx cpersona", LaunchKind.UVX, {"wrapper": "op", "env_files": ".env"}),
    ("conda run -n memory cpersona", LaunchKind.SCRIPT, {"wrapper": "conda"}),
    ("sudo -u ada /opt/memory/bin/cpersona", LaunchKind.SCRIPT, {"wrapper": "sudo"}),
    ("poetry run python -m cpersona", LaunchKind.MODULE, {"wrapper": "poetry"}),
    ("wsl.exe -d Ubuntu -e cpersona", LaunchKind.SCRIPT, {"inside": "wsl"}),
    ("wsl -- bash -lc 'A=1 cpersona'", LaunchKind.SCRIPT, {"inside": "wsl", "variables": "A=1"}),
    ("wsl.exe --cd /srv uvx cpersona@latest", LaunchKind.UVX, {"inside": "wsl", "cwd": "/srv"}),
    ("wsl ~ -e python3 -m cpersona", LaunchKind.MODULE, {"inside": "wsl", "cwd": "~"}),
    # containers
    ("docker run -i --rm ghcr.io/someone/cpersona:2.6.14", LaunchKind.DOCKER,
     {"image": "ghcr.io/someone/cpersona:2.6.14"}),
    ("docker run --rm cpersona", LaunchKind.DOCKER, {"interactive": False}),
    ("docker run --interactive=false cpersona", LaunchKind.DOCKER, {"interactive": False}),
    ("docker --context far run -it cpersona", LaunchKind.DOCKER, {"interactive": True, "inside": "container"}),
    ("docker run -i -e A=1 -eB=2 --env C -e D= cpersona", LaunchKind.DOCKER,
     {"variables": "A=1 B=2 D=", "passed": "C"}),
    ("docker run -i --env-file=/x.env --env-file y.env cpersona", LaunchKind.DOCKER, {"env_files": "/x.env y.env"}),
    ("docker run -i -v /h:/data:ro -v named:/n -v /only cpersona", LaunchKind.DOCKER,
     {"mounts": (("/h", "/data"), ("named", "/n"))}),
    (r"docker run -i -v 'C:\d:/data' cpersona", LaunchKind.DOCKER, {"mounts": (("C:\\d", "/data"),)}),
    ("docker run -i --mount type=bind,src=/h,dst=/data cpersona", LaunchKind.DOCKER, {"mounts": (("/h", "/data"),)}),
    ("docker run -i --mount type=tmpfs,dst=/data cpersona", LaunchKind.DOCKER, {"mounts": ""}),
    ("docker run -i --network host cpersona", LaunchKind.DOCKER, {"network_host": True}),
    ("docker run -i --net=bridge cpersona", LaunchKind.DOCKER, {"network_host": False}),
    ("docker run -i --name m -p 1:2 -u 5 --init -w /srv cpersona serve", LaunchKind.DOCKER,
     {"cwd": "/srv", "leftover": "serve"}),
    ("docker run -i --entrypoint python cpersona -m cpersona.proxy_stdio", LaunchKind.PROXY, {"inside": "container"}),
    ("docker run -i python:3.12 uvx cpersona==2.6.1", LaunchKind.DOCKER, {"requirement": "cpersona==2.6.1"}),
    ("podman container run -i --env-host quay.io/x/my-cpersona", LaunchKind.DOCKER, {"program": "podman"}),
    ("docker exec -i memory env A=1 cpersona", LaunchKind.DOCKER, {"variables": "A=1", "image": ""}),
    ("docker compose run --rm -T -e A=1 cpersona", LaunchKind.COMPOSE, {"variables": "A=1", "interactive": True}),
    ("docker-compose run cpersona", LaunchKind.COMPOSE, {"program": "docker-compose"}),
    ("docker compose exec memory cpersona", LaunchKind.COMPOSE, {}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "kind", "fields"), STARTS, ids=[row[0] for row in STARTS])
def test_command_line_is_understood(line: str, kind: LaunchKind, fields: dict[str, object]) -> None:
    launch = read(line)
    assert (launch.kind, launch.package) == (kind, "cpersona")
    assert {name: shown(launch, name) for name in fields} == fields
    assert launch.words == tuple(shlex.split(line))


OTHERS = [
    "uvx mcp-server-time",
    "uvx",
    "uvx --from cpersona cpersona-policy",
    "uv pip install cpersona",
    "uv run pytest",
    "pipx install cpersona",
    "pipx run black",
    "pipx run",
    "python -m cpersona.checkup",
    "python -m http.server",
    "python -c 'print(1)'",
    "python /x/server.py",
    "python",
    "node /x/index.js cpersona",
    "npx -y @scope/server-filesystem /home/ada/bin/cpersona",
    "/x/server-filesystem /home/ada/notes/cpersona",
    "sh -c 'echo hello'",
    "sh",
    "bash /x/run.sh",
    "env",
    "cmd /k",
    "cmd",
    "powershell",
    "powershell -File C:/x/run.ps1",
    "wsl.exe",
    "docker ps",
    "docker run",
    "docker compose ps",
    "mystery --flag",
]


@pytest.mark.parametrize("line", OTHERS)
def test_other_programs_stay_unknown(line: str) -> None:
    launch = read(line)
    assert (launch.kind, launch.package) == (LaunchKind.UNKNOWN, "")


@pytest.mark.parametrize(
    "line", ["docker run -i memory:1", "docker start -ai memory", "docker exec -i memory run", "docker compose up"]
)
def test_a_container_of_another_name_is_told_without_claiming_what_it_holds(line: str) -> None:
    launch = read(line)
    assert launch.package == ""
    assert launch.kind in {LaunchKind.DOCKER, LaunchKind.COMPOSE}


@pytest.mark.parametrize(
    "line",
    ["uvx cembedding", "uvx cembedding[onnx]", "cembedding", "python -m cembedding", "docker run -i x/cembedding",
     "python -m cembedding.server", "uv run --with cembedding cembedding"],
)  # fmt: skip
def test_the_embedding_server_is_told_apart(line: str) -> None:
    assert read(line).package == "cembedding"


UNCLEAR = [
    ("bash -lc cpersona", "start files"),
    ("bash -c '. /x/env.sh; cpersona'", "/x/env.sh"),
    ("bash /x/wrap.sh cpersona", "/x/wrap.sh"),
    ("op run -- cpersona", "op stands in front"),
    ("python -c 'import os; from cpersona.server import run; run()'", "Python code"),
    ("powershell -File C:/x/run.ps1", "run.ps1"),
    ("docker exec -i memory cpersona", "container memory was made earlier"),
    ("docker start -ai memory", "made earlier"),
    ("docker run -i --volumes-from other cpersona", "another container"),
    ("podman run -i --env-host cpersona", "whole environment"),
    ("docker compose run cpersona", "no compose file"),
    ("docker compose up cpersona", "does not connect"),
    ("uvx --with-requirements x.txt cpersona", "another release"),
]


@pytest.mark.parametrize(("line", "said"), UNCLEAR)
def test_what_cannot_be_told_is_said(line: str, said: str) -> None:
    assert said in " ".join(read(line).unclear)


def test_a_whole_line_in_the_command_field_is_understood_and_named() -> None:
    for machine in (LINUX, WINDOWS):
        launch = understand("uvx cpersona", [], machine)
        assert (launch.package, launch.program) == ("cpersona", "uvx cpersona")
        assert "holds the whole line" in launch.unclear[-1]


@pytest.mark.parametrize("line", ["npx -y mcp-remote http://h:8402/mcp --header x", "/x/mcp-proxy https://h/mcp"])
def test_a_bridge_is_a_remote_server(line: str) -> None:
    launch = read(line)
    assert launch.kind is LaunchKind.REMOTE
    assert launch.url.startswith("http")


def test_url_without_command() -> None:
    assert understand("", (), LINUX, url="http://h/mcp").kind is LaunchKind.REMOTE
    assert understand("", (), LINUX).kind is LaunchKind.UNKNOWN


def test_arguments_of_wrong_type_and_endless_nesting_are_survived() -> None:
    assert understand("uvx", ["cpersona", 5, None], LINUX).leftover == ("5", "None")
    assert understand("env", ["env"] * 30 + ["cpersona"], LINUX).kind is LaunchKind.UNKNOWN
    assert understand("sh", ["-c", "cpersona 'unbalanced"], LINUX).package == "cpersona"
    assert understand("\ud800", ["\0"], LINUX).kind is LaunchKind.UNKNOWN
    assert understand("docker", ["run", "-e"], LINUX).kind is LaunchKind.UNKNOWN
    assert understand("powershell", ["-File"], LINUX).kind is LaunchKind.UNKNOWN


_HARD = (
    "uvx uv tool run --with --from -m -c python sh env A=1 docker compose -e -v --mount cpersona cmd /c set -- wsl -d"
    " powershell -File & && ; 2> ' \" pipx --spec $X ~ - -- = --= -="
)
_WORDS = st.sampled_from(_HARD.split())


@settings(deadline=None)
@given(st.lists(_WORDS | st.text(max_size=6), max_size=8))
def test_any_words_are_survived(words: list[str]) -> None:
    launch = understand(words[0] if words else "", words[1:], LINUX)
    assert launch.package in {"", "cpersona", "cembedding"}


@pytest.mark.parametrize(
    ("shell", "files", "read_from"),
    [
        ("bash", (".profile",), ".profile"),
        ("bash", (".bash_profile", ".profile"), ".bash_profile"),
        ("zsh", (".zprofile", ".profile"), ".zprofile"),
        ("sh", (".bash_profile", ".profile"), ".profile"),
        ("bash", (".bashrc",), None),
        ("fish", (".config/fish/config.fish", ".profile"), ".config/fish/config.fish"),
    ],
)
def test_what_a_login_shell_reads_reaches_the_server(
    tmp_path: Path, shell: str, files: tuple[str, ...], read_from: str | None
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        set_ = f"set -gx CPERSONA_DB_PATH {name}" if name.endswith("fish") else f'export CPERSONA_DB_PATH="{name}"'
        (tmp_path / name).write_text(f"# mine\n{set_}\n")
    machine = replace(LINUX, home=tmp_path)
    launch = read(f"{shell} -lc 'exec uvx cpersona'", machine)
    assert [(v.text, v.place.file) for v in launch.variables] == (
        [(read_from, tmp_path / read_from)] if read_from else []
    )
    assert launch.unclear
    assert read(f"{shell} -c 'exec uvx cpersona'", machine).variables == ()
    assert read(f"docker exec -i memory {shell} -lc cpersona", machine).variables == ()
    assert read(f"wsl.exe {shell} -lc cpersona", machine).variables == ()


def test_what_a_shell_reads_on_the_way_reaches_the_server(tmp_path: Path) -> None:
    (tmp_path / "m.env").write_text("CPERSONA_EMBEDDING_MODE=http\nexport CPERSONA_DB_PATH=$HOME/m.db\n")
    machine = replace(LINUX, home=tmp_path)
    for spelled in ("~/m.env", "$HOME/m.env", "${HOME}/m.env", str(tmp_path / "m.env")):
        launch = read(f"bash -c 'set -a; . {spelled}; CPERSONA_FTS_ENABLED=true uvx cpersona'", machine)
        assert {v.name: v.text for v in launch.variables} == {
            "CPERSONA_EMBEDDING_MODE": "http",
            "CPERSONA_DB_PATH": "$HOME/m.db",
            "CPERSONA_FTS_ENABLED": "true",
        }
        assert "line by line" in launch.unclear[0]
    assert read("bash -c 'source /nowhere; uvx cpersona'", machine).variables == ()
