"""A leader that was frozen wakes up: what it had under way, or decides, matters to nobody."""

from __future__ import annotations

import asyncio

import cluster
import pytest
import replicas
from manifests import group

from lstqueue.kube import port


@pytest.mark.parametrize("frozen", [12.0, 60.0, 900.0])
def test_a_leader_that_wakes_up_writes_nothing(frozen: float) -> None:
    async def scenario() -> None:
        async with replicas.run(nodes=3) as made:
            await replicas.has_running_and_waiting(made)
            sleeper, other = made.leader, made.follower
            sleeper.freezer.freeze()
            made.submit("new", group("worker", 1, run_for="10m"))
            await asyncio.sleep(frozen)
            wire = sleeper.wire
            written = wire.writes()
            sleeper.freezer.thaw()
            await made.rest("5s")
            assert wire.writes() == written
            [(_, said)] = sleeper.losses
            assert "nothing is written any more" in said
            await made.leads(other)
            await made.until_phase("new", "Running", "Succeeded", within="1m")
            await replicas.both_end(made)

    cluster.alone(scenario)


@cluster.virtual
async def test_a_sleep_shorter_than_the_lease_changes_nothing() -> None:
    async with replicas.run(nodes=3) as made:
        await replicas.has_running_and_waiting(made)
        sleeper = made.leader
        for _ in range(20):
            sleeper.freezer.freeze()
            await asyncio.sleep(6)
            sleeper.freezer.thaw()
            await asyncio.sleep(5)
        assert made.leader is sleeper
        assert sleeper.losses == []
        await replicas.both_end(made)


WRITES = {
    "admission": ("patch_status", port.DEADLINE_JOBS),
    "child": ("create", port.JOBS),
    "gate": ("patch", port.PODS),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_arrives_after_the_take_over_matters_to_nobody(write: str) -> None:
    async def scenario() -> None:
        async with replicas.run(nodes=2) as made:
            made.queue()
            sleeper, other, wanted = made.leader, made.follower, WRITES[write]
            sleeper.wire.stall(lambda verb, resource: (verb, resource) == wanted)
            made.submit("gang", group("worker", 2, run_for="30m"))
            await made.until(lambda: sleeper.wire.stalled, "the write is on its way")
            wire = sleeper.wire
            sleeper.freezer.freeze()
            await made.leads(other)
            await made.until_phase("gang", "Running", within="1m")
            places, before = made.placement("gang"), made.status("gang")
            wire.deliver()
            sleeper.freezer.thaw()
            await made.rest("1m")
            assert {error.status for error in wire.failed if error.status != 404} == {409}
            assert (made.placement("gang"), made.status("gang")["attempt"]) == (places, before["attempt"])
            assert len(made.children("gang")) == 1
            await made.until_phase("gang", "Succeeded")

    cluster.alone(scenario)


@cluster.virtual
async def test_a_child_that_is_created_after_its_time_never_runs() -> None:
    async with replicas.run(nodes=2) as made:
        made.queue()
        sleeper, other = made.leader, made.follower
        sleeper.wire.stall(lambda verb, resource: (verb, resource) == ("create", port.JOBS))
        made.submit("gang", group("worker", 2, run_for="30m"))
        await made.until(lambda: sleeper.wire.stalled, "the child is on its way")
        sleeper.freezer.freeze()
        await made.leads(other)
        await made.until_phase("gang", "Running", within="1m")
        # The same name again, for somebody else, before the child of the first arrives.
        made.delete("gang")
        await made.until(lambda: not made.staying() and not made.children("gang"), "all of it is gone")
        sleeper.wire.deliver()
        sleeper.freezer.thaw()
        made.submit("gang", group("worker", 2, run_for="10m"))
        await made.until_phase("gang", "Running", within="5m")
        assert all(not pod["spec"].get("schedulingGates") for pod in made.pods("gang"))
        await made.until_phase("gang", "Succeeded")
        assert made.status("gang")["attempt"] == 1
