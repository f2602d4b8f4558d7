"""What people, clocks and permissions do to the Lease: one leads all the same, and soon."""

from __future__ import annotations

import asyncio

import cluster
import pytest
import replicas
from manifests import group

from lstqueue.embedded import faults
from lstqueue.kube import lease, port

HOUR = 3_600_000

TAKE_OVER = 20.0
"""Seconds from a leader's death to the lead of the other at most."""


def time() -> float:
    return asyncio.get_running_loop().time()


EDITS = {
    "empty holder": {"holderIdentity": ""},
    "no holder": {"holderIdentity": None},
    "huge duration": {"leaseDurationSeconds": 2_000_000_000},
    "short duration": {"leaseDurationSeconds": 2},
    "no renewal": {"renewTime": None},
    "renewed in a far future": {"renewTime": "2999-01-01T00:00:00.000000Z"},
    "many transitions": {"leaseTransitions": 2**31 - 1},
    "nothing left": dict.fromkeys(
        ("holderIdentity", "leaseDurationSeconds", "renewTime", "acquireTime", "leaseTransitions")
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_nonsense_in_the_lease_of_a_living_leader_is_mended(edit: str) -> None:
    async def scenario() -> None:
        async with replicas.run(nodes=3) as made:
            await replicas.has_running_and_waiting(made)
            leader = made.leader
            holder = made.lease()["spec"]["holderIdentity"]
            made.edit_lease(**EDITS[edit])
            await made.rest("5s")
            spec = made.lease()["spec"]
            # A count that is not its own may be another holder's, when the Lease is without one.
            if edit == "nothing left":
                await made.rest("30s")
                assert len(made.leaders) == 1
            else:
                assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == (holder, 15)
                assert made.leader is leader
            await replicas.both_end(made)

    cluster.alone(scenario)


@pytest.mark.parametrize("edit", EDITS)
def test_nonsense_in_the_lease_of_a_dead_leader_keeps_nobody_waiting(edit: str) -> None:
    async def scenario() -> None:
        async with replicas.run(nodes=3) as made:
            await replicas.has_running_and_waiting(made)
            await made.leader.kill()
            made.edit_lease(**EDITS[edit])
            made.submit("new", group("worker", 1, run_for="10m"))
            await made.until_phase("new", "Admitted", within="20s")
            await replicas.both_end(made)

    cluster.alone(scenario)


@pytest.mark.parametrize("dead", [False, True], ids=["alive", "dead"])
def test_a_lease_that_is_deleted_by_hand(dead: bool) -> None:
    async def scenario() -> None:
        async with replicas.run(nodes=3) as made:
            await replicas.has_running_and_waiting(made)
            leader, other = made.leader, made.follower
            if dead:
                await leader.kill()
            made.delete_lease()
            made.submit("new", group("worker", 1, run_for="10m"))
            await made.until_phase("new", "Admitted", within="20s")
            assert made.leader is (other if dead else leader)
            await made.rest("1m")
            assert made.lease()["spec"]["holderIdentity"]
            await replicas.both_end(made)

    cluster.alone(scenario)


@cluster.virtual
async def test_somebody_elses_name_in_the_lease_ends_the_leader_and_is_waited_out() -> None:
    async with replicas.run(nodes=3) as made:
        await replicas.has_running_and_waiting(made)
        leader = made.leader
        made.edit_lease(holderIdentity="maintenance")
        await made.rest("4s")
        assert made.leaders == []
        [(_, said)] = leader.losses
        assert "maintenance has taken it" in said
        await made.until(lambda: made.leaders, "one leads again", within="20s")
        await replicas.both_end(made)


# Clocks and permissions


@pytest.mark.parametrize("error", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_a_clock_that_is_an_hour_off_does_not_move_the_lease(error: int) -> None:
    async def scenario() -> None:
        async with replicas.run(nodes=3, b=error) as made:
            await replicas.has_running_and_waiting(made)
            leader, other = made.leader, made.follower
            await made.rest("5m")
            assert made.leader is leader
            await leader.kill()
            died = time()
            await made.leads(other, within="20s")
            leader.start()
            made.submit("new", group("worker", 1, run_for="1m"))
            await made.until_phase("new", "Running", within="10s")
            assert time() - died <= TAKE_OVER + 10
            await made.rest("5m")
            assert made.leader is other
            await other.stop()
            await made.leads(leader, within="4s")
            other.start()
            await replicas.both_end(made)

    cluster.alone(scenario)


@pytest.mark.parametrize("verb", ["get", "create"])
def test_without_permission_it_says_what_to_grant(verb: str) -> None:
    async def scenario() -> None:
        async with replicas.run() as made:
            await made.leader.stop()
            made.delete_lease()
            made.faults.fail(
                403,
                "Forbidden",
                message='leases.coordination.k8s.io "lstqueue-operator" is forbidden',
                when=faults.calls(verb=verb, resource=port.LEASES),
                times=None,
            )
            task = made.replicas[1].task
            assert task is not None
            with pytest.raises(lease.RefusedError) as refused:
                await asyncio.wait_for(asyncio.shield(task), 30)
            assert "grant get, create and update on leases" in str(refused.value)
            assert "in namespace lstqueue, or run one replica with --no-leader-elect" in str(refused.value)
            made.replicas[1].task = None
            made.calm()
            for replica in made.replicas:
                replica.start()
            await made.until(lambda: made.leaders, "one leads again", within="15s")
            await made.rest("1m")

    cluster.alone(scenario)
