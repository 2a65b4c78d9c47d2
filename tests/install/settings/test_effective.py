from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support.environments import block, process

from cpersona_cli.install.model import Environment, Place, Value
from cpersona_cli.install.release.version import NEWEST_KNOWN
from cpersona_cli.install.settings.effective import Effective, effective
from cpersona_cli.install.settings.model import Invalid, Reader
from cpersona_cli.install.settings.table import BY_NAME, SETTINGS


def read(name: str, env: dict[str, str], version: str | None = NEWEST_KNOWN) -> Effective:
    return effective(process(env), version)[name]


def test_nothing_written_gives_every_default() -> None:
    found = effective(process({}), None)
    for setting in SETTINGS:
        if setting.reader is Reader.NOBODY and not setting.removed:
            assert setting.name not in found
        else:
            value = found[setting.name]
            assert (value.text, value.name, value.origin, value.given) == (None, "", "default", False)
            assert (value.invalid, value.ignored, value.shadowed) == ("", "", ())
    assert found["CPERSONA_DB_PATH"].value == "data/cpersona.db"
    assert found["CPERSONA_EMBEDDING_MODE"].value == "none"
    assert found["CPERSONA_FTS_ENABLED"].value is True
    assert found["CPERSONA_RECONSTRUCT_FORCED_COUNT"].value is None
    assert found.unknown == ()


def test_provenance() -> None:
    found = effective(block({"PATH": "/bin", "CPERSONA_DB_PATH": "/x.db"}), NEWEST_KNOWN)["CPERSONA_DB_PATH"]
    assert found.value == found.text == str(found) == "/x.db"
    assert (found.name, found.origin, found.given) == ("CPERSONA_DB_PATH", "env block", True)
    assert found.place == Place(file=Path("/home/u/.claude.json"), line=12)


@pytest.mark.parametrize(
    ("env", "value", "name", "shadowed"),
    [
        ({"CPERSONA_EMBEDDING_MODE": "http", "EMBEDDING_MODE": "api"}, "http", "CPERSONA_EMBEDDING_MODE", True),
        ({"CPERSONA_EMBEDDING_MODE": "", "EMBEDDING_MODE": "api"}, "api", "EMBEDDING_MODE", False),
        ({"EMBEDDING_MODE": "api"}, "api", "EMBEDDING_MODE", False),
        ({"CPERSONA_EMBEDDING_MODE": "http", "EMBEDDING_MODE": ""}, "http", "CPERSONA_EMBEDDING_MODE", False),
        ({"EMBEDDING_MODE": ""}, "none", "EMBEDDING_MODE", False),
        ({"CPERSONA_EMBEDDING_MODE": ""}, "none", "CPERSONA_EMBEDDING_MODE", False),
    ],
)
def test_second_names(env: dict[str, str], value: str, name: str, shadowed: bool) -> None:
    found = read("CPERSONA_EMBEDDING_MODE", env)
    assert (found.value, found.name) == (value, name)
    assert found.shadowed == (("EMBEDDING_MODE",) if shadowed else ())


@pytest.mark.parametrize(
    ("name", "alias"),
    [("CPERSONA_EMBEDDING_API_URL", "EMBEDDING_API_URL"), ("CPERSONA_EMBEDDING_MODEL", "EMBEDDING_MODEL")],
)
def test_an_empty_second_name_is_taken_literally(name: str, alias: str) -> None:
    found = read(name, {name: "", alias: ""})
    assert (found.value, found.text, found.name, found.given) == ("", "", alias, False)
    found = read(name, {name: ""})
    assert (found.value, found.text, found.name) == (BY_NAME[name].default, "", name)
    assert read(name, {name: "x", alias: ""}).value == "x"


def test_an_empty_generic_mode_refused_before_2_6_11() -> None:
    found = read("CPERSONA_EMBEDDING_MODE", {"EMBEDDING_MODE": ""}, "2.6.10")
    assert (found.value, found.outcome) == ("", Invalid.REFUSES)
    assert read("CPERSONA_EMBEDDING_MODE", {"CPERSONA_EMBEDDING_MODE": ""}, "2.6.10").value == "none"


def test_second_names_are_not_read_before_2_4_23() -> None:
    assert read("CPERSONA_EMBEDDING_MODE", {"EMBEDDING_MODE": "http"}, "2.4.22").value == "none"
    assert read("CPERSONA_EMBEDDING_MODE", {"EMBEDDING_MODE": "http"}, "2.4.23").value == "http"


