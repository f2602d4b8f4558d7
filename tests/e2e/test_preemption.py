"""Preemption on a real API server: the claim, the victims' way out, and their way back."""

from __future__ import annotations

from typing import Any

import operator_run
import pytest
import stack
from scenes import Scene, claimed, our_job, places, scene

from lstqueue.kube import port

Object = dict[str, Any]

LABELLED, INLINE = "labelled", "inline"
HOUR = {"deadline": "70m", "estimate": "1h"}


async def submit(told: Scene, kind: str, name: str, count: int, **times: str) -> None:
    """Submit a gang whose pods run until the test ends them, on a node each."""
    if kind == LABELLED:
        said = {"estimated-duration": times["estimate"]}
        said |= {"deadline-in": times["deadline"]} if "deadline" in times else {}
        await told.submit(name, count, said=said)
    else:
        spec = {"estimatedDuration": times["estimate"]}
        spec |= {"deadlineIn": times["deadline"]} if "deadline" in times else {}
        await told.submit_inline(name, operator_run.group("worker", count, run_for="10h"), **spec)


async def end(told: Scene, name: str) -> None:
    await told.finish(*told.members(name))
    await told.until_phase(name, "Succeeded")


@pytest.mark.parametrize(("victim", "urgent"), [(LABELLED, INLINE), (INLINE, LABELLED)])
async def test_a_gang_at_its_last_moment_runs_where_it_claimed_and_its_victim_comes_back(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str, victim: str, urgent: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await submit(told, victim, "holder", 3, estimate="3h")
        await told.until_phase("holder", "Running")
        await submit(told, urgent, "urgent", 2, **HOUR)
        await told.until_phase("urgent", "Running")
        claims = [
            raw["status"]["claim"]
            for raw in told.record.of("DeadlineJob")
            if raw.get("status", {}).get("claim")
        ]
        assert told.nodes("urgent") == sorted(places(told.status("urgent")["admission"]).values())
        assert told.nodes("urgent") == claimed(claims[0])
        uid = told.ledger("urgent")["metadata"]["uid"]
        assert told.phases("urgent") == ["Claiming", "Admitted", "Running"]
        assert told.phase("holder") == "Pending"
        assert told.members("holder") == []
        assert told.condition("holder", "Suspended")["reason"] == "Preempted"
        assert told.status("holder")["displacedBy"] == [uid]
        await end(told, "urgent")
        await told.until_phase("holder", "Running")
        assert told.status("holder")["attempt"] == 2
        await end(told, "holder")
    for job in told.children("holder"):
        assert job["spec"]["backoffLimit"] == 0
        assert job["status"].get("failed", 0) == 0
    assert told.status("holder").get("restarts", 0) == 0


async def test_a_job_of_which_a_pod_has_succeeded_and_that_could_not_come_back_is_left_alone(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await told.submit("rigid", 2, gpus=4)
        await told.submit("unindexed", 2, gpus=4, completionMode="NonIndexed")
        # Suspended, its controller would call it complete with the one success that it has.
        await told.submit("work-queue", 2, gpus=4, completionMode="NonIndexed", completions=None)
        await told.submit_inline("inline", operator_run.group("worker", 2, gpus=4, run_for="10h"))
        holders = ("rigid", "unindexed", "work-queue", "inline")
        for name in holders:
            await told.until_phase(name, "Running")
            await told.finish(told.members(name)[0])
        for name in holders:
            where = told.children(name)[0]["metadata"]["name"]
            await told.until_status(where, succeeded=1, active=1)
        await submit(told, LABELLED, "urgent", 4, **HOUR)
        await told.until_pending("urgent", "NoRoom", "QuotaExceeded")
        # Room for another: it passes by, and nobody was suspended.
        await told.submit("small", 1, gpus=4, run_for="1s")
        await told.until_phase("small", "Succeeded")
        assert [told.phase(name) for name in holders] == ["Running"] * 4
        assert told.phase("urgent") == "Pending"
        for name in holders:
            await end(told, name)
            assert told.phases(name)[-3:] == ["Admitted", "Running", "Succeeded"]
        await told.until_phase("urgent", "Running")


async def test_a_bag_makes_room_and_keeps_what_is_done(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await told.submit("sweep", 4, completions=6, completionMode="NonIndexed")
        await told.until_phase("sweep", "Running")
        await told.until_status("sweep", ready=4)
        await told.finish(*told.members("sweep")[:2])
        await told.until_status("sweep", succeeded=2, ready=4)
        await submit(told, INLINE, "urgent", 2, **HOUR)
        await told.until_phase("urgent", "Running")
        await told.until_phase("sweep", "Pending")
        assert told.status("sweep")["displacedBy"] == [told.ledger("urgent")["metadata"]["uid"]]
        await told.until_status("sweep", succeeded=2, active=0)
        await end(told, "urgent")
        await told.until_status("sweep", succeeded=2, ready=4)
        await end(told, "sweep")
    assert told.job("sweep")["status"].get("failed", 0) == 0


async def test_the_room_that_a_slow_victim_leaves_is_the_claimers(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        slow = our_job("holder", 4, queue, said={"estimated-duration": "3h"})
        slow["spec"]["template"]["metadata"]["annotations"] = {"sim/terminate-after": "2s"}
        await told.create(port.JOBS, slow)
        await told.until_phase("holder", "Running")
        await submit(told, INLINE, "urgent", 3, **HOUR)
        await told.until_phase("holder", "Suspending")
        await submit(told, LABELLED, "thief", 2, estimate="1m")
        await told.until_pending("thief", "NoRoom", "QuotaExceeded")
        await told.until_phase("urgent", "Running")
        assert told.phase("thief") == "Pending"


async def test_the_suspension_is_for_nobody_when_the_claimer_has_gone(
    control_plane: stack.ControlPlane, api: port.KubeApi, namespace: str, queue: str
) -> None:
    async with scene(control_plane, api, namespace) as told:
        await submit(told, LABELLED, "holder", 3, estimate="3h")
        await told.until_phase("holder", "Running")
        await submit(told, LABELLED, "urgent", 2, **HOUR)
        await told.until_phase("urgent", "Claiming")
        await api.delete(port.JOBS, namespace, "urgent")
        await told.until_phase("urgent", "Failed")
        assert told.condition("urgent", "Finished")["reason"] == "JobVanished"
        # Spared, or back at once if it was on its way out already.
        await told.until_phase("holder", "Running")
        await end(told, "holder")
