from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.documents import document
from support.reports import FAILING, NOTHING, PASSING, USAGE

from cpersona_cli.record import replace
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.model import Report
from cpersona_cli.report.output import FORMATS, Output, OutputError, check_format, emit, parse_outputs, style, wanted


def test_the_formats() -> None:
    assert list(FORMATS) == ["text", "json", "agent", "sarif", "junit", "github", "markdown", "html"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("jsn", "did you mean json?"), ("csv", "formats: text, json, agent, sarif, junit, github, markdown, html")],
)
def test_an_unknown_format_is_answered_with_those_there_are(name: str, said: str) -> None:
    with pytest.raises(OutputError, match="unknown format") as raised:
        check_format(name)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("out", ("text", "out")),
        ("out.json", ("json", "out.json")),
        ("out.JSON", ("json", "out.JSON")),
        ("out.txt", ("text", "out.txt")),
        ("json:out", ("json", "out")),
        ("text:out.json", ("text", "out.json")),
        ("./a:b", ("text", "./a:b")),
        ("a:b", ("text", "a:b")),
        ("json:C:out", ("json", "C:out")),
    ],
)
def test_an_output_names_its_format(
    spec: str, expected: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_outputs([spec], "text") == ((expected[0], Path(expected[1])),)


def test_a_file_without_a_format_has_the_one_chosen(tmp_path: Path) -> None:
    assert parse_outputs([str(tmp_path / "out")], "json")[0][0] == "json"


def test_a_windows_drive_is_no_format() -> None:
    with pytest.raises(OutputError, match="no folder") as raised:
        parse_outputs([r"C:\out\report.json", "C:/out/report.json"], "text")
    assert "unknown format" not in str(raised.value)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("xml:out", "unknown format 'xml'"),
        ("jsno:out", "did you mean json?"),
        ("", "no file name"),
        ("json:", "no file name"),
        ("a\0b", "no file name"),
        ("missing/out", "there is no folder missing"),
        ("folder", "that is a folder"),
        ("file/out", "there is no folder file"),
        ("x" * 300, "File name too long"),
    ],
)
def test_an_output_that_cannot_be_is_named(
    spec: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as raised:
        parse_outputs([spec], "text")
    assert said in str(raised.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"], "checking writes nothing"


STRANGER = """
import os, sys
from cpersona_cli.report.output import OutputError, parse_outputs
if os.getuid() == 0:  # root may write anywhere
    os.setuid(65534)
try:
    parse_outputs([sys.argv[1]], "text")
except OutputError as error:
    print(error)
"""


def test_a_place_without_permission_is_named() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        command = [sys.executable, "-c", STRANGER, str(folder / "out")]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        folder.chmod(0o755)
    assert answer.stdout == f"cannot write --output {name}/out: permission denied\n"


def test_one_file_cannot_hold_two_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match="names out twice"):
        parse_outputs(["json:out", "text:out"], "text")


@pytest.mark.parametrize(
    ("argv", "env", "name"),
    [
        (["doctor"], {}, "text"),
        ([], {}, "text"),
        (["doctor", "--json"], {}, "json"),
        (["doctor", "--format", "json"], {}, "json"),
        (["doctor", "-f", "json"], {}, "json"),
        (["doctor", "--format=json"], {}, "json"),
        (["doctor", "--json=yes"], {}, "json"),
        (["doctor", "-fjson"], {}, "json"),
        (["doctor", "-qvfjson"], {}, "json"),
        (["doctor", "-qf", "json"], {}, "json"),
        (["doctor", "-of", "json"], {}, "text"),
        (["doctor", "--jsonl"], {}, "text"),
        (["doctor", "--format"], {}, "text"),
        (["doctor", "--format=xml"], {}, "text"),
        (["doctor", "--", "--json"], {}, "text"),
        (["doctor"], {"CPERSONA_CLI_FORMAT": "json"}, "json"),
        (["doctor", "--format", "text"], {"CPERSONA_CLI_FORMAT": "json"}, "text"),
    ],
)
def test_the_form_of_an_error_is_told_from_the_words(argv: list[str], env: dict[str, str], name: str) -> None:
    assert wanted(argv, env).format == name


def test_the_configured_form_counts_where_nothing_else_is_said() -> None:
    assert wanted(["doctor"], {}, "json").format == "json"
    assert wanted(["doctor", "-f", "text"], {}, "json").format == "text"
    assert wanted(["doctor"], {"CPERSONA_CLI_FORMAT": "text"}, "json").format == "text"


def test_no_report_replaces_a_database(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    file.write_bytes(b"SQLite format 3\0" + bytes(4080))
    with pytest.raises(OutputError, match="that is a database"):
        parse_outputs([f"json:{file}"], "text")
    file.write_text("cpersona-cli doctor ...")
    assert parse_outputs([f"json:{file}"], "text") == (("json", file),)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("output", "env", "terminal", "color"),
    [
        (Output(), {}, True, True),
        (Output(), {}, False, False),
        (Output(), {"NO_COLOR": "1"}, True, False),
        (Output(), {"NO_COLOR": ""}, True, True),
        (Output(), {"TERM": "dumb"}, True, False),
        (Output(color="never"), {}, True, False),
        (Output(color="always"), {"NO_COLOR": "1"}, False, True),
    ],
)
def test_when_colors_are_used(output: Output, env: dict[str, str], terminal: bool, color: bool) -> None:
    assert style(output, Terminal() if terminal else io.StringIO(), env).color is color


@pytest.mark.parametrize(
    ("columns", "width"), [("100", 100), ("0", 80), ("-3", 80), ("wide", 80), ("², ", 80), ("", 80), ("99999", 80)]
)
def test_width_without_a_terminal(columns: str, width: int) -> None:
    assert style(Output(), io.StringIO(), {"COLUMNS": columns}).width == width


def test_a_closed_stream_is_no_terminal() -> None:
    stream = io.StringIO()
    stream.close()
    assert style(Output(), stream, {}).color is False
    assert style(Output(), None, {}).color is False


def test_files_and_stdout_hold_the_same_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(files=(("json", tmp_path / "a.json"), ("text", tmp_path / "a.txt")), color="always")
    assert emit(FAILING, output, env={}) is Exit.NEGATIVE
    captured = capsys.readouterr()
    assert document((tmp_path / "a.json").read_text("utf-8"))["exit_code"] == 1
    assert "\x1b" in captured.out
    assert "\x1b" not in (tmp_path / "a.txt").read_text("utf-8")
    assert captured.err == ""


@pytest.mark.parametrize(("report", "code"), [(PASSING, Exit.NO_VERDICT), (FAILING, Exit.NEGATIVE)])
def test_an_unwritable_file_is_named_and_never_passes(
    report: Report, code: Exit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = Output(format="json", files=(("text", tmp_path / "gone" / "a"),))
    assert emit(report, output, env={}) is code
    captured = capsys.readouterr()
    found = document(captured.out)
    assert found["exit_code"] == code
    assert f"cannot write --output {tmp_path}/gone/a: No such file or directory" in found["unsettled"]
    assert f"{tmp_path}/gone/a" in captured.err


def test_errors_go_to_stderr_in_text_and_to_stdout_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert emit(USAGE, Output(), env={}) is Exit.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "unknown client" in captured.err
    assert emit(USAGE, Output(format="json"), env={}) is Exit.USAGE
    captured = capsys.readouterr()
    assert document(captured.out)["error"] == USAGE.error
    assert captured.err == ""


CHILD = """
import sys
from support.reports import ALL
from cpersona_cli.commands.process import prepare
from cpersona_cli.report.output import Output, emit
prepare()
sys.exit(emit(ALL[sys.argv[1]], Output(format=sys.argv[2])))
"""


def child(*words: str, closed: tuple[int, ...] = (), **options: object) -> subprocess.CompletedProcess[bytes]:
    """A process that presents a report; ``closed`` are the descriptors it starts without."""
    shell = " ".join(['exec "$@"', *(f"{number}>&-" for number in closed)])
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONUTF8": "0"}
    environment.update(options.pop("env", {}))  # type: ignore[call-overload]
    defaults: dict[str, object] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        ["sh", "-c", shell, "sh", sys.executable, "-c", CHILD, *words],
        env=environment,
        timeout=60,
        check=False,
        **{**defaults, **options},
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-16"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_any_encoding_of_stdout_is_survived(encoding: str, form: str) -> None:
    answer = child("failing", form, env={"PYTHONIOENCODING": encoding})
    assert (answer.returncode, answer.stderr) == (1, b"")
    text = answer.stdout.decode(encoding)
    assert "names.url-missing" in text
    if form == "json":
        assert document(text)["exit_code"] == 1


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_reader_that_went_away_is_no_error(form: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    answer = child("failing", form, stdout=writing)
    os.close(writing)
    assert (answer.returncode, answer.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize(("name", "code"), [("passing", 3), ("failing", 1)])
def test_a_full_disk_is_named_and_never_passes(name: str, code: int) -> None:
    with Path("/dev/full").open("wb") as full:
        answer = child(name, "json", stdout=full)
    assert answer.returncode == code
    assert b"cannot write the result: No space left on device" in answer.stderr


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_streams_are_survived(closed: tuple[int, ...]) -> None:
    answer = child("passing", "json", closed=closed)
    assert answer.returncode == 0
    assert answer.stderr == b""
    if 1 not in closed:
        assert json.loads(answer.stdout)["verdict"] == "pass"


def test_a_terminal_gets_colors_and_its_own_width() -> None:
    master, slave = pty.openpty()
    answer = child("nothing", "text", stdout=slave, env={"TERM": "xterm", "NO_COLOR": "", "COLUMNS": "60"})
    os.close(slave)
    shown = os.read(master, 1 << 16)
    os.close(master)
    assert answer.returncode == NOTHING.exit_code
    assert b"\x1b[1;33mUNKNOWN" in shown


def test_a_text_stream_that_is_closed_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stdout", stream)
    assert emit(PASSING, Output(), env={}) is Exit.OK
    monkeypatch.setattr(sys, "stdout", None)
    assert emit(replace(PASSING, fail_on=PASSING.fail_on), Output(), env={}) is Exit.OK
