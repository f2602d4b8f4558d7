"""One object that the operator trips over is left aside and tried again; everybody else's jobs go on."""

from __future__ import annotations

from typing import Any

import cluster
import pytest
from existing import Existing
from manifests import group, own

from lstqueue.jobs import existing, inline
from lstqueue.kube import port
from lstqueue.operator import guard, keeper, queue_status, snapshots, steps


def tripping(name: str, once: list[str], real: Any) -> Any:
    """Stand for a function that has a defect which only a gang or pod of that name brings to light."""

    def odd(first: Any, *rest: Any, **more: Any) -> Any:
        if once and str(getattr(first, "name", "")).startswith(name):
            raise KeyError("odd")
        return real(first, *rest, **more)

    return odd


PLACES = [
    (inline, "probe_pod", "Pending"),
    (inline, "job", "Pending"),
    (inline, "ungate", "Pending"),
    (steps, "placed", "Pending"),
]


@pytest.mark.parametrize(("module", "function", "phase"), PLACES, ids=[place[1] for place in PLACES])
@cluster.virtual
async def test_a_defect_met_in_one_job_is_told_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, module: Any, function: str, phase: str
) -> None:
    once = ["yes"]
    with monkeypatch.context() as patched:
        patched.setattr(module, function, tripping("odd", once, getattr(module, function)))
        async with cluster.run(nodes=2, slack=300) as made:
            made.defects = True
            made.queue(gpus=16)
            made.submit("odd", group(run_for="10m", gpus=4))
            made.submit("other", group(run_for="10m"))
            await made.until_phase("other", "Running", within="2m")
            await made.rest("2m")
            assert made.phase("odd") == phase
            told = made.status("odd")["pending"]
            assert "KeyError" in told["message"] or told["code"] == "BackingOff", told
            assert sum(made.operator.cache.guard.counts.values()) < 40
            once.clear()
            await made.until_all("Succeeded", "odd", "other", within="2h")


@cluster.virtual
async def test_a_defect_met_in_one_users_job_is_told_on_it_and_keeps_no_other_from_its_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    once = ["yes"]
    with monkeypatch.context() as patched:
        patched.setattr(keeper, "names_for", tripping("odd", once, keeper.names_for))
        async with cluster.run(nodes=1, slack=100) as made:
            made.defects = True
            made.queue(gpus=8)
            jobs = Existing(made)
            jobs.create("odd", parallelism=1, completions=1, run_for="1m")
            jobs.create("other", parallelism=1, completions=1, run_for="1m")
            await jobs.until_phase("other", "Succeeded", within="5m")
            assert "KeyError" in await jobs.until_told("odd", guard.CODE)
            once.clear()
            await jobs.until_phase("odd", "Succeeded", within="5m")


@cluster.virtual
async def test_a_defect_met_in_the_status_of_one_queue_keeps_no_other_from_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = queue_status._usage

    def odd(queue: Any, jobs: Any) -> Any:
        if queue.name == "odd":
            raise KeyError("odd")
        return real(queue, jobs)

    with monkeypatch.context() as patched:
        patched.setattr(queue_status, "_usage", odd)
        async with cluster.run(nodes=1) as made:
            made.defects = True
            made.queue("odd", gpus=8)
            made.queue(gpus=8)
            made.submit("job", group(run_for="1h"))
            await made.until_phase("job", "Running")
            await made.until(
                lambda: made.store.get(port.GPU_QUEUES, None, cluster.QUEUE).get("status", {}).get("running"),
                "the other queue tells what runs in it",
            )


@cluster.virtual
async def test_the_deadline_job_of_a_job_that_is_over_may_be_held_by_a_finalizer() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue(gpus=16)
        jobs = Existing(made)
        spec = {"backoffLimit": 0}
        jobs.create(
            "over", parallelism=1, completions=1, fail_after="1m", queue=None, suspend=False, spec=spec
        )
        await made.until(lambda: jobs.over("over") == "Failed", "it fails")
        ref = {"apiVersion": "batch/v1", "kind": "Job", "name": "over"}
        held = own("DeadlineJob", "held", {"queue": cluster.QUEUE, "jobRef": ref})
        held["metadata"]["finalizers"] = ["example.com/keep"]
        made.create(port.DEADLINE_JOBS, held)
        made.delete("held")
        made.submit("other", group(run_for="1m"))
        await made.until_phase("other", "Succeeded", within="5m")
        await made.restart()
        made.submit("another", group(run_for="1m"))
        await made.until_phase("another", "Succeeded", within="5m")
        made.patch(port.DEADLINE_JOBS, "held", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("parallelism", [existing.WIDEST + 1, 2**31 - 1])
@cluster.virtual
async def test_a_job_as_wide_as_numbers_go_is_told_so_at_once(parallelism: int) -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(gpus=8)
        jobs = Existing(made)
        jobs.create("wide", parallelism=parallelism, completions=None, indexed=False, run_for="1m")
        await made.until(lambda: made.code(jobs.ledger("wide")) == "TooManyPods", "it is told", within="1m")
        made.submit("other", group(run_for="1m"))
        await made.until_phase("other", "Succeeded", within="5m")


NULLS = [
    {"nodeAffinity": None},
    {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}},
    {"podAffinity": None},
    {"podAntiAffinity": None},
    None,
]


@pytest.mark.parametrize("affinity", NULLS, ids=str)
@cluster.virtual
async def test_fields_of_a_template_that_were_left_empty_keep_nobody_from_running(affinity: Any) -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(gpus=8)
        pod = {"affinity": affinity, "nodeSelector": None, "tolerations": None}
        made.submit("empty", group(run_for="1m", pod=pod))
        await made.until_phase("empty", "Succeeded", within="5m")


@cluster.virtual
async def test_a_defect_met_while_a_pass_looks_at_a_job_is_tried_again_though_nothing_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    once = ["yes"]
    real = snapshots.engine_job

    def odd(record: Any, *rest: Any) -> Any:
        if once and record.ledger.name == "odd":
            raise KeyError("odd")
        return real(record, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "engine_job", odd)
        async with cluster.run(nodes=1, slack=300) as made:
            made.defects = True
            made.queue(gpus=8)
            made.submit("odd", group(run_for="10m"))
            await made.rest("10m")
            assert made.status("odd")["pending"]["code"] == "Unreadable"
            assert sum(made.operator.cache.guard.counts.values()) < 40
            once.clear()
            await made.until_phase("odd", "Running", within="2m")
