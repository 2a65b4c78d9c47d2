"""What reaches the server: its program, expanded variables, the shell's variables, container options."""

from __future__ import annotations

import pytest
from support.trap_facts import Graded, release, retarget
from support.traps import MACHINE, UVX, docker, everything, facts

from cpersona_cli.install.model import Launch, LaunchKind, Place, Variable
from cpersona_cli.record import replace
from cpersona_cli.traps.model import Facts

DB = "/home/u/cpersona.db"
ENV = {"CPERSONA_DB_PATH": DB}
URL = "CPERSONA_EMBEDDING_URL"
KEY = "CPERSONA_EMBEDDING_API_KEY"
PROXY = {"HTTPS_PROXY": "http://proxy:3128", "ssl_cert_file": "/etc/ca.pem"}
API = {**ENV, "CPERSONA_EMBEDDING_MODE": "api", KEY: "sk-live-0123456789abcdef"}


def within(client: str, env: dict[str, str], shell: dict[str, str] | None = None, **fields: object) -> Facts:
    machine = replace(MACHINE, env={**MACHINE.env, **(shell or {})})
    return facts(env, client=client, machine=machine, **fields)  # type: ignore[arg-type]


def program(problem: str = "", client: str = "claude-desktop", system: str = "linux", **more: str) -> Facts:
    machine = replace(MACHINE, system=system)
    found = release(None, program_problem=problem, **more)
    return retarget(facts(ENV, client=client, machine=machine), version=found)


def boxed(launch: Launch, env: dict[str, str] | None = None, **fields: object) -> Facts:
    return facts(env or {}, launch=launch, **fields)  # type: ignore[arg-type]


#: ``docker exec -i memory cpersona``
ENTERED = replace(docker(), image="", unclear=("the container memory was made earlier",))
UNEXPANDED = "registration.unexpanded"
INHERITED = "registration.not-inherited"
TIMEOUT = "registration.startup-timeout"
LEFT = replace(UVX, leftover=("serve", "--now"), words=("uvx", "cpersona", "serve", "--now"))

