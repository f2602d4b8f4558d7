"""DELETE: preconditions, finalizers, grace, propagation, and what becomes of the object."""

import pytest

from lstqueue.kube import port
from tests.conformance.conftest import Http
from tests.conformance.samples import CONFIG_MAPS, config_map, deadline_job, names, pod, refused, until

HOLD = "example.com/hold"


def held(name: str = "one") -> port.Object:
    return config_map(name, finalizers=[HOLD])


async def gone(api: port.KubeApi, resource: port.Resource, namespace: str, name: str) -> bool:
    page = await api.list_page(resource, namespace=namespace, fields=f"metadata.name={name}")
    return not page.items


async def test_a_deleted_object_is_gone(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    await api.delete(CONFIG_MAPS, namespace, "one")
    await refused(api.get(CONFIG_MAPS, namespace, "one"), 404)
    await refused(api.delete(CONFIG_MAPS, namespace, "one"), 404)


async def test_preconditions_that_hold(api: port.KubeApi, namespace: str) -> None:
    meta = (await api.create(CONFIG_MAPS, namespace, config_map("one")))["metadata"]
    await api.delete(CONFIG_MAPS, namespace, "one", uid=meta["uid"], resource_version=meta["resourceVersion"])
    assert await gone(api, CONFIG_MAPS, namespace, "one")


async def test_another_uid_is_a_conflict(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    other = "00000000-0000-4000-8000-000000000000"
    await refused(api.delete(CONFIG_MAPS, namespace, "one", uid=other), 409, says="UID in the precondition")
    assert not await gone(api, CONFIG_MAPS, namespace, "one")


async def test_an_old_version_is_a_conflict(api: port.KubeApi, namespace: str) -> None:
    meta = (await api.create(CONFIG_MAPS, namespace, config_map("one")))["metadata"]
    await api.patch(CONFIG_MAPS, namespace, "one", {"data": {"key": "newer"}})
    call = api.delete(CONFIG_MAPS, namespace, "one", resource_version=meta["resourceVersion"])
    await refused(call, 409, says="ResourceVersion in the precondition")


async def test_a_finalizer_holds_an_object(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, held())
    await api.delete(CONFIG_MAPS, namespace, "one")
    meta = (await api.get(CONFIG_MAPS, namespace, "one"))["metadata"]
    assert meta["deletionTimestamp"].endswith("Z")
    assert meta["deletionGracePeriodSeconds"] == 0
    await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"finalizers": None}})
    await refused(api.get(CONFIG_MAPS, namespace, "one"), 404)


async def test_the_last_of_several_finalizers_releases(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one", finalizers=[HOLD, "example.com/other"]))
    await api.delete(CONFIG_MAPS, namespace, "one")
    await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"finalizers": [HOLD]}})
    assert not await gone(api, CONFIG_MAPS, namespace, "one")
    await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"finalizers": []}})
    assert await gone(api, CONFIG_MAPS, namespace, "one")


async def test_a_second_deletion_changes_nothing(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, held())
    await api.delete(CONFIG_MAPS, namespace, "one")
    first = await api.get(CONFIG_MAPS, namespace, "one")
    await api.delete(CONFIG_MAPS, namespace, "one")
    assert await api.get(CONFIG_MAPS, namespace, "one") == first
    await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"finalizers": None}})


async def test_deletion_is_not_taken_back(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, held())
    await api.delete(CONFIG_MAPS, namespace, "one")
    patched = await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"deletionTimestamp": None}})
    assert "deletionTimestamp" in patched["metadata"]
    await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"finalizers": None}})


async def test_a_held_object_takes_no_new_finalizers(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, held())
    await api.delete(CONFIG_MAPS, namespace, "one")
    patch = {"metadata": {"finalizers": [HOLD, "example.com/late"]}}
    await refused(api.patch(CONFIG_MAPS, namespace, "one", patch), 422, says="no new finalizers can be added")
    await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"finalizers": None}})


async def test_a_held_object_can_still_be_written(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, held())
    await api.delete(CONFIG_MAPS, namespace, "one")
    assert (await api.patch(CONFIG_MAPS, namespace, "one", {"data": {"key": "newer"}}))["data"][
        "key"
    ] == "newer"
    await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"finalizers": None}})


async def test_the_name_of_a_held_object_is_taken(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, held())
    await api.delete(CONFIG_MAPS, namespace, "one")
    await refused(api.create(CONFIG_MAPS, namespace, config_map("one")), 409)
    await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"finalizers": None}})


