"""Interpreters asked about themselves."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from pathlib import Path

import pytest
from support.clients import machine

from cpersona_cli.install.machine import this_machine
from cpersona_cli.install.release.interpreter import ask


def answering(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_this_interpreter() -> None:
    told, sites = ask(Path(sys.executable), this_machine())
    assert (told.release, told.sqlite, told.problem) == (platform.python_version(), sqlite3.sqlite_version, "")
    assert told.fts5
    assert told.trigram == (sqlite3.sqlite_version_info >= (3, 34))
    assert sites


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("echo nothing useful", "did not answer as a Python does"),
        ("printf 'a\\nb\\nc\\nd'", "did not answer as a Python does"),
        ("exec sleep 60", "within 0.2 seconds"),
        ("printf '\\377'", "did not answer as a Python does"),
        ("printf '3.9.1\\n\\n\\n'", "has no sqlite3 module"),
    ],
)
def test_an_interpreter_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    monkeypatch.setattr("cpersona_cli.install.release.interpreter.LIMIT", 0.2 if "sleep" in text else 20)
    told, sites = ask(answering(tmp_path / "python3", text), this_machine())
    assert problem in told.problem
    assert sites == ()


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
def test_a_file_that_cannot_be_started(tmp_path: Path) -> None:
    broken = tmp_path / "python3"
    broken.write_text("#!/nowhere/at/all\n")
    broken.chmod(0o755)
    assert "could not be started" in ask(broken, this_machine())[0].problem


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
def test_an_old_sqlite_is_reported_as_it_is(tmp_path: Path) -> None:
    told, sites = ask(answering(tmp_path / "python3.11", "printf '3.11.2\\n3.31.1\\nyes\\n\\n/s\\n'"), this_machine())
    assert (told.release, told.sqlite, told.fts5, told.trigram) == ("3.11.2", "3.31.1", True, False)
    assert sites == (Path("/s"),)


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_environments_of_one_interpreter_are_asked_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    base = answering(tmp_path / "python3.11", f"echo >> {count}; printf '3.11.2\\n3.40.1\\nyes\\nyes\\n'")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        link = tmp_path / name / "python"
        link.symlink_to(base)
        assert ask(link, this_machine())[0].python == link
    assert count.read_text() == "\n"


def test_only_pythons_of_this_machine_are_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    other = answering(tmp_path / "cpersona", f"touch {mark}")
    python = answering(tmp_path / "python3", f"touch {mark}")
    assert "was not run" in ask(other, this_machine())[0].problem
    foreign = machine(tmp_path, "linux" if os.name == "nt" else "windows")
    assert "was not run" in ask(python, foreign)[0].problem
    assert not mark.exists()
