"""The small built-in kinds: Namespace, Node, Service, Event, Lease, PriorityClass."""

import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.samples import refused


def service(name: str = "svc", **spec: Any) -> port.Object:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


@pytest.fixture
async def node(api: port.KubeApi) -> AsyncIterator[str]:
    name = f"case-{secrets.token_hex(4)}"
    body = {"metadata": {"name": name}, "status": {"capacity": {"cpu": "4", "pods": "10"}}}
    await api.create(port.NODES, None, body)
    yield name
    await api.delete(port.NODES, None, name)


async def test_a_namespace_is_labelled_with_its_name(api: port.KubeApi, namespace: str) -> None:
    found = await api.get(port.NAMESPACES, None, namespace)
    assert found["metadata"]["labels"]["kubernetes.io/metadata.name"] == namespace
    assert found["status"]["phase"] == "Active"
    assert found["spec"]["finalizers"] == ["kubernetes"]


async def test_labels_of_a_namespace_come_and_go(api: port.KubeApi, namespace: str) -> None:
    for value in ("gpus", "others", None):
        body = {"metadata": {"labels": {"example.com/queue": value}}}
        labels = (await api.patch(port.NAMESPACES, None, namespace, body))["metadata"]["labels"]
        assert labels.get("example.com/queue") == value
        page = await api.list_page(port.NAMESPACES, labels=f"example.com/queue={value or 'others'}")
        assert [item["metadata"]["name"] for item in page.items] == ([namespace] if value else [])
    assert labels["kubernetes.io/metadata.name"] == namespace


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
async def test_namespaces_that_are_there(api: port.KubeApi, name: str) -> None:
    assert (await api.get(port.NAMESPACES, None, name))["status"]["phase"] == "Active"


async def test_a_node_is_created_with_its_status(api: port.KubeApi, node: str) -> None:
    found = await api.get(port.NODES, None, node)
    assert found["status"]["capacity"] == {"cpu": "4", "pods": "10"}
    assert found["status"]["allocatable"] == {"cpu": "4", "pods": "10"}


async def test_a_node_is_cordoned_and_tainted(api: port.KubeApi, node: str) -> None:
    taint = {"key": "gpu", "value": "h100", "effect": "NoSchedule"}
    await api.patch(port.NODES, None, node, {"spec": {"unschedulable": True, "taints": [taint]}})
    found = await api.get(port.NODES, None, node)
    assert found["spec"]["unschedulable"] is True
    assert taint in found["spec"]["taints"]
    page = await api.list_page(port.NODES, fields=f"spec.unschedulable=true,metadata.name={node}")
    assert len(page.items) == 1


@pytest.mark.parametrize(
    "taints",
    [
        [{"key": "a", "effect": "Never"}],
        [{"effect": "NoSchedule"}],
        [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "b", "effect": "NoSchedule"}],
    ],
    ids=["effect", "key", "twice"],
)
async def test_taints_that_are_refused(api: port.KubeApi, node: str, taints: Any) -> None:
    await refused(api.patch(port.NODES, None, node, {"spec": {"taints": taints}}), 422, says="taints")


async def test_the_status_of_a_node_is_apart(api: port.KubeApi, node: str) -> None:
    await api.patch(port.NODES, None, node, {"status": {"capacity": {"cpu": "8"}}})
    assert (await api.get(port.NODES, None, node))["status"]["capacity"]["cpu"] == "4"
    await api.patch_status(port.NODES, None, node, {"status": {"capacity": {"cpu": "8"}}})
    assert (await api.get(port.NODES, None, node))["status"]["capacity"]["cpu"] == "8"


async def test_a_service_gets_an_address(api: port.KubeApi, namespace: str) -> None:
    one = await api.create(port.SERVICES, namespace, service("one"))
    two = await api.create(port.SERVICES, namespace, service("two"))
    assert one["spec"]["clusterIP"] != two["spec"]["clusterIP"]
    assert one["spec"]["clusterIPs"] == [one["spec"]["clusterIP"]]
    assert one["spec"]["type"] == "ClusterIP"
    assert one["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]


async def test_a_headless_service_needs_no_ports(api: port.KubeApi, namespace: str) -> None:
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"a": "b"}}
    created = await api.create(port.SERVICES, namespace, {"metadata": {"name": "svc"}, "spec": spec})
    assert spec.items() <= created["spec"].items()
    assert created["status"] == {"loadBalancer": {}}


async def test_other_services_need_ports(api: port.KubeApi, namespace: str) -> None:
    await refused(api.create(port.SERVICES, namespace, service(ports=[])), 422, says="spec.ports")
    await refused(
        api.create(port.SERVICES, namespace, service(ports=[{"port": 0}])), 422, says="spec.ports[0].port"
    )


