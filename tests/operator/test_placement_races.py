"""What may come between the decision where ranks go and the moment at which they are there."""

from __future__ import annotations

import cluster
import existing
import pytest
from crashes import dead, dies_when
from manifests import group, own, pod_spec
from test_failed_starts import backed_off, once_admitted

from lstqueue.embedded import faults
from lstqueue.kube import port

BLOCK, RACK = "example.com/block", "example.com/rack"
NEAR = {"required": "rack"}
HOME = [f"node-{node:04d}" for node in (0, 2, 4, 6)]


def relabel(made: cluster.Cluster, node: str, rack: str) -> None:
    made.patch(port.NODES, node, {"metadata": {"labels": {RACK: rack}}})


async def racks(made: cluster.Cluster) -> None:
    """Two racks to which nodes are dealt in turn, so that their order is not that of their names."""
    names = sorted(raw["metadata"]["name"] for raw in made.store.list(port.NODES))
    for number, name in enumerate(names):
        labels = {BLOCK: "b0", RACK: f"r{number % 2}"}
        made.patch(port.NODES, name, {"metadata": {"labels": labels}})
    source = {"name": "own", "nodeLabels": {"keys": [BLOCK, RACK]}}
    made.create(port.INTERCONNECTS, own("Interconnect", "fabric", {"sources": [source]}))
    made.queue()
    await made.rest("1m")


def pins(pods: list[cluster.Object]) -> dict[int, tuple[str, str]]:
    """By completion index, the node that a pod is pinned to and the one it is on."""
    index = "batch.kubernetes.io/job-completion-index"
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    found: dict[int, tuple[str, str]] = {}
    for raw in pods:
        if raw["spec"].get("schedulingGates"):
            continue
        (term,) = raw["spec"]["affinity"]["nodeAffinity"][field]["nodeSelectorTerms"]
        (pin,) = term["matchFields"]
        (node,) = pin["values"]
        found[int(raw["metadata"]["annotations"][index])] = (node, raw["spec"].get("nodeName", ""))
    return found


def rack(made: cluster.Cluster, job: str) -> set[int]:
    return {int(node[-4:]) % 2 for node in made.placement(job).values()}


@cluster.virtual
async def test_each_rank_of_a_users_own_job_is_pinned_in_the_order_of_the_racks() -> None:
    async with cluster.run(nodes=6) as made:
        await racks(made)
        jobs = existing.Existing(made)
        jobs.create("train", parallelism=5, completions=5, run_for="20m")
        await jobs.until_phase("train", "Running")
        order = [f"node-{node:04d}" for node in (0, 2, 4, 1, 3)]
        assert pins(jobs.pods("train")) == {rank: (node, node) for rank, node in enumerate(order)}


@cluster.virtual
@pytest.mark.parametrize("gpus", [8, 0])
async def test_a_node_that_a_foreign_or_a_daemons_pod_took_costs_a_start_and_the_rack_is_kept(
    gpus: int,
) -> None:
    async with cluster.run(nodes=8, slack=20) as made:
        await racks(made)
        taken: list[str] = []
        whole = pod_spec()
        whole["containers"][0]["resources"]["requests"] = {"cpu": "128"}

        def intrude() -> None:
            taken.append(made.placement("gang")[1])
            late = pod_spec(gpus)
            late["containers"][0]["resources"]["requests"] = {"cpu": "1"}
            made.create(port.PODS, {"metadata": {"name": "late"}, "spec": {**late, "nodeName": taken[0]}})

        once_admitted(made, "gang", intrude)
        made.submit("gang", group("worker", 3, run_for="1h", pod=whole), topology=NEAR)
        await made.until(lambda: taken, "it is admitted")
        home = rack(made, "gang")
        assert (await backed_off(made, "gang", 1))["avoid"] == taken
        said = made.condition("gang", "Suspended")["message"]
        assert "rank 1 (pod gang-worker-0-1-" in said
        assert f"Insufficient {'nvidia.com/gpu' if gpus else 'cpu'}" in said
        await made.until_phase("gang", "Running")
        assert taken[0] not in made.placement("gang").values()
        assert rack(made, "gang") == home