# name, text, release -> value, outcome, part of the sentence
@pytest.mark.parametrize(
    ("name", "text", "version", "value", "outcome", "says"),
    [
        (
            "MAX_MEMORIES",
            "30s",
            None,
            10000,
            Invalid.DEFAULT,
            "“30s” is no whole number: the server uses 10000 instead",
        ),
        ("MAX_MEMORIES", "0", None, 10000, Invalid.DEFAULT, "“0” is below 1: the server uses 10000 instead"),
        ("MAX_MEMORIES", "0", "2.6.10", 0, None, ""),
        ("MAX_MEMORIES", "x", "2.4.41", 10000, Invalid.REFUSES, "the server refuses to start"),
        ("MAX_MEMORIES", "", "2.4.41", 10000, Invalid.REFUSES, "“” is no whole number"),
        ("MAX_MEMORIES", " 1_000 ", None, 1000, None, ""),
        ("VECTOR_REACH", "-5", None, 0, Invalid.CLAMPED, "“-5” is out of bounds: the server uses 0 instead"),
        ("PRIOR_FAR_WEIGHT", "1.5", None, 1.0, Invalid.CLAMPED, "the server uses 1.0 instead"),
        ("PRIOR_FAR_WEIGHT", "nan", None, 0.0, Invalid.CLAMPED, "uses 0.0"),
        ("CALIBRATE_PERCENTILE", "0", None, 0.95, Invalid.DEFAULT, "is not above 0"),
        ("CALIBRATE_PERCENTILE", "101", None, 0.95, Invalid.DEFAULT, "is above 100"),
        ("CALIBRATE_PERCENTILE", "nan", None, 0.95, Invalid.DEFAULT, "is not above 0"),
        ("FOLDER_MAX_DEPTH", "17", None, 6, Invalid.DEFAULT, "is above 16"),
        ("MAX_CONTENT_LENGTH", "0", None, 0, Invalid.REFUSES, "“0” is below 1: the server refuses to start"),
        ("MAX_CONTENT_LENGTH", "16k", None, 16000, Invalid.DEFAULT, "uses 16000"),
        ("MAX_CONTENT_LENGTH", "16k", "2.5.3", 2000, Invalid.DEFAULT, "uses 2000"),
        ("HTTP_PORT", "70000", None, 70000, Invalid.REFUSES, "in streamable-http only"),
        ("HTTP_PORT", "x", None, 8402, Invalid.DEFAULT, "uses 8402 instead"),
        ("FTS_ENABLED", "yes", None, True, None, ""),
        ("FTS_ENABLED", " Off ", None, False, None, ""),
        (
            "FTS_ENABLED",
            "maybe",
            None,
            True,
            Invalid.DEFAULT,
            "is neither true nor false: the server uses true instead",
        ),
        ("FTS_ENABLED", "", None, True, None, ""),
        ("FTS_ENABLED", "yes", "2.6.10", False, Invalid.OFF, "“yes” is not the word true: the server takes it as off"),
        ("FTS_ENABLED", " true", "2.6.10", False, Invalid.OFF, "takes it as off"),
        ("FTS_ENABLED", "", "2.6.10", False, Invalid.OFF, "“” is not the word true"),
        ("FTS_ENABLED", "no", "2.6.10", False, None, ""),
        ("AUTO_CALIBRATE", "", "2.6.10", False, None, ""),
        ("AUTO_CALIBRATE", "TRUE", "2.6.10", True, None, ""),
        ("UPDATE_CHECK", "disabled", None, False, Invalid.OFF, "takes it as off"),
        ("ALLOW_UNAUTHENTICATED_HTTP", "1", None, False, Invalid.OFF, "is not the word true"),
        ("ALLOW_UNAUTHENTICATED_HTTP", "True", None, True, None, ""),
        ("OPERATING_CONTEXT", "OFF", None, False, None, ""),
        ("OPERATING_CONTEXT", "false", None, True, None, ""),
        ("CUE_COARSE_ENABLED", "1", None, "off", Invalid.OFF, "none of auto, true and false"),
        ("CUE_COARSE_ENABLED", " AUTO", None, "auto", None, ""),
        ("CUE_COARSE_ENABLED", " ", None, "auto", None, ""),
        ("CUE_COARSE_ENABLED", "True", None, "on", None, ""),
        ("CUE_COARSE_ENABLED", "false", None, "off", None, ""),
        ("CUE_COARSE_ENABLED", "auto", "2.6.3", False, Invalid.OFF, "is not the word true"),
        ("EMBEDDING_MODE", "HTTP", None, "HTTP", Invalid.REFUSES, "“HTTP” is none of none, http, api"),
        ("EMBEDDING_MODE", "http ", None, "http ", Invalid.REFUSES, "refuses to start"),
        ("EMBEDDING_MODE", "openai", "2.5.9", "openai", Invalid.UNCHECKED, "takes it as it is; every embedding call"),
        ("TRANSPORT", "", None, "", Invalid.REFUSES, "“” is none of stdio, streamable-http"),
        ("RECALL_MODE", " RSF", None, "rsf", None, ""),
        ("RECALL_MODE", "hybrid", None, "rrf", Invalid.DEFAULT, "uses rrf instead"),
        ("RECALL_MODE", "RSF", "2.6.10", "RSF", Invalid.UNCHECKED, "recall runs as cascade"),
        ("RECALL_PRECISION", "STRICT", "2.5.11", "strict", None, ""),
        ("RECALL_PRECISION", "strict ", "2.5.11", "strict ", Invalid.UNCHECKED, "as for balanced"),
        ("HTTP_BODY_LIMIT_MODE", "Warm", None, "warm", Invalid.UNCHECKED, "it matches no mode"),
        ("HTTP_BODY_LIMIT_MODE", " REJECT", None, "reject", None, ""),
        ("DB_PATH", "", None, "data/cpersona.db", None, ""),
        ("DB_PATH", "", "2.6.10", "", Invalid.UNCHECKED, "set but empty: every connection gets a private database"),
        ("HTTP_HOST", "", None, "", None, ""),
        ("RECONSTRUCT_FORCED_COUNT", "x", None, None, Invalid.IGNORED, "goes on as if it were unset"),
        ("RECONSTRUCT_FORCED_COUNT", "-2", None, 1, Invalid.CLAMPED, "uses 1"),
        ("RECONSTRUCT_FORCED_COUNT", "x", "2.6.10", 1, Invalid.DEFAULT, "uses 1 instead"),
        ("RECONSTRUCT_FORCED_BUDGET", "x", "2.6.10", 4000, Invalid.DEFAULT, "uses 4000 instead"),
        ("PROXY_MAX_INFLIGHT", " ", None, 8, None, ""),
        ("PROXY_MAX_INFLIGHT", "0", None, 1, Invalid.CLAMPED, "the stdio proxy uses 1"),
    ],
)
def test_values(
    *, name: str, text: str, version: str | None, value: object, outcome: Invalid | None, says: str
) -> None:
    found = read(f"CPERSONA_{name}", {f"CPERSONA_{name}": text}, version)
    assert (found.value, found.outcome) == (value, outcome)
    assert type(found.value) is type(value)
    assert says in found.invalid
    assert bool(found.invalid) is bool(outcome)


