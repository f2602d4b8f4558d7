"""Strategic merge patches of built-in kinds: lists that are maps, sets or neither, and the directives."""

from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.conftest import Http
from tests.conformance.samples import CONFIG_MAPS, config_map, deadline_job, job, pod

STRATEGIC = "application/strategic-merge-patch+json"
A, B, C = "example.com/a", "example.com/b", "example.com/c"


def tolerations(*keys: str) -> list[dict[str, str]]:
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]


METADATA: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("adds a label", {"labels": {"z": "1"}}, {"labels": {"x": "1", "y": "2", "z": "1"}}),
    ("removes a label", {"labels": {"x": None}}, {"labels": {"y": "2"}}),
    ("replaces labels", {"labels": {"$patch": "replace", "z": "1"}}, {"labels": {"z": "1"}}),
    ("keeps labels", {"labels": {"$retainKeys": ["y"]}}, {"labels": {"y": "2"}}),
    ("adds to a set", {"finalizers": [B, C]}, {"finalizers": [A, B, C]}),
    ("takes from a set", {"$deleteFromPrimitiveList/finalizers": [A, C]}, {"finalizers": [B]}),
    (
        "orders a set",
        {"finalizers": [C], "$setElementOrder/finalizers": [C, A, B]},
        {"finalizers": [C, A, B]},
    ),
    ("does nothing", {}, {"labels": {"x": "1", "y": "2"}, "finalizers": [A, B]}),
]


@pytest.mark.parametrize(
    ("patch", "expected"), [row[1:] for row in METADATA], ids=[row[0] for row in METADATA]
)
async def test_metadata(
    http: Http, api: port.KubeApi, namespace: str, patch: dict[str, Any], expected: dict[str, Any]
) -> None:
    body = config_map("one", labels={"x": "1", "y": "2"}, finalizers=[A, B])
    await api.create(CONFIG_MAPS, namespace, body)
    path = f"/api/v1/namespaces/{namespace}/configmaps/one"
    reply = await http.send("PATCH", path, {"metadata": patch}, content_type=STRATEGIC)
    assert reply.status == 200, reply.body
    assert {key: reply.body["metadata"].get(key) for key in expected} == expected
    await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"finalizers": None}})


PORTS = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
LISTS: list[tuple[str, dict[str, Any], list[tuple[str, int]]]] = [
    ("changes an item", {"ports": [{"port": 2, "name": "z"}]}, [("a", 1), ("z", 2)]),
    ("removes an item", {"ports": [{"port": 1, "$patch": "delete"}]}, [("b", 2)]),
    ("removes what is not there", {"ports": [{"port": 9, "$patch": "delete"}]}, [("a", 1), ("b", 2)]),
    (
        "replaces the list",
        {"ports": [{"port": 3, "name": "c"}, {"$patch": "replace"}]},
        [("c", 3)],
    ),
    (
        "orders the list",
        {"ports": [{"port": 2, "name": "b"}], "$setElementOrder/ports": [{"port": 2}, {"port": 1}]},
        [("b", 2), ("a", 1)],
    ),
]


@pytest.mark.parametrize(("patch", "expected"), [row[1:] for row in LISTS], ids=[row[0] for row in LISTS])
async def test_a_list_with_keys(
    http: Http, api: port.KubeApi, namespace: str, patch: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    body = {"metadata": {"name": "one"}, "spec": {"clusterIP": "None", "ports": PORTS}}
    await api.create(port.SERVICES, namespace, body)
    path = f"/api/v1/namespaces/{namespace}/services/one"
    reply = await http.send("PATCH", path, {"spec": patch}, content_type=STRATEGIC)
    assert reply.status == 200, reply.body
    assert [(item["name"], item["port"]) for item in reply.body["spec"]["ports"]] == expected


async def test_an_added_item_is_in_the_list(http: Http, api: port.KubeApi, namespace: str) -> None:
    body = {"metadata": {"name": "one"}, "spec": {"clusterIP": "None", "ports": PORTS}}
    await api.create(port.SERVICES, namespace, body)
    path = f"/api/v1/namespaces/{namespace}/services/one"
    patch = {"spec": {"ports": [{"port": 3, "name": "c"}]}}
    reply = await http.send("PATCH", path, patch, content_type=STRATEGIC)
    assert {item["port"] for item in reply.body["spec"]["ports"]} == {1, 2, 3}


async def test_a_list_without_keys_is_replaced(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(port.PODS, namespace, pod("one", tolerations=tolerations("a")))
    path = f"/api/v1/namespaces/{namespace}/pods/one"
    before = (await api.get(port.PODS, namespace, "one"))["spec"]["tolerations"]
    patch = {"spec": {"tolerations": [*before, *tolerations("b")]}}
    reply = await http.send("PATCH", path, patch, content_type=STRATEGIC)
    assert reply.status == 200, reply.body
    assert [item["key"] for item in reply.body["spec"]["tolerations"]].count("a") == 1


async def test_containers_of_a_template_are_merged_by_name(
    http: Http, api: port.KubeApi, namespace: str
) -> None:
    await api.create(port.JOBS, namespace, job("one"))
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/one"
    limits = {"limits": {"cpu": "1"}}
    containers = [{"name": "main", "resources": limits}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    reply = await http.send("PATCH", path, patch, content_type=STRATEGIC)
    assert reply.status == 200, reply.body
    (container,) = reply.body["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/app:1"
    assert container["resources"]["limits"] == {"cpu": "1"}


async def test_an_item_without_its_key_is_refused(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(port.PODS, namespace, pod("one"))
    path = f"/api/v1/namespaces/{namespace}/pods/one"
    patch = {"spec": {"containers": [{"image": "x"}]}}
    reply = await http.send("PATCH", path, patch, content_type=STRATEGIC)
    assert 400 <= reply.status <= 500, reply.body
    assert (await api.get(port.PODS, namespace, "one"))["spec"]["containers"][0]["name"] == "main"


async def test_a_stale_version_is_a_conflict(http: Http, api: port.KubeApi, namespace: str) -> None:
    created = await api.create(CONFIG_MAPS, namespace, config_map("one"))
    await api.patch(CONFIG_MAPS, namespace, "one", {"data": {"key": "other"}})
    version = created["metadata"]["resourceVersion"]
    path = f"/api/v1/namespaces/{namespace}/configmaps/one"
    patch = {"metadata": {"resourceVersion": version}, "data": {"a": "b"}}
    assert (await http.send("PATCH", path, patch, content_type=STRATEGIC)).status == 409


async def test_custom_kinds_take_none(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(port.DEADLINE_JOBS, namespace, deadline_job("one"))
    path = f"/apis/lstqueue.dev/v1alpha1/namespaces/{namespace}/deadlinejobs/one"
    assert (await http.send("PATCH", path, {}, content_type=STRATEGIC)).status == 415
