"""What the operator keeps on record, read by the pass: caps and avoided nodes hold whatever happens."""

from __future__ import annotations

import dataclasses

import pytest

from cases import rivals
from cases.fray_units import Part, Unit
from cases.rivals import HOUR, MINUTE, NOW, runs, waits
from lstqueue.engine import model
from lstqueue.operator import ledger


def returned(unit: Unit, now: int) -> None:
    """Have it run again on its node, as if it had come back an hour ago."""
    unit.set(state=model.State.RUNNING, since=now - HOUR)


@pytest.mark.parametrize("failures", [0, 1, 12])
def test_a_job_that_also_fails_is_suspended_for_others_no_more_often_than_its_cap_allows(
    failures: int,
) -> None:
    victim, now, suspended = Unit(runs(ago=HOUR)), NOW, 0
    victim.parts = [Part("n0", 0, 1)]
    for number in range(8):
        urgent = dataclasses.replace(waits(f"urgent-{number}"), deadline=now + 150 * MINUTE, submit=now)
        plan = rivals.judged(rivals.world(victim.seen(now), urgent), now)
        if plan.claim:
            suspended += 1
            victim.stop(ledger.PREEMPTED, now, min_run=15 * MINUTE, owner=urgent.uid)
        for _ in range(failures):
            returned(victim, now)
            victim.stop(ledger.GANG_FAILED, now, min_run=15 * MINUTE, owner="")
        now += 2 * HOUR
        returned(victim, now)
    assert suspended == rivals.QUEUE.cap


@pytest.mark.parametrize("failed", range(6))
@pytest.mark.parametrize("length", [MINUTE, 20 * MINUTE])
def test_nodes_that_did_not_come_free_are_avoided_for_as_long_as_the_pass_said(
    failed: int, length: int
) -> None:
    owner = Unit(waits(slack=9 * HOUR))
    for _ in range(failed):
        owner.failed_to_start(NOW - HOUR)
    owner.avoids(model.Drop("j", "", ("n0",), NOW + length), NOW)
    for at, free in ((NOW, False), (NOW + length - 1, False), (NOW + length, True)):
        plan = rivals.judged(rivals.world(owner.seen(at)), at)
        assert bool(plan.admit) is free
