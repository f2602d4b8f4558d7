"""What the policies make of a labelled job when it is created, and whom and what they leave alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import plain_jobs
import policies
import pytest
import stack
from scenes import our_job, scene

from lstqueue.api import names
from lstqueue.kube import port

Object = dict[str, Any]


@pytest.fixture
async def user(control_plane: stack.ControlPlane, namespace: str) -> AsyncIterator[plain_jobs.Namespace]:
    async with policies.user(control_plane, namespace, policies.EDITOR) as made:
        yield made


def gates(job: Object) -> list[str]:
    return plain_jobs.gates(job["spec"]["template"])


def running_job(name: str, queue: str | None = "research", **metadata: Any) -> Object:
    body = our_job(name, 2, queue, suspend=False)
    del body["spec"]["suspend"]
    body["metadata"] |= metadata
    return body


async def test_a_job_that_is_created_running_waits_for_its_turn_and_runs_to_its_end(
    control_plane: stack.ControlPlane,
    api: port.KubeApi,
    namespace: str,
    queue: str,
    user: plain_jobs.Namespace,
) -> None:
    async with scene(control_plane, api, namespace) as told:
        body = our_job("train", 2, queue, run_for="1s", suspend=False)
        body["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/mine"}]
        made = await user.create(port.JOBS, body)
        assert made["spec"]["suspend"]
        assert gates(made) == ["example.com/mine", names.GATE]
        await told.until_seen(lambda: told.phase("train") == "Admitted", "it is admitted")

        async def gated_by_the_user() -> list[Object]:
            pods = await user.pods("train")
            return pods if [plain_jobs.gates(pod) for pod in pods] == [["example.com/mine"]] * 2 else []

        for pod in await user.until(gated_by_the_user, "our gate is lifted, and the user's own is not"):
            await user.patch(pod["metadata"]["name"], {"spec": {"schedulingGates": None}}, port.PODS)
        await told.until_phase("train", "Succeeded")
        assert "SuspendedOnSight" not in await told.reasons("Job", "train")
    assert told.status("train")["attempt"] == 1


async def test_any_way_to_create_it_is_met_and_trying_it_tells_the_same(user: plain_jobs.Namespace) -> None:
    named = running_job("train")
    generated = running_job("-", generateName="train-")
    del generated["metadata"]["name"]
    default = running_job("of-the-default-queue", "")
    for body in (named, generated, default):
        for dry_run in (True, False):
            made = await user.create(port.JOBS, body, dry_run=dry_run)
            assert made["spec"]["suspend"]
            assert gates(made) == [names.GATE]


async def test_what_is_not_labelled_or_is_somebody_elses_is_left_alone(user: plain_jobs.Namespace) -> None:
    kueue = {names.LABEL_QUEUE: "research", "kueue.x-k8s.io/queue-name": "theirs"}
    theirs = running_job("managed")
    theirs["spec"]["managedBy"] = "example.com/other"
    for body in (running_job("plain", None), running_job("kueue", labels=kueue), theirs):
        made = await user.create(port.JOBS, body)
        assert not made["spec"]["suspend"]
        assert gates(made) == []
        await user.suspend(made["metadata"]["name"], True)
        await user.suspend(made["metadata"]["name"], False)
    await user.patch("plain", {"spec": {"parallelism": 3, "completions": 3}})


@pytest.mark.parametrize("kind", ["CronJob", "Trial"])
async def test_a_job_below_a_kind_that_starts_nothing_itself_is_a_job_like_others(
    user: plain_jobs.Namespace, kind: str
) -> None:
    version = {"CronJob": "batch/v1", "Trial": "kubeflow.org/v1beta1"}[kind]
    owner = {"apiVersion": version, "kind": kind, "name": "above", "uid": "1234", "controller": True}
    made = await user.create(port.JOBS, running_job("train", ownerReferences=[owner]))
    assert made["spec"]["suspend"]
    assert gates(made) == [names.GATE]


async def test_a_job_that_the_controller_of_another_kind_made_is_left_to_it(
    control_plane: stack.ControlPlane, namespace: str
) -> None:
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "above", "uid": "1234"}
    child = running_job("child", ownerReferences=[{**owner, "controller": True}])
    status = {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets/status"], "verbs": ["update"]}
    rules = [policies.EDITOR[1], status, policies.EDITOR[-1]]
    async with policies.user(control_plane, namespace, rules, name="jobset-controller") as controller:
        made = await controller.create(port.JOBS, child)
        assert not made["spec"].get("suspend")
        assert gates(made) == []


async def test_where_the_namespace_is_not_labelled_any_more_nothing_is_refused(
    api: port.KubeApi, namespace: str, user: plain_jobs.Namespace
) -> None:
    await user.create(port.JOBS, running_job("train"))
    unbound: Object = {"metadata": {"labels": dict.fromkeys(policies.ENFORCED)}}
    await api.patch(port.NAMESPACES, None, namespace, unbound)

    async def resumed() -> bool:
        try:
            await user.suspend("train", False)
        except port.ForbiddenError:
            return False
        return True

    await user.until(resumed, "the namespace is free")
    pods: list[Object] = []

    async def made() -> bool:
        pods[:] = await user.pods("train")
        return len(pods) == 2

    await user.until(made, "its pods")
    for pod in pods:
        # The template keeps the gate; whoever removes lstqueue lifts it.
        await user.patch(pod["metadata"]["name"], {"spec": {"schedulingGates": None}}, port.PODS)
    assert not (await user.create(port.JOBS, running_job("next")))["spec"]["suspend"]


async def test_a_job_that_was_let_go_by_hand_while_no_operator_ran_is_counted_where_it_runs(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    rules = [*policies.EDITOR, policies.RELEASES]
    async with policies.user(control_plane, namespace, rules, name="holder") as holder:
        await holder.create(port.JOBS, running_job("train", queue))
        await holder.patch("train", {"metadata": {"annotations": {"lstqueue.dev/adopt": "true"}}})
        await holder.suspend("train", False)

        async def gated() -> list[Object]:
            pods = await holder.pods("train")
            return pods if len(pods) == 2 else []

        for pod in await holder.until(gated, "its pods"):
            await holder.patch(pod["metadata"]["name"], {"spec": {"schedulingGates": None}}, port.PODS)
        await holder.until_status("train", ready=2)
        before = {pod["metadata"]["uid"] for pod in await holder.pods("train")}
    async with scene(control_plane, api, namespace) as told:
        await told.until_phase("train", "Running")
        assert {pod["metadata"]["uid"] for pod in told.members("train")} == before
        assert told.status("train")["attempt"] == 1