@cluster.virtual
@pytest.mark.parametrize(("gone", "full"), [(False, False), (True, False), (True, True)])
async def test_a_replacement_returns_to_its_node_or_its_rack_and_else_its_gang_moves_whole(
    gone: bool, full: bool
) -> None:
    async with cluster.run(nodes=10 if full else 8, slack=30) as made:
        await racks(made)
        jobs = existing.Existing(made)
        jobs.create("train", parallelism=3, completions=3, run_for="2h", said={"topology-required": "rack"})
        await jobs.until_phase("train", "Running")
        ledger = jobs.ledger("train")
        before, home = made.placement(ledger), rack(made, ledger)
        victim = next(raw for raw in jobs.pods("train") if raw["spec"]["nodeName"] == before[1])
        if gone:
            made.world.cordon(before[1])
        if full:
            for node in range(10):
                if node % 2 in home and f"node-{node:04d}" not in before.values():
                    made.foreign_pod(f"foreign-{node}", f"node-{node:04d}")
        made.end_pod(victim)
        if full:
            await made.until(lambda: made.status(ledger).get("attempt") == 2, "it is placed anew")
        else:
            await made.until(lambda: pins(jobs.pods("train")).get(1, ("", ""))[1], "its pod is back")
        await jobs.until_phase("train", "Running")
        after = made.placement(ledger)
        assert (rack(made, ledger) == home) == (not full)
        assert (before[1] in after.values()) == (not gone)
        assert made.status(ledger)["attempt"] == (2 if full else 1)
        if not full:
            assert {rank: node for rank, node in after.items() if rank != 1} == {
                rank: node for rank, node in before.items() if rank != 1
            }
            assert pins(jobs.pods("train"))[1] == (after[1], after[1])
            told = [raw for raw in made.store.list(port.EVENTS) if raw["reason"] == "RankMoved"]
            assert [raw["involvedObject"]["name"] for raw in told] == (["train"] if gone else [])


@cluster.virtual
async def test_a_rank_that_was_moved_goes_where_that_was_written_whoever_died_meanwhile() -> None:
    async with cluster.run(nodes=8, slack=30) as made:
        await racks(made)
        jobs = existing.Existing(made)
        jobs.create("train", parallelism=3, completions=3, run_for="2h", said={"topology-required": "rack"})
        await jobs.until_phase("train", "Running")
        ledger = jobs.ledger("train")
        before = made.placement(ledger)

        def moved() -> bool:
            return made.placement(ledger).get(1) != before[1]

        dies_when(made, moved)
        made.world.cordon(before[1])
        made.end_pod(next(raw for raw in jobs.pods("train") if raw["spec"].get("nodeName") == before[1]))
        await dead(made, moved, "it dies when the other node is written")
        written = made.placement(ledger)
        assert 1 not in pins(jobs.pods("train"))
        await made.start()
        await made.until(lambda: pins(jobs.pods("train")).get(1, ("", ""))[1], "its pod is back")
        assert made.placement(ledger) == written
        assert pins(jobs.pods("train"))[1] == (written[1], written[1])
        assert made.status(ledger)["attempt"] == 1


@cluster.virtual
async def test_a_replacement_whose_node_was_taken_ends_the_run_in_time_and_its_gang_goes_elsewhere() -> None:
    async with cluster.run(nodes=8, slack=40, reaction="20m") as made:
        await racks(made)
        jobs = existing.Existing(made)
        jobs.create("train", parallelism=3, completions=3, run_for="5h", said={"topology-required": "rack"})
        await jobs.until_phase("train", "Running")
        ledger = jobs.ledger("train")
        before, home = made.placement(ledger), rack(made, ledger)
        victim = next(raw for raw in jobs.pods("train") if raw["spec"]["nodeName"] == before[1])
        told: set[str] = set()
        made.store.subscribe(lambda _: told.add(made.condition(ledger, "Suspended").get("message", "")))
        made.end_pod(victim)
        made.foreign_pod("intruder", before[1])
        began = made.now()
        await made.until(lambda: made.status(ledger).get("attempt") == 2, "it is placed anew", within="2h")
        assert made.now() - began == pytest.approx(10 * 60_000, abs=5_000)
        assert made.status(ledger)["backoff"]["avoid"] == [before[1]]
        (message,) = {words for words in told if words}
        assert f"is not bound to node {before[1]} after 10 min: Unschedulable: 0/8 nodes" in message
        await jobs.until_phase("train", "Running")
        assert before[1] not in made.placement(ledger).values()
        assert rack(made, ledger) == home


@cluster.virtual
async def test_a_terminating_pod_keeps_its_node_until_it_is_gone() -> None:
    async with cluster.run(nodes=4) as made:
        await racks(made)
        for node in ("node-0000", "node-0001"):
            meta = {"name": f"on-{node}", "annotations": {"sim/terminate-after": "40m"}}
            made.create(port.PODS, {"metadata": meta, "spec": {**pod_spec(), "nodeName": node}})
        made.submit("gang", group("worker", 2, run_for="10m"), topology=NEAR)
        await made.until_phase("gang", "Pending")
        made.delete("on-node-0001", port.PODS)
        await made.rest("35m")
        assert made.phase("gang") == "Pending"
        await made.until_phase("gang", "Running", within="10m")
        assert rack(made, "gang") == {1}
        await made.until_phase("gang", "Succeeded")


