from __future__ import annotations

import asyncio

import pytest
from support.endpoints_small import Answer, Request, embed, serving
from support.scripted import HTTP, Script, Time, ended

from cpersona_cli.embedding.calling import Caller
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Sampled, StoredText
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.sampling import BATCH, Each, embed_each, sample

ROWS = [StoredText(str(number), f"memory {number}") for number in range(40)]


def not_a_number(request: Request, _number: int) -> Answer | None:
    if any(text in {"memory 7", "memory 30"} for text in request.texts):
        error = {"message": "failed to encode response: json: unsupported value: NaN", "type": "api_error"}
        return Answer(500, {"error": error})
    return None


def test_the_texts_at_fault_are_found_by_name() -> None:
    async def run(url: str) -> tuple[Sampled, int]:
        async with Caller(endpoint=Endpoint(mode=Mode.HTTP, url=url)) as caller:
            return await sample(caller, ROWS, 60), caller.calls

    with serving(before=not_a_number) as server:
        found, calls = asyncio.run(run(server.url()))
    assert found == Sampled(tried=40, failed=(("7", Kind.NAN_FOR_INPUT), ("30", Kind.NAN_FOR_INPUT)))
    assert calls <= 3 + 2 * 2 * 5


def scripted(time: Time, seconds: float, *kinds: Kind) -> Sampled:
    script = Script(time, *((1.0, ended(kind)) for kind in kinds))

    async def run() -> Sampled:
        async with Caller(endpoint=HTTP, factory=script, clock=time.clock) as caller:
            return await sample(caller, ROWS, seconds)

    return asyncio.run(run())


def test_an_endpoint_that_goes_away_leaves_the_rest_unfinished() -> None:
    assert scripted(Time(), 60, Kind.OK, Kind.REFUSED) == Sampled(tried=BATCH, unfinished=40 - BATCH)


def test_the_time_is_kept() -> None:
    assert scripted(Time(), 1.5, Kind.OK) == Sampled(tried=2 * BATCH, unfinished=40 - 2 * BATCH)


def test_each_text_is_followed_to_its_vector_or_its_fault() -> None:
    async def run(url: str) -> Each:
        async with Caller(endpoint=Endpoint(mode=Mode.HTTP, url=url)) as caller:
            return await embed_each(caller, [row.text for row in ROWS], 60, batch=9)

    with serving(before=not_a_number) as server:
        each = asyncio.run(run(server.url()))
    assert each.failed == {7: Kind.NAN_FOR_INPUT, 30: Kind.NAN_FOR_INPUT}
    assert sorted([*each.vectors, *each.failed]) == list(range(40))
    assert all(list(vector) == embed(ROWS[position].text, 64) for position, vector in each.vectors.items())
    assert (each.unfinished, each.gone) == (0, None)


def test_nothing_to_try() -> None:
    async def run() -> Sampled:
        async with Caller(endpoint=HTTP, factory=Script(Time(), (0.0, ended(Kind.OK)))) as caller:
            return await sample(caller, [], 60)

    assert asyncio.run(run()) == Sampled(tried=0)


def test_all_that_fail_are_named() -> None:
    found = scripted(Time(), 600, Kind.BAD_VALUES)
    assert [identifier for identifier, _ in found.failed] == [row.id for row in ROWS]


def compared(*rows: StoredText) -> Sampled:
    async def run() -> Sampled:
        async with Caller(endpoint=HTTP, factory=Script(Time(), (0.0, ended(Kind.OK)))) as caller:
            return await sample(caller, rows, 60)

    return asyncio.run(run())


def test_the_vectors_of_the_same_model_agree() -> None:
    found = compared(*(StoredText(str(n), f"memory {n}", embed(f"memory {n}", 64)) for n in range(5)))
    assert (found.compared, found.differing) == (5, ())
    assert found.agreement == pytest.approx(1.0)


def test_the_vectors_of_another_model_of_the_same_width_do_not() -> None:
    found = compared(
        StoredText("1", "one text", embed("something else", 64)),
        StoredText("2", "two text", embed("entirely", 64)),
        StoredText("3", "three text", embed("three text", 64)),
    )
    assert (found.compared, found.differing) == (3, ("1", "2"))
    assert found.agreement is not None
    assert found.agreement < 0.99


def test_vectors_of_another_width_or_none_are_not_compared() -> None:
    found = compared(StoredText("1", "one", (1.0,)), StoredText("2", "two"))
    assert (found.tried, found.compared, found.agreement) == (2, 0, None)
