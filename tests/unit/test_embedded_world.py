"""The world as a whole: it serves, waits, collects garbage, repeats itself and reports its own failures."""

import asyncio

import aiohttp
import pytest

from cases import worlds
from lstqueue.embedded import clock
from lstqueue.embedded.world import World
from lstqueue.kube import port


@worlds.virtual
async def test_the_cluster_answers_over_http_in_virtual_time() -> None:
    async with World() as world:
        world.add_nodes(2)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            url = f"{world.url}/apis/batch/v1/namespaces/default/jobs"
            body = worlds.job("job", 2, annotations={"sim/run-for": "3h"})
            async with session.post(url, json=body) as reply:
                assert reply.status == 201
            await world.until(lambda: worlds.job_is(world.store, "job", "Complete"), within=4 * 3600)
            async with session.get(f"{url}/job") as reply:
                assert (await reply.json())["status"]["succeeded"] == 2
    assert asyncio.get_running_loop().time() == pytest.approx(3 * 3600 + 1, abs=2)


@worlds.virtual
async def test_a_watch_sees_each_write_at_its_time() -> None:
    async with World() as world:
        world.add_nodes(1)
        seen: list[tuple[str, float]] = []
        loop = asyncio.get_running_loop()

        async def watch(session: aiohttp.ClientSession) -> None:
            url = f"{world.url}/api/v1/namespaces/default/pods"
            query = {"watch": "1", "resourceVersion": str(world.store.revision), "timeoutSeconds": "86400"}
            unlimited = aiohttp.ClientTimeout(total=None)
            async with session.get(url, params=query, timeout=unlimited) as reply:
                async for line in reply.content:
                    phase = "Succeeded" if b'"phase":"Succeeded"' in line else "other"
                    seen.append((phase, loop.time()))

        async with aiohttp.ClientSession() as session:
            watching = asyncio.create_task(watch(session))
            await asyncio.sleep(1)
            pod = worlds.pod("pod", annotations={"sim/run-for": "12h"})
            world.store.create(port.PODS, worlds.NAMESPACE, pod)
            await asyncio.sleep(13 * 3600)
            watching.cancel()
        ends = [at for phase, at in seen if phase == "Succeeded"]
        assert ends[0] == pytest.approx(12 * 3600 + 1, abs=0.1)


@worlds.virtual
async def test_waiting_for_what_never_comes_ends_in_time() -> None:
    async with World(serve=False) as world:
        with pytest.raises(TimeoutError):
            await world.until(lambda: False, within=3600)
        assert asyncio.get_running_loop().time() == 3600


@worlds.virtual
async def test_a_controller_that_fails_is_reported_at_the_end() -> None:
    broken = RuntimeError("broken")

    async def run() -> None:
        async with World(serve=False) as world:
            world.errors.append(broken)

    with pytest.raises(ExceptionGroup) as failed:
        await run()
    assert failed.value.exceptions == (broken,)


