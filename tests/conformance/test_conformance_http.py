"""The protocol itself: discovery, methods, media types, status codes and the shape of refusals."""

import io
import json
from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.conftest import Http
from tests.conformance.samples import CONFIG_MAPS, config_map, job


def maps(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


async def test_codes_of_success(http: Http, namespace: str) -> None:
    assert (await http.send("POST", maps(namespace), config_map("one"))).status == 201
    assert (await http.send("GET", maps(namespace, "one"))).status == 200
    assert (await http.send("PUT", maps(namespace, "one"), config_map("one"))).status == 200
    assert (await http.send("GET", maps(namespace))).status == 200
    assert (await http.send("DELETE", maps(namespace, "one"))).status == 200


async def test_put_that_creates_is_201(http: Http, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/lock"
    assert (await http.send("PUT", path, {"metadata": {"name": "lock"}, "spec": {}})).status == 201


async def test_put_of_an_object_that_was_deleted_does_not_create_it(http: Http, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/lock"
    made = (await http.send("PUT", path, {"metadata": {"name": "lock"}, "spec": {}})).body
    assert (await http.send("DELETE", path)).status == 200
    # It names the UID that it was read with.
    assert (await http.send("PUT", path, made)).status == 409
    assert (await http.send("GET", path)).status == 404


async def test_a_refusal_is_a_status(http: Http, namespace: str) -> None:
    reply = await http.send("GET", maps(namespace, "none"))
    assert reply.status == 404
    body = reply.body
    assert (body["kind"], body["apiVersion"], body["status"]) == ("Status", "v1", "Failure")
    assert (body["reason"], body["code"]) == ("NotFound", 404)
    assert body["details"] == {"name": "none", "kind": "configmaps"}


async def test_a_refusal_names_the_group(http: Http, namespace: str) -> None:
    reply = await http.send("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs/none")
    assert reply.body["details"] == {"name": "none", "group": "batch", "kind": "jobs"}


async def test_an_invalid_object_lists_its_causes(http: Http, namespace: str) -> None:
    body = {"metadata": {"name": "lock"}, "spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}
    reply = await http.send("POST", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", body)
    assert reply.status == 422
    causes = reply.body["details"]["causes"]
    assert {cause["field"] for cause in causes} == {"spec.leaseDurationSeconds", "spec.leaseTransitions"}
    assert {cause["reason"] for cause in causes} == {"FieldValueInvalid"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/namespaces/{}/configmaps/one"),
        ("PUT", "/api/v1/namespaces/{}/configmaps"),
        ("PATCH", "/api/v1/namespaces/{}/configmaps"),
        ("GET", "/api/v1/namespaces/{}/pods/one/binding"),
        ("DELETE", "/api/v1/namespaces/{}/pods/one/status"),
    ],
)
async def test_methods_that_do_not_apply(http: Http, namespace: str, method: str, path: str) -> None:
    reply = await http.send(method, path.format(namespace), {}, content_type="application/json")
    assert reply.status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2/pods",
        "/api/v1/things",
        "/apis/example.com/v1/things",
        "/apis/batch/v1alpha9/jobs",
        "/api/v1/namespaces/{}/nodes/one",
        "/api/v1/namespaces/{}/configmaps/one/status",
        "/nowhere",
    ],
)
async def test_paths_that_lead_nowhere(http: Http, namespace: str, path: str) -> None:
    assert (await http.send("GET", path.format(namespace))).status == 404


BODIES: list[tuple[str, Any, int]] = [
    ("no JSON", b"{", 400),
    ("empty", b"", 400),
    ("list", [], 400),
    ("text", "text", 400),
    ("other kind", {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "one"}}, 400),
    ("other version", {"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "one"}}, 400),
    ("metadata is text", {"metadata": "one"}, 400),
    ("labels are a list", {"metadata": {"name": "one", "labels": []}}, 400),
    ("finalizers are a map", {"metadata": {"name": "one", "finalizers": {"a": "b"}}}, 400),
]


@pytest.mark.parametrize(("body", "status"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
async def test_bodies_that_are_refused(http: Http, namespace: str, body: Any, status: int) -> None:
    reply = await http.send("POST", maps(namespace), body)
    assert reply.status == status, reply.body
    assert reply.body["kind"] == "Status"


async def test_an_unknown_media_type_is_415(http: Http, namespace: str) -> None:
    assert (await http.send("POST", maps(namespace), b"x", content_type="text/html")).status == 415


async def test_a_body_that_is_too_large_is_413(http: Http, namespace: str) -> None:
    body = json.dumps(config_map("one") | {"data": {"key": "x" * (4 * 2**20)}}).encode()
    headers = {"Content-Type": "application/json"}
    async with http.session.post(maps(namespace), data=io.BytesIO(body), headers=headers) as answer:
        assert answer.status == 413


@pytest.mark.parametrize("query", [{"dryRun": "Some"}, {"dryRun": "all"}])
async def test_dry_run_is_all_or_not_at_all(http: Http, namespace: str, query: dict[str, str]) -> None:
    assert (await http.send("POST", maps(namespace), config_map("one"), **query)).status == 422


@pytest.mark.parametrize(
    ("method", "query", "status"),
    [
        ("GET", {"limit": "x"}, 400),
        ("GET", {"limit": "-1"}, 200),
        ("GET", {"resourceVersionMatch": "Exact"}, 422),
        ("GET", {"resourceVersionMatch": "Other", "resourceVersion": "1"}, 422),
        ("GET", {"watch": "1", "sendInitialEvents": "true"}, 422),
        ("GET", {"watch": "1", "timeoutSeconds": "1", "resourceVersion": "999999999999"}, 200),
        ("DELETE", {"propagationPolicy": "Other"}, 422),
    ],
    ids=str,
)
async def test_parameters(
    http: Http, namespace: str, method: str, query: dict[str, str], status: int
) -> None:
    name = "one" if method == "DELETE" else ""
    await http.send("POST", maps(namespace), config_map("one"))
    assert (await http.send(method, maps(namespace, name), **query)).status == status


async def test_deletion_without_a_policy_orphans_the_pods_of_a_job(http: Http, namespace: str) -> None:
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    await http.send("POST", path, job("one"))
    reply = await http.send("DELETE", f"{path}/one")
    assert reply.body["metadata"]["finalizers"] == ["orphan"]


async def test_the_version(http: Http) -> None:
    reply = await http.send("GET", "/version")
    assert reply.body["major"] == "1"
    assert int(reply.body["minor"].rstrip("+")) >= 33
    assert reply.body["gitVersion"].startswith("v1.")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_health(http: Http, path: str) -> None:
    reply = await http.send("GET", path)
    assert (reply.status, reply.body) == (200, b"ok")


async def test_versions_of_the_core_group(http: Http) -> None:
    reply = await http.send("GET", "/api")
    assert (reply.body["kind"], reply.body["versions"]) == ("APIVersions", ["v1"])


async def test_groups(http: Http) -> None:
    reply = await http.send("GET", "/apis")
    assert reply.body["kind"] == "APIGroupList"
    groups = {group["name"]: group for group in reply.body["groups"]}
    assert {"batch", "coordination.k8s.io", "lstqueue.dev", "scheduling.k8s.io"} <= groups.keys()
    expected = {"groupVersion": "lstqueue.dev/v1alpha1", "version": "v1alpha1"}
    assert groups["lstqueue.dev"]["preferredVersion"] == expected
    assert groups["lstqueue.dev"]["versions"] == [expected]


async def test_one_group(http: Http) -> None:
    reply = await http.send("GET", "/apis/lstqueue.dev")
    assert (reply.body["kind"], reply.body["name"]) == ("APIGroup", "lstqueue.dev")
    assert (await http.send("GET", "/apis/example.com")).status == 404


ROWS: list[tuple[str, str, str, bool, set[str]]] = [
    ("/api/v1", "pods", "Pod", True, {"po"}),
    ("/api/v1", "nodes", "Node", False, {"no"}),
    ("/api/v1", "namespaces", "Namespace", False, {"ns"}),
    ("/apis/coordination.k8s.io/v1", "leases", "Lease", True, set()),
    (
        "/apis/apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        False,
        {"crd", "crds"},
    ),
    ("/apis/batch/v1", "jobs", "Job", True, set()),
    ("/apis/lstqueue.dev/v1alpha1", "deadlinejobs", "DeadlineJob", True, {"dj"}),
    ("/apis/lstqueue.dev/v1alpha1", "gpuqueues", "GPUQueue", False, {"gq"}),
    ("/apis/lstqueue.dev/v1alpha1", "interconnects", "Interconnect", False, {"ic"}),
]


@pytest.mark.parametrize(
    ("path", "plural", "kind", "namespaced", "short"), ROWS, ids=[row[1] for row in ROWS]
)
async def test_resources(
    http: Http, path: str, plural: str, kind: str, namespaced: bool, short: set[str]
) -> None:
    reply = await http.send("GET", path)
    assert reply.body["kind"] == "APIResourceList"
    assert reply.body["groupVersion"] == path.removeprefix("/apis/").removeprefix("/api/")
    row = next(row for row in reply.body["resources"] if row["name"] == plural)
    assert (row["kind"], row["namespaced"], set(row.get("shortNames", ()))) == (kind, namespaced, short)
    assert row["singularName"] == kind.lower()
    assert {"get", "list", "watch"} <= set(row["verbs"])
    names = {row["name"] for row in reply.body["resources"]}
    assert (f"{plural}/status" in names) is (plural != "leases")


async def test_resource_names_are_unescaped(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("a.b"))
    assert (await http.send("GET", maps(namespace, "a%2Eb"))).status == 200
