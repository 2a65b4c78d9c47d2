from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.endpoints_small import Answer, Request, SmallEndpoint, embed, serving
from support.environments import block
from support.scripted import HTTP, Script, Time, ended
from support.stores import Server

from cpersona_cli.embedding.endpoints import configured
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.stored import pack
from cpersona_cli.install.settings.effective import effective
from cpersona_cli.rebuild.target import Identified, identified, identify_target
from cpersona_cli.store.job import Target

CAPABLE = {"/capabilities": {"fingerprint": "a166f63f525a5e17", "identity": {"model": "mini"}, "incomplete": []}}


def look(server: SmallEndpoint, path: str = "/embed", **fields: Any) -> Identified:
    mode = Mode.API if "embeddings" in path else Mode.HTTP
    return identified(Endpoint(mode=mode, url=server.url(path), **fields))


def test_a_target_is_what_two_measurements_agree_on() -> None:
    with serving(width=96, gets=CAPABLE) as server:
        found = look(server)
        assert found.target == Target(
            mode="http",
            url=server.url(),
            model="",
            dim=96,
            fingerprint="a166f63f525a5e17",
            label="a166f63f525a5e17",
            served="mini",
        )
        assert max(request.size for request in server.calls) < 50_000
    assert (found.ok, found.kind, found.refusals, found.warnings) == (True, Kind.OK, (), ())
    assert found.repeat == pytest.approx(1)
    assert found.largest_batch == 64
    assert found.window is not None
    assert found.window.at_least
    assert (found.unit, found.no_verdict) == (True, False)


def test_nothing_stored_is_sent_and_nothing_secret_is_kept() -> None:
    with serving() as server:
        found = look(server, "/v1/embeddings?token=abcdefgh", key="sk-12345678", model="m")
        words = {request.document["model"] for request in server.calls}
    assert found.target is not None
    assert found.target.url == server.url("/v1/embeddings")
    assert (found.target.model, found.target.label, found.target.served) == ("m", "m", "m")
    assert words == {"m"}
    assert "abcdefgh" not in repr(found)


LABELLED = [
    ("http", True, {"CPERSONA_EMBEDDING_MODEL": "mine"}, "a166f63f525a5e17"),
    ("http", False, {}, ""),
    ("http", False, {"EMBEDDING_MODEL": "mine"}, "mine"),
    ("api", True, {}, "text-embedding-3-small"),
]


@pytest.mark.server
@pytest.mark.parametrize(("mode", "capable", "more", "label"), LABELLED)
def test_the_label_is_the_one_the_server_writes(
    mode: str, capable: bool, more: dict[str, str], label: str, tmp_path: Path
) -> None:
    (tmp_path / "store").mkdir()
    database = tmp_path / "store" / "memory.db"
    with serving(gets=CAPABLE if capable else {}, scale=3.0 if mode == "api" else 1.0) as server:
        addresses = {
            "CPERSONA_EMBEDDING_URL": server.url(),
            "CPERSONA_EMBEDDING_API_URL": server.url("/v1/embeddings"),
            "CPERSONA_EMBEDDING_API_KEY": "sk-12345678",
        }
        settings = {"CPERSONA_EMBEDDING_MODE": mode, **addresses, **more}
        with Server(database, env=settings) as real:
            real.store("atlas", "The ladder stands behind the shed.")
        environment = block(settings)
        found = identified(configured(effective(environment, "2.6.14"), environment))
    with contextlib.closing(sqlite3.connect(database)) as connection:
        stored, blob = connection.execute("SELECT embedding_model, embedding FROM memories").fetchone()
    assert found.target is not None
    assert found.target.label == stored == label
    vector = [value * (3.0 if mode == "api" else 1.0) for value in embed("The ladder stands behind the shed.", 64)]
    assert sqlite_floats(blob) == pytest.approx(sqlite_floats(pack(mode, vector)), abs=2e-7)


def sqlite_floats(blob: bytes) -> list[float]:
    return list(memoryview(blob).cast("f"))


def test_vectors_of_other_lengths_are_stored_as_they_come_and_said_to_be() -> None:
    with serving(scale=4.9) as server:
        found = look(server)
        scaled = look(server, "/v1/embeddings", key="sk-12345678", model="m")
    assert found.ok
    assert not found.unit
    assert any("lengths from 4.9 to 4.9" in warning for warning in found.warnings)
    assert scaled.unit
    assert scaled.warnings == ()


def test_what_the_server_does_not_read_to_its_end_is_a_warning() -> None:
    """R11"""
    with serving(window=200, batch_limit=40) as server:
        found = look(server)
    assert found.ok
    assert found.window is not None
    assert 150 < found.window.words <= 200
    assert found.largest_batch == 40
    assert any("does not count" in warning for warning in found.warnings)
    assert any(warning.startswith("64 texts at once fail") for warning in found.warnings)


def test_no_backend_is_no_target() -> None:
    found = identified(Endpoint(mode=Mode.NONE, url=""))
    assert (found.target, found.kind, found.no_verdict) == (None, Kind.DISABLED, False)
    assert found.refusals == (
        "the embedding endpoint: no embedding backend is configured; set a mode and a URL to search by meaning",
    )


