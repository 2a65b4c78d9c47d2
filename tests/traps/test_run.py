"""What becomes of a finding that holds only when the client was started one way."""

from __future__ import annotations

import pytest
from support.traps import MACHINE, facts, outcome

from cpersona_cli.record import replace
from cpersona_cli.traps.model import Severity

API = {"CPERSONA_DB_PATH": "/home/u/c.db", "CPERSONA_EMBEDDING_MODE": "api"}
LOCAL = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/embed"}


@pytest.mark.parametrize(
    ("client", "env", "shell", "trap", "severity"),
    [
        # the key is there whenever the client is started in a terminal
        ("gemini-cli", {**API, "CPERSONA_EMBEDDING_API_KEY": "$K"}, {"K": "sk-1"}, "names.key-missing", Severity.HINT),
        ("cursor", API, {"CPERSONA_EMBEDDING_API_KEY": "sk-1"}, "names.key-missing", Severity.WARNING),
        # the proxy is in the way whenever the client is started in a terminal
        ("claude-code", LOCAL, {"HTTP_PROXY": "http://p:1"}, "network.proxy-takes-loopback", Severity.FAULT),
        ("vscode", LOCAL, {"HTTP_PROXY": "http://p:1"}, "network.proxy-takes-loopback", Severity.WARNING),
        # true however it is started
        ("gemini-cli", API, {"OTHER_KEY": "sk-1"}, "names.key-missing", Severity.FAULT),
    ],
)
def test_the_usual_start_of_a_client_decides_how_bad_it_is(
    client: str, env: dict[str, str], shell: dict[str, str], trap: str, severity: Severity
) -> None:
    machine = replace(MACHINE, env={**MACHINE.env, **shell})
    _, (finding,) = outcome(trap, facts(env, client=client, machine=machine))
    assert finding.severity is severity
    assert finding.depends.startswith("depends on how") is ("OTHER_KEY" not in shell)
