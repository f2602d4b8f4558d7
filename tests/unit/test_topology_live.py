"""`lstqueue topology show` of a cluster: its Interconnect, or its labels, and what is free in each domain."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from click.testing import CliRunner

from cases import objects
from lstqueue import cli
from lstqueue.embedded import clock, faults, memory, server, store
from lstqueue.interconnect import live, show
from lstqueue.interconnect.sources import Source
from lstqueue.kube import port

RACK = "example.com/rack"
OWN = {"name": "own", "nodeLabels": {"keys": [RACK]}}
GPU = "nvidia.com/gpu"


def node(name: str, rack: str, *, gpus: int = 8, **spec: Any) -> objects.Object:
    amounts = {GPU: str(gpus), "cpu": "64", "memory": "1Ti", "pods": "110"}
    ready = {"type": "Ready", "status": "True"}
    return {
        "metadata": {"name": name, "labels": {RACK: rack} if rack else {}},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def pod(name: str, where: str, gpus: int) -> objects.Object:
    container = {"name": "main", "image": "x", "resources": {"limits": {GPU: gpus}}}
    return {"metadata": {"name": name}, "spec": {"nodeName": where, "containers": [container]}}


def fill(stored: store.Store) -> None:
    for number in range(4):
        stored.create(port.NODES, None, node(f"n{number}", f"r{number // 2}"))
    stored.create(port.NODES, None, node("odd", "", unschedulable=True))
    stored.create(port.PODS, "default", pod("a", "n0", 3))
    stored.create(port.PODS, "default", pod("b", "n2", 8))


def own(*sources: objects.Object) -> objects.Object:
    return objects.bare("Interconnect", {"name": "fabric"}, {"sources": list(sources)}, None)


def serving() -> server.ApiServer:
    virtual = clock.VirtualClock(asyncio.get_running_loop())
    return server.ApiServer(store.Store(now=virtual.now))


def nothing(_broken: faults.Faults) -> None:
    """All is well."""


def seen(prepare: Callable[[store.Store], None], fault: Callable[[faults.Faults], None] = nothing) -> Source:
    """What is read of a cluster."""

    async def main() -> Source:
        async with serving() as embedded:
            prepare(embedded.store)
            fault(embedded.faults)
            return await live.look(memory.MemoryApi(embedded.backend), GPU)

    return asyncio.run(main())


def test_domains_of_the_interconnect_say_what_is_free_in_them() -> None:
    def prepare(stored: store.Store) -> None:
        fill(stored)
        stored.create(port.INTERCONNECTS, None, own(OWN))

    found = seen(prepare)
    told = show.document(found)
    assert told["source"] == "Interconnect fabric"
    assert told["levels"] == {"rack": 2}
    racks = {item["name"]: (item["free"], item["gpus"]) for item in told["domains"]}
    assert racks == {"r0": (13, 16), "r1": (8, 16)}
    # Nothing is free where no pod may go.
    assert {item["name"]: item["free"] for item in told["nodes"]}["odd"] == 0
    assert [item["name"] for item in told["left_out"]] == ["odd"]


def test_a_source_that_may_not_be_read_is_told_and_the_others_are_shown() -> None:
    place = {"namespace": "default", "name": "f", "key": "k", "format": "slurm"}

    def prepare(stored: store.Store) -> None:
        fill(stored)
        stored.create(port.INTERCONNECTS, None, own({"name": "conf", "configMap": place}, OWN))

    def fault(broken: faults.Faults) -> None:
        when = faults.calls(verb="list", resource=port.CONFIG_MAPS)
        broken.fail(403, "Forbidden", message="configmaps is forbidden", when=when, times=None)

    found = seen(prepare, fault)
    assert found.notes == ("conf: ConfigMap default/f cannot be read: configmaps is forbidden",)
    assert not found.whole
    assert show.document(found)["levels"] == {"rack": 2}


def test_without_anything_that_says_where_nodes_are_all_is_one() -> None:
    found = seen(fill)
    told = show.document(found)
    assert told["levels"] == {}
    assert sum(item["free"] for item in told["nodes"]) == 21
    assert found.notes == ("nothing says which nodes are near each other",)


def test_the_command_reads_a_cluster_where_no_file_is_named() -> None:
    async def main() -> str:
        async with serving() as embedded:
            fill(embedded.store)
            embedded.store.create(port.INTERCONNECTS, None, own(OWN))
            run = CliRunner().invoke
            done = await asyncio.to_thread(run, cli.main, ["topology", "show", "--url", embedded.url])
            assert done.exit_code == 0, done.output
            both = await asyncio.to_thread(
                run, cli.main, ["topology", "show", "-o", "json", "--url", embedded.url]
            )
            assert json.loads(both.output)["levels"] == {"rack": 2}
            asked = ["topology", "fit", "--gang", "2x8", "--required", "rack", "--url", embedded.url]
            wide = await asyncio.to_thread(run, cli.main, asked)
            assert (wide.exit_code, wide.output) == (1, "2x8: does not fit in one rack now\n")
            asked[3] = "2x4"
            near = await asyncio.to_thread(run, cli.main, asked)
            assert near.exit_code == 0, near.output
            assert "  n3: ranks 0-1" in near.output
            return done.output

    printed = asyncio.run(main())
    assert printed.splitlines()[0] == "Interconnect fabric: 5 nodes, 21 of 40 GPUs free; rack 2"
    assert "rack r0: 2 nodes, 13 of 16 GPUs free" in printed
    assert "n0 (5 of 8) n1 (8 of 8)" in printed


def test_what_does_not_go_together_is_refused() -> None:
    for arguments, said in (
        (["show", "labels:x", "--url", "http://x"], "--url is of a cluster"),
        (["show", "--key", "a"], "--key is for labels:PATH"),
        (["fit", "labels:x", "--gang", "1x1", "--url", "http://x"], "--url is of a cluster"),
        (
            ["show", "--url", "http://127.0.0.1:9"],
            "check the URL, or that of the kubeconfig, and whether the server runs\n",
        ),
    ):
        done = CliRunner().invoke(cli.main, ["topology", *arguments])
        assert done.exit_code != 0
        assert said in done.output
