"""The Job controller: which pods a Job gets, how they are counted, and how it ends."""

import asyncio

import pytest

from cases import worlds
from lstqueue.embedded.controllers import jobpods
from lstqueue.embedded.world import World
from lstqueue.kube import port

INDEX = "batch.kubernetes.io/job-completion-index"


def status(world: World, name: str = "job") -> port.Object:
    found: port.Object = world.store.get(port.JOBS, worlds.NAMESPACE, name)["status"]
    return found


def make(world: World, body: port.Object) -> port.Object:
    return world.store.create(port.JOBS, worlds.NAMESPACE, body)


def patch(world: World, spec: port.Object) -> None:
    world.store.patch(port.JOBS, worlds.NAMESPACE, "job", {"spec": spec})


@worlds.virtual
async def test_an_indexed_job_gets_one_pod_per_index_with_its_identity() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        made = make(world, worlds.job("job", 3))
        await world.until(lambda: len(worlds.all_pods(world.store)) == 3, within=5)
        for index, pod in enumerate(worlds.all_pods(world.store)):
            meta, spec = pod["metadata"], pod["spec"]
            assert meta["name"].startswith(f"job-{index}-")
            assert len(meta["name"]) == len(f"job-{index}-") + 5
            assert meta["labels"][INDEX] == meta["annotations"][INDEX] == str(index)
            assert meta["labels"]["batch.kubernetes.io/job-name"] == meta["labels"]["job-name"] == "job"
            assert meta["labels"]["batch.kubernetes.io/controller-uid"] == made["metadata"]["uid"]
            assert meta["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
            assert spec["hostname"] == f"job-{index}"
            assert [item["name"] for item in spec["containers"][0]["env"]] == ["JOB_COMPLETION_INDEX"]


@worlds.virtual
async def test_a_job_completes_when_every_index_has_succeeded() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, worlds.job("job", 4, annotations={"sim/start-after": "10s", "sim/run-for": "1h"}))
        await world.until(lambda: status(world).get("ready") == 4, within=60)
        assert status(world)["active"] == 4
        assert status(world)["startTime"] == "2026-01-01T00:00:00Z"
        await world.until(lambda: worlds.job_is(world.store, "job", "Complete"), within=3700)
        done = status(world)
        assert (done["succeeded"], done["completedIndexes"], done["ready"]) == (4, "0-3", 0)
        assert [item["type"] for item in done["conditions"]] == ["SuccessCriteriaMet", "Complete"]
        assert done["completionTime"] == "2026-01-01T01:00:11Z"
        assert "active" not in done


@worlds.virtual
async def test_a_plain_job_runs_parallelism_pods_until_completions() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        body = worlds.job("job", 5, annotations={"sim/run-for": "60s"}, completionMode="NonIndexed")
        body["spec"]["parallelism"] = 2
        make(world, body)
        busiest = 0

        def complete() -> bool:
            nonlocal busiest
            busiest = max(busiest, worlds.phases(world.store).count("Running"))
            return worlds.job_is(world.store, "job", "Complete")

        await world.until(complete, within=600)
        assert busiest == 2
        assert worlds.phases(world.store) == ["Succeeded"] * 5
        assert status(world)["succeeded"] == 5


@worlds.virtual
async def test_suspending_deletes_active_pods_keeps_succeeded_ones_and_counts_no_failure() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1, gpus=2)
        make(world, worlds.job("job", 3, annotations={"sim/run-for": "10m", "sim/terminate-after": "30s"}))
        await world.until(lambda: status(world).get("succeeded") == 2, within=700)
        patch(world, {"suspend": True})
        await asyncio.sleep(1)
        assert status(world)["terminating"] == 1
        assert worlds.job_is(world.store, "job", "Suspended")
        assert "startTime" not in status(world)
        touched = {"metadata": {"labels": {"looked": "at"}}}
        world.store.patch(port.JOBS, worlds.NAMESPACE, "job", touched)
        await asyncio.sleep(40)
        assert worlds.phases(world.store) == ["Succeeded", "Succeeded"]
        assert status(world).get("failed", 0) == 0
        patch(world, {"suspend": False})
        await world.until(lambda: worlds.job_is(world.store, "job", "Complete"), within=700)
        assert not worlds.job_is(world.store, "job", "Suspended")
        assert status(world)["completedIndexes"] == "0-2"


@worlds.virtual
async def test_a_job_created_suspended_has_no_pods_until_it_is_resumed() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, worlds.job("job", 2, suspend=True))
        await asyncio.sleep(60)
        assert worlds.all_pods(world.store) == []
        assert worlds.job_is(world.store, "job", "Suspended")
        patch(world, {"suspend": False})
        await world.until(lambda: status(world).get("ready") == 2, within=10)


