"""Passes come in time and not too often, in virtual time."""

import asyncio

from lstqueue.embedded import clock
from lstqueue.operator import bell

QUIET, AT_MOST = 0.05, 1.0


def wait(seconds, *rings, quiet=QUIET, apart=0.0):
    """Return how long a wait takes while it rings at these times, and whether the next one is due."""

    async def main():
        loop = asyncio.get_running_loop()
        one = bell.Bell(quiet=quiet, at_most=AT_MOST, apart=apart)
        for at in rings:
            loop.call_later(at, one.ring)
        await one.wait(seconds)
        took = loop.time()
        await one.wait(0)
        return round(took, 3), loop.time() > took

    return clock.run(main(), horizon=1000)


def test_without_a_ring_it_waits_for_its_time():
    assert wait(60) == (60, False)


def test_a_ring_is_answered_after_a_moment_of_silence():
    assert wait(60, 3) == (3.05, False)
    assert wait(None, 3) == (3.05, False)


def test_a_burst_costs_one_pass():
    assert wait(60, 3, 3.01, 3.04, 3.08) == (3.13, False)


def test_a_drizzle_does_not_put_passes_off_for_ever():
    took, due = wait(60, *(3 + 0.04 * number for number in range(100)))
    assert took == 4
    assert due


def test_a_time_that_is_over_is_no_wait():
    assert wait(0) == (0, False)


def test_a_ring_during_a_pass_is_not_lost():
    async def main():
        loop = asyncio.get_running_loop()
        one = bell.Bell(quiet=QUIET, at_most=AT_MOST)
        one.ring()
        await one.wait(None)
        one.ring()
        await one.wait(None)
        return loop.time()

    assert round(clock.run(main(), horizon=10), 3) == 0.1


def test_a_ring_at_the_very_moment_the_time_is_up_is_answered_now_or_at_once():
    took, due = wait(3, 3)
    assert took <= 3.05
    assert took > 3 or due


def test_passes_are_so_far_apart_whatever_rings():
    assert wait(600, 3, apart=60)[0] == 60
    assert wait(0, apart=60)[0] == 60
    assert wait(600, 3, 59, apart=60)[0] == 60
    assert wait(600, 90, apart=60)[0] == 90.05
