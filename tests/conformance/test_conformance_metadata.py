"""Names, labels, annotations, finalizers and owners: what a server lets into metadata."""

from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.samples import CONFIG_MAPS, config_map, refused

OWNER = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "owner",
    "uid": "11111111-1111-4111-8111-111111111111",
}


@pytest.mark.parametrize("name", ["a", "a-b", "a.b", "1a", "x" * 253])
async def test_names_that_are_accepted(api: port.KubeApi, namespace: str, name: str) -> None:
    assert (await api.create(CONFIG_MAPS, namespace, config_map(name)))["metadata"]["name"] == name


@pytest.mark.parametrize(
    "name", ["A", "a_b", "-a", "a-", ".a", "a..b", "a.-b", "ä", "x" * 254, "a b"], ids=lambda name: name[:6]
)
async def test_names_that_are_refused(api: port.KubeApi, namespace: str, name: str) -> None:
    await refused(api.create(CONFIG_MAPS, namespace, config_map(name)), 422, says="metadata.name")


@pytest.mark.parametrize("name", ["a.b", "A", "-", "x" * 64])
async def test_namespace_names_are_labels(api: port.KubeApi, name: str) -> None:
    await refused(api.create(port.NAMESPACES, None, {"metadata": {"name": name}}), 422, says="metadata.name")


@pytest.mark.parametrize(
    "labels",
    [{"app": "x"}, {"example.com/app": ""}, {"A_b.c": "A_b.c"}, {"x" * 63: "y" * 63}],
    ids=lambda labels: next(iter(labels))[:8],
)
async def test_labels_that_are_accepted(api: port.KubeApi, namespace: str, labels: dict[str, str]) -> None:
    created = await api.create(CONFIG_MAPS, namespace, config_map("one", labels=labels))
    assert created["metadata"]["labels"] == labels


@pytest.mark.parametrize(
    "labels",
    [
        {"": "x"},
        {"a b": "x"},
        {"/a": "x"},
        {"a/b/c": "x"},
        {"x" * 64: "y"},
        {"a": "x" * 64},
        {"a": "x y"},
        {"a": "-x"},
    ],
    ids=lambda labels: repr(labels)[:16],
)
async def test_labels_that_are_refused(api: port.KubeApi, namespace: str, labels: dict[str, str]) -> None:
    await refused(
        api.create(CONFIG_MAPS, namespace, config_map("one", labels=labels)), 422, says="metadata.labels"
    )


async def test_a_bad_label_is_refused_in_a_patch_too(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    patch = {"metadata": {"labels": {"a": "not a value"}}}
    await refused(api.patch(CONFIG_MAPS, namespace, "one", patch), 422, says="metadata.labels")


async def test_label_values_are_strings(api: port.KubeApi, namespace: str) -> None:
    await refused(api.create(CONFIG_MAPS, namespace, config_map("one", labels={"a": 1})), 400)


async def test_annotations_have_a_total_limit(api: port.KubeApi, namespace: str) -> None:
    fits = config_map("one", annotations={"example.com/a": "x" * 200_000})
    assert await api.create(CONFIG_MAPS, namespace, fits)
    patch = {"metadata": {"annotations": {"example.com/b": "x" * 100_000}}}
    await refused(api.patch(CONFIG_MAPS, namespace, "one", patch), 422, says="metadata.annotations")


async def test_annotation_keys_are_qualified_names(api: port.KubeApi, namespace: str) -> None:
    assert await api.create(
        CONFIG_MAPS, namespace, config_map("one", annotations={"example.com/A_b": "anything: {}"})
    )
    await refused(
        api.create(CONFIG_MAPS, namespace, config_map("two", annotations={"a b": ""})),
        422,
        says="metadata.annotations",
    )


@pytest.mark.parametrize("missing", ["apiVersion", "kind", "name", "uid"])
async def test_owners_are_complete(api: port.KubeApi, namespace: str, missing: str) -> None:
    owner = {key: value for key, value in OWNER.items() if key != missing}
    body = config_map("one", ownerReferences=[owner])
    await refused(api.create(CONFIG_MAPS, namespace, body), 422, says="metadata.ownerReferences")


async def test_only_one_owner_is_the_controller(api: port.KubeApi, namespace: str) -> None:
    owners = [
        OWNER | {"controller": True},
        OWNER | {"uid": "22222222-2222-4222-8222-222222222222", "controller": True},
    ]
    body = config_map("one", ownerReferences=owners)
    await refused(api.create(CONFIG_MAPS, namespace, body), 422, says="metadata.ownerReferences")


async def test_finalizers_are_qualified_names(api: port.KubeApi, namespace: str) -> None:
    await refused(api.create(CONFIG_MAPS, namespace, config_map("one", finalizers=["not a name"])), 422)


IMMUTABLE: list[tuple[str, Any, int]] = [
    ("name", "two", 400),
    ("namespace", "other", 400),
    ("uid", "00000000-0000-4000-8000-000000000000", 422),
]


@pytest.mark.parametrize(("field", "value", "status"), IMMUTABLE, ids=[row[0] for row in IMMUTABLE])
async def test_identity_cannot_be_patched(
    api: port.KubeApi, namespace: str, field: str, value: str, status: int
) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    await refused(api.patch(CONFIG_MAPS, namespace, "one", {"metadata": {field: value}}), status)


async def test_the_time_of_creation_stays(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(CONFIG_MAPS, namespace, config_map("one"))
    patch = {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}}
    patched = await api.patch(CONFIG_MAPS, namespace, "one", patch)
    assert patched["metadata"]["creationTimestamp"] == created["metadata"]["creationTimestamp"]
    assert patched["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_a_client_cannot_set_the_deletion_time(api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    patch = {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}
    await refused(api.patch(CONFIG_MAPS, namespace, "one", patch), 422, says="deletionTimestamp")


async def test_owner_references_are_kept(api: port.KubeApi, namespace: str) -> None:
    owner = await api.create(CONFIG_MAPS, namespace, config_map("owner"))
    reference = OWNER | {"uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}
    created = await api.create(CONFIG_MAPS, namespace, config_map("one", ownerReferences=[reference]))
    assert created["metadata"]["ownerReferences"] == [reference]