CASES = (
    Graded(
        "registration.program-missing",
        "not on the desktop's PATH",
        program("uvx is on this shell's PATH only"),
        says=("this shell's PATH only", "command -v uvx", "absolute path as the command"),
        severity="fault",
    ),
    Graded(
        "registration.program-missing",
        "on another PATH",
        program("not on the PATH", program_write="/home/u/.local/bin/uvx"),
        says=('"command": "/home/u/.local/bin/uvx"', "restart Claude Desktop"),
        severity="fault",
    ),
    Graded(
        "registration.program-missing",
        "on another PATH, TOML",
        program("not on the PATH", client="codex", program_write="/home/u/.local/bin/uvx"),
        says='command = "/home/u/.local/bin/uvx"',
    ),
    Graded(
        "registration.program-missing",
        "behind a shell",
        retarget(
            boxed(Launch(kind=LaunchKind.UVX, package="cpersona", program="uv", words=("sh", "-c", "uv"))),
            version=release(None, program_problem="uv is not there", program_write="/opt/uv"),
        ),
        says="write /opt/uv in place of 'uv'",
    ),
    Graded(
        "registration.program-missing",
        "not executable",
        program("it may not be executed", program_command="chmod +x /x/uvx"),
        says=("run this", "chmod +x /x/uvx"),
        severity="fault",
    ),
    Graded(
        "registration.program-missing",
        "a stand-in",
        program(program_doubt="/home/u/.pyenv/shims/uvx belongs to pyenv, which chooses"),
        says=("belongs to pyenv", "pyenv which uvx"),
        severity="warning",
    ),
    Graded(
        "registration.program-missing",
        "beside this tool",
        program("no CPersona", client="env", program_command="python -m pip install cpersona"),
        says=("run this", "python -m pip install cpersona"),
    ),
    Graded("registration.program-missing", "on Windows", program("no uvx", system="windows"), says="where.exe uvx"),
    Graded("registration.program-missing", "found", facts(ENV), "pass"),
    Graded(
        UNEXPANDED,
        "braces, not set",
        within("claude-code", {**ENV, URL: "${CPERSONA_HOME}/embed"}),
        says=("${CPERSONA_HOME}", "Claude Code expands ${NAME} or ${NAME:-default}"),
        severity="fault",
        count=1,
    ),
    Graded(
        UNEXPANDED, "with a default", within("claude-code", {**ENV, URL: "${X:-http://127.0.0.1:8401/embed}"}), "pass"
    ),
    Graded(
        UNEXPANDED,
        "braces, set in this shell alone",
        within("claude-code", {**ENV, URL: "${X}"}, {"X": "http://127.0.0.1:8401/embed"}),
        says="depends on how the client was started",
        severity="hint",
    ),
    Graded(UNEXPANDED, "no braces", within("claude-code", {**ENV, URL: "$HOST/embed"}), severity="warning"),
    Graded(UNEXPANDED, "per cent signs", within("claude-code", {**ENV, URL: "%APPDATA%/embed"}), severity="warning"),
    Graded(UNEXPANDED, "small letters", within("claude-code", {**ENV, URL: "$host/embed"}), says="as it stands"),
    Graded(
        UNEXPANDED,
        "a client that expands nothing",
        within("claude-desktop", {**ENV, URL: "${X}"}, {"X": "http://127.0.0.1:8401/embed"}),
        says=("expands nothing", "THE VALUE ITSELF"),
        severity="fault",
    ),
    Graded(
        UNEXPANDED,
        "another client's syntax",
        within("claude-code", {**ENV, URL: "${env:X}"}, {"X": "http://127.0.0.1:8401/embed"}),
        severity="fault",
    ),
    Graded(
        UNEXPANDED,
        "an editor, the variable set in this shell alone",
        within("cursor", {**ENV, URL: "${env:X}"}, {"X": "u"}),
        says="depends on how the client was started",
        severity="warning",
    ),
    Graded(
        UNEXPANDED,
        "empty where not set",
        within("gemini-cli", {**ENV, URL: "$X"}),
        says=("becomes empty", "as if nothing were set"),
        severity="warning",
    ),
    Graded(UNEXPANDED, "asked for", within("vscode", {**ENV, KEY: "${input:key}"}), "pass"),
    Graded(
        UNEXPANDED, "the open folder", within("vscode", {**ENV, "CPERSONA_EXPORT_DIR": "${workspaceFolder}/e"}), "pass"
    ),
    Graded(UNEXPANDED, "the path has its own trap", within("claude-code", {"CPERSONA_DB_PATH": "${X}/c.db"}), "pass"),
    Graded(UNEXPANDED, "a dollar sign in a secret", within("claude-code", {**ENV, KEY: "pa$WORD9"}), "pass"),
    Graded(UNEXPANDED, "a secret that is no value", within("claude-code", {**ENV, KEY: "${MY_KEY}"}), severity="fault"),
    Graded(UNEXPANDED, "names of other programs", within("claude-code", {**ENV, "OTHER": "${X}"}), "pass"),
    Graded(UNEXPANDED, "this process", within("env", {**ENV, URL: "${X}"}), "skipped"),
    Graded(
        INHERITED,
        "proxies and certificates",
        within("codex", API, PROXY),
        says=("HTTPS_PROXY, ssl_cert_file of this shell", 'env_vars = ["HTTPS_PROXY", "ssl_cert_file"]'),
        severity="warning",
        count=1,
    ),
    Graded(INHERITED, "a desktop program", within("claude-desktop", API, PROXY), says='"HTTPS_PROXY", "ssl_cert_file"'),
    Graded(
        INHERITED,
        "an endpoint on this computer needs none",
        within("codex", {**ENV, "CPERSONA_EMBEDDING_MODE": "http", URL: "http://127.0.0.1:8401/embed"}, PROXY),
        "pass",
    ),
    Graded(INHERITED, "handed on in the entry", within("claude-desktop", {**API, **PROXY}, PROXY), "pass"),
    Graded(INHERITED, "no embedding", within("codex", ENV, PROXY), "pass"),
    Graded(INHERITED, "a client that hands everything on", within("claude-code", API, PROXY), "skipped"),
    Graded(
        INHERITED,
        "env_vars names what is not set",
        within("codex", ENV, fields={"env_vars": ["CPERSONA_EMBEDDING_API_KEY", "LANG", 5]}),
        says=f"env_vars hands {KEY} on",
        count=1,
    ),
    Graded(
        INHERITED,
        "env_vars names what is set",
        within("codex", ENV, {KEY: "sk-live-0123456789abcdef"}, fields={"env_vars": [KEY]}),
        "pass",
    ),
    Graded("registration.docker-interactive", "without -i", boxed(docker(interactive=False)), severity="fault"),
    Graded(
        "registration.docker-interactive",
        "exec without -i",
        boxed(replace(ENTERED, interactive=False, words=("docker", "exec", "memory", "cpersona"))),
        says=("docker exec without -i", 'after "exec"'),
    ),
    Graded("registration.docker-interactive", "with -i", boxed(docker()), "pass"),
    Graded("registration.docker-interactive", "no container", facts(ENV), "skipped"),
    Graded(
        "registration.docker-environment",
        "stays outside",
        boxed(docker(), {**ENV, "OTHER": "x"}),
        says=("no -e CPERSONA_DB_PATH hands it on", "before the image", '"-e", "CPERSONA_DB_PATH",'),
        severity="fault",
        count=1,
    ),
    Graded(
        "registration.docker-environment", "of a container made earlier", boxed(ENTERED, ENV), says="container's name"
    ),
    Graded("registration.docker-environment", "by name", boxed(docker(passed=("CPERSONA_DB_PATH",)), ENV), "pass"),
    Graded("registration.docker-environment", "by value", boxed(docker(ENV), ENV), "pass"),
    Graded("registration.docker-environment", "no container", facts(ENV), "skipped"),
    Graded(
        "registration.docker-volume",
        "none",
        boxed(docker({"CPERSONA_DB_PATH": "/data/c.db"})),
        says=('"-v", "cpersona-data:/data",', "/data/c.db inside"),
        severity="fault",
    ),
    Graded("registration.docker-volume", "made earlier", boxed(ENTERED), "skipped"),
    Graded(
        "registration.docker-volume",
        "one",
        boxed(docker({"CPERSONA_DB_PATH": "/data/c.db"}, mounts=(("/home/u/data", "/data"),))),
        "pass",
    ),
    Graded("registration.docker-volume", "no container", facts(ENV), "skipped"),
    Graded("registration.leftover-words", "two", facts(ENV, launch=LEFT), says="'serve --now'", severity="hint"),
    Graded("registration.leftover-words", "none", facts(ENV), "pass"),
    Graded(
        TIMEOUT,
        "shorter than the default",
        within("codex", ENV, fields={"startup_timeout_sec": 5}),
        says=("waits 5 seconds", "startup_timeout_sec = 60"),
        severity="warning",
    ),
    Graded(
        TIMEOUT,
        "the default and nothing cached",
        retarget(within("codex", ENV), version=release(None, floating=True)),
        says="download it first",
        severity="hint",
    ),
    Graded(TIMEOUT, "the default and cached", within("codex", ENV), "pass"),
    Graded(
        TIMEOUT,
        "long enough",
        retarget(within("codex", ENV, fields={"startup_timeout_sec": 60.0}), version=release(None, floating=True)),
        "pass",
    ),
    Graded(TIMEOUT, "no number", within("codex", ENV, fields={"startup_timeout_sec": "5"}), "pass"),
    Graded(TIMEOUT, "another client", facts(ENV), "skipped"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_registration_env(case: Graded) -> None:
    for finding in case.check():
        assert "sk-live-0123456789abcdef" not in everything(finding)
        assert "${MY_KEY}" not in finding.repair.edit


def test_variables_of_a_compose_file_are_looked_at_too() -> None:
    carried = (Variable(URL, "${NOT_SET}/embed", Place(words="compose.yaml"), "compose environment"),)
    launch = Launch(kind=LaunchKind.COMPOSE, package="cpersona", variables=carried, inside="container")
    findings = Graded(UNEXPANDED, "compose", boxed(launch), severity="warning").check()
    assert findings
