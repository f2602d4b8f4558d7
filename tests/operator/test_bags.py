"""Bags: Jobs whose pods need nobody, in as many slots as run at once, until the last is through."""

from __future__ import annotations

import cluster
from existing import Existing
from manifests import pool

from lstqueue.api import durations
from lstqueue.embedded import faults
from lstqueue.kube import port


def remaining(jobs: Existing, name: str) -> int:
    spec, status = jobs.job(name)["spec"], jobs.job(name).get("status") or {}
    return int(spec["completions"] - status.get("succeeded", 0))


@cluster.virtual
async def test_a_finished_pods_slot_serves_the_next_and_never_more_than_the_slots_run() -> None:
    async with cluster.run(nodes=4) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("sweep", parallelism=2, completions=6, indexed=False, run_for="10m")
        most: list[int] = []
        stop = made.store.subscribe(lambda _: most.append(len(jobs.bound("sweep"))))
        await jobs.until_phase("sweep", "Succeeded", within="3h")
        stop()
        assert max(most) == 2
        assert made.status(jobs.ledger("sweep"))["attempt"] == 1
        assert jobs.job("sweep")["status"]["succeeded"] == 6


@cluster.virtual
async def test_an_indexed_job_with_more_completions_than_pods_is_a_bag_too() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("sweep", parallelism=2, completions=5, indexed=True, run_for="10m")
        await jobs.until_phase("sweep", "Succeeded", within="3h")
        assert jobs.job("sweep")["status"]["completedIndexes"] == "0-4"


@cluster.virtual
async def test_the_last_pods_leave_the_slots_they_do_not_need_to_others() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("sweep", parallelism=2, completions=3, indexed=False, run_for="1h")
        await jobs.until_phase("sweep", "Running")
        made.submit("next")
        await made.until(lambda: remaining(jobs, "sweep") == 1, "two are through", within="3h")
        await made.until_phase("next", "Running", within="5m")
        assert jobs.phase("sweep") == "Running"
        await jobs.until_phase("sweep", "Succeeded", within="3h")


@cluster.virtual
async def test_a_suspended_bag_keeps_what_its_finished_pods_have_done() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        said = {"estimated-duration": "2h", "deadline-in": "1d"}
        jobs.create("sweep", parallelism=2, completions=8, indexed=False, run_for="30m", said=said)
        await made.until(lambda: remaining(jobs, "sweep") == 4, "half are through", within="3h")
        made.patch_queue(stopPolicy="HoldAndDrain")
        await jobs.until_phase("sweep", "Pending", within="10m")
        assert jobs.suspended("sweep")
        assert jobs.pods("sweep") == []
        saved = made.status(jobs.ledger("sweep"))["saved"]
        assert durations.parse(saved) == durations.parse("1h")
        made.patch_queue(stopPolicy="None")
        await jobs.until_phase("sweep", "Succeeded", within="5h")
        assert jobs.job("sweep")["status"]["succeeded"] == 8


@cluster.virtual
async def test_a_gang_without_indexes_is_let_go_as_a_whole() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("loose", parallelism=3, completions=3, indexed=False, run_for="20m")
        await jobs.until_phase("loose", "Running")
        assert len(jobs.bound("loose")) == 3
        assert sorted(made.placement(jobs.ledger("loose")).values()) == jobs.bound("loose")
        await jobs.until_phase("loose", "Succeeded")


@cluster.virtual
async def test_a_failed_pod_is_replaced_at_its_place() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="1h")
        await jobs.until_phase("train", "Running")
        victim = jobs.pods("train")[0]
        node = victim["spec"]["nodeName"]
        made.end_pod(victim)
        await made.until(lambda: len(jobs.bound("train")) == 1, "it is gone")
        await made.until(lambda: len(jobs.bound("train")) == 2, "it is replaced")
        assert node in jobs.bound("train")
        assert (jobs.phase("train"), made.status(jobs.ledger("train"))["attempt"]) == ("Running", 1)
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_a_gang_whose_place_is_lost_is_queued_again() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="1h")
        await jobs.until_phase("train", "Running")
        lost = jobs.bound("train")[0]
        made.world.fail_node(lost)
        await made.until(lambda: made.status(jobs.ledger("train")).get("attempt") == 2, "admitted elsewhere")
        await jobs.until_phase("train", "Running")
        assert lost not in made.placement(jobs.ledger("train")).values()
        await jobs.until_phase("train", "Succeeded", within="5h")
        made.world.heal_node(lost)


