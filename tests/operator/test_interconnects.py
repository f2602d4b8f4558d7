"""An Interconnect is read, told of in its status, and its domains are known to every pass."""

from __future__ import annotations

from typing import Any

import cluster
import pytest
from manifests import group, own

from cases import topologies
from lstqueue.embedded import faults
from lstqueue.kube import port
from lstqueue.topology.domains import Domains

RACK = "example.com/rack"
BLOCK = "example.com/block"
OWN = {"name": "own", "nodeLabels": {"keys": [BLOCK, RACK]}}
FILE = {"namespace": "default", "name": "fabric", "key": "topology.conf", "format": "slurm"}
CONF = (
    "SwitchName=s0 Nodes=node-000[0-1]\nSwitchName=s1 Nodes=node-000[2-3]\nSwitchName=top Switches=s[0-1]\n"
)


def label(made: cluster.Cluster, node: int, **labels: str | None) -> None:
    keys = {{"rack": RACK, "block": BLOCK}[name]: value for name, value in labels.items()}
    made.patch(port.NODES, f"node-{node:04d}", {"metadata": {"labels": keys}})


def racks(made: cluster.Cluster, nodes: int = 4) -> None:
    for node in range(nodes):
        label(made, node, rack=f"r{node // 2}", block="b0")


def interconnect(made: cluster.Cluster, *sources: dict[str, Any], name: str = "fabric", **spec: Any) -> None:
    made.create(port.INTERCONNECTS, own("Interconnect", name, {"sources": list(sources), **spec}))


def status(made: cluster.Cluster, name: str = "fabric") -> dict[str, Any]:
    return made.store.get(port.INTERCONNECTS, None, name).get("status") or {}


def condition(made: cluster.Cluster, kind: str, name: str = "fabric") -> tuple[str, str, str]:
    found = [one for one in status(made, name).get("conditions", ()) if one["type"] == kind]
    return (found[0]["status"], found[0]["reason"], found[0].get("message", "")) if found else ("", "", "")


def domains(made: cluster.Cluster) -> Domains | None:
    snapshot = made.operator.loop.snapshot
    return snapshot.domains if snapshot is not None else None


@cluster.virtual
async def test_levels_are_in_the_status_and_in_every_pass() -> None:
    async with cluster.run(nodes=5) as made:
        racks(made)
        interconnect(made, OWN, levels=[{"name": "rack", "bandwidth": "800Gb/s"}], nodeBandwidth="50GB/s")
        await made.until(lambda: status(made).get("summary") == "block 1, rack 2", "the status has levels")
        assert status(made)["nodes"] == 5
        assert status(made)["levels"] == [
            {"name": "block", "domains": 1, "nodes": 4},
            {"name": "rack", "domains": 2, "nodes": 4},
        ]
        assert status(made)["leftOutCount"] == 1
        assert status(made)["leftOut"][0]["name"] == "node-0004"
        assert condition(made, "Ready")[0] == "True"
        await made.until(lambda: domains(made) is not None, "a pass knows the domains")
        found = domains(made)
        assert found is not None
        assert topologies.members(found, "rack")["b0/r0"] == ("node-0000", "node-0001")
        assert found.levels[1].uplink.tolist() == [100_000, 100_000]
        assert found.link.tolist() == [50_000] * 5
        made.queue()
        made.submit("first", group(run_for="1h"), topology={"required": "rack"})
        await made.until_phase("first", "Running")
        made.submit("near", group(replicas=2, run_for="10m"), topology={"required": "rack"})
        await made.until_phase("near", "Running")
        taken = {name: set(made.placement(name).values()) for name in ("first", "near")}
        assert taken["near"] in ({"node-0000", "node-0001"}, {"node-0002", "node-0003"})
        assert not taken["near"] & taken["first"]
        assert "rack" in made.status("near")["admission"]["topology"]


