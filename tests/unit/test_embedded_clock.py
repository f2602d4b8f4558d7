"""Virtual time: what jumps, and what a jump must never overtake."""

import asyncio
import itertools
import sys
import threading
import time

import pytest

from lstqueue.embedded import clock

DAY = 86_400.0


def test_days_of_sleep_pass_at_once_and_in_order() -> None:
    woke: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woke.append((name, asyncio.get_running_loop().time()))

    async def main() -> None:
        await asyncio.gather(sleeper("c", 30 * DAY), sleeper("a", 0.001), sleeper("b", 2 * DAY))

    started = time.monotonic()
    clock.run(main())
    assert time.monotonic() - started < 10
    assert woke == [("a", 0.001), ("b", 2 * DAY), ("c", 30 * DAY)]


@pytest.mark.parametrize("start", [1e6, 1e7 + 0.1, 1e8 / 3, 1e9 + 1 / 3])
def test_a_jump_fires_its_timer_at_any_age_of_the_clock(start: float) -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(start)
        assert isinstance(loop, clock.VirtualLoop)
        before = loop.jumps
        for step in range(1, 200):
            await asyncio.sleep(step / 7_000)
        return loop.jumps - before

    assert clock.run(main()) == 199


def test_a_timeout_interrupts_a_longer_wait_at_its_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(120):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert clock.run(main()) == 120


def test_wall_time_starts_at_the_epoch_and_reaches_what_a_timer_was_set_for() -> None:
    async def main() -> None:
        wall = clock.VirtualClock(asyncio.get_running_loop(), epoch_ms=1_000_000)
        assert wall.now() == 1_000_000
        for wait in (1, 7, 333, 1_001, 86_400_001):
            due = wall.now() + wait
            await asyncio.sleep(wait / 1000)
            assert wall.now() == due

    clock.run(main())


def test_a_thread_holds_the_clock() -> None:
    async def main() -> tuple[bool, float]:
        loop = asyncio.get_running_loop()
        release = threading.Event()
        overtaken = loop.call_later(1, release.set)
        loop.call_soon(threading.Timer(0.05, release.set).start)
        work = loop.run_in_executor(None, release.wait, 30)
        async with asyncio.timeout(5):
            in_time = await work
        still_set = overtaken.when() > loop.time()
        overtaken.cancel()
        return in_time and still_set, loop.time()

    assert clock.run(main()) == (True, 0.0)


def test_the_clock_moves_again_when_threads_are_done_or_failed() -> None:
    def fail() -> None:
        raise ValueError("no")

    async def main() -> float:
        loop = asyncio.get_running_loop()
        with pytest.raises(ValueError, match="no"):
            await loop.run_in_executor(None, fail)
        await asyncio.to_thread(int)
        await asyncio.sleep(DAY)
        return loop.time()

    assert clock.run(main()) == DAY


def test_holding_the_clock_lets_another_thread_answer_before_a_timeout() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, clock.VirtualLoop)
        answered = asyncio.Event()
        threading.Timer(0.02, loop.call_soon_threadsafe, [answered.set]).start()
        with loop.hold():
            async with asyncio.timeout(0.001):
                await answered.wait()
        return loop.time()

    assert clock.run(main()) == 0.0


def test_a_child_process_is_not_overtaken_by_its_timeout() -> None:
    async def main() -> tuple[bytes, float]:
        loop = asyncio.get_running_loop()
        code = "import time; time.sleep(0.05); print('done')"
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(60):
            output, _ = await child.communicate()
        at_end = loop.time()
        await asyncio.sleep(DAY)
        return output, at_end

    output, at_end = clock.run(main())
    assert output.strip() == b"done"
    assert at_end < 60


def test_time_goes_on_for_a_child_that_waits_for_us() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        code = "print(input())"
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        await asyncio.sleep(0.02)
        await child.communicate(b"go\n")
        return loop.time()

    assert 0.02 <= clock.run(main()) < 60


def test_without_timers_the_loop_waits_for_the_outside() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        threading.Timer(0.02, loop.call_soon_threadsafe, [woken.set]).start()
        await woken.wait()
        return loop.time()

    assert clock.run(main()) == 0.0


def test_a_scenario_that_never_ends_is_stopped_and_named() -> None:
    async def keepalive() -> None:
        for beat in itertools.count():
            await asyncio.sleep(50 + beat % 2)

    async def forgotten() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        beat = asyncio.create_task(keepalive(), name="heartbeat")
        await asyncio.gather(beat, asyncio.create_task(forgotten(), name="lost"))

    with pytest.raises(clock.StuckError) as stuck:
        clock.run(main(), horizon=3_600)
    message = str(stuck.value)
    assert "virtual second 35" in message
    assert "heartbeat" in message
    assert "lost" in message
    assert "forgotten" in message


def test_tasks_are_cancelled_in_order_after_the_horizon() -> None:
    cleaned: list[float] = []

    async def main() -> None:
        try:
            await asyncio.sleep(2 * DAY)
        finally:
            await asyncio.sleep(5)
            cleaned.append(asyncio.get_running_loop().time())

    with pytest.raises(clock.StuckError):
        clock.run(main(), horizon=60)
    assert cleaned == [5.0]


def test_a_loop_that_nothing_can_wake_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_QUIET_LIMIT", 0.01)

    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(clock.StuckError, match="no timer is set"):
        clock.run(main(), horizon=60)
