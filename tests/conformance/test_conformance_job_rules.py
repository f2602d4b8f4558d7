"""batch/v1 Jobs: the rules of their policies, and what of a template may change when."""

from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.samples import GATE, job, refused

INDEXED = {"completionMode": "Indexed", "completions": 4, "parallelism": 2}
GPU = {"resources": {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "2"}}}


def policy(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": list(rules)}}


def codes(*values: int, action: str = "FailJob", operator: str = "In", **more: Any) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **more}}


async def test_policies_get_their_defaults(api: port.KubeApi, namespace: str) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    spec = (await api.create(port.JOBS, namespace, job(**policy(rule))))["spec"]
    assert spec["podReplacementPolicy"] == "Failed"
    (pattern,) = spec["podFailurePolicy"]["rules"][0]["onPodConditions"]
    assert pattern == {"type": "DisruptionTarget", "status": "True"}
    plain = (await api.create(port.JOBS, namespace, job("plain")))["spec"]
    assert plain["podReplacementPolicy"] == "TerminatingOrFailed"


ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("a limit per index", {**INDEXED, "backoffLimitPerIndex": 1, "maxFailedIndexes": 2}),
    ("exit codes", policy(codes(1, 2, 3), codes(0, operator="NotIn", action="Count"))),
    ("a named container", policy(codes(1, containerName="main"))),
    ("a failed index", {**INDEXED, "backoffLimitPerIndex": 1, **policy(codes(1, action="FailIndex"))}),
    ("enough indexes", {**INDEXED, "successPolicy": {"rules": [{"succeededIndexes": "0,2-3"}]}}),
    ("enough pods", {**INDEXED, "successPolicy": {"rules": [{"succeededCount": 3}]}}),
    ("a manager", {"managedBy": "example.com/manager"}),
    ("no completions", {"completions": 0}),
]


@pytest.mark.parametrize("spec", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
async def test_jobs_that_are_accepted(api: port.KubeApi, namespace: str, spec: dict[str, Any]) -> None:
    assert await api.create(port.JOBS, namespace, job(**spec), dry_run=True)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("limit per index without indexes", {"backoffLimitPerIndex": 1}, "spec.backoffLimitPerIndex"),
    ("most failed indexes alone", {**INDEXED, "maxFailedIndexes": 1}, "spec.backoffLimitPerIndex"),
    (
        "more failed indexes than there are",
        {**INDEXED, "backoffLimitPerIndex": 1, "maxFailedIndexes": 5},
        "spec.maxFailedIndexes",
    ),
    ("negative limit per index", {**INDEXED, "backoffLimitPerIndex": -1}, "spec.backoffLimitPerIndex"),
    ("an unknown action", policy(codes(1, action="Panic")), "rules[0].action"),
    ("failed index without a limit", policy(codes(1, action="FailIndex")), "rules[0].action"),
    ("success as a failure", policy(codes(0)), "onExitCodes.values[0]"),
    ("codes out of order", policy(codes(2, 1)), "onExitCodes.values"),
    ("a code twice", policy(codes(1, 1)), "onExitCodes.values[1]"),
    ("no codes", policy(codes()), "onExitCodes.values"),
    ("an unknown operator", policy(codes(1, operator="Near")), "onExitCodes.operator"),
    ("an unknown container", policy(codes(1, containerName="other")), "onExitCodes.containerName"),
    ("a rule about nothing", policy({"action": "Ignore"}), "rules[0]"),
    (
        "replacement before failure",
        {**policy(codes(1)), "podReplacementPolicy": "TerminatingOrFailed"},
        "spec.podReplacementPolicy",
    ),
    ("an unknown replacement", {"podReplacementPolicy": "Never"}, "spec.podReplacementPolicy"),
    (
        "success policy without indexes",
        {"successPolicy": {"rules": [{"succeededCount": 1}]}},
        "successPolicy",
    ),
    ("empty success policy", {**INDEXED, "successPolicy": {"rules": []}}, "spec.successPolicy.rules"),
    ("empty success rule", {**INDEXED, "successPolicy": {"rules": [{}]}}, "spec.successPolicy.rules[0]"),
    (
        "success beyond completions",
        {**INDEXED, "successPolicy": {"rules": [{"succeededIndexes": "0-4"}]}},
        "succeededIndexes",
    ),
    (
        "more successes than indexes",
        {**INDEXED, "successPolicy": {"rules": [{"succeededIndexes": "0-1", "succeededCount": 3}]}},
        "succeededCount",
    ),
    ("a manager without domain", {"managedBy": "manager"}, "spec.managedBy"),
]


