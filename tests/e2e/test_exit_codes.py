"""Every exit code in every format, by the installed script: what the process ends with is what its document says."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from junitparser import Error, Failure, JUnitXml
from pytest_console_scripts import ScriptRunner
from support import runs

from cpersona_cli.report.output import FORMATS

SCRIPT = Path(sys.executable).with_name("cpersona-cli")
ENV = ("--env", "--pre", "--offline")
#: What ends with each code: a line, and what is set in the environment beside the mode.
LINES: Mapping[int, tuple[tuple[str, ...], Mapping[str, str]]] = {
    0: (ENV, {"CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/embed"}),
    1: (ENV, {}),
    2: (("--client", "nobody"), {}),
    3: (("--offline",), {}),
}


def told(form: str, text: str) -> tuple[str, int | None]:
    """The verdict that a document tells, and the exit code where the format has a place for it."""
    match form:
        case "json":
            found = json.loads(text)
            return found["verdict"], found["exit_code"]
        case "agent":
            _, verdict, code = text.splitlines()[:3]
            return verdict.removeprefix("verdict: "), int(code.removeprefix("exit: "))
        case "sarif":
            (run,) = json.loads(text)["runs"]
            return run["properties"]["verdict"], run["invocations"][0]["exitCode"]
        case "junit":
            results = [
                result for suite in JUnitXml.fromstring(text.encode()) for case in suite for result in case.result
            ]
            failed = any(isinstance(result, Failure) for result in results)
            return "fail" if failed else "unknown" if any(isinstance(r, Error) for r in results) else "pass", None
        case "github":
            first = text.splitlines()[0]
            words = re.fullmatch(r"cpersona-cli \w+: ([A-Z]+), .*", first)
            return ("unknown" if first.startswith("::error title=") else words[1].lower() if words else first), None
        case "markdown" | "html":
            (verdict,) = re.findall(r"(?:^## .*: \S+ |<title>.*: )(pass|fail|no verdict)", text)
            return verdict.replace("no verdict", "unknown"), None
        case _:
            words = re.search(r"^(PASS|FAIL|UNKNOWN)   ", text, re.MULTILINE)
            return words[1].lower() if words else "unknown", None


VERDICTS = {0: "pass", 1: "fail"}


@pytest.mark.script_launch_mode("inprocess")
@pytest.mark.parametrize("code", LINES)
def test_a_run_ends_alike_in_every_format(
    code: int, tmp_path: Path, script_runner: ScriptRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = runs.empty_home(tmp_path, monkeypatch)
    words, env = LINES[code]
    environment = {**os.environ, "CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_DB_PATH": str(home / "c.db"), **env}
    for form in FORMATS:
        done = script_runner.run(
            ["cpersona-cli", "doctor", *words, "--format", form], cwd=home, env=environment, stdin=io.StringIO()
        )
        assert done.returncode == code, form
        to_stderr = form == "text" and code == 2  # a person sees an error beside a redirected result
        assert (done.stdout == "", done.stderr == "") == (to_stderr, not to_stderr), form
        verdict, stated = told(form, done.stdout)
        assert (verdict, stated) in {(VERDICTS.get(code, "unknown"), code), (VERDICTS.get(code, "unknown"), None)}, form


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_stopped_ends_alike_in_every_format(number: int, code: int, tmp_path: Path) -> None:
    files = {form: tmp_path / form for form in FORMATS}
    outputs = [word for form, file in files.items() for word in ("--output", f"{form}:{file}")]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/embed"
        line = [str(SCRIPT), "probe", "--url", url, "--json", *outputs]
        env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as run:
            connection, _ = silent.accept()  # it has begun, and nobody answers
            run.send_signal(number)
            out, errors = run.communicate(timeout=60)
            connection.close()
    assert (run.returncode, errors) == (code, "")
    assert told("json", out) == ("unknown", code)
    for form, file in files.items():
        text = file.read_text(encoding="utf-8")
        verdict, stated = told(form, text)
        assert (verdict, stated or code) == ("unknown", code), form
        assert "nothing was changed" in text, form
