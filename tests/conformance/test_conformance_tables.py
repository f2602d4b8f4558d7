"""Tables: the columns of each kind, and what rows, pages and watches look like."""

import json
from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.conftest import Http
from tests.conformance.samples import CONFIG_MAPS, config_map, deadline_job, job, pod

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}

PATHS = [
    ("/api/v1/pods", "Name Ready Status Restarts Age IP* Node* Nominated Node* Readiness Gates*"),
    ("/apis/batch/v1/jobs", "Name Status Completions Duration Age Containers* Images* Selector*"),
    (
        "/api/v1/nodes",
        "Name Status Roles Age Version Internal-IP* External-IP* OS-Image* Kernel-Version* "
        "Container-Runtime*",
    ),
    ("/api/v1/namespaces", "Name Status Age"),
    (
        "/api/v1/events",
        "Last Seen Type Reason Object Subobject* Source* Message First Seen* Count* Name*",
    ),
    ("/api/v1/services", "Name Type Cluster-IP External-IP Port(s) Age Selector*"),
    ("/apis/coordination.k8s.io/v1/leases", "Name Holder Age"),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", "Name Value Global-Default Age PreemptionPolicy"),
    ("/api/v1/configmaps", "Name Data Age"),
    (
        "/apis/batch/v1/cronjobs",
        "Name Schedule Timezone Suspend Active Last Schedule Age Containers* Images* Selector*",
    ),
    ("/api/v1/resourcequotas", "Name Request Limit Age"),
    ("/api/v1/limitranges", "Name Created At"),
    ("/apis/node.k8s.io/v1/runtimeclasses", "Name Handler Age"),
    ("/api/v1/serviceaccounts", "Name Age"),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "Name Created At"),
    (
        "/apis/lstqueue.dev/v1alpha1/gpuqueues",
        "Name Order Mode Stop Pending Admitted Running Accepted Conflict Age",
    ),
    (
        "/apis/lstqueue.dev/v1alpha1/interconnects",
        "Name Nodes Domains Left out Ready Stale Age Why*",
    ),
    (
        "/apis/lstqueue.dev/v1alpha1/deadlinejobs",
        "Name Queue Phase Gang Deadline Slack Verdict Forecast Age Why* Ended*",
    ),
]


async def table(http: Http, path: str, **query: str) -> Any:
    async with http.session.get(path, headers=TABLE, params=query) as answer:
        assert answer.status == 200, await answer.text()
        found = await answer.json()
        assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
        return found


@pytest.mark.parametrize(("path", "expected"), PATHS, ids=[path.rpartition("/")[2] for path, _ in PATHS])
async def test_columns(http: Http, path: str, expected: str) -> None:
    found = (await table(http, path, limit="1"))["columnDefinitions"]
    assert " ".join(item["name"] + ("*" if item["priority"] else "") for item in found) == expected
    assert [item["name"] for item in found if item["format"] == "name"] == ["Name"]


async def cells(http: Http, path: str) -> dict[str, Any]:
    found = await table(http, path)
    names = [column["name"] for column in found["columnDefinitions"]]
    return dict(zip(names, found["rows"][0]["cells"], strict=True))


