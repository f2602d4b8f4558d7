"""Whatever is sent, the server answers, never with an internal error, and stores nothing it should not."""

import asyncio
import string
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import effort
from lstqueue.embedded import backend, kinds, requests, routes, store, watches
from lstqueue.kube import port

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text(string.ascii_lowercase + "-./", max_size=5)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(["one", "two", "A", "", "x.y"])
FIELDS = """
    containers initContainers restartPolicy schedulingGates tolerations affinity nodeSelector nodeName
    priorityClassName priority hostname terminationGracePeriodSeconds ports taints
    parallelism completions backoffLimit completionMode suspend selector manualSelector template
    queue deadline deadlineIn importance groups pools order defaults
"""


def nested(value: Any) -> Any:
    """A field with an arbitrary value, or with one that looks right at the first level."""
    return (
        value
        | st.lists(
            st.dictionaries(st.sampled_from(["name", "image", "resources", "key"]), value, max_size=3),
            max_size=2,
        )
        | st.dictionaries(st.sampled_from(["nodeAffinity", "spec", "matchLabels"]), value, max_size=2)
    )


SPECS = st.dictionaries(st.sampled_from(FIELDS.split()), nested(JSON), max_size=4)
METADATA = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "labels": JSON,
        "annotations": JSON,
        "finalizers": JSON,
        "ownerReferences": JSON,
        "generateName": JSON,
        "resourceVersion": JSON,
        "uid": JSON,
        "namespace": JSON,
    },
)
BODIES = JSON | st.fixed_dictionaries(
    {"metadata": METADATA}, optional={"spec": SPECS | JSON, "status": JSON, "value": JSON}
)
ROWS = [kind.resource for kind in kinds.KINDS.values()]


def send(state: backend.Backend, method: str, path: str, body: Any, content_type: str) -> routes.Answer:
    request = routes.Request(method, path, requests.Parameters(""), content_type, orjson.dumps(body))
    answer = asyncio.run(routes.handle(state, request))
    assert not isinstance(answer, watches.Watch)
    return answer


def new_state() -> backend.Backend:
    return backend.Backend(store.Store(now=lambda: 1_767_225_600_000))


@settings(max_examples=effort.examples(75), deadline=None)
@given(resource=st.sampled_from(ROWS), body=BODIES)
def test_any_body_of_a_creation(resource: port.Resource, body: Any) -> None:
    state = new_state()
    if isinstance(body, dict):
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
    answer = send(state, "POST", resource.path("default"), body, requests.JSON)
    assert answer.status in (201, 400, 403, 404, 405, 409, 413, 422), answer.body
    assert (orjson.loads(answer.body)["kind"] == "Status") == (answer.status != 201)


@settings(max_examples=effort.examples(75), deadline=None)
@given(
    resource=st.sampled_from([port.PODS, port.JOBS, port.DEADLINE_JOBS, port.SERVICES]),
    patch=BODIES,
    subresource=st.sampled_from(["", "status"]),
)
def test_any_merge_patch(resource: port.Resource, patch: Any, subresource: str) -> None:
    state = new_state()
    created = state.store.create(resource, "default", sample(resource))
    path = resource.path("default", "one", subresource)
    answer = send(state, "PATCH", path, patch, requests.MERGE_PATCH)
    assert answer.status in (200, 400, 409, 422), answer.body
    found = state.store.get(resource, "default", "one")
    if answer.status != 200:
        assert found is created
    assert found["metadata"]["uid"] == created["metadata"]["uid"]
    # What was stored must be acceptable again, as it is.
    assert state.store.replace(resource, "default", "one", found) is found


def sample(resource: port.Resource) -> port.Object:
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    spec: Any = {
        "pods": {"containers": containers, "schedulingGates": [{"name": "example.com/hold"}]},
        "jobs": {"template": {"spec": {"containers": containers, "restartPolicy": "Never"}}},
        "deadlinejobs": {
            "queue": "q",
            "groups": [{"name": "w", "template": {"spec": {"containers": containers}}}],
        },
        "services": {"ports": [{"port": 80}]},
    }[resource.plural]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "one"},
        "spec": spec,
    }


OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "test", "copy", "move", "jump"])},
        optional={
            "path": st.sampled_from(
                ["", "/", "/data", "/data/key", "/metadata/labels/a", "/data/-", "data", "/kind"]
            ),
            "from": st.sampled_from(["", "/data", "/data/key", "/none"]),
            "value": JSON,
        },
    ),
    max_size=3,
)


@settings(max_examples=effort.examples(75), deadline=None)
@given(operations=OPERATIONS | JSON)
def test_any_json_patch(operations: Any) -> None:
    state = new_state()
    body = {"metadata": {"name": "one"}, "data": {"key": "value"}}
    state.store.create(kinds.CONFIG_MAPS, "default", body)
    path = kinds.CONFIG_MAPS.path("default", "one")
    answer = send(state, "PATCH", path, operations, requests.JSON_PATCH)
    assert answer.status in (200, 400, 409, 422), answer.body


SEGMENT = st.sampled_from(
    [
        "api",
        "apis",
        "v1",
        "batch",
        "namespaces",
        "default",
        "pods",
        "jobs",
        "one",
        "status",
        "binding",
        "nodes",
        "",
        "%2F",
    ]
)


@settings(max_examples=effort.examples(75), deadline=None)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]),
    parts=st.lists(SEGMENT, max_size=8),
    body=JSON,
)
def test_any_path(method: str, parts: list[str], body: Any) -> None:
    answer = send(new_state(), method, "/" + "/".join(parts), body, requests.JSON)
    assert answer.status in (200, 400, 404, 405, 415, 422), answer.body


@pytest.mark.parametrize(
    "query",
    [
        "limit=x",
        "timeoutSeconds=x&watch=1",
        "watch=maybe",
        "resourceVersion=-1",
        "limit=1e3",
        "gracePeriodSeconds=x",
    ],
)
def test_malformed_parameters(query: str) -> None:
    state = new_state()
    method = "DELETE" if "grace" in query else "GET"
    request = routes.Request(method, "/api/v1/namespaces/default/pods", requests.Parameters(query), "", b"")
    answer = asyncio.run(routes.handle(state, request))
    assert isinstance(answer, routes.Answer)
    assert answer.status == 400
