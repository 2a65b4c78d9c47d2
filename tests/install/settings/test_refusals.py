from __future__ import annotations

import pytest
from support.environments import process

from cpersona_cli.install.model import Environment, Place, Value
from cpersona_cli.install.settings.effective import effective
from cpersona_cli.install.settings.refusals import Refusal, refusals

HTTP = {"TRANSPORT": "streamable-http", "AUTH_TOKEN": "t"}
OPEN = {"TRANSPORT": "streamable-http"}


def refused(env: dict[str, str], version: str | None = None) -> tuple[Refusal, ...]:
    return refusals(effective(process({f"CPERSONA_{name}": text for name, text in env.items()}), version), version)


# settings, release, the settings of the first refusal (empty: starts), part of its sentence
CASES: tuple[tuple[dict[str, str], str | None, tuple[str, ...], str], ...] = (
    ({}, None, (), ""),
    ({}, "2.4.41", (), ""),
    (
        {"RECONSTRUCT_DEFAULT_COUNT": "11"},
        None,
        ("RECONSTRUCT_DEFAULT_COUNT", "RECONSTRUCT_MAX_COUNT"),
        "CPERSONA_RECONSTRUCT_DEFAULT_COUNT=11 is more than CPERSONA_RECONSTRUCT_MAX_COUNT=10",
    ),
    ({"RECONSTRUCT_DEFAULT_COUNT": "11"}, "2.5.12", (), ""),
    ({"RECONSTRUCT_MAX_COUNT": "3"}, None, (), ""),
    (
        {"RECONSTRUCT_MAX_COUNT": "3", "RECONSTRUCT_DEFAULT_COUNT": "x"},
        "2.6.10",
        ("RECONSTRUCT_DEFAULT_COUNT", "RECONSTRUCT_MAX_COUNT"),
        "=10 is more than",
    ),
    ({"RECONSTRUCT_FORCED_COUNT": "99"}, None, ("RECONSTRUCT_FORCED_COUNT", "RECONSTRUCT_MAX_COUNT"), "=99 is more"),
    ({"RECONSTRUCT_FORCED_COUNT": "x"}, None, (), ""),
    (
        {"RECONSTRUCT_MAX_BUDGET": "100"},
        None,
        ("RECONSTRUCT_MAX_BUDGET", "RECALL_PREVIEW_CHARS"),
        "=100 is less than one preview (CPERSONA_RECALL_PREVIEW_CHARS=500)",
    ),
    ({"RECALL_PREVIEW_CHARS": "5000"}, None, (), ""),
    (
        {"RECALL_PREVIEW_CHARS": "5000"},
        "2.6.10",
        ("RECALL_PREVIEW_CHARS", "RECONSTRUCT_DEFAULT_BUDGET"),
        "=4000 is less than one preview",
    ),
    ({"RECALL_PREVIEW_CHARS": "0", "RECONSTRUCT_FORCED_BUDGET": "1"}, None, (), ""),
    (
        {"RECALL_PREVIEW_CHARS": "0", "RECONSTRUCT_FORCED_BUDGET": "0"},
        None,
        ("RECONSTRUCT_FORCED_BUDGET", "RECALL_PREVIEW_CHARS"),
        "less than one preview",
    ),
    (
        {"RECONSTRUCT_DEFAULT_BUDGET": "30000"},
        None,
        ("RECONSTRUCT_DEFAULT_BUDGET", "RECONSTRUCT_MAX_BUDGET"),
        "more than",
    ),
    (
        {"RECONSTRUCT_MAX_BUDGET": "1000"},
        "2.6.10",
        ("RECONSTRUCT_MAX_BUDGET", "RECONSTRUCT_DEFAULT_BUDGET"),
        "CPERSONA_RECONSTRUCT_DEFAULT_BUDGET=4000 is more than",
    ),
    (
        {"RECONSTRUCT_FORCED_BUDGET": "30000"},
        None,
        ("RECONSTRUCT_FORCED_BUDGET", "RECONSTRUCT_MAX_BUDGET"),
        "more than",
    ),
    (
        {"RECONSTRUCT_TAIL_QUOTE_CHARS": "900"},
        None,
        ("RECONSTRUCT_TAIL_QUOTE_CHARS", "RECONSTRUCT_QUOTE_CHARS"),
        "must be above 0 and at most CPERSONA_RECONSTRUCT_QUOTE_CHARS=800",
    ),
    ({"RECONSTRUCT_TAIL_QUOTE_CHARS": "900"}, "2.6.3", (), ""),
    ({"RECONSTRUCT_TAIL_QUOTE_CHARS": "900", "RECONSTRUCT_QUOTE_CHARS": "0"}, None, (), ""),
    (
        {"RECONSTRUCT_QUOTE_CHARS": "300"},
        "2.6.10",
        ("RECONSTRUCT_QUOTE_CHARS", "RECONSTRUCT_TAIL_QUOTE_CHARS"),
        "=400 must be above 0",
    ),
    (
        {"BLOCK_RETRIEVAL_ENABLED": "true", "BLOCK_BUILD_ENABLED": "0"},
        None,
        ("BLOCK_RETRIEVAL_ENABLED", "BLOCK_BUILD_ENABLED"),
        "no blocks to search",
    ),
    ({"BLOCK_BUILD_ENABLED": "0"}, None, (), ""),
    ({"MAX_CONTENT_LENGTH": "0"}, None, ("MAX_CONTENT_LENGTH",), "“0” is below 1"),
    ({"MAX_CONTENT_LENGTH": "0"}, "2.6.10", (), ""),
    ({"MAX_PROFILE_LENGTH": "-1"}, None, ("MAX_PROFILE_LENGTH",), "“-1” is below 1"),
    ({"TRANSPORT": "sse"}, None, ("TRANSPORT",), "“sse” is none of stdio, streamable-http"),
    ({"TRANSPORT": ""}, None, ("TRANSPORT",), "CPERSONA_TRANSPORT: “” is none of"),
    ({"TRANSPORT": "sse"}, "2.6.10", ("TRANSPORT",), "only after it has opened and migrated the database"),
    (OPEN, None, ("AUTH_TOKEN", "ALLOW_UNAUTHENTICATED_HTTP"), "needs CPERSONA_AUTH_TOKEN or CPERSONA_ACL_FILE"),
    (
        OPEN | {"ALLOW_UNAUTHENTICATED_HTTP": "1"},
        None,
        ("AUTH_TOKEN", "ALLOW_UNAUTHENTICATED_HTTP"),
        "(CPERSONA_ALLOW_UNAUTHENTICATED_HTTP: “1” is not the word true",
    ),
    (OPEN | {"ALLOW_UNAUTHENTICATED_HTTP": "True"}, None, (), ""),
    (OPEN | {"ACL_FILE": "/acl.json"}, None, (), ""),
    (OPEN | {"ACL_FILE": "/acl.json"}, "2.5.5", ("AUTH_TOKEN", "ALLOW_UNAUTHENTICATED_HTTP"), "needs"),
    (HTTP, None, (), ""),
    (OPEN, "2.5.2", (), ""),
    (OPEN | {"HTTP_HOST": "0.0.0.0"}, "2.5.2", ("AUTH_TOKEN", "HTTP_HOST"), "on 0.0.0.0 needs CPERSONA_AUTH_TOKEN"),
    (HTTP | {"HTTP_HOST": "0.0.0.0"}, "2.5.2", (), ""),
    (HTTP | {"HTTP_PORT": "70000"}, None, ("HTTP_PORT",), "is above 65535"),
    ({"HTTP_PORT": "70000"}, None, (), ""),
    (HTTP | {"HTTP_PORT": "x"}, None, (), ""),
    (HTTP | {"HTTP_PORT": "x"}, "2.5.1", ("HTTP_PORT",), "no whole number"),
    ({"EMBEDDING_MODE": "HTTP"}, None, ("EMBEDDING_MODE",), "none of none, http, api"),
    ({"EMBEDDING_MODE": "HTTP"}, "2.5.9", (), ""),
    ({"EMBEDDING_TIMEOUT_SECS": "30s"}, "2.5.1", (), ""),
    ({"EMBEDDING_TIMEOUT_SECS": "30s", "EMBEDDING_MODE": "http"}, "2.5.1", ("EMBEDDING_TIMEOUT_SECS",), "30s"),
    ({"RRF_K": "x"}, "2.4.41", ("RRF_K",), "refuses to start"),
    ({"RRF_K": "x"}, "2.5.0", (), ""),
)


