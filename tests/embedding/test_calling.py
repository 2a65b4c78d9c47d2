from __future__ import annotations

import asyncio

import pytest
from support.scripted import HTTP, Script, Time, ended

from cpersona_cli.embedding.calling import LONGEST_PAUSE, STARTING, Caller, Contact, contact
from cpersona_cli.embedding.kinds import MEANINGS, Kind

OK = ended(Kind.OK)


def reach(script: Script, wait: float) -> tuple[Contact, Caller]:
    async def run() -> tuple[Contact, Caller]:
        async with Caller(endpoint=HTTP, factory=script, clock=script.time.clock) as caller:
            return await contact(caller, ["a", "b"], wait), caller

    return asyncio.run(run())


def test_without_patience_one_call_decides() -> None:
    time = Time()
    script = Script(time, (0.1, ended(Kind.LOADING)), (0.1, OK))
    found, caller = reach(script, 0)
    assert (found.outcome.kind, found.waited, caller.calls, time.slept) == (Kind.LOADING, None, 1, [])


@pytest.mark.parametrize("kind", sorted(STARTING))
def test_what_passes_while_a_server_starts_is_waited_for(kind: Kind) -> None:
    time = Time()
    script = Script(time, (0.5, ended(kind)), (0.5, ended(kind)), (0.5, OK))
    found, caller = reach(script, 60)
    assert (found.outcome.kind, found.attempts, caller.calls) == (Kind.OK, 3, 3)
    assert found.waited == pytest.approx(1.5 + sum(time.slept))


@pytest.mark.parametrize("kind", [Kind.AUTH, Kind.MODEL_NOT_FOUND, Kind.QUOTA, Kind.ROUTE_NOT_FOUND, Kind.PROXY])
def test_what_never_passes_is_not_waited_for(kind: Kind) -> None:
    time = Time()
    found, caller = reach(Script(time, (0.1, ended(kind)), (0.1, OK)), 600)
    assert (found.outcome.kind, caller.calls, time.slept) == (kind, 1, [])
    assert not MEANINGS[kind].retryable


def test_the_wait_ends_in_time_and_never_spins() -> None:
    time = Time()
    found, caller = reach(Script(time, (0.0, ended(Kind.REFUSED))), 60)
    assert (found.outcome.kind, found.waited) == (Kind.REFUSED, None)
    assert time.seconds == pytest.approx(60)
    assert caller.calls < 25
    assert time.slept[:4] == [0.25, 0.5, 1.0, 2.0]
    assert max(time.slept) == LONGEST_PAUSE


def test_a_first_call_that_takes_minutes_is_given_the_whole_wait() -> None:
    time = Time()
    script = Script(time, (121.0, OK))
    found, caller = reach(script, 180)
    assert (found.outcome.kind, found.waited, caller.calls) == (Kind.OK, 121.0, 1)
    assert script.called[0][0].timeout == 180


def test_a_server_that_says_how_long_is_believed() -> None:
    time = Time()
    found, _ = reach(Script(time, (0.0, ended(Kind.THROTTLED, retry_after=7.0)), (0.0, OK)), 60)
    assert (found.outcome.kind, time.slept) == (Kind.OK, [7.0])


def test_a_longer_wait_than_allowed_is_not_begun() -> None:
    time = Time()
    found, caller = reach(Script(time, (0.0, ended(Kind.THROTTLED, retry_after=90.0)), (0.0, OK)), 60)
    assert (found.outcome.kind, caller.calls, time.slept) == (Kind.THROTTLED, 1, [])


def test_a_moment_is_waited_without_being_asked() -> None:
    time = Time()
    found, _ = reach(Script(time, (0.0, ended(Kind.THROTTLED, retry_after=0.522)), (0.0, OK)), 0)
    assert (found.outcome.kind, time.slept) == (Kind.OK, [0.522])
    time = Time()
    found, _ = reach(Script(time, (0.0, ended(Kind.THROTTLED, retry_after=60.0)), (0.0, OK)), 0)
    assert (found.outcome.kind, time.slept) == (Kind.THROTTLED, [])


@pytest.mark.parametrize("kind", [Kind.DISCONNECTED, Kind.SERVER_ERROR, Kind.EMPTY, Kind.UPSTREAM_FAILED])
def test_a_drop_is_repeated_once(kind: Kind) -> None:
    found, caller = reach(Script(Time(), (0.0, ended(kind)), (0.0, OK)), 0)
    assert (found.outcome.kind, caller.calls, caller.dropped) == (Kind.OK, 2, 1)
    found, caller = reach(Script(Time(), (0.0, ended(kind))), 0)
    assert (found.outcome.kind, caller.calls, caller.dropped) == (kind, 2, 0)


def test_a_server_that_keeps_failing_is_not_waited_for() -> None:
    time = Time()
    found, caller = reach(Script(time, (0.0, ended(Kind.SERVER_ERROR))), 600)
    assert (found.outcome.kind, caller.calls) == (Kind.SERVER_ERROR, 2)
