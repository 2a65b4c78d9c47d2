from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from support.endpoints_small import Answer, Request, embed, serving
from support.scripted import HTTP, Script, Time, ended

from cpersona_cli.embedding.kinds import Kind as CallKind
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.stored import pack
from cpersona_cli.rebuild import verify as module
from cpersona_cli.rebuild.verify import Verified, inspect_staged, verify
from cpersona_cli.record import replace
from cpersona_cli.store.job import Staged, Target, digest
from cpersona_cli.store.model import Kind

DIM = 64
TARGET = Target(mode="http", url="http://127.0.0.1:8401/embed", model="", dim=DIM)
TEXTS = [f"The {number}th ladder of {number * 7} stands behind the shed {number * number}." for number in range(60)]


def staged(texts: list[str] = TEXTS, dim: int = DIM) -> list[Staged]:
    return [
        Staged(Kind.MEMORY, number, digest(text), pack("http", embed(text, dim)))
        for number, text in enumerate(texts, 1)
    ]


def check(
    entries: list[Staged],
    url: str,
    *,
    expected: int | None = None,
    texts: list[str] = TEXTS,
    target: Target = TARGET,
    repeat: float | None = 1.0,
) -> Verified:
    sample = list(zip(entries, texts, strict=False))[::2]
    inspection = inspect_staged(entries, target, expected=len(entries) if expected is None else expected)
    endpoint = Endpoint(mode=target.mode, url=url, model="m", key="sk-12345678")
    return asyncio.run(verify(inspection, sample, endpoint, target, repeat=repeat))


def failing(found: Verified) -> list[str]:
    return [one.name for one in found.checks if not one.ok]


def test_what_is_as_it_should_be_passes() -> None:
    with serving() as server:
        found = check(staged(), server.url())
        assert sum(len(request.texts) for request in server.calls) == 30
    assert (found.ok, found.reason, failing(found)) == (True, "", [])
    assert found.compared == 30
    assert found.lowest == pytest.approx(1)
    assert [one.sentence for one in found.checks] == [
        "60 new vectors for 60 rows",
        "all are 64 wide",
        "all are finite",
        "none is zero",
        "all have the length they should have",
        "different texts have different vectors",
        "30 texts asked for anew get the same vector (lowest cosine 1.0000)",
    ]


def test_a_missing_vector_is_seen() -> None:
    with serving() as server:
        found = check(staged(), server.url(), expected=61)
    assert not found.ok
    assert found.reason == "60 new vectors are there, and 61 rows should have one"


