from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.traps import Case, facts, outcome, reading, registration
from support.variations import severities

from cpersona_cli.install.embedding_server import EmbeddingServer
from cpersona_cli.install.model import Place
from cpersona_cli.store.reading import State
from cpersona_cli.traps.model import Facts

DB = "/home/u/cpersona.db"
HTTP = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/embed"}
API = {"CPERSONA_EMBEDDING_MODE": "api", "CPERSONA_EMBEDDING_API_KEY": "k"}
REMOTE = {**HTTP, "CPERSONA_VECTOR_SEARCH_MODE": "remote"}
REJECT = {"CPERSONA_EMBEDDING_MODEL_MODE": "reject"}
FROZEN = {"CPERSONA_CALIBRATE_ON_MODEL_CHANGE": "false"}


def seen(
    env: dict[str, str] | None = None,
    state: State = State.OK,
    *,
    version: str | None = "2.6.14",
    other: dict[str, str] | None = None,
    servers: tuple[EmbeddingServer, ...] = (),
    **fields: object,
) -> Facts:
    others = [] if other is None else [registration({"CPERSONA_DB_PATH": DB, **other}, client="codex")]
    return facts(
        {"CPERSONA_DB_PATH": DB, **(HTTP if env is None else env)},
        version=version,
        others=others,
        reading=reading(DB, state, **fields),
        embedding_servers=servers,
    )


def nobody(**fields: Any) -> Facts:
    """A database that no registration opens."""
    return facts({}, reading=reading("/srv/c.db", **fields))


def provider(name: str, port: str = "8401") -> EmbeddingServer:
    return EmbeddingServer(
        title="service unit e.service",
        place=Place(Path("/e.service"), 2),
        manner="unit",
        variables={"EMBEDDING_PROVIDER": name, "EMBEDDING_HTTP_PORT": port},
    )


def case(name: str, what: str, known: Facts, state: str = "findings", says: str | tuple[str, ...] = ()) -> Case:
    return Case(f"vectors.{name}", what, known, state, says)


STALE: dict[str, Any] = {"widths": {768: 5}, "calibration": {"embedding_dim": 384}}
MANY: dict[str, Any] = {"counts": {"memories": 400, "episodes": 100}}

