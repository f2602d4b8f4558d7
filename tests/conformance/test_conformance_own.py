"""lstqueue's own kinds: defaults, pruning, and the table of rules that the CRDs are held to as well."""

import contextlib

import pytest

from cases import crd_rules
from lstqueue.kube import port
from tests.conformance.conftest import Http
from tests.conformance.samples import deadline_job, refused

RESOURCES = {
    "DeadlineJob": port.DEADLINE_JOBS,
    "GPUQueue": port.GPU_QUEUES,
    "Interconnect": port.INTERCONNECTS,
}


async def write(api: port.KubeApi, namespace: str, case: crd_rules.Case) -> port.Object:
    """Do what a case says, in its order, with the namespace of this run."""
    resource, name = RESOURCES[case.kind], case.new["metadata"]["name"]
    place = namespace if resource.namespaced else None
    new = {**case.new, "metadata": {**case.new["metadata"], "namespace": place}}
    if case.old is None:
        return await api.create(resource, place, new)
    old = {**case.old, "metadata": {**case.old["metadata"], "namespace": place}}
    stored = await api.create(resource, place, old)
    if case.old.get("status"):
        stored = await api.patch_status(resource, place, name, {"status": case.old["status"]})
    new["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    if case.subresource == "status":
        return await api.patch_status(resource, place, name, new)
    return await api.replace(resource, place, name, new)


@pytest.mark.sampled_over_http
@pytest.mark.parametrize("case", crd_rules.CASES, ids=lambda case: case.name)
async def test_the_table_of_rules(api: port.KubeApi, namespace: str, case: crd_rules.Case) -> None:
    try:
        if case.accepted:
            await write(api, namespace, case)
            return
        error = await refused(write(api, namespace, case), 422, reason="Invalid", says=case.message)
        assert case.field in error.message
    finally:
        resource = RESOURCES[case.kind]
        with contextlib.suppress(port.NotFoundError):
            await api.delete(
                resource, namespace if resource.namespaced else None, case.new["metadata"]["name"]
            )


async def test_defaults(api: port.KubeApi, namespace: str) -> None:
    body = deadline_job()
    del body["spec"]["groups"][0]["replicas"]
    spec = (await api.create(port.DEADLINE_JOBS, namespace, body))["spec"]
    assert (spec["importance"], spec["successPolicy"], spec["backoffLimit"]) == (0, "All", 3)
    assert spec["groups"][0]["replicas"] == 1


async def test_unknown_fields_are_pruned(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(
        port.DEADLINE_JOBS, namespace, deadline_job(color="blue") | {"extra": {"a": 1}}
    )
    assert "color" not in created["spec"]
    assert "extra" not in created


async def test_unknown_fields_are_refused_under_strict_validation(http: Http, namespace: str) -> None:
    path = f"/apis/lstqueue.dev/v1alpha1/namespaces/{namespace}/deadlinejobs"
    reply = await http.send("POST", path, deadline_job(color="blue"), fieldValidation="Strict")
    assert reply.status == 400
    assert 'strict decoding error: unknown field "spec.color"' in reply.body["message"]
    assert (await http.send("POST", path, deadline_job(), fieldValidation="Strict")).status == 201


async def test_unknown_fields_of_a_template_are_kept(api: port.KubeApi, namespace: str) -> None:
    body = deadline_job()
    body["spec"]["groups"][0]["template"]["spec"]["someday"] = {"a": [1, 2]}
    created = await api.create(port.DEADLINE_JOBS, namespace, body)
    assert created["spec"]["groups"][0]["template"]["spec"]["someday"] == {"a": [1, 2]}


async def test_unknown_fields_of_a_status_are_pruned(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.DEADLINE_JOBS, namespace, deadline_job())
    body = {"status": {"phase": "Pending", "color": "blue", "verdict": {"level": "OnTime", "color": "blue"}}}
    patched = await api.patch_status(port.DEADLINE_JOBS, namespace, "gang", body)
    assert patched["status"] == {"phase": "Pending", "verdict": {"level": "OnTime"}}


async def test_an_unknown_phase_is_refused(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.DEADLINE_JOBS, namespace, deadline_job())
    call = api.patch_status(port.DEADLINE_JOBS, namespace, "gang", {"status": {"phase": "Dreaming"}})
    await refused(call, 422, says="status.phase")


async def test_values_of_another_type_are_refused(api: port.KubeApi, namespace: str) -> None:
    await refused(
        api.create(port.DEADLINE_JOBS, namespace, deadline_job(importance="high")),
        422,
        says="spec.importance",
    )


async def test_a_refused_update_changes_nothing(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.DEADLINE_JOBS, namespace, deadline_job())
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"importance": 99}}
    await refused(api.patch(port.DEADLINE_JOBS, namespace, "gang", patch), 422)
    assert await api.get(port.DEADLINE_JOBS, namespace, "gang") == created


async def test_a_body_states_its_kind(api: port.KubeApi, namespace: str) -> None:
    body = deadline_job()
    del body["kind"]
    await refused(api.create(port.DEADLINE_JOBS, namespace, body), 400)


async def test_a_cluster_scoped_kind_has_no_namespace(http: Http, api: port.KubeApi, namespace: str) -> None:
    reply = await http.send("GET", f"/apis/lstqueue.dev/v1alpha1/namespaces/{namespace}/gpuqueues")
    assert reply.status == 404
    assert (await api.list_page(port.GPU_QUEUES)).resource_version


async def test_the_definitions_are_readable(http: Http) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/deadlinejobs.lstqueue.dev"
    reply = await http.send("GET", path)
    conditions = {item["type"]: item["status"] for item in reply.body["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert reply.body["spec"]["names"]["shortNames"] == ["dj"]
