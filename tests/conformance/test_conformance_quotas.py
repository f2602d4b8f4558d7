"""ResourceQuotas, LimitRanges and RuntimeClasses: what they do to pods, and in which words they refuse."""

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lstqueue.embedded import resources
from lstqueue.kube import port
from tests.conformance.samples import Object, job, pod, refused, until

NOTE = "kubernetes.io/limit-ranger"


def asking(name: str, *, limits: Object | None = None, requests: Object | None = None, **spec: Any) -> Object:
    body = pod(name, **spec)
    given = {"limits": limits, "requests": requests}
    body["spec"]["containers"] = [
        {**body["spec"]["containers"][0], "resources": {key: value for key, value in given.items() if value}}
    ]
    return body


async def quota(api: port.KubeApi, namespace: str, hard: Object, name: str = "quota") -> None:
    """Create a quota and wait until it is in force."""
    body = {"metadata": {"name": name}, "spec": {"hard": hard}}
    await api.create(port.RESOURCE_QUOTAS, namespace, body)
    await until(_in_force(api, namespace, name, hard))


def _in_force(api: port.KubeApi, namespace: str, name: str, hard: Object) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        found = await api.get(port.RESOURCE_QUOTAS, namespace, name)
        return set(found.get("status", {}).get("used") or {}) == set(hard)

    return look


async def until_used(api: port.KubeApi, namespace: str, used: Object) -> None:
    async def look() -> bool:
        found = await api.get(port.RESOURCE_QUOTAS, namespace, "quota")
        return bool(used.items() <= found["status"]["used"].items())

    await until(look)


async def test_gated_pods_hold_quota_and_the_next_one_is_refused(api: port.KubeApi, namespace: str) -> None:
    hard = {"pods": "2", "requests.nvidia.com/gpu": "12", "requests.cpu": "1500m"}
    await quota(api, namespace, hard)
    await api.create(port.PODS, namespace, asking("a", limits={"nvidia.com/gpu": "8", "cpu": "1"}))
    await until_used(api, namespace, {"pods": "1", "requests.nvidia.com/gpu": "8", "requests.cpu": "1"})
    more = asking("b", limits={"nvidia.com/gpu": "8", "cpu": "250m"})
    message = (
        'pods "b" is forbidden: exceeded quota: quota, requested: requests.nvidia.com/gpu=8, '
        "used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=12"
    )
    for dry_run in (True, False):
        call = api.create(port.PODS, namespace, more, dry_run=dry_run)
        error = await refused(call, 403, reason="Forbidden")
        assert error.message == message
    await api.create(port.PODS, namespace, asking("b", limits={"cpu": "100m"}))
    await until_used(api, namespace, {"pods": "2", "requests.cpu": "1100m"})


async def test_every_exceeded_resource_is_named(api: port.KubeApi, namespace: str) -> None:
    await quota(api, namespace, {"pods": "1", "limits.memory": "1Gi"})
    await api.create(port.PODS, namespace, asking("a", limits={"memory": "768Mi"}))
    error = await refused(api.create(port.PODS, namespace, asking("b", limits={"memory": "512Mi"})), 403)
    assert error.message.endswith(
        "exceeded quota: quota, requested: limits.memory=512Mi,pods=1, used: limits.memory=768Mi,pods=1, "
        "limited: limits.memory=1Gi,pods=1"
    )


async def test_a_pod_must_state_what_a_quota_bounds(api: port.KubeApi, namespace: str) -> None:
    await quota(api, namespace, {"requests.cpu": "4", "limits.memory": "4Gi"})
    error = await refused(api.create(port.PODS, namespace, asking("open")), 403, reason="Forbidden")
    assert error.message == (
        'pods "open" is forbidden: failed quota: quota: must specify limits.memory for: main; '
        "requests.cpu for: main"
    )


async def test_a_deleted_pod_gives_back_what_it_held(api: port.KubeApi, namespace: str) -> None:
    await quota(api, namespace, {"pods": "1"})
    await api.create(port.PODS, namespace, pod("a"))
    await refused(api.create(port.PODS, namespace, pod("b")), 403, says="exceeded quota")
    await api.delete(port.PODS, namespace, "a")
    await until_used(api, namespace, {"pods": "0"})
    assert await api.create(port.PODS, namespace, pod("b"))


async def test_a_pod_that_has_ended_holds_nothing_but_its_place(api: port.KubeApi, namespace: str) -> None:
    await quota(api, namespace, {"pods": "1", "count/pods": "2"})
    await api.create(port.PODS, namespace, pod("a"))
    await api.patch_status(port.PODS, namespace, "a", {"status": {"phase": "Succeeded"}})
    await until_used(api, namespace, {"pods": "0", "count/pods": "1"})
    await api.create(port.PODS, namespace, pod("b"))
    await refused(api.create(port.PODS, namespace, pod("c")), 403, says="count/pods")


async def test_objects_are_counted(api: port.KubeApi, namespace: str) -> None:
    await quota(api, namespace, {"count/jobs.batch": "1"})
    await api.create(port.JOBS, namespace, job("a"))
    error = await refused(api.create(port.JOBS, namespace, job("b")), 403, reason="Forbidden")
    assert error.message == (
        'jobs.batch "b" is forbidden: exceeded quota: quota, requested: count/jobs.batch=1, '
        "used: count/jobs.batch=1, limited: count/jobs.batch=1"
    )


