"""Pods: defaults, priority, binding, and how little of a pod may change."""

from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.conftest import Http
from tests.conformance.samples import pod, refused

UNBORN = "no-such-node"


async def bind(http: Http, namespace: str, name: str, node: str = UNBORN, **metadata: str) -> Any:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    return await http.send("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", body)


def free_pod(name: str = "pod", **spec: Any) -> port.Object:
    """A pod that no scheduler looks at."""
    return pod(name, gated=False, schedulerName="nobody", **spec)


async def test_defaults(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.PODS, namespace, pod())
    spec, container = created["spec"], created["spec"]["containers"][0]
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["schedulerName"] == "default-scheduler"
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert container["resources"] == {}


async def test_fields_that_are_null_are_not_stored(api: port.KubeApi, namespace: str) -> None:
    affinity = {"nodeAffinity": None, "podAffinity": None}
    created = await api.create(port.PODS, namespace, pod(affinity=affinity, nodeSelector=None))
    assert created["spec"]["affinity"] == {}
    assert "nodeSelector" not in created["spec"]


async def test_requests_default_to_limits(api: port.KubeApi, namespace: str) -> None:
    body = pod()
    body["spec"]["containers"][0]["resources"] = {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "1"},
    }
    created = await api.create(port.PODS, namespace, body)
    assert created["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


async def test_a_new_pod_is_pending(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.PODS, namespace, pod())
    assert created["status"]["phase"] == "Pending"
    assert created["status"]["qosClass"] == "BestEffort"


async def test_a_gated_pod_says_so(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.PODS, namespace, pod())
    [condition] = created["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
    )


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
    ],
)
async def test_quality_of_service(api: port.KubeApi, namespace: str, resources: Any, expected: str) -> None:
    body = pod()
    body["spec"]["containers"][0]["resources"] = resources
    assert (await api.create(port.PODS, namespace, body))["status"]["qosClass"] == expected


