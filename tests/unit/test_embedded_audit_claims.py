"""The audit of claims: what is freed for a job is its own, and nobody is suspended without a claim for it."""

import asyncio

import pytest

from cases import gangs, worlds
from lstqueue.api import times


def claim(gang, places, *victims, phase="Claiming"):
    """Write a claim of {node: count} whose victims are to leave."""
    expires = times.format(gang.scene.store.now_ms() + 150_000)
    body = {
        "expires": expires,
        "groups": [
            {
                "name": gang.group,
                "pool": "a100",
                "nodes": [{"node": node, "count": count} for node, count in places.items()],
            }
        ],
        "victims": [{"uid": victim.uid, "attempt": victim.attempt} for victim in victims],
    }
    gang.status(phase, claim=body)


def make_room(victim, owner):
    """Suspend a victim for the owner of a claim, by the book."""
    since = times.format(victim.scene.store.now_ms())
    suspension = {"reason": "Preempted", "since": since, "for": owner.uid}
    victim.status("Suspending", suspension=suspension, admission=None)


def claiming(*, nominal=64):
    """A victim on all of a node, and an owner that claims it."""
    scene = gangs.Scene(nodes=1, nominal=nominal)
    victim, owner = scene.gang("victim"), scene.gang("owner")
    victim.run({"n0": "0-1"})
    owner.status("Pending")
    claim(owner, {"n0": 2}, victim)
    return scene, victim, owner


@worlds.virtual
async def test_a_claim_that_takes_its_course_breaks_nothing() -> None:
    scene, victim, owner = claiming(nominal=8)
    make_room(victim, owner)
    victim.delete(0, 1)
    await asyncio.sleep(10)
    victim.remove(0)
    await asyncio.sleep(10)
    victim.remove(1)
    victim.status("Pending", suspension=None)
    owner.attempt = 1
    owner.status("Admitted", claim=None)
    assert scene.found() == ["PHASE"], "an admission is missing in it"
    scene, victim, owner = claiming(nominal=8)
    make_room(victim, owner)
    victim.delete(0, 1)
    victim.remove(0, 1)
    victim.status("Pending", suspension=None)
    admit(owner, {"n0": "0-1"})
    owner.start()
    assert scene.found() == []


def admit(owner, placement):
    """Admit the owner of a claim, in one write."""
    nodes = [{"node": node, "ranks": ranks} for node, ranks in placement.items()]
    groups = [{"name": "worker", "pool": "a100", "nodes": nodes}]
    at = times.format(owner.scene.store.now_ms())
    owner.attempt += 1
    admission = {"at": at, "queue": "research", "shapeHash": "0", "groups": groups}
    owner.status("Admitted", admission=admission, claim=None)


@pytest.mark.parametrize("left", [0, 1])
def test_whoever_takes_what_was_freed_for_a_claim_over_commits_the_node(left: int) -> None:
    @worlds.virtual
    async def scenario() -> None:
        scene, victim, owner = claiming()
        make_room(victim, owner)
        victim.delete(0, 1)
        victim.remove(*range(2 - left))
        assert scene.found() == []
        scene.gang("thief", replicas=1).admit({"n0": "0"})
        assert scene.found() == ["NODE"]
        assert "12 nvidia.com/gpu of 8 taken" in scene.words()

    scenario()


@worlds.virtual
async def test_what_is_freed_for_a_users_own_job_is_its_own_too() -> None:
    scene = gangs.Scene(nodes=1)
    victim, owner = scene.gang("victim"), scene.own("owner")
    victim.run({"n0": "0-1"})
    owner.status("Pending")
    claim(owner, {"n0": 2}, victim)
    make_room(victim, owner)
    victim.delete(0, 1)
    victim.remove(0, 1)
    assert scene.found() == []
    scene.gang("thief", replicas=1).admit({"n0": "0"})
    assert scene.found() == ["NODE"]
    assert "12 nvidia.com/gpu of 8 taken" in scene.words()


@worlds.virtual
async def test_the_quota_that_a_victim_frees_is_the_claimers_too() -> None:
    scene = gangs.Scene(nodes=2, nominal=8)
    victim, owner = scene.gang("victim"), scene.gang("owner")
    victim.run({"n0": "0-1"})
    owner.status("Pending")
    claim(owner, {"n0": 2}, victim)
    make_room(victim, owner)
    victim.delete(0, 1)
    victim.remove(0, 1)
    scene.gang("thief", replicas=1).admit({"n1": "0"})
    assert scene.found() == ["QUOTA"]


@worlds.virtual
async def test_a_claim_beyond_what_its_victims_have_is_found() -> None:
    scene = gangs.Scene(nodes=1)
    victim, other, owner = (
        scene.gang("victim", replicas=1),
        scene.gang("other", replicas=1),
        scene.gang("owner"),
    )
    victim.run({"n0": "0"})
    other.run({"n0": "0"})
    owner.status("Pending")
    claim(owner, {"n0": 2}, victim)
    assert scene.found() == ["NODE"]


@worlds.virtual
async def test_a_claim_that_is_given_up_frees_its_room() -> None:
    scene, victim, owner = claiming()
    make_room(victim, owner)
    victim.delete(0, 1)
    victim.remove(0, 1)
    owner.status("Pending", claim=None)
    scene.gang("next").admit({"n0": "0-1"})
    assert scene.found() == []


@pytest.mark.parametrize("what", ["no claim", "another victim", "an older attempt", "a claim long gone"])
def test_a_suspension_that_no_claim_justifies_is_found(what: str) -> None:
    @worlds.virtual
    async def scenario() -> None:
        scene = gangs.Scene(nodes=2)
        victim, other, owner = scene.gang("victim"), scene.gang("other"), scene.gang("owner")
        victim.run({"n0": "0-1"})
        other.run({"n1": "0-1"})
        owner.status("Pending")
        if what == "another victim":
            claim(owner, {"n1": 2}, other)
        elif what == "an older attempt":
            victim.attempt = 0
            claim(owner, {"n0": 2}, victim)
            victim.attempt = 1
        elif what == "a claim long gone":
            claim(owner, {"n0": 2}, victim)
            owner.status("Pending", claim=None)
            await asyncio.sleep(60)
        before = scene.found()
        make_room(victim, owner)
        assert scene.found() == [*before, "PHASE"]
        assert "was suspended for" in scene.words()

    scenario()


@worlds.virtual
async def test_an_admission_elsewhere_than_on_the_claim_is_found() -> None:
    scene = gangs.Scene(nodes=2)
    victim, owner = scene.gang("victim"), scene.gang("owner")
    victim.run({"n0": "0-1"})
    owner.status("Pending")
    claim(owner, {"n0": 2}, victim)
    admit(owner, {"n1": "0-1"})
    assert scene.found() == ["PHASE"]
    assert "elsewhere than on its claim" in scene.words()


@worlds.virtual
async def test_pods_on_a_dead_node_use_no_quota() -> None:
    scene = gangs.Scene(nodes=2, nominal=8)
    gang = scene.gang()
    gang.run({"n0": "0-1"})
    scene.break_node("n0")
    gang.suspend("NodeLost", admission=None)
    gang.delete(0, 1)
    gang.restarts = 1
    gang.status("Pending", suspension=None)
    gang.pods.clear()
    gang.admit({"n1": "0-1"})
    assert scene.found() == []