@pytest.mark.parametrize(
    ("name", "text", "value", "outcome", "says"),
    [
        ("EMBEDDING_PROVIDER", "onnx_jina_v5_nano", "onnx_jina_v5_nano", None, ""),
        ("EMBEDDING_PROVIDER", "", "", Invalid.REFUSES, "the embedding server refuses to start"),
        ("EMBEDDING_HTTP_PORT", "84O1", 8401, Invalid.REFUSES, "no whole number"),
        ("EMBEDDING_HTTP_PORT", "0", 0, Invalid.REFUSES, "is below 1"),
        ("EMBEDDING_HTTP_HOST", " ", "127.0.0.1", None, ""),
        ("EMBEDDING_INDEX_ENABLED", "1", False, Invalid.OFF, "is not the word true"),
        ("EMBEDDING_INDEX_ENABLED", "false", False, None, ""),
        ("EMBEDDING_SEARCH_BACKEND", "MLX", "mlx", None, ""),
        ("EMBEDDING_SEARCH_BACKEND", "mlx ", "mlx ", Invalid.REFUSES, "none of numpy, mlx"),
        ("EMBEDDING_TRANSPORT", "http", "http", Invalid.UNCHECKED, "it counts as stdio"),
        ("CEMBEDDING_REQUIRE_AUTH", "on", True, None, ""),
        ("CEMBEDDING_REQUIRE_AUTH", "si", False, Invalid.OFF, "takes it as off"),
        ("CEMBEDDING_AUTH_TOKEN", " t ", "t", None, ""),
        ("ONNX_MAX_SEQ_LEN", "9000", 9000, Invalid.REFUSES, "is above 8192"),
    ],
)
def test_values_of_the_embedding_server(
    name: str, text: str, value: object, outcome: Invalid | None, says: str
) -> None:
    found = read(name, {name: text})
    assert (found.value, found.outcome) == (value, outcome)
    assert says in found.invalid


