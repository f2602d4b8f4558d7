"""When the Job controller does things: pauses after failures, deadlines of a run, removal, refused pods."""

import asyncio
import itertools

from cases import worlds
from lstqueue.embedded import metadata
from lstqueue.embedded.world import World
from lstqueue.kube import port

START = metadata.parse_timestamp("2026-01-01T00:00:00Z")


def status(world: World) -> port.Object:
    found: port.Object = world.store.get(port.JOBS, worlds.NAMESPACE, "job")["status"]
    return found


def make(world: World, body: port.Object) -> None:
    world.store.create(port.JOBS, worlds.NAMESPACE, body)


def patch(world: World, spec: port.Object) -> None:
    world.store.patch(port.JOBS, worlds.NAMESPACE, "job", {"spec": spec})


def births(world: World) -> list[int]:
    """Seconds from the start of the world at which pods were created."""
    times = (pod["metadata"]["creationTimestamp"] for pod in worlds.all_pods(world.store))
    return sorted((metadata.parse_timestamp(time) - START) // 1000 for time in times)


@worlds.virtual
async def test_the_pause_doubles_with_each_failure_up_to_ten_minutes() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        annotations = {"sim/fail-after": "5s"}
        body = worlds.job("job", 1, annotations=annotations, backoffLimit=9, completionMode="NonIndexed")
        make(world, body)
        await world.until(lambda: worlds.job_is(world.store, "job", "Failed"), within=86_400)
        born = births(world)
        gaps = [later - earlier - 5 for earlier, later in itertools.pairwise(born)]
        assert gaps == [10, 20, 40, 80, 160, 320, 600, 600, 600]
        assert status(world)["failed"] == 10


@worlds.virtual
async def test_a_success_forgives_the_failures_before_it() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        body = worlds.job("job", 5, backoffLimit=6, completionMode="NonIndexed")
        body["spec"]["parallelism"] = 1
        make(world, body)
        ends = ["Failed", "Failed", "Succeeded", "Failed", "Succeeded"]
        for count, phase in enumerate(ends, start=1):
            await world.until(lambda count=count: len(births(world)) == count, within=100)
            await asyncio.sleep(3)
            running = next(pod for pod in worlds.all_pods(world.store) if pod["status"]["phase"] == "Running")
            ended = {"status": {"phase": phase}}
            name = running["metadata"]["name"]
            world.store.patch(port.PODS, worlds.NAMESPACE, name, ended, subresource="status")
        await asyncio.sleep(30)
        born = births(world)
        gaps = [later - earlier - 3 for earlier, later in itertools.pairwise(born)]
        # A pod whose containers do not say when they ended counts from its creation.
        assert gaps == [7, 17, 1, 7, 1]


@worlds.virtual
async def test_an_index_that_failed_waits_while_the_others_go_on() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        body = worlds.job("job", 4, annotations={"sim/run-for": "4s"}, backoffLimitPerIndex=3)
        del body["spec"]["backoffLimit"]
        body["spec"]["parallelism"] = 2
        make(world, body)
        await asyncio.sleep(1)
        first = next(pod for pod in worlds.all_pods(world.store) if "job-0-" in pod["metadata"]["name"])
        name = first["metadata"]["name"]
        failed = {"status": {"phase": "Failed"}}
        world.store.patch(port.PODS, worlds.NAMESPACE, name, failed, subresource="status")
        await world.until(lambda: worlds.job_is(world.store, "job", "Complete"), within=60)
        assert status(world)["completedIndexes"] == "0-3"
        assert status(world)["failed"] == 1
        retried = [pod for pod in worlds.all_pods(world.store) if "job-0-" in pod["metadata"]["name"]]
        assert len(retried) == 2
        assert births(world)[-1] == 10


@worlds.virtual
async def test_the_clock_of_an_active_deadline_starts_anew_with_each_run() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, worlds.job("job", 1, activeDeadlineSeconds=100))
        for _ in range(3):
            await asyncio.sleep(90)
            assert not worlds.job_is(world.store, "job", "FailureTarget")
            patch(world, {"suspend": True})
            await asyncio.sleep(500)
            patch(world, {"suspend": False})
        await asyncio.sleep(99)
        assert not worlds.job_is(world.store, "job", "FailureTarget")
        await asyncio.sleep(3)
        reason = worlds.condition(world.store.get(port.JOBS, worlds.NAMESPACE, "job"), "Failed")["reason"]
        assert reason == "DeadlineExceeded"


@worlds.virtual
async def test_a_time_to_live_may_be_set_when_the_job_has_ended_already() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, worlds.job("job", 1, annotations={"sim/run-for": "10s"}))
        await asyncio.sleep(3600)
        assert worlds.job_is(world.store, "job", "Complete")
        patch(world, {"ttlSecondsAfterFinished": 7200})
        await asyncio.sleep(3500)
        assert world.store.find(port.JOBS, worlds.NAMESPACE, "job") is not None
        await asyncio.sleep(150)
        assert world.store.find(port.JOBS, worlds.NAMESPACE, "job") is None
        assert worlds.all_pods(world.store) == []


@worlds.virtual
async def test_a_job_makes_the_pods_that_its_quota_allows_and_goes_on_when_there_is_room() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        quota = {"metadata": {"name": "quota"}, "spec": {"hard": {"pods": "2"}}}
        world.store.create(port.RESOURCE_QUOTAS, worlds.NAMESPACE, quota)
        make(world, worlds.job("job", 4, annotations={"sim/run-for": "5m"}))
        await asyncio.sleep(250)
        assert status(world)["active"] == 2
        await world.until(lambda: worlds.job_is(world.store, "job", "Complete"), within=1000)
        found = world.store.get(port.RESOURCE_QUOTAS, worlds.NAMESPACE, "quota")
        assert found["status"] == {"hard": {"pods": "2"}, "used": {"pods": "0"}}


@worlds.virtual
async def test_a_pod_stuck_in_deletion_stops_holding_quota() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        quota = {"metadata": {"name": "quota"}, "spec": {"hard": {"pods": "1"}}}
        world.store.create(port.RESOURCE_QUOTAS, worlds.NAMESPACE, quota)
        make(world, worlds.job("job", 1, backoffLimit=6))
        await asyncio.sleep(1)
        world.fail_node("node-0000", how="unknown")
        world.add_nodes(1)
        await asyncio.sleep(305)
        assert status(world)["terminating"] == 1
        assert "active" not in status(world), "its place in the quota is taken"
        await asyncio.sleep(120)
        assert status(world)["active"] == 1


@worlds.virtual
async def test_resuming_over_pods_that_still_leave_overlaps_unless_failed_ones_only_are_replaced() -> None:
    for policy, most in (("TerminatingOrFailed", 2), ("Failed", 1)):
        async with World(serve=False) as world:
            world.add_nodes(1)
            slow = {"sim/terminate-after": "60s"}
            make(world, worlds.job("job", 1, annotations=slow, podReplacementPolicy=policy))
            await asyncio.sleep(5)
            patch(world, {"suspend": True})
            await asyncio.sleep(5)
            patch(world, {"suspend": False})
            await asyncio.sleep(5)
            assert len(worlds.all_pods(world.store)) == most
            await asyncio.sleep(60)
            assert status(world)["active"] == 1
            assert len(worlds.all_pods(world.store)) == 1
