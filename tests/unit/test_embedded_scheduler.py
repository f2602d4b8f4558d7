"""The scheduler: who is bound where, who waits, and what a waiting pod is told."""

import asyncio
from typing import Any

import pytest

from cases import worlds
from lstqueue.embedded.controllers import pods
from lstqueue.embedded.world import World
from lstqueue.kube import port


def make(world: World, name: str, **fields: Any) -> None:
    world.store.create(port.PODS, worlds.NAMESPACE, worlds.pod(name, **fields))


def where(world: World, *names: str) -> list[str]:
    return [worlds.node_name(world.store, name) for name in names]


def told(world: World, name: str) -> str:
    scheduled = worlds.condition(worlds.get_pod(world.store, name), "PodScheduled")
    assert scheduled["status"] == "False"
    assert scheduled["reason"] == "Unschedulable"
    return str(scheduled["message"])


def patch_node(world: World, name: str, spec: dict[str, Any]) -> None:
    world.store.patch(port.NODES, None, name, {"spec": spec})


@worlds.virtual
async def test_pods_are_bound_in_the_order_they_came_while_room_lasts() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1, gpus=4)
        for name in ("d", "a", "c", "b"):
            make(world, name, gpus=2)
        await asyncio.sleep(1)
        assert where(world, "d", "a", "c", "b") == ["node-0000", "node-0000", "", ""]
        message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
        assert told(world, "c") == told(world, "b") == message
        world.store.delete(port.PODS, worlds.NAMESPACE, "a")
        await asyncio.sleep(1)
        assert where(world, "c", "b") == ["node-0000", ""]


@worlds.virtual
async def test_a_terminating_pod_keeps_its_room_and_a_finished_one_does_not() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1, gpus=2)
        make(world, "leaver", annotations={"sim/terminate-after": "10m"})
        make(world, "runner", annotations={"sim/run-for": "2m"})
        make(world, "third")
        make(world, "fourth")
        await asyncio.sleep(1)
        world.store.delete(port.PODS, worlds.NAMESPACE, "leaver")
        await asyncio.sleep(100)
        assert where(world, "third", "fourth") == ["", ""]
        await asyncio.sleep(30)
        assert where(world, "third", "fourth") == ["node-0000", ""]
        await asyncio.sleep(600)
        assert where(world, "fourth") == ["node-0000"]


@worlds.virtual
async def test_a_small_pod_passes_a_large_one_that_waits() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1, gpus=4)
        make(world, "large", gpus=8)
        make(world, "small", gpus=1)
        await asyncio.sleep(1)
        assert where(world, "large", "small") == ["", "node-0000"]


@worlds.virtual
async def test_a_pinned_pod_goes_to_its_node_and_nowhere_else() -> None:
    async with World(serve=False) as world:
        world.add_nodes(3, gpus=1)
        make(world, "one", affinity=worlds.pinned("node-0002"))
        make(world, "two", affinity=worlds.pinned("node-0002"))
        make(world, "lost", affinity=worlds.pinned("node-0009"))
        await asyncio.sleep(1)
        assert where(world, "one", "two", "lost") == ["node-0002", "", ""]
        elsewhere = "node(s) didn't satisfy plugin(s) [NodeAffinity]."
        assert told(world, "two") == f"0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 {elsewhere}"
        assert told(world, "lost") == f"0/3 nodes are available: 3 {elsewhere}"
        world.store.delete(port.PODS, worlds.NAMESPACE, "one")
        await asyncio.sleep(1)
        assert where(world, "two") == ["node-0002"]


@worlds.virtual
async def test_a_pod_pinned_to_a_node_that_comes_later_is_bound_then() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, "early", affinity=worlds.pinned("node-0001"))
        await asyncio.sleep(1)
        assert where(world, "early") == [""]
        world.add_nodes(1)
        await asyncio.sleep(1)
        assert where(world, "early") == ["node-0001"]


@worlds.virtual
async def test_gated_pods_and_those_of_other_schedulers_are_left_alone() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1)
        make(world, "gated", schedulingGates=[{"name": "example.com/wait"}])
        make(world, "foreign", schedulerName="other")
        await asyncio.sleep(60)
        assert where(world, "gated", "foreign") == ["", ""]
        gated = worlds.condition(worlds.get_pod(world.store, "gated"), "PodScheduled")
        assert gated["reason"] == "SchedulingGated"
        lifted = {"spec": {"schedulingGates": None, "affinity": worlds.pinned("node-0000")}}
        world.store.patch(port.PODS, worlds.NAMESPACE, "gated", lifted)
        await asyncio.sleep(1)
        assert where(world, "gated") == ["node-0000"]


