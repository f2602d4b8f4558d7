"""What lstqueue takes for granted about users' own Jobs, shown on a real control plane without lstqueue."""

from __future__ import annotations

import pytest
import stack
import stack_process
from plain_jobs import GATE, Namespace, Object, gates, index, job, refused, template, version

from lstqueue.kube import port

QUOTAS = port.Resource("", "v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES = port.Resource("", "v1", "limitranges", "LimitRange")
RUNTIME_CLASSES = port.Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)


@pytest.fixture
def here(api: port.KubeApi, namespace: str) -> Namespace:
    return Namespace(api, namespace)


# Suspension


async def test_succeeded_pods_stay_and_only_unfinished_indexes_come_back(here: Namespace) -> None:
    await here.create(port.JOBS, job("rigid", 4))
    await here.until_status("rigid", ready=4)
    done = (await here.pods("rigid"))[1]
    await here.end(done, "Succeeded")
    await here.until_status("rigid", succeeded=1, active=3)
    for _ in range(3):
        await here.suspend("rigid", True)
        await here.until_status("rigid", active=0, terminating=0)
        (kept,) = await here.pods("rigid")
        assert kept["metadata"]["uid"] == done["metadata"]["uid"]
        await here.suspend("rigid", False)
        await here.until_status("rigid", ready=3, succeeded=1)
        assert [index(pod) for pod in await here.pods("rigid")] == ["0", "1", "2", "3"]


async def test_suspending_does_not_consume_the_backoff_limit(here: Namespace) -> None:
    await here.create(port.JOBS, job("strict", 2, backoffLimit=0))
    for _ in range(3):
        await here.until_status("strict", ready=2)
        await here.suspend("strict", True)
        await here.until_status("strict", active=0, terminating=0)
        await here.suspend("strict", False)
    status = await here.until_status("strict", ready=2)
    assert status.get("failed", 0) == 0
    assert [item["type"] for item in status["conditions"]] == ["Suspended"]


async def test_the_controller_clears_the_start_time_of_a_suspended_job(here: Namespace) -> None:
    await here.create(port.JOBS, job("timed", 1))
    status = await here.until_status("timed", ready=1)
    assert status["startTime"]
    await here.suspend("timed", True)
    status = await here.until_status("timed", active=0, terminating=0)
    await here.until_condition("timed", "Suspended")
    assert "startTime" not in (await here.get("timed"))["status"]
    await here.suspend("timed", False)
    assert (await here.until_status("timed", ready=1))["startTime"]


async def test_suspending_a_work_queue_that_had_a_success_completes_it(here: Namespace) -> None:
    """Its other pods are ended for good: such a Job cannot be preempted without loss."""
    body = job("queue", 3)
    body["spec"] |= {"completionMode": "NonIndexed", "completions": None}
    await here.create(port.JOBS, body)
    await here.until_status("queue", ready=3)
    await here.end((await here.pods("queue"))[0], "Succeeded")
    await here.until_status("queue", succeeded=1, active=2)
    await here.suspend("queue", True)
    assert (await here.until_condition("queue", "Complete"))["reason"] == "CompletionsReached"


async def test_pods_cut_short_with_a_failing_job_count_as_failed(here: Namespace) -> None:
    await here.create(port.JOBS, job("fails", 3))
    await here.until_status("fails", ready=3)
    await here.end((await here.pods("fails"))[0], "Failed")
    await here.until_condition("fails", "Failed")
    assert (await here.get("fails"))["status"]["failed"] == 3


# The gate


async def test_a_gate_put_in_with_the_first_release_holds_again_at_every_later_one(here: Namespace) -> None:
    created = await here.suspended(job("gated", 2, suspend=True))
    release = {
        "metadata": {"resourceVersion": version(created)},
        "spec": {"suspend": False, "template": {"spec": {"schedulingGates": [{"name": GATE}]}}},
    }
    released = await here.patch("gated", release)
    for _ in range(2):
        for pod in await here.until_gated("gated", 2):
            lift = {"metadata": {"resourceVersion": version(pod)}, "spec": {"schedulingGates": None}}
            await here.patch(pod["metadata"]["name"], lift, port.PODS)
        await here.until_status("gated", ready=2)
        await here.suspend("gated", True)
        await here.until_status("gated", active=0, terminating=0)
        again = await here.suspend("gated", False)
        assert again["spec"]["template"] == released["spec"]["template"]
    assert await here.until_gated("gated", 2)


