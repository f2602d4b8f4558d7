"""A sweep is promised whole: all of its jobs that have the deadline, or none of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from cases import rivals
from cases.rivals import HOUR, NOW
from lstqueue.engine import decide, model, pledges

CONFIG = dataclasses.replace(rivals.CONFIG, promising=True, promise_area=100.0)
POOL = model.Pool("p", nominal=((rivals.GPU, 64),))
TOLD = model.Published(model.Band.DEADLINE, model.Code.NO_ROOM, model.Verdict(model.Level.LIKELY, "So."))


def one(uid: str, *, due: int = 20 * HOUR, needs: int = 3, **more: Any) -> model.Job:
    """A job of the sweep that fills a node for two hours."""
    base = {"published": model.Published(), "sweep": "ns/lr", "sweep_needs": needs, "slack": 0}
    return rivals.waits(uid, **(base | {"deadline": NOW + due} | more))


def world(*jobs: model.Job, free_at: tuple[int, ...] = (16, 16, 19)) -> model.Snapshot:
    """Three nodes, each of them somebody's who stays for so many hours."""
    holders = [
        rivals.runs(f"v{i}", f"n{i}", ago=0, mid=hours * HOUR, preemptible=False)
        for i, hours in enumerate(free_at)
        if hours
    ]
    queue = dataclasses.replace(rivals.QUEUE, pools=(POOL,))
    return rivals.world(*jobs, *holders, nodes=3, queue=queue)


def promised(snapshot: model.Snapshot, config: model.Config = CONFIG) -> list[str]:
    plan = decide.decide(snapshot, NOW, config)
    assert pledges.of_plan(snapshot, plan, config) == ()
    feasible = [one.uid for one in plan.updates if one.verdict and one.verdict.level is model.Level.FEASIBLE]
    assert sorted(feasible) == sorted(one.uid for one in plan.promise)
    return sorted(feasible)


THREE = (one("a"), one("b"), one("c"))


def test_all_are_promised_or_none() -> None:
    assert promised(world(*THREE, free_at=(16, 16, 16))) == ["a", "b", "c"]
    assert promised(world(*THREE)) == []
    assert promised(world(*[dataclasses.replace(job, sweep="") for job in THREE])) == ["a", "b"]


def test_what_was_looked_for_in_vain_leaves_its_room_to_others() -> None:
    other = one("z", sweep="", needs=0, due=20 * HOUR + 1)
    assert promised(world(*THREE, other)) == ["z"]


@pytest.mark.parametrize("there", [2, 3])
def test_none_is_promised_before_as_many_are_there_as_have_to_succeed(there: int) -> None:
    jobs = [dataclasses.replace(job, published=TOLD) for job in THREE[: there - 1]]
    found = promised(world(*jobs, THREE[there - 1], free_at=(16, 16, 16)))
    assert found == (["a", "b", "c"] if there == 3 else [])


def test_one_that_runs_already_is_promised_with_those_that_wait() -> None:
    runs = rivals.runs(
        "a", "n0", ago=HOUR, mid=2 * HOUR, sweep="ns/lr", sweep_needs=3, deadline=NOW + 20 * HOUR
    )
    assert promised(world(runs, *THREE[1:], free_at=(0, 16, 16))) == ["a", "b", "c"]
    late = dataclasses.replace(runs, deadline=NOW + HOUR - 1)
    assert promised(world(late, *THREE[1:], free_at=(0, 16, 16))) == []


def test_those_that_are_promised_keep_it_when_another_takes_the_place_of_one_that_failed() -> None:
    kept = []
    for index, job in enumerate(THREE[:2]):
        place = (model.GroupPlacement("p", ((f"n{index}", 1),)),)
        slot = model.Slot(place, NOW + 17 * HOUR, NOW + 20 * HOUR, 2 * HOUR)
        verdict = model.Verdict(model.Level.FEASIBLE, "Promised.")
        kept.append(dataclasses.replace(job, slot=slot, published=dataclasses.replace(TOLD, verdict=verdict)))
    for hours, new in ((16, ["c"]), (19, [])):
        plan = decide.decide(world(*kept, THREE[2], free_at=(16, 16, hours)), NOW, CONFIG)
        assert plan.revoke == ()
        assert [promise.uid for promise in plan.promise] == new


def test_one_that_is_held_back_is_not_counted_and_one_that_is_late_spoils_it() -> None:
    paused = one("d", state=model.State.HELD_BACK, held_back="is paused.")
    assert promised(world(*THREE, paused, free_at=(16, 16, 16))) == ["a", "b", "c"]
    assert promised(world(*THREE[:2], dataclasses.replace(paused, uid="c"), free_at=(16, 16, 16))) == []
    late = one("c", due=HOUR)
    assert promised(world(*THREE[:2], late, free_at=(16, 16, 16))) == []


def test_a_sweep_of_more_than_a_pass_may_look_at_is_not_promised() -> None:
    config = dataclasses.replace(CONFIG, promise_most=2)
    assert promised(world(*THREE, free_at=(16, 16, 16)), config) == []
