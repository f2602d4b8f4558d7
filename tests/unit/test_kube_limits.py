"""How fast and how much the API server is asked, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort, kube_fakes
from lstqueue.embedded import clock
from lstqueue.kube import limits, port

virtually = kube_fakes.virtually


class SlowApi:
    """Answers every request after some seconds, or refuses it; knows when each began."""

    def __init__(self, *, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.began: list[float] = []
        self.errors: list[port.ApiError] = []
        self.busy = 0
        self.most_busy = 0
        self.closed = False

    async def _answer(self, *_: Any, **__: Any) -> Any:
        self.began.append(asyncio.get_running_loop().time())
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.busy -= 1
        if self.errors:
            raise self.errors.pop(0)
        return {}

    get = list_page = create = patch = patch_status = replace = delete = version = _answer

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[port.WatchEvent]:
        for number in range(3):
            yield port.WatchEvent("ADDED", kube_fakes.pod("a", number))

    async def close(self) -> None:
        self.closed = True


def limited(api: SlowApi, **options: Any) -> limits.LimitedApi:
    return limits.LimitedApi(api, **options)


@virtually
async def test_writes_keep_the_rate_after_a_burst():
    api = SlowApi()
    subject = limited(api, rate=10, burst=5)
    await asyncio.gather(*[subject.patch(port.PODS, "ns", "a", {}) for _ in range(25)])
    assert api.began[:5] == [0.0] * 5
    assert api.began[5:] == pytest.approx([0.1 * number for number in range(1, 21)], abs=1e-4)
    assert subject.throttled == pytest.approx(sum(0.1 * number for number in range(1, 21)), abs=0.01)
    assert subject.waiting == 0


@virtually
async def test_writes_go_in_the_order_in_which_they_came():
    api = SlowApi()
    subject = limited(api, rate=10, burst=2)
    sent: list[int] = []

    async def write(number: int) -> None:
        await subject.patch(port.PODS, "ns", "a", {})
        sent.append(number)

    await asyncio.gather(*[write(number) for number in range(30)])
    assert sent == list(range(30))


@virtually
async def test_a_rest_brings_the_burst_back_and_no_more():
    api = SlowApi()
    subject = limited(api, rate=10, burst=5)
    for _ in range(2):
        await asyncio.gather(*[subject.patch(port.PODS, "ns", "a", {}) for _ in range(6)])
        await asyncio.sleep(3600)
    assert [time % 3600 for time in api.began[6:]] == pytest.approx([0.1] * 5 + [0.2], abs=1e-3)


@virtually
async def test_rate_0_is_no_limit():
    api = SlowApi()
    subject = limited(api, rate=0, burst=1, in_flight=1000)
    await asyncio.gather(*[subject.patch(port.PODS, "ns", "a", {}) for _ in range(500)])
    assert set(api.began) == {0.0}


@virtually
async def test_requests_in_flight_are_bounded_reads_included():
    api = SlowApi(seconds=1)
    subject = limited(api, in_flight=3)
    calls = [subject.get(port.PODS, "ns", "a") for _ in range(5)]
    await asyncio.gather(*calls, *[subject.patch(port.PODS, "ns", "a", {}) for _ in range(5)])
    assert api.most_busy == 3
    assert asyncio.get_running_loop().time() == pytest.approx(4)


@virtually
async def test_reads_and_watches_do_not_wait_for_the_rate_of_writes():
    api = SlowApi()
    subject = limited(api, rate=0.01, burst=1, in_flight=2)
    writes = [asyncio.create_task(subject.patch(port.PODS, "ns", "a", {})) for _ in range(10)]
    await asyncio.sleep(1)
    await subject.get(port.PODS, "ns", "a")
    await subject.list_page(port.PODS)
    await subject.version()
    assert len([event async for event in subject.watch(port.PODS, resource_version="1")]) == 3
    assert asyncio.get_running_loop().time() == pytest.approx(1)
    assert subject.waiting == 9
    for write in writes:
        write.cancel()
    await asyncio.wait(writes)
    assert subject.waiting == 0


@virtually
async def test_a_write_that_is_given_up_takes_no_token():
    api = SlowApi()
    subject = limited(api, rate=1, burst=1)
    await subject.patch(port.PODS, "ns", "a", {})
    given_up = [asyncio.create_task(subject.patch(port.PODS, "ns", "a", {})) for _ in range(5)]
    await asyncio.sleep(0.5)
    for task in given_up:
        task.cancel()
    await asyncio.wait(given_up)
    await subject.patch(port.PODS, "ns", "a", {})
    assert api.began == pytest.approx([0.0, 1.0], abs=1e-4)


@pytest.mark.parametrize(("retry_after", "pause"), [(7.0, 7.0), (None, 1.0), (9999.0, 60.0)])
def test_a_429_pauses_the_writes_and_ends_the_burst(retry_after, pause):
    async def scenario() -> None:
        api = SlowApi()
        subject = limited(api, rate=10, burst=100)
        api.errors = [port.UnavailableError(429, "TooManyRequests", "later", retry_after=retry_after)]
        with pytest.raises(port.UnavailableError):
            await subject.patch(port.PODS, "ns", "a", {})
        await asyncio.gather(*[subject.patch(port.PODS, "ns", "a", {}) for _ in range(3)])
        assert api.began[1:] == pytest.approx([pause, pause + 0.1, pause + 0.2], abs=1e-3)

    clock.run(scenario(), horizon=1e4)


@virtually
async def test_a_429_holds_back_writes_that_wait_already():
    api = SlowApi()
    subject = limited(api, rate=10, burst=1)
    await subject.patch(port.PODS, "ns", "a", {})
    waiting = asyncio.create_task(subject.patch(port.PODS, "ns", "a", {}))
    await asyncio.sleep(0.05)
    api.errors = [port.UnavailableError(429, "TooManyRequests", "later", retry_after=5.0)]
    with pytest.raises(port.UnavailableError):
        await subject.get(port.PODS, "ns", "a")
    await waiting
    assert api.began[-1] == pytest.approx(5.05, abs=1e-3)


@virtually
async def test_other_refusals_pause_nothing():
    api = SlowApi()
    subject = limited(api, rate=10, burst=2)
    api.errors = [port.ConflictError(409, "Conflict", "no", retry_after=5.0)]
    with pytest.raises(port.ConflictError):
        await subject.patch(port.PODS, "ns", "a", {})
    await subject.patch(port.PODS, "ns", "a", {})
    assert api.began == [0.0, 0.0]


@virtually
async def test_requests_are_counted_by_verb_and_kind():
    api = SlowApi()
    subject = limited(api)
    await subject.create(port.JOBS, "ns", {})
    await subject.create(port.PODS, "ns", {}, dry_run=True)
    await subject.patch(port.PODS, "ns", "a", {})
    await subject.patch(port.PODS, "ns", "a", {})
    await subject.patch_status(port.DEADLINE_JOBS, "ns", "a", {})
    await subject.replace(port.LEASES, "ns", "a", {})
    await subject.delete(port.SERVICES, "ns", "a")
    await subject.list_page(port.PODS)
    subject.watch(port.NODES, resource_version="1")
    api.errors = [port.NotFoundError(404, "NotFound", "no")]
    with pytest.raises(port.NotFoundError):
        await subject.get(port.PODS, "ns", "a")
    assert subject.requests == {
        ("create", "jobs"): 1,
        ("dry_run", "pods"): 1,
        ("patch", "pods"): 2,
        ("patch_status", "deadlinejobs"): 1,
        ("replace", "leases"): 1,
        ("delete", "services"): 1,
        ("list", "pods"): 1,
        ("watch", "nodes"): 1,
        ("get", "pods"): 1,
    }
    assert subject.errors == {("get", "pods", 404): 1}
    await subject.close()
    assert api.closed


@pytest.mark.parametrize(
    ("options", "message"), [({"rate": -1}, "rate"), ({"burst": 0}, "burst"), ({"in_flight": 0}, "in_flight")]
)
async def test_limits_that_make_no_sense_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        limited(SlowApi(), **options)


@settings(max_examples=effort.examples(25), deadline=None)
@given(
    rate=st.sampled_from([0.1, 1.0, 3.0, 50.0]),
    burst=st.integers(1, 20),
    rests=st.lists(st.floats(0, 30), min_size=1, max_size=40),
    start=st.sampled_from([0.0, 1e7]),
)
def test_no_window_ever_holds_more_than_burst_and_rate_allow(rate, burst, rests, start):
    async def scenario() -> list[float]:
        await asyncio.sleep(start)
        api = SlowApi()
        subject = limited(api, rate=rate, burst=burst, in_flight=1000)
        tasks = []
        for rest in rests:
            tasks += [asyncio.create_task(subject.patch(port.PODS, "ns", "a", {})) for _ in range(3)]
            await asyncio.sleep(rest)
        await asyncio.gather(*tasks)
        return api.began

    began = clock.run(scenario(), horizon=1e8)
    assert len(began) == 3 * len(rests)
    for first, time in enumerate(began):
        for last in range(first, len(began)):
            assert last - first + 1 <= burst + rate * (began[last] - time) + 1e-3
