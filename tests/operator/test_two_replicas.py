"""Two replicas: one decides; when it dies, stops or is cut off, the other does, and never both."""

from __future__ import annotations

import asyncio

import cluster
import pytest
import replicas
from manifests import group

from lstqueue.embedded import faults
from lstqueue.kube import port

TAKE_OVER = 20.0
"""Seconds from a leader's death to the next write of the other at most."""


def time() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("phase", [0.0, 0.4, 0.9, 1.3, 1.9, 2.3])
def test_a_dead_leader_is_replaced_within_twenty_seconds(phase: float) -> None:
    async def scenario() -> None:
        async with replicas.run(nodes=3) as made:
            await replicas.has_running_and_waiting(made)
            await made.rest("2m")
            await asyncio.sleep(phase)
            places, follower = made.placement("runs"), made.follower
            await made.leader.kill()
            died = time()
            # Nobody hears of it before the other leads, whose first admission this is.
            made.submit("new", group("worker", 1, run_for="10m"))
            await made.until_phase("new", "Admitted", within="20s")
            assert time() - died <= TAKE_OVER
            assert made.leader is follower
            await made.until_phase("new", "Running", within="20s")
            assert made.placement("runs") == places
            await replicas.both_end(made)

    cluster.alone(scenario)


@cluster.virtual
async def test_a_gang_in_the_middle_of_its_start_is_taken_on_by_the_other() -> None:
    async with replicas.run() as made:
        made.queue()
        leader = made.leader
        leader.wire.stall(lambda verb, resource: (verb, resource) == ("patch", port.PODS))
        made.submit("gang", group("worker", 2, run_for="10m"))
        await made.until(lambda: leader.wire.stalled, "the gates are about to be lifted")
        places = made.placement("gang")
        await leader.kill()
        died = time()
        await made.until_phase("gang", "Running", within="30s")
        assert time() - died <= TAKE_OVER + 5
        assert made.placement("gang") == places
        leader.wire.deliver()
        await made.until_phase("gang", "Succeeded")
        assert made.status("gang")["attempt"] == 1


@cluster.virtual
async def test_a_leader_that_stops_hands_over_at_once() -> None:
    async with replicas.run(nodes=3) as made:
        await replicas.has_running_and_waiting(made)
        follower = made.follower
        await made.leader.stop()
        stopped = time()
        assert made.lease()["spec"]["holderIdentity"] == ""
        made.submit("new", group("worker", 1, run_for="10m"))
        await made.until_phase("new", "Admitted", within="4s")
        assert time() - stopped <= 3.0
        assert made.leader is follower
        await replicas.both_end(made)


@cluster.virtual
async def test_replicas_that_are_replaced_one_by_one_keep_deciding() -> None:
    async with replicas.run(nodes=3) as made:
        await replicas.has_running_and_waiting(made)
        for turn in range(4):
            gone = made.leader
            await gone.stop()
            gone.start()
            made.submit(f"new-{turn}", group("worker", 1, run_for="1m"))
            await made.until_phase(f"new-{turn}", "Running", within="10s")
            await made.until_phase(f"new-{turn}", "Succeeded")
        assert made.lease()["spec"]["leaseTransitions"] == 4
        await replicas.both_end(made)


# A leader that reaches nothing


@cluster.virtual
async def test_a_leader_that_is_cut_off_gives_up_before_the_other_begins() -> None:
    async with replicas.run(nodes=3) as made:
        await replicas.has_running_and_waiting(made)
        lonely, other = made.leader, made.follower
        lonely.wire.cut()
        cut = time()
        made.submit("new", group("worker", 1, run_for="10m"))
        await made.until_phase("new", "Admitted", within="20s")
        assert time() - cut <= TAKE_OVER
        [(lost_at, said)] = lonely.losses
        assert lost_at - cut <= 10.0
        assert other.led_at[-1] - lost_at >= 2.0
        assert "no route to the server" in said
        lonely.wire.mend()
        await replicas.both_end(made)
        assert made.leader is other


@cluster.virtual
async def test_an_outage_for_both_ends_with_one_leader() -> None:
    async with replicas.run(nodes=3) as made:
        made.calls.slack = 100
        await replicas.has_running_and_waiting(made)
        made.faults.fail(503, "ServiceUnavailable", times=None, when=faults.any_call)
        made.faults.cut_watches()
        await made.rest("10m")
        assert made.leaders == []
        made.calm()
        made.submit("new", group("worker", 1, run_for="10m"))
        await made.until_phase("new", "Running", within="1m")
        assert len(made.leaders) == 1
        await replicas.both_end(made)