@worlds.virtual
async def test_a_waiting_pod_that_somebody_else_binds_or_deletes_is_let_go() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1, gpus=1)
        for name in ("holder", "bound", "deleted"):
            make(world, name)
        await asyncio.sleep(1)
        world.store.bind(worlds.NAMESPACE, "bound", "node-0000")
        world.store.delete(port.PODS, worlds.NAMESPACE, "deleted")
        world.store.delete(port.PODS, worlds.NAMESPACE, "holder")
        await asyncio.sleep(60)
        assert world.errors == []


@worlds.virtual
async def test_selectors_and_affinity_expressions_choose_nodes() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1, labels={"kind": "a100", "size": "4"})
        world.add_nodes(1, labels={"kind": "h100", "size": "16"})
        make(world, "selected", nodeSelector={"kind": "h100"})
        expressions = {
            "greater": {"key": "size", "operator": "Gt", "values": ["8"]},
            "less": {"key": "size", "operator": "Lt", "values": ["8"]},
            "notin": {"key": "kind", "operator": "NotIn", "values": ["a100"]},
            "absent": {"key": "kind", "operator": "DoesNotExist"},
        }
        for name, expression in expressions.items():
            required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
            make(world, name, affinity=affinity)
        await asyncio.sleep(1)
        assert where(world, "selected", "greater", "less", "notin") == [
            "node-0001",
            "node-0001",
            "node-0000",
            "node-0001",
        ]
        assert told(world, "absent") == (
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
        )
        world.store.patch(port.NODES, None, "node-0000", {"metadata": {"labels": {"kind": None}}})
        await asyncio.sleep(1)
        assert where(world, "absent") == ["node-0000"]


@worlds.virtual
async def test_taints_need_tolerations_and_cordons_stop_everybody() -> None:
    async with World(serve=False) as world:
        world.add_nodes(2)
        taint = {"key": "team", "value": "research", "effect": "NoSchedule"}
        patch_node(world, "node-0000", {"taints": [taint]})
        patch_node(world, "node-0001", {"unschedulable": True})
        make(world, "plain")
        await asyncio.sleep(1)
        message = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
        assert told(world, "plain") == message
        make(world, "wrong", tolerations=[{"key": "team", "value": "sales"}])
        make(world, "right", tolerations=[{"key": "team", "value": "research"}])
        make(world, "any", tolerations=[{"operator": "Exists"}])
        await asyncio.sleep(1)
        assert where(world, "wrong", "right", "any") == ["", "node-0000", "node-0000"]
        patch_node(world, "node-0001", {"unschedulable": None})
        await asyncio.sleep(1)
        assert where(world, "plain", "wrong") == ["node-0001", "node-0001"]


@worlds.virtual
async def test_pod_slots_run_out_like_any_resource() -> None:
    async with World(serve=False) as world:
        world.add_nodes(1, max_pods=2)
        for name in ("a", "b", "c"):
            make(world, name, gpus=0)
        await asyncio.sleep(1)
        assert where(world, "a", "b", "c") == ["node-0000", "node-0000", ""]
        assert told(world, "c") == "0/1 nodes are available: 1 Too many pods."


@worlds.virtual
async def test_a_cluster_without_nodes_says_so_and_a_broken_node_takes_nobody() -> None:
    async with World(serve=False) as world:
        make(world, "first")
        await asyncio.sleep(1)
        assert told(world, "first") == "no nodes available to schedule pods"
        world.add_nodes(1)
        world.fail_node("node-0000")
        await asyncio.sleep(1)
        make(world, "second")
        await asyncio.sleep(1)
        assert told(world, "second") == "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
        world.heal_node("node-0000")
        await asyncio.sleep(1)
        assert where(world, "first", "second") == ["node-0000", "node-0000"]


def container(cpu: str | None = None, **fields: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    return {"name": "c", "image": "i", "resources": resources, **fields}


@pytest.mark.parametrize(
    ("spec", "millicores"),
    [
        ({"containers": [container("1"), container("500m")]}, 1500),
        ({"containers": [container("1")], "initContainers": [container("3")]}, 3000),
        ({"containers": [container("2")], "initContainers": [container("1"), container("1")]}, 2000),
        (
            {"containers": [container("1")], "initContainers": [container("1", restartPolicy="Always")]},
            2000,
        ),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("1", restartPolicy="Always"), container("3")],
            },
            4000,
        ),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("3"), container("1", restartPolicy="Always")],
            },
            3000,
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}, 2000),
    ],
)
def test_a_pod_is_charged_what_kubernetes_charges(spec: port.Object, millicores: int) -> None:
    assert pods.requests(spec) == {"cpu": millicores, "pods": 1}


def test_an_amount_that_cannot_be_read_fits_nowhere() -> None:
    spec = worlds.pod_spec(gpus=0)
    spec["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "0.5"}}
    assert pods.requests(spec)["nvidia.com/gpu"] >= 10**18
