"""What a user with rights to edit might try in order to run before their turn, and what each refusal says."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import plain_jobs
import policies
import pytest
import stack
from scenes import our_job

from lstqueue.api import names
from lstqueue.kube import port

Object = dict[str, Any]

STARTS = "lstqueue starts this job when its turn comes"
STAYS = "The label lstqueue.dev/queue of a job stays as it is"
SIZE = "A job keeps its parallelism, or replicas, while it runs"
GATE = "The gate lstqueue.dev/placement stays in the pod template"
LIFTS = "lstqueue lifts the gate lstqueue.dev/placement"
CHARGED = "lstqueue says which queue a pod is charged to"
TAKEN_OVER = "A job that runs is taken over as it runs"
BELOW = "A job below a "


@dataclass(frozen=True, slots=True)
class Cheat:
    """A merge patch of a Job that waits or runs in a queue, and how the refusal begins."""

    name: str
    waits: bool
    patch: Object
    says: str


def queued(value: str | None) -> Object:
    return {"metadata": {"labels": {names.LABEL_QUEUE: value}}}


def owned_by(api_version: str, kind: str) -> Object:
    owner = {"apiVersion": api_version, "kind": kind, "name": "mine", "uid": "1234", "controller": True}
    return {"metadata": {"ownerReferences": [owner]}}


NO_GATES: Object = {"template": {"spec": {"schedulingGates": None}}}
OTHER_GATES: Object = {"template": {"spec": {"schedulingGates": [{"name": "example.com/mine"}]}}}
CHEATS = (
    Cheat("resumed", True, {"spec": {"suspend": False}}, STARTS),
    Cheat("suspend taken out", True, {"spec": {"suspend": None}}, STARTS),
    Cheat("label removed while it waits", True, queued(None), STAYS),
    Cheat("label removed and resumed at once", True, {**queued(None), "spec": {"suspend": False}}, STARTS),
    Cheat("another queue while it waits", True, queued("other"), STAYS),
    Cheat("given to Kueue", True, {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "mine"}}}, STAYS),
    Cheat("gates taken out of the template", True, {"spec": NO_GATES}, GATE),
    Cheat("gates of the template replaced", True, {"spec": OTHER_GATES}, GATE),
    Cheat("made a child of a DeadlineJob", True, owned_by("lstqueue.dev/v1alpha1", "DeadlineJob"), BELOW),
    Cheat("made a child of a Job", True, owned_by("batch/v1", "Job"), BELOW),
    Cheat("parallelism raised", False, {"spec": {"parallelism": 3, "completions": 3}}, SIZE),
    Cheat("parallelism lowered", False, {"spec": {"parallelism": 1, "completions": 1}}, SIZE),
    Cheat("another queue while it runs", False, queued("other"), STAYS),
    Cheat("label removed while it runs", False, queued(None), STAYS),
    Cheat("made a child while it runs", False, owned_by("jobset.x-k8s.io/v1alpha2", "JobSet"), BELOW),
)


@pytest.fixture
async def user(control_plane: stack.ControlPlane, namespace: str) -> AsyncIterator[plain_jobs.Namespace]:
    async with policies.user(control_plane, namespace, policies.EDITOR) as made:
        yield made


@pytest.fixture
async def holder(control_plane: stack.ControlPlane, namespace: str) -> AsyncIterator[plain_jobs.Namespace]:
    """Somebody who may release besides."""
    rules = [*policies.EDITOR, policies.RELEASES]
    async with policies.user(control_plane, namespace, rules, name="holder") as made:
        yield made


async def submitted(user: plain_jobs.Namespace, holder: plain_jobs.Namespace, *, waits: bool) -> Object:
    """A user's Job that waits, or that was released and waits behind its gates."""
    await user.create(port.JOBS, our_job("train", 2, "research", suspend=False))
    if not waits:
        await holder.suspend("train", False)
    return await user.get("train")


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "runs"])
async def test_a_cheat_is_refused_with_a_remedy_and_changes_nothing(
    user: plain_jobs.Namespace, holder: plain_jobs.Namespace, waits: bool
) -> None:
    before = await submitted(user, holder, waits=waits)
    for cheat in CHEATS:
        if cheat.waits == waits:
            await plain_jobs.refused(user.patch("train", copy.deepcopy(cheat.patch)), 403, says=cheat.says)
    after = await user.get("train")
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]


