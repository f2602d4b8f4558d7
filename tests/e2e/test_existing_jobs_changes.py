"""Users' own Jobs that are paused, resized or replaced under way, on a real API server."""

from __future__ import annotations

from typing import Any

import plain_jobs
import pytest
import stack
from scenes import Scene, our_job, scene

from lstqueue.api import names
from lstqueue.kube import port

Object = dict[str, Any]

_ADMISSION = "admissionregistration.k8s.io"
POLICIES = port.Resource(
    _ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
BINDINGS = port.Resource(
    _ADMISSION,
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)


def uids(pods: list[Object]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


async def paused(told: Scene, name: str) -> None:
    await told.activate(name, False)
    await told.until_pending(name, "Inactive")
    assert told.members(name) == []


async def test_a_bag_is_paused_again_and_again_and_keeps_what_is_done(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await told.submit("sweep", 2, completions=5, completionMode="NonIndexed")
        done: set[str] = set()
        for cycle in range(3):
            await told.until_phase("sweep", "Running")
            await told.until_status("sweep", ready=2, succeeded=cycle)
            first = told.members("sweep")[0]
            await told.finish(first)
            await told.until_status("sweep", succeeded=cycle + 1)
            done |= uids([first])
            await paused(told, "sweep")
            kept = [pod for pod in await told.pods("sweep") if pod["status"]["phase"] == "Succeeded"]
            assert uids(kept) == done
            assert told.status("sweep")["attempt"] == cycle + 1
            await told.activate("sweep", True)
        await told.until_status("sweep", ready=2, succeeded=3)
        assert len(uids(await told.pods("sweep"))) == 5
        await told.finish(*told.members("sweep"))
        await told.until_phase("sweep", "Succeeded")
    assert told.job("sweep")["status"].get("failed", 0) == 0


async def test_only_unfinished_indexes_of_a_paused_gang_come_back(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await told.submit("train", 3)
        await told.until_phase("train", "Running")
        await told.finish(told.members("train")[1])
        await told.until_status("train", succeeded=1)
        for attempt in (2, 3):
            await paused(told, "train")
            await told.activate("train", True)
            await told.until_seen(
                lambda wanted=attempt: (
                    told.status("train").get("attempt") == wanted and told.phase("train") == "Running"
                ),
                f"it runs in attempt {attempt}",
            )
            assert [plain_jobs.index(pod) for pod in told.members("train")] == ["0", "2"]
        await told.finish(*told.members("train"))
        await told.until_phase("train", "Succeeded")
    assert told.job("train")["status"].get("failed", 0) == 0


async def test_suspending_it_by_hand_is_a_pause_that_resuming_it_ends(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await told.submit("train", 2)
        await told.until_phase("train", "Running")
        await told.suspend("train", True)
        await told.until_pending("train", "Inactive")
        assert told.ledger("train")["spec"]["active"] is False
        await told.suspend("train", False)
        await told.until_seen(lambda: told.status("train").get("attempt") == 2, "it is admitted again")
        await told.until_phase("train", "Running")


# Between decision and release


async def test_another_job_of_the_same_name_is_never_released_by_the_old_decision(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    replaced: list[Object] = []

    async def before(resource: port.Resource, name: str, body: Object) -> None:
        """Replace the Job in the moment in which its release is on its way."""
        release = resource == port.JOBS and body.get("spec", {}).get("suspend") is False
        if release and name == "train" and not replaced:
            await api.delete(port.JOBS, namespace, "train")
            replaced.append(await api.create(port.JOBS, namespace, our_job("train", 1, queue, gpus=4)))

    async with scene(control_plane, api, namespace, before=before) as told:
        first = await told.submit("train", 3)
        await told.until_seen(lambda: replaced and told.phase("train") == "Running", "the other one runs")
        second = replaced[0]["metadata"]["uid"]
        by_unit = {raw["metadata"]["labels"][names.LABEL_UNIT_UID]: raw for raw in told.newest("DeadlineJob")}
        old, new = by_unit[first["metadata"]["uid"]], by_unit[second]
        await told.until_seen(
            lambda: any(
                raw["metadata"]["uid"] == old["metadata"]["uid"] and raw["status"].get("phase") == "Failed"
                for raw in told.newest("DeadlineJob")
            ),
            "the DeadlineJob of the first ends",
        )
        assert new["status"]["jobUid"] == second
        assert {pod["metadata"]["labels"][names.LABEL_JOB] for pod in told.members("train")} == {
            new["metadata"]["uid"]
        }
    for raw in told.record.of("Job"):
        if raw["metadata"]["uid"] == second and not raw["spec"]["suspend"]:
            assert raw["metadata"]["labels"][names.LABEL_JOB] == new["metadata"]["uid"]
        assert raw["metadata"]["uid"] == second or raw["spec"]["suspend"]


@pytest.mark.parametrize("moment", ["released", "let go"])
async def test_pods_that_were_added_since_the_decision_are_never_let_go_by_it(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str, moment: str
) -> None:
    raised: list[str] = []

    async def before(resource: port.Resource, _: str, body: Object) -> None:
        """Ask for more pods in the moment in which the Job is released, or its first pod is let go."""
        about = port.JOBS if moment == "released" else port.PODS
        if resource == about and not raised and "spec" in body:
            raised.append(moment)
            more = {"spec": {"parallelism": 4, "completions": 4}}
            await api.patch(port.JOBS, namespace, "train", more)

    async with scene(control_plane, api, namespace, before=before) as told:
        await told.submit("train", 2)
        await told.until_seen(
            lambda: told.phase("train") == "Running" and len(told.nodes("train")) == 4, "all four run"
        )
        last = told.status("train")["attempt"]
    assert raised
    _assert_never_more_than_admitted(told, last)


async def test_a_gang_that_grows_while_it_runs_is_suspended_and_queued_with_its_new_shape(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await told.submit("train", 2)
        await told.until_phase("train", "Running")
        await told.patch("train", {"spec": {"parallelism": 4, "completions": 4}})
        await told.until_seen(
            lambda: told.status("train").get("attempt") == 2 and told.phase("train") == "Running",
            "its new shape runs",
        )
        assert len(set(told.nodes("train"))) == 4
        assert told.phases("train")[-5:] == ["Running", "Suspending", "Pending", "Admitted", "Running"]
    _assert_never_more_than_admitted(told, 2)


def _assert_never_more_than_admitted(told: Scene, last: int) -> None:
    """Fail if a pod was let go before the last attempt that only the last admission has room for."""
    indexes: dict[str, set[str]] = {}
    for pod in told.record.of("Pod"):
        if not plain_jobs.gates(pod):
            attempt = pod["metadata"]["labels"][names.LABEL_ATTEMPT]
            indexes.setdefault(attempt, set()).add(plain_jobs.index(pod))
    assert indexes.pop(str(last)) == {"0", "1", "2", "3"}
    assert all(found <= {"0", "1"} for found in indexes.values()), indexes


# Refused, and gone


async def test_a_release_that_a_policy_refuses_is_taken_back_and_told_in_its_words(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["jobs"]}
    expression = "!oldObject.spec.suspend || object.spec.suspend"
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": "no resuming today"}],
    }
    chosen = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {"policyName": namespace, "validationActions": ["Deny"], "matchResources": chosen}
    await api.create(POLICIES, None, {"metadata": {"name": namespace}, "spec": spec})
    await api.create(BINDINGS, None, {"metadata": {"name": namespace}, "spec": binding})
    try:
        async with scene(control_plane, api, namespace) as told:
            await told.suspended(our_job("probe", 1, None))

            async def in_force() -> bool:
                try:
                    await told.suspend("probe", False)
                except port.ApiError:
                    return True
                await told.suspend("probe", True)
                return False

            await told.until(in_force, "the policy to be in force")
            await told.submit("train", 2)
            await told.until_pending("train", "BackingOff")
            assert "no resuming today" in told.condition("train", "Suspended")["message"]
            assert told.members("train") == []
            await told.submit("next", 1)
            await told.until_pending("next", "BackingOff")
    finally:
        await api.delete(BINDINGS, None, namespace)
        await api.delete(POLICIES, None, namespace)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_a_job_that_is_deleted_while_it_runs_leaves_its_room(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str, propagation: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await told.submit("train", 3)
        await told.until_phase("train", "Running")
        await api.delete(port.JOBS, namespace, "train", propagation=propagation)
        await told.until_phase("train", "Failed")
        assert told.condition("train", "Finished")["reason"] == "JobVanished"
        await told.submit("next", 4)
        await told.until_phase("next", "Running")


async def test_a_job_that_is_cleared_away_as_soon_as_it_is_complete_has_succeeded(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await told.submit("train", 2, run_for="1s", ttlSecondsAfterFinished=0)
        await told.until_phase("train", "Succeeded")
        await told.until_seen(lambda: not told.newest("Job"), "the Job is cleared away")
