from __future__ import annotations

from pathlib import Path

import pytest

from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.preferences import PREFERENCES, Preferences, default_path, resolve
from cpersona_cli.report.output import FORMATS
from cpersona_cli.traps.gather import DEADLINE
from cpersona_cli.traps.toolfile import ToolFileError


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(
        'format = "json"\nfail-on = "warning"\ntimeout = 5\noffline = true\n'
        'waivers = "w.toml"\nclient = ["codex", "cursor"]\nskip = ["recall"]\n'
    )
    return file


def settle(
    config: Path | None = None, flags: dict[str, object] | None = None, env: dict[str, str] | None = None
) -> Preferences:
    return resolve(flags or {}, env or {}, config)


def test_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    settled = settle()
    assert {chosen.source for chosen in settled.chosen.values()} == {"default"}
    assert settled.file is None
    assert settled.seconds("timeout") == DEADLINE
    assert settled.text("format") in FORMATS
    assert (settled.text("waivers"), settled.words("skip"), settled.flag("offline")) == ("", (), False)


def test_the_file_of_the_platform_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    file = default_path()
    assert file.is_relative_to(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text('color = "never"\n')
    settled = settle()
    assert settled.text("color") == "never"
    assert settled.chosen["color"].source == f"{file}:1"


def test_precedence(config: Path) -> None:
    chosen = settle(config).chosen
    assert (chosen["fail-on"].value, chosen["fail-on"].source) == ("warning", f"{config}:2")
    assert chosen["client"].value == ("codex", "cursor")
    env = {"CPERSONA_CLI_FAIL_ON": "hint", "CPERSONA_CLI_CLIENT": "zed, windsurf,", "CPERSONA_CLI_OFFLINE": "No"}
    chosen = settle(config, env=env).chosen
    assert (chosen["fail-on"].value, chosen["fail-on"].source) == ("hint", "CPERSONA_CLI_FAIL_ON")
    assert chosen["client"].value == ("zed", "windsurf")
    assert chosen["offline"].value is False
    chosen = settle(config, {"fail-on": "never", "client": ["vscode"], "offline": True, "skip": []}, env).chosen
    assert (chosen["fail-on"].value, chosen["fail-on"].source) == ("never", "option")
    assert (chosen["client"].value, chosen["offline"].value) == (("vscode",), True)
    assert chosen["skip"].source == f"{config}:7", "an option that was not given"


def test_an_empty_variable_counts_as_unset(config: Path) -> None:
    assert settle(config, env={"CPERSONA_CLI_FORMAT": ""}).text("format") == "json"


def test_a_path_in_the_file_is_relative_to_the_file(config: Path) -> None:
    assert settle(config).text("waivers") == str(config.parent / "w.toml")
    assert settle(config, {"waivers": "w.toml"}).text("waivers") == "w.toml"


def test_a_path_in_the_file_may_start_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    file = tmp_path / "c.toml"
    file.write_text('waivers = "~/w.toml"')
    assert settle(file).text("waivers") == "/home/u/w.toml"


def test_the_file_named_by_the_environment(config: Path, tmp_path: Path) -> None:
    env = {"CPERSONA_CLI_CONFIG": str(config)}
    assert settle(env=env).file == config
    other = tmp_path / "other.toml"
    other.write_text("")
    assert settle(other, env=env).file == other


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("formt = 1", "config.toml:1: unknown key 'formt'; did you mean format?"),
        ("fail_on = 'hint'", "config.toml:1: unknown key 'fail_on'; did you mean fail-on?"),
        (
            "\nformat = 'xml'",
            "config.toml:2: format takes one of text, json, agent, sarif, junit, github, markdown, html, not 'xml'",
        ),
        ("format = 'jsn'", "did you mean json?"),
        ("format = 1", "config.toml:1: format takes a text, not 1"),
        ("waivers = ''", "waivers takes a text, not ''"),
        ("offline = 'yes'", "offline takes true or false, not 'yes'"),
        ("timeout = true", "timeout takes a number of seconds above 0"),
        ("timeout = 0", "timeout takes a number of seconds above 0"),
        ("timeout = nan", "timeout takes a number of seconds above 0"),
        ("timeout = inf", "timeout takes a number of seconds above 0"),
        ("skip = 'recall'", "skip takes a list of texts, not 'recall'"),
        ("skip = [1]", "skip takes a list of texts, not [1]"),
        ("format = ", "config.toml:1: this is not valid TOML"),
        ("\n[doctor]\nformat = 'json'", "config.toml:2: unknown key 'doctor'"),
        ("color.text = 'never'", "config.toml:1: color takes a text, not {'text': 'never'}"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises((UsageError, ToolFileError)) as raised:
        settle(file)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"CPERSONA_CLI_FORMAT": "xml"}, "CPERSONA_CLI_FORMAT takes one of text, json, agent, sarif"),
        ({"CPERSONA_CLI_TIMEOUT": "soon"}, "CPERSONA_CLI_TIMEOUT takes a number of seconds"),
        ({"CPERSONA_CLI_OFFLINE": "maybe"}, "CPERSONA_CLI_OFFLINE takes true or false, not 'maybe'"),
        ({"CPERSONA_CLI_CONFIG": "/nowhere/c.toml"}, "/nowhere/c.toml: there is no such file"),
    ],
)
def test_a_bad_variable_is_refused(config: Path, env: dict[str, str], said: str) -> None:
    with pytest.raises((UsageError, ToolFileError)) as raised:
        settle(None if "CPERSONA_CLI_CONFIG" in env else config, env=env)
    assert said in str(raised.value)


def test_a_bad_option_is_refused(config: Path) -> None:
    with pytest.raises(UsageError, match="--fail-on takes one of fault, warning, hint, never, not 'eror'"):
        settle(config, {"fail-on": "eror"})


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ToolFileError, match="no such file"):
        settle(tmp_path / "gone.toml")


def test_unread_variables_are_told(config: Path) -> None:
    env = {"CPERSONA_CLI_FORMT": "x", "CPERSONA_CLI_SOMETHING_ELSE": "x", "CPERSONA_CLI_DEBUG": "1", "PATH": "/bin"}
    assert settle(config, env=env).notes == (
        "CPERSONA_CLI_FORMT is set and read by nobody; did you mean CPERSONA_CLI_FORMAT?",
        "CPERSONA_CLI_SOMETHING_ELSE is set and read by nobody",
    )


def test_every_value_can_be_shown(config: Path) -> None:
    rows = {name: (value, source) for name, value, source in settle(config).rows()}
    assert list(rows) == [preference.name for preference in PREFERENCES]
    assert rows["timeout"] == ("5", f"{config}:3")
    assert rows["offline"][0] == "true"
    assert rows["client"][0] == "codex, cursor"
    assert rows["color"] == ("auto", "default")
    other = settle(config, {"offline": False, "skip": [","]})
    assert other.chosen["offline"].value is False
    assert [value for name, value, _ in other.rows() if name == "skip"] == ["none"]