def test_a_failing_endpoint_is_refused_with_its_kind_and_advice() -> None:
    with serving() as server:
        gone = server.url()
    found = identified(Endpoint(mode=Mode.HTTP, url=gone.replace("//", "//me:secret99@")))
    assert (found.target, found.kind, found.no_verdict) == (None, Kind.REFUSED, True)
    assert found.refusals == (
        f"{gone}: nothing listens at this address; start the embedding server, or let probe look",
    )
    with serving(models=["other"]) as server:
        found = look(server, "/v1/embeddings", key="sk-12345678", model="m")
    assert (found.kind, found.no_verdict) == (Kind.MODEL_NOT_FOUND, False)
    assert found.refusals[0].endswith(
        'the server does not have this model (“model "m" not found, try pulling it first”);'
        " name or fetch the model, or let probe look"
    )


def zeros(_request: Request, vectors: list[list[float]]) -> list[Any]:
    return [[0.0] * len(vector) for vector in vectors]


def constant(_request: Request, vectors: list[list[float]]) -> list[Any]:
    return [vectors[0] for _ in vectors]


@pytest.mark.parametrize(("after", "kind"), [(zeros, Kind.ZERO_VECTOR), (constant, Kind.CONSTANT_VECTOR)])
def test_vectors_without_meaning_are_refused(after: Any, kind: Kind) -> None:
    with serving(after=after) as server:
        found = look(server)
    assert (found.target, found.kind) == (None, kind)
    assert len(found.refusals) == 1


def from_call(number: int, change: Any) -> Any:
    """A change of the vectors from one call on."""
    seen = 0

    def after(request: Request, vectors: list[list[float]]) -> list[Any]:
        nonlocal seen
        seen += 1
        return [change(vector) for vector in vectors] if seen >= number else vectors

    return after


FIRST_CALLS = 7  # of the thorough measurement


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda vector: vector[:32], "64 dimensions in one measurement, 32 in the next"),
        (lambda vector: vector[::-1], "more than one model may answer there"),
    ],
)
def test_another_model_at_the_second_look_is_refused(change: Any, words: str) -> None:
    with serving(after=from_call(FIRST_CALLS + 1, change)) as server:
        found = look(server)
    assert (found.target, found.kind) == (None, Kind.UNSTABLE)
    assert words in found.refusals[0]


def test_two_models_that_take_turns_are_refused() -> None:
    turns = iter(range(1000))

    def turning(_request: Request, vectors: list[list[float]]) -> list[Any]:
        return [vector[::-1] for vector in vectors] if next(turns) % 2 else vectors

    with serving(after=turning) as server:
        found = look(server)
    assert found.target is None
    assert found.repeat is not None
    assert found.repeat < 0.9
    assert "agree only to a cosine of" in found.refusals[0]


def test_small_differences_from_call_to_call_are_only_a_warning() -> None:
    turns = iter(range(1, 1000))

    def noisy(_request: Request, vectors: list[list[float]]) -> list[Any]:
        turn = next(turns)
        return [[v + 0.1 * (n == turn % len(vector)) for n, v in enumerate(vector)] for vector in vectors]

    with serving(after=noisy) as server:
        found = look(server, "/v1/embeddings", key="sk-12345678", model="m")
    assert found.ok
    assert any(warning.startswith("the same text gets slightly different vectors") for warning in found.warnings)


def renamed(request: Request, number: int) -> Answer | None:
    if number <= FIRST_CALLS:
        return None
    items = [{"index": n, "embedding": embed(text, 64)} for n, text in enumerate(request.texts)]
    return Answer(200, {"object": "list", "data": items, "model": "another"})


def test_a_model_by_another_name_at_the_second_look_is_refused() -> None:
    with serving(before=renamed) as server:
        found = look(server, "/v1/embeddings", key="sk-12345678", model="m")
    assert found.target is None
    assert "m is named in one reply, another in the next" in found.refusals[0]


def test_an_endpoint_that_is_gone_at_the_second_look_is_refused() -> None:
    def leaving(_request: Request, number: int) -> Answer | None:
        return Answer(503, {"error": {"message": "Loading model", "code": 503}}) if number > FIRST_CALLS else None

    with serving(before=leaving) as server:
        found = look(server)
    assert (found.target, found.kind, found.no_verdict) == (None, Kind.LOADING, True)
    assert "answered once, and then the server is not ready yet" in found.refusals[0]


class Renewing(SmallEndpoint):
    """A backend that states another fingerprint each time it is asked."""

    def answer(self, request: Request) -> Answer:
        if request.path != "/capabilities":
            return super().answer(request)
        asked = sum(seen.path == "/capabilities" for seen in self.requests)
        return Answer(200, {"fingerprint": f"f{asked}", "identity": {}, "incomplete": []})


def test_two_fingerprints_are_refused() -> None:
    with serving() as plain, Renewing(plain.behaviour) as server:
        found = look(server)
    assert (found.target, found.kind) == (None, Kind.UNSTABLE)
    assert "its fingerprint was f1 and then f2" in found.refusals[0]


def test_a_call_that_only_this_tool_could_make_is_no_target() -> None:
    """What the server would record as a failure is no endpoint to rebuild with."""

    def wrong_order(request: Request, vectors: list[list[float]]) -> list[Any]:
        return vectors[1:] + vectors[:1]

    with serving(after=wrong_order) as server:
        found = look(server)
    assert found.target is None
    assert "came back in place" in found.refusals[0]


def test_the_given_word_stands_in_what_is_sent() -> None:
    time = Time()
    script = Script(time, (1.0, ended(Kind.OK)))
    found = asyncio.run(identify_target(HTTP, factory=script, clock=time.clock, word="w"))
    assert found.ok
    texts: Sequence[str] = [text for _, sent in script.called for text in sent]
    assert sum("w" in text for text in texts) > len(texts) / 2
