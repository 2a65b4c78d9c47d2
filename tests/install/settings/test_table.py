from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from support import drift, settings_page

from cpersona_cli.install.release.version import NEWEST_KNOWN, key, older
from cpersona_cli.install.settings.model import Invalid, Kind, Reader
from cpersona_cli.install.settings.parse import default_of, parse
from cpersona_cli.install.settings.table import BY_ALIAS, BY_NAME, GROUPS, SETTINGS, is_secret

#: Release -> the names that came with it (the first: all it read). Taken from the released packages; none ever left.
CAME_WITH: dict[str, list[str]] = json.loads((Path(__file__).parents[2] / "data" / "names_read.json").read_text())


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(SETTINGS)


def test_a_second_name_belongs_to_one_setting_of_the_server() -> None:
    aliases = [alias for setting in SETTINGS for alias in setting.aliases]
    assert len(aliases) == len(set(aliases))
    assert not [alias for alias in aliases if alias in BY_NAME and BY_NAME[alias].reader is Reader.SERVER]


def test_the_second_names_are_those_of_the_embedding_group() -> None:
    assert {alias: setting.name for alias, setting in BY_ALIAS.items()} == {
        "EMBEDDING_MODE": "CPERSONA_EMBEDDING_MODE",
        "EMBEDDING_HTTP_URL": "CPERSONA_EMBEDDING_URL",
        "EMBEDDING_API_KEY": "CPERSONA_EMBEDDING_API_KEY",
        "EMBEDDING_API_URL": "CPERSONA_EMBEDDING_API_URL",
        "EMBEDDING_MODEL": "CPERSONA_EMBEDDING_MODEL",
    }


@pytest.mark.parametrize("release", CAME_WITH)
def test_each_release_reads_exactly_the_names_it_was_measured_to_read(release: str) -> None:
    expected = {name for at, names in CAME_WITH.items() if not older(release, at) for name in names}
    ours = drift.names_read(release)
    missing, extra = sorted(expected - ours), sorted(ours - expected)
    assert not missing, f"{release} reads names that are not in the table: {missing}"
    assert not extra, f"the table says {release} reads {extra}, and it does not"


def test_the_measured_releases_cover_both_ends() -> None:
    assert len(drift.names_read("2.4.41")) == 66
    assert len(drift.names_read("2.5.12")) == 100
    assert len(drift.names_read(NEWEST_KNOWN)) == 132
    assert list(CAME_WITH) == sorted(CAME_WITH, key=lambda release: key(release) or ((), (0, 0), 0, 0))


def test_each_default_parses_to_itself_without_a_complaint() -> None:
    for setting in SETTINGS:
        if setting.default and setting.kind is not Kind.OFF_ONLY:
            result = parse(setting, setting.default, None)
            assert (result.value, result.wrong, result.outcome) == (default_of(setting), "", None), setting.name


def test_each_default_is_one_of_the_choices() -> None:
    assert not [setting.name for setting in SETTINGS if setting.choices and setting.default not in setting.choices]


def test_changes_stand_newest_first_and_inside_the_life_of_their_row() -> None:
    for setting in SETTINGS:
        ends = [change.until for change in setting.earlier]
        assert all(older(later, earlier) for earlier, later in pairwise(ends)), setting.name
        if setting.since not in {"", "2.4"}:
            assert all(older(setting.since, end) for end in ends), setting.name


def test_each_row_says_what_it_is_for_on_one_line() -> None:
    assert not [s.name for s in SETTINGS if not s.note or "\n" in s.note or s.note.endswith(".")]


def test_the_name_to_use_instead_is_a_real_one() -> None:
    for setting in SETTINGS:
        if setting.instead:
            assert setting.reader is Reader.NOBODY
            assert BY_NAME[setting.instead].reader is not Reader.NOBODY


def test_a_row_as_of_the_newest_release_is_the_row() -> None:
    assert not [setting.name for setting in SETTINGS if setting.at(NEWEST_KNOWN) is not setting]


def test_a_row_as_of_an_older_release() -> None:
    mode = BY_NAME["CPERSONA_EMBEDDING_MODE"]
    assert mode.at("2.6.10").empty_is_unset is False
    assert mode.at("2.6.10").invalid is Invalid.REFUSES
    assert mode.at("2.5.9").invalid is Invalid.UNCHECKED
    assert mode.at("2.4.22").aliases == ()
    assert BY_NAME["CPERSONA_MAX_MEMORIES"].at("2.6.10").low is None
    assert BY_NAME["CPERSONA_FTS_ENABLED"].at("2.6.10").kind is Kind.TRUE_ONLY
    assert BY_NAME["CPERSONA_LOGICAL_DIRECTORY"].earlier == ()  # newer than the change


def test_known_to() -> None:
    folders = BY_NAME["CPERSONA_DECLARED_FOLDERS"]
    assert [folders.known_to(release) for release in ("2.6.13", "2.6.14", "2.7.0")] == [False, True, True]
    bundled = BY_NAME["CLOTO_LLM_PROXY"]
    assert [bundled.known_to(release) for release in ("2.4.41", "2.5.1", "2.5.2")] == [True, True, False]


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("CPERSONA_AUTH_TOKEN", True),
        ("CPERSONA_EMBEDDING_API_KEY", True),
        ("EMBEDDING_API_KEY", True),
        ("OPENAI_API_KEY", True),
        ("CPERSONA_EMBEDDING_API_KEYS", True),
        ("my_password", True),
        ("CPERSONA_DB_PATH", False),
        ("CPERSONA_MAX_MEMORIES", False),
        ("CPERSONA_CALIBRATE_METHOD", False),
        ("PATH", False),
    ],
)
def test_secrets(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


def test_the_page_is_the_table() -> None:
    assert settings_page.PAGE.read_text("utf-8") == settings_page.page(), (
        "docs/settings.md is out of date: run make docs"
    )


def test_every_row_is_on_the_page_once() -> None:
    page = settings_page.page()
    for _, rows in GROUPS:
        for row in rows:
            assert page.count(f"\n| `{row.name}`") - len(_earlier_lines(page, row.name)) == 1, row.name


def _earlier_lines(page: str, name: str) -> list[str]:
    _, _, earlier = page.partition("## Earlier releases")
    return [line for line in earlier.splitlines() if line.startswith(f"| `{name}` |")]