@cluster.virtual
async def test_domains_are_made_anew_when_nodes_move_and_not_before() -> None:
    async with cluster.run(nodes=4) as made:
        racks(made)
        interconnect(made, OWN)
        await made.until(lambda: status(made).get("summary") == "block 1, rack 2", "the status has levels")
        fabric = made.operator.fabric.known
        before = fabric.contractions
        for node in range(4):
            made.patch(port.NODES, f"node-{node:04d}", {"metadata": {"labels": {"unrelated": "x"}}})
            made.patch(port.NODES, f"node-{node:04d}", {"spec": {"unschedulable": True}})
        await made.rest("5m")
        assert fabric.contractions == before
        label(made, 1, rack="r1")
        await made.rest("1m")
        assert fabric.contractions == before + 1
        found = fabric.domains
        assert found is not None
        assert topologies.members(found, "rack")["b0/r1"] == ("node-0001", "node-0002", "node-0003")
        made.world.add_nodes(1, gpus=8)
        await made.until(lambda: status(made)["nodes"] == 5, "a new node is known")
        made.delete("node-0004", port.NODES)
        await made.until(lambda: status(made)["nodes"] == 4, "a node that went is not")


@cluster.virtual
async def test_what_a_source_said_counts_while_it_is_empty_or_may_not_be_read() -> None:
    async with cluster.run(nodes=4, slack=100) as made:
        made.create(port.CONFIG_MAPS, {"metadata": {"name": "fabric"}, "data": {"topology.conf": CONF}})
        interconnect(made, {"name": "conf", "configMap": FILE})
        await made.until(lambda: status(made).get("summary") == "block 1, leafgroup 2", "the file is read")
        before = made.operator.fabric.known.domains
        for broken in ("", "SwitchName=s0 Nodes=n[1-\n"):
            made.patch(port.CONFIG_MAPS, "fabric", {"data": {"topology.conf": broken}})
            await made.until(lambda: condition(made, "Stale")[0] == "True", "it is stale")
            assert condition(made, "SourcesRead")[:2] == ("False", "Unreadable")
            assert condition(made, "SourcesRead")[2].startswith("conf: ")
            assert made.operator.fabric.known.domains is before
            made.patch(port.CONFIG_MAPS, "fabric", {"data": {"topology.conf": CONF}})
            await made.until(lambda: condition(made, "Stale")[0] == "False", "it is well again")
        made.delete("fabric", port.CONFIG_MAPS)
        await made.until(lambda: "is not there" in condition(made, "Stale")[2], "it is missed")
        assert status(made)["summary"] == "block 1, leafgroup 2"
        assert made.operator.fabric.known.domains is before


@cluster.virtual
async def test_labels_that_are_known_count_without_an_interconnect() -> None:
    async with cluster.run(nodes=4) as made:
        made.world.add_nodes(200)  # in several zones, which nobody asked for
        await made.rest("1m")
        assert made.operator.cache.domains is None
        for node in range(4):
            keys = {"cloud.google.com/gce-topology-block": f"b{node // 2}"}
            made.patch(port.NODES, f"node-{node:04d}", {"metadata": {"labels": keys}})
        await made.rest("1m")
        found = made.operator.cache.domains
        assert found is not None
        assert topologies.sizes(found)["block"] == 2


@cluster.virtual
async def test_the_oldest_counts_and_others_say_so() -> None:
    async with cluster.run(nodes=4, slack=100) as made:
        racks(made)
        interconnect(made, {"name": "hyper", "hyperNodes": {"apiVersion": "topology.volcano.sh/v1alpha1"}})
        await made.rest("1m")
        interconnect(made, OWN, name="second")
        await made.until(
            lambda: condition(made, "Accepted", "second")[0] == "False", "the second does not count"
        )
        assert condition(made, "Accepted", "second")[1:] == (
            "NotUsed",
            "Interconnect fabric, which is older, counts; delete one of the two",
        )
        assert condition(made, "Ready")[:2] == ("False", "NoDomains")
        made.delete("fabric", port.INTERCONNECTS)
        await made.until(lambda: status(made, "second").get("summary") == "block 1, rack 2", "then it counts")


@pytest.mark.parametrize("resource", [port.INTERCONNECTS, port.CONFIG_MAPS])
def test_a_missing_permission_stops_nobody(resource: port.Resource) -> None:
    kind = resource.plural
    refusal = f'{kind} is forbidden: User "lstqueue" cannot list resource "{kind}"'

    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=2, start=False, slack=100) as made:
            racks(made, 2)
            needs = faults.calls(verb="list", resource=resource)
            made.faults.fail(403, "Forbidden", message=refusal, when=needs, times=None)
            interconnect(made, OWN, {"name": "conf", "configMap": FILE})
            await made.start()
            made.queue()
            made.submit("train", group(run_for="10m"))
            await made.until_phase("train", "Succeeded")
            if resource is port.CONFIG_MAPS:
                assert condition(made, "SourcesRead")[:2] == ("False", "Refused")
                assert refusal in condition(made, "SourcesRead")[2]
                assert condition(made, "Ready")[0] == "True"
                assert condition(made, "Stale")[0] == "False"
            made.calm()
            made.create(port.CONFIG_MAPS, {"metadata": {"name": "fabric"}, "data": {"topology.conf": CONF}})
            await made.until(lambda: "leafgroup" in status(made).get("summary", ""), "all is read")

    scenario()


