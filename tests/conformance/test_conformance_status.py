"""The status subresource keeps spec and status apart, and generation counts changes of the spec."""

from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.samples import CONFIG_MAPS, config_map, deadline_job, job, pod, refused

KINDS: list[tuple[port.Resource, Any, port.Object, port.Object]] = [
    (port.DEADLINE_JOBS, deadline_job, {"importance": 3}, {"phase": "Pending"}),
    (port.JOBS, job, {"parallelism": 5}, {"active": 1}),
    (port.PODS, pod, {"activeDeadlineSeconds": 60}, {"message": "hello"}),
]
IDS = [row[0].plural for row in KINDS]


@pytest.mark.parametrize(("resource", "make", "spec", "status"), KINDS, ids=IDS)
class TestIsolation:
    async def test_the_main_endpoint_ignores_the_status(
        self, api: port.KubeApi, namespace: str, resource: port.Resource, make: Any, spec: Any, status: Any
    ) -> None:
        created = await api.create(resource, namespace, {**make("one"), "status": status})
        assert not status.items() <= (created.get("status") or {}).items()
        patched = await api.patch(resource, namespace, "one", {"spec": spec, "status": status})
        assert spec.items() <= patched["spec"].items()
        assert not status.items() <= (patched.get("status") or {}).items()

    async def test_the_status_endpoint_ignores_the_spec(
        self, api: port.KubeApi, namespace: str, resource: port.Resource, make: Any, spec: Any, status: Any
    ) -> None:
        created = await api.create(resource, namespace, make("one"))
        patched = await api.patch_status(resource, namespace, "one", {"spec": spec, "status": status})
        assert status.items() <= patched["status"].items()
        assert patched["spec"] == created["spec"]

    async def test_generation_counts_changes_of_the_spec(
        self, api: port.KubeApi, namespace: str, resource: port.Resource, make: Any, spec: Any, status: Any
    ) -> None:
        seen = [await api.create(resource, namespace, make("one"))]
        seen.append(await api.patch(resource, namespace, "one", {"metadata": {"labels": {"a": "b"}}}))
        seen.append(await api.patch_status(resource, namespace, "one", {"status": status}))
        seen.append(await api.patch(resource, namespace, "one", {"spec": spec}))
        seen.append(await api.patch(resource, namespace, "one", {"spec": spec}))
        assert [item["metadata"]["generation"] for item in seen] == [1, 1, 1, 2, 2]

    async def test_a_stale_status_write_is_a_conflict(
        self, api: port.KubeApi, namespace: str, resource: port.Resource, make: Any, spec: Any, status: Any
    ) -> None:
        created = await api.create(resource, namespace, make("one"))
        await api.patch(resource, namespace, "one", {"spec": spec})
        stale = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "status": status}
        await refused(api.patch_status(resource, namespace, "one", stale), 409, reason="Conflict")

    async def test_an_unchanged_status_keeps_the_version(
        self, api: port.KubeApi, namespace: str, resource: port.Resource, make: Any, spec: Any, status: Any
    ) -> None:
        await api.create(resource, namespace, make("one"))
        first = await api.patch_status(resource, namespace, "one", {"status": status})
        second = await api.patch_status(resource, namespace, "one", {"status": status})
        assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


async def test_the_status_of_a_custom_resource_takes_no_labels(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.DEADLINE_JOBS, namespace, deadline_job("one"))
    patch = {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Pending"}}
    patched = await api.patch_status(port.DEADLINE_JOBS, namespace, "one", patch)
    assert "labels" not in patched["metadata"]


async def test_the_status_of_a_pod_takes_labels(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.PODS, namespace, pod("one"))
    patched = await api.patch_status(port.PODS, namespace, "one", {"metadata": {"labels": {"a": "b"}}})
    assert patched["metadata"]["labels"] == {"a": "b"}


async def test_a_kind_without_status_has_no_such_endpoint(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    await refused(api.patch_status(CONFIG_MAPS, namespace, "one", {"status": {}}), 404)


async def test_a_config_map_has_no_generation(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(CONFIG_MAPS, namespace, config_map("one"))
    assert "generation" not in created["metadata"]


async def test_fields_of_a_status_merge(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.DEADLINE_JOBS, namespace, deadline_job("one"))
    await api.patch_status(
        port.DEADLINE_JOBS, namespace, "one", {"status": {"phase": "Pending", "slack": "1h"}}
    )
    patched = await api.patch_status(
        port.DEADLINE_JOBS, namespace, "one", {"status": {"slack": None, "gang": "2"}}
    )
    assert patched["status"] == {"phase": "Pending", "gang": "2"}
