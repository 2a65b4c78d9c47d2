"""How long each client waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.clients import machine
from support.starts import registered

from cpersona_cli.install.model import Place, Variable
from cpersona_cli.start.limits import limit


@pytest.mark.parametrize(
    ("client", "fields", "env", "expected"),
    [
        ("codex", {}, {}, (10, "its default")),
        ("codex", {"startup_timeout_sec": 45}, {}, (45, "startup_timeout_sec in /client/file.json:7")),
        ("codex", {"startup_timeout_sec": 0}, {}, (10, "its default")),
        ("codex", {"startup_timeout_sec": "soon"}, {}, (10, "its default")),
        ("codex", {"startup_timeout_sec": True}, {}, (10, "its default")),
        ("codex", {"startup_timeout_sec": [9]}, {}, (10, "its default")),
        ("codex", {"startup_timeout_sec": float("inf")}, {}, (10, "its default")),
        ("codex", {"startup_timeout_sec": 10**400}, {}, (10, "its default")),
        ("codex", {"startup_timeout_ms": 20_000}, {}, (20, "startup_timeout_ms in /client/file.json:7")),
        ("claude-code", {}, {}, (30, "its default")),
        ("claude-code", {}, {"MCP_TIMEOUT": "90000"}, (90, "MCP_TIMEOUT")),
        ("claude-code", {}, {"MCP_TIMEOUT": "long"}, (30, "its default")),
        ("gemini-cli", {}, {}, (600, "its default")),
        ("gemini-cli", {"timeout": 5000}, {}, (5, "timeout in /client/file.json:7")),
        ("cursor", {"timeout": 5000}, {}, (60, "the default of the MCP library")),
        ("env", {}, {}, (60, "the default of the MCP library")),
    ],
)
def test_a_limit(
    tmp_path: Path, client: str, fields: dict[str, object], env: dict[str, str], expected: tuple[float, str]
) -> None:
    here = machine(tmp_path, env=env)
    found = limit(registered(here, client, "cpersona", fields=fields), here)
    assert (found.seconds, found.origin) == expected


def test_the_settings_of_the_client_win(tmp_path: Path) -> None:
    here = machine(tmp_path, env={"MCP_TIMEOUT": "5000"})
    told = (Variable("MCP_TIMEOUT", "7000", Place(words="settings")),)
    assert limit(registered(here, "claude-code", "cpersona", inherited=told), here).seconds == 7