@cluster.virtual
async def test_a_source_that_does_not_answer_is_not_said_to_be_missing() -> None:
    async with cluster.run(nodes=2, slack=100) as made:
        made.create(port.CONFIG_MAPS, {"metadata": {"name": "fabric"}, "data": {"topology.conf": CONF}})
        needs = faults.calls(verb="list", resource=port.CONFIG_MAPS)
        made.faults.fail(503, "ServiceUnavailable", message="etcd is slow", when=needs, times=None)
        interconnect(made, {"name": "conf", "configMap": FILE})
        await made.until(lambda: condition(made, "SourcesRead")[0] == "False", "it is told")
        _, reason, said = condition(made, "SourcesRead")
        assert reason == "Unreadable"
        assert said.startswith("conf: ConfigMap default/fabric has not been read yet: ")
        assert "etcd is slow" in said
        made.calm()
        await made.until(lambda: condition(made, "SourcesRead")[0] == "True", "it is read")


@cluster.virtual
async def test_a_cluster_that_lacks_the_kind_has_no_interconnect_and_is_ready() -> None:
    async with cluster.run(nodes=2, start=False, slack=100) as made:
        needs = faults.calls(resource=port.INTERCONNECTS)
        made.faults.fail(404, "NotFound", message="the server could not find it", when=needs, times=None)
        await made.start()
        made.queue()
        made.submit("train", group(run_for="10m"))
        await made.until_phase("train", "Succeeded")
        assert made.operator.behind() == []


@cluster.virtual
async def test_gangs_stay_below_one_root_where_the_interconnect_says_so() -> None:
    async with cluster.run(nodes=6) as made:
        for node in range(6):
            label(made, node, rack=f"r{node // 3}")
        interconnect(made, {"name": "own", "nodeLabels": {"keys": [RACK]}}, spanRoots=False)
        await made.until(lambda: status(made).get("summary") == "rack 2", "the status has levels")
        made.queue()
        made.submit("wide", group(replicas=4, run_for="10m"))
        made.submit("near", group(replicas=3, run_for="10m"))
        await made.until_phase("near", "Succeeded")
        assert made.phase("wide") == "Pending"
        assert "one rack" in made.status("wide")["pending"]["message"]
        made.patch(port.INTERCONNECTS, "fabric", {"spec": {"spanRoots": True}})
        await made.until_phase("wide", "Succeeded", within="2h")


@cluster.virtual
async def test_a_status_that_may_not_be_written_is_written_once_it_may() -> None:
    async with cluster.run(nodes=4, slack=100) as made:
        racks(made)
        needs = faults.calls(verb="patch", resource=port.INTERCONNECTS, subresource="status")
        made.faults.fail(403, "Forbidden", message="not allowed", when=needs, times=None)
        interconnect(made, OWN)
        made.queue()
        made.submit("train", group(replicas=2, run_for="10m"), topology={"required": "rack"})
        await made.until_phase("train", "Succeeded")
        assert status(made) == {}
        made.calm()
        await made.until(lambda: status(made).get("summary") == "block 1, rack 2", "it is told", within="1m")


@cluster.virtual
async def test_a_spec_that_cannot_be_used_says_so_and_the_next_one_counts() -> None:
    async with cluster.run(nodes=4) as made:
        racks(made)
        interconnect(made, OWN)
        await made.until(lambda: status(made).get("summary") == "block 1, rack 2", "the status has levels")
        made.smuggle(
            port.INTERCONNECTS, "fabric", {"sources": [{"name": "x", "nodeLabels": {"preset": "Acme"}}]}
        )
        await made.until(lambda: condition(made, "Accepted")[0] == "False", "it is refused")
        assert condition(made, "Accepted")[1] == "InvalidSpec"
        assert "spec.sources[0].nodeLabels.preset" in condition(made, "Accepted")[2]
        interconnect(made, OWN, name="second")
        await made.until(lambda: status(made, "second").get("summary") == "block 1, rack 2", "it counts")