@pytest.mark.parametrize(("spec", "field"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_jobs_that_are_refused(
    api: port.KubeApi, namespace: str, spec: dict[str, Any], field: str
) -> None:
    call = api.create(port.JOBS, namespace, job(**spec), dry_run=True)
    await refused(call, 422, reason="Invalid", says=field)


FROZEN: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("manager", {}, {"managedBy": "example.com/manager"}),
    ("limit per index", {**INDEXED, "backoffLimitPerIndex": 1}, {"backoffLimitPerIndex": 2}),
    ("failure policy", {}, policy(codes(1))),
    ("success policy", INDEXED, {"successPolicy": {"rules": [{"succeededCount": 1}]}}),
    ("completions alone", INDEXED, {"completions": 5}),
]


@pytest.mark.parametrize(("spec", "patch"), [row[1:] for row in FROZEN], ids=[row[0] for row in FROZEN])
async def test_what_never_changes(
    api: port.KubeApi, namespace: str, spec: dict[str, Any], patch: dict[str, Any]
) -> None:
    await api.create(port.JOBS, namespace, job(**spec))
    await refused(api.patch(port.JOBS, namespace, "job", {"spec": patch}), 422, reason="Invalid")


MUTABLE: list[tuple[str, dict[str, Any]]] = [
    ("podReplacementPolicy", {"podReplacementPolicy": "Failed"}),
    ("maxFailedIndexes", {"maxFailedIndexes": 3}),
    ("completions with parallelism", {"completions": 6, "parallelism": 6}),
]


@pytest.mark.parametrize("patch", [row[1] for row in MUTABLE], ids=[row[0] for row in MUTABLE])
async def test_what_may_change(api: port.KubeApi, namespace: str, patch: dict[str, Any]) -> None:
    await api.create(port.JOBS, namespace, job(**INDEXED, backoffLimitPerIndex=1))
    patched = await api.patch(port.JOBS, namespace, "job", {"spec": patch})
    assert patch.items() <= patched["spec"].items()


async def test_resources_change_while_suspended(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.JOBS, namespace, job())
    (container,) = created["spec"]["template"]["spec"]["containers"]
    body = {"spec": {"template": {"spec": {"containers": [{**container, **GPU}]}}}}
    patched = await api.patch(port.JOBS, namespace, "job", body)
    assert patched["spec"]["template"]["spec"]["containers"][0]["resources"] == GPU["resources"]
    renamed = {"spec": {"template": {"spec": {"containers": [{**container, **GPU, "image": "other"}]}}}}
    await refused(api.patch(port.JOBS, namespace, "job", renamed), 422, says="spec.template")


async def test_one_patch_sets_gate_and_labels_and_releases(api: port.KubeApi, namespace: str) -> None:
    # Its own controller would write to it between creation and release.
    body = job(parallelism=0, completions=1, managedBy="example.com/manager")
    created = await api.create(port.JOBS, namespace, body)
    template = {
        "metadata": {"labels": {"example.com/group": "pods"}},
        "spec": {"schedulingGates": [{"name": GATE}]},
    }
    body = {
        "metadata": {"resourceVersion": created["metadata"]["resourceVersion"]},
        "spec": {"suspend": False, "template": template},
    }
    patched = await api.patch(port.JOBS, namespace, "job", body)
    assert patched["spec"]["suspend"] is False
    assert patched["spec"]["template"]["spec"]["schedulingGates"] == [{"name": GATE}]
    assert patched["spec"]["template"]["metadata"]["labels"]["example.com/group"] == "pods"
    late = {"spec": {"template": {"metadata": {"labels": {"example.com/restart": "1"}}}}}
    await refused(api.patch(port.JOBS, namespace, "job", late), 422, says="spec.template")
    both = {"spec": {"suspend": True, **late["spec"]}}
    await refused(api.patch(port.JOBS, namespace, "job", both), 422, says="spec.template")


async def test_a_suspended_job_takes_another_template_only_at_rest(api: port.KubeApi, namespace: str) -> None:
    """The reported status decides: nobody runs, and the Job says that it is suspended or never began."""
    body = job(managedBy="example.com/manager")
    await api.create(port.JOBS, namespace, body)
    change = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}}
    began = {"status": {"startTime": "2026-01-01T00:00:00Z", "active": 1, "ready": 0}}
    await api.patch(port.JOBS, namespace, "job", {"spec": {"suspend": False}})
    await api.patch_status(port.JOBS, namespace, "job", began)
    await api.patch(port.JOBS, namespace, "job", {"spec": {"suspend": True}})
    await refused(api.patch(port.JOBS, namespace, "job", change), 422, says="spec.template")
    await api.patch_status(port.JOBS, namespace, "job", {"status": {"active": 0}})
    await refused(api.patch(port.JOBS, namespace, "job", change), 422, says="spec.template")
    suspended = {"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended"}
    await api.patch_status(port.JOBS, namespace, "job", {"status": {"conditions": [suspended]}})
    patched = await api.patch(port.JOBS, namespace, "job", change)
    assert patched["spec"]["template"]["spec"]["nodeSelector"] == {"zone": "a"}
