"""Claims that are given up: whoever need not make room any more is spared, and the claimer waits again."""

from __future__ import annotations

import cluster
from manifests import group

from lstqueue.embedded import faults
from lstqueue.kube import port

SLOW = {"terminationGracePeriodSeconds": 3600}


async def claiming(made: cluster.Cluster, **urgent: object) -> None:
    """An urgent job claims the room of one that takes for ever to leave."""
    holder = group(run_for="9h", terminate_after="50m", pod=SLOW)
    made.submit("holder", holder, estimatedDuration="9h")
    await made.until_phase("holder", "Running")
    await made.rest("1h")
    made.submit("urgent", group(run_for="1h"), deadlineIn="90m", estimatedDuration="1h", **urgent)
    await made.until_phase("holder", "Suspending", within="1h")
    assert made.phase("urgent") == "Claiming"


@cluster.virtual
async def test_a_claimer_that_is_deleted_leaves_the_room_to_others() -> None:
    async with cluster.run(nodes=1, reaction="1h") as made:
        made.queue()
        await claiming(made)
        made.delete("urgent")
        made.submit("next", group(run_for="1m"), estimatedDuration="1m", deadlineIn="3h")
        await made.until_phase("next", "Succeeded", within="2h")


@cluster.virtual
async def test_a_claimer_that_is_paused_gives_its_claim_up() -> None:
    async with cluster.run(nodes=1, reaction="1h") as made:
        made.queue()
        await claiming(made)
        made.edit("urgent", active=False)
        await made.until_phase("urgent", "Pending")
        assert "claim" not in made.status("urgent")
        await made.until(lambda: made.code("urgent") == "Inactive", "it is told that it is paused")


@cluster.virtual
async def test_a_victim_is_spared_when_its_claimer_goes_before_it_was_told() -> None:
    async with cluster.run(nodes=1, slack=60) as made:
        made.queue()
        made.submit("holder", group(run_for="5h"), estimatedDuration="5h")
        await made.until_phase("holder", "Running")
        await made.rest("1h")
        # Suspending it takes a while; meanwhile the claimer goes.
        made.faults.delay(20.0, when=faults.calls(verb="patch", resource=port.DEADLINE_JOBS, name="holder"))
        uid = made.submit("urgent", group(run_for="1h"), deadlineIn="90m", estimatedDuration="1h")
        await made.until_phase("urgent", "Claiming")
        made.delete("urgent")
        await made.rest("10m")
        assert made.status("holder")["attempt"] == 1 or made.status("holder")["displacedBy"] == [uid]
        await made.until_phase("holder", "Succeeded", within="9h")


@cluster.virtual
async def test_a_victim_that_ends_by_itself_makes_room_all_the_same() -> None:
    async with cluster.run(nodes=1) as made:
        made.queue()
        made.submit("holder", group(run_for="3h"), estimatedDuration="3h")
        await made.until_phase("holder", "Running")
        await made.rest("1h")
        made.submit("urgent", group(run_for="1h"), deadlineIn="90m", estimatedDuration="1h")
        await made.until_phase("urgent", "Claiming")
        made.delete("holder")
        await made.until_phase("urgent", "Succeeded", within="2h")
        assert not made.holds("urgent", "DeadlineMissed")


@cluster.virtual
async def test_a_claim_whose_room_does_not_come_free_expires_and_its_owner_goes_elsewhere() -> None:
    async with cluster.run(nodes=2, reaction="3h") as made:
        made.queue()
        # Its pods ignore their grace period: the kubelet of this node does not kill them either.
        stubborn = group(run_for="9h", terminate_after="50m", pod={"terminationGracePeriodSeconds": 30})
        made.submit("stubborn", stubborn, estimatedDuration="9h")
        await made.until_phase("stubborn", "Running")
        made.submit("other", group(run_for="9h"), estimatedDuration="9h", preemptible=False)
        await made.until_phase("other", "Running")
        await made.rest("1h")
        made.submit("urgent", group(run_for="1h"), deadlineIn="2h", estimatedDuration="1h")
        await made.until_phase("urgent", "Claiming", within="2h")
        await made.until_phase("urgent", "Pending", within="1h")
        assert "claim" not in made.status("urgent")
        assert made.status("urgent")["backoff"]["avoid"]
        made.delete("other")
        await made.until_phase("urgent", "Succeeded", within="3h")
