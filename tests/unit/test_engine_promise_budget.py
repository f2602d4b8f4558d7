"""What a queue may promise in an overload: what is small, and the rest within its budget."""

from __future__ import annotations

import dataclasses

import pytest

from cases import rivals
from cases.rivals import HOUR, NOW
from lstqueue.engine import decide, model, pledges

CONFIG = dataclasses.replace(rivals.CONFIG, promising=True)
LENGTH = CONFIG.slot_grace + CONFIG.launch_margin + 2 * HOUR
POOL = model.Pool("p", nominal=((rivals.GPU, 100),))
"""A quota beyond what there is: the two nodes count."""


def world(*jobs: model.Job, share: float, shed: bool = True) -> model.Snapshot:
    """Two nodes that somebody has, who can be told to leave, an hour after an overload."""
    queue = dataclasses.replace(rivals.QUEUE, pools=(POOL,), promise_budget=round(share * 1_000_000))
    holders = [rivals.runs(f"v{i}", f"n{i}", mid=90 * HOUR) for i in range(2)]
    made = rivals.world(*jobs, *holders, nodes=2, queue=queue)
    return dataclasses.replace(made, shed_at=NOW - HOUR if shed else 0)


def new(uid: str = "a", *, due: int = 10 * HOUR, gpus: int = 8) -> model.Job:
    return rivals.waits(uid, deadline=NOW + due, gpus=gpus, published=model.Published())


def promised(snapshot: model.Snapshot, config: model.Config = CONFIG) -> list[str]:
    plan = decide.decide(snapshot, NOW, config)
    assert pledges.of_plan(snapshot, plan, config) == ()
    return [one.uid for one in plan.promise]


LEAST = 8 * LENGTH / (16 * 10 * HOUR)
"""The budget that just holds a node for `LENGTH` by a deadline in ten hours."""


@pytest.mark.parametrize(
    ("share", "shed", "made"),
    [(0, True, False), (LEAST + 1e-6, True, True), (LEAST - 1e-6, True, False), (0, False, True)],
    ids=["none", "enough", "too little", "no overload"],
)
def test_what_is_not_small_is_promised_in_an_overload_only_within_the_budget(
    share: float, shed: bool, made: bool
) -> None:
    assert promised(world(new(), share=share, shed=shed)) == ["a"] * made


def test_what_is_owed_already_counts_and_so_does_what_is_owed_later() -> None:
    for first, second in ((10 * HOUR, 11 * HOUR), (11 * HOUR, 10 * HOUR)):
        jobs = [new("a", due=first), new("b", due=second)]
        both = 2 * 8 * LENGTH / (16 * 11 * HOUR)
        assert promised(world(*jobs, share=both + 1e-6)) == [job.uid for job in by_deadline(jobs)]
        assert promised(world(*jobs, share=both - 1e-6)) == [by_deadline(jobs)[0].uid]


def by_deadline(jobs: list[model.Job]) -> list[model.Job]:
    return sorted(jobs, key=lambda job: job.deadline or 0)


def test_what_was_promised_counts_against_the_budget_of_those_who_come() -> None:
    place = (model.GroupPlacement("p", (("n0", 1),)),)
    slot = model.Slot(place, NOW + 8 * HOUR, NOW + 8 * HOUR + LENGTH, 2 * HOUR)
    owner = rivals.waits("o", deadline=slot.finish, slot=slot)
    later, sooner = new("a", due=20 * HOUR), new("a", due=5 * HOUR)
    for job in (later, sooner):
        need = 2 * 8 * LENGTH / (16 * max(job.deadline - NOW, slot.finish - NOW))
        alone = 8 * LENGTH / (16 * (job.deadline - NOW))
        assert promised(world(job, owner, share=max(need, alone) + 1e-6)) == ["a"]
        assert promised(world(job, owner, share=max(need, alone) - 1e-6)) == []


def test_small_jobs_need_no_budget() -> None:
    config = dataclasses.replace(CONFIG, promise_area=2.0)
    assert promised(world(new(), share=0), config) == ["a"]


def test_the_deadline_that_would_be_promised_is_within_the_budget() -> None:
    for share, told in ((LEAST + 1e-6, True), (LEAST - 1e-6, False)):
        late = new(due=HOUR)
        stays = [
            rivals.runs(f"v{i}", f"n{i}", ago=0, mid=10 * HOUR - LENGTH, preemptible=False) for i in (0, 1)
        ]
        snapshot = world(late, share=share)
        plan = decide.decide(dataclasses.replace(snapshot, jobs=(late, *stays)), NOW, CONFIG)
        verdict = next(one.verdict for one in plan.updates if one.uid == "a")
        assert verdict is not None
        assert verdict.earliest_promised == (NOW + 10 * HOUR if told else None)