async def test_node_trouble_is_tolerated_for_a_while(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.PODS, namespace, pod())
    seconds = {item["key"]: item["tolerationSeconds"] for item in created["spec"]["tolerations"]}
    assert seconds == {"node.kubernetes.io/not-ready": 300, "node.kubernetes.io/unreachable": 300}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("no containers", {"containers": []}, "spec.containers"),
    ("container without name", {"containers": [{"image": "a"}]}, "spec.containers[0].name"),
    (
        "two containers of a name",
        {"containers": [{"name": "a", "image": "a"}] * 2},
        "spec.containers[1].name",
    ),
    ("bad container name", {"containers": [{"name": "A", "image": "a"}]}, "spec.containers[0].name"),
    ("no image", {"containers": [{"name": "a"}]}, "spec.containers[0].image"),
    ("restart policy", {"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
    ("gate without name", {"schedulingGates": [{"name": ""}]}, "spec.schedulingGates[0]"),
    ("gate twice", {"schedulingGates": [{"name": "a.b/c"}, {"name": "a.b/c"}]}, "spec.schedulingGates[1]"),
    ("gated and bound", {"nodeName": "node"}, "spec.nodeName"),
    (
        "toleration operator",
        {"tolerations": [{"key": "a", "operator": "Maybe"}]},
        "spec.tolerations[0].operator",
    ),
    ("toleration of nothing", {"tolerations": [{"operator": "Equal"}]}, "spec.tolerations[0].operator"),
    (
        "toleration value",
        {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
        "spec.tolerations[0]",
    ),
    ("toleration effect", {"tolerations": [{"key": "a", "effect": "Never"}]}, "spec.tolerations[0].effect"),
    ("hostname", {"hostname": "Not_A_Label"}, "spec.hostname"),
    ("subdomain", {"subdomain": "a.b"}, "spec.subdomain"),
]


@pytest.mark.parametrize(("change", "field"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_pods_that_are_refused(
    api: port.KubeApi, namespace: str, change: dict[str, Any], field: str
) -> None:
    body = pod()
    body["spec"].update(change)
    await refused(api.create(port.PODS, namespace, body), 422, reason="Invalid", says=field)


@pytest.mark.parametrize(
    "resources",
    [
        {"requests": {"cpu": "-1"}},
        {"requests": {"nvidia.com/gpu": "1"}},
        {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
    ],
    ids=["negative", "extended without limit", "more than the limit"],
)
async def test_resources_that_are_refused(api: port.KubeApi, namespace: str, resources: Any) -> None:
    body = pod()
    body["spec"]["containers"][0]["resources"] = resources
    await refused(api.create(port.PODS, namespace, body), 422, says="spec.containers[0].resources")


async def test_a_pod_has_no_priority_by_default(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.PODS, namespace, pod())
    assert (created["spec"]["priority"], created["spec"]["preemptionPolicy"]) == (0, "PreemptLowerPriority")


async def test_priority_comes_from_the_class(api: port.KubeApi, namespace: str) -> None:
    made = await api.create(
        port.PRIORITY_CLASSES,
        None,
        {"metadata": {"generateName": "case-"}, "value": 7, "preemptionPolicy": "Never"},
    )
    name = made["metadata"]["name"]
    created = await api.create(port.PODS, namespace, pod(priorityClassName=name))
    assert (created["spec"]["priority"], created["spec"]["preemptionPolicy"]) == (7, "Never")
    await refused(api.create(port.PODS, namespace, pod("other", priorityClassName=name, priority=8)), 403)
    await api.delete(port.PRIORITY_CLASSES, None, name)


async def test_a_missing_priority_class_is_forbidden(api: port.KubeApi, namespace: str) -> None:
    body = pod(priorityClassName="none")
    await refused(
        api.create(port.PODS, namespace, body), 403, says="no PriorityClass with name none was found"
    )


FROZEN: list[tuple[str, dict[str, Any]]] = [
    ("node", {"nodeName": "node"}),
    ("restart policy", {"restartPolicy": "Never"}),
    ("command", {"containers": [{"name": "main", "image": "registry.example/app:1", "command": ["x"]}]}),
    ("more containers", {"containers": [{"name": "main", "image": "a"}, {"name": "other", "image": "a"}]}),
    ("priority class", {"priorityClassName": "system-node-critical"}),
    ("host name", {"hostname": "other"}),
    ("grace", {"terminationGracePeriodSeconds": 5}),
    ("node selector", {"nodeSelector": {"a": "b"}}),
    ("scheduler", {"schedulerName": "other"}),
]


@pytest.mark.parametrize("change", [row[1] for row in FROZEN], ids=[row[0] for row in FROZEN])
async def test_most_of_a_pod_never_changes(api: port.KubeApi, namespace: str, change: dict[str, Any]) -> None:
    await api.create(port.PODS, namespace, free_pod())
    await refused(
        api.patch(port.PODS, namespace, "pod", {"spec": change}), 422, reason="Invalid", says="spec"
    )


async def test_images_may_change(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.PODS, namespace, free_pod())
    containers = [created["spec"]["containers"][0] | {"image": "registry.example/app:2"}]
    patched = await api.patch(port.PODS, namespace, "pod", {"spec": {"containers": containers}})
    assert patched["spec"]["containers"][0]["image"] == "registry.example/app:2"


async def test_tolerations_are_only_added(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.PODS, namespace, free_pod())
    before = created["spec"]["tolerations"]
    more = [*before, {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    patched = await api.patch(port.PODS, namespace, "pod", {"spec": {"tolerations": more}})
    assert patched["spec"]["tolerations"] == more
    await refused(api.patch(port.PODS, namespace, "pod", {"spec": {"tolerations": before[1:]}}), 422)


async def test_a_binding_sets_the_node(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(port.PODS, namespace, free_pod())
    reply = await bind(http, namespace, "pod")
    assert (reply.status, reply.body["status"]) == (201, "Success")
    found = await api.get(port.PODS, namespace, "pod")
    assert found["spec"]["nodeName"] == UNBORN
    assert found["metadata"]["generation"] == 1
    conditions = {item["type"]: item["status"] for item in found["status"]["conditions"]}
    assert conditions["PodScheduled"] == "True"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nodeSelector", ["gpu"]),
        ("nodeSelector", {"gpu": {}}),
        ("tolerations", "all"),
        ("hostNetwork", "yes"),
        ("terminationGracePeriodSeconds", {"a": "b"}),
        ("terminationGracePeriodSeconds", 2**63),
        ("affinity", []),
        ("overhead", "much"),
    ],
)
async def test_a_field_of_another_type_cannot_be_decoded(
    api: port.KubeApi, namespace: str, field: str, value: Any
) -> None:
    await refused(api.create(port.PODS, namespace, pod(**{field: value})), 400)


async def test_a_pod_is_bound_once(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(port.PODS, namespace, free_pod())
    await bind(http, namespace, "pod")
    reply = await bind(http, namespace, "pod")
    assert reply.status == 409
    assert "already assigned to node" in reply.body["message"]


async def test_a_gated_pod_is_not_bound(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(port.PODS, namespace, pod())
    reply = await bind(http, namespace, "pod")
    assert reply.status == 409
    assert "schedulingGates" in reply.body["message"]


async def test_a_binding_for_another_uid_is_a_conflict(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(port.PODS, namespace, free_pod())
    reply = await bind(http, namespace, "pod", uid="00000000-0000-4000-8000-000000000000")
    assert reply.status == 409


async def test_a_binding_needs_a_pod(http: Http, namespace: str) -> None:
    assert (await bind(http, namespace, "none")).status == 404


async def test_a_bound_pod_ends_gracefully(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(port.PODS, namespace, free_pod(terminationGracePeriodSeconds=600))
    await bind(http, namespace, "pod")
    path = f"/api/v1/namespaces/{namespace}/pods/pod"
    first = await http.send("DELETE", path)
    assert (first.status, first.body["kind"]) == (200, "Pod")
    assert first.body["metadata"]["deletionGracePeriodSeconds"] == 600
    assert first.body["metadata"]["generation"] == 2
    shorter = await http.send("DELETE", path, {"gracePeriodSeconds": 60})
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 60
    longer = await http.send("DELETE", path, {"gracePeriodSeconds": 300})
    assert longer.body["metadata"]["deletionGracePeriodSeconds"] == 60
    await http.send("DELETE", path, {"gracePeriodSeconds": 0})
    await refused(api.get(port.PODS, namespace, "pod"), 404)