BROKEN = {
    "width": (struct.pack("<3f", 1, 0, 0), "1 new vectors are not 64 wide (memory 4 is one)"),
    "finite": (struct.pack("<64f", *[math.nan] * 64), "1 new vectors hold what is no number (memory 4 is one)"),
    "zero": (bytes(4 * DIM), "1 new vectors are zeros (memory 4 is one)"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_one_broken_vector_among_all_is_seen(name: str) -> None:
    vector, sentence = BROKEN[name]
    entries = staged()
    entries[3] = Staged(Kind.MEMORY, 4, entries[3].digest, vector)
    with serving() as server:
        found = check(entries, server.url())
    assert failing(found) == [name]
    assert found.reason == sentence


def test_length_one_is_asked_of_mode_api() -> None:
    entries = staged()
    entries[3] = Staged(Kind.EPISODE, 4, entries[3].digest, pack("http", [2 * v for v in embed(TEXTS[3], DIM)]))
    with serving() as server:
        assert check(entries, server.url()).ok
        found = check(entries, server.url("/v1/embeddings"), target=replace(TARGET, mode="api", model="m"))
    assert found.reason == "1 new vectors are not of length one (episode 4 is one)"


def test_vectors_that_went_astray_are_seen() -> None:
    """Every vector is good, and belongs to its neighbour."""
    entries = staged()
    turned = [replace(one, vector=other.vector) for one, other in zip(entries, entries[1:] + entries[:1], strict=True)]
    with serving() as server:
        found = check(turned, server.url())
    assert failing(found) == ["anew"]
    assert "30 of 30 texts asked for anew do not get the vector that was kept" in found.reason
    assert "mem 1, mem 3, mem 5, mem 7, mem 9): the endpoint changed, or vectors went astray" in found.reason


def test_another_model_at_the_endpoint_is_seen() -> None:
    def turned(_request: Request, vectors: list[list[float]]) -> list[Any]:
        return [vector[::-1] for vector in vectors]

    with serving(after=turned) as server, serving(width=32) as narrow:
        assert failing(check(staged(), server.url())) == ["anew"]
        found = check(staged(), narrow.url())
    assert failing(found) == ["anew"]
    assert found.lowest == 0


def test_an_endpoint_that_does_not_repeat_itself_is_not_held_to_more() -> None:
    turns = iter(range(1, 1000))

    def noisy(_request: Request, vectors: list[list[float]]) -> list[Any]:
        turn = next(turns)
        return [[v + 0.07 * (n == turn % len(vector)) for n, v in enumerate(vector)] for vector in vectors]

    with serving(after=noisy) as server:
        strict = check(staged(), server.url())
        lenient = check(staged(), server.url(), repeat=0.99)
    assert failing(strict) == ["anew"]
    assert lenient.ok
    assert lenient.lowest is not None
    assert 0.98 < lenient.lowest < 0.999


def test_a_vector_for_many_texts_is_a_mistake_and_one_for_two_is_none() -> None:
    """A server that answers with one and the same vector when it is overloaded."""
    texts = [f"memory {number} of {number * 3}" for number in range(300)]
    entries = staged(texts)
    constant = entries[0].vector
    fault = [replace(one, vector=constant) if one.id % 20 == 1 else one for one in entries]
    inspection = inspect_staged(fault, TARGET, expected=300)
    assert inspection.shared == 15
    with serving() as server:
        found = check(fault[:1], server.url(), texts=texts)
        assert found.ok
        found = asyncio.run(verify(inspection, [], Endpoint(mode=Mode.HTTP, url=server.url()), TARGET))
        assert found.reason == "one vector stands for 15 of 300 texts (memory 1 is one)"
        twins = staged([*texts, *(text.upper() for text in texts)])
        inspection = inspect_staged(twins, TARGET, expected=600)
        assert 2 <= inspection.shared <= 10
        assert asyncio.run(verify(inspection, [], Endpoint(mode=Mode.HTTP, url=server.url()), TARGET)).ok


def test_equal_texts_may_share_their_vector() -> None:
    assert inspect_staged(staged(["one", "other"] * 50), TARGET, expected=100).shared == 1


def test_a_vector_for_many_texts_is_found_in_a_sample_however_late_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more texts than are remembered, those compared are spread evenly over all."""
    monkeypatch.setattr(module, "REMEMBERED", 40)
    constant = embed("the endpoint is tired", DIM)

    def many() -> Iterator[Staged]:
        for number in range(1000):
            vector = constant if number >= 500 else embed(str(number), DIM)
            yield Staged(Kind.MEMORY, number, digest(str(number)), pack("http", vector))

    inspection = inspect_staged(many(), TARGET, expected=1000)
    assert inspection.seen == 1000
    assert 20 <= inspection.texts <= 40
    assert 0.3 < inspection.shared / inspection.texts < 0.7
    assert inspection.first["shared"][1] >= 500


def test_a_text_that_changed_is_left_out() -> None:
    entries = staged()
    inspection = inspect_staged(entries, TARGET, expected=60)
    with serving() as server:
        sample = [(entries[0], TEXTS[0]), (entries[1], "another text since then")]
        found = asyncio.run(verify(inspection, sample, Endpoint(mode=Mode.HTTP, url=server.url()), TARGET))
    assert (found.ok, found.compared) == (True, 1)


def test_an_endpoint_that_is_gone_verifies_nothing() -> None:
    with serving() as server:
        gone = server.url()
    found = check(staged(), gone)
    assert (found.ok, failing(found), found.compared) == (False, ["anew"], 0)
    assert found.checks[-1].ok is None
    assert found.reason == "only 0 of 30 texts could be asked for anew: nothing listens at this address"


def test_refused_texts_are_left_out_while_most_are_answered() -> None:
    def refusing(request: Request, _number: int) -> Answer | None:
        bad = any(text in TEXTS[:8:2] for text in request.texts)
        return Answer(500, {"error": "unsupported value: NaN"}) if bad else None

    with serving(before=refusing) as server:
        found = check(staged(), server.url())
    assert (found.ok, found.compared) == (True, 26)
    with serving(refuses_over=3) as server:
        found = check(staged(), server.url())
    assert found.checks[-1].ok is None


def test_the_time_is_kept() -> None:
    time = Time()
    script = Script(time, (400.0, ended(CallKind.OK)))
    entries = staged()
    sample = list(zip(entries, TEXTS, strict=True))
    inspection = inspect_staged(entries, TARGET, expected=60)
    slow = replace(HTTP, timeout=1000.0)
    found = asyncio.run(verify(inspection, sample, slow, TARGET, factory=script, clock=time.clock))
    assert found.reason == "only 7 of 60 texts could be asked for anew: the time for it was over"


def test_nothing_staged_is_nothing_to_ask() -> None:
    with serving() as server:
        found = check([], server.url())
        assert server.calls == []
    assert found.ok
    assert found.checks[-1].sentence == "there was nothing to ask for anew"
