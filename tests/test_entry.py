"""The dispatcher's rule, word by word; tests/e2e/test_entry.py holds it on real installations."""

from __future__ import annotations

import sys

import pytest
from cpersona.server import run

from cpersona_cli import app, entry


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was called: this tool with its arguments, or the server."""
    made: list[object] = []

    def main(argv: list[str]) -> int:
        made.append(argv)
        return 7

    def server() -> int:
        made.append("server")
        return 8

    monkeypatch.setattr(app, "main", main)
    monkeypatch.setattr(entry, "_server", lambda: server)
    monkeypatch.setattr(entry, "_at_terminal", lambda: False)
    return made


def ended(monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    monkeypatch.setattr(sys, "argv", ["cpersona", *words])
    with pytest.raises(SystemExit) as end:
        entry.dispatch()
    return end.value.code


@pytest.mark.parametrize("word", ["doctor", "reembed", "--help", "-h", "--version"])
def test_our_own_words(monkeypatch: pytest.MonkeyPatch, calls: list[object], word: str) -> None:
    assert ended(monkeypatch, word, "--more") == 7
    assert calls == [[word, "--more"]]


@pytest.mark.parametrize("words", [(), ("serve",), ("--stdio", "doctor"), ("x",), ("-v",)])
def test_everything_else_is_the_server_s(
    monkeypatch: pytest.MonkeyPatch, calls: list[object], words: tuple[str, ...]
) -> None:
    assert ended(monkeypatch, *words) == 8
    assert calls == ["server"]


def test_a_near_miss_is_refused(
    monkeypatch: pytest.MonkeyPatch, calls: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "docter") == 2
    assert "did you mean: cpersona doctor" in capsys.readouterr().err
    assert calls == []


def test_an_unknown_word_at_a_terminal_is_refused(
    monkeypatch: pytest.MonkeyPatch, calls: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(entry, "_at_terminal", lambda: True)
    assert ended(monkeypatch, "serve") == 2
    assert "no such command: serve" in capsys.readouterr().err
    assert ended(monkeypatch) == 8
    assert calls == ["server"]


def test_without_a_server(
    monkeypatch: pytest.MonkeyPatch, calls: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(entry, "_server", lambda: None)
    assert ended(monkeypatch, "serve") == 2
    assert "not installed in this environment" in capsys.readouterr().err


def test_the_server_is_what_its_distribution_declares() -> None:
    assert entry._server() is run
