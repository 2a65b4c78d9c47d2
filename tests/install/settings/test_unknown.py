from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support.environments import block, process

from cpersona_cli.install.model import System
from cpersona_cli.install.settings.model import Reader
from cpersona_cli.install.settings.table import BY_NAME, SETTINGS
from cpersona_cli.install.settings.unknown import unknown_names

NOT_READ = "no release reads this name"


@pytest.mark.parametrize(
    ("name", "meant", "why"),
    [
        ("CPERSONA_EMBEDING_MODE", "CPERSONA_EMBEDDING_MODE", NOT_READ),
        ("CPERSONA_DBPATH", "CPERSONA_DB_PATH", NOT_READ),
        ("EMBEDDING_URL", "CPERSONA_EMBEDDING_URL", "EMBEDDING_HTTP_URL"),
        ("CPERSONA_EMBEDDING_HTTP_URL", "CPERSONA_EMBEDDING_URL", "no HTTP"),
        ("CPERSONA_DATABASE_PATH", "CPERSONA_DB_PATH", "never"),
        ("CPERSONA_OPENAI_API_KEY", "CPERSONA_EMBEDDING_API_KEY", "never"),
        ("CPERSONA_LOG_LEVEL", "", "no setting for its log"),
        ("EMBEDDING_HTTP_URLS", "CPERSONA_EMBEDDING_URL", "EMBEDDING_HTTP_URL is a second name"),
        ("EMBEDDING_CACHE_SIZE", "CPERSONA_EMBEDDING_CACHE_SIZE", "the prefix CPERSONA_ is missing"),
        ("EMBEDING_PROVIDER", "EMBEDDING_PROVIDER", NOT_READ),
        ("CPERSONA_EMBEDDING_HTTP_PORT", "", "EMBEDDING_HTTP_PORT is a setting of the embedding server"),
        ("CPERSONA_PATH_DB", "CPERSONA_DB_PATH", NOT_READ),
        ("CPERSONA_MAX_CONTENT", "CPERSONA_MAX_CONTENT_LENGTH", NOT_READ),
        ("CPERSONA_FTS_ENABLED_FLAG", "CPERSONA_FTS_ENABLED", NOT_READ),
        ("CPERSONA_RECONSTRUCT", "", NOT_READ),  # the beginning of many names
        ("PERSONA_DB_PATH", "CPERSONA_DB_PATH", NOT_READ),
        ("CPERSNA_DB_PATHS", "CPERSONA_DB_PATH", NOT_READ),
        ("cpersona_db_path", "CPERSONA_DB_PATH", "case"),
        ("Embedding_Mode", "EMBEDDING_MODE", "case"),
        ("CPERSONA_", "", NOT_READ),
        ("CPERSONA", "", NOT_READ),
        ("CPERSONA_\x1b[1m", "", NOT_READ),
    ],
)
def test_look_alikes(name: str, meant: str, why: str) -> None:
    (found,) = unknown_names(process({name: "1", "PATH": "/bin"}).values)
    assert (found.name, found.meant) == (name, meant)
    assert why in found.why


@pytest.mark.parametrize(
    "name",
    [
        "CPERSONA_CLI_TIMEOUT",
        "cpersona_cli_timeout",
        "OPENAI_API_KEY",
        "CPERSONA_LLM_MODEL",
        "CLOTO_LLM_PROXY",
        "CLOTO_PROJECT_DIR",
        "CPERSONA_AGENT_ID",
        "EMBEDDING_PROVIDER",
        "ONNX_MODEL_DIR",
        "http_proxy",
        "Path",
        "PERSONA",
        "PERSON_NAME",
        "EMBEDDED_MODE_OF_TRAVEL",
        "BEDDING_COLOUR",
        "HTTP_PORT",
        "DB_PATH",
        "CLOTO_MCP_CONFIG",
        "",
        "_",
    ],
)
def test_what_is_nobodys_business_in_a_shell(name: str) -> None:
    assert unknown_names(process({name: "1"}).values) == ()


@pytest.mark.parametrize(
    ("name", "meant"), [("DB_PATH", "CPERSONA_DB_PATH"), ("TRANSPORT", "CPERSONA_TRANSPORT"), ("CLOTO_X", "")]
)
def test_names_that_only_count_when_written_for_this_server(name: str, meant: str) -> None:
    (found,) = unknown_names(block({name: "1"}).values)
    assert found.meant == meant
    assert found.place.line == 11


@pytest.mark.parametrize("name", ["LOG_LEVEL", "DATABASE_PATH", "NO_COLOR"])
def test_a_name_is_no_setting_without_its_prefix_when_it_is_none_with_it(name: str) -> None:
    assert unknown_names(block({name: "1"}).values) == ()


def test_every_name_nobody_reads_is_told_with_its_reason() -> None:
    rows = [s for s in SETTINGS if s.reader is Reader.NOBODY and not s.removed and s.name != "OPENAI_API_KEY"]
    found = unknown_names(process({row.name: "1" for row in rows}).values)
    assert [(f.name, f.meant, f.why) for f in found] == [(r.name, r.instead, r.note) for r in rows]


def test_no_real_name_is_unknown() -> None:
    real = {name for s in SETTINGS if s.reader is not Reader.NOBODY or s.removed for name in s.names}
    systems: tuple[System, ...] = ("linux", "darwin", "windows")
    for system in systems:
        assert unknown_names(block(dict.fromkeys(real, "1")).values, system=system) == ()


def test_on_windows_case_does_not_count() -> None:
    assert unknown_names(process({"Cpersona_Db_Path": "x"}).values, system="windows") == ()
    (found,) = unknown_names(process({"Cpersona_Db_Pth": "x"}).values, system="windows")
    assert (found.name, found.meant) == ("Cpersona_Db_Pth", "CPERSONA_DB_PATH")


server_names = [s.name for s in SETTINGS if s.reader is Reader.SERVER]


@hypothesis_settings(deadline=None, max_examples=150)
@given(st.sampled_from(server_names), st.data())
def test_one_letter_less_is_always_understood(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(9, len(name) - 1))
    wrong = name[:at] + name[at + 1 :]
    found = unknown_names(process({wrong: "1"}).values)
    if wrong not in BY_NAME:
        assert [f.meant for f in found] == [found[0].meant]
        assert found[0].meant in BY_NAME
