"""Merge patches and JSON patches: what they do to an object, and when they are refused."""

from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.conftest import Http
from tests.conformance.samples import CONFIG_MAPS, config_map, deadline_job, refused

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
START = {"a": "1", "b": "2"}


@pytest.fixture
async def one(api: port.KubeApi, namespace: str) -> port.Object:
    body = {"metadata": {"name": "one", "labels": {"x": "1", "y": "2"}}, "data": START}
    return await api.create(CONFIG_MAPS, namespace, body)


MERGES: list[tuple[str, Any, dict[str, str] | None]] = [
    ("adds a key", {"data": {"c": "3"}}, {"a": "1", "b": "2", "c": "3"}),
    ("replaces a value", {"data": {"a": "9"}}, {"a": "9", "b": "2"}),
    ("removes a key", {"data": {"a": None}}, {"b": "2"}),
    ("removes a missing key", {"data": {"z": None}}, START),
    ("removes a map", {"data": None}, None),
    ("does nothing", {}, START),
]


@pytest.mark.parametrize(("patch", "expected"), [row[1:] for row in MERGES], ids=[row[0] for row in MERGES])
async def test_a_merge_patch(
    api: port.KubeApi, namespace: str, one: port.Object, patch: Any, expected: dict[str, str] | None
) -> None:
    patched = await api.patch(CONFIG_MAPS, namespace, "one", patch)
    assert patched.get("data") == expected
    assert (await api.get(CONFIG_MAPS, namespace, "one")).get("data") == expected


async def test_a_merge_patch_replaces_lists(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one", finalizers=["example.com/a", "example.com/b"]))
    patched = await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"finalizers": ["example.com/c"]}})
    assert patched["metadata"]["finalizers"] == ["example.com/c"]
    cleared = await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"finalizers": None}})
    assert "finalizers" not in cleared["metadata"]


async def test_removing_the_last_label_removes_the_map(
    api: port.KubeApi, namespace: str, one: port.Object
) -> None:
    patched = await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"labels": {"x": None, "y": None}}})
    assert "labels" not in patched["metadata"]


async def test_a_merge_patch_with_the_current_version_applies(
    api: port.KubeApi, namespace: str, one: port.Object
) -> None:
    version = one["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "data": {"a": "9"}}
    assert (await api.patch(CONFIG_MAPS, namespace, "one", patch))["data"]["a"] == "9"


@pytest.mark.parametrize("resource", [CONFIG_MAPS, port.DEADLINE_JOBS], ids=lambda resource: resource.plural)
async def test_a_merge_patch_with_an_old_version_is_a_conflict(
    api: port.KubeApi, namespace: str, resource: port.Resource
) -> None:
    body = config_map("two") if resource is CONFIG_MAPS else deadline_job("two")
    version = (await api.create(resource, namespace, body))["metadata"]["resourceVersion"]
    await api.patch(resource, namespace, "two", {"metadata": {"labels": {"x": "1"}}})
    patch = {"metadata": {"resourceVersion": version, "labels": {"x": "2"}}}
    await refused(api.patch(resource, namespace, "two", patch), 409, reason="Conflict")
    assert (await api.get(resource, namespace, "two"))["metadata"]["labels"] == {"x": "1"}


async def test_a_patch_cannot_change_the_kind(api: port.KubeApi, namespace: str, one: port.Object) -> None:
    await refused(api.patch(CONFIG_MAPS, namespace, "one", {"kind": "Secret"}), 422)


JSON_PATCHES: list[tuple[str, list[Any], dict[str, str]]] = [
    ("add", [{"op": "add", "path": "/data/c", "value": "3"}], {"a": "1", "b": "2", "c": "3"}),
    ("add over", [{"op": "add", "path": "/data/a", "value": "9"}], {"a": "9", "b": "2"}),
    ("remove", [{"op": "remove", "path": "/data/a"}], {"b": "2"}),
    ("replace", [{"op": "replace", "path": "/data/a", "value": "9"}], {"a": "9", "b": "2"}),
    ("replace map", [{"op": "replace", "path": "/data", "value": {"z": "0"}}], {"z": "0"}),
    ("copy", [{"op": "copy", "from": "/data/a", "path": "/data/c"}], {"a": "1", "b": "2", "c": "1"}),
    ("move", [{"op": "move", "from": "/data/a", "path": "/data/c"}], {"b": "2", "c": "1"}),
    (
        "test and replace",
        [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "9"}],
        {"a": "9", "b": "2"},
    ),
    ("escapes", [{"op": "add", "path": "/metadata/labels/example.com~1z", "value": "1"}], START),
    ("empty", [], START),
]