@worlds.virtual
async def test_without_retries_one_failure_ends_the_job_once_its_pods_are_gone() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, worlds.job("job", 3, annotations={"sim/terminate-after": "5m"}))
        await world.until(lambda: status(world).get("ready") == 3, within=10)
        victim = worlds.all_pods(world.store)[1]["metadata"]["name"]
        failed = {"status": {"phase": "Failed"}}
        world.store.patch(port.PODS, worlds.NAMESPACE, victim, failed, subresource="status")
        await world.until(lambda: worlds.job_is(world.store, "job", "FailureTarget"), within=5)
        assert not worlds.job_is(world.store, "job", "Failed")
        assert status(world)["terminating"] == 2
        await asyncio.sleep(290)
        assert not worlds.job_is(world.store, "job", "Failed")
        await world.until(lambda: worlds.job_is(world.store, "job", "Failed"), within=30)
        ended = worlds.condition(world.store.get(port.JOBS, worlds.NAMESPACE, "job"), "Failed")
        assert ended["reason"] == "BackoffLimitExceeded"
        assert status(world)["failed"] == 3, "what is cut short with a Job that fails has failed too"
        assert worlds.phases(world.store) == ["Failed"]


@worlds.virtual
async def test_failed_pods_are_replaced_under_new_names_after_a_back_off() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        annotations = {"sim/fail-after": "60s", "sim/exit-code": "3"}
        make(world, worlds.job("job", 1, annotations=annotations, backoffLimit=2))
        await world.until(lambda: worlds.job_is(world.store, "job", "Failed"), within=600)
        assert status(world)["failed"] == 3
        pods = worlds.all_pods(world.store)
        assert len({pod["metadata"]["name"] for pod in pods}) == 3
        starts = sorted(pod["metadata"]["creationTimestamp"] for pod in pods)
        assert starts == ["2026-01-01T00:00:00Z", "2026-01-01T00:01:10Z", "2026-01-01T00:02:30Z"]


@worlds.virtual
async def test_a_pod_that_somebody_deletes_counts_as_failed() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, worlds.job("job", 2, backoffLimit=1))
        await world.until(lambda: status(world).get("ready") == 2, within=10)
        victim = worlds.all_pods(world.store)[0]["metadata"]["name"]
        world.store.delete(port.PODS, worlds.NAMESPACE, victim)
        await world.until(lambda: status(world).get("failed") == 1, within=10)
        await world.until(lambda: status(world).get("ready") == 2, within=30)
        world.store.delete(port.PODS, worlds.NAMESPACE, worlds.all_pods(world.store)[0]["metadata"]["name"])
        await world.until(lambda: worlds.job_is(world.store, "job", "Failed"), within=30)


@worlds.virtual
async def test_a_refused_pod_is_tried_again() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, worlds.job("job", 2, pod_fields={"priorityClassName": "missing"}))
        await asyncio.sleep(25)
        assert worlds.all_pods(world.store) == []
        world.store.create(port.PRIORITY_CLASSES, None, {"metadata": {"name": "missing"}, "value": 1})
        await world.until(lambda: len(worlds.all_pods(world.store)) == 2, within=11)


@worlds.virtual
async def test_lowering_parallelism_deletes_what_is_too_many_and_no_failure_is_counted() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, worlds.job("job", 6))
        await world.until(lambda: status(world).get("ready") == 6, within=10)
        patch(world, {"parallelism": 2, "completions": 2})
        await world.until(lambda: len(worlds.all_pods(world.store)) == 2, within=10)
        assert [jobpods.index_of(pod) for pod in worlds.all_pods(world.store)] == [0, 1]
        await asyncio.sleep(5)
        assert status(world).get("failed", 0) == 0


@worlds.virtual
async def test_hundreds_of_pods_appear_over_some_seconds() -> None:
    async with World(serve=False) as world:
        make(world, worlds.job("job", 600))
        await asyncio.sleep(0.05)
        assert 0 < len(worlds.all_pods(world.store)) < 600
        await world.until(lambda: len(worlds.all_pods(world.store)) == 600, within=5)


@worlds.virtual
async def test_a_job_of_the_same_name_gets_other_pods_while_the_old_ones_leave() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        body = worlds.job("job", 2, annotations={"sim/terminate-after": "10m"})
        make(world, body)
        await world.until(lambda: status(world).get("ready") == 2, within=10)
        world.store.delete(port.JOBS, worlds.NAMESPACE, "job", propagation="Background")
        make(world, body)
        await world.until(lambda: status(world).get("ready") == 2, within=10)
        assert len(worlds.all_pods(world.store)) == 4
        await world.until(lambda: len(worlds.all_pods(world.store)) == 2, within=700)


@worlds.virtual
async def test_two_runs_name_their_pods_alike() -> None:
    names = []
    for _ in range(2):
        async with World(serve=False) as world:
            world.add_nodes(1)
            make(world, worlds.job("job", 8))
            await world.until(lambda: status(world).get("ready") == 8, within=10)
            names.append([pod["metadata"]["name"] for pod in worlds.all_pods(world.store)])
    assert names[0] == names[1]


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        ([], ""),
        ([0], "0"),
        ([0, 1], "0,1"),
        ([7, 1, 4, 3, 5], "1,3-5,7"),
        (range(12), "0-11"),
    ],
)
def test_completed_indexes_are_written_as_kubernetes_does(indexes: list[int], text: str) -> None:
    assert jobpods.format_indexes(indexes) == text
    assert jobpods.parse_indexes(text) == set(indexes)
