"""Deadlines that are promised: in the status before anybody relies on them, and kept whatever comes."""

from __future__ import annotations

import dataclasses

import cluster
import pytest
from manifests import group, pool
from vows import GUARDED, condition, level, missed, promised

from lstqueue.embedded import faults
from lstqueue.kube import port


@cluster.virtual
async def test_what_is_promised_is_written_with_the_verdict_and_kept() -> None:
    async with cluster.run(nodes=1) as made:
        await promised(made)
        status = made.status("report")
        assert status["slot"]["groups"][0]["nodes"] == [{"node": "node-0000", "count": 1}]
        assert status["slot"]["finish"] <= status["deadline"]
        assert condition(made, "report", "DeadlinePromised") == ("True", "Promised")
        before = status["slot"]
        await made.rest("1h")
        await made.restart()
        await made.rest("1h")
        assert made.status("report")["slot"] == before
        assert made.phase("holder") == "Running"
        await made.until_phase("report", "Succeeded", within="9h")
        assert not missed(made, "report")
        assert "slot" not in made.status("report")
        assert condition(made, "report", "DeadlinePromised") == ("True", "Promised")
        await made.until_phase("holder", "Succeeded", within="40h")


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("number", [1, 2])
@cluster.virtual
async def test_whatever_write_it_dies_at_a_promise_is_none_or_is_kept(number: int, before: bool) -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(promises=True, preemption=GUARDED)
        made.submit("holder", group(run_for="30h"), estimatedDuration="30h")
        await made.until_phase("holder", "Running")
        killed = made.kill_at(number, before=before)
        made.submit("report", group(run_for="1h"), deadlineIn="10h", estimatedDuration="1h")
        await made.until(killed.is_set, "it died", within="10h")
        await made.restart()
        status = made.status("report")
        assert (level(made, "report") == "FEASIBLE") is ("slot" in status) or made.phase(
            "report"
        ) != "Pending"
        await made.until_phase("report", "Succeeded", within="11h")
        assert not missed(made, "report")
        await made.until_phase("holder", "Succeeded", within="40h")


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
@pytest.mark.slow
@cluster.virtual
async def test_whatever_write_it_dies_at_when_its_time_has_come_it_is_kept(number: int, before: bool) -> None:
    async with cluster.run(nodes=1) as made:
        await promised(made)
        await made.rest("7h")
        killed = made.kill_at(number, before=before)
        for _ in range(180):  # nothing may happen after a death, and time must not run on without anybody
            if killed.is_set():
                break
            await made.rest("1m")
        await made.restart()
        await made.until_phase("report", "Succeeded", within="4h")
        assert not missed(made, "report")
        await made.until_phase("holder", "Succeeded", within="40h")


@cluster.virtual
async def test_whoever_comes_later_does_not_take_what_is_owed() -> None:
    async with cluster.run(nodes=1) as made:
        await promised(made)
        made.submit("first", group(run_for="1h"), deadlineIn="9h", estimatedDuration="1h", importance=3)
        made.submit("stays", group(run_for="9h"), estimatedDuration="9h", preemptible=False, importance=3)
        await made.until_phase("report", "Succeeded", within="10h")
        assert not missed(made, "report")
        await made.until_all("Succeeded", "holder", "stays", within="60h")


@cluster.virtual
async def test_a_promise_that_cannot_be_kept_is_taken_back_and_says_why() -> None:
    async with cluster.run(nodes=1) as made:
        await promised(made)
        made.patch(port.NODES, "node-0000", {"spec": {"unschedulable": True}})
        await made.until(
            lambda: condition(made, "report", "DeadlinePromised") == ("False", "CapacityLost"),
            "it is told",
            within="10h",
        )
        assert "slot" not in made.status("report")
        assert level(made, "report") != "FEASIBLE"
        made.patch(port.NODES, "node-0000", {"spec": {"unschedulable": False}})
        await made.until_all("Succeeded", "report", "holder", within="60h")


@cluster.virtual
async def test_a_slot_that_somebody_took_out_by_hand_is_no_promise() -> None:
    async with cluster.run(nodes=1) as made:
        await promised(made)
        made.store.patch(
            port.DEADLINE_JOBS, "default", "report", {"status": {"slot": None}}, subresource="status"
        )
        await made.until(lambda: level(made, "report") != "FEASIBLE", "it is told", within="2h")
        await made.until_all("Succeeded", "report", "holder", within="60h")