async def test_deletion_moves_the_generation_of_a_held_object(api: port.KubeApi, namespace: str) -> None:
    body = deadline_job("one")
    body["metadata"]["finalizers"] = [HOLD]
    await api.create(port.DEADLINE_JOBS, namespace, body)
    await api.delete(port.DEADLINE_JOBS, namespace, "one")
    assert (await api.get(port.DEADLINE_JOBS, namespace, "one"))["metadata"]["generation"] == 2
    await api.patch(port.DEADLINE_JOBS, namespace, "one", {"metadata": {"finalizers": None}})


async def test_unbound_pods_go_at_once(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.PODS, namespace, pod("one"))
    await api.delete(port.PODS, namespace, "one")
    await refused(api.get(port.PODS, namespace, "one"), 404)


async def test_a_finalizer_holds_an_unbound_pod(api: port.KubeApi, namespace: str) -> None:
    body = pod("one")
    body["metadata"]["finalizers"] = [HOLD]
    await api.create(port.PODS, namespace, body)
    await api.delete(port.PODS, namespace, "one")
    meta = (await api.get(port.PODS, namespace, "one"))["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 0
    assert meta["generation"] == 2
    await api.patch(port.PODS, namespace, "one", {"metadata": {"finalizers": None}})
    assert await gone(api, port.PODS, namespace, "one")


async def test_a_deletion_answers_with_a_status(http: Http, api: port.KubeApi, namespace: str) -> None:
    created = await api.create(CONFIG_MAPS, namespace, config_map("one"))
    reply = await http.send("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/one")
    assert reply.status == 200
    assert (reply.body["kind"], reply.body["status"]) == ("Status", "Success")
    assert reply.body["details"] == {"name": "one", "kind": "configmaps", "uid": created["metadata"]["uid"]}


async def test_a_held_deletion_answers_with_the_object(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, held())
    reply = await http.send("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/one")
    assert reply.status == 200
    assert reply.body["kind"] == "ConfigMap"
    assert "deletionTimestamp" in reply.body["metadata"]
    await api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {"finalizers": None}})


async def test_a_dry_deletion_deletes_nothing(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    reply = await http.send("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/one", dryRun="All")
    assert reply.status == 200
    assert not await gone(api, CONFIG_MAPS, namespace, "one")


async def test_a_collection_is_deleted_by_selector(http: Http, api: port.KubeApi, namespace: str) -> None:
    for name, value in (("one", "a"), ("two", "b"), ("three", "a")):
        await api.create(CONFIG_MAPS, namespace, config_map(name, labels={"set": value}))
    reply = await http.send("DELETE", f"/api/v1/namespaces/{namespace}/configmaps", labelSelector="set=a")
    assert reply.status == 200
    assert names(await api.list_page(CONFIG_MAPS, namespace=namespace, labels="set")) == ["two"]


@pytest.mark.parametrize("policy", ["Foreground", "Orphan"])
async def test_a_propagation_policy_leaves_a_finalizer_or_is_done(
    api: port.KubeApi, namespace: str, policy: str
) -> None:
    # Where a garbage collector runs it may have finished already; without one the finalizer stays.
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    await api.delete(CONFIG_MAPS, namespace, "one", propagation=policy)
    expected = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}[policy]
    for item in (await api.list_page(CONFIG_MAPS, namespace=namespace, fields="metadata.name=one")).items:
        assert item["metadata"]["finalizers"] == [expected]
        assert "deletionTimestamp" in item["metadata"]


async def test_a_namespace_takes_its_objects_along(api: port.KubeApi) -> None:
    made = (await api.create(port.NAMESPACES, None, {"metadata": {"generateName": "case-"}}))["metadata"][
        "name"
    ]
    await api.create(CONFIG_MAPS, made, config_map("one"))
    await api.create(port.PODS, made, pod("one"))
    await api.delete(port.NAMESPACES, None, made)
    await until(lambda: gone(api, CONFIG_MAPS, made, "one"))

    async def no_namespace() -> bool:
        return not (await api.list_page(port.NAMESPACES, fields=f"metadata.name={made}")).items

    await until(no_namespace)


async def test_a_namespace_that_goes_takes_nothing_new(api: port.KubeApi) -> None:
    made = (await api.create(port.NAMESPACES, None, {"metadata": {"generateName": "case-"}}))["metadata"][
        "name"
    ]
    await api.create(CONFIG_MAPS, made, held())
    await api.delete(port.NAMESPACES, None, made)
    found = await api.get(port.NAMESPACES, None, made)
    assert found["status"]["phase"] == "Terminating"
    await refused(
        api.create(CONFIG_MAPS, made, config_map("two")), 403, says="because it is being terminated"
    )
    await api.patch(CONFIG_MAPS, made, "one", {"metadata": {"finalizers": None}})