async def test_replacing_the_whole_job_by_what_was_written_first_is_refused_too(
    user: plain_jobs.Namespace, holder: plain_jobs.Namespace
) -> None:
    waiting = await submitted(user, holder, waits=True)
    written = copy.deepcopy(waiting)
    del written["metadata"]["resourceVersion"]  # its controller writes to it, too
    written["spec"]["suspend"] = False
    del written["spec"]["template"]["spec"]["schedulingGates"]
    await plain_jobs.refused(user.api.replace(port.JOBS, user.name, "train", written), 403, says=STARTS)


async def test_what_a_holder_of_the_verb_may_do(holder: plain_jobs.Namespace) -> None:
    for cheat in CHEATS:
        await holder.create(port.JOBS, our_job("train", 2, "research"))
        if not cheat.waits:
            await holder.suspend("train", False)
        await holder.patch("train", copy.deepcopy(cheat.patch))
        with contextlib.suppress(port.NotFoundError):  # owners that are not there have it collected
            await holder.api.delete(port.JOBS, holder.name, "train")
        await holder.until(lambda: _gone(holder), "the Job to go")


async def _gone(here: plain_jobs.Namespace) -> bool:
    try:
        await here.get("train")
    except port.NotFoundError:
        return True
    return False


async def test_what_a_user_may_do(user: plain_jobs.Namespace, holder: plain_jobs.Namespace) -> None:
    await submitted(user, holder, waits=False)
    await user.patch("train", {"metadata": {"annotations": {"lstqueue.dev/deadline-in": "2h"}}})
    await user.suspend("train", True)
    await user.patch("train", {"spec": {"parallelism": 3, "completions": 3}})
    more = {"metadata": {"labels": {"team": "mine"}}, "spec": {"activeDeadlineSeconds": 600}}
    await user.patch("train", more)
    await user.create(port.JOBS, our_job("plain", 1, None, suspend=False))
    await user.patch("plain", {"metadata": {"labels": {names.LABEL_QUEUE: "research"}}})
    await user.api.delete(port.JOBS, user.name, "train")


# Pods


async def test_the_gate_of_a_pod_is_lifted_by_nobody_else_and_nobody_binds_around_it(
    user: plain_jobs.Namespace, holder: plain_jobs.Namespace
) -> None:
    await submitted(user, holder, waits=False)

    async def made() -> list[Object]:
        return await user.pods("train")

    pod, *_ = await user.until(made, "its pods")
    name = pod["metadata"]["name"]
    assert plain_jobs.gates(pod) == [names.GATE]
    await plain_jobs.refused(
        user.patch(name, {"spec": {"schedulingGates": None}}, port.PODS), 403, says=LIFTS
    )
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "node-0000"}}
    bindings = port.Resource("", "v1", f"pods/{name}/binding", "Binding")
    await plain_jobs.refused(user.create(bindings, binding), 409, says="schedulingGates")
    await user.patch(name, {"metadata": {"labels": {"team": "mine"}}}, port.PODS)
    await holder.patch(name, {"spec": {"schedulingGates": None}}, port.PODS)


@pytest.mark.unenforced
async def test_nobody_charges_a_pod_to_a_queue_or_takes_a_charge_off_in_any_namespace(
    user: plain_jobs.Namespace, holder: plain_jobs.Namespace
) -> None:
    marks = {"labels": {names.LABEL_JOB: "1234"}, "annotations": {names.ANNOTATION_CHARGE: "theirs/all"}}
    template = plain_jobs.template()
    pod: Object = {"metadata": {"name": "mine", **marks}, "spec": template["spec"]}
    await plain_jobs.refused(user.create(port.PODS, pod), 403, says=CHARGED)
    for first in ("labels", "annotations"):
        other = "annotations" if first == "labels" else "labels"
        half: Object = {"metadata": {"name": first, first: marks[first]}, "spec": template["spec"]}
        await user.create(port.PODS, half)
        await plain_jobs.refused(
            user.patch(first, {"metadata": {other: marks[other]}}, port.PODS), 403, says=CHARGED
        )
    await holder.create(port.PODS, pod)
    for key, values in marks.items():
        taken_off = {"metadata": {key: dict.fromkeys(values)}}
        await plain_jobs.refused(user.patch("mine", taken_off, port.PODS), 403, says=CHARGED)
    await user.patch("mine", {"metadata": {"labels": {"team": "mine"}}}, port.PODS)


