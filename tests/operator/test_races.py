"""Writes that are on their way while the world moves: no room is given twice, no decision lost."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import cluster
import pytest
from manifests import group

from lstqueue.api import names
from lstqueue.embedded import faults
from lstqueue.kube import port

STATUS = faults.calls(verb="patch", resource=port.DEADLINE_JOBS)


def about(name: str) -> faults.When:
    return faults.calls(verb="patch", resource=port.DEADLINE_JOBS, name=name)


@pytest.mark.parametrize("delay", [0.2, 1.0, 3.0, 8.0])
def test_room_that_comes_free_while_reports_are_on_their_way_is_given_once(delay: float) -> None:
    @cluster.virtual
    async def scenario() -> None:
        async with cluster.run(nodes=1, slack=100) as made:
            made.queue()
            made.submit("holder", group(run_for="1m"), estimatedDuration="1m")
            await made.until_phase("holder", "Running")
            made.faults.delay(delay, when=STATUS)
            await made.rest("59s")
            rivals = [f"rival-{number}" for number in range(6)]
            for number, name in enumerate(rivals):
                made.submit(name, group(run_for="1m"), deadlineIn=f"{2 + number}h", estimatedDuration="1m")
                await made.rest("500ms")
            await made.until_all("Succeeded", "holder", *rivals)

    scenario()


@cluster.virtual
async def test_a_report_that_arrives_after_its_job_was_admitted_does_not_free_its_room() -> None:
    async with cluster.run(nodes=1, slack=60) as made:
        made.queue()
        made.submit("holder", group(run_for="10m"), estimatedDuration="10m")
        await made.until_phase("holder", "Running")
        # The first report about the job that waits takes until after the holder has gone.
        made.faults.delay(660.0, when=about("slow"), times=1)
        made.submit("slow", group(run_for="10m"), importance=5)
        await made.rest("5m")
        made.submit("quick", group(run_for="10m"))
        await made.until_all("Succeeded", "holder", "slow", "quick", within="2h")
        assert made.finished_at("slow") < made.finished_at("quick")


@cluster.virtual
async def test_the_room_of_a_rank_that_succeeds_while_its_gang_is_being_restarted_is_given_once() -> None:
    async with cluster.run(nodes=2, slack=20) as made:
        made.queue()
        made.submit(
            "gang",
            group("leader", fail_after="10m"),
            group("worker", run_for="10m2500ms"),
            backoffLimit=1,
            estimatedDuration="10m",
        )
        await made.until_phase("gang", "Running")
        made.submit("rival", group(run_for="1m"), estimatedDuration="1m")
        await made.until_phase("rival", "Pending")
        # The worker succeeds after the gang was told to stop, and is counted while it is told to start again.
        made.faults.delay(3.0, when=about("gang"))
        await made.until_phase("gang", "Failed", within="2h")
        await made.until_phase("rival", "Succeeded")


@cluster.virtual
async def test_a_commit_that_is_refused_gives_its_room_to_the_next() -> None:
    async with cluster.run(nodes=1, slack=100, reaction="2h") as made:
        made.queue()
        made.faults.fail(403, "Forbidden", when=about("refused"), times=None)
        made.submit("refused", group(run_for="10m"), importance=9)
        await made.rest("5s")
        made.submit("next", group(run_for="10m"))
        await made.until_phase("next", "Succeeded", within="1h")
        made.calm()
        await made.until_phase("refused", "Succeeded")


@cluster.virtual
async def test_an_edit_between_the_decision_and_its_commit_has_it_decided_anew() -> None:
    async with cluster.run(nodes=1, slack=40) as made:
        made.queue()
        made.queue("other")
        edited = False

        def look(call: faults.Call) -> None:
            nonlocal edited
            if about("gang")(call) and not edited:
                edited = True
                made.edit("gang", queue="other")

        made.calls.listeners.append(look)
        made.submit("gang", group(run_for="10m"))
        await made.until_phase("gang", "Running")
        assert made.status("gang")["admission"]["queue"] == "other"
        assert made.status("gang")["attempt"] == 1
        await made.until_phase("gang", "Succeeded")


@contextlib.asynccontextmanager
async def decided_but_not_written(name: str, **spec: Any) -> AsyncIterator[cluster.Cluster]:
    """A job whose admission waits for its turn, behind a write of another job that takes 30 s."""
    one = dataclasses.replace(cluster.SETTINGS, in_flight=1)
    async with cluster.run(nodes=1, slack=40, settings=one) as made:
        made.queue()
        made.queue("other")
        made.submit("blocker", group("worker", 9), deadlineIn="9d", estimatedDuration="1h")
        made.submit("holder", group(run_for="10m"), estimatedDuration="10m")
        await made.until_phase("holder", "Running")
        made.submit(name, group(run_for="10m"), **spec)
        await made.until_phase(name, "Pending")
        await made.rest("9m55s")
        made.faults.delay(30.0, when=about("blocker"), times=1)
        made.edit("blocker", deadlineIn="1h")
        await made.rest("15s")
        assert made.phase(name) == "Pending"
        assert made.operator.loop.writer.backlog
        yield made


@cluster.virtual
async def test_an_admission_that_another_write_pushed_aside_is_decided_again() -> None:
    # Its deadline passes while the admission waits, and saying so is more urgent.
    async with decided_but_not_written("gang", deadlineIn="10m20s", estimatedDuration="10m") as made:
        await made.until_phase("gang", "Succeeded")
        assert made.holds("gang", "DeadlineMissed")


@cluster.virtual
async def test_a_job_that_changes_its_queue_while_its_admission_waits_is_decided_again() -> None:
    async with decided_but_not_written("gang") as made:
        made.edit("gang", queue="other")
        await made.until_phase("gang", "Running")
        assert made.status("gang")["admission"]["queue"] == "other"
        await made.until_phase("gang", "Succeeded")


@cluster.virtual
async def test_a_job_that_is_deleted_while_its_admission_waits_is_never_admitted() -> None:
    async with decided_but_not_written("gang") as made:
        made.delete("gang")
        made.submit("next", group(run_for="10m"))
        await made.until_phase("next", "Succeeded")
        assert made.children("gang") == []


@cluster.virtual
async def test_when_a_pod_is_lost_while_gates_are_being_lifted_the_others_stay_gated() -> None:
    async with cluster.run(nodes=2, slack=20) as made:
        made.queue()

        def look(call: faults.Call) -> None:
            if call.verb == "patch" and call.name.startswith("gang-worker-0-0-"):
                made.delete(call.name, port.PODS)

        made.calls.listeners.append(look)
        made.submit("gang", group("worker", 4, gpus=4, run_for="10m"), backoffLimit=1)
        await made.until(lambda: made.status("gang").get("restarts") == 1, "it starts again")
        await made.until_phase("gang", "Succeeded")


@cluster.virtual
async def test_a_gate_that_somebody_lifts_at_the_same_moment_stays_lifted() -> None:
    async with cluster.run(nodes=1, slack=20) as made:
        made.queue()
        lifted = False

        def look(call: faults.Call) -> None:
            nonlocal lifted
            if call.verb == "patch" and call.resource == port.PODS and not lifted:
                lifted = True
                ours = [{"name": names.GATE}]
                made.patch(port.PODS, call.name, {"spec": {"schedulingGates": ours}})

        made.calls.listeners.append(look)
        gated = {"schedulingGates": [{"name": "example.com/license"}]}
        made.submit("gang", group("worker", 1, pod=gated, run_for="10m"))
        await made.until_phase("gang", "Succeeded")
        assert made.status("gang")["attempt"] == 1


@cluster.virtual
async def test_edits_without_end_do_not_keep_a_gang_from_running() -> None:
    async with cluster.run(nodes=2, slack=400) as made:
        made.queue()
        made.submit("gang", group("worker", 2, run_for="10m"), deadlineIn="9h", estimatedDuration="10m")
        for number in range(200):
            made.edit("gang", importance=number % 5)
            await made.rest("3s")
        await made.until_phase("gang", "Succeeded")


@cluster.virtual
async def test_a_node_that_is_cordoned_while_gates_are_being_lifted_takes_what_was_promised() -> None:
    async with cluster.run(nodes=2) as made:
        made.queue()
        lifted = 0

        def look(call: faults.Call) -> None:
            nonlocal lifted
            if call.verb == "patch" and call.resource == port.PODS:
                lifted += 1
                if lifted == 2:
                    made.patch(port.NODES, "node-0001", {"spec": {"unschedulable": True}})

        made.calls.listeners.append(look)
        made.submit("gang", group("worker", 4, gpus=4, run_for="10m"))
        await made.until_phase("gang", "Pending", "Running")
        made.patch(port.NODES, "node-0001", {"spec": {"unschedulable": None}})
        await made.until_phase("gang", "Succeeded", within="2h")


@cluster.virtual
async def test_many_status_writes_at_once_are_spread_over_time() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("holder", group(run_for="10m"), estimatedDuration="10m")
        await made.until_phase("holder", "Running")
        began, seen = made.now(), made.calls.writes()
        waits = [f"waits-{number:03}" for number in range(300)]
        for name in waits:
            made.submit(name, group(), deadlineIn="9d", estimatedDuration="1h")
        await made.until_all("Pending", *waits, within="1m")
        # 50 a second after a burst of 100.
        assert (made.calls.writes() - seen - 100) / 50 <= (made.now() - began) / 1000 + 0.1
