from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pytest_console_scripts import ScriptRunner
from support import runs
from support.documents import document
from support.endpoints_small import serving

from cpersona_cli.install.clients.table import CLIENTS
from cpersona_cli.traps.registry import ALL

SECRET = "sk-live-0123456789abcdef"
HEALTHY = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/embed"}
URLLESS = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_API_KEY": SECRET}
ONLY = ("--only", "names.url-missing")


pytestmark = pytest.mark.script_launch_mode("inprocess")


class Answer(runs.Run):
    """What one run of ``doctor`` said."""

    command = "doctor"

    @property
    def last(self) -> str:
        """The whole last line."""
        return self.out.splitlines()[-1]


Doctor = Callable[..., Answer]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return runs.empty_home(tmp_path, monkeypatch)


@pytest.fixture
def doctor(home: Path, script_runner: ScriptRunner) -> Doctor:
    def run(*words: str, command: str = "doctor", env: Mapping[str, str] | None = None) -> Answer:
        result = script_runner.run(
            ["cpersona-cli", command, *words], cwd=home, env={**os.environ, **(env or {})}, stdin=io.StringIO()
        )
        return Answer(result.returncode, result.stdout, result.stderr)

    return run


@pytest.fixture
def register(home: Path) -> Callable[..., Path]:
    def write(env: Mapping[str, object], name: str = ".claude.json") -> Path:
        file = home / name
        entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": env}
        file.write_text(json.dumps({"mcpServers": {"cpersona": entry}}, indent=2))
        return file

    return write


Register = Callable[..., Path]


@pytest.mark.script_launch_mode("subprocess")
def test_a_pass(doctor: Doctor, register: Register) -> None:
    register(HEALTHY)
    answer = doctor(*ONLY)
    assert (answer.code, answer.err) == (0, "")
    assert answer.last.startswith("PASS   1 check, 0 faults, 0 warnings, ")
    found = doctor(*ONLY, "--json").json
    assert (found["exit_code"], found["verdict"], found["checks_run"]) == (0, "pass", 1)
    assert found["checks_skipped"] == len(ALL) - 1


def test_a_fault(doctor: Doctor, register: Register) -> None:
    file = register(URLLESS)
    answer = doctor(*ONLY)
    assert (answer.code, answer.err) == (1, "")
    assert answer.last.endswith("Next: cpersona-cli traps explain names.url-missing")
    assert "~/.claude.json:" in answer.out
    assert "verify     cpersona-cli doctor --only names.url-missing" in answer.out
    found = doctor(*ONLY, "--json").json
    assert (found["exit_code"], found["verdict"]) == (1, "fail")
    assert found["findings"][0]["place"]["file"] == str(file)
    line = found["findings"][0]["place"]["line"]
    assert "CPERSONA_EMBEDDING_MODE" in file.read_text().splitlines()[line - 1]


def test_nothing_found_names_every_place(doctor: Doctor) -> None:
    answer = doctor()
    assert (answer.code, answer.err) == (3, "")
    assert "UNKNOWN  no registration of CPersona was found" in answer.out
    for client in ("claude-code", "codex", "cursor", "vscode", "zed"):
        assert f"({client}): absent" in answer.out
    assert answer.last.endswith("Next: cpersona-cli doctor --registration FILE")
    found = doctor("--json").json
    assert (found["exit_code"], found["verdict"]) == (3, "unknown")
    assert any("/.claude.json (claude-code): absent" in place for place in found["looked"])
    assert {place["state"] for place in found["searched"]} == {"absent"}