# Creation


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("batch/v1", "Job"),
        ("kubeflow.org/v1", "PyTorchJob"),
        ("lstqueue.dev/v1alpha1", "DeadlineJob"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    ],
)
async def test_a_forged_owner_is_refused(user: plain_jobs.Namespace, api_version: str, kind: str) -> None:
    forged = our_job("train", 2, "research", suspend=False)
    forged["metadata"] |= owned_by(api_version, kind)["metadata"]
    await plain_jobs.refused(user.create(port.JOBS, forged), 403, says=f"A job below a {kind} is started by")


async def test_a_job_that_runs_is_not_adopted_for_anybody(
    user: plain_jobs.Namespace, holder: plain_jobs.Namespace
) -> None:
    await user.create(port.JOBS, our_job("plain", 1, None, suspend=False))
    adopt = {"metadata": {"annotations": {"lstqueue.dev/adopt": "true"}}}
    stamped = {"metadata": {"labels": {names.LABEL_QUEUE: "", names.LABEL_JOB: "1234"}}}
    for patch in (adopt, stamped):
        await plain_jobs.refused(user.patch("plain", patch), 403, says=TAKEN_OVER)
    already = our_job("adopted", 1, None, suspend=False, said={"adopt": "true"})
    await plain_jobs.refused(user.create(port.JOBS, already), 403, says=TAKEN_OVER)
    await holder.patch("plain", adopt)
    await user.patch("plain", {"metadata": {"labels": {names.LABEL_QUEUE: ""}}})


# DeadlineJobs


def reference(kind: str, api_version: str = "batch/v1") -> Object:
    spec = {"jobRef": {"apiVersion": api_version, "kind": kind, "name": "train"}}
    return {
        "apiVersion": "lstqueue.dev/v1alpha1",
        "kind": "DeadlineJob",
        "metadata": {"name": "mine"},
        "spec": spec,
    }


async def test_whoever_may_not_write_to_a_job_may_not_refer_to_it(
    control_plane: stack.ControlPlane, namespace: str, user: plain_jobs.Namespace
) -> None:
    reads = [{**policies.EDITOR[1], "verbs": ["get", "create", "delete"]}, policies.EDITOR[-1]]
    async with policies.user(control_plane, namespace, reads, name="reader") as reader:
        await user.create(port.JOBS, our_job("train", 1, None))
        for body in (reference("Job"), reference("PyTorchJob", "kubeflow.org/v1")):
            kind = body["spec"]["jobRef"]["kind"]
            says = f"jobRef: you may not update {kind} train"
            await plain_jobs.refused(reader.create(port.DEADLINE_JOBS, body), 403, says=says)
        made = await user.create(port.DEADLINE_JOBS, reference("Job"))
        await user.create(port.JOBS, our_job("other", 1, None))
        moved = {"spec": {"jobRef": {"name": "other"}}}
        await plain_jobs.refused(
            reader.patch(made["metadata"]["name"], moved, port.DEADLINE_JOBS),
            422,
            says="jobRef never changes",
        )


async def test_a_status_is_not_a_users_to_write(user: plain_jobs.Namespace) -> None:
    await user.create(port.JOBS, our_job("train", 1, "research"))
    made = await user.create(port.DEADLINE_JOBS, reference("Job"))
    name, forged = made["metadata"]["name"], {"status": {"phase": "Running"}}
    written = user.api.patch_status(port.DEADLINE_JOBS, user.name, name, forged)
    await plain_jobs.refused(written, 403, says="deadlinejobs/status")
    over = {"status": {"succeeded": 1}}
    await plain_jobs.refused(
        user.api.patch_status(port.JOBS, user.name, "train", over), 403, says="jobs/status"
    )
