from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_console_scripts import RunResult, ScriptRunner
from support.documents import document

from cpersona_cli.commands import trap_list
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.traps.registry import ALL

pytestmark = pytest.mark.script_launch_mode("inprocess")

Traps = Callable[..., RunResult]


@pytest.fixture
def traps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script_runner: ScriptRunner) -> Traps:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CPERSONA_CLI_FORMAT", raising=False)

    def run(*words: str) -> RunResult:
        return script_runner.run(["cpersona-cli", "traps", *words], cwd=tmp_path, stdin=io.StringIO())

    return run


def ids(result: RunResult) -> list[str]:
    assert (result.returncode, result.stderr) == (0, "")
    return [trap["id"] for trap in document(result.stdout)["traps"]]


def test_the_list_holds_every_trap(traps: Traps) -> None:
    assert ids(traps("list", "--json")) == [trap.id for trap in ALL]
    text = traps().stdout
    assert all(f"{trap.severity:<8} {trap.id}" in text for trap in ALL)
    assert all(trap.title.split()[0] in text for trap in ALL)


def test_the_list_is_filtered(traps: Traps) -> None:
    expected = [trap.id for trap in ALL if trap.group == "names" and trap.severity == "fault"]
    assert ids(traps("list", "--group", "names", "--severity", "fault", "--json")) == expected
    assert ids(traps("--group", "names", "--severity", "fault", "--json")) == expected, "the list is what is meant"
    assert "names.url-missing" in expected
    assert ids(traps("list", "--command", "doctor", "--json")) == [trap.id for trap in ALL]
    assert ids(traps("list", "--command", "traps", "--json")) == []
    assert traps("list", "--command", "demo").stdout.strip() == "demo checks none of the traps"
    assert traps("list", "--group", "network", "--command", "dimension").stdout.strip() == "no trap is of all that"
    written = set(ids(traps("list", "--command", "backfill", "--json")))
    assert {"database.disk-full", "names.url-missing", "recall.imported-episodes"} <= written
    assert written - set(ids(traps("list", "--command", "reembed", "--json"))) == {"recall.imported-episodes"}
    assert set(ids(traps("list", "--command", "probe", "--json"))) == {t.id for t in ALL if t.needs == "endpoint"}
    assert set(ids(traps("list", "--command", "advisory-preview", "--json"))) == {
        t.id for t in ALL if t.group == "advisory"
    }
    measured = ids(traps("list", "--command", "dimension", "--json"))
    assert {"vectors.foreign-rows", "vectors.zero", "endpoint.dimension-mismatch"} <= set(measured)
    assert "names.url-missing" not in measured


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--group", "name"], "there is no group 'name'; did you mean names?"),
        (["list", "--group", "zzzzzz"], "(known: names, network,"),
        (["list", "--severity", "error"], "there is no severity 'error' (known: fault, warning, hint)"),
        (["list", "--command", "doctr"], "did you mean doctor?"),
        (["explain", "names.url-mising"], "did you mean names.url-missing?"),
        (["explain", "network.url-missing"], "did you mean names.url-missing?"),
        (["explain", ""], "there is no check or group ''"),
        (["explain", "\x1b[31m\udcff"], r"there is no check or group '\\x1b[31m\\udcff'"),
        (["explain"], "missing argument"),
        (["list", "extra"], "unexpected extra argument"),
        (["--sevrity", "fault"], "no such option: --sevrity"),
        (["lst"], "no such command 'lst'"),
    ],
    ids=lambda value: " ".join(value).encode("ascii", "backslashreplace").decode() if isinstance(value, list) else None,
)
def test_usage_errors(traps: Traps, words: list[str], said: str) -> None:
    text = traps(*words)
    assert (text.returncode, text.stdout) == (2, "")
    assert said in " ".join(text.stderr.split())
    answer = traps(*words, "--json")
    assert answer.returncode == 2
    assert document(answer.stdout)["exit_code"] == 2


def test_one_trap_is_explained(traps: Traps) -> None:
    answer = traps("explain", "names.url-missing")
    assert (answer.returncode, answer.stderr) == (0, "")
    for label in ("what", "severity", "expected", "costs", "fix", "servers", "looks at", "source", "check"):
        assert f"\n  {label} " in answer.stdout
    assert "cpersona-cli doctor --only names.url-missing" in answer.stdout
    assert ids(traps("explain", "names.url-missing", "--json")) == ["names.url-missing"]


def test_a_group_is_explained_trap_by_trap(traps: Traps) -> None:
    expected = [trap.id for trap in ALL if trap.group == "transport"]
    assert ids(traps("explain", "transport", "--json")) == expected
    lines = traps("explain", "transport").stdout.splitlines()
    assert [line for line in lines if line.startswith("transport.")] == expected


@pytest.mark.parametrize("trap", ALL, ids=lambda trap: str(trap.id))
def test_every_trap_can_be_explained(trap: object) -> None:
    found = trap_list.explained(str(getattr(trap, "id", "")))
    rows = {label: text for label, text, _ in found.sections[0].rows}
    assert all(rows.values())


def test_the_releases_it_concerns_are_told() -> None:
    def servers(trap_id: str) -> str:
        return {label: text for label, text, _ in trap_list.explained(trap_id).sections[0].rows}["servers"]

    bounded = next(trap for trap in ALL if trap.until)
    assert f"before {bounded.until}" in servers(bounded.id)
    since = next(trap for trap in ALL if trap.since)
    assert f"from {since.since} on" in servers(since.id)
    assert servers("names.url-missing") == "every release"


def test_a_retired_id_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    retired = {"names.gone": "the server reads it since 2.7"}
    monkeypatch.setattr(trap_list, "RETIRED", retired)
    report = trap_list.explained("names.gone")
    assert report.payload["retired"] == {"id": "names.gone", "why": "the server reads it since 2.7"}
    assert report.sections[0].rows == [("retired", "the server reads it since 2.7", "")]
    with pytest.raises(UsageError, match=r"names\.gone is retired: the server reads it since"):
        trap_list.select(["names.gone"])
