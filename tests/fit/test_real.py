"""Stores written by the real server with real models, against the model that wrote them and against others."""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.fit_stores import run_each
from support.real_endpoints import E5_MODEL, Running
from support.stores import SENTENCES, Server, copy_store, run_sql

from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.fit.measure import measure
from cpersona_cli.fit.model import Fit, Likeness, State
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.model import Kind

ROWS = 40


def text(number: int) -> str:
    return f"{SENTENCES[number % len(SENTENCES)]} Entry {number} of the week {number % 7}."


def of_minilm(server: Running) -> Mapping[str, str]:
    return {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": server.url}


def of_e5(server: Running) -> Mapping[str, str]:
    return {
        "CPERSONA_EMBEDDING_MODE": "api",
        "CPERSONA_EMBEDDING_API_URL": server.url,
        "CPERSONA_EMBEDDING_API_KEY": "any-key",
        "CPERSONA_EMBEDDING_MODEL": E5_MODEL,
    }


def minilm_endpoint(server: Running) -> Endpoint:
    return Endpoint(mode=Mode.HTTP, url=server.url)


def e5_endpoint(server: Running) -> Endpoint:
    return Endpoint(mode=Mode.API, url=server.url, key="any-key", model=E5_MODEL, named=True)


def write(database: Path, settings: Mapping[str, str], numbers: Sequence[int]) -> None:
    with Server(database, settings) as server:
        for number in numbers:
            server.store("atlas", text(number))


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory, minilm: Running, e5: Running) -> Path:
    """The first half written with MiniLM, the second with e5; both have 384 dimensions."""
    database = tmp_path_factory.mktemp("halves") / "memory.db"
    write(database, of_minilm(minilm), range(ROWS // 2))
    write(database, of_e5(e5), range(ROWS // 2, ROWS))
    return database


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, minilm: Running) -> Path:
    """All written with MiniLM, one of them an episode."""
    database = tmp_path_factory.mktemp("whole") / "memory.db"
    with Server(database, of_minilm(minilm)) as server:
        for number in range(ROWS):
            server.store("atlas", text(number))
        server.call(
            "archive_episode", agent_id="atlas", history=[], summary="A week of forty entries.", keywords="week"
        )
    return database


def fitted(database: Path, endpoint: Endpoint) -> Fit:
    return measure(CPersonaStore(database), endpoint, deadline=time.monotonic() + 120)


def unlabelled(database: Path, folder: Path) -> Path:
    """A copy as servers without labels, or whose endpoint has no name, leave it."""
    copy = copy_store(database, folder)
    run_sql(copy, "UPDATE memories SET embedding_model = ''", "UPDATE episodes SET embedding_model = ''")
    return copy


@pytest.mark.parametrize("labels", [True, False])
def test_the_model_that_wrote_them(whole: Path, minilm: Running, tmp_path: Path, labels: bool) -> None:
    fit = fitted(whole if labels else unlabelled(whole, tmp_path / "copy"), minilm_endpoint(minilm))
    assert (fit.state, fit.stored_dim, fit.expected_dim) == (State.OK, 384, 384)
    assert fit.lowest is not None
    assert fit.lowest > 0.9999
    assert {row.kind for row in fit.judged} == {Kind.MEMORY, Kind.EPISODE}
    assert fit.live is not None
    assert fit.live.model == "all-MiniLM-L6-v2"
    assert fit.live.fingerprint.startswith("1:")
    if labels:
        assert {row.label for row in fit.judged} == {fit.live.fingerprint}


def test_another_model_of_the_same_width(whole: Path, e5: Running, tmp_path: Path) -> None:
    fit = fitted(unlabelled(whole, tmp_path / "copy"), e5_endpoint(e5))
    assert (fit.state, fit.stored_dim, fit.expected_dim) == (State.SWAPPED, 384, 384)
    assert fit.median is not None
    assert abs(fit.median) < 0.2
    assert fit.foreign == {Kind.MEMORY: ROWS, Kind.EPISODE: 1}
    assert [(cost.agent, cost.lost) for cost in fit.lost] == [("atlas", ROWS + 1)]
    assert fit.thresholds is not None
    # the narrow cone of e5 moves the lines
    assert 0.85 < fit.thresholds.other < 0.92
    assert fit.thresholds.same > 0.99


def test_another_width(whole: Path, supercat: Running) -> None:
    fit = fitted(whole, Endpoint(mode=Mode.HTTP, url=supercat.url))
    assert (fit.state, fit.stored_dim, fit.expected_dim, fit.texts_sent) == (State.CHANGED, 384, 256, 0)


@pytest.mark.parametrize(("now", "labels"), [("minilm", False), ("e5", True)])
def test_half_of_each_is_located_to_the_row(
    halves: Path, minilm: Running, e5: Running, tmp_path: Path, *, now: str, labels: bool
) -> None:
    database = halves if labels else unlabelled(halves, tmp_path / "copy")
    fit = fitted(database, minilm_endpoint(minilm) if now == "minilm" else e5_endpoint(e5))
    assert fit.state is State.MIXED
    (change,) = fit.breaks
    assert (change.before.id, change.after.id, change.exact) == (ROWS // 2, ROWS // 2 + 1, True)
    assert (change.rows_before, change.rows_after) == (ROWS // 2, ROWS // 2)
    assert fit.foreign == {Kind.MEMORY: ROWS // 2}
    assert {change.before.likeness, change.after.likeness} == {Likeness.SAME, Likeness.OTHER}
    assert fit.live is not None
    assert fit.live.calls <= 16


def eight_bits(blob: bytes) -> bytes:
    values = struct.unpack(f"<{len(blob) // 4}f", blob)
    top = max(map(abs, values))
    return struct.pack(f"<{len(values)}f", *(round(value * 127 / top) / 127 * top for value in values))


def one_bit(blob: bytes) -> bytes:
    values = struct.unpack(f"<{len(blob) // 4}f", blob)
    return struct.pack(f"<{len(values)}f", *(math.copysign(len(values) ** -0.5, value) for value in values))


def test_eight_bits_for_a_number_make_no_other_model(halves: Path, minilm: Running, tmp_path: Path) -> None:
    copy = copy_store(halves, tmp_path / "copy")
    run_each(copy, eight_bits)
    fit = fitted(copy, minilm_endpoint(minilm))
    (change,) = fit.breaks
    assert (fit.state, change.before.id) == (State.MIXED, ROWS // 2)


def test_one_bit_for_a_number_is_near_and_not_another_model(whole: Path, minilm: Running, tmp_path: Path) -> None:
    copy = copy_store(whole, tmp_path / "copy")
    run_each(copy, one_bit)
    fit = fitted(copy, minilm_endpoint(minilm))
    assert (fit.state, fit.foreign) == (State.DRIFTED, {})
    assert fit.median == pytest.approx(0.8, abs=0.05)


def test_texts_that_were_cut_before_are_near(whole: Path, minilm: Running, tmp_path: Path) -> None:
    """Every third text is longer than the part of it that was embedded, as a smaller window leaves it."""
    copy = copy_store(whole, tmp_path / "copy")
    run_sql(copy, f"UPDATE memories SET content = content || ' {' '.join(SENTENCES[:4])}' WHERE id % 3 = 0")
    fit = fitted(copy, minilm_endpoint(minilm))
    assert fit.state is State.DRIFTED
    assert "only texts of more than" in fit.detail
    assert (fit.foreign, fit.breaks, fit.interleaved) == ({}, (), ())
