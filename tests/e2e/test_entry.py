"""The two scripts beside the real server, whichever of the two distributions was installed last."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

import pytest
import typer
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from support.installs import build_wheel, environment, server_wheel

import cpersona_cli
from cpersona_cli.words import COMMANDS

pytestmark = pytest.mark.server


class Installs(NamedTuple):
    """Script folders of three environments."""

    tool_last: Path
    server_last: Path
    tool_alone: Path


@pytest.fixture(scope="module")
def installs(tmp_path_factory: pytest.TempPathFactory) -> Installs:
    wheels = tmp_path_factory.mktemp("wheels")
    ours, server = build_wheel(wheels), server_wheel(wheels)
    root = tmp_path_factory.mktemp("environments")
    alone = environment(root / "alone", ours)
    site = next((root / "alone").glob("lib/python*/site-packages"))
    # Without the server, only what the tool itself depends on may be borrowed.
    (site / "borrowed.pth").unlink()
    source = Path(typer.__file__).parents[1]
    for name in ("typer", "shellingham", "rich", "markdown_it", "mdurl", "pygments", "platformdirs", "tomli_w"):
        (site / name).symlink_to(source / name)
    return Installs(environment(root / "a", server, ours), environment(root / "b", ours, server), alone)


@pytest.fixture
def scratch(tmp_path: Path) -> dict[str, str]:
    """An environment in which a server may write only below ``tmp_path``."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "CPERSONA_DB_PATH": str(tmp_path / "memory.db"),
        "CPERSONA_EMBEDDING_MODE": "none",
        "CPERSONA_UPDATE_CHECK": "false",
    }


MESSAGES: tuple[tuple[str, dict[str, object] | None], ...] = (
    (
        "initialize",
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    ),
    ("notifications/initialized", None),
    ("tools/list", {}),
    ("tools/call", {"name": "recall", "arguments": {"agent_id": "a", "query": "tea", "limit": 1}}),
    ("no/such/method", {}),
)


