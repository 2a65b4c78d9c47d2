"""Where a misread database path may have led: pure words, nothing is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.traps import MACHINE, docker, registration, targets

from cpersona_cli.install.database_candidates import candidates
from cpersona_cli.install.model import Launch, Registration
from cpersona_cli.record import replace


def found(text: str | None, entry: Registration | None = None) -> list[str]:
    entry = entry or registration({} if text is None else {"CPERSONA_DB_PATH": text})
    target = targets(entry)[0]
    return [str(path) for path in candidates(entry, target.settings["CPERSONA_DB_PATH"], MACHINE)]


@pytest.mark.parametrize("text", ["/home/u/c.db", ":memory:", "file:c.db", "c\0.db"])
def test_a_path_taken_literally_has_none(text: str) -> None:
    assert found(text) == []


def test_no_path_at_all_is_tried_below_every_folder_a_client_may_start_in() -> None:
    assert found(None) == [
        "/home/u/work/data/cpersona.db",
        "/home/u/data/cpersona.db",
        "/home/u/.claude/data/cpersona.db",
        "/data/cpersona.db",
        "/home/u/.claude/cpersona.db",
    ]


def test_a_relative_path_begins_with_the_folders_that_are_named() -> None:
    entry = registration({"CPERSONA_DB_PATH": "c.db"}, cwd="/srv/c", project=Path("/proj/x"))
    assert found(None, entry)[:3] == ["/srv/c/c.db", "/proj/x/c.db", "/home/u/work/c.db"]


def test_a_relative_working_folder_is_not_used() -> None:
    entry = registration({"CPERSONA_DB_PATH": "c.db"}, cwd="somewhere")
    assert found(None, entry)[0] == "/home/u/work/c.db"


@pytest.mark.parametrize("start", ["~", "$HOME", "${HOME}", "%USERPROFILE%"])
def test_a_home_is_tried_as_meant_and_as_the_literal_name(start: str) -> None:
    # Codex expands nothing in its file.
    paths = found(None, registration({"CPERSONA_DB_PATH": f"{start}/.claude/cpersona.db"}, client="codex"))
    assert paths[0] == "/home/u/.claude/cpersona.db"
    assert f"/home/u/work/{start}/.claude/cpersona.db" in paths


def test_quotes_around_the_path_are_seen_through() -> None:
    assert found('"~/c.db"')[0] == "/home/u/c.db"


def test_a_container_has_none() -> None:
    entry = registration(launch=docker({"CPERSONA_DB_PATH": "c.db"}))
    assert found(None, entry) == []


def test_windows_folders() -> None:
    machine = replace(MACHINE, system="windows")
    entry = registration({"CPERSONA_DB_PATH": "c.db"}, launch=Launch(kind=registration().launch.kind))
    setting = targets(entry, machine=machine)[0].settings["CPERSONA_DB_PATH"]
    assert Path("/Windows/System32/c.db") in candidates(entry, setting, machine)
