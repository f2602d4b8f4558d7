"""The finer rules for users' own Jobs: classes, default queues, limits, ends, pods that are slow to go."""

from __future__ import annotations

import cluster
from existing import Existing

from lstqueue.api import names
from lstqueue.kube import port


@cluster.virtual
async def test_a_priority_class_of_the_users_choice_is_for_the_queue_to_allow() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        made.create(port.PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 1000})
        jobs.create("train", pod={"priorityClassName": "urgent"}, run_for="10m")
        await made.until(
            lambda: made.code(jobs.ledger("train")) == "PriorityClassNotAllowed", "the class is refused"
        )
        assert "spec.priorityClasses" in made.status(jobs.ledger("train"))["pending"]["message"]
        made.patch_queue(priorityClasses=["urgent"])
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_the_clusters_default_class_and_our_own_need_no_permission() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        default = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}
        made.create(port.PRIORITY_CLASSES, default)
        jobs.create("silent", run_for="10m")
        jobs.create("named", pod={"priorityClassName": "usual"}, run_for="10m")
        jobs.create("ours", pod={"priorityClassName": names.PRIORITY_CLASS}, run_for="10m")
        for name in ("silent", "named", "ours"):
            await jobs.until_phase(name, "Succeeded", within="3h")


@cluster.virtual
async def test_an_empty_label_is_the_default_queue_of_the_namespace() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", queue="", run_for="10m")
        await made.until(lambda: made.code(jobs.ledger("train")) == "QueueNotSet", "no queue is set")
        label = {"metadata": {"labels": {names.LABEL_DEFAULT_QUEUE: cluster.QUEUE}}}
        made.store.patch(port.NAMESPACES, None, cluster.NAMESPACE, label)
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_jobs_of_a_namespace_that_the_queue_does_not_take_are_left_running() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue(namespaceSelector={"matchLabels": {"team": "vision"}})
        jobs.create("train", suspend=False, run_for="1h")
        await made.until(lambda: len(jobs.bound("train")) == 2, "it runs by itself")
        await made.rest("10m")
        assert made.code(jobs.ledger("train")) == "NamespaceNotSelected"
        assert not jobs.suspended("train")
        await jobs.until_phase("train", "Succeeded", within="2h")


@cluster.virtual
async def test_a_template_that_no_placement_can_honour_is_rejected_by_name() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", pod={"hostNetwork": True})
        words = await jobs.until_told("train", "UnsupportedConstraint")
        assert "spec.template.spec.hostNetwork" in words
        assert jobs.phase("train") == "Rejected"
        assert jobs.suspended("train")


@cluster.virtual
async def test_a_job_that_is_cancelled_at_its_deadline_is_suspended_and_stays_so() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        said = {"deadline-in": "1h", "on-missed": "Cancel", "estimated-duration": "30m"}
        jobs.create("train", run_for="9h", said=said)
        await jobs.until_phase("train", "Failed", within="2h")
        await made.until(lambda: jobs.suspended("train") and not jobs.pods("train"), "its pods are gone")
        first = jobs.ledger("train")
        await made.rest("9d")
        assert (jobs.ledger("train"), jobs.suspended("train")) == (first, True)


@cluster.virtual
async def test_the_ledger_of_a_job_that_is_over_is_kept_for_a_week() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="10m")
        await jobs.until_phase("train", "Succeeded")
        await made.rest("6d")
        assert len(jobs.ledgers("train")) == 1
        await made.rest("2d")
        assert jobs.ledgers("train") == []
        assert jobs.over("train") == "Complete"


@cluster.virtual
async def test_a_job_that_waits_for_its_pods_to_end_is_not_admitted_over_those_on_a_dead_node() -> None:
    async with cluster.run(nodes=3, reaction="2h") as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", run_for="1h", spec={"podReplacementPolicy": "Failed"})
        await jobs.until_phase("train", "Running")
        lost = jobs.bound("train")[0]
        made.world.fail_node(lost)
        await jobs.until_phase("train", "Suspending")
        await made.rest("30m")
        assert made.status(jobs.ledger("train"))["attempt"] == 1
        made.world.heal_node(lost)
        await jobs.until_phase("train", "Succeeded", within="5h")


@cluster.virtual
async def test_an_adoption_that_was_cut_short_is_carried_on() -> None:
    async with cluster.run(nodes=2, start=False, slack=20) as made:
        jobs = Existing(made)
        made.queue()
        jobs.create("train", suspend=False, run_for="2h", said={"adopt": "true"})
        await made.until(lambda: len(jobs.bound("train")) == 2, "it runs by itself")
        await made.start()
        for number in (3, 2, 1):
            killed = made.kill_at(number, before=number % 2 == 0)
            await made.rest("1m")
            if killed.is_set():
                await made.restart()
        await jobs.until_phase("train", "Running")
        await made.until(lambda: len(made.pods("train")) == 2, "its pods are members")
        assert made.status(jobs.ledger("train"))["attempt"] == 1
        await jobs.until_phase("train", "Succeeded", within="3h")


@cluster.virtual
async def test_a_preempted_bag_makes_room_and_comes_back_for_what_is_left() -> None:
    async with cluster.run(nodes=1) as made:
        jobs = Existing(made)
        made.queue(preemption={"withinQueue": "NoHarm", "minRunTime": "1m"})
        jobs.create("sweep", parallelism=1, completions=6, indexed=False, run_for="30m")
        await made.until(
            lambda: jobs.job("sweep")["status"].get("succeeded") == 2, "two are through", within="2h"
        )
        said = {"deadline-in": "70m", "estimated-duration": "1h"}
        jobs.create("urgent", parallelism=1, completions=1, said=said, run_for="1h")
        await jobs.until_phase("urgent", "Running", within="20m")
        assert jobs.suspended("sweep")
        await jobs.until_phase("sweep", "Succeeded", within="9h")
        assert made.status(jobs.ledger("sweep"))["attempt"] == 2
        assert made.holds(jobs.ledger("urgent"), "DeadlineMissed") is False