# Preconditions


async def test_the_first_word_of_its_controller_makes_a_new_suspended_job_stale(here: Namespace) -> None:
    """A release is prepared against what the watch says, never against the answer to a creation."""
    created = await here.create(port.JOBS, job("new", 1, suspend=True))
    await here.until_condition("new", "Suspended")
    body = {"metadata": {"resourceVersion": version(created)}, "spec": {"suspend": False}}
    await refused(here.patch("new", body), 409)


async def test_a_stale_merge_patch_conflicts_and_a_failed_json_patch_test_is_invalid(
    here: Namespace, control_plane: stack.ControlPlane
) -> None:
    pods = template(schedulingGates=[{"name": GATE}, {"name": "example.com/other"}])
    created = await here.create(port.PODS, {"metadata": {"name": "held"}, "spec": pods["spec"]})
    await here.patch("held", {"metadata": {"labels": {"touched": "yes"}}}, port.PODS)
    stale = {"metadata": {"resourceVersion": version(created)}, "spec": {"schedulingGates": None}}
    await refused(here.patch("held", stale, port.PODS), 409, says="the object has been modified")
    test = f'[{{"op": "test", "path": "/metadata/resourceVersion", "value": "{version(created)}"}}]'
    with pytest.raises(stack_process.ControlPlaneError, match="The request is invalid"):
        control_plane.kubectl("patch", "pod", "held", f"--namespace={here.name}", "--type=json", "-p", test)
    assert gates(await here.get("held", port.PODS)) == [GATE, "example.com/other"]


async def test_only_a_conditioned_patch_spares_another_job_of_the_same_name(here: Namespace) -> None:
    decided = await here.suspended(job("twice", 1, suspend=True))
    await here.api.delete(port.JOBS, here.name, "twice")
    await here.suspended(job("twice", 8, suspend=True))
    conditioned = {"metadata": {"resourceVersion": version(decided)}, "spec": {"suspend": False}}
    await refused(here.patch("twice", conditioned), 409)
    named = {"metadata": {"uid": decided["metadata"]["uid"]}, "spec": {"suspend": False}}
    await refused(here.patch("twice", named), 422, says="metadata.uid")
    assert (await here.get("twice"))["spec"]["suspend"] is True
    released = await here.suspend("twice", False)
    assert released["metadata"]["uid"] != decided["metadata"]["uid"]
    assert released["spec"]["parallelism"] == 8


async def test_only_a_conditioned_release_notices_that_more_pods_are_asked_for(here: Namespace) -> None:
    decided = await here.suspended(job("grows", 2, suspend=True))
    await here.patch("grows", {"spec": {"parallelism": 6, "completions": 6}})
    conditioned = {"metadata": {"resourceVersion": version(decided)}, "spec": {"suspend": False}}
    await refused(here.patch("grows", conditioned), 409)
    assert (await here.get("grows"))["spec"]["suspend"] is True
    await here.suspend("grows", False)
    await here.until_status("grows", ready=6)


# Pins


def affinity(*terms: Object) -> Object:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"nodeAffinity": required}


ZONE = {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "Exists"}]}
RACK = {"matchExpressions": [{"key": "topology.kubernetes.io/rack", "operator": "Exists"}]}


def pin(*nodes: str) -> Object:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(nodes)}]}


async def gated_pod(here: Namespace, *terms: Object) -> Object:
    placed = {"affinity": affinity(*terms)} if terms else {}
    spec = template(schedulingGates=[{"name": GATE}], **placed)["spec"]
    return await here.create(port.PODS, {"metadata": {"generateName": "pinned-"}, "spec": spec})


def ungated(pod: Object, *terms: Object) -> Object:
    spec = {"schedulingGates": None, "affinity": affinity(*terms)}
    return {"metadata": {"resourceVersion": version(pod)}, "spec": spec}


@pytest.mark.parametrize("terms", [[], [ZONE], [ZONE, RACK]], ids=["no term", "one term", "two terms"])
async def test_a_pin_added_to_every_term_places_the_pod(here: Namespace, terms: list[Object]) -> None:
    pod = await gated_pod(here, *terms)
    node = "node-0002"
    pinned = [{**term, **pin(node)} for term in terms or [{}]]
    await here.patch(pod["metadata"]["name"], ungated(pod, *pinned), port.PODS)

    async def bound() -> str:
        found = await here.get(pod["metadata"]["name"], port.PODS)
        return str(found["spec"].get("nodeName", ""))

    assert await here.until(bound, "the pod to be bound") == node