def test_a_float_may_be_nan_or_infinite() -> None:
    assert math.isnan(float(str(read("CPERSONA_COSINE_FLOOR", {"CPERSONA_COSINE_FLOOR": "nan"}))))
    assert read("CPERSONA_DECAY_RATE", {"CPERSONA_DECAY_RATE": "1e999"}).value == math.inf


@pytest.mark.parametrize(
    ("name", "env", "version", "value"),
    [
        ("BLOCK_RETRIEVAL_ENABLED", {"BLOCK_BUILD_ENABLED": "false"}, None, False),
        ("BLOCK_RETRIEVAL_ENABLED", {"BLOCK_BUILD_ENABLED": "false", "BLOCK_RETRIEVAL_ENABLED": "x"}, None, False),
        ("FUSED_GATE_BETA", {"RECALL_PRECISION": "strict"}, None, 2.0),
        ("FUSED_GATE_BETA", {"RECALL_PRECISION": "lenient", "FUSED_GATE_BETA": "x"}, None, 0.5),
        ("FUSED_GATE_BETA", {"RECALL_PRECISION": "lenient", "FUSED_GATE_BETA": "3"}, None, 3.0),
        ("FUSED_GATE_BETA", {"RECALL_PRECISION": "strict "}, "2.5.11", 1.0),
        ("RECONSTRUCT_DEFAULT_COUNT", {"RECONSTRUCT_MAX_COUNT": "4"}, None, 4),
        ("RECONSTRUCT_DEFAULT_COUNT", {"RECONSTRUCT_MAX_COUNT": "40"}, None, 10),
        ("RECONSTRUCT_DEFAULT_COUNT", {"RECONSTRUCT_MAX_COUNT": "4", "RECONSTRUCT_DEFAULT_COUNT": "x"}, None, 4),
        ("RECONSTRUCT_DEFAULT_COUNT", {"RECONSTRUCT_MAX_COUNT": "4", "RECONSTRUCT_DEFAULT_COUNT": "x"}, "2.6.10", 10),
        ("RECONSTRUCT_TAIL_QUOTE_CHARS", {"RECONSTRUCT_QUOTE_CHARS": "300"}, None, 300),
        ("RECONSTRUCT_TAIL_QUOTE_CHARS", {"RECONSTRUCT_QUOTE_CHARS": "300"}, "2.6.10", 400),
        ("RECONSTRUCT_MAX_BUDGET", {"RECALL_PREVIEW_CHARS": "30000"}, None, 30000),
        ("RECONSTRUCT_MAX_BUDGET", {"RECALL_PREVIEW_CHARS": "30000"}, "2.6.10", 20000),
        ("RECONSTRUCT_DEFAULT_BUDGET", {"RECALL_PREVIEW_CHARS": "5000"}, None, 5000),
        ("RECONSTRUCT_DEFAULT_BUDGET", {"RECONSTRUCT_MAX_BUDGET": "1000"}, None, 1000),
        ("RECONSTRUCT_DEFAULT_BUDGET", {"RECONSTRUCT_MAX_BUDGET": "1000"}, "2.6.10", 4000),
        ("ALIAS_LEDGER_FILE", {"DB_PATH": "/a/b.db"}, None, "/a/alias_ledger.json"),
        ("ALIAS_LEDGER_FILE", {"DB_PATH": "b.db"}, None, "./alias_ledger.json"),
        ("ALIAS_LEDGER_FILE", {"DB_PATH": "/a/b.db", "ALIAS_LEDGER_FILE": "/l.json"}, None, "/l.json"),
        ("EPISODE_PENALTY_ENABLED", {}, "2.5.12", True),
        ("EPISODE_PENALTY_ENABLED", {}, "2.6.0", False),
        ("CALIBRATE_MAX_SAMPLE", {}, "2.5.11", 2000),
    ],
)
def test_defaults_that_follow(name: str, env: dict[str, str], version: str | None, value: object) -> None:
    given_env = {f"CPERSONA_{key}": text for key, text in env.items()}
    assert read(f"CPERSONA_{name}", given_env, version).value == value


