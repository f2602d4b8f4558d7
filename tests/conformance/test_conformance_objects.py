"""Creating, reading and replacing objects: what the server fills in, and what it refuses."""

import pytest

from lstqueue.kube import port
from tests.conformance.samples import CONFIG_MAPS, config_map, deadline_job, names, pod, refused


async def test_a_created_object_has_identity_version_and_time(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(CONFIG_MAPS, namespace, config_map("one"))
    meta = created["metadata"]
    assert len(meta["uid"]) == 36
    assert int(meta["resourceVersion"]) > 0
    assert meta["creationTimestamp"].endswith("Z")
    assert meta["namespace"] == namespace
    assert created["kind"] == "ConfigMap"
    assert created["apiVersion"] == "v1"


async def test_get_returns_what_create_returned(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(CONFIG_MAPS, namespace, config_map("one"))
    assert await api.get(CONFIG_MAPS, namespace, "one") == created


async def test_names_are_taken_once(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    await refused(
        api.create(CONFIG_MAPS, namespace, config_map("one")), 409, reason="AlreadyExists", says='"one"'
    )


async def test_a_recreated_object_has_another_uid(api: port.KubeApi, namespace: str) -> None:
    first = await api.create(CONFIG_MAPS, namespace, config_map("one"))
    await api.delete(CONFIG_MAPS, namespace, "one")
    second = await api.create(CONFIG_MAPS, namespace, config_map("one"))
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])


async def test_generate_name_appends_five_characters(api: port.KubeApi, namespace: str) -> None:
    body = {"metadata": {"generateName": "run-"}}
    made = {(await api.create(CONFIG_MAPS, namespace, body))["metadata"]["name"] for _ in range(5)}
    assert len(made) == 5
    assert all(name.startswith("run-") and len(name) == 9 for name in made)


async def test_generate_name_is_shortened_to_fit(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(CONFIG_MAPS, namespace, {"metadata": {"generateName": "x" * 100}})
    assert len(created["metadata"]["name"]) == 63


async def test_a_name_wins_over_generate_name(api: port.KubeApi, namespace: str) -> None:
    body = {"metadata": {"name": "fixed", "generateName": "run-"}}
    assert (await api.create(CONFIG_MAPS, namespace, body))["metadata"]["name"] == "fixed"


async def test_an_object_needs_a_name(api: port.KubeApi, namespace: str) -> None:
    await refused(
        api.create(CONFIG_MAPS, namespace, {"metadata": {}}), 422, says="name or generateName is required"
    )


async def test_the_namespace_must_exist(api: port.KubeApi) -> None:
    await refused(
        api.create(CONFIG_MAPS, "nowhere", config_map("one")), 404, says='namespaces "nowhere" not found'
    )


async def test_the_namespace_of_the_body_must_be_that_of_the_request(
    api: port.KubeApi, namespace: str
) -> None:
    await refused(api.create(CONFIG_MAPS, namespace, config_map("one", namespace="other")), 400)


async def test_system_fields_of_a_new_object_are_the_servers(api: port.KubeApi, namespace: str) -> None:
    body = config_map("one", uid="mine", creationTimestamp="2001-01-01T00:00:00Z")
    meta = (await api.create(CONFIG_MAPS, namespace, body))["metadata"]
    assert meta["uid"] != "mine"
    assert not meta["creationTimestamp"].startswith("2001")


async def test_missing_objects_are_404(api: port.KubeApi, namespace: str) -> None:
    await refused(
        api.get(CONFIG_MAPS, namespace, "none"), 404, reason="NotFound", says='configmaps "none" not found'
    )
    await refused(api.replace(CONFIG_MAPS, namespace, "none", config_map("none")), 404)
    await refused(api.patch(CONFIG_MAPS, namespace, "none", {"data": {}}), 404)
    await refused(api.delete(CONFIG_MAPS, namespace, "none"), 404)


async def test_messages_name_the_group(api: port.KubeApi, namespace: str) -> None:
    await refused(api.get(port.JOBS, namespace, "none"), 404, says='jobs.batch "none" not found')


async def test_unknown_kinds_are_404(api: port.KubeApi, namespace: str) -> None:
    unknown = port.Resource("example.com", "v1", "things", "Thing")
    await refused(api.list_page(unknown, namespace=namespace), 404)


async def test_a_dry_run_is_validated_and_not_stored(api: port.KubeApi, namespace: str) -> None:
    body = pod("trial")
    trial = await api.create(port.PODS, namespace, body, dry_run=True)
    assert trial["metadata"]["uid"]
    assert trial["spec"]["restartPolicy"] == "Always"
    await refused(api.get(port.PODS, namespace, "trial"), 404)
    del body["spec"]["containers"]
    await refused(api.create(port.PODS, namespace, body, dry_run=True), 422)


async def test_a_dry_run_meets_a_taken_name(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    await refused(api.create(CONFIG_MAPS, namespace, config_map("one"), dry_run=True), 409)


async def test_replace_needs_no_version_where_the_kind_allows(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    replaced = await api.replace(
        CONFIG_MAPS, namespace, "one", {"metadata": {"name": "one"}, "data": {"a": "b"}}
    )
    assert replaced["data"] == {"a": "b"}


@pytest.mark.parametrize("resource", [port.DEADLINE_JOBS, port.LEASES], ids=lambda resource: resource.plural)
async def test_replace_needs_a_version_elsewhere(
    api: port.KubeApi, namespace: str, resource: port.Resource
) -> None:
    body = (
        deadline_job("one") if resource is port.DEADLINE_JOBS else {"metadata": {"name": "one"}, "spec": {}}
    )
    await api.create(resource, namespace, body)
    await refused(api.replace(resource, namespace, "one", body), 422, says="must be specified for an update")


async def test_replace_with_an_old_version_is_a_conflict(api: port.KubeApi, namespace: str) -> None:
    first = await api.create(CONFIG_MAPS, namespace, config_map("one"))
    await api.patch(CONFIG_MAPS, namespace, "one", {"data": {"key": "newer"}})
    await refused(
        api.replace(CONFIG_MAPS, namespace, "one", first),
        409,
        reason="Conflict",
        says="the object has been modified; please apply your changes to the latest version and try again",
    )


async def test_replace_of_another_uid_is_a_conflict(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    body = config_map("one", uid="00000000-0000-4000-8000-000000000000")
    await refused(api.replace(CONFIG_MAPS, namespace, "one", body), 409, says="UID in ")


async def test_replace_under_another_name_is_refused(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    await refused(
        api.replace(CONFIG_MAPS, namespace, "one", config_map("two")), 400, says="does not match the name"
    )


async def test_replace_keeps_what_the_server_owns(api: port.KubeApi, namespace: str) -> None:
    first = await api.create(CONFIG_MAPS, namespace, config_map("one", labels={"a": "b"}))
    second = await api.replace(CONFIG_MAPS, namespace, "one", {"metadata": {"name": "one"}})
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert second["metadata"]["creationTimestamp"] == first["metadata"]["creationTimestamp"]
    assert "labels" not in second["metadata"]
    assert "data" not in second


async def test_a_write_that_changes_nothing_keeps_the_version(api: port.KubeApi, namespace: str) -> None:
    first = await api.create(CONFIG_MAPS, namespace, config_map("one"))
    patched = await api.patch(CONFIG_MAPS, namespace, "one", {"data": {"key": "value"}})
    replaced = await api.replace(CONFIG_MAPS, namespace, "one", first)
    assert patched["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert replaced["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_versions_grow_across_kinds(api: port.KubeApi, namespace: str) -> None:
    first = await api.create(CONFIG_MAPS, namespace, config_map("one"))
    second = await api.create(port.DEADLINE_JOBS, namespace, deadline_job())
    third = await api.patch(CONFIG_MAPS, namespace, "one", {"data": {"key": "newer"}})
    versions = [int(item["metadata"]["resourceVersion"]) for item in (first, second, third)]
    assert versions == sorted(set(versions))


async def test_replace_creates_a_lease(api: port.KubeApi, namespace: str) -> None:
    created = await api.replace(port.LEASES, namespace, "lock", {"metadata": {"name": "lock"}, "spec": {}})
    assert created["metadata"]["uid"]


async def test_namespaces_keep_equal_names_apart(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    await refused(api.get(CONFIG_MAPS, "default", "one"), 404)
    page = await api.list_page(CONFIG_MAPS, namespace=namespace, fields="metadata.name=one")
    assert names(page) == ["one"]


async def test_text_of_any_script_survives(api: port.KubeApi, namespace: str) -> None:
    body = config_map("one", annotations={"example.com/note": "Größe – 大きさ 🙂"})
    await api.create(CONFIG_MAPS, namespace, body)
    meta = (await api.get(CONFIG_MAPS, namespace, "one"))["metadata"]
    assert meta["annotations"] == {"example.com/note": "Größe – 大きさ 🙂"}
