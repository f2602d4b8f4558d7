"""Nodes that fall silent, are declared out of service, cordoned or removed, and the pods on them."""

import asyncio
from typing import Any

import pytest

from cases import worlds
from lstqueue.embedded import metadata
from lstqueue.embedded.world import World
from lstqueue.kube import port

UNREACHABLE = "node.kubernetes.io/unreachable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def make(world: World, name: str = "pod", **fields: Any) -> None:
    world.store.create(port.PODS, worlds.NAMESPACE, worlds.pod(name, **fields))


def exists(world: World, name: str = "pod") -> bool:
    return world.store.find(port.PODS, worlds.NAMESPACE, name) is not None


def leaving(world: World, name: str = "pod") -> bool:
    return "deletionTimestamp" in worlds.get_pod(world.store, name)["metadata"]


def ready(obj: port.Object) -> str:
    return str(worlds.condition(obj, "Ready")["status"])


def node(world: World) -> port.Object:
    return world.store.get(port.NODES, None, "node-0000")


def taints(world: World) -> list[str]:
    return sorted(item["key"] for item in node(world).get("spec", {}).get("taints") or ())


@worlds.virtual
async def test_a_silent_node_is_noticed_after_50_s_and_its_pods_are_evicted_300_s_later() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, annotations={"sim/run-for": "20s"})
        await asyncio.sleep(1)
        world.fail_node("node-0000", how="silent")
        await asyncio.sleep(49)
        assert ready(node(world)) == "True"
        assert taints(world) == []
        assert ready(worlds.get_pod(world.store, "pod")) == "True", "nobody has noticed"
        assert worlds.phase(world.store, "pod") == "Running", "it stands still all the same"
        await asyncio.sleep(2)
        assert ready(node(world)) == "Unknown"
        assert taints(world) == [UNREACHABLE, UNREACHABLE]
        assert ready(worlds.get_pod(world.store, "pod")) == "False"
        await asyncio.sleep(297)
        assert not leaving(world)
        await asyncio.sleep(3)
        assert leaving(world)
        await asyncio.sleep(86_400)
        assert exists(world), "nobody ends it"
        world.heal_node("node-0000")
        await asyncio.sleep(1)
        assert not exists(world)
        assert taints(world) == []


@worlds.virtual
async def test_a_short_silence_is_not_noticed_at_all() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world)
        await asyncio.sleep(1)
        for _ in range(3):
            world.fail_node("node-0000", how="silent")
            await asyncio.sleep(40)
            world.heal_node("node-0000")
            await asyncio.sleep(5)
        assert ready(node(world)) == "True"
        assert ready(worlds.get_pod(world.store, "pod")) == "True"
        assert not leaving(world)


@worlds.virtual
async def test_leases_are_renewed_until_the_node_falls_silent() -> None:
    async with World(serve=False, node_leases=True) as world:
        world.add_nodes(2)
        await asyncio.sleep(65)
        world.fail_node("node-0000", how="silent")
        world.fail_node("node-0001")
        await asyncio.sleep(60)
        now = world.now()
        ages = []
        for name in ("node-0000", "node-0001"):
            lease = world.store.get(port.LEASES, "kube-node-lease", name)
            assert lease["spec"]["holderIdentity"] == name
            assert lease["metadata"]["ownerReferences"][0]["kind"] == "Node"
            ages.append((now - metadata.parse_timestamp(lease["spec"]["renewTime"])) / 1000)
        assert ages == pytest.approx([65, 5], abs=1)
        world.heal_node("node-0000")
        await asyncio.sleep(1)
        lease = world.store.get(port.LEASES, "kube-node-lease", "node-0000")
        assert world.now() - metadata.parse_timestamp(lease["spec"]["renewTime"]) < 2_000
        world.store.delete(port.NODES, None, "node-0001")
        await asyncio.sleep(1)
        assert world.store.find(port.LEASES, "kube-node-lease", "node-0001") is None


@worlds.virtual
async def test_out_of_service_frees_stuck_pods_of_a_node_that_is_down_only() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, annotations={"sim/terminate-after": "1h"}, tolerations=[{"operator": "Exists"}])
        await asyncio.sleep(1)
        world.store.delete(port.PODS, worlds.NAMESPACE, "pod")
        world.taint("node-0000", OUT_OF_SERVICE, value="shutdown")
        await asyncio.sleep(600)
        assert exists(world), "the node is ready: its kubelet will end the pod"
        world.fail_node("node-0000", how="silent")
        await asyncio.sleep(45)
        assert exists(world)
        await asyncio.sleep(30)
        assert not exists(world)


@worlds.virtual
async def test_declaring_a_dead_node_out_of_service_evicts_and_frees_at_once() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world)
        await asyncio.sleep(1)
        world.fail_node("node-0000", how="unknown")
        await asyncio.sleep(60)
        world.taint("node-0000", OUT_OF_SERVICE, value="shutdown")
        await asyncio.sleep(1)
        assert leaving(world)
        await asyncio.sleep(25)
        assert not exists(world)


@worlds.virtual
async def test_a_stuck_pod_goes_with_its_node() -> None:
    async with World(serve=False) as world:
        world.add_nodes(2)
        make(world, nodeName="node-0000")
        await asyncio.sleep(1)
        world.fail_node("node-0000", how="unknown")
        await asyncio.sleep(400)
        assert leaving(world)
        world.store.delete(port.NODES, None, "node-0000")
        await asyncio.sleep(65)
        assert not exists(world)


@worlds.virtual
async def test_a_cordon_keeps_new_pods_off_and_a_drain_clears_the_node() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, "first")
        await asyncio.sleep(1)
        world.cordon("node-0000")
        make(world, "second")
        await asyncio.sleep(1)
        assert worlds.phase(world.store, "first") == "Running"
        assert worlds.node_name(world.store, "second") == ""
        world.taint("node-0000", "repair")
        await asyncio.sleep(1)
        assert not exists(world, "first")
        world.untaint("node-0000", "repair")
        world.cordon("node-0000", cordoned=False)
        await asyncio.sleep(1)
        assert worlds.phase(world.store, "second") == "Running"
