"""The servers of three lines before and after a cut-over: what was found is found, and nothing stale is left."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.endpoints_small import SmallEndpoint, serving
from support.jobs import ask, everything_else, ours, stage, stored, target, vector, vectors
from support.stores import SENTENCES, Server, fill

from cpersona_cli.store.job import Staged, digest
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing.backup import back_up
from cpersona_cli.store.writing.clearing import unvouched
from cpersona_cli.store.writing.cutover import cut_over, finish_over
from cpersona_cli.store.writing.locks import in_use
from cpersona_cli.store.writing.staging import Staging, open_job
from cpersona_cli.store.writing.undo import undo

pytestmark = pytest.mark.server

SERVERS = {
    "2.4.41": os.environ.get("CPERSONA_CLI_TEST_OLDEST_SERVER", ""),
    "2.5.12": os.environ.get("CPERSONA_CLI_TEST_OLD_SERVER", ""),
    "2.6.14": sys.executable,
}
#: Checks of the server that are about vectors and what is derived from them.
ABOUT_VECTORS = {
    "embedding_dimension",
    "embedding_model",
    "nonfinite_embedding",
    "null_embedding",
    "null_episode_embedding",
    "missing_blocks",
    "vector_index",
    "coarse_index",
    "fts_integrity",
    "schema_objects",
    "schema_version",
}


def env(endpoint: SmallEndpoint) -> dict[str, str]:
    """By meaning alone: without the text index, nothing else finds a row."""
    return {
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": endpoint.url(),
        "CPERSONA_FTS_ENABLED": "false",
    }


def found(server: Server) -> list[bool]:
    """Whether recall finds sentences that are stored."""
    return [
        text
        in {message["content"] for message in server.call("recall", agent_id="atlas", query=text, limit=1)["messages"]}
        for text in (SENTENCES[1], SENTENCES[2], SENTENCES[6])
    ]


def sidecar(database: Path) -> dict[str, Any]:
    document = json.loads(database.with_name(database.name + ".calibration.json").read_text())
    assert isinstance(document, dict)
    return document


def blocks(database: Path) -> list[tuple[object, ...]]:
    """(memories with blocks, least and greatest bits, bytes of a vector), once all ten longer memories have theirs."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        counted = ask(
            database,
            "SELECT count(DISTINCT parent_id), min(length(embedding_bits)), max(length(embedding_bits)),"
            " (SELECT min(length(embedding_i8)) FROM record_block_vectors)"
            " FROM record_blocks WHERE parent_kind = 'mem'",
        )
        if counted[0][0] == 10:
            return counted
        time.sleep(0.05)
    raise AssertionError("the blocks were not built")


@pytest.mark.parametrize("release", SERVERS)
def test_a_switch_to_another_width_and_back(tmp_path: Path, release: str) -> None:
    python = SERVERS[release]
    if not python:
        pytest.skip("the environment names no such server; `make test` does")
    database = tmp_path / "store" / "c.db"
    database.parent.mkdir()
    with serving(width=64) as a, serving(width=96) as b:
        with Server(database, env(a), python) as server:
            fill(server)
            server.call("calibrate_threshold", agent_id="atlas")
            assert all(found(server))
        document = sidecar(database)
        assert document["embedding_dim"] == 64
        document["agent_betas"] = {"atlas": 1.5}
        database.with_name("c.db.calibration.json").write_text(json.dumps(document))
        if release == "2.6.14":
            with Server(database, env(b), python) as server:
                assert not any(found(server))
        document = sidecar(database)
        before, rest = stored(database), everything_else(database)

        with open_job(database, target(96, label="")) as staging:
            back_up(staging)
            wanted = stage(staging)
            done = cut_over(database, staging)
        assert (done.rows, done.emptied, done.calibration) == (21, 0, "rewritten")
        assert everything_else(database) == rest
        assert vectors(database) == wanted

        with Server(database, env(b), python) as server:
            assert all(found(server))
            if release == "2.6.14":
                assert blocks(database) == [(10, 12, 12, 96)]
            issues = server.call("check_health", agent_id="")["issues"]
            assert not {issue["check"] for issue in issues} & ABOUT_VECTORS
        calibrated = sidecar(database)
        assert (calibrated["embedding_dim"], calibrated["agent_betas"]) == (96, {"atlas": 1.5})
        assert isinstance(calibrated["global_threshold"], float)
        assert calibrated["calibrated_at"] > document["calibrated_at"]

        assert undo(database).restored == 21
        assert stored(database) == before
        assert sidecar(database) == document
        if release == "2.6.14":
            with Server(database, env(a), python) as server:
                assert all(found(server))
                assert blocks(database) == [(10, 8, 8, 64)]


def test_a_live_server_is_swapped_under_and_what_it_wrote_is_finished(tmp_path: Path) -> None:
    """Same width, so that nothing but the bytes tells; the server still asks the old endpoint."""
    database = tmp_path / "store" / "c.db"
    database.parent.mkdir()
    with serving(width=64) as a, serving(width=64, after=lambda _request, found: [v[::-1] for v in found]) as b:
        with Server(database, env(a)) as server:
            fill(server)
            assert in_use(database).live
            with open_job(database, target(64, label="")) as staging:
                rows = [(kind, n, text) for kind, n, text in _texts(database)]
                staging.add(Staged(kind, n, digest(text), _reversed(text)) for kind, n, text in rows)
                server.store("atlas", "Stored while the new vectors are staged.", id="late")
                done = cut_over(database, staging)
            assert (done.rows, done.emptied) == (21, 1)
            server.store("atlas", "Stored after the cut, by a server on the old endpoint.", id="later")
            assert server.call("recall", agent_id="atlas", query="anything", limit=3)["messages"] is not None
        doubtful = list(unvouched(database))
        assert [row.text for row in doubtful] == [
            "Stored while the new vectors are staged.",
            "Stored after the cut, by a server on the old endpoint.",
        ]
        assert [row.vector is None for row in doubtful] == [True, False]
        with Staging.open_existing(database) or pytest.fail("no job") as staging:
            staging.add(Staged(row.kind, row.id, digest(row.text), _reversed(row.text)) for row in doubtful)
            assert finish_over(database, staging).rows == 2
        assert vectors(database) == {(kind, n): _reversed(text) for kind, n, text in _texts(database)}
        assert list(unvouched(database)) == []
        assert ours(database) == {"", "-undo", ".json"}
        with Server(database, env(b)) as server:
            assert all(found(server))


def _texts(database: Path) -> list[tuple[Kind, int, str]]:
    rows = [(Kind.MEMORY, *row) for row in ask(database, "SELECT id, content FROM memories")]
    rows += [(Kind.EPISODE, *row) for row in ask(database, "SELECT id, summary FROM episodes")]
    return rows  # type: ignore[return-value]


def _reversed(text: str) -> bytes:
    """What the second endpoint gives: the components the other way round."""
    blob = vector(text, 64)
    return b"".join(blob[at : at + 4] for at in range(len(blob) - 4, -4, -4))