CASES = (
    case(
        "mixed-widths",
        "two",
        seen(widths={768: 5, 64: 1}),
        says=("5 memories have 768 numbers, 1 memory has 64", "reembed"),
    ),
    case("mixed-widths", "one", seen(widths={768: 5}), "pass"),
    case("mixed-widths", "none", seen(), "pass"),
    case("mixed-widths", "no time", seen(unmeasured=("widths",)), "unknown"),
    case("mixed-widths", "unreadable", seen(state=State.LOCKED), "skipped"),
    case("backlog", "some", seen(unembedded=3, counts={"memories": 10}), says="3 of 10 memories have no vector"),
    case("backlog", "one", seen(unembedded=1, counts={"memories": 1}), says="1 of 1 memory has no vector"),
    case("backlog", "none", seen(counts={"memories": 10}), "pass"),
    case("backlog", "nobody embeds", seen({}, unembedded=3, counts={"memories": 3}), says="as no client embeds"),
    case("backlog", "kept remotely by choice", seen({**REMOTE, "CPERSONA_STORE_BLOB": "false"}, unembedded=3), "pass"),
    case(
        "backlog",
        "remote, and kept here too",
        seen(REMOTE, unembedded=3, counts={"memories": 9}),
        says="--only missing --dry-run",
    ),
    case("backlog", "no client known", nobody(unembedded=1, counts={"memories": 4}), says="1 of 4"),
    case("unlabelled", "some", seen(labels={"": 4, "a": 1}), says="4 of 5 vectors"),
    case("unlabelled", "none", seen(labels={"a": 5}), "pass"),
    case("unlabelled", "schema 17 has no labels", seen(labels={"": 5}, schema=17), "pass"),
    case("unlabelled", "schema 18", seen(labels={"": 5}, schema=18)),
    case("two-models", "two", seen(labels={"a": 4, "b": 9, "": 1}), says="2 models: b (9), a (4)"),
    case("two-models", "one and none", seen(labels={"a": 4, "": 1}), "pass"),
    case("rejected", "two over http", seen({**HTTP, **REJECT}, labels={"a": 4, "b": 9}), says="at least 4 vectors"),
    case("rejected", "one over http", seen({**HTTP, **REJECT}, labels={"a": 4, "": 2}), "pass"),
    case(
        "rejected",
        "another over api",
        seen({**API, **REJECT}, labels={"bge-m3": 4}),
        says=("at least 4 vectors", "remove CPERSONA_EMBEDDING_MODEL_MODE"),
    ),
    case("rejected", "the same over api", seen({**API, **REJECT}, labels={"text-embedding-3-small": 4}), "pass"),
    case("rejected", "no embedding", seen(REJECT, labels={"a": 4, "b": 9}), "pass"),
    case("rejected", "warn", seen(labels={"a": 4, "b": 9}), "pass"),
    case(
        "rejected",
        "2.6.2 does not know reject",
        seen({**HTTP, **REJECT}, version="2.6.2", labels={"a": 4, "b": 9}),
        "pass",
    ),
    case("rejected", "2.6.3 does", seen({**HTTP, **REJECT}, version="2.6.3", labels={"a": 4, "b": 9})),
    case("blocks-over-api", "many", seen(API, **MANY), says=("500 memories and episodes", '"false"')),
    case("blocks-over-api", "few", seen(API, counts={"memories": 499}), "pass"),
    case("blocks-over-api", "blocks are there", seen(API, counts={"memories": 900, "record_blocks": 1}), "pass"),
    case("blocks-over-api", "http", seen(**MANY), "pass"),
    case("blocks-over-api", "switched off", seen({**API, "CPERSONA_BLOCK_BUILD_ENABLED": "false"}, **MANY), "pass"),
    case("blocks-over-api", "2.5.12", seen(API, version="2.5.12", **MANY), "pass"),
    case("blocks-over-api", "2.6.0", seen(API, version="2.6.0", **MANY)),
    case("blocks-over-api", "no release told", seen(API, version=None, **MANY)),
    case(
        "calibration-frozen",
        "another width",
        seen({**HTTP, **FROZEN}, **STALE),
        says=("384", "768", "remove CPERSONA_CAL"),
    ),
    case(
        "calibration-frozen",
        "the same",
        seen({**HTTP, **FROZEN}, widths={384: 1}, calibration={"embedding_dim": 384}),
        "pass",
    ),
    case("calibration-frozen", "not frozen", seen(**STALE), "pass"),
    case(
        "calibration-flips",
        "far weight",
        seen({"CPERSONA_PRIOR_FAR_WEIGHT": "0.5"}, other={}),
        says="CPERSONA_PRIOR_FAR_WEIGHT differs: 0.5",
    ),
    case(
        "calibration-flips", "recall mode", seen({"CPERSONA_RECALL_MODE": "rsf"}, other={}), says="CPERSONA_RECALL_MODE"
    ),
    case("calibration-flips", "one spelling of a number", seen({"CPERSONA_PRIOR_FAR_WEIGHT": "1"}, other={}), "pass"),
    case(
        "calibration-flips",
        "2.5.12 has no far weight",
        seen({"CPERSONA_PRIOR_FAR_WEIGHT": "0.5"}, version="2.5.12", other={}),
        "pass",
    ),
    case("calibration-flips", "2.6.0 has", seen({"CPERSONA_PRIOR_FAR_WEIGHT": "0.5"}, version="2.6.0", other={})),
    case(
        "provider-width",
        "another",
        seen(widths={768: 5}, servers=(provider("onnx_miniml"),)),
        says=("384", "768", "e.service"),
    ),
    case("provider-width", "the same", seen(widths={768: 5}, servers=(provider("onnx_jina_v5_nano"),)), "pass"),
    case("provider-width", "another port", seen(widths={768: 5}, servers=(provider("onnx_miniml", "9"),)), "pass"),
    case("provider-width", "an API", seen(widths={768: 5}, servers=(provider("api_openai"),)), "pass"),
    case("provider-width", "no vectors", seen(servers=(provider("onnx_miniml"),)), "pass"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_vectors(case: Case) -> None:
    case.check()


@pytest.mark.parametrize(
    ("env", "unembedded", "severity"),
    [(HTTP, 5, "warning"), (HTTP, 6, "fault"), (API, 6, "fault"), ({}, 10, "hint")],
)
def test_more_than_half_without_a_vector_is_a_fault(env: dict[str, str], unembedded: int, severity: str) -> None:
    known = seen(env, unembedded=unembedded, counts={"memories": 10})
    assert severities(outcome("vectors.backlog", known)[1]) == [severity]
