from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.documents import document
from support.reports import ALL, FAILING, HOME, PASSING, SECRET, URL_MISSING

from cpersona_cli import __version__
from cpersona_cli.record import replace
from cpersona_cli.report.json import render
from cpersona_cli.report.layout import Style
from cpersona_cli.report.model import Report


@pytest.mark.parametrize("name", ALL)
def test_every_report_is_one_document_of_the_schema(name: str) -> None:
    found = document(render(ALL[name], Style()))
    assert found["schema"] == f"cpersona-cli/{ALL[name].command}/1"
    assert found["tool_version"] == __version__
    assert found["exit_code"] == ALL[name].exit_code


def test_a_finding_is_complete() -> None:
    found = document(render(FAILING, Style()))
    first = found["findings"][0]
    assert first["trap"] == "names.url-missing"
    assert first["fingerprint"] == URL_MISSING.fingerprint
    assert first["place"] == {"file": f"{HOME}/.claude.json", "line": 14, "column": 9, "words": ""}
    assert first["repair"]["edit"] == '"CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/embed"'
    assert first["repair"]["place"]["line"] == 12
    assert [finding["severity"] for finding in found["findings"]] == ["fault", "warning", "hint"]
    assert found["findings"][1]["evidence"] == [{"name": "length", "value": "24"}]
    assert found["waived"][0]["reason"] == "the gate is on in production"
    assert (found["checks_run"], found["checks_skipped"]) == (6, 3)


def test_no_secret_in_any_text() -> None:
    payload = {SECRET: [SECRET, {"a": f"x{SECRET}y"}], "plain": Path("/a") / SECRET}
    text = render(replace(FAILING, payload=payload), Style())
    assert SECRET not in text
    assert json.loads(text)["plain"] == "/a/[24 characters removed]"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (1.5, 1.5),
        (True, True),
        (None, None),
        ("a\udcffb\x00記", "a\\udcffb\x00記"),
        ({1: (2, {3})}, {"1": [2, [3]]}),
        (Path("/a"), "/a"),
    ],
)
def test_any_value_becomes_valid_json(value: object, shown: object) -> None:
    text = render(Report(command="doctor", payload={"value": value}), Style())
    assert text.isascii()
    assert json.loads(text)["value"] == shown


def test_a_command_cannot_replace_the_common_fields() -> None:
    report = replace(FAILING, payload={"exit_code": 0, "verdict": "pass", "more": 1})
    found = document(render(report, Style()))
    assert (found["exit_code"], found["verdict"], found["more"]) == (1, "fail", 1)


def test_style_changes_nothing() -> None:
    assert render(FAILING, Style()) == render(FAILING, Style(width=20, color=True, verbose=2, quiet=True))


def test_a_report_without_a_command_still_has_a_schema() -> None:
    assert document(render(Report(command="", error="x", error_code=ALL["usage"].error_code), Style()))


def test_each_text_is_searched_for_secrets_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred registrations with a key each would otherwise take half a minute."""
    searched: list[str] = []

    def redact(text: str, secrets: Iterable[str]) -> str:
        searched.append(text)
        return text.replace(next(iter(secrets)), "-")

    monkeypatch.setattr("cpersona_cli.report.json.redact", redact)
    found = json.loads(render(replace(PASSING, notes=["a hidden word"] * 50, secrets=["hidden"]), Style()))
    assert found["notes"] == ["a - word"] * 50
    assert searched.count("a hidden word") == 1
