"""From a DeadlineJob's YAML to a gang that succeeded, by our own code on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import documented_role
import operator_run
import pytest
import stack

from lstqueue.api import names
from lstqueue.jobs import views
from lstqueue.kube import port

Object = dict[str, Any]


@pytest.fixture
async def queue(api: port.KubeApi, namespace: str) -> AsyncIterator[str]:
    await api.create(port.GPU_QUEUES, None, operator_run.queue(namespace))
    yield namespace
    await api.delete(port.GPU_QUEUES, None, namespace)


def phase(record: operator_run.Record, name: str) -> str:
    found = [raw for raw in record.of("DeadlineJob") if raw["metadata"]["name"] == name]
    return str(found[-1].get("status", {}).get("phase", "")) if found else ""


def gates(pod: Object) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or []]


def pinned_to(pod: Object) -> str:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    (node,) = field["values"]
    return str(node)


def planned(status: Object) -> dict[int, str]:
    """Node of each global rank, as the admission says."""
    return {
        rank: item["node"]
        for group in status["admission"]["groups"]
        for item in group["nodes"]
        for rank in views.indexes(item["ranks"])
    }


async def test_a_gang_goes_from_its_yaml_to_success_in_the_order_of_the_protocol(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    groups = [
        operator_run.group("leader", 1, run_for="2s"),
        operator_run.group("worker", 2, run_for="2s"),
    ]
    manifest = operator_run.deadline_job("whole", queue, groups, deadlineIn="1h", estimatedDuration="1m")
    async with (
        operator_run.record(api, namespace) as record,
        operator_run.operator(documented_role.kubeconfig(control_plane)),
    ):
        await api.create(port.DEADLINE_JOBS, namespace, manifest)
        await record.until(lambda: phase(record, "whole") == "Succeeded", what="the gang succeeds")

    ledger = record.of("DeadlineJob")
    phases = [raw["status"]["phase"] for raw in ledger if raw.get("status")]
    assert list(dict.fromkeys(phases)) == ["Admitted", "Running", "Succeeded"]

    committed = next(raw for raw in ledger if raw.get("status", {}).get("admission"))
    places = planned(committed["status"])
    assert sorted(places) == [0, 1, 2]
    assert committed["status"]["verdict"]["level"] == "LIKELY"

    def version(raw: Object) -> int:
        return int(raw["metadata"]["resourceVersion"])

    assert all(version(raw) > version(committed) for raw in record.of("Job"))
    pods = record.of("Pod")
    by_name: dict[str, list[Object]] = {}
    for pod in pods:
        by_name.setdefault(pod["metadata"]["name"], []).append(pod)
    assert len(by_name) == 3
    first_ungated = min(version(pod) for pod in pods if names.GATE not in gates(pod))
    for versions in by_name.values():
        assert names.GATE in gates(versions[0]), "a pod appeared without the gate"
        assert version(versions[0]) < first_ungated, "a gate was lifted before every pod existed"
        last = versions[-1]
        rank = int(last["metadata"]["annotations"][names.ANNOTATION_RANK])
        assert pinned_to(last) == last["spec"]["nodeName"] == places[rank]
        assert last["metadata"]["labels"][names.LABEL_ATTEMPT] == "1"
        assert last["status"]["phase"] == "Succeeded"
    ranks = [int(item[-1]["metadata"]["annotations"][names.ANNOTATION_RANK]) for item in by_name.values()]
    assert sorted(ranks) == [0, 1, 2]


async def test_the_environment_of_a_rank_reaches_it(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    manifest = operator_run.deadline_job(
        "ranks", queue, [operator_run.group("worker", 2, gpus=1, run_for="1s")]
    )
    async with (
        operator_run.record(api, namespace) as record,
        operator_run.operator(documented_role.kubeconfig(control_plane)),
    ):
        await api.create(port.DEADLINE_JOBS, namespace, manifest)
        await record.until(lambda: phase(record, "ranks") == "Succeeded", what="the gang succeeds")
        service = await api.get(port.SERVICES, namespace, "gang-ranks")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    pod = record.of("Pod")[-1]
    assert pod["spec"]["subdomain"] == "gang-ranks"
    assert pod["spec"]["priorityClassName"] == names.PRIORITY_CLASS
    assert pod["spec"]["preemptionPolicy"] == "Never"
    environment = {item["name"]: item for item in pod["spec"]["containers"][0]["env"]}
    assert environment["WORLD_SIZE"]["value"] == "2"
    assert environment["MASTER_ADDR"]["value"] == "ranks-worker-0-0.gang-ranks"
    path = environment["RANK"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == f"metadata.annotations['{names.ANNOTATION_RANK}']"


async def test_a_gang_that_does_not_fit_waits_whole_and_starts_when_room_returns(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    first = operator_run.deadline_job("first", queue, [operator_run.group("worker", 3, run_for="3s")])
    second = operator_run.deadline_job("second", queue, [operator_run.group("worker", 2, run_for="1s")])
    async with (
        operator_run.record(api, namespace) as record,
        operator_run.operator(documented_role.kubeconfig(control_plane)),
    ):
        await api.create(port.DEADLINE_JOBS, namespace, first)
        await record.until(lambda: phase(record, "first") == "Running", what="the first runs")
        await api.create(port.DEADLINE_JOBS, namespace, second)
        await record.until(lambda: phase(record, "second") == "Pending", what="the second is told")
        waiting = record.of("DeadlineJob")[-1]
        assert waiting["metadata"]["name"] == "second"
        assert waiting["status"]["pending"]["code"] in ("NoRoom", "QuotaExceeded")
        assert "nvidia.com/gpu" in waiting["status"]["pending"]["message"]
        assert not [raw for raw in record.of("Job") if raw["metadata"]["name"].startswith("second")]
        await record.until(lambda: phase(record, "second") == "Succeeded", what="the second succeeds")


async def test_a_failed_member_ends_the_whole_gang_and_it_begins_again_under_new_names(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    groups = [
        operator_run.group("leader", 1, run_for="600s"),
        operator_run.group("worker", 1, fail_after="1s", exit_code="3"),
    ]
    manifest = operator_run.deadline_job("breaks", queue, groups, backoffLimit=1)
    async with (
        operator_run.record(api, namespace) as record,
        operator_run.operator(documented_role.kubeconfig(control_plane)),
    ):
        await api.create(port.DEADLINE_JOBS, namespace, manifest)
        await record.until(lambda: phase(record, "breaks") == "Failed", what="the gang gives up")
        await record.until(
            lambda: all(
                raw["status"]["phase"] in ("Failed", "Succeeded") or "deletionTimestamp" in raw["metadata"]
                for raw in {raw["metadata"]["name"]: raw for raw in record.of("Pod")}.values()
            ),
            what="every pod ends",
        )
    phases = [raw["status"]["phase"] for raw in record.of("DeadlineJob") if raw.get("status")]
    changes = [phase for index, phase in enumerate(phases) if index == 0 or phase != phases[index - 1]]
    started = [phase for phase in changes if phase in ("Admitted", "Suspending", "Failed")]
    assert started == ["Admitted", "Suspending", "Admitted", "Suspending", "Failed"]
    children = {raw["metadata"]["name"] for raw in record.of("Job")}
    assert children == {
        "breaks-leader-0",
        "breaks-worker-0",
        "breaks-leader-1",
        "breaks-worker-1",
    }


async def test_a_gang_that_cannot_be_bound_gives_its_places_back_and_says_which_pod_was_stuck(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str
) -> None:
    await api.create(port.GPU_QUEUES, None, operator_run.queue(f"{namespace}-short", bindTimeout="2s"))
    manifest = operator_run.deadline_job(
        "stuck", f"{namespace}-short", [operator_run.group("worker", 2, run_for="600s")]
    )
    # A scheduler that does not exist: nobody will ever bind these pods.
    manifest["spec"]["groups"][0]["template"]["spec"]["schedulerName"] = "nobody"
    async with (
        operator_run.record(api, namespace) as record,
        operator_run.operator(documented_role.kubeconfig(control_plane)),
    ):
        await api.create(port.DEADLINE_JOBS, namespace, manifest)

        def backed_off() -> Object | None:
            found = record.of("DeadlineJob")
            status: Object = found[-1].get("status", {}) if found else {}
            return status if status.get("phase") == "Pending" and "backoff" in status else None

        status = await record.until(backed_off, what="the gang backs off")
    await api.delete(port.GPU_QUEUES, None, f"{namespace}-short")
    assert status["backoff"]["count"] == 1
    assert "admission" not in status
    conditions = {item["type"]: item for item in status["conditions"]}
    assert conditions["Admitted"]["status"] == "False"
    jobs = {raw["metadata"]["name"]: raw for raw in record.of("Job")}
    assert jobs["stuck-worker-0"]["spec"]["suspend"] is True