async def test_the_address_of_a_service_stays(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.SERVICES, namespace, service())
    await refused(
        api.patch(port.SERVICES, namespace, "svc", {"spec": {"clusterIP": "None"}}),
        422,
        says="spec.clusterIP",
    )


@pytest.mark.parametrize("name", ["a.b", "x" * 64])
async def test_service_names_are_stricter(api: port.KubeApi, namespace: str, name: str) -> None:
    await refused(api.create(port.SERVICES, namespace, service(name)), 422, says="metadata.name")


def event(namespace: str, **fields: Any) -> port.Object:
    about = {"kind": "Pod", "namespace": namespace, "name": "pod", "uid": "u", "apiVersion": "v1"}
    return {
        "metadata": {"name": "pod.1"},
        "involvedObject": about,
        "reason": "Tested",
        "message": "x",
        "type": "Normal",
        **fields,
    }


async def test_events_are_selected_by_their_object(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.EVENTS, namespace, event(namespace))
    for fields, count in (
        ("involvedObject.name=pod,involvedObject.kind=Pod", 1),
        ("involvedObject.name=other", 0),
        ("reason=Tested,type=Normal", 1),
        ("type=Warning", 0),
    ):
        assert len((await api.list_page(port.EVENTS, namespace=namespace, fields=fields)).items) == count


async def test_an_event_is_of_the_namespace_of_its_object(api: port.KubeApi, namespace: str) -> None:
    about = {"kind": "Pod", "namespace": "elsewhere", "name": "pod"}
    call = api.create(port.EVENTS, namespace, event(namespace, involvedObject=about))
    await refused(call, 422, says="involvedObject.namespace")


async def test_an_event_counts_up(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.EVENTS, namespace, event(namespace, count=1))
    patched = await api.patch(port.EVENTS, namespace, "pod.1", {"count": 2})
    assert patched["count"] == 2


def lease(holder: str, **spec: Any) -> port.Object:
    return {
        "metadata": {"name": "lock"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, **spec},
    }


async def test_of_two_candidates_one_gets_the_lease(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.LEASES, namespace, lease(""))
    version = created["metadata"]["resourceVersion"]
    first, second = lease("a"), lease("b")
    for body in (first, second):
        body["metadata"]["resourceVersion"] = version
    await api.replace(port.LEASES, namespace, "lock", first)
    await refused(api.replace(port.LEASES, namespace, "lock", second), 409)
    assert (await api.get(port.LEASES, namespace, "lock"))["spec"]["holderIdentity"] == "a"


async def test_times_of_a_lease_keep_their_fractions(api: port.KubeApi, namespace: str) -> None:
    body = lease("a", renewTime="2026-01-02T03:04:05.678901Z", acquireTime="2026-01-02T03:04:05.678901Z")
    spec = (await api.create(port.LEASES, namespace, body))["spec"]
    assert spec["renewTime"] == "2026-01-02T03:04:05.678901Z"


@pytest.mark.parametrize(
    "spec", [{"leaseDurationSeconds": 0}, {"leaseTransitions": -1}], ids=["duration", "transitions"]
)
async def test_leases_that_are_refused(api: port.KubeApi, namespace: str, spec: Any) -> None:
    await refused(api.create(port.LEASES, namespace, lease("a", **spec)), 422, says="spec.")


async def test_priority_classes(api: port.KubeApi) -> None:
    found = await api.get(port.PRIORITY_CLASSES, None, "system-node-critical")
    assert found["value"] == 2_000_001_000
    made = await api.create(port.PRIORITY_CLASSES, None, {"metadata": {"generateName": "case-"}, "value": 5})
    name = made["metadata"]["name"]
    assert made["preemptionPolicy"] == "PreemptLowerPriority"
    await refused(api.patch(port.PRIORITY_CLASSES, None, name, {"value": 6}), 422, says="value")
    await refused(api.patch(port.PRIORITY_CLASSES, None, name, {"preemptionPolicy": "Never"}), 422)
    await api.delete(port.PRIORITY_CLASSES, None, name)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("system-mine", {"value": 5}),
        ("mine", {"value": 1_000_000_001}),
        ("mine", {"preemptionPolicy": "Often"}),
    ],
    ids=["reserved name", "too high", "policy"],
)
async def test_priority_classes_that_are_refused(api: port.KubeApi, name: str, fields: Any) -> None:
    await refused(
        api.create(port.PRIORITY_CLASSES, None, {"metadata": {"name": name}, "value": 1, **fields}), 422
    )
