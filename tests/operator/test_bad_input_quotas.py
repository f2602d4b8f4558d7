"""ResourceQuotas of namespaces: a gang that they would cut short is told so, and takes no room meanwhile."""

from __future__ import annotations

import functools
from typing import Any

import cluster
from existing import Existing
from manifests import GPU, group

from lstqueue.embedded import faults
from lstqueue.kube import port

EXCEEDED = "ResourceQuotaExceeded"
KEY = f"requests.{GPU}"


def allow(made: cluster.Cluster, name: str = "compute", **hard: Any) -> None:
    """Create a quota; keywords are its keys, `gpus` those of GPUs."""
    given = {KEY if key == "gpus" else key.replace("_", "."): str(value) for key, value in hard.items()}
    made.create(port.RESOURCE_QUOTAS, {"metadata": {"name": name}, "spec": {"hard": given}})


def change(made: cluster.Cluster, name: str = "compute", **hard: Any) -> None:
    given = {KEY if key == "gpus" else key: str(value) for key, value in hard.items()}
    made.patch(port.RESOURCE_QUOTAS, name, {"spec": {"hard": given}})


def told(made: cluster.Cluster, name: str) -> bool:
    return made.code(name) == EXCEEDED


def message(made: cluster.Cluster, name: str) -> str:
    return str(made.status(name)["pending"]["message"])


@cluster.virtual
async def test_a_gang_that_its_quota_can_never_take_holds_no_room_and_is_told_what_it_lacks() -> None:
    async with cluster.run(nodes=4) as made:
        made.queue()
        allow(made, gpus=24)
        made.submit("wide", group("worker", 4, run_for="10m"))
        await made.until(lambda: made.code("wide") == EXCEEDED, "it is told", within="1m")
        for word in ("32 of requests.nvidia.com/gpu", "ResourceQuota compute", "allows 24", "ask for less"):
            assert word in message(made, "wide")
        made.submit("narrow", group("worker", 3, run_for="10m"))
        await made.until_phase("narrow", "Succeeded")
        assert made.children("wide") == []
        assert "attempt" not in made.status("wide")
        change(made, gpus=32)
        await made.until_phase("wide", "Succeeded", within="1h")


@cluster.virtual
async def test_of_two_gangs_that_a_quota_takes_one_by_one_the_second_waits_for_the_first() -> None:
    async with cluster.run(nodes=4) as made:
        made.queue(stopPolicy="Hold")
        allow(made, gpus=24)
        made.submit("first", group("worker", 2, run_for="1h"))
        await made.rest("2s")
        made.submit("second", group("worker", 2, run_for="1h"))
        await made.rest("2s")
        made.patch_queue(stopPolicy="None")
        await made.until_phase("first", "Running")
        await made.until(lambda: made.code("second") == EXCEEDED, "the other is told", within="1m")
        assert "has less left" in message(made, "second")
        await made.rest("30m")
        assert made.pods("second") == []
        await made.until_phase("second", "Succeeded", within="3h")
        assert made.status("second")["attempt"] == 1
        assert "backoff" not in made.status("second")
        made.delete("compute", port.RESOURCE_QUOTAS)
        made.submit("wide", group("worker", 4, run_for="1m"))
        await made.until_phase("wide", "Succeeded", within="5m")


@cluster.virtual
async def test_what_others_use_of_a_quota_is_theirs_and_a_full_one_is_asked_again_once_it_is_not() -> None:
    async with cluster.run(nodes=2, slack=130) as made:
        made.queue()
        made.foreign_pod("squatter", "node-0000")
        allow(made, gpus=8, pods=10)
        made.submit("job", group(run_for="10m"))
        await made.until(lambda: made.code("job") == EXCEEDED, "it is told", within="1m")
        await made.rest("2h")
        began = made.now()
        made.delete("squatter", port.PODS)
        await made.until_phase("job", "Running")
        assert made.now() - began < 60_000


@cluster.virtual
async def test_pods_jobs_and_limits_are_counted_too() -> None:
    async with cluster.run(nodes=4) as made:
        made.queue()
        sized = {
            "containers": [
                {
                    "name": "main",
                    "image": "trainer:1",
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
                }
            ]
        }
        for name, key, most, needs in (
            ("pods", "pods", "3", "4 of pods"),
            ("cpu", "requests.cpu", "3500m", "4 of requests.cpu"),
            ("memory", "memory", "3Gi", "4Gi of memory"),
            ("limits", "limits.memory", "7Gi", "8Gi of limits.memory"),
            ("jobs", "count/jobs.batch", "0", "1 of count/jobs.batch"),
            ("services", "services", "0", "1 of services"),
        ):
            hard = {"hard": {key: most}}
            made.create(port.RESOURCE_QUOTAS, {"metadata": {"name": name}, "spec": hard})
            job = f"job-{name}"
            made.submit(job, group("worker", 4, gpus=0, pod=sized, run_for="1m"))
            await made.until(functools.partial(told, made, job), f"{name} is told", within="1m")
            assert needs in message(made, job)
            made.delete(name, port.RESOURCE_QUOTAS)
            await made.until_phase(job, "Succeeded")