@worlds.virtual
async def test_an_error_of_the_test_is_not_hidden_by_one_of_a_controller() -> None:
    async def run() -> None:
        async with World(serve=False) as world:
            world.errors.append(RuntimeError("broken"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run()


@worlds.virtual
async def test_wall_time_begins_at_the_epoch_of_the_world() -> None:
    async with World(serve=False, epoch_ms=1_500_000_000_000) as world:
        await asyncio.sleep(2.5)
        assert world.now() == 1_500_000_002_500


@worlds.virtual
async def test_nodes_are_numbered_on_and_laid_out_in_racks_and_zones() -> None:
    async with World(serve=False) as world:
        assert world.add_nodes(2) == ["node-0000", "node-0001"]
        assert world.add_nodes(70, gpus=0)[-1] == "node-0071"
        first, last = (world.store.get(port.NODES, None, name) for name in ("node-0000", "node-0071"))
        assert first["metadata"]["labels"]["topology.kubernetes.io/rack"] == "rack-000"
        assert last["metadata"]["labels"]["topology.kubernetes.io/rack"] == "rack-004"
        assert last["metadata"]["labels"]["topology.kubernetes.io/zone"] == "z1"
        assert "nvidia.com/gpu" in first["status"]["allocatable"]
        assert "nvidia.com/gpu" not in last["status"]["allocatable"]


def test_a_run_can_be_repeated_to_the_byte() -> None:
    async def run() -> list[str]:
        async with World(serve=False, seed=7) as world:
            world.add_nodes(3)
            for number in range(5):
                body = worlds.job(f"job-{number}", 4, annotations={"sim/run-for": f"{number + 1}m"})
                world.store.create(port.JOBS, worlds.NAMESPACE, body)
            await asyncio.sleep(1)
            world.fail_node("node-0001")
            await asyncio.sleep(3600)
            return [
                repr(item) for kind in (port.PODS, port.JOBS, port.NODES) for item in world.store.list(kind)
            ]

    assert clock.run(run()) == clock.run(run())


# Garbage collection


@worlds.virtual
async def test_deleting_a_job_takes_its_pods_along() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        world.store.create(port.JOBS, worlds.NAMESPACE, worlds.job("job", 3))
        await world.until(lambda: worlds.phases(world.store) == ["Running"] * 3, within=5)
        world.store.delete(port.JOBS, worlds.NAMESPACE, "job", propagation="Background")
        assert len(worlds.all_pods(world.store)) == 3
        await world.until(lambda: worlds.all_pods(world.store) == [], within=5)


@worlds.virtual
async def test_orphaned_pods_stay_and_lose_their_owner() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        world.store.create(port.JOBS, worlds.NAMESPACE, worlds.job("job", 3))
        await world.until(lambda: worlds.phases(world.store) == ["Running"] * 3, within=5)
        world.store.delete(port.JOBS, worlds.NAMESPACE, "job", propagation="Orphan")
        gone = lambda: world.store.find(port.JOBS, worlds.NAMESPACE, "job") is None  # noqa: E731
        await world.until(gone, within=5)
        await asyncio.sleep(60)
        assert worlds.phases(world.store) == ["Running"] * 3
        assert all("ownerReferences" not in pod["metadata"] for pod in worlds.all_pods(world.store))


@worlds.virtual
async def test_a_foreground_deletion_ends_after_that_of_the_pods() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        body = worlds.job("job", 2, annotations={"sim/terminate-after": "5m"})
        world.store.create(port.JOBS, worlds.NAMESPACE, body)
        await world.until(lambda: worlds.phases(world.store) == ["Running"] * 2, within=5)
        world.store.delete(port.JOBS, worlds.NAMESPACE, "job", propagation="Foreground")
        await asyncio.sleep(290)
        assert world.store.find(port.JOBS, worlds.NAMESPACE, "job") is not None
        await world.until(
            lambda: (
                world.store.find(port.JOBS, worlds.NAMESPACE, "job") is None
                and not worlds.all_pods(world.store)
            ),
            within=60,
        )


@worlds.virtual
async def test_an_object_goes_only_with_its_last_owner_and_an_absent_owner_is_none() -> None:
    async with World(serve=False) as world:
        owners = [
            world.store.create(port.JOBS, worlds.NAMESPACE, worlds.job(name, 1, suspend=True))
            for name in ("a", "b")
        ]
        references = [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
            }
            for owner in owners
        ]
        ports = {"ports": [{"port": 80}]}
        for name, owned in (("both", references), ("lost", [{**references[0], "uid": "no-such-uid"}])):
            body = {"metadata": {"name": name, "ownerReferences": owned}, "spec": ports}
            world.store.create(port.SERVICES, worlds.NAMESPACE, body)
        world.store.delete(port.JOBS, worlds.NAMESPACE, "a", propagation="Background")
        await asyncio.sleep(60)
        assert [item["metadata"]["name"] for item in world.store.list(port.SERVICES)] == ["both"]
        world.store.delete(port.JOBS, worlds.NAMESPACE, "b", propagation="Background")
        await asyncio.sleep(60)
        assert list(world.store.list(port.SERVICES)) == []