def test_a_registration_that_no_client_starts_is_no_pass(doctor: Doctor, home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text('[mcp_servers.cpersona]\ncommand = "cpersona"\nenabled = false\n')
    answer = doctor("--fail-on", "never")
    assert answer.code == 3
    assert "1 registration found, and no client would start any of them" in answer.out
    assert "disabled" in answer.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--client", "claud-code"], "did you mean claude-code?"),
        (["--client", "emacs"], ", ".join(list(CLIENTS)[:3])),
        (["--only", "nmes"], "did you mean names?"),
        (["--only", "url-missing"], "did you mean names.url-missing?"),
        (["--only", "what.ever-this-is"], "see: cpersona-cli traps list"),
        (["--skip", "names.url-mising,names"], "did you mean names.url-missing?"),
        (["--require", "names"], "--require takes the id of a check, not the group names"),
        (["--require", "names.url-mising"], "did you mean names.url-missing?"),
        (["--fail-on", "warnings"], "did you mean warning?"),
        (["--timeout", "0"], "--timeout takes a number of seconds above 0"),
        (["--timeout", "soon"], "'soon' is not a valid float"),
        (["--color", "red"], "--color takes one of auto, always, never"),
        (["--waivers", "gone.toml"], "gone.toml: there is no such file"),
        (["--write-waivers", ".claude.json"], ".claude.json exists; --write-waivers never overwrites a file"),
        (["--registration", "gone.json"], "gone.json"),
        (["--registration", ".claude.json:other"], "other"),
        (["--output", "gone/report.json"], "there is no folder gone"),
        (["--output", "xml:report"], "unknown format 'xml'"),
        (["--config", "gone.toml"], "gone.toml: there is no such file"),
        (["--bogus"], "no such option: --bogus"),
        (["extra"], "there is no file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_usage_errors(doctor: Doctor, register: Register, words: list[str], said: str) -> None:
    register(HEALTHY)
    answer = doctor(*words, "--json")
    assert (answer.code, answer.err) == (2, "")
    assert said in answer.json["error"]
    assert answer.json["next_command"] == "cpersona-cli doctor --help"


def test_a_usage_error_in_text_leaves_stdout_empty(doctor: Doctor) -> None:
    answer = doctor("--client", "claud-code")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("cpersona-cli doctor: ")
    assert answer.err.endswith("Next: cpersona-cli doctor --help\n")
    answer = doctor("--format", "csv")
    assert (answer.code, answer.out) == (2, "")
    assert "--format takes one of text, json, agent, sarif, junit, github, markdown, html, not 'csv'" in answer.err
    assert "contradict" in doctor("--json", "--format", "text").json["error"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--only", "names.url-missing", "--require", "names.url-missing"], 1),
        (["--only", "names.mode-none", "--require", "names.url-missing"], 3),
        (["--skip", "names", "--only", "names.mode-none,names.url-missing"], 3),
        (["--only", "names.url-missing", "--fail-on", "never"], 0),
    ],
)
def test_what_ran_decides(doctor: Doctor, register: Register, words: list[str], code: int) -> None:
    register(URLLESS)
    answer = doctor(*words, "--json")
    assert answer.code == code
    unmet = ["names.url-missing"] if code == 3 and "--require" in words else []
    assert answer.json["unmet"] == unmet


def test_a_check_that_was_required_and_did_not_run_is_named(doctor: Doctor, register: Register) -> None:
    register(HEALTHY)
    answer = doctor("--only", "names.mode-none", "--require", "names.url-missing")
    assert answer.code == 3
    assert "UNKNOWN  names.url-missing is required and did not run: not chosen (--only)" in answer.out


def test_the_whole_run_is_one_document_without_the_secret(doctor: Doctor, register: Register) -> None:
    register(URLLESS)
    answer = doctor("--json", "-v")
    assert answer.code == 1
    assert {check["id"] for check in answer.json["checks"]} >= {trap.id for trap in ALL if trap.group != "tool"}
    settings = answer.json["registrations"][0]["environments"][0]["settings"]
    values = {setting["name"]: setting for setting in settings}
    assert values["CPERSONA_EMBEDDING_API_KEY"]["value"] == "set (24 characters)"
    assert values["CPERSONA_EMBEDDING_MODE"]["place"]["line"] > 1
    assert SECRET not in answer.out


def test_verbose_tells_every_setting_and_its_source(doctor: Doctor, register: Register) -> None:
    register({**URLLESS, "CPERSONA_DB_PATH": "~/c.db"})
    answer = doctor("-vv", env={"CPERSONA_CLI_TIMEOUT": "7"})
    lines = [line.split() for line in answer.out.splitlines()]
    assert ["timeout", "7", "CPERSONA_CLI_TIMEOUT"] in lines
    assert any(line[:4] == ["CPERSONA_EMBEDDING_API_KEY", "set", "(24", "characters)"] for line in lines)
    assert any(line[0] == "CPERSONA_EMBEDDING_CACHE_SIZE" and line[-1] == "default" for line in lines if line)
    assert SECRET not in answer.out


def test_waivers_from_writing_to_expiry(doctor: Doctor, register: Register, home: Path) -> None:
    register(URLLESS)
    written = doctor(*ONLY, "--write-waivers", "w.toml")
    assert written.code == 1
    assert "1 waiver written to w.toml, each for 90 days" in written.out
    assert SECRET not in (home / "w.toml").read_text()
    waived = doctor(*ONLY, "--waivers", "w.toml", "--json")
    assert waived.code == 0
    assert [entry["trap"] for entry in waived.json["waived"]] == ["names.url-missing"]
    assert waived.json["counts"]["waived"] == 1
    text = doctor(*ONLY, "--waivers", "w.toml")
    assert "waived   names.url-missing" in text.out
    expired = (home / "w.toml").read_text().replace("expires = 2", "expires = 1")
    (home / "w.toml").write_text(expired)
    answer = doctor(*ONLY, "--waivers", "w.toml", "--json")
    assert answer.code == 1
    assert [entry["trap"] for entry in answer.json["findings"]] == ["names.url-missing", "tool.waiver-expired"]
    assert [
        entry["trap"] for entry in doctor(*ONLY, "--skip", "tool", "--waivers", "w.toml", "--json").json["findings"]
    ] == ["names.url-missing"]


def test_nothing_to_waive_writes_no_file(doctor: Doctor, register: Register, home: Path) -> None:
    register(HEALTHY)
    answer = doctor(*ONLY, "--write-waivers", "w.toml")
    assert answer.code == 0
    assert "no waivers file was written" in answer.out
    assert not (home / "w.toml").exists()


def test_a_malformed_waivers_file_is_a_usage_error(doctor: Doctor, register: Register, home: Path) -> None:
    register(HEALTHY)
    (home / "w.toml").write_text('[[waiver]]\nid = "names.url-missing"\n')
    answer = doctor("--waivers", "w.toml", "--json")
    assert answer.code == 2
    assert answer.json["error"] == "w.toml:1: waiver 1 has no reason"


def test_a_file_and_stdout_in_one_run(doctor: Doctor, register: Register, home: Path) -> None:
    register(URLLESS)
    answer = doctor(*ONLY, "-o", "report.json", "-o", "text:report", "-q")
    assert answer.out.splitlines() == [answer.last]
    assert document((home / "report.json").read_text())["exit_code"] == answer.code == 1
    assert (home / "report").read_text() == answer.out


def test_the_selection_is_repeated_in_what_verifies_it(doctor: Doctor, register: Register) -> None:
    register(URLLESS, "my servers.json")
    answer = doctor("--registration", "my servers.json", *ONLY)
    assert answer.code == 1
    assert "cpersona-cli doctor --registration 'my servers.json' --only names.url-missing" in answer.out


def test_a_preferred_client_gives_way_to_what_is_pointed_at(doctor: Doctor, register: Register) -> None:
    register(HEALTHY, "servers.json")
    chosen = {"CPERSONA_CLI_CLIENT": "codex"}
    assert doctor(*ONLY, env=chosen).code == 3
    assert doctor(*ONLY, "--registration", "servers.json", env=chosen).code == 0


def test_this_process_as_a_registration(doctor: Doctor) -> None:
    answer = doctor("--env", *ONLY, "--json", env={"CPERSONA_EMBEDDING_MODE": "http"})
    assert answer.code == 1
    assert answer.json["registrations"][0]["place"]["file"] is None
    assert doctor("--env", *ONLY, env=HEALTHY).code == 0


def test_a_database_that_is_not_there(doctor: Doctor, home: Path) -> None:
    answer = doctor("--db", "gone.db", "--json")
    assert answer.code == 3
    assert f"{home}/gone.db: there is no such database" in answer.json["unsettled"]
    assert doctor("--db", "gone.db", "--pre").code == 0
    assert list(home.iterdir()) == []


def test_unread_variables_of_this_tool_are_noted(doctor: Doctor, register: Register) -> None:
    register(HEALTHY)
    answer = doctor(*ONLY, env={"CPERSONA_CLI_FORMT": "json"})
    assert "note     CPERSONA_CLI_FORMT is set and read by nobody; did you mean CPERSONA_CLI_FORMAT?" in answer.out


def test_the_format_may_come_from_the_environment_also_for_errors(doctor: Doctor) -> None:
    answer = doctor("--bogus", env={"CPERSONA_CLI_FORMAT": "json"})
    assert "--bogus" in answer.json["error"]


def test_a_working_directory_that_is_gone(home: Path) -> None:
    script = Path(sys.executable).with_name("cpersona-cli")
    gone = home / "gone"
    gone.mkdir()
    command = f"cd {gone} && rmdir {gone} && exec {script} doctor --json"
    answer = subprocess.run(
        ["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stderr) == (3, "")
    assert "the working directory does not exist any more" in document(answer.stdout)["error"]


@pytest.mark.parametrize(
    "option",
    [
        "--client",
        "--registration",
        "--db",
        "--only",
        "--skip",
        "--require",
        "--waivers",
        "--write-waivers",
        "--config",
        "--output",
    ],
)
@pytest.mark.parametrize("value", ["", " "], ids=["empty", "blank"])
def test_a_variable_that_was_not_set_chooses_nothing(
    doctor: Doctor, register: Register, option: str, value: str
) -> None:
    register(HEALTHY)
    answer = doctor(option, value, "--json")
    assert answer.code == 2
    assert f"'{option}'" in answer.json["error"]
    assert "it is empty" in answer.json["error"]


@pytest.mark.parametrize("words", [["--db", "a.db", "--db=b.db"], ["--waivers", "a", "--waivers", "b"]], ids=" ".join)
def test_a_value_that_would_be_lost_is_refused(doctor: Doctor, words: list[str]) -> None:
    answer = doctor(*words, "--json")
    assert answer.code == 2
    assert f"{words[0]} is given 2 times" in answer.json["error"]


def test_an_error_keeps_the_form_that_the_file_of_settings_asks_for(doctor: Doctor, home: Path) -> None:
    (home / "own.toml").write_text('format = "json"\ntimeout = "soon"\n')
    assert "timeout takes a number" in doctor("--config", "own.toml").json["error"]
    assert "--bogus" in doctor("--bogus", "--config=own.toml").json["error"]
    assert "--bogus" in doctor("--bogus", env={"CPERSONA_CLI_CONFIG": "own.toml"}).json["error"]
    folder = home / ".config" / "cpersona-cli"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('format = "json"\n')
    meant = doctor(command="docter")
    assert "did you mean doctor" in document(meant.out)["error"]
    assert document(meant.out)["exit_code"] == meant.code
    (folder / "config.toml").write_text("format = json")
    assert doctor(command="docter").out == ""


PRIVATE = """
import os, sys
from pathlib import Path
from cpersona_cli import app
from cpersona_cli.commands import doctor, examination
from cpersona_cli.traps import registry
os.environ["HOME"] = sys.argv[1]
app.main(["doctor", "--env", "--json", "--only", "names.url-missing"])  # everything is imported now
print("-----", flush=True)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(app.main(["doctor", *sys.argv[2:], "--json"]))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another")
def test_the_home_of_another_user_hides_no_result(home: Path) -> None:
    """As in a container that runs as somebody else and leaves HOME=/root."""
    home.chmod(0o700)
    with tempfile.TemporaryDirectory() as open_to_all:
        Path(open_to_all).chmod(0o755)
        database = Path(open_to_all) / "memory.db"
        database.write_bytes(b"<html>")
        database.chmod(0o600)
        answer = subprocess.run(
            [sys.executable, "-c", PRIVATE, str(home), "--db", str(database)],
            cwd=open_to_all,
            capture_output=True,
            text=True,
            check=False,
        )
    found = document(answer.stdout.partition("-----\n")[2])
    assert (answer.returncode, found["error"]) == (1, None)
    assert [finding["trap"] for finding in found["findings"]] == ["database.no-permission"]
    assert f"{home}/.config/cpersona-cli/config.toml was not read: Permission denied" in found["notes"]


def test_a_path_no_file_can_have_is_no_reason_to_give_up(doctor: Doctor, register: Register) -> None:
    register({**HEALTHY, "CPERSONA_DB_PATH": "x" * 300})
    found = doctor("--only", "database.path-relative", "--json").json
    assert [finding["trap"] for finding in found["findings"]] == ["database.path-relative"]
    assert found["unsettled"] == []


def test_files_may_be_named_without_an_option(doctor: Doctor, register: Register, home: Path) -> None:
    register(HEALTHY, "good.json")
    register(URLLESS, "bad.json")
    named = doctor("good.json", "bad.json", "--offline", "--json").json
    spelled = doctor("--registration", "good.json", "--registration", "bad.json", "--offline", "--json").json
    assert [entry["place"]["file"] for entry in named["registrations"]] == [
        str(home / "good.json"),
        str(home / "bad.json"),
    ]
    assert named["findings"] == spelled["findings"]
    assert [f["place"]["file"] for f in named["findings"] if f["trap"] == "names.url-missing"] == [
        str(home / "bad.json")
    ]


def test_it_waits_for_an_endpoint_that_is_loading(doctor: Doctor, register: Register) -> None:
    with serving(loading=2) as endpoint:
        register({**HEALTHY, "CPERSONA_EMBEDDING_URL": endpoint.url()})
        at_once = doctor("--only", "endpoint", "--json").json
        assert at_once["verdict"] == "unknown"
    with serving(loading=2) as endpoint:
        register({**HEALTHY, "CPERSONA_EMBEDDING_URL": endpoint.url()})
        waited = doctor("--only", "endpoint", "--wait", "60", "--json").json
    assert waited["verdict"] == "pass", waited["unsettled"]


@pytest.mark.parametrize("seconds", ["-1", "nan", "86401"])
def test_a_wait_that_makes_no_sense(doctor: Doctor, seconds: str) -> None:
    answer = doctor("--wait", seconds, "--json")
    assert answer.code == 2
    assert answer.json["error"].startswith("--wait takes a number from 0 to 86400, not ")
