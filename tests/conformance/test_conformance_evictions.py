"""Evictions: how `kubectl drain` empties a node."""

from typing import Any

from lstqueue.kube import port
from tests.conformance.conftest import Http
from tests.conformance.samples import pod


def free_pod(**spec: Any) -> port.Object:
    """A pod that no scheduler looks at."""
    return pod("pod", gated=False, schedulerName="nobody", **spec)


async def bind(http: Http, namespace: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "pod"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "no-such-node"},
    }
    await http.send("POST", f"/api/v1/namespaces/{namespace}/pods/pod/binding", body)


async def evict(http: Http, namespace: str, name: str, **more: Any) -> Any:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "pod"}, **more}
    return await http.send("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", body)


async def test_an_evicted_pod_is_marked_and_ends_gracefully(
    http: Http, api: port.KubeApi, namespace: str
) -> None:
    await api.create(port.PODS, namespace, free_pod(terminationGracePeriodSeconds=600))
    await bind(http, namespace)
    dry = await evict(http, namespace, "pod", deleteOptions={"dryRun": ["All"]})
    assert (dry.status, dry.body["status"]) == (201, "Success")
    kept = await api.get(port.PODS, namespace, "pod")
    assert "deletionTimestamp" not in kept["metadata"]
    assert "DisruptionTarget" not in {item["type"] for item in kept["status"]["conditions"]}
    reply = await evict(http, namespace, "pod")
    assert (reply.status, reply.body["status"]) == (201, "Success")
    found = await api.get(port.PODS, namespace, "pod")
    assert found["metadata"]["deletionGracePeriodSeconds"] == 600
    [mark] = [item for item in found["status"]["conditions"] if item["type"] == "DisruptionTarget"]
    assert (mark["status"], mark["reason"]) == ("True", "EvictionByEvictionAPI")


async def test_an_eviction_is_for_a_pod_that_is_there_and_of_that_name(
    http: Http, api: port.KubeApi, namespace: str
) -> None:
    assert (await evict(http, namespace, "pod")).status == 404
    await api.create(port.PODS, namespace, free_pod())
    assert (await evict(http, namespace, "pod", metadata={"name": "other"})).status == 400
    other = {"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}}
    assert (await evict(http, namespace, "pod", deleteOptions=other)).status == 409
    assert (await evict(http, namespace, "pod")).status == 201


async def test_discovery_says_that_pods_can_be_evicted(http: Http) -> None:
    rows = (await http.send("GET", "/api/v1")).body["resources"]
    [row] = [row for row in rows if row["name"] == "pods/eviction"]
    assert (row["kind"], row["group"], row["version"], row["verbs"]) == (
        "Eviction",
        "policy",
        "v1",
        ["create"],
    )