def conversation(command: list[str | Path], env: dict[str, str]) -> list[bytes]:
    """The raw lines a server puts on stdout for ``MESSAGES``, up to the end of its output."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=env["HOME"]
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = []
        for number, (method, parameters) in enumerate(MESSAGES):
            message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": parameters or {}}
            if not method.startswith("notifications/"):
                message["id"] = number
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            if "id" in message:
                lines.append(process.stdout.readline())
        process.stdin.close()
        lines.append(process.stdout.read())
    return lines


def test_an_mcp_client_notices_no_difference(installs: Installs, tmp_path: Path, scratch: dict[str, str]) -> None:
    original = conversation([installs.server_last / "cpersona"], scratch)
    assert b"cpersona" in original[0]
    assert len(original[1]) > 10_000, "the list of tools"
    for arguments in ([], ["serve"], ["--stdio"]):
        (tmp_path / "memory.db").unlink()
        assert conversation([installs.tool_last / "cpersona", *arguments], scratch) == original


@pytest.mark.parametrize(("which", "arguments"), [("tool_last", ["serve"]), ("server_last", [])])
def test_the_mcp_library_stores_and_recalls(
    installs: Installs, scratch: dict[str, str], which: str, arguments: list[str]
) -> None:
    script = getattr(installs, which) / "cpersona"

    async def talk(log: TextIO) -> str:
        parameters = StdioServerParameters(command=str(script), args=arguments, env=scratch, cwd=scratch["HOME"])
        async with (
            stdio_client(parameters, errlog=log) as (reader, writer),
            ClientSession(reader, writer) as session,
        ):
            await session.initialize()
            memory = {"content": "Aya drinks green tea.", "timestamp": "2026-01-02T03:04:05+00:00"}
            await session.call_tool("store", {"agent_id": "a", "message": memory})
            found = await session.call_tool("recall", {"agent_id": "a", "query": "green tea", "limit": 1})
        return str(found.content)

    with Path(scratch["HOME"], "log").open("w") as log:
        assert "Aya drinks green tea." in asyncio.run(talk(log))


class Ended(NamedTuple):
    """How a server ended: its exit code, negative for a signal, and the rest of its stdout."""

    code: int
    out: bytes


def ended(script: Path, env: dict[str, str], number: int | None) -> Ended:
    """Start a server, wait for its first answer, then send a signal or close its stdin."""
    with subprocess.Popen(
        [script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=env["HOME"]
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        method, parameters = MESSAGES[0]
        message = {"jsonrpc": "2.0", "id": 0, "method": method, "params": parameters}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        assert b"cpersona" in process.stdout.readline()
        if number is None:
            process.stdin.close()
        else:
            process.send_signal(number)
        return Ended(process.wait(30), process.stdout.read())


@pytest.mark.parametrize(
    ("number", "code"),
    [(None, 0), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)],
    ids=["end of stdin", "SIGTERM", "SIGHUP"],
)
def test_a_server_ends_as_the_original_does(
    installs: Installs, scratch: dict[str, str], number: int | None, code: int
) -> None:
    original = ended(installs.server_last / "cpersona", scratch, number)
    assert ended(installs.tool_last / "cpersona", scratch, number) == original == Ended(code, b"")


def test_a_server_that_refuses_to_start_keeps_its_exit_code(installs: Installs, scratch: dict[str, str]) -> None:
    refused = {**scratch, "CPERSONA_EMBEDDING_MODE": "openai"}
    original = run([installs.server_last / "cpersona"], refused)
    ours = run([installs.tool_last / "cpersona"], refused)
    assert (ours.returncode, ours.stdout) == (original.returncode, original.stdout) == (1, "")
    assert ours.stderr.splitlines()[-1] == original.stderr.splitlines()[-1]


@pytest.mark.parametrize("stream", ["<&- 2>&-", ">&-"])
def test_a_closed_stream_is_no_different(installs: Installs, scratch: dict[str, str], stream: str) -> None:
    answers = [
        run(["sh", "-c", f'exec "$0" {stream}', folder / "cpersona"], scratch)
        for folder in (installs.server_last, installs.tool_last)
    ]
    original, ours = ((answer.returncode, answer.stdout, answer.stderr.splitlines()[-1:]) for answer in answers)
    assert ours == original


def test_the_server_finds_none_of_this_tool_around_it(installs: Installs, scratch: dict[str, str]) -> None:
    """What the way to the server loads before it: no parser, no application, no handler of a signal."""
    code = (
        "import signal, sys\n"
        "from cpersona_cli import entry\n"
        "def server():\n"
        "    loaded = {name.partition('.')[0] for name in sys.modules} & {'typer', 'rich', 'httpx', 'sqlite3'}\n"
        "    ours = sorted(name for name in sys.modules if name.startswith('cpersona_cli'))\n"
        "    default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
        "    print(sorted(loaded), ours, default, sys.argv[1:])\n"
        "    return 7\n"
        "entry._server = lambda: server\n"
        "sys.argv = ['cpersona', '--stdio', 'x']\n"
        "entry.dispatch()\n"
    )
    answer = run([installs.tool_last / "python", "-c", code], scratch)
    known = ["cpersona_cli", "cpersona_cli.entry", "cpersona_cli.text", "cpersona_cli.words"]
    assert (answer.stdout, answer.returncode) == (f"[] {known} True ['--stdio', 'x']\n", 7)


def run(command: list[str | Path], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=env,
        cwd=env["HOME"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("script", ["cpersona", "cpersona-cli"])
def test_our_own_words_reach_this_tool(installs: Installs, scratch: dict[str, str], script: str) -> None:
    program = installs.tool_last / script
    assert cpersona_cli.__version__ in run([program, "--version"], scratch).stdout
    for flag in ("-h", "--help"):
        assert "doctor" in run([program, flag], scratch).stdout
    for word in COMMANDS if script == "cpersona" else COMMANDS[:1]:
        assert word in run([program, word, "--help"], scratch).stdout
    assert not Path(scratch["CPERSONA_DB_PATH"]).exists(), "a server was started"


def test_the_tool_keeps_its_own_script_when_the_server_comes_later(installs: Installs, scratch: dict[str, str]) -> None:
    assert cpersona_cli.__version__ in run([installs.server_last / "cpersona-cli", "--version"], scratch).stdout


@pytest.mark.parametrize(
    ("word", "meant"),
    [("docter", "doctor"), ("Doctor", "doctor"), ("proob", "probe"), ("--hlep", "--help"), ("reembd", "reembed")],
)
def test_a_mistyped_word_is_refused_in_ci(installs: Installs, scratch: dict[str, str], word: str, meant: str) -> None:
    answer = run([installs.tool_last / "cpersona", word], scratch)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert word in answer.stderr
    assert f"did you mean: cpersona {meant}" in answer.stderr
    assert not Path(scratch["CPERSONA_DB_PATH"]).exists(), "a server was started"


@pytest.fixture
def terminal() -> Iterator[int]:
    master, slave = pty.openpty()
    yield slave
    os.close(slave)
    os.close(master)


@pytest.mark.parametrize(
    ("word", "said"), [("docter", "cpersona doctor"), ("serve", f"cpersona-cli {{{','.join(COMMANDS)}}}")]
)
def test_at_a_terminal_no_word_starts_a_server(
    installs: Installs, scratch: dict[str, str], terminal: int, word: str, said: str
) -> None:
    answer = subprocess.run(
        [installs.tool_last / "cpersona", word],
        env=scratch,
        cwd=scratch["HOME"],
        stdin=terminal,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (2, "")
    assert said in answer.stderr


@pytest.mark.parametrize("arguments", [[], ["serve"]])
def test_without_a_server_it_says_so(installs: Installs, scratch: dict[str, str], arguments: list[str]) -> None:
    answer = run([installs.tool_alone / "cpersona", *arguments], scratch)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "not installed in this environment" in answer.stderr
