"""Users' own Jobs in a queue on a real API server: queued, released, run and ended by our own code."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

import operator_run
import plain_jobs
import pytest
import stack
from scenes import our_job, places, scene

from lstqueue.api import names
from lstqueue.kube import port

Object = dict[str, Any]


def version(raw: Object) -> int:
    return int(raw["metadata"]["resourceVersion"])


def pinned_to(pod: Object) -> str:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    return str(term["matchFields"][0]["values"][0])


async def test_a_labelled_gang_is_queued_released_by_one_patch_and_runs_where_it_was_admitted(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        said = {"deadline-in": "1h", "estimated-duration": "1m"}
        job = await told.submit("train", 3, run_for="2s", said=said)
        await told.until_phase("train", "Succeeded")
        await told.until_told("Job", "train", "Admitted")
    ledger = told.ledger("train")
    uid = job["metadata"]["uid"]
    assert ledger["metadata"]["name"] == f"job-train-{uid[:6]}"
    assert ledger["metadata"]["labels"] == {names.LABEL_LEDGER: "true", names.LABEL_UNIT_UID: uid}
    assert not ledger["metadata"].get("ownerReferences")
    assert told.phases("train")[-3:] == ["Admitted", "Running", "Succeeded"]

    committed = next(raw for raw in told.record.of("DeadlineJob") if raw.get("status", {}).get("admission"))
    assert committed["status"]["admission"]["jobUid"] == uid
    versions = told.record.of("Job")
    released = next(raw for raw in versions if not raw["spec"]["suspend"])
    assert version(released) > version(committed)
    specs = [raw["spec"] for raw in versions]
    changes = [spec for number, spec in enumerate(specs) if number and spec != specs[number - 1]]
    assert changes == [released["spec"]], "more was written to the Job than its release"

    nodes = places(committed["status"]["admission"])
    by_name: dict[str, list[Object]] = {}
    for raw in told.record.of("Pod"):
        by_name.setdefault(raw["metadata"]["name"], []).append(raw)
    assert len(by_name) == 3
    for first, *_, last in by_name.values():
        assert plain_jobs.gates(first) == [names.GATE]
        rank = int(last["metadata"]["annotations"][names.ANNOTATION_RANK])
        assert str(rank) == plain_jobs.index(last)
        assert pinned_to(last) == last["spec"]["nodeName"] == nodes[rank]
    assert told.record.violations() == []
    for raw in by_name[last["metadata"]["name"]]:
        raw["spec"]["nodeName"] = "node-9999"
    assert "wrong place" in str(told.record.violations()), "the auditor of these records is blind"


async def test_a_bag_goes_through_its_slots_one_pod_each_at_a_time(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await told.submit("sweep", 2, run_for="1s", completions=5, completionMode="NonIndexed")
        await told.until_phase("sweep", "Succeeded", within_s=90)
        assert told.status("sweep")["attempt"] == 1
    slots = {}
    live: set[str] = set()
    for raw in told.record.of("Pod"):
        name, annotations = raw["metadata"]["name"], raw["metadata"].get("annotations") or {}
        over = raw["status"]["phase"] == "Succeeded"
        if names.ANNOTATION_RANK in annotations:
            slots[name] = annotations[names.ANNOTATION_RANK]
            (live.discard if over else live.add)(name)
        assert len(live) <= 2
    assert len(slots) == 5
    assert set(slots.values()) == {"0", "1"}


async def test_a_job_of_a_cron_job_is_due_at_the_next_time_of_day_after_it_was_made(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    said = {"deadline-at": "06:00 Europe/Berlin", "estimated-duration": "1m"}
    inner = our_job("-", 2, queue, run_for="1s", said=said)
    metadata = {key: inner["metadata"][key] for key in ("labels", "annotations")}
    nightly = {
        "metadata": {"name": "nightly"},
        "spec": {
            "schedule": "* * * * *",
            "suspend": True,
            "jobTemplate": {"metadata": metadata, "spec": inner["spec"]},
        },
    }
    async with scene(control_plane, api, namespace) as told:
        await told.create(port.CRON_JOBS, nightly)
        # A run that it has missed is made at once; the next full minute need not be waited for.
        missed = {"status": {"lastScheduleTime": _ago(minutes=2)}}
        await api.patch_status(port.CRON_JOBS, namespace, "nightly", missed)
        await told.patch("nightly", {"spec": {"suspend": False}}, port.CRON_JOBS)
        (job,) = await told.until_seen(lambda: told.newest("Job"), "the CronJob makes a Job")
        await told.patch("nightly", {"spec": {"suspend": True}}, port.CRON_JOBS)
        name = job["metadata"]["name"]
        assert job["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
        await told.until_phase(name, "Succeeded")
    due = _time(told.status(name)["deadline"])
    assert due.astimezone(zoneinfo.ZoneInfo("Europe/Berlin")).strftime("%H:%M:%S") == "06:00:00"
    made = _time(job["metadata"]["creationTimestamp"])
    assert datetime.timedelta(0) < due - made <= datetime.timedelta(hours=25)


def _ago(*, minutes: int) -> str:
    at = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=minutes)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


@pytest.mark.unenforced
async def test_a_running_job_is_suspended_on_sight_and_released_in_its_turn(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await told.submit("train", 2, run_for="2s", suspend=False)
        await told.until_seen(
            lambda: any(raw["spec"]["suspend"] for raw in told.record.of("Job")), "it is suspended"
        )
        await told.until_phase("train", "Succeeded")
        await told.until_told("Job", "train", "SuspendedOnSight")
        assert told.status("train")["attempt"] == 1


async def test_a_running_job_that_is_to_be_adopted_goes_on_where_it_is(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await told.create(port.JOBS, our_job("train", 2, None, suspend=False))
        await told.until_status("train", ready=2)
        before = {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in await told.pods("train")}
        marks = {"labels": {names.LABEL_QUEUE: queue}, "annotations": {f"{names.GROUP}/adopt": "true"}}
        await told.patch("train", {"metadata": marks})
        await told.until_phase("train", "Running")
        nodes = places(told.status("train")["admission"])
        assert sorted(nodes.values()) == sorted(before.values())
        # It holds what it uses: two of the four nodes are left for others.
        await told.submit("other", 3)
        await told.until_pending("other", "NoRoom", "QuotaExceeded")
        pods = await told.pods("train")
        assert {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in pods} == before
        await told.finish(*pods)
        await told.until_phase("train", "Succeeded")
        await told.until_phase("other", "Running")
    assert not [raw for raw in told.record.of("Job") if named(raw) == "train" and raw["spec"]["suspend"]]


def named(raw: Object) -> str:
    return str(raw["metadata"]["name"])


@pytest.mark.unenforced
async def test_a_queue_that_observes_forecasts_and_writes_to_no_job_and_no_pod(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    observing = f"{namespace}-observing"
    await api.create(port.GPU_QUEUES, None, operator_run.queue(observing, mode="Observe"))
    try:
        async with scene(control_plane, api, namespace) as told:
            said = {"estimated-duration": "1m", "deadline-in": "1h"}
            await told.create(port.JOBS, our_job("waits", 1, observing, said=said))
            await told.create(port.JOBS, our_job("runs", 1, observing, said=said, suspend=False))
            await told.until_status("runs", ready=1)
            await told.until_seen(
                lambda: all(told.status(name).get("verdict") for name in ("waits", "runs")),
                "both have a verdict",
            )
            await told.submit("acted-on", 1, run_for="1s")
            await told.until_phase("acted-on", "Succeeded")
            assert told.phase("waits") == told.phase("runs") == "Pending"
    finally:
        await api.delete(port.GPU_QUEUES, None, observing)
    for raw in [*told.record.of("Job"), *told.record.of("Pod")]:
        if not named(raw).startswith("acted-on"):
            managers = {item["manager"] for item in raw["metadata"]["managedFields"]}
            written = {names.LABEL_JOB, names.LABEL_ATTEMPT} & (raw["metadata"].get("labels") or {}).keys()
            assert not written, managers
    assert {raw["spec"]["suspend"] for raw in told.record.of("Job") if named(raw) == "waits"} == {True}
    assert {raw["spec"]["suspend"] for raw in told.record.of("Job") if named(raw) == "runs"} == {False}


async def test_a_lost_ledger_is_written_anew_and_nothing_stops(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await told.submit("train", 2)
        await told.until_phase("train", "Running")
        before = [pod["metadata"]["uid"] for pod in told.members("train")]
        first = told.ledger("train")["metadata"]
        await api.delete(port.DEADLINE_JOBS, namespace, first["name"])
        await told.until_seen(
            lambda: (
                told.ledger("train").get("metadata", {}).get("uid", first["uid"]) != first["uid"]
                and told.phase("train") == "Running"
            ),
            "it is there again",
        )
        assert [pod["metadata"]["uid"] for pod in told.members("train")] == before
        await told.finish(*told.members("train"))
        await told.until_phase("train", "Succeeded")
