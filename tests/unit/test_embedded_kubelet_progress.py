"""What simulated pods save of their work: their successors go on from there, and from nowhere without it."""

from __future__ import annotations

import asyncio

import pytest

from cases import worlds
from lstqueue.embedded.world import World
from lstqueue.kube import port

EVERY = {"sim/checkpoint-every": "10m"}
ON_TERM = {"sim/checkpoint-on-term": "true"}
RESTORE = {"sim/restore-for": "2m"}


def create(
    world: World,
    annotations: dict[str, str],
    *,
    indexed: bool = True,
    labels: dict[str, str] | None = None,
) -> None:
    """A Job of one pod with an hour of work."""
    pod = worlds.pod("unused", annotations={"sim/run-for": "1h", **annotations})
    meta = {"annotations": pod["metadata"]["annotations"], "labels": labels or {}}
    template = {"metadata": meta, "spec": pod["spec"]}
    template["spec"]["restartPolicy"] = "Never"
    mode = "Indexed" if indexed else "NonIndexed"
    spec = {"completions": 1, "parallelism": 1, "completionMode": mode, "template": template}
    world.store.create(port.JOBS, worlds.NAMESPACE, {"metadata": {"name": "train"}, "spec": spec})


def suspend(world: World, value: bool) -> None:
    world.store.patch(port.JOBS, worlds.NAMESPACE, "train", {"spec": {"suspend": value}})


def succeeded(world: World) -> bool:
    return bool(world.store.get(port.JOBS, worlds.NAMESPACE, "train").get("status", {}).get("succeeded"))


async def runs_for(world: World) -> int:
    """Minutes from now until the Job's pod has succeeded."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await world.until(lambda: succeeded(world), within=7200)
    return round((loop.time() - began) / 60)


@pytest.mark.parametrize(
    ("annotations", "left"),
    [({}, 60), (EVERY, 40), ({**EVERY, **RESTORE}, 42), (ON_TERM, 35), ({**ON_TERM, **RESTORE}, 37)],
)
def test_after_25_minutes_as_much_is_left_as_was_not_saved(annotations: dict[str, str], left: int) -> None:
    @worlds.virtual
    async def scenario() -> None:
        async with World(serve=False) as world:
            world.add_nodes(1)
            create(world, annotations)
            await asyncio.sleep(25 * 60)
            suspend(world, True)
            await asyncio.sleep(60)
            suspend(world, False)
            assert await runs_for(world) == left

    scenario()


@worlds.virtual
async def test_loading_is_no_work_and_is_paid_again_after_each_start() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        create(world, EVERY | RESTORE)
        for minutes in (25, 11, 12):  # saves 20, then nothing, then 10
            await asyncio.sleep(minutes * 60 + 1)
            suspend(world, True)
            await asyncio.sleep(60)
            suspend(world, False)
        assert await runs_for(world) == 32


@worlds.virtual
async def test_the_next_job_of_a_gang_goes_on_from_what_the_one_before_saved() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        create(world, EVERY, labels={"lstqueue.dev/job": "a-gang", "lstqueue.dev/group": "worker"})
        await asyncio.sleep(25 * 60)
        world.store.delete(port.JOBS, worlds.NAMESPACE, "train", propagation="Background")
        await asyncio.sleep(60)
        create(world, EVERY, labels={"lstqueue.dev/job": "a-gang", "lstqueue.dev/group": "worker"})
        assert await runs_for(world) == 40


@worlds.virtual
async def test_pods_without_an_index_save_nothing() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        create(world, EVERY, indexed=False)
        await asyncio.sleep(25 * 60)
        suspend(world, True)
        await asyncio.sleep(60)
        suspend(world, False)
        assert await runs_for(world) == 60


@worlds.virtual
async def test_on_a_node_that_is_down_nothing_is_saved_any_more() -> None:
    async with World(serve=False) as world:
        world.add_nodes(2)
        create(world, EVERY | ON_TERM)
        await asyncio.sleep(25 * 60)
        (pod,) = world.store.list(port.PODS)
        world.fail_node(pod["spec"]["nodeName"], how="silent")
        await asyncio.sleep(4 * 60)
        suspend(world, True)
        await asyncio.sleep(60)
        suspend(world, False)
        assert await runs_for(world) == 40


@worlds.virtual
async def test_an_interval_that_cannot_be_read_is_refused() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        create(world, {"sim/checkpoint-every": "often"})
        await asyncio.sleep(1)
        (pod, *_) = world.store.list(port.PODS)
        assert pod["status"]["reason"] == "UnreadableAnnotation"
        assert "sim/checkpoint-every" in pod["status"]["message"]