@cluster.virtual
async def test_a_job_without_completions_ends_when_its_pods_do() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("work", parallelism=2, completions=None, indexed=False, run_for="20m")
        await jobs.until_phase("work", "Running")
        await jobs.until_phase("work", "Succeeded")
        assert jobs.over("work") == "Complete"


@cluster.virtual
async def test_a_pod_left_on_a_dead_node_stands_for_nobody_in_the_next_run() -> None:
    async with cluster.run(nodes=2, slack=10) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", parallelism=1, completions=1, run_for="1h")
        await jobs.until_phase("train", "Running")
        lost = jobs.bound("train")[0]
        made.faults.delay(20, when=faults.calls(verb="patch", resource=port.PODS))
        made.world.fail_node(lost)
        await made.until(lambda: made.status(jobs.ledger("train")).get("attempt") == 2, "admitted again")
        made.submit("next")
        await jobs.until_phase("train", "Running")
        assert made.phase("next") == "Pending"
        made.calm()
        made.world.heal_node(lost)
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_a_cordoned_node_costs_a_bag_the_slot_there_and_no_other() -> None:
    async with cluster.run(nodes=4, reaction="1h", slack=40) as made:
        jobs = Existing(made)
        made.queue(gpus=32)
        jobs.create("sweep", parallelism=4, completions=8, indexed=False, run_for="3h")
        await jobs.until_phase("sweep", "Running")
        await made.rest("2h")
        made.world.cordon("node-0003")
        [leaves] = [raw for raw in jobs.pods("sweep") if raw["spec"].get("nodeName") == "node-0003"]
        made.evict(leaves)
        await made.rest("10m")
        assert jobs.phase("sweep") == "Running"
        assert jobs.bound("sweep") == ["node-0000", "node-0001", "node-0002"]
        await made.rest("2h")
        assert jobs.bound("sweep") == ["node-0000", "node-0001", "node-0002"]
        made.world.cordon("node-0003", cordoned=False)
        await made.until(lambda: len(jobs.bound("sweep")) == 4, "the slot is used again", within="5m")
        await jobs.until_phase("sweep", "Succeeded", within="9h")
        assert made.status(jobs.ledger("sweep"))["attempt"] == 1


@cluster.virtual
async def test_a_bag_of_which_nothing_runs_leaves_a_node_that_takes_no_pod() -> None:
    async with cluster.run(nodes=2, reaction="10m", slack=40) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("sweep", parallelism=1, completions=3, indexed=False, run_for="1h")
        await jobs.until_phase("sweep", "Running")
        [node] = jobs.bound("sweep")
        made.world.cordon(node)
        await made.until(lambda: made.status(jobs.ledger("sweep"))["attempt"] == 2, "it moves", within="2h")
        await jobs.until_phase("sweep", "Succeeded", within="4h")


@cluster.virtual
async def test_a_bag_keeps_its_slots_when_its_quota_is_lowered_and_nobody_is_admitted_beside_it() -> None:
    async with cluster.run(nodes=3) as made:
        jobs = Existing(made)
        made.queue(gpus=16)
        jobs.create("bag", parallelism=2, completions=6, indexed=False, run_for="1h")
        await jobs.until_phase("bag", "Running")
        await made.rest("30m")
        made.patch_queue(pools=[pool("all", gpus=8)])
        made.submit("later")
        await made.rest("1h")
        assert len(jobs.bound("bag")) == 2
        assert made.phase("later") == "Pending"
        await jobs.until_phase("bag", "Succeeded", within="4h")
        await made.until_phase("later", "Running", within="5m")


@cluster.virtual
async def test_a_job_without_completions_is_not_ended_by_an_edit_of_its_parallelism_after_a_success() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("w", parallelism=2, completions=None, indexed=False, run_for="3h")
        await jobs.until_phase("w", "Running")
        await made.rest("1h")
        made.end_pod(jobs.pods("w")[0], "Succeeded")
        await made.rest("5m")
        (left,) = jobs.pods("w")
        jobs.patch("w", {"spec": {"parallelism": 1}})
        await made.rest("10m")
        assert [raw["metadata"]["name"] for raw in jobs.pods("w")] == [left["metadata"]["name"]]
        assert jobs.phase("w") == "Running"
        await jobs.until_phase("w", "Succeeded", within="3h")
