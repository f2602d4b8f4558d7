"""What the server or lstqueue will not have of a pod template is told, and asked again where it may pass."""

from __future__ import annotations

from typing import Any

import cluster
import manifests
import pytest
from existing import Existing
from manifests import group

from lstqueue.api import names
from lstqueue.embedded import faults
from lstqueue.kube import port

PODS = faults.calls(verb="create", resource=port.PODS)


@cluster.virtual
async def test_a_missing_priority_class_holds_jobs_back_until_it_is_installed() -> None:
    async with cluster.run(nodes=1, slack=220) as made:
        made.queue()
        made.delete(names.PRIORITY_CLASS, port.PRIORITY_CLASSES)
        made.submit("job", group(run_for="10m"), deadlineIn="30m", estimatedDuration="10m")
        await made.until_phase("job", "Pending")
        assert "PriorityClass" in made.status("job")["pending"]["message"]
        await made.until(lambda: made.holds("job", "DeadlineMissed"), "the deadline is missed", within="1h")
        await made.rest("3h")
        made.create(
            port.PRIORITY_CLASSES,
            {"metadata": {"name": names.PRIORITY_CLASS}, "value": 0, "preemptionPolicy": "Never"},
        )
        await made.until_phase("job", "Succeeded")


@cluster.virtual
async def test_a_template_that_no_server_will_ever_take_is_rejected_in_the_servers_words() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        nameless = {"containers": [{"image": "x", "resources": {"limits": {manifests.GPU: 1}}}]}
        made.submit("bad", group("fine"), group("worker", pod=nameless))
        await made.until_phase("bad", "Rejected", within="1m")
        finished = made.condition("bad", "Finished")
        assert finished["reason"] == "InvalidTemplate"
        assert "groups[worker]" in finished["message"]
        assert "containers[0].name" in finished["message"]
        made.submit("next", group(run_for="10m"))
        await made.until_phase("next", "Succeeded")


UNSUPPORTED: dict[str, Any] = {
    "spread": {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ]
    },
    "pod-affinity": {
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}
        }
    },
    "node-name": {"nodeName": "node-0000"},
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_the_placement_does_not_model_is_rejected_by_name(name: str) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=1) as made:
            made.queue()
            made.submit("odd", group(pod=UNSUPPORTED[name]))
            await made.until_phase("odd", "Rejected", within="1m")
            finished = made.condition("odd", "Finished")
            assert finished["reason"] in ("UnsupportedConstraint", "InvalidTemplate")
            (field,) = UNSUPPORTED[name]
            assert field in finished["message"]

    scenario()


@cluster.virtual
async def test_a_class_whose_pods_preempt_others_is_rejected() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.create(port.PRIORITY_CLASSES, {"metadata": {"name": "pushy"}, "value": 1000})
        made.submit("pushes", group(pod={"priorityClassName": "pushy"}))
        await made.until_phase("pushes", "Rejected", within="1m")
        assert "pushy" in made.condition("pushes", "Finished")["message"]


@cluster.virtual
async def test_a_quota_that_refuses_the_pods_is_told_and_asked_again_slowly() -> None:
    async with cluster.run(nodes=1, slack=70) as made:
        made.queue()
        refusal = 'pods "x" is forbidden: exceeded quota: compute'
        made.faults.fail(403, "Forbidden", message=refusal, when=PODS, times=None)
        jobs = [f"job-{number}" for number in range(9)]
        for job in jobs:
            made.submit(job, group(gpus=0, run_for="10m"))
        await made.until_all("Pending", *jobs)
        for job in jobs:
            assert made.code(job) == "ResourceQuotaExceeded"
            assert "exceeded quota" in made.status(job)["pending"]["message"]
        before = made.calls.count("create", port.PODS)
        await made.rest("1h")
        assert 10 <= made.calls.count("create", port.PODS) - before <= 61
        made.calm()
        await made.until_all("Succeeded", *jobs)


@cluster.virtual
async def test_a_server_in_trouble_is_no_refusal() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.faults.fail(503, "ServiceUnavailable", when=PODS, times=3)
        made.submit("job", group(run_for="10m"))
        await made.until_phase("job", "Succeeded", within="2h")


@cluster.virtual
async def test_a_server_that_refuses_the_jobs_after_all_costs_a_failed_start_each_time() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.faults.fail(
            403,
            "Forbidden",
            message="a policy says no",
            when=faults.calls(verb="create", resource=port.JOBS),
            times=3,
        )
        made.submit("job", group(run_for="10m"))
        await made.until(lambda: (made.status("job").get("backoff") or {}).get("count") == 1, "it backs off")
        assert "a policy says no" in made.condition("job", "Suspended")["message"]
        await made.until_phase("job", "Succeeded", within="2h")
        assert made.status("job")["attempt"] == 4


@cluster.virtual
async def test_gates_that_may_not_be_lifted_cost_a_failed_start() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        lifting = faults.calls(verb="patch", resource=port.PODS)
        made.faults.fail(422, "Invalid", message="the gate stays", when=lifting, times=1)
        made.submit("job", group("worker", 2, run_for="10m"))
        await made.until_phase("job", "Succeeded", within="2h")
        assert made.status("job")["attempt"] == 2


@cluster.virtual
async def test_a_job_that_becomes_unreadable_waits_and_goes_on_when_it_is_mended() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("holder", group(run_for="1h"))
        await made.until_phase("holder", "Running")
        made.submit("job", group(run_for="10m"))
        await made.until_phase("job", "Pending")
        made.smuggle(port.DEADLINE_JOBS, "job", {"importance": 99})
        await made.until(lambda: made.code("job") == "InvalidSpec", "it is told so")
        assert "importance" in made.status("job")["pending"]["message"]
        await made.until_phase("holder", "Succeeded", within="2h")
        await made.rest("1h")
        assert made.phase("job") == "Pending"
        made.edit("job", importance=1)
        await made.until_phase("job", "Succeeded")


@cluster.virtual
async def test_of_equal_jobs_that_are_refused_each_is_told_of_itself_alone() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        jobs = Existing(made)
        for name in ("alpha", "beta"):
            jobs.create(name, pod={"hostNetwork": True})
            words = await jobs.until_told(name, "UnsupportedConstraint")
            assert words.startswith(f"Job {name}: spec.template.spec.hostNetwork")
        made.create(port.RESOURCE_QUOTAS, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
        for name in ("gamma", "delta"):
            made.submit(name, group())
            await made.until(lambda job=name: made.code(job) == "ResourceQuotaExceeded", f"{name} is told")
        assert "gamma" not in made.status("delta")["pending"]["message"]


@cluster.virtual
async def test_all_that_placement_cannot_honour_is_named_in_our_own_words() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        ports = {
            "containers": [{"name": "main", "image": "a", "ports": [{"containerPort": 80, "hostPort": 80}]}]
        }
        made.submit(
            "job", group("a", pod={"nodeName": "node-0000", **ports}), group("b", pod={"hostNetwork": True})
        )
        await made.until_phase("job", "Rejected")
        finished = made.condition("job", "Finished")
        assert finished["reason"] == "UnsupportedConstraint"
        assert finished["message"] == (
            "spec.groups[a].template.spec.nodeName,"
            " spec.groups[a].template.spec.containers[].ports[].hostPort"
            " and spec.groups[b].template.spec.hostNetwork"
            " are not modelled by the placement; remove them"
        )
