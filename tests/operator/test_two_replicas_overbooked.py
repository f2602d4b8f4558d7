"""Room that two leaders gave away: before anything runs in it, who came later gives it back."""

from __future__ import annotations

import cluster
import replicas
from existing import Existing
from manifests import group

from lstqueue.embedded import faults
from lstqueue.kube import port

URGENT = {"deadlineIn": "1h", "estimatedDuration": "10m"}
STATUS = ("patch_status", port.DEADLINE_JOBS)


async def both_committed(made: replicas.Pair, first: str) -> None:
    """A leader's admission of `first` arrives when its successor has given the room to another, "second"."""
    sleeper, other = made.leader, made.follower
    await made.until(lambda: sleeper.wire.stalled, "the admission is on its way")
    wire = sleeper.wire
    await sleeper.kill()
    made.submit("second", group("worker", 2, run_for="10m"), **URGENT)
    # What the successor has to say about the first would show that the world has moved on.
    made.faults.delay(5.0, when=faults.calls(verb="patch", name=first), times=1)
    wire.mend()
    delivered = False

    def look(_: object) -> None:
        nonlocal delivered
        if made.phase("second") == "Admitted" and not delivered:
            delivered = True
            wire.deliver()

    made.store.subscribe(look)
    await made.leads(other)
    await made.until(lambda: made.status(first).get("attempt") == 1, "the late admission counts")
    assert made.status("second")["attempt"] == 1
    nodes = [set(made.placement(name).values()) for name in (first, "second")]
    assert nodes[0] & nodes[1]


def forgive_double_booking(made: cluster.Cluster) -> None:
    """Two commits for one room were there for a moment, which is all that may be broken."""
    found = made.world.audit.violations
    assert {violation.invariant.value for violation in found} <= {"node over-committed"}
    found.clear()


def stall_admission(made: replicas.Pair) -> None:
    made.leader.wire.stall(lambda verb, resource: (verb, resource) == STATUS)


@cluster.virtual
async def test_of_two_admissions_for_one_room_the_younger_is_rolled_back() -> None:
    async with replicas.run(nodes=2) as made:
        made.queue()
        stall_admission(made)
        made.submit("first", group("worker", 2, run_for="10m"))
        phases: set[str] = set()
        words: set[str] = set()

        def look(_: object) -> None:
            phases.add(made.phase("second"))
            words.add(made.condition("second", "Admitted").get("message", ""))

        made.store.subscribe(look)
        await both_committed(made, "first")
        await made.until_phase("first", "Running", within="1m")
        assert made.phase("second") == "Pending"
        assert "Suspending" not in phases
        assert any("was given to default/first as well" in said for said in words)
        assert "backoff" not in made.status("second")
        forgive_double_booking(made)
        await made.until_all("Succeeded", "first", "second")
        assert [made.status(name)["attempt"] for name in ("first", "second")] == [1, 2]


@cluster.virtual
async def test_who_was_let_go_first_goes_on_however_old_the_other_is() -> None:
    async with replicas.run(nodes=2) as made:
        made.queue()
        stall_admission(made)
        made.submit("first", group("worker", 2, run_for="10m"))
        sleeper, other = made.leader, made.follower
        await made.until(lambda: sleeper.wire.stalled, "the admission is on its way")
        wire = sleeper.wire
        await sleeper.kill()
        made.submit("second", group("worker", 2, run_for="10m"), **URGENT)
        made.faults.delay(20.0, when=faults.calls(verb="patch", name="first"), times=1)
        await made.leads(other)
        await made.until_phase("second", "Running", within="1m")
        wire.deliver()
        await made.until(lambda: made.status("first").get("attempt") == 1, "the late admission counts")
        await made.until_phase("first", "Pending", within="1m")
        assert made.phase("second") == "Running"
        assert made.pods("first") == []
        forgive_double_booking(made)
        await made.until_all("Succeeded", "first", "second")
        assert [made.status(name)["attempt"] for name in ("first", "second")] == [2, 1]


@cluster.virtual
async def test_a_users_own_job_is_not_released_into_room_that_another_has() -> None:
    async with replicas.run(nodes=2) as made:
        made.queue(stopPolicy="Hold")
        jobs = Existing(made)
        jobs.create("train", run_for="10m")
        await jobs.until_phase("train", "Pending")
        first = jobs.ledger("train")
        await made.rest("1m")
        stall_admission(made)
        made.patch_queue(stopPolicy="None")
        released: list[str] = []

        def look(_: object) -> None:
            if not jobs.suspended("train"):
                released.append(made.phase("second"))

        await both_committed(made, first)
        unsubscribe = made.store.subscribe(look)
        await jobs.until_phase("train", "Running", within="1m")
        unsubscribe()
        assert released[0] == "Pending"
        forgive_double_booking(made)
        await made.until_phase("second", "Succeeded")
        await jobs.until_phase("train", "Succeeded")
        assert [made.status(name)["attempt"] for name in (first, "second")] == [1, 2]


@cluster.virtual
async def test_room_that_is_claimed_counts_as_given() -> None:
    async with replicas.run(nodes=2) as made:
        made.queue()
        made.queue("other")
        slow = group(run_for="3h", terminate_after="90s", pod={"terminationGracePeriodSeconds": 120})
        made.submit("holder", slow, estimatedDuration="3h")
        await made.until_phase("holder", "Running")
        await made.rest("1h")
        stall_admission(made)
        made.submit("first", group(run_for="10m"), queue="other")
        sleeper, other = made.leader, made.follower
        await made.until(lambda: sleeper.wire.stalled, "the admission is on its way")
        wire = sleeper.wire
        await sleeper.kill()
        made.patch_queue("other", stopPolicy="Hold")
        made.submit("second", group("worker", 2, run_for="10m"), **URGENT)
        # What the successor has to say about the first would show that the world has moved on.
        made.faults.delay(20.0, when=faults.calls(verb="patch", name="first"), times=1)
        await made.leads(other)
        await made.until_phase("second", "Claiming", within="1m")
        wire.mend()
        wire.deliver()
        await made.until(lambda: made.status("first").get("attempt") == 1, "the late admission counts")
        await made.until_phase("first", "Pending", within="30s")
        assert made.phase("second") == "Claiming"
        await made.until_phase("second", "Running", within="3m")
        made.patch_queue("other", stopPolicy="None")
        forgive_double_booking(made)
        await made.until_all("Succeeded", "first", "second", "holder", within="9h")
        assert [made.status(name)["attempt"] for name in ("first", "second")] == [2, 1]
