from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import document

import cpersona_cli
from cpersona_cli import app
from cpersona_cli.commands import options
from cpersona_cli.commands.errors import CommandError
from cpersona_cli.commands.options import Job
from cpersona_cli.commands.overview import QUESTIONS
from cpersona_cli.commands.process import TerminatedError
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.model import Report
from cpersona_cli.report.output import FORMATS, Output
from cpersona_cli.words import COMMANDS

SCRIPT = Path(sys.executable).with_name("cpersona-cli")


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("CPERSONA_", "EMBEDDING_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _same_handler() -> object:
    """Leave this process's handlers as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


pytestmark = pytest.mark.usefixtures("_same_handler")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["--version", "doctor"]) == 0
    assert capsys.readouterr() == (f"cpersona-cli {cpersona_cli.__version__}\n", "")


@pytest.mark.parametrize(
    "argv", [["--help"], ["-h"], *([word, "--help"] for word in COMMANDS), ["traps", "list", "-h"]], ids=" ".join
)
def test_help_starts_with_examples_and_is_plain(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(argv) == 0
    text, errors = capsys.readouterr()
    assert errors == ""
    assert text.isascii()
    assert "\x1b" not in text
    assert text.index("    cpersona-cli ") < text.index("Options:")


def test_the_help_names_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    app.main(["doctor", "--help"])
    assert f"--format {'|'.join(FORMATS)}" in capsys.readouterr().out


def test_alone_it_says_what_it_found_and_where_to_begin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert app.main([]) == 0
    assert "no registration of CPersona was found in the files of" in capsys.readouterr().out
    entry = {"command": "uvx", "args": ["cpersona"], "env": {"CPERSONA_DB_PATH": str(tmp_path / "memory.db")}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"cpersona": entry}}), encoding="utf-8")
    monkeypatch.setenv("CPERSONA_CLI_FORMAT", "json")
    assert app.main([]) == 0
    said = document(capsys.readouterr().out)
    assert [found["name"] for found in said["registrations"]] == ["cpersona"]
    assert said["next_command"] == "cpersona-cli doctor"


def test_every_command_answers_a_question() -> None:
    assert {name for name, _ in QUESTIONS} == set(COMMANDS)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([""], f"say what to do: {' or '.join(COMMANDS)}"),
        (["docter"], "no such command: docter; did you mean doctor?"),
        (["serve"], f"no such command: serve; there are {', '.join(COMMANDS)}"),
        (["a\x1b\udcff"], r"no such command: a\x1b\udcff"),
        (["--vers"], "no such option"),
    ],
    ids=repr,
)
def test_usage_errors(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(argv) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert said in " ".join(errors.split())
    assert "Next: cpersona-cli --help" in errors


def job(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let every command line ask for a run that ends in ``error``."""

    def run() -> Report:
        raise error

    monkeypatch.setattr(app, "_parse", lambda _argv: Job(Output(format="json"), run))


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted; nothing was changed"),
        (TerminatedError(), 143, "terminated; nothing was changed"),
        (CommandError("why"), 3, "why"),
        (MemoryError("sk-secret"), 3, "this is a bug in cpersona-cli"),
        (ValueError("sk-secret"), 3, "ValueError at test_app.py:"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_a_run_that_ends_badly_is_one_document(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job(monkeypatch, error)
    assert app.main(["doctor"]) == code
    out, errors = capsys.readouterr()
    assert said in document(out)["error"]
    assert "sk-secret" not in out
    assert errors == ""


def test_a_crash_shows_where_it_came_from_only_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job(monkeypatch, ValueError("sk-secret"))
    monkeypatch.setenv("CPERSONA_CLI_DEBUG", "1")
    assert app.main(["doctor"]) == 3
    out, errors = capsys.readouterr()
    assert document(out)["error"]
    assert "in run" in errors
    assert "sk-secret" not in errors


def test_a_crash_while_parsing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def settle(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(options, "settle", settle)
    assert app.main(["doctor", "--json"]) == 3
    assert "ZeroDivisionError" in document(capsys.readouterr().out)["error"]


@pytest.mark.parametrize(("ended", "code"), [(SystemExit(1), 1), (SystemExit(), 0), (SystemExit("text"), 0)])
def test_the_parser_may_end_the_process_itself(ended: SystemExit, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(_argv: object) -> int:
        raise ended

    monkeypatch.setattr(app, "_parse", parse)
    assert app.main(["doctor"]) == code


def test_exit_codes_are_those_of_the_contract() -> None:
    assert [int(code) for code in Exit] == [0, 1, 2, 3, 130, 143]


WAITING = """
import sys, time
from cpersona_cli import app
from cpersona_cli.commands.options import Job
from cpersona_cli.commands.overview import QUESTIONS
from cpersona_cli.report.output import Output

def run():
    print("ready", file=sys.stderr, flush=True)
    time.sleep(60)

app._parse = lambda _argv: Job(Output(format="json"), run)
sys.exit(app.main(["doctor"]))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals(number: int, code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        process.send_signal(number)
        out, errors = process.stdout.read(), process.stderr.read()
    assert process.returncode == code
    assert document(out)["exit_code"] == code
    assert errors == ""


def test_an_interruption_while_the_words_are_parsed_is_a_document_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def settle(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(options, "settle", settle)
    assert app.main(["doctor", "--json"]) == 130
    assert document(capsys.readouterr().out)["exit_code"] == 130


URL_MISSING = ["--only", "names.url-missing"]
FOR_AGENTS: tuple[tuple[int, dict[str, str], list[str], str], ...] = (
    (0, {}, ["doctor", "--env", *URL_MISSING], "summary: 1 check, 0 faults"),
    (1, {"CPERSONA_EMBEDDING_MODE": "http"}, ["doctor", "--env", *URL_MISSING], "## FAULT names.url-missing"),
    (2, {}, ["reembed", "--only", "that"], "error: "),
    (3, {}, ["doctor", *URL_MISSING], "unknown: no registration of CPersona was found"),
)


@pytest.mark.parametrize(("code", "env", "words", "said"), FOR_AGENTS, ids=str)
def test_the_format_for_agents_says_its_exit_code(code: int, env: dict[str, str], words: list[str], said: str) -> None:
    answer = subprocess.run(
        [SCRIPT, *words, "--format", "agent"], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stderr) == (code, "")
    lines = answer.stdout.splitlines()
    assert lines[0].endswith("/agent/1")
    assert lines[2] == f"exit: {code}"
    assert any(line.startswith(said) for line in lines)


SLOW_READER = """
import os, sys, time
from cpersona_cli import app
from cpersona_cli.commands.options import Job
from cpersona_cli.commands.overview import QUESTIONS
from cpersona_cli.report.model import Report
from cpersona_cli.report.output import Output

report = Report(command="doctor", notes=["x" * 100] * 10_000)
app._parse = lambda _argv: Job(Output(format="json"), lambda: report)
sys.exit(app.main(["doctor"]))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_half_a_document_is_not_followed_by_another(number: int, code: int) -> None:
    with subprocess.Popen([sys.executable, "-c", SLOW_READER], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        out = child.stdout.read(1)  # it is writing, and the pipe is too small for all of it
        child.send_signal(number)
        out += child.stdout.read()
        assert b"nothing was changed" in child.stderr.read()
    assert child.returncode == code
    assert out.count(b'"schema"') == 1


STUBBORN = """
import signal, sys, time
from cpersona_cli import app
from cpersona_cli.commands.options import Job
from cpersona_cli.commands.overview import QUESTIONS
from cpersona_cli.report import output

def run():
    signal.raise_signal(signal.SIGINT)

def write(stream, rendered):
    print("answering", file=sys.stderr, flush=True)
    time.sleep(60)

output._write = write
app._parse = lambda _argv: Job(output.Output(format="json"), run)
sys.exit(app.main(["doctor"]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(number: int) -> None:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        assert child.stderr.readline() == "answering\n"
        child.send_signal(number)
        assert child.stderr.read() == ""
    assert child.returncode == -number


ENDING = """
import atexit, signal, sys
from cpersona_cli import entry

atexit.register(lambda: [signal.raise_signal(n) for n in (signal.SIGINT, signal.SIGTERM)])
sys.argv = ["cpersona-cli", "traps", "explain", "names.url-missing", "--json"]
entry.tool()
"""


def test_a_signal_after_the_result_does_not_contradict_it() -> None:
    answer = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert document(answer.stdout)["exit_code"] == 0


def test_an_interruption_before_there_is_anything_to_report_with() -> None:
    code = (
        "import signal, sys; from cpersona_cli import entry, app; sys.argv = ['cpersona-cli', 'doctor']\n"
        "def main(_argv): signal.raise_signal(signal.SIGINT)\n"
        "app.main = main; entry.tool()"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout, answer.stderr) == (130, "", "")


def test_an_interruption_while_the_tool_is_loaded_says_nothing() -> None:
    """Wherever it comes, also in a callback of the import machinery, which prints what it catches and goes on."""
    code = (
        "import signal, sys\n"
        "before = set(sys.modules)\n"
        "from cpersona_cli import entry\n"
        "known = {'__future__', 'cpersona_cli', 'cpersona_cli.entry'}\n"
        "assert set(sys.modules) - before <= known, 'reading it takes too long'\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'cpersona_cli.app':\n"
        "            try: signal.raise_signal(signal.SIGINT)\n"
        "            except KeyboardInterrupt: print('Exception ignored')\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['cpersona-cli', '--version']\n"
        "entry.tool()"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout, answer.stderr) == (130, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("words", [["--version"], ["--help"], ["doctor", "-h"], ["traps", "--help"]], ids=" ".join)
def test_an_answer_that_a_full_disk_refuses(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        answer = subprocess.run([SCRIPT, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert answer.returncode == 3
    assert "cannot write the answer: No space left on device" in answer.stderr
    assert "bug" not in answer.stderr


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize(
    "words",
    [["doctor", "--env", "--only", "names.url-missing"], ["--version"], ["reembed", "--only", "that"]],
    ids=" ".join,
)
def test_closed_streams(words: list[str], closed: tuple[int, ...]) -> None:
    shell = " ".join(['exec "$@"', *(f"{number}>&-" for number in closed)])
    answer = subprocess.run(["sh", "-c", shell, "sh", SCRIPT, *words], capture_output=True, text=True, check=False)
    assert answer.returncode == (2 if words[0] == "reembed" else 0)
    assert "Traceback" not in answer.stderr


def test_a_full_pipe_that_nobody_reads_is_quiet() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for words, code in ((["traps", "list"], 0), (["--version"], 0), (["doctor", "--help"], 0)):
        answer = subprocess.run([SCRIPT, *words], stdout=writing, stderr=subprocess.PIPE, check=False)
        assert (answer.returncode, answer.stderr) == (code, b"")
    os.close(writing)


def test_version_help_and_errors_import_no_more_than_they_need() -> None:
    heavy = "{'typer', 'rich', 'httpx', 'numpy', 'asyncio', 'cpersona_cli.traps.model'}"
    for argv, allowed in ((["--version"], set()), (["--help"], {"typer"}), (["doctor", "--help"], {"typer"})):
        code = f"import sys; from cpersona_cli.app import main; main({argv}); print(sorted({heavy} & set(sys.modules)))"
        answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert answer.stdout.splitlines()[-1] == str(sorted(allowed))