@pytest.mark.parametrize(("env", "version", "names", "says"), CASES, ids=lambda value: str(value)[:60])
def test_the_first_refusal(env: dict[str, str], version: str | None, names: tuple[str, ...], says: str) -> None:
    found = refused(env, version)
    first = found[0] if found else Refusal((), "")
    assert first.settings == tuple(f"CPERSONA_{name}" for name in names)
    assert says in first.sentence


def test_all_reasons_stand_in_the_order_of_the_server() -> None:
    env = OPEN | {
        "EMBEDDING_MODE": "x",
        "HTTP_PORT": "70000",
        "MAX_CONTENT_LENGTH": "0",
        "BLOCK_RETRIEVAL_ENABLED": "1",
        "BLOCK_BUILD_ENABLED": "0",
        "RECONSTRUCT_FORCED_COUNT": "50",
    }
    assert [refusal.settings[0].removeprefix("CPERSONA_") for refusal in refused(env)] == [
        "RECONSTRUCT_FORCED_COUNT",
        "BLOCK_RETRIEVAL_ENABLED",
        "MAX_CONTENT_LENGTH",
        "AUTH_TOKEN",
        "EMBEDDING_MODE",
        "HTTP_PORT",
    ]


@pytest.mark.parametrize(("version", "order"), [("2.6.11", ["TRANSPORT", "MODE"]), ("2.6.10", ["MODE", "TRANSPORT"])])
def test_the_transport_was_looked_at_last_before_2_6_11(version: str, order: list[str]) -> None:
    found = refused({"TRANSPORT": "x", "EMBEDDING_MODE": "x"}, version)
    assert [refusal.settings[0].rpartition("_")[2] for refusal in found] == order


def test_what_could_not_be_expanded_is_not_judged() -> None:
    value = Value("${MODE}", Place(), "env block", "${MODE}", "MODE is not set")
    for name in ("CPERSONA_EMBEDDING_MODE", "CPERSONA_TRANSPORT", "CPERSONA_MAX_CONTENT_LENGTH"):
        assert refusals(effective(Environment("none", {name: value}), None), None) == ()


def test_a_second_name_is_named_as_it_was_written() -> None:
    (found,) = refusals(effective(process({"EMBEDDING_MODE": "HTTP"}), None), None)
    assert found.sentence.startswith("EMBEDDING_MODE: “HTTP”")
    assert found.settings == ("CPERSONA_EMBEDDING_MODE",)