@pytest.mark.parametrize(
    ("patch", "expected"), [row[1:] for row in JSON_PATCHES], ids=[row[0] for row in JSON_PATCHES]
)
async def test_a_json_patch(
    http: Http, namespace: str, one: port.Object, patch: list[Any], expected: dict[str, str]
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/one"
    reply = await http.send("PATCH", path, patch, content_type=JSON_PATCH)
    assert reply.status == 200, reply.body
    assert reply.body["data"] == expected


async def test_a_json_patch_edits_lists(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("two", finalizers=["example.com/a", "example.com/b"]))
    patch = [
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/d"},
        {"op": "add", "path": "/metadata/finalizers/2", "value": "example.com/c"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]
    path = f"/api/v1/namespaces/{namespace}/configmaps/two"
    reply = await http.send("PATCH", path, patch, content_type=JSON_PATCH)
    assert reply.body["metadata"]["finalizers"] == ["example.com/b", "example.com/c", "example.com/d"]
    await api.patch(CONFIG_MAPS, namespace, "two", {"metadata": {"finalizers": None}})


UNFIT: list[tuple[str, Any]] = [
    ("failed test", [{"op": "test", "path": "/data/a", "value": "other"}]),
    ("remove nothing", [{"op": "remove", "path": "/data/z"}]),
    ("no such parent", [{"op": "add", "path": "/binaryData/x/y", "value": "1"}]),
    ("move nothing", [{"op": "move", "from": "/data/z", "path": "/data/c"}]),
]


@pytest.mark.parametrize("patch", [row[1] for row in UNFIT], ids=[row[0] for row in UNFIT])
async def test_a_json_patch_that_does_not_fit_is_422(
    http: Http, api: port.KubeApi, namespace: str, one: port.Object, patch: Any
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/one"
    reply = await http.send("PATCH", path, patch, content_type=JSON_PATCH)
    assert reply.status == 422, reply.body
    assert await api.get(CONFIG_MAPS, namespace, "one") == one


async def test_a_json_patch_applies_as_a_whole_or_not_at_all(
    http: Http, api: port.KubeApi, namespace: str, one: port.Object
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/one"
    patch = [
        {"op": "replace", "path": "/data/a", "value": "9"},
        {"op": "test", "path": "/data/b", "value": "other"},
    ]
    assert (await http.send("PATCH", path, patch, content_type=JSON_PATCH)).status == 422
    assert (await api.get(CONFIG_MAPS, namespace, "one"))["data"] == START


MALFORMED: list[tuple[str, str, Any]] = [
    ("a merge patch that is a list", MERGE, []),
    ("a merge patch that is no JSON", MERGE, b"{"),
    ("a JSON patch that is an object", JSON_PATCH, {"op": "add"}),
    ("a JSON patch that is no JSON", JSON_PATCH, b"[{"),
]


@pytest.mark.parametrize(
    ("content_type", "patch"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED]
)
async def test_malformed_patches_are_400(
    http: Http, namespace: str, one: port.Object, content_type: str, patch: Any
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/one"
    assert (await http.send("PATCH", path, patch, content_type=content_type)).status == 400


async def test_an_unknown_patch_format_is_415(http: Http, namespace: str, one: port.Object) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/one"
    reply = await http.send("PATCH", path, {}, content_type="application/json")
    assert reply.status == 415
    assert reply.body["reason"] == "UnsupportedMediaType"


async def test_a_patch_as_a_dry_run_is_not_stored(
    http: Http, api: port.KubeApi, namespace: str, one: port.Object
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/one"
    reply = await http.send("PATCH", path, {"data": {"a": "9"}}, content_type=MERGE, dryRun="All")
    assert reply.body["data"]["a"] == "9"
    assert await api.get(CONFIG_MAPS, namespace, "one") == one