@cluster.virtual
async def test_an_existing_job_stays_suspended_until_the_quota_takes_all_of_its_pods() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        allow(made, gpus=8)
        jobs.create("train", run_for="10m")
        words = await jobs.until_told("train", EXCEEDED)
        assert "16 of requests.nvidia.com/gpu" in words
        assert jobs.suspended("train")
        change(made, gpus=16)
        await jobs.until_phase("train", "Succeeded")


@cluster.virtual
async def test_a_bag_of_many_pods_needs_quota_for_its_slots_only() -> None:
    async with cluster.run(nodes=2) as made:
        jobs = Existing(made)
        made.queue()
        allow(made, gpus=16)
        jobs.create("bag", parallelism=2, completions=6, run_for="10m")
        await jobs.until_phase("bag", "Succeeded", within="2h")


@cluster.virtual
async def test_a_restarted_operator_counts_what_it_admitted_before() -> None:
    async with cluster.run(nodes=4) as made:
        made.queue()
        allow(made, gpus=24)
        made.submit("first", group("worker", 2, run_for="1h"))
        await made.until_phase("first", "Running")
        await made.restart()
        made.submit("second", group("worker", 2, run_for="1h"))
        await made.until(lambda: made.code("second") == EXCEEDED, "the other is told", within="2m")
        await made.until_phase("second", "Succeeded", within="3h")


@cluster.virtual
async def test_quotas_that_may_not_be_read_or_are_not_there_keep_nobody_waiting() -> None:
    async with cluster.run(nodes=2, start=False, slack=60) as made:
        words = 'resourcequotas is forbidden: User "x" cannot list resource "resourcequotas"'
        made.faults.fail(403, "Forbidden", message=words, when=faults.calls(resource=port.RESOURCE_QUOTAS))
        await made.start()
        made.queue()
        made.submit("job", group(run_for="10m"))
        await made.until_phase("job", "Succeeded")


@cluster.virtual
async def test_a_claim_that_its_quota_does_not_take_any_more_is_given_up_and_leaves_the_room_to_others() -> (
    None
):
    async with cluster.run(nodes=1, reaction="1h") as made:
        made.queue()
        allow(made, gpus=16)
        slow = {"terminationGracePeriodSeconds": 3600}
        made.submit("holder", group(run_for="9h", terminate_after="20m", pod=slow), estimatedDuration="9h")
        await made.until_phase("holder", "Running")
        await made.rest("1h")
        made.submit("urgent", group(run_for="1h"), deadlineIn="90m", estimatedDuration="1h")
        await made.until_phase("urgent", "Claiming")
        change(made, gpus=4)
        await made.until(lambda: made.code("urgent") == EXCEEDED, "it is told")
        assert "claim" not in made.status("urgent")
        made.submit("free", group(gpus=0, run_for="1m"))
        await made.until_phase("free", "Succeeded")
        change(made, gpus=16)
        await made.until_phase("urgent", "Succeeded", within="9h")


@cluster.virtual
async def test_many_gangs_under_one_quota_all_get_their_turn() -> None:
    async with cluster.run(nodes=6) as made:
        made.queue()
        allow(made, gpus=24)
        names = [f"job-{number}" for number in range(12)]
        for number, name in enumerate(names):
            made.submit(name, group("worker", 1 + number % 3, run_for="30m"))
        await made.until_all("Succeeded", *names, within="12h")
        assert [made.status(name)["attempt"] for name in names] == [1] * 12


@cluster.virtual
async def test_whom_another_leaves_no_quota_is_told_so_while_that_other_is_still_starting() -> None:
    async with cluster.run(nodes=4) as made:
        made.queue()
        allow(made, gpus=24)
        made.patch_queue(stopPolicy="Hold")
        made.submit("first", group("worker", 2, run_for="1h"))
        await made.rest("2s")
        made.submit("second", group("worker", 2, run_for="1h"))
        await made.rest("1m")
        # Its write takes so long that nothing else happens in the namespace.
        made.faults.delay(60, when=faults.calls(verb="create", resource=port.JOBS))
        made.patch_queue(stopPolicy="None")
        await made.rest("1s")
        passes = made.operator.loop.passes
        await made.rest("20s")
        assert told(made, "second")
        assert made.operator.loop.passes - passes < 10
        await made.until_phase("second", "Succeeded", within="3h")
