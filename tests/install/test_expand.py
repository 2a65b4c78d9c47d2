"""References in configured texts under the rule of every reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpersona_cli.install.clients.table import CLIENTS
from cpersona_cli.install.expand import COMMAND_RULES, Context, expand

KNOWN = {"HOME": "/home/ada", "SET": "value", "EMPTY": ""}


def under(rule: str, text: str, project: Path | None = None, *, windows: bool = False) -> tuple[str, str]:
    return expand(
        text,
        Context(rule=rule, reader="X", lookup=KNOWN.get, home="/home/ada", project=project, windows=windows),
    )


# rule, text, what the server receives, a part of the reason ("" means that all is well)
ROWS = [
    ("claude", "plain", "plain", ""),
    ("claude", "${SET}/c.db", "value/c.db", ""),
    ("claude", "${UNSET}/c.db", "${UNSET}/c.db", "UNSET is not set"),
    ("claude", "${UNSET:-/d}/c.db", "/d/c.db", ""),
    ("claude", "${SET:-/d}", "value", ""),
    ("claude", "${EMPTY:-/d}", "", ""),
    ("claude", "$HOME/c.db", "$HOME/c.db", "$HOME is not expanded by X"),
    ("claude", "${env:SET}", "${env:SET}", "does not know this form"),
    ("claude", "%APPDATA%\\c.db", "%APPDATA%\\c.db", "%APPDATA% is not expanded"),
    ("claude", "~/c.db", "~/c.db", ""),
    ("vscode", "${env:SET}", "value", ""),
    ("vscode", "${env:UNSET}x", "x", "becomes empty"),
    ("vscode", "${input:key}", "${input:key}", "prompted"),
    ("vscode", "${userHome}/c.db", "/home/ada/c.db", ""),
    ("vscode", "${workspaceFolder}/c.db", "${workspaceFolder}/c.db", "what is open"),
    ("vscode", "${SET}", "${SET}", "does not expand this form"),
    ("vscode", "${command:x}", "${command:x}", "does not expand this form"),
    ("vscode", "a${/}b${pathSeparator}c", "a/b/c", ""),
    ("vscode", "$HOME/c.db", "$HOME/c.db", "not expanded"),
    ("editor-env", "${env:SET}/${userHome}", "value//home/ada", ""),
    ("editor-env", "${UNSET}", "${UNSET}", "does not expand"),
    ("gemini", "$SET-${SET}", "value-value", ""),
    ("gemini", "$UNSET/c.db", "/c.db", "UNSET is not set"),
    ("gemini", "${UNSET:-d}", "d", ""),
    ("gemini", "%SET%X%APPDATA%", "%SET%X%APPDATA%", "%APPDATA%"),
    ("braces", "${SET}", "value", ""),
    ("braces", "${UNSET:-d}", "${UNSET:-d}", "does not know this form"),
    ("braces", "$SET", "$SET", "not expanded"),
    ("none", "${SET}", "${SET}", "${SET} is not expanded by X"),
    ("none", "$HOME/c.db", "$HOME/c.db", "not expanded"),
    ("none", "$env:USERPROFILE", "$env:USERPROFILE", "not expanded"),
    ("none", "pa$sword", "pa$sword", ""),
    ("none", "http://h/%E3%81%82?x=100%", "http://h/%E3%81%82?x=100%", ""),
    ("shell command", "~/c.db", "/home/ada/c.db", ""),
    ("shell command", "a~/c.db", "a~/c.db", ""),
    ("shell command", "$HOME/${SET}/${UNSET:-d}/${EMPTY:-e}/${EMPTY-f}/$$", "/home/ada/value/d/e//$$", ""),
    ("shell command", "${UNSET}x", "x", "becomes empty"),
    ("compose environment", "$$HOME", "$HOME", ""),
    ("compose environment", "${SET:?needed}", "value", ""),
    ("compose environment", "${UNSET:?needed}", "", "UNSET is not set"),
    ("compose environment", "${UNSET-d}", "d", ""),
    ("cmd command", "%SET%\\%UNSET%", "value\\%UNSET%", "UNSET is not set"),
    ("powershell command", "$env:SET $ENV:UNSET", "value ", "UNSET is not set"),
]


@pytest.mark.parametrize(("rule", "text", "received", "reason"), ROWS)
def test_reference_under_a_rule(rule: str, text: str, received: str, reason: str) -> None:
    result, unresolved = under(rule, text)
    assert result == received
    assert (reason in unresolved) if reason else (unresolved == "")


def test_workspace_is_the_project() -> None:
    project = Path("/srv/notes")
    assert under("vscode", "${workspaceFolder}/${workspaceFolderBasename}", project) == ("/srv/notes/notes", "")
    assert under("vscode", "a${/}b", windows=True) == ("a\\b", "")


def test_every_rule_of_every_client_is_known() -> None:
    for rule in {client.expansion for client in CLIENTS.values()} | COMMAND_RULES:
        assert under(rule, "${SET} $SET %SET% ~")[0]