@cluster.virtual
async def test_a_promise_that_waits_to_be_written_goes_with_what_is_told_instead() -> None:
    one_by_one = dataclasses.replace(cluster.SETTINGS, in_flight=1)
    async with cluster.run(nodes=1, settings=one_by_one) as made:
        made.queue(promises=True, preemption=GUARDED)
        made.submit("holder", group(run_for="30h"), estimatedDuration="30h")
        await made.until_phase("holder", "Running")
        of_other = faults.calls(resource=port.DEADLINE_JOBS, name="other", verb="patch")
        made.faults.delay(3600.0, when=of_other, times=1)
        made.submit("other", group(run_for="1h"), estimatedDuration="1h")
        await made.rest("1m")
        made.submit("report", group(run_for="30m"), deadlineIn="5h10m", estimatedDuration="30m")
        await made.until(lambda: level(made, "report") == "FEASIBLE", "it is promised", within="3h")
        assert made.status("report")["slack"] == "<4h"  # not what was to be told first
        assert "slot" in made.status("report")
        await made.until_phase("report", "Succeeded", within="6h")
        assert not missed(made, "report")
        await made.until_all("Succeeded", "holder", "other", within="60h")


@cluster.virtual
async def test_a_job_whose_deadline_is_edited_is_promised_the_new_one_where_it_can_be() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(promises=True, preemption=GUARDED)
        made.submit("holder", group(run_for="30h"), estimatedDuration="30h")
        await made.until_phase("holder", "Running")
        made.submit("report", group(run_for="1h"), deadlineIn="61m", estimatedDuration="1h")
        await made.until(lambda: level(made, "report") not in ("None", "FEASIBLE"), "it is not promised")
        assert "slot" not in made.status("report")
        made.edit("report", deadlineIn="10h")
        await made.until(lambda: level(made, "report") == "FEASIBLE", "it is promised", within="1h")
        assert "slot" in made.status("report")
        await made.until_phase("report", "Succeeded", within="11h")
        assert not missed(made, "report")
        await made.until_phase("holder", "Succeeded", within="40h")


@cluster.virtual
async def test_a_promise_that_a_node_took_back_is_made_again_when_there_is_room() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(promises=True, preemption=GUARDED)
        made.submit("holder", group(run_for="30h"), estimatedDuration="30h")
        await made.until_phase("holder", "Running")
        made.submit("report", group(run_for="1h"), deadlineIn="10h", estimatedDuration="1h")
        await made.until(lambda: level(made, "report") == "FEASIBLE", "it is promised")
        made.patch(port.NODES, "node-0000", {"spec": {"unschedulable": True}})
        await made.until(
            lambda: condition(made, "report", "DeadlinePromised") == ("False", "CapacityLost"),
            "it is told",
            within="10h",
        )
        assert level(made, "report") != "FEASIBLE"
        made.edit("report", deadlineIn="20h")
        await made.rest("10m")
        assert "slot" not in made.status("report")
        made.patch(port.NODES, "node-0000", {"spec": {"unschedulable": False}})
        await made.until(lambda: level(made, "report") == "FEASIBLE", "it is promised again", within="1h")
        assert condition(made, "report", "DeadlinePromised") == ("True", "Promised")
        await made.until_phase("report", "Succeeded", within="20h")
        assert not missed(made, "report")
        await made.until_phase("holder", "Succeeded", within="60h")


@cluster.virtual
async def test_a_job_that_was_not_promised_is_when_another_is_expected_to_end_sooner() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(promises=True)
        made.submit("holder", group(run_for="5h"), estimatedDuration="30h", preemptible=False)
        await made.until_phase("holder", "Running")
        made.submit("report", group(run_for="1h"), deadlineIn="10h", estimatedDuration="1h")
        await made.until(lambda: level(made, "report") == "UNLIKELY", "it is told")
        assert made.status("report")["verdict"]["earliestPromisedDeadline"]
        made.edit("holder", estimatedDuration="5h")
        await made.until(lambda: level(made, "report") == "FEASIBLE", "it is promised", within="5m")
        assert "slot" in made.status("report")
        assert "earliestPromisedDeadline" not in made.status("report")["verdict"]
        await made.until_phase("report", "Succeeded", within="10h")
        assert not missed(made, "report")


@cluster.virtual
async def test_nothing_is_promised_on_nodes_that_may_go_at_any_time() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue(promises=True, pools=[pool("all", gpus=8, spot=True)], preemption=GUARDED)
        made.submit("holder", group(run_for="30h"), estimatedDuration="30h")
        await made.until_phase("holder", "Running")
        made.submit("report", group(run_for="1h"), deadlineIn="10h", estimatedDuration="1h")
        await made.until(lambda: level(made, "report") == "UNLIKELY", "it is told")
        made.patch_queue(pools=[pool("all", gpus=8)])
        await made.until(lambda: level(made, "report") == "FEASIBLE", "it is promised", within="5m")
        await made.until_phase("report", "Succeeded", within="10h")
        await made.until_phase("holder", "Succeeded", within="40h")
