from __future__ import annotations

import asyncio

from cpersona_cli.rebuild.stop import Stop


def test_a_wish_wakes_the_loop_that_waits_for_it() -> None:
    stop = Stop()

    async def main() -> bool:
        with stop.event() as event:
            # as from a signal handler, or from another thread
            await asyncio.get_running_loop().run_in_executor(None, stop.ask)
            await asyncio.wait_for(event.wait(), 10)
            return event.is_set()

    assert asyncio.run(main())
    assert stop.asked


def test_a_wish_of_before_is_known() -> None:
    stop = Stop()
    stop.ask()
    stop.ask()

    async def main() -> bool:
        with stop.event() as event:
            return event.is_set()

    assert asyncio.run(main())


def test_a_loop_that_is_over_is_left_alone() -> None:
    stop = Stop()

    async def main() -> None:
        with stop.event():
            pass

    asyncio.run(main())
    stop.ask()
    assert stop.asked