async def test_quotas_that_are_refused(api: port.KubeApi, namespace: str) -> None:
    for hard, field in (({"pods": "-1"}, "spec.hard[pods]"), ({"foo": "1"}, "spec.hard[foo]")):
        body = {"metadata": {"name": "bad"}, "spec": {"hard": hard}}
        await refused(api.create(port.RESOURCE_QUOTAS, namespace, body), 422, says=field)


async def test_a_broken_pod_is_invalid_before_it_is_too_much(api: port.KubeApi, namespace: str) -> None:
    await quota(api, namespace, {"pods": "0"})
    body = pod()
    body["spec"]["containers"] = []
    await refused(api.create(port.PODS, namespace, body), 422)


# LimitRanges


async def limit_range(api: port.KubeApi, namespace: str, *limits: Object) -> None:
    body = {"metadata": {"name": "limits"}, "spec": {"limits": list(limits)}}
    await api.create(resources.LIMIT_RANGES, namespace, body)


async def until_defaulted(api: port.KubeApi, namespace: str) -> Object:
    """Dry-run a pod until the LimitRange has been noticed, and return it."""
    made: Object = {}

    async def look() -> bool:
        nonlocal made
        made = await api.create(port.PODS, namespace, pod("trial"), dry_run=True)
        return NOTE in made["metadata"].get("annotations", {})

    await until(look)
    return made


async def test_a_limit_range_fills_itself_and_pods_in(api: port.KubeApi, namespace: str) -> None:
    item = {
        "type": "Container",
        "default": {"memory": "1Gi"},
        "defaultRequest": {"cpu": "100m"},
        "max": {"cpu": "2"},
        "min": {"cpu": "50m"},
    }
    await limit_range(api, namespace, item)
    (stored,) = (await api.get(resources.LIMIT_RANGES, namespace, "limits"))["spec"]["limits"]
    assert stored["default"] == {"cpu": "2", "memory": "1Gi"}
    assert stored["defaultRequest"] == {"cpu": "100m", "memory": "1Gi"}
    made = await until_defaulted(api, namespace)
    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "100m", "memory": "1Gi"},
    }
    assert made["metadata"]["annotations"][NOTE] == (
        "LimitRanger plugin set: cpu, memory request for container main; cpu, memory limit for container main"
    )
    assert made["status"]["qosClass"] == "Burstable"


async def test_pods_out_of_bounds_are_refused(api: port.KubeApi, namespace: str) -> None:
    await limit_range(
        api,
        namespace,
        {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "50m"}, "default": {"memory": "1Gi"}},
        {"type": "Pod", "max": {"memory": "4Gi"}},
    )
    await until_defaulted(api, namespace)
    for limits, requests, words in (
        ({"cpu": "3"}, None, "maximum cpu usage per Container is 2, but limit is 3"),
        (
            {"cpu": "3"},
            {"cpu": "10m"},
            "[minimum cpu usage per Container is 50m, but request is 10m, "
            "maximum cpu usage per Container is 2, but limit is 3]",
        ),
        ({"memory": "5Gi"}, None, "maximum memory usage per Pod is 4Gi, but limit is 5Gi"),
    ):
        body = asking("big", limits=limits, requests=requests)
        error = await refused(api.create(port.PODS, namespace, body, dry_run=True), 403, reason="Forbidden")
        assert error.message == f'pods "big" is forbidden: {words}'


BAD_LIMITS: list[tuple[str, list[Object], str]] = [
    ("order", [{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}}], "limits[0].min[cpu]"),
    ("twice", [{"type": "Container"}, {"type": "Container"}], "spec.limits[1].type"),
    ("pod defaults", [{"type": "Pod", "default": {"cpu": "1"}}], "spec.limits[0].default"),
]


@pytest.mark.parametrize(
    ("limits", "field"), [row[1:] for row in BAD_LIMITS], ids=[row[0] for row in BAD_LIMITS]
)
async def test_limit_ranges_that_are_refused(
    api: port.KubeApi, namespace: str, limits: list[Object], field: str
) -> None:
    await refused(limit_range(api, namespace, *limits), 422, says=field)


# RuntimeClasses


async def test_a_runtime_class_adds_overhead_and_placement(api: port.KubeApi, namespace: str) -> None:
    name = f"class-{secrets.token_hex(4)}"
    toleration = {"key": "kata", "operator": "Exists"}
    body = {
        "metadata": {"name": name},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [toleration]},
    }
    await api.create(resources.RUNTIME_CLASSES, None, body)
    try:
        made = await api.create(port.PODS, namespace, pod(runtimeClassName=name), dry_run=True)
        assert made["spec"]["overhead"] == {"cpu": "250m"}
        assert made["spec"]["nodeSelector"] == {"kata": "yes"}
        assert made["spec"]["tolerations"][-1] == toleration
    finally:
        await api.delete(resources.RUNTIME_CLASSES, None, name)


async def test_a_missing_runtime_class_is_named(api: port.KubeApi, namespace: str) -> None:
    error = await refused(
        api.create(port.PODS, namespace, pod(runtimeClassName="none"), dry_run=True), 403, reason="Forbidden"
    )
    assert error.message == 'pods "pod" is forbidden: pod rejected: RuntimeClass "none" not found'
