from __future__ import annotations

import asyncio

import pytest
from support.endpoints_small import serving
from support.scripted import HTTP, Script, Time, ended

from cpersona_cli.embedding.calling import Caller
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Plan, Window
from cpersona_cli.embedding.model import Endpoint, Mode, Outcome
from cpersona_cli.embedding.window import window

PLAN = Plan()
#: The distance between two lengths that six calls cannot tell apart, and the 17 words of an ending.
COARSE = PLAN.words / 2**PLAN.bisections + 20


def look(url: str) -> tuple[Window | Outcome, int]:
    async def run() -> tuple[Window | Outcome, int]:
        async with Caller(endpoint=Endpoint(mode=Mode.HTTP, url=url)) as caller:
            return await window(caller, PLAN, "w"), caller.calls

    return asyncio.run(run())


@pytest.mark.parametrize("words", [64, 128, 256, 512, 1000])
def test_where_a_text_is_cut(words: int) -> None:
    with serving(window=words) as server:
        found, calls = look(server.url())
    assert isinstance(found, Window)
    assert found.cut
    assert found.refused is None
    assert words - COARSE <= found.words <= words
    assert calls == 1 + PLAN.bisections


@pytest.mark.parametrize("words", [128, 512])
def test_where_a_text_is_refused(words: int) -> None:
    with serving(refuses_over=words) as server:
        found, calls = look(server.url())
    assert isinstance(found, Window)
    assert (found.cut, found.refused, found.limit) == (False, Kind.INPUT_TOO_LARGE, words)
    assert words - COARSE <= found.words <= words
    assert calls == 1 + PLAN.bisections


def test_no_end_was_met() -> None:
    with serving() as server:
        found, calls = look(server.url())
    assert isinstance(found, Window)
    assert (found.words, found.at_least, found.cut, calls) == (PLAN.words, True, False, 1)
    assert found.characters > 5 * PLAN.words


@pytest.mark.parametrize("kind", [Kind.TIMEOUT, Kind.THROTTLED, Kind.REFUSED])
def test_an_end_that_says_nothing_of_lengths(kind: Kind) -> None:
    async def run() -> Window | Outcome:
        async with Caller(endpoint=HTTP, factory=Script(Time(), (0.0, ended(kind)))) as caller:
            return await window(caller, PLAN, "w")

    found = asyncio.run(run())
    assert isinstance(found, Outcome)
    assert found.kind is kind


def test_a_search_that_is_cut_off_keeps_what_it_knows() -> None:
    steps = ((0.0, ended(Kind.INPUT_TOO_LARGE)), (0.0, ended(Kind.OK)), (0.0, ended(Kind.THROTTLED)))

    async def run() -> Window | Outcome:
        async with Caller(endpoint=HTTP, factory=Script(Time(), *steps)) as caller:
            return await window(caller, PLAN, "w")

    found = asyncio.run(run())
    assert isinstance(found, Window)
    assert (found.words, found.refused) == (PLAN.words // 2, Kind.INPUT_TOO_LARGE)
