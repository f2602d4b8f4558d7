"""What else kubectl asks for: schemas, permissions, and refusals that must tell it what to do."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from lstqueue.embedded import kinds, requests, server, store
from lstqueue.kube import port

OWN = "/openapi/v3/apis/lstqueue.dev/v1alpha1"
JOB = {
    "metadata": {"name": "one"},
    "spec": {
        "suspend": True,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}},
    },
}


@pytest.fixture
async def running() -> AsyncIterator[server.ApiServer]:
    async with server.ApiServer(store.Store(now=lambda: 1_767_225_600_000)) as started:
        yield started


@pytest.fixture
async def http(running: server.ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(running.url) as session:
        yield session


async def document(http: aiohttp.ClientSession, path: str) -> dict[str, Any]:
    async with http.get(path) as answer:
        assert answer.status == 200, path
        found: dict[str, Any] = await answer.json()
        return found


async def test_every_group_has_a_document_with_its_kinds(http: aiohttp.ClientSession) -> None:
    index = (await document(http, "/openapi/v3"))["paths"]
    described = set()
    for entry in index.values():
        found = await document(http, entry["serverRelativeURL"])
        for schema in found["components"]["schemas"].values():
            described |= {item["kind"] for item in schema.get("x-kubernetes-group-version-kind", ())}
    assert described == {kind.resource.kind for kind in kinds.KINDS.values()}


async def test_every_patch_says_that_the_server_validates(http: aiohttp.ClientSession) -> None:
    # Without it kubectl validates by itself, and insists on protobuf for that.
    for entry in (await document(http, "/openapi/v3"))["paths"].values():
        paths = (await document(http, entry["serverRelativeURL"]))["paths"]
        patches = [item["patch"] for item in paths.values() if "patch" in item]
        assert patches
        for patch in patches:
            assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}


async def test_fields_of_our_kinds_are_explained(http: aiohttp.ClientSession) -> None:
    found = await document(http, OWN)
    schema = found["components"]["schemas"]["dev.lstqueue.v1alpha1.DeadlineJob"]
    spec = schema["properties"]["spec"]["properties"]
    assert spec["deadline"]["format"] == "date-time"
    assert spec["deadline"]["description"]
    reference = schema["properties"]["metadata"]["allOf"][0]["$ref"].removeprefix("#/components/schemas/")
    assert "labels" in found["components"]["schemas"][reference]["properties"]
    collection = found["paths"]["/apis/lstqueue.dev/v1alpha1/namespaces/{namespace}/deadlinejobs"]
    assert collection["get"]["x-kubernetes-group-version-kind"]["kind"] == "DeadlineJob"


async def test_a_group_that_does_not_exist_has_no_document(http: aiohttp.ClientSession) -> None:
    async with http.get("/openapi/v3/apis/example.com/v1") as answer:
        assert answer.status == 404


@pytest.mark.parametrize(
    ("path", "check"),
    [
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", lambda status: status["allowed"]),
        (
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            lambda status: status["resourceRules"][0]["verbs"] == ["*"],
        ),
        (
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            lambda status: "system:masters" in status["userInfo"]["groups"],
        ),
    ],
)
async def test_everybody_may_do_everything(http: aiohttp.ClientSession, path: str, check: Any) -> None:
    asked = {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}}
    async with http.post(path, json=asked) as answer:
        assert answer.status == 201
        found = await answer.json()
    assert check(found["status"])
    assert found["spec"] == asked["spec"]
    # kubectl asks in protobuf.
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    async with http.post(path, data=b"k8s\0whatever", headers=headers) as answer:
        assert check((await answer.json())["status"])
    async with http.get(path) as answer:
        assert answer.status == 405
    async with http.post(path, json=[]) as answer:
        assert answer.status == 400


async def test_reviews_are_discovered(http: aiohttp.ClientSession) -> None:
    groups = {group["name"] for group in (await document(http, "/apis"))["groups"]}
    assert {"authorization.k8s.io", "authentication.k8s.io"} <= groups
    rows = (await document(http, "/apis/authorization.k8s.io/v1"))["resources"]
    assert {row["name"]: row["verbs"] for row in rows} == {
        "selfsubjectaccessreviews": ["create"],
        "selfsubjectrulesreviews": ["create"],
    }


async def send(
    http: aiohttp.ClientSession, method: str, path: str, *, media: str, body: bytes = b"{}"
) -> tuple[int, str]:
    async with http.request(method, path, data=body, headers={"Content-Type": media}) as answer:
        found = await answer.json()
        return answer.status, found.get("message", "")


async def test_server_side_apply_is_refused_with_the_remedy(http: aiohttp.ClientSession) -> None:
    path = "/apis/lstqueue.dev/v1alpha1/gpuqueues/research"
    status, message = await send(http, "PATCH", path, media="application/apply-patch+yaml")
    assert status == 415
    assert "use `kubectl apply` without --server-side" in message


async def test_protobuf_is_refused_with_the_remedy(http: aiohttp.ClientSession) -> None:
    media = "application/vnd.kubernetes.protobuf"
    status, message = await send(http, "POST", "/api/v1/namespaces", media=media)
    assert status == 415
    assert "--dry-run=client -o yaml | kubectl create -f -" in message


MESSAGE = bytes.fromhex("081e12030a0175220a4261636b67726f756e642a03416c6c")
"""DeleteOptions: grace 30, uid precondition "u", Background, dry run."""


def envelope(message: bytes) -> bytes:
    kind = b"\x0a\x02v1\x12\x0dDeleteOptions"
    return b"k8s\0" + b"\x0a" + bytes([len(kind)]) + kind + b"\x12" + bytes([len(message)]) + message


def test_an_eviction_may_be_protobuf() -> None:
    meta, options = b"\x0a\x03pod\x1a\x07default", MESSAGE
    message = b"\x0a" + bytes([len(meta)]) + meta + b"\x12" + bytes([len(options)]) + options
    media = "application/vnd.kubernetes.protobuf"
    found = requests.eviction(requests.Parameters(""), envelope(message), content_type=media)
    assert found.name == "pod"
    assert (found.options.grace_seconds, found.options.uid, found.options.dry_run) == (30, "u", True)
    with pytest.raises(port.InvalidError, match="not an Eviction"):
        requests.eviction(requests.Parameters(""), b"k8s\0\xff", content_type=media)


def test_options_of_a_deletion_may_be_protobuf() -> None:
    media = "application/vnd.kubernetes.protobuf"
    parameters = requests.Parameters("")
    found = requests.delete_options(parameters, envelope(MESSAGE), content_type=media)
    assert (found.grace_seconds, found.uid, found.resource_version) == (30, "u", "")
    assert (found.propagation, found.dry_run) == ("Background", True)
    found = requests.delete_options(parameters, envelope(b""), content_type=media)
    assert (found.grace_seconds, found.propagation, found.dry_run) == (None, "", False)
    negative = b"\x08" + b"\xff" * 9 + b"\x01"
    assert requests.delete_options(parameters, envelope(negative), content_type=media).grace_seconds == -1


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"k8s",
        b"k8s\0\x12\x05x",
        envelope(b"\x08"),
        envelope(b"\x0b"),
        envelope(b"\x08" + b"\xff" * 12),
    ],
)
def test_options_that_are_no_protobuf_are_refused(body: bytes) -> None:
    with pytest.raises(port.InvalidError, match="not DeleteOptions"):
        requests.delete_options(
            requests.Parameters(""), body, content_type="application/vnd.kubernetes.protobuf"
        )


async def test_strategic_patches_are_for_built_in_kinds(
    running: server.ApiServer, http: aiohttp.ClientSession
) -> None:
    media = "application/strategic-merge-patch+json"
    running.store.create(port.JOBS, "default", JOB)
    path = "/apis/batch/v1/namespaces/default/jobs/one"
    patch = b'{"metadata":{"labels":{"a":"b"},"finalizers":["example.com/one"]}}'
    assert await send(http, "PATCH", path, media=media, body=patch) == (200, "")
    patch = b'{"metadata":{"finalizers":["example.com/two"]}}'
    assert await send(http, "PATCH", path, media=media, body=patch) == (200, "")
    meta = running.store.get(port.JOBS, "default", "one")["metadata"]
    assert meta["labels"]["a"] == "b"
    assert meta["finalizers"] == ["example.com/one", "example.com/two"]
    queue = "/apis/lstqueue.dev/v1alpha1/gpuqueues/research"
    status, message = await send(http, "PATCH", queue, media=media, body=patch)
    assert status == 415
    assert message.endswith("application/json-patch+json, application/merge-patch+json")


async def test_events_are_found_by_what_they_are_about(
    running: server.ApiServer, http: aiohttp.ClientSession
) -> None:
    about = {"kind": "Pod", "name": "one", "namespace": "default", "apiVersion": "v1", "uid": "u"}
    body = {
        "metadata": {"name": "e"},
        "involvedObject": about,
        "reason": "R",
        "message": "m",
        "type": "Normal",
    }
    running.store.create(port.EVENTS, "default", body)
    for selector, count in (
        ("involvedObject.kind=Pod,involvedObject.apiVersion=v1,involvedObject.name=one", 1),
        ("involvedObject.uid=u,involvedObject.namespace=default", 1),
        ("involvedObject.apiVersion=batch/v1", 0),
    ):
        async with http.get("/api/v1/events", params={"fieldSelector": selector}) as answer:
            assert len((await answer.json())["items"]) == count


@pytest.mark.parametrize("what", ["log", "exec", "portforward"])
async def test_what_needs_containers_says_why_it_cannot_be_had(
    http: aiohttp.ClientSession, what: str
) -> None:
    async with http.get(f"/api/v1/namespaces/default/pods/one/{what}") as answer:
        assert answer.status == 404
        assert "are simulated" in (await answer.json())["message"]


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = {"Content-Type": "application/merge-patch+json"}


async def test_applying_the_crds_that_are_there_changes_nothing(http: aiohttp.ClientSession) -> None:
    path = f"{CRDS}/gpuqueues.lstqueue.dev"
    before = await document(http, path)
    noted = {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}}
    for patch in (noted, {**noted, "spec": {"scope": before["spec"]["scope"]}}):
        async with http.patch(path, data=json.dumps(patch), headers=MERGE) as answer:
            assert answer.status == 200, await answer.text()
    after = await document(http, path)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["annotations"] == noted["metadata"]["annotations"]


async def test_any_other_write_to_a_crd_is_refused_in_one_sentence(http: aiohttp.ClientSession) -> None:
    path = f"{CRDS}/gpuqueues.lstqueue.dev"
    other = json.dumps({"spec": {"scope": "Namespaced"}})
    for answer in (
        await http.patch(path, data=other, headers=MERGE),
        await http.post(CRDS, json={"metadata": {"name": "others.example.com"}}),
        await http.delete(path),
    ):
        told = await answer.json()
        assert (answer.status, told["reason"]) == (405, "MethodNotAllowed")
        assert "built into this embedded cluster" in told["message"]
