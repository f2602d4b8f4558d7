"""Room on an interconnect that others have to leave first: by suspension, by a reservation, by a promise."""

from __future__ import annotations

import dataclasses

from cases import interconnects
from cases.interconnects import HOUR, MINUTE, NOW
from lstqueue.engine import decide, invariants, model, proximity

CONFIG = model.Config(forecast_depth=0, shedding=False)
LEAF = model.Locality(required="leafgroup")


def running(number: int, node: str, *, since: int = 5 * HOUR, **more: object) -> model.Job:
    """A job without a deadline on the whole of a node, which it would lose `since` ms of."""
    one = interconnects.job(number, 1, deadline=None, estimate=None, **more)
    return dataclasses.replace(
        one,
        state=model.State.RUNNING,
        since=NOW - since,
        attempt=1,
        assigned=(model.Assigned(0, "p", node, 1, 0),),
    )


def full(found: model.Domains, jobs: list[model.Job]) -> model.Snapshot:
    """A snapshot in which the running jobs use their nodes."""
    busy = {part.node for job in jobs for part in job.assigned}
    nodes = [interconnects.node(name, used=8 * (name in busy)) for name in found.nodes]
    return interconnects.snapshot(found, jobs, nodes)


def pressed(number: int, pods: int) -> model.Job:
    """A gang at its last moment."""
    return interconnects.job(number, pods, deadline=NOW + HOUR + 20 * MINUTE, locality=LEAF, overhead=MINUTE)


def test_victims_leave_one_domain_and_the_cheapest() -> None:
    found = interconnects.fabric(1, 2, 2)  # l0: n0 n2, l1: n1 n3
    ages = {"n0": 2 * HOUR, "n1": 3 * HOUR, "n2": 10 * HOUR, "n3": 4 * HOUR}
    jobs = [running(place, node, since=age) for place, (node, age) in enumerate(ages.items())]
    seen = full(found, [*jobs, pressed(9, 2)])
    plan = decide.decide(seen, NOW, CONFIG)
    # The cheapest two are on n0 and n1, of two leaf groups.
    assert [victim.uid for victim in plan.claim[0].claim.victims] == ["u001", "u003"]
    assert invariants.of_plan(seen, plan) == ()


def test_nobody_is_suspended_where_no_domain_could_hold_the_gang() -> None:
    found = interconnects.fabric(1, 2, 2)
    keeps = {"n0", "n1"}
    jobs = [running(place, f"n{place}", preemptible=f"n{place}" not in keeps) for place in range(4)]
    assert decide.decide(full(found, [*jobs, pressed(9, 2)]), NOW, CONFIG).claim == ()


def test_room_is_kept_in_the_domain_that_comes_free_first() -> None:
    found = interconnects.fabric(1, 2, 2)
    ends = {"n0": 1, "n1": 2, "n2": 9, "n3": 3}
    jobs = [
        dataclasses.replace(
            running(place, node), estimate=model.Estimate(*[(5 + hours) * HOUR] * 3), preemptible=False
        )
        for place, (node, hours) in enumerate(ends.items())
    ]
    wide = interconnects.job(9, 2, locality=LEAF, deadline=NOW + 30 * HOUR)
    seen = full(found, [*jobs, wide])
    plan = decide.decide(seen, NOW, CONFIG)
    kept = plan.reserve[0].reservation
    assert [name for name, _ in kept.groups[0].nodes] == ["n1", "n3"]
    assert kept.start == NOW + 3 * HOUR


def test_a_slot_that_moves_stays_in_its_domain_if_there_is_room() -> None:
    found = interconnects.fabric(1, 2, 4)  # n0, n2, n4, n6 in one leaf group, n1, n3, n5, n7 in the other
    for nodes, left in (
        (["n3", "gone"], {"n1", "n3", "n5", "n7"}),
        (["n2", "gone"], {"n0", "n2", "n4", "n6"}),
    ):
        place = (model.GroupPlacement("p", tuple((name, 1) for name in nodes)),)
        slot = model.Slot(place, NOW + 10 * HOUR, NOW + 12 * HOUR, HOUR)
        owner = interconnects.job(9, 2, deadline=NOW + 30 * HOUR, slot=slot)
        blocks = [running(number, f"n{number}") for number in range(8)]
        seen = full(found, [*blocks, owner])
        queue = dataclasses.replace(seen.queues[0], promises=True)
        plan = decide.decide(dataclasses.replace(seen, queues=(queue,)), NOW, CONFIG)
        moved = {name for name, _ in plan.promise[0].slot.groups[0].nodes}
        assert moved <= left


def test_a_promise_is_of_one_domain() -> None:
    found = interconnects.fabric(1, 2, 2)
    stays = dataclasses.replace(
        running(0, "n0"), estimate=model.Estimate(*[40 * HOUR] * 3), preemptible=False
    )
    seen = full(found, [stays, interconnects.job(9, 2, locality=LEAF)])
    queue = dataclasses.replace(seen.queues[0], promises=True)
    promising = dataclasses.replace(CONFIG, promise_area=10.0)
    plan = decide.decide(dataclasses.replace(seen, queues=(queue,)), NOW, promising)
    groups = plan.promise[0].slot.groups
    assert proximity.problems(found, seen.jobs[-1], groups) == []
