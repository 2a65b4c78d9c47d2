"""The table against the server that is installed: its names, its values, its refusals, its warnings."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from support import drift
from support.environments import classes, mixed, process, server_settings

from cpersona_cli.install.release.version import NEWEST_KNOWN, older
from cpersona_cli.install.settings.effective import effective
from cpersona_cli.install.settings.model import Invalid, Reader
from cpersona_cli.install.settings.refusals import refusals
from cpersona_cli.install.settings.table import BY_ALIAS, BY_NAME

SERVER = version("cpersona")

#: Reads whose name no constant gives: the parsers themselves, and the tokens an ACL file may refer to.
DYNAMIC = {"config.py: env_key", "_vendored_mcp_common/identity.py: ref[1]"}

#: Read outside of ``config.py``, as plain text or by rules of their own (see the tests of effective and refusals).
ELSEWHERE = {
    "CPERSONA_ACL_FILE",
    "CPERSONA_ALLOW_UNAUTHENTICATED_HTTP",
    "CPERSONA_AUTH_TOKEN",
    "CPERSONA_EMBEDDING_TIMEOUT_SECS",
    "CPERSONA_HTTP_HOST",
    "CPERSONA_HTTP_PORT",
    "CPERSONA_OPERATING_CONTEXT",
    "CPERSONA_OPERATING_CONTEXT_PATH",
    "CPERSONA_TRANSPORT",
}


@pytest.fixture(scope="module")
def package() -> drift.Package:
    return drift.installed()


@pytest.fixture(scope="module")
def names(package: drift.Package) -> drift.Names:
    return drift.names_in(package.used)


def test_the_newest_known_release_is_not_older_than_the_installed_one() -> None:
    assert not older(NEWEST_KNOWN, SERVER), f"cpersona {SERVER} is installed, the table knows {NEWEST_KNOWN}"


def test_every_name_in_the_source_is_in_the_table(names: drift.Names) -> None:
    unknown = {name: places for name, places in names.found.items() if name not in drift.names_read(SERVER)}
    assert not unknown, f"cpersona {SERVER} reads variables the table does not know: {unknown}"
    assert set(names.dynamic) == DYNAMIC, "a variable is read whose name is not a constant"


def test_every_name_of_the_table_is_in_the_source(names: drift.Names) -> None:
    gone = sorted(drift.names_read(SERVER) - names.found.keys())
    assert not gone, f"cpersona {SERVER} no longer reads {gone}: give these rows their `removed`"


def test_every_setting_is_compared(package: drift.Package) -> None:
    held = drift.attributes_in(package.config)
    missing = {row.name for row in server_settings() if row.known_to(SERVER)} - held.keys()
    assert missing == ELSEWHERE, f"no constant of config.py was found for {sorted(missing - ELSEWHERE)}"


def test_each_class_of_value_means_the_same_to_us(package: drift.Package) -> None:
    messages = drift.compare(package, classes())
    assert not messages, "\n".join(messages)


def test_mixed_environments_mean_the_same_to_us(package: drift.Package) -> None:
    messages = drift.compare(package, mixed(300))
    assert not messages, "\n".join(messages)


def test_the_server_warns_of_exactly_what_we_call_unusable(package: drift.Package, tmp_path: Path) -> None:
    config = tmp_path / "config.py"
    config.write_text(package.config, "utf-8")
    environments = classes()
    silent = {Invalid.CLAMPED, Invalid.UNCHECKED, Invalid.REFUSES}
    for environment, outcome in zip(environments, drift.outcomes(config, environments), strict=True):
        ours = {
            name
            for name, found in effective(process(environment), SERVER).values.items()
            if found.setting.reader is Reader.SERVER
            and found.outcome is not None
            and found.outcome not in silent
            and name not in ELSEWHERE - {"CPERSONA_EMBEDDING_TIMEOUT_SECS", "CPERSONA_HTTP_PORT"}
        }
        theirs = {word.strip("=:") for line in outcome.warned for word in line.replace("=", " ").split()}
        theirs &= BY_NAME.keys()
        assert ours == theirs, environment


def test_a_new_variable_is_named() -> None:
    found = drift.names_in({"new.py": 'import os\nKEY = "CPERSONA_NEW"\nx = os.environ.get(KEY, "")\n'}).found
    assert found.keys() - drift.names_read(SERVER) == {"CPERSONA_NEW"}
    assert found["CPERSONA_NEW"] == ["new.py:2", "new.py:3"]


@pytest.mark.parametrize(
    "code",
    [
        'os.environ["CPERSONA_X"]',
        'os.getenv("CPERSONA_X")',
        '"CPERSONA_X" in os.environ',
        'config.parse_int("CPERSONA_X", 1)',
        'helper_of_tomorrow("CPERSONA_X")',
    ],
)
def test_every_way_to_read_a_variable_is_seen(code: str) -> None:
    assert drift.names_in({"a.py": code}).found.keys() == {"CPERSONA_X"}


def test_a_changed_default_is_named(package: drift.Package) -> None:
    changed = package.config.replace('_parse_int("CPERSONA_RRF_K", 60)', '_parse_int("CPERSONA_RRF_K", 61)')
    assert changed != package.config
    (message,) = drift.compare(drift.Package(SERVER, {"config.py": changed}), [{}])
    assert "CPERSONA_RRF_K" in message
    assert "61, not 60" in message


def test_a_changed_check_is_named(package: drift.Package) -> None:
    changed = package.config.replace("TRANSPORTS = (", 'TRANSPORTS = ("sse", ')
    assert changed != package.config
    (message,) = drift.compare(drift.Package(SERVER, {"config.py": changed}), [{"CPERSONA_TRANSPORT": "sse"}])
    assert "the server says '', we say" in message


# What another module than config.py decides: whether the HTTP transport may start without a token.
_AUTH = """
import json, os, sys
from cpersona import server
for environment in json.load(sys.stdin):
    os.environ.update({"CPERSONA_AUTH_TOKEN": "", "CPERSONA_ALLOW_UNAUTHENTICATED_HTTP": "false"})
    os.environ.update(environment)
    try:
        server._preflight_http_auth()
    except SystemExit as error:
        print("refuses")
    else:
        print("starts")
"""


@pytest.mark.server
def test_authentication_is_decided_as_by_the_server(tmp_path: Path) -> None:
    http = {"CPERSONA_TRANSPORT": "streamable-http"}
    environments = [
        {},
        http,
        http | {"CPERSONA_AUTH_TOKEN": "t"},
        http | {"CPERSONA_AUTH_TOKEN": " "},
        *(http | {"CPERSONA_ALLOW_UNAUTHENTICATED_HTTP": word} for word in ("true", "TRUE", " true", "1", "yes", "")),
    ]
    environments = [{"CPERSONA_TRANSPORT": "stdio", **environment} for environment in environments]
    done = subprocess.run(
        [sys.executable, "-c", _AUTH],
        input=json.dumps(environments),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    ours = ["refuses" if refusals(effective(process(e), SERVER), SERVER) else "starts" for e in environments]
    assert ours == done.stdout.split()
    assert set(ours) == {"refuses", "starts"}


def test_second_names_are_read_by_the_server(package: drift.Package) -> None:
    assert BY_ALIAS.keys() <= drift.names_in({"config.py": package.config}).found.keys()
