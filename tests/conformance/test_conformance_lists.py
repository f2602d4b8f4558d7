"""LIST: order, pages, and what a resourceVersion means in it."""

import pytest

from lstqueue.kube import port
from tests.conformance.conftest import Http
from tests.conformance.samples import names, refused


def lease(name: str) -> port.Object:
    """No controller makes Leases in the namespace of a case."""
    return {"metadata": {"name": name, "labels": {"set": "s"}}}


@pytest.fixture
async def seven(api: port.KubeApi, namespace: str) -> str:
    for number in (3, 1, 7, 5, 2, 6, 4):
        await api.create(port.LEASES, namespace, lease(f"item-{number}"))
    return namespace


async def pages(api: port.KubeApi, namespace: str, limit: int, labels: str = "set=s") -> list[port.Page]:
    found = [await api.list_page(port.LEASES, namespace=namespace, labels=labels, limit=limit)]
    while found[-1].continue_token:
        token = found[-1].continue_token
        found.append(
            await api.list_page(
                port.LEASES, namespace=namespace, labels=labels, limit=limit, continue_token=token
            )
        )
    return found


async def test_items_are_in_the_order_of_their_names(api: port.KubeApi, seven: str) -> None:
    page = await api.list_page(port.LEASES, namespace=seven, labels="set=s", limit=0)
    assert names(page) == [f"item-{number}" for number in range(1, 8)]
    assert page.continue_token == ""


@pytest.mark.parametrize(("limit", "sizes"), [(1, [1] * 7), (3, [3, 3, 1]), (6, [6, 1]), (7, [7]), (8, [7])])
async def test_pages_join_to_the_whole_list(
    api: port.KubeApi, seven: str, limit: int, sizes: list[int]
) -> None:
    found = await pages(api, seven, limit)
    assert [len(page.items) for page in found] == sizes
    assert [name for page in found for name in names(page)] == [f"item-{number}" for number in range(1, 8)]


async def test_all_pages_are_of_one_version(api: port.KubeApi, seven: str) -> None:
    first = await api.list_page(port.LEASES, namespace=seven, labels="set=s", limit=3)
    await api.create(port.LEASES, seven, lease("item-35"))
    await api.delete(port.LEASES, seven, "item-5")
    second = await api.list_page(
        port.LEASES, namespace=seven, labels="set=s", limit=10, continue_token=first.continue_token
    )
    assert second.resource_version == first.resource_version
    assert names(second) == ["item-4", "item-5", "item-6", "item-7"]


async def test_the_version_of_a_list_starts_a_watch_without_gap(api: port.KubeApi, seven: str) -> None:
    page = await api.list_page(port.LEASES, namespace=seven)
    created = await api.create(port.LEASES, seven, lease("later"))
    assert int(page.resource_version) < int(created["metadata"]["resourceVersion"])


async def test_an_empty_list_has_a_version(api: port.KubeApi, namespace: str) -> None:
    page = await api.list_page(port.DEADLINE_JOBS, namespace=namespace)
    assert page.items == []
    assert int(page.resource_version) > 0


async def test_a_missing_namespace_lists_as_empty(api: port.KubeApi) -> None:
    assert (await api.list_page(port.LEASES, namespace="nowhere")).items == []


async def test_all_namespaces_are_listed_together(api: port.KubeApi, seven: str) -> None:
    assert (
        len((await api.list_page(port.LEASES, labels="set=s", fields=f"metadata.namespace={seven}")).items)
        == 7
    )


async def test_a_malformed_token_is_400(api: port.KubeApi, namespace: str) -> None:
    await refused(api.list_page(port.LEASES, namespace=namespace, continue_token="%%%"), 400)


async def test_version_zero_lists_anything(api: port.KubeApi, seven: str) -> None:
    page = await api.list_page(port.LEASES, namespace=seven, labels="set=s", resource_version="0", limit=0)
    assert len(page.items) <= 7


async def test_a_list_is_not_older_than_asked(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.LEASES, namespace, lease("one"))
    version = created["metadata"]["resourceVersion"]
    page = await api.list_page(port.LEASES, namespace=namespace, resource_version=version, limit=0)
    assert int(page.resource_version) >= int(version)
    assert "one" in names(page)


async def test_a_version_must_be_a_number(http: Http, namespace: str) -> None:
    reply = await http.send(
        "GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", resourceVersion="x"
    )
    assert reply.status == 400


async def test_a_version_from_the_future_times_out(http: Http, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    reply = await http.send("GET", path, resourceVersion="999999999999")
    assert reply.status == 504
    assert "Too large resource version" in reply.body["message"]


async def test_list_documents(http: Http, seven: str) -> None:
    reply = await http.send("GET", f"/apis/coordination.k8s.io/v1/namespaces/{seven}/leases", limit="2")
    assert reply.status == 200
    assert (reply.body["kind"], reply.body["apiVersion"]) == ("LeaseList", "coordination.k8s.io/v1")
    assert len(reply.body["items"]) == 2
    assert reply.body["metadata"]["continue"]
    assert reply.body["metadata"]["remainingItemCount"] == 5


async def test_what_remains_is_not_counted_under_a_selector(http: Http, seven: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{seven}/leases"
    reply = await http.send("GET", path, limit="2", labelSelector="set=s")
    assert reply.body["metadata"]["continue"]
    assert "remainingItemCount" not in reply.body["metadata"]


async def test_a_token_and_a_version_exclude_each_other(http: Http, seven: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{seven}/leases"
    first = await http.send("GET", path, limit="2")
    token = first.body["metadata"]["continue"]
    version = first.body["metadata"]["resourceVersion"]
    reply = await http.send("GET", path, **{"continue": token, "resourceVersion": version})
    assert reply.status == 400