@cluster.virtual
@pytest.mark.parametrize("unseen", [port.PODS, port.NODES], ids=["pods", "nodes"])
async def test_who_was_placed_by_an_old_view_is_told_what_was_there_and_goes_elsewhere(
    unseen: port.Resource,
) -> None:
    async with cluster.run(nodes=8, slack=60, reaction="10m") as made:
        await racks(made)
        for verb in ("list", "watch"):
            made.faults.delay(45.0, when=faults.calls(verb=verb, resource=unseen))
        made.faults.cut_watches(unseen)
        for number, node in enumerate(HOME):
            if unseen == port.PODS:
                made.foreign_pod(f"foreign-{number}", node)
            else:
                made.world.cordon(node)
        made.submit("gang", group("worker", 3, run_for="1h"), topology=NEAR)
        await made.until(lambda: made.placement("gang"), "it is admitted")
        assert rack(made, "gang") == {0}
        await backed_off(made, "gang", 1)
        said = made.condition("gang", "Suspended")["message"]
        assert "rank 0 (pod gang-worker-0-0-" in said
        assert ("Insufficient nvidia.com/gpu" if unseen == port.PODS else "were unschedulable") in said
        await made.until_phase("gang", "Running")
        assert rack(made, "gang") == {1}
        assert made.status("gang")["attempt"] == 2


@cluster.virtual
async def test_a_node_that_is_made_anew_under_its_name_has_what_was_decided_for_it_decided_anew() -> None:
    async with cluster.run(nodes=4, slack=20) as made:
        await racks(made)

        def replaced() -> None:
            name = made.placement("gang")[1]
            raw = made.store.get(port.NODES, None, name)
            meta = {"name": name, "labels": {**raw["metadata"]["labels"], RACK: "r9"}}
            made.delete(name, port.NODES)
            made.create(port.NODES, {"metadata": meta, "status": raw["status"]})

        once_admitted(made, "gang", replaced)
        made.submit("gang", group("worker", 2, run_for="1h"), topology=NEAR)
        await made.until_phase("gang", "Running")
        assert list(made.placement("gang").values()) == HOME[:2]  # where its rack still was when it was asked
        assert made.status("gang")["attempt"] == 2


@cluster.virtual
async def test_a_node_that_is_relabelled_on_the_way_keeps_its_rank() -> None:
    async with cluster.run(nodes=4) as made:
        await racks(made)
        once_admitted(made, "gang", lambda: relabel(made, made.placement("gang")[1], "r9"))
        made.submit("gang", group("worker", 2, run_for="1h"), topology=NEAR)
        await made.until_phase("gang", "Running")
        assert list(made.placement("gang").values()) == HOME[:2]
        assert made.status("gang")["attempt"] == 1


@cluster.virtual
async def test_an_operator_that_is_started_anew_goes_on_by_the_map_though_racks_are_others_now() -> None:
    async with cluster.run(nodes=6, slack=30, reaction="10m") as made:
        await racks(made)

        def half() -> bool:
            return sum(not raw["spec"].get("schedulingGates") for raw in made.pods("gang")) == 2

        dies_when(made, half)
        made.submit("gang", group("worker", 5, run_for="1h"))
        await dead(made, half, "it dies while it lifts gates")
        before = made.placement("gang")
        for number in range(6):
            relabel(made, f"node-{number:04d}", f"r{number // 3}")
        await made.start()
        await made.until_phase("gang", "Running", within="5m")
        assert made.placement("gang") == before
        assert pins(made.pods("gang")) == {rank: (node, node) for rank, node in before.items()}
        assert made.status("gang")["attempt"] == 1


@cluster.virtual
async def test_a_gang_that_waits_shows_no_pod_to_an_autoscaler_and_takes_the_nodes_that_come() -> None:
    async with cluster.run(nodes=2) as made:
        await racks(made)
        made.submit("gang", group("worker", 3, run_for="10m"), topology=NEAR)
        await made.rest("10m")
        assert made.phase("gang") == "Pending"
        assert made.pods() == []
        made.world.add_nodes(3, labels={BLOCK: "b0", RACK: "r2"})
        await made.until_phase("gang", "Running", within="5m")