async def test_cells_of_a_pod(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(port.PODS, namespace, pod("one"))
    row = await cells(http, f"/api/v1/namespaces/{namespace}/pods/one")
    assert (row["Name"], row["Ready"], row["Restarts"]) == ("one", "0/1", "0")
    assert (row["IP"], row["Node"], row["Nominated Node"], row["Readiness Gates"]) == ("<none>",) * 4


async def test_cells_of_a_job(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(port.JOBS, namespace, job("one", parallelism=3))
    row = await cells(http, f"/apis/batch/v1/namespaces/{namespace}/jobs/one")
    assert (row["Completions"], row["Duration"]) == ("0/1 of 3", "")
    assert (row["Containers"], row["Images"]) == ("main", "registry.example/app:1")
    assert row["Selector"].startswith("batch.kubernetes.io/controller-uid=")


async def test_cells_of_a_service(http: Http, api: port.KubeApi, namespace: str) -> None:
    ports = [{"name": "x1", "port": 80}, {"name": "x2", "port": 81, "protocol": "UDP"}]
    spec = {"clusterIP": "None", "ports": ports, "selector": {"b": "1", "a": "2"}}
    await api.create(port.SERVICES, namespace, {"metadata": {"name": "one"}, "spec": spec})
    row = await cells(http, f"/api/v1/namespaces/{namespace}/services/one")
    assert (row["Type"], row["Cluster-IP"], row["External-IP"]) == ("ClusterIP", "None", "<none>")
    assert (row["Port(s)"], row["Selector"]) == ("80/TCP,81/UDP", "a=2,b=1")


async def test_cells_of_an_event(http: Http, api: port.KubeApi, namespace: str) -> None:
    about = {"kind": "Pod", "name": "one", "namespace": namespace, "fieldPath": "spec"}
    body = {
        "metadata": {"name": "e"},
        "involvedObject": about,
        "type": "Warning",
        "reason": "Tested",
        "message": "it was\n",
        "source": {"component": "me", "host": "here"},
        "count": 7,
    }
    await api.create(port.EVENTS, namespace, body)
    row = await cells(http, f"/api/v1/namespaces/{namespace}/events/e")
    assert (row["Object"], row["Subobject"], row["Source"]) == ("pod/one", "spec", "me, here")
    assert (row["Message"], row["Count"], row["Last Seen"]) == ("it was", 7, "<unknown>")


async def test_cells_of_small_kinds(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    row = await cells(http, f"/api/v1/namespaces/{namespace}/configmaps/one")
    assert (row["Name"], row["Data"]) == ("one", 1)
    lease = {"metadata": {"name": "one"}, "spec": {"holderIdentity": "me"}}
    await api.create(port.LEASES, namespace, lease)
    row = await cells(http, f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/one")
    assert row["Holder"] == "me"
    row = await cells(http, "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical")
    assert (row["Value"], row["Global-Default"]) == (2_000_001_000, False)
    assert row["PreemptionPolicy"] == "PreemptLowerPriority"
    assert (await cells(http, f"/api/v1/namespaces/{namespace}"))["Status"] == "Active"


async def test_cells_of_ours(http: Http, api: port.KubeApi, namespace: str) -> None:
    await api.create(port.DEADLINE_JOBS, namespace, deadline_job("one"))
    row = await cells(http, f"/apis/lstqueue.dev/v1alpha1/namespaces/{namespace}/deadlinejobs/one")
    assert (row["Name"], row["Queue"], row["Phase"], row["Ended"]) == ("one", None, None, None)
    assert row["Age"].endswith("s")


async def test_cells_of_a_cron_job(http: Http, api: port.KubeApi, namespace: str) -> None:
    spec = {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": job()["spec"]}}
    await api.create(port.CRON_JOBS, namespace, {"metadata": {"name": "one"}, "spec": spec})
    row = await cells(http, f"/apis/batch/v1/namespaces/{namespace}/cronjobs/one")
    assert (row["Schedule"], row["Timezone"], row["Suspend"]) == ("0 3 * * *", "<none>", "True")
    assert (row["Active"], row["Last Schedule"], row["Containers"]) == (0, "<none>", "main")


@pytest.mark.parametrize(
    ("include", "kind"), [("", "PartialObjectMetadata"), ("Object", "ConfigMap"), ("None", None)]
)
async def test_what_a_row_carries(
    http: Http, api: port.KubeApi, namespace: str, include: str, kind: str | None
) -> None:
    await api.create(CONFIG_MAPS, namespace, config_map("one"))
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    rows = (await table(http, path, includeObject=include, fieldSelector="metadata.name=one"))["rows"]
    assert [(row["object"] or {}).get("kind") for row in rows] == [kind]


async def test_an_unknown_inclusion_is_refused(http: Http, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    async with http.session.get(path, headers=TABLE, params={"includeObject": "All"}) as answer:
        assert answer.status == 400


async def test_a_watch_names_its_columns_once(http: Http, api: port.KubeApi, namespace: str) -> None:
    for name in ("one", "two"):
        await api.create(port.LEASES, namespace, {"metadata": {"name": name}, "spec": {}})
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    params = {"watch": "1", "timeoutSeconds": "10"}
    async with http.session.get(path, headers=TABLE, params=params) as answer:
        lines = [json.loads(await answer.content.readline()) for _ in range(2)]
    assert [line["type"] for line in lines] == ["ADDED", "ADDED"]
    assert [line["object"]["rows"][0]["cells"][0] for line in lines] == ["one", "two"]
    assert [bool(line["object"]["columnDefinitions"]) for line in lines] == [True, False]
