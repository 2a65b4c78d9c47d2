"""A demo that cannot be played, or is broken off."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
from support.documents import document

from cpersona_cli import app
from cpersona_cli.commands import playing
from cpersona_cli.commands.process import TerminatedError
from cpersona_cli.demo import play
from cpersona_cli.demo.model import DemoError
from cpersona_cli.report.layout import Style


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def fails(error: BaseException) -> Callable[..., object]:
    def played(*_: object) -> object:
        raise error

    return played


@pytest.mark.parametrize("missing", playing.NEEDED)
def test_a_missing_package_is_one_sentence(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scratch: Path
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else find(name))
    assert app.main(["demo"]) == 2
    out, err = capsys.readouterr()
    package = playing.NEEDED[missing]
    assert out == ""
    assert f"the demo needs {package}, not installed here; install cpersona-cli[demo]" in " ".join(err.split())
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (DemoError("the server did not start"), 3, "the server did not start; the demo ends here"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (TerminatedError(), 143, "terminated"),
        (ValueError("a bug"), 3, "this is a bug"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("keep", [False, True])
def test_a_demo_that_ends_early_leaves_nothing_but_what_is_to_be_kept(
    error: BaseException,
    code: int,
    sentence: str,
    *,
    keep: bool,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(play, "play", fails(error))
    assert app.main(["demo", "--json", *(["--keep"] if keep else [])]) == code
    out, err = capsys.readouterr()
    found = document(out)
    assert (found["exit_code"], found["schema"]) == (code, "cpersona-cli/demo/1")
    assert found["error"].startswith(sentence)
    left = [str(folder.resolve()) for folder in scratch.iterdir()]
    assert len(left) == int(keep)
    assert err == "".join(f"cpersona-cli: the scratch home is kept: {folder}\n" for folder in left)


@pytest.mark.parametrize(
    ("style", "shown"),
    [
        (Style(width=80), {"COLUMNS": "76", "CPERSONA_CLI_COLOR": "never"}),
        (Style(width=200, color=True), {"COLUMNS": "196", "CPERSONA_CLI_COLOR": "always"}),
        (Style(width=20), {"COLUMNS": "60", "CPERSONA_CLI_COLOR": "never"}),
    ],
)
def test_commands_print_as_wide_and_colourful_as_they_may(style: Style, shown: dict[str, str]) -> None:
    assert playing._shown(style) == shown