async def test_a_pin_names_one_node_only(here: Namespace) -> None:
    pod = await gated_pod(here)
    body = ungated(pod, pin("node-0001", "node-0002"))
    await refused(here.patch(pod["metadata"]["name"], body, port.PODS), 422, says="must be only one value")


@pytest.mark.parametrize(
    "terms", [[pin("node-0001")], [{**RACK, **pin("node-0001")}], [ZONE, pin("node-0001")]],
    ids=["replaced", "another term", "a term more"],
)  # fmt: skip
async def test_a_users_terms_cannot_be_replaced(here: Namespace, terms: list[Object]) -> None:
    pod = await gated_pod(here, ZONE)
    await refused(here.patch(pod["metadata"]["name"], ungated(pod, *terms), port.PODS), 422)
    dropped = {"spec": {"affinity": None, "schedulingGates": None}}
    await refused(here.patch(pod["metadata"]["name"], dropped, port.PODS), 422)


# Quotas, defaults and priorities


async def test_six_gated_pods_of_eight_hold_quota_and_the_job_says_nothing(here: Namespace) -> None:
    hard = {"metadata": {"name": "six"}, "spec": {"hard": {"pods": "6"}}}
    await here.create(QUOTAS, hard)

    async def used() -> str:
        status = (await here.get("six", QUOTAS)).get("status", {})
        return str(status.get("used", {}).get("pods", ""))

    await here.until(used, "the quota to be in force")
    await here.create(port.JOBS, job("eight", 8, pods=template(schedulingGates=[{"name": GATE}])))
    status = await here.until_status("eight", active=6)
    await here.until_gated("eight", 6)
    assert await used() == "6"
    assert "conditions" not in status
    assert status["ready"] == 0


async def test_a_dry_run_shows_what_limit_ranges_and_runtime_classes_add(here: Namespace) -> None:
    limits = [{"type": "Container", "defaultRequest": {"cpu": "100m"}, "default": {"memory": "1Gi"}}]
    await here.create(LIMIT_RANGES, {"metadata": {"name": "limits"}, "spec": {"limits": limits}})
    name = f"class-{here.name}"
    overhead = {"podFixed": {"cpu": "250m"}}
    body = {"metadata": {"name": name}, "handler": "any", "overhead": overhead}
    await here.api.create(RUNTIME_CLASSES, None, body)
    pod = {"metadata": {"name": "trial"}, "spec": template(runtimeClassName=name)["spec"]}

    async def filled_in() -> Object | None:
        made = await here.create(port.PODS, pod, dry_run=True)
        return made if made["spec"]["containers"][0]["resources"] else None

    try:
        made: Object = await here.until(filled_in, "the LimitRange to be in force")
    finally:
        await here.api.delete(RUNTIME_CLASSES, None, name)
    assert made["spec"]["overhead"] == {"cpu": "250m"}
    resources = made["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}}


@pytest.mark.parametrize(("policy", "left"), [("PreemptLowerPriority", 3), ("Never", 4)])
async def test_the_scheduler_takes_single_ranks_unless_it_may_never_preempt(
    here: Namespace, policy: str, left: int
) -> None:
    """A gang of four nodes meets one pod of a higher class that asks for one node."""
    name = f"high-{here.name}"
    body = {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": policy}
    await here.api.create(port.PRIORITY_CLASSES, None, body)
    try:
        await here.create(port.JOBS, job("low", 4, pods=template(gpus=8), backoffLimit=100))
        await here.until_status("low", ready=4)
        pods = template(gpus=8, priorityClassName=name)
        await here.create(port.JOBS, job("high", 1, pods=pods))
        if left == 4:
            (waiting,) = await here.until(lambda: here.pods("high"), "the pod of the higher class")
            where = waiting["metadata"]["name"]

            async def told() -> str:
                conditions = (await here.get(where, port.PODS))["status"].get("conditions", ())
                return next((item["reason"] for item in conditions if item["type"] == "PodScheduled"), "")

            assert await here.until(told, "the pod to be told") == "Unschedulable"
        else:
            await here.until_status("high", ready=1)
        assert (await here.until_status("low", ready=left))["ready"] == left
    finally:
        await here.api.delete(port.PRIORITY_CLASSES, None, name)
