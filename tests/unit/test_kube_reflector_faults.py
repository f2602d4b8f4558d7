"""A reflector on a server that fails: refusals, cuts, lost history, and how often it asks again."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort, kube_fakes
from lstqueue.embedded import clock
from lstqueue.kube import backoff, port

reflecting = kube_fakes.reflecting
virtually = kube_fakes.virtually


def refusals(count: int, status: int = 500, **options: float) -> list[port.ApiError]:
    return [port.UnavailableError(status, "InternalError", "no", **options) for _ in range(count)]


@virtually
async def test_a_list_that_fails_is_tried_again_at_growing_intervals():
    api = kube_fakes.FakeApi()
    api.put("a")
    api.list_errors = refusals(8)
    async with reflecting(api, delays=backoff.Backoff(base=1, limit=20)) as (subject, intake):
        await subject.synced.wait()
        gaps = [b - a for a, b in zip(api.listed_at, api.listed_at[1:], strict=False)]
        steps = [1, 2, 4, 8, 16, 20, 20, 20]
        assert all(step / 2 <= gap <= step for gap, step in zip(gaps, steps, strict=True))
        assert subject.counts.errors == {"InternalError": 8}
        assert subject.counts.relists == 0
        assert intake.told == [("ADDED", "a")]


@virtually
async def test_a_server_that_names_a_time_is_given_it_within_reason():
    api = kube_fakes.FakeApi()
    api.list_errors = refusals(1, 429, retry_after=9.0) + refusals(1, 429, retry_after=9999.0)
    async with reflecting(api, delays=backoff.Backoff(base=0.1, limit=20)) as (subject, _):
        await subject.synced.wait()
        assert [b - a for a, b in zip(api.listed_at, api.listed_at[1:], strict=False)] == [9.0, 20.0]


@virtually
async def test_forbidden_is_reported_and_retried_for_ever():
    api = kube_fakes.FakeApi()
    api.list_errors = [port.ForbiddenError(403, "Forbidden", "no role") for _ in range(100)]
    async with reflecting(api) as (subject, _):
        await asyncio.sleep(600)
        assert not subject.synced.is_set()
        assert isinstance(subject.last_error, port.ForbiddenError)
        assert 10 < subject.counts.errors["Forbidden"] < 60
        api.list_errors.clear()
        await asyncio.sleep(60)
        assert subject.synced.is_set()


@pytest.mark.parametrize("inside", [True, False])
def test_both_forms_of_410_list_again(inside):
    async def scenario() -> None:
        api = kube_fakes.FakeApi()
        api.put("a")
        gone = port.GoneError(410, "Expired", "too old")
        async with reflecting(api) as (subject, intake):
            await asyncio.sleep(1)
            api.deaf = True
            api.remove("a")
            api.put("b")
            api.deaf = False
            if not inside:
                api.watch_errors = [gone]
            api.end_watches(gone if inside else None)
            await asyncio.sleep(2)
            assert len(api.lists) == 2
            assert intake.told == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]
            assert subject.counts.relists == 1

    clock.run(scenario(), horizon=100)


@virtually
async def test_a_cut_goes_on_from_the_last_event_without_a_list():
    api = kube_fakes.FakeApi()
    async with reflecting(api) as (subject, intake):
        await asyncio.sleep(1)
        api.put("a")
        await asyncio.sleep(1)
        api.end_watches(port.UnavailableError(0, "ConnectionFailed", "cut"))
        api.put("b")
        await asyncio.sleep(2)
        assert intake.told == [("ADDED", "a"), ("ADDED", "b")]
        assert api.watches == ["100", "101"]
        assert len(api.lists) == 1
        assert subject.counts.errors == {"ConnectionFailed": 1}
        # Nothing is wrong once the stream speaks again.
        assert subject.last_error is None


@virtually
async def test_a_version_that_keeps_failing_is_doubted():
    # A restored server may answer 504 "too large resource version" for ever.
    api = kube_fakes.FakeApi()
    api.put("a")
    api.watch_errors = refusals(5, 504)
    async with reflecting(api) as (subject, intake):
        await asyncio.sleep(120)
        assert len(api.lists) == 2
        assert intake.told == [("ADDED", "a")]
        assert subject.counts.relists == 1


@virtually
async def test_failures_far_apart_are_not_failures_in_a_row():
    api = kube_fakes.FakeApi()
    async with reflecting(api, idle_seconds=0) as (subject, _):
        for number in range(12):
            await asyncio.sleep(20)
            began = len(api.watched_at)
            api.end_watches(port.UnavailableError(0, "ConnectionFailed", "cut"))
            await asyncio.sleep(2)
            assert len(api.watched_at) == began + 1, f"not back within 2 s of cut {number + 1}"
        assert subject.counts.relists == 0


@virtually
async def test_a_history_that_is_lost_between_list_and_watch_does_not_spin():
    api = kube_fakes.FakeApi()
    api.watch_errors = [port.GoneError(410, "Expired", "too old") for _ in range(1000)]
    async with reflecting(api):
        await asyncio.sleep(600)
        assert 10 < len(api.lists) < 60


@virtually
async def test_watches_that_end_as_soon_as_they_begin_do_not_spin():
    api = kube_fakes.FakeApi()

    async with reflecting(api) as (subject, _):
        loop = asyncio.get_running_loop()
        while loop.time() < 600:
            if api.open_watches:
                api.end_watches()
            await asyncio.sleep(0.1)
        assert len(api.watches) < 60
        assert subject.counts.errors["ShortWatch"] > 10


@virtually
async def test_a_list_whose_pages_expire_begins_again():
    api = kube_fakes.FakeApi()
    for number in range(6):
        api.put(f"p{number}")

    def expire(offset: int) -> None:
        if offset == 4 and len(api.lists) < 5:
            api.remove("p0")
            api.put("p1")
            api.forget()

    api.page_hook = expire
    async with reflecting(api, page_size=2) as (subject, intake):
        await subject.synced.wait()
        assert intake.synced_with == [5]
        assert intake.told[-4:] == [("DELETED", "p0"), ("MODIFIED", "p1"), ("ADDED", "p4"), ("ADDED", "p5")]


@virtually
async def test_pages_of_different_versions_are_followed_from_the_first():
    class Careless(kube_fakes.FakeApi):
        async def list_page(self, resource: port.Resource, **options: object) -> port.Page:
            page = await super().list_page(resource, **options)
            return port.Page(page.items, str(self.version), page.continue_token)

    api = Careless()
    for number in range(4):
        api.put(f"p{number}")
    api.page_hook = lambda offset: api.put("late") if offset == 2 else None
    async with reflecting(api, page_size=2) as (_, intake):
        await asyncio.sleep(1)
        assert "uid-late" in intake.objects


@virtually
async def test_a_deletion_told_twice_or_of_a_stranger_is_passed_on_once():
    api = kube_fakes.FakeApi()
    api.put("a")
    async with reflecting(api) as (subject, intake):
        await subject.synced.wait()
        await asyncio.sleep(1)
        api.remove("a")
        stranger = kube_fakes.pod("stranger", 500)
        for event in (api.log[-1][1], port.WatchEvent("DELETED", stranger)):
            api.send(event)
        await asyncio.sleep(1)
        assert intake.told == [("ADDED", "a"), ("DELETED", "a")]


@virtually
async def test_a_cancelled_reflector_can_run_again_and_goes_on():
    api = kube_fakes.FakeApi()
    api.put("a")
    intake = kube_fakes.Intake()
    subject = kube_fakes.pod_reflector(api, intake)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(subject.run(), 10)
        assert api.open_watches == 0
        api.put("b")
    await asyncio.sleep(0)
    assert intake.told == [("ADDED", "a"), ("ADDED", "b")]
    assert len(api.lists) == 1


Step = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 5)),
    st.tuples(st.just("remove"), st.integers(0, 5)),
    st.tuples(st.just("deaf"), st.booleans()),
    st.tuples(st.sampled_from(["forget", "cut", "end", "bookmark", "500 list", "410 watch"]), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.001, 0.4, 3.0, 100.0])),
)


@settings(max_examples=effort.examples(37), deadline=None)
@given(steps=st.lists(Step, max_size=30), page_size=st.integers(1, 4))
def test_whatever_happens_the_intake_ends_up_like_the_server(steps, page_size):
    async def scenario() -> None:
        api = kube_fakes.FakeApi()
        api.put("p0")
        async with reflecting(api, page_size=page_size) as (_, intake):
            for step, value in steps:
                await perform(api, step, value)
            # Streams that were deaf missed events without knowing: only another list can tell.
            api.deaf = True
            api.put("end")
            api.deaf = False
            api.forget()
            api.end_watches()
            await asyncio.sleep(600)
            expected = {uid: item["metadata"]["resourceVersion"] for uid, item in api.objects.items()}
            assert intake.objects == expected

    clock.run(scenario(), horizon=1e6)


async def perform(api: kube_fakes.FakeApi, step: str, value: object) -> None:
    match step:
        case "put":
            api.put(f"p{value}", uid=f"uid-p{value}")
        case "remove":
            with contextlib.suppress(KeyError):
                api.remove(f"p{value}")
        case "deaf":
            api.deaf = bool(value)
        case "forget":
            api.forget()
        case "cut":
            api.end_watches(port.UnavailableError(0, "ConnectionFailed", "cut"))
        case "end":
            api.end_watches()
        case "bookmark":
            api.bookmark()
        case "500 list":
            api.list_errors.append(port.UnavailableError(500, "InternalError", "no"))
        case "410 watch":
            api.watch_errors.append(port.GoneError(410, "Expired", "too old"))
        case "wait":
            await asyncio.sleep(float(value))