def test_a_name_newer_than_the_release_is_ignored() -> None:
    found = read("CPERSONA_DECLARED_FOLDERS", {"CPERSONA_DECLARED_FOLDERS": "true"}, "2.6.13")
    assert (found.value, found.text, found.given, found.invalid) == (False, "true", True, "")
    assert found.ignored == "CPERSONA_DECLARED_FOLDERS is read from 2.6.14 on; 2.6.13 ignores it"
    assert read("CPERSONA_DECLARED_FOLDERS", {"CPERSONA_DECLARED_FOLDERS": "true"}).ignored == ""
    assert read("CPERSONA_DECLARED_FOLDERS", {}, "2.6.13").ignored == ""


def test_a_removed_name_is_ignored_and_not_unknown() -> None:
    found = effective(process({"CPERSONA_LLM_MODEL": "gpt"}), None)
    assert found["CPERSONA_LLM_MODEL"].ignored.startswith("CPERSONA_LLM_MODEL is read by nobody any more: ")
    assert found.unknown == ()


def test_an_unexpanded_value_is_not_judged() -> None:
    value = Value("${MODE}", Place(), "env block", "${MODE}", "MODE is not set")
    found = effective(Environment("none", {"CPERSONA_EMBEDDING_MODE": value}), None)["CPERSONA_EMBEDDING_MODE"]
    assert (found.value, found.unresolved) == ("${MODE}", "MODE is not set")
    assert (found.invalid, found.outcome) == ("", None)


@pytest.mark.parametrize(
    ("env", "value", "name", "shadowed"),
    [
        ({"HTTP_PROXY": "http://a", "http_proxy": "http://b"}, "http://b", "http_proxy", ("HTTP_PROXY",)),
        ({"HTTP_PROXY": "http://a", "http_proxy": ""}, "", "http_proxy", ("HTTP_PROXY",)),
        ({"HTTP_PROXY": "http://a"}, "http://a", "HTTP_PROXY", ()),
        ({}, "", "", ()),
    ],
)
def test_small_letters_win_for_proxies(env: dict[str, str], value: str, name: str, shadowed: tuple[str, ...]) -> None:
    found = read("HTTP_PROXY", env)
    assert (found.value, found.name, found.shadowed) == (value, name, shadowed)


def test_case_does_not_count_on_windows() -> None:
    env = process({"cpersona_db_path": "C:\\m\\c.db", "Http_Proxy": "http://a"})
    found = effective(env, None, system="windows")
    assert found["CPERSONA_DB_PATH"].value == "C:\\m\\c.db"
    assert found["CPERSONA_ALIAS_LEDGER_FILE"].value == "C:\\m\\alias_ledger.json"
    assert (found["HTTP_PROXY"].value, found["HTTP_PROXY"].shadowed) == ("http://a", ())
    assert found.unknown == ()
    assert effective(env, None)["CPERSONA_DB_PATH"].text is None


def test_a_secret_is_never_in_a_sentence() -> None:
    # No secret is checked by a program today; the rule must hold for the day one is.
    for setting in SETTINGS:
        if setting.secret and setting.reader is not Reader.NOBODY:
            assert "s3cret" not in read(setting.name, {setting.name: "s3cret"}).invalid


def test_a_wrong_value_is_quoted_safely_and_briefly() -> None:
    found = read("CPERSONA_RRF_K", {"CPERSONA_RRF_K": "\x1b[31m\n" + "9" * 5000 + "\udcff"})
    assert found.outcome is Invalid.DEFAULT
    assert "\x1b" not in found.invalid
    assert "\n" not in found.invalid
    assert len(found.invalid) < 140


def test_an_unreadable_release_counts_as_the_newest() -> None:
    env = {"CPERSONA_DECLARED_FOLDERS": "yes"}
    assert read("CPERSONA_DECLARED_FOLDERS", env, "main").value is True


names = st.sampled_from([name for setting in SETTINGS for name in setting.names])
texts = st.one_of(
    st.text(max_size=20), st.sampled_from(["", "true", "0", "-1", "nan", "http", "stdio"]), st.integers().map(str)
)


@hypothesis_settings(deadline=None, max_examples=150)
@given(st.dictionaries(names, texts, max_size=12), st.sampled_from(["2.4.41", "2.5.12", "2.6.10", "2.6.14", "", "x"]))
def test_any_environment_can_be_read(env: dict[str, str], version: str) -> None:
    found = effective(process(env), version)
    for value in found.values.values():
        assert bool(value.invalid) == (value.outcome is not None)
        assert value.text is None or value.name in env
        assert value.text is not None or value.origin == "default"
        if value.ignored:
            assert value.text is not None
